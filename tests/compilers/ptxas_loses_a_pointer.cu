// ptxas of CUDA 13.0 (V13.0.88) at its default -O3 and at -O2, for sm_80 and sm_90: the register pair that holds the
// pointer `f` is overwritten with 2/pi, a constant of the reduction of trigonometric arguments, before the first read
// through it. compute-sanitizer: invalid read at 0x3fe45f306dc9c883. Right with ptxas -O1, with -G, without the
// functions, without the barriers, or without the update of f; the PTX is right. Found by the random pairs (1 of 18,555
// in CUDA, H100 and H200, 2026-11-22). No way to print around it is known: `kingpost run` names the compiler.
__device__ static inline int kingpost_min_i32(const int a, const int b)
{
    return a < b ? a : b;
}

__device__ static inline void kingpost_atomic_min_f32(float *p, const float v)
{
    unsigned int *const word = (unsigned int *)p;
    unsigned int old = *word, seen;
    do {
        seen = old;
        const float now = __uint_as_float(seen);
        old = atomicCAS(word, seen, __float_as_uint(fminf(now, v)));
    } while (old != seen);
}

extern "C" __global__ void __launch_bounds__(4) sample(
    double *x, // [3]
    double *__restrict__ y, // [3, 4]
    const double *__restrict__ u, // [3]
    const double *__restrict__ v, // [4]
    const double *__restrict__ a, // [3, 4]
    const double alpha,
    const int *__restrict__ map, // [3, 4]
    const int *__restrict__ permutation, // [3]
    const int *__restrict__ count, // [3]
    float *__restrict__ f, // [3]
    const int *__restrict__ small, // [3, 4]
    const double *__restrict__ weights, // [4]
    double *__restrict__ result) // [3]
{
    __shared__ double tree[4];
    const int l0 = threadIdx.x;
    double work[3];
    for (int i1 = 0; i1 < 3; ++i1) {
        work[i1] = x[i1]*0.5;
    }
    if (l0 == 0) {
        for (int i2 = 0; i2 < 3; ++i2) {
            kingpost_atomic_min_f32(&f[0], 1.0f);
        }
    }
    for (int i4 = 0; i4 < 3; ++i4) {
        tree[l0] = cos(atan((double)small[i4]*4.656612873077393e-10));
        __syncthreads();
        if (l0 < 2) {
            tree[l0] *= tree[l0 + 2];
        }
        __syncthreads();
        if (l0 < 1) {
            tree[l0] *= tree[l0 + 1];
        }
        if (l0 == 0) {
            x[0] *= tree[0];
            x[0] *= cos(sin((double)kingpost_min_i32(-3, 2)));
        }
        __syncthreads();
    }
    tree[l0] = cos(atan((double)small[3]*4.656612873077393e-10));
    __syncthreads();
    if (l0 < 2) {
        tree[l0] *= tree[l0 + 2];
    }
    __syncthreads();
    if (l0 < 1) {
        tree[l0] *= tree[l0 + 1];
    }
    if (l0 == 0) {
        x[0] *= tree[0];
        x[0] *= cos(sin((double)kingpost_min_i32(-3, 2)));
    }
    for (int i9 = 0; i9 < 3; ++i9) {
        float t8 = (__int_as_float(0x7fc00000));
        for (int i11 = 0; i11 < 3; ++i11) {
            t8 = fmaxf(t8, (__int_as_float(0x7f800000)));
        }
        if (l0 == 0) {
            y[4*i9] = fmax(y[4*i9], (double)t8);
        }
    }
    if (l0 == 0) {
        for (int i14 = 0; i14 < 3; ++i14) {
            result[i14] = x[i14] + cos(work[i14]);
        }
    }
}
