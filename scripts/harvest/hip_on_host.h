// HIP's text on a host: included before it, on top of HIP-CPU (https://github.com/ROCm/HIP-CPU).
//
// HIP-CPU gives types, coordinates, atomics and a fiber a work-item. Written here from AMD's documents are
//   - barriers of a group, of a wavefront of 64 and of parts of one: HIP-CPU has one that all work-items of a group
//     must call equally often, and a work-item that waits for others for ever ends the program here;
//   - shuffles by lanes whose numbers grow along x first, in each part of a wavefront (those of HIP-CPU read nothing
//     from a part that is not the first, and number along z first);
//   - matrix instructions of f64, by what the AMD Matrix Instruction Calculator prints for CDNA3: lane l holds
//     A[l mod 16][l / 16] and B[l / 16][l mod 16] of 16x16x4, and in register v D[4 v + l / 16][l mod 16]; of 4x4x4 it
//     holds A[l mod 4][l / 16], B[l / 16][l mod 4] and D[l / 16][l mod 4] of block l / 4 mod 4;
//   - local memory, which holds nans before each group.
#pragma once
// groups run one after the other, in order
#define _GLIBCXX_USE_TBB_PAR_BACKEND 0
#define LIBCO_MP
#define LIBCO_MPROTECT
#include <../external/libco/libco.h>
// HIP-CPU's stacks have 7 KiB
#define co_create(bytes, function) ((co_create)((bytes) + (1u << 20), function))
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>

#undef __global__
#define __global__
#undef __device__
#define __device__
#undef __shared__
#define __shared__ static __attribute__((section("group_memory")))
// of clang, for the vectors of matrix instructions
#define ext_vector_type(n) vector_size(8 * (n))

extern "C" char __start_group_memory[] __attribute__((weak));
extern "C" char __stop_group_memory[] __attribute__((weak));

namespace on_host {

constexpr unsigned WAVEFRONT = 64;

// Work-items that wait for each other.
struct Meeting {
    unsigned arrived, generation;
};

struct Group {
    unsigned items, steps, ended;
    Meeting all, parts[7][1024];
    // what a lane shows others
    alignas(16) char shown[1024][32];
};
inline Group group;

// Along x first.
inline unsigned item() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

[[noreturn]] inline void give_up(const char *what) {
    std::fprintf(stderr, "%s: work-item %u of group %u waits for ever\n", what, item(), unsigned(blockIdx.x));
    std::abort();
}

// Others run; after several rounds without an arrival none will come.
inline void others(const char *what) {
    if (++group.steps > 4 * group.items) give_up(what);
    __syncthreads();
}

inline void meet(Meeting &meeting, unsigned items, const char *what) {
    group.steps = 0;
    const unsigned generation = meeting.generation;
    if (++meeting.arrived == items) {
        meeting.arrived = 0;
        ++meeting.generation;
    }
    while (meeting.generation == generation) others(what);
    group.steps = 0;
}

// Of the part of a wavefront that has `width` lanes and this work-item.
inline void meet_part(unsigned width, const char *what) {
    const unsigned first = item() / width * width;
    const unsigned items = group.items - first < width ? group.items - first : width;
    if (items > 1) meet(group.parts[__builtin_ctz(width)][first / width], items, what);
}

inline void barrier() {
    if (group.items > 1) meet(group.all, group.items, "barrier");
}

template <class T> T shuffle(T value, int lane, int width) {
    static_assert(sizeof(T) <= sizeof group.shown[0]);
    std::memcpy(group.shown[item()], &value, sizeof(T));
    meet_part(width, "shuffle");
    const unsigned first = item() / width * width, from = first + (unsigned(lane) & unsigned(width - 1));
    // a lane that there is not
    if (from >= group.items) give_up("shuffle");
    std::memcpy(&value, group.shown[from], sizeof(T));
    meet_part(width, "shuffle");
    return value;
}

using Four = double __attribute__((vector_size(32)));

// What all lanes of this wavefront give as factors.
struct Factors {
    double a[WAVEFRONT], b[WAVEFRONT];
    Factors(double of_a, double of_b) {
        if (group.items % WAVEFRONT) give_up("matrix instruction of a part of a wavefront");
        double both[2] = {of_a, of_b};
        std::memcpy(group.shown[item()], both, sizeof both);
        meet_part(WAVEFRONT, "matrix instruction");
        const unsigned first = item() / WAVEFRONT * WAVEFRONT;
        for (unsigned lane = 0; lane < WAVEFRONT; ++lane) {
            std::memcpy(both, group.shown[first + lane], sizeof both);
            a[lane] = both[0], b[lane] = both[1];
        }
        meet_part(WAVEFRONT, "matrix instruction");
    }
};

// Runs a work-item of a kernel. The first one starts the group, and leaves it before the others do: HIP-CPU goes on
// with the next after each that ends.
inline void run(const std::function<void()> *kernel) {
    const bool is_first = id(hip::detail::Fiber::this_fiber()) == 0;
    const unsigned items = count(dimensions(hip::detail::Tile::this_tile()));
    if (is_first) {
        group = Group{};
        group.items = items;
        if (__start_group_memory) std::memset(__start_group_memory, 0xff, __stop_group_memory - __start_group_memory);
    }
    (*kernel)();
    if (items == 1) return;
    ++group.ended;
    group.steps = 0;
    if (is_first) {
        while (group.ended < items) others("end");
        group.ended = ~0u;
    }
    while (group.ended != ~0u) others("end");
}

// Launches groups of work-items, along each axis.
inline void launch(const std::function<void()> &kernel, const std::int64_t *sizes) {
    const dim3 groups(sizes[0], sizes[1], sizes[2]), items(sizes[3], sizes[4], sizes[5]);
    hipLaunchKernelGGL(run, groups, items, 0, nullptr, &kernel);
    hipDeviceSynchronize();
}

// The same of a kernel whose arguments lie at places.
template <class... Parameters>
void launch(void (*kernel)(Parameters...), void **places, const std::int64_t *sizes) {
    // braces evaluate in order
    std::tuple<Parameters...> arguments{*static_cast<Parameters *>(*places++)...};
    launch([&] { std::apply(kernel, arguments); }, sizes);
}

// A value of the bits of another.
template <class To, class From> To bits(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To as;
    std::memcpy(&as, &value, sizeof as);
    return as;
}

} // namespace on_host

