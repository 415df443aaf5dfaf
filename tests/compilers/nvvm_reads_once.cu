// NVVM of CUDA 13.0 for sm_90, at its default optimisation: `y[6 - 3*i]` is read once in front of the inner loop,
// though the loop writes `y[0]`, which it is for `i` = 2. `nvcc -arch=sm_90 -ptx` shows it without a card: the loop
// has no read of `y`. Right with -G, and without `__restrict__` on both of the arrays that are written.
// Generated code has no `__restrict__` on arrays that are written, where one of them is read elsewhere than it is
// written.
extern "C" __global__ void reads(double *__restrict__ x, double *__restrict__ y, const float *__restrict__ g)
{
    for (int i = 0; i < 3; i += 2) {
        for (int j = 0; j < 3; ++j) {
            y[0] -= fmax(sin(y[6 - 3*i]), x[i] + g[6 - 3*i + j]);
        }
    }
}
