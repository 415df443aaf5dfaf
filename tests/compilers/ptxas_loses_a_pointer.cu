// ptxas of CUDA 13.0 (V13.0.88) at its default -O3 and at -O2, for sm_80 and sm_90: cuCtxSynchronize answers 700. The
// uniform registers that hold the pointer `small` in the loop get 2/pi after it, a constant of the reduction of
// trigonometric arguments, and a read of the loop then has that as its address (compute-sanitizer: invalid read at
// 0x3fe45f306dc9c883). Right with ptxas -O0 and -O1, with -G, and without any of what is here; the PTX is right. nvdisasm
// shows it without a card: UIADD3 of a pair in a loop, and after the loop UMOV of 0x6dc9c883 to it. Found by the random
// pairs (1 of 18,555 in CUDA, H100 and H200, 2026-11-22), made smaller on an H200 (2026-11-30). No way to print around
// it is known: `kingpost run` names the compiler. Expected: f[0] is 1.
// argument x: f64* = 0.125
// argument y: f64* = 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.125
// argument f: f32* = 2.0
// argument small: i32* = -500, -363, -226, -89
// launch sample: grid 1 1 1, work-group 4 1 1
__device__ inline int least(int a, int b) { return a < b ? a : b; }
__device__ inline void lower(float *p, float v)
{
    unsigned *word = (unsigned *)p, old = *word, seen;
    do {
        seen = old, old = atomicCAS(word, seen, __float_as_uint(fminf(__uint_as_float(seen), v)));
    } while (old != seen);
}
extern "C" __global__ void __launch_bounds__(4) sample(
    double *x, double *__restrict__ y, float *__restrict__ f, const int *__restrict__ small)
{
    __shared__ double t[4];
    const int l = threadIdx.x;
    if (l == 0) for (int i = 0; i < 3; ++i) lower(f, 1.0f);
    for (int i = 0; i < 3; ++i) {
        t[l] = cos(atan(small[i]*4.6e-10));
        __syncthreads();
        if (l < 2) t[l] *= t[l + 2];
        __syncthreads();
        if (l == 0) {
            x[0] *= t[0];
            x[0] *= cos(sin((double)least(-3, 2)));
        }
        __syncthreads();
    }
    t[l] = cos(atan(small[3]*4.6e-10));
    __syncthreads();
    if (l == 0) x[0] *= t[1];
}