#define __syncthreads() on_host::barrier()
#define __shfl(value, lane, width) on_host::shuffle(value, lane, width)
#define unsafeAtomicAdd(place, value) atomicAdd(place, value)
#define __HIP_MEMORY_SCOPE_AGENT 0
#define __hip_atomic_store(place, value, order, scope) __atomic_store_n(place, value, order)
#define __hip_atomic_load(place, order, scope) __atomic_load_n(place, order)
#define __builtin_amdgcn_fence(order, scope) ((void)0)
#define __builtin_amdgcn_wave_barrier() on_host::meet_part(on_host::WAVEFRONT, "barrier of a wavefront")
#define __builtin_amdgcn_exp2f(x) exp2f(x)
#define __int_as_float(x) on_host::bits<float>(int(x))
#define __uint_as_float(x) on_host::bits<float>(unsigned(x))
#define __float_as_uint(x) on_host::bits<unsigned>(float(x))
#define __float_as_int(x) on_host::bits<int>(float(x))
#define __double_as_longlong(x) on_host::bits<long long>(double(x))
#define __longlong_as_double(x) on_host::bits<double>((long long)(x))

inline on_host::Four __builtin_amdgcn_mfma_f64_16x16x4f64(double a, double b, on_host::Four c, int, int, int) {
    const on_host::Factors all(a, b);
    const unsigned lane = on_host::item() % on_host::WAVEFRONT, column = lane % 16;
    for (unsigned v = 0; v < 4; ++v) {
        const unsigned row = 4 * v + lane / 16;
        for (unsigned k = 0; k < 4; ++k) c[v] = std::fma(all.a[row + 16 * k], all.b[column + 16 * k], c[v]);
    }
    return c;
}

inline double __builtin_amdgcn_mfma_f64_4x4x4f64(double a, double b, double c, int, int, int) {
    const on_host::Factors all(a, b);
    const unsigned lane = on_host::item() % on_host::WAVEFRONT;
    const unsigned column = lane % 4, block = lane / 4 % 4, row = lane / 16;
    for (unsigned k = 0; k < 4; ++k) {
        c = std::fma(all.a[row + 4 * block + 16 * k], all.b[column + 4 * block + 16 * k], c);
    }
    return c;
}
