// The benchmark's kernels and its conjugate gradients, as they are, on arrays of whoever calls: `laplacian_gpu.hpp`,
// `geometry_gpu.hpp`, `cg.hpp` and `util.hpp` are those of a checkout, `vector.hpp` and empty headers of Basix and
// DOLFINx stand in for the rest. `beside.py` compiles it.

#include "util.hpp"

#include "vector.hpp"

#include "laplacian_gpu.hpp"

#include "cg.hpp"

#include <chrono>

using namespace benchdolfinx;

/// What `MatFreeLaplacianGPU` has on the device. Its name is not local, or else functions that take it are.
struct Arrays
{
  const void *constants, *geometry, *phi0, *dphi1;
  const std::int32_t* dofmap;
  const int* cells;
  int n_cells;
  const std::int8_t* markers;
  int is_identity;
};

namespace
{
/// `MatFreeLaplacianGPU::apply` with `impl_operator`, of one process.
template <typename T, int P, int Q>
struct Laplacian
{
  using value_type = T;
  Arrays a;

  void apply(Vector<T>& in, Vector<T>& out)
  {
    thrust::fill(out.array().begin(), out.array().end(), T{0});
    stiffness_operator_gpu<T, P, Q><<<dim3(a.n_cells), dim3(Q, Q, Q)>>>(
        in.array().data().get(), static_cast<const T*>(a.constants), out.array().data().get(),
        static_cast<const T*>(a.geometry), static_cast<const T*>(a.phi0), static_cast<const T*>(a.dphi1), a.dofmap,
        a.cells, a.n_cells, a.markers, a.is_identity);
    check_device_last_error();
    device_synchronize();
  }
};

/// Seconds of some actions or iterations, as `laplace_action_gpu` takes them.
template <typename T, int P, int Q>
double timed(const Arrays& arrays, int n, const void* input, void* result, int repetitions, int is_cg)
{
  auto map = std::make_shared<const IndexMap>(IndexMap{n});
  Vector<T> u(map, 1), y(map, 1);
  auto of = [](auto* p) { return thrust::device_pointer_cast(p); };
  thrust::copy_n(of(static_cast<const T*>(input)), n, u.array().begin());
  Laplacian<T, P, Q> op{arrays};
  device_synchronize();
  auto start = std::chrono::high_resolution_clock::now();
  if (is_cg)
    cg_solve(op, y, u, repetitions, T(0.0));
  else
  {
    for (int i = 0; i < repetitions; ++i)
      op.apply(u, y);
  }
  auto stop = std::chrono::high_resolution_clock::now();
  thrust::copy_n(y.array().begin(), n, of(static_cast<T*>(result)));
  return std::chrono::duration<double>(stop - start).count();
}

template <typename T, int Q>
void geometry(const void* points, void* result, const std::int32_t* dofmap, const void* dphi, const void* weights,
              const int* cells, int n_cells)
{
  geometry_computation_gpu<T, Q><<<dim3(n_cells), dim3(Q * Q * Q)>>>(
      static_cast<const T*>(points), static_cast<T*>(result), dofmap, static_cast<const T*>(dphi),
      static_cast<const T*>(weights), cells, n_cells);
  check_device_last_error();
  device_synchronize();
}
} // namespace

#define EXPORTED(NAME, T, P, Q)                                                                                        \
  extern "C" double timed_##NAME##_##P##_##Q(const Arrays* arrays, int n, const void* input, void* result,             \
                                             int repetitions, int is_cg)                                               \
  {                                                                                                                    \
    return timed<T, P, Q>(*arrays, n, input, result, repetitions, is_cg);                                              \
  }                                                                                                                    \
  extern "C" void geometry_##NAME##_##P##_##Q(const void* points, void* result, const std::int32_t* dofmap,            \
                                              const void* dphi, const void* weights, const int* cells, int n_cells)    \
  {                                                                                                                    \
    geometry<T, Q>(points, result, dofmap, dphi, weights, cells, n_cells);                                             \
  }

EXPORTED(f64, double, 3, 5)
EXPORTED(f64, double, 6, 8)
EXPORTED(f32, float, 3, 5)
EXPORTED(f32, float, 6, 8)
