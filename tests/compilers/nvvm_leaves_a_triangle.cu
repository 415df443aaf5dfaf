// NVVM of CUDA 13.0 for architectures before sm_100, at its default optimisation: the outer loop ends after
// one iteration. `nvcc -arch=sm_90 -ptx` shows it without a card: the branch back to the outer loop depends on a
// predicate that is the constant 0. Right with -G, with `#pragma unroll 1` before the inner loop, and for sm_100.
// Generated code prints that pragma before short loops whose length changes with an outer loop.
extern "C" __global__ void triangle(double *__restrict__ x, const double *__restrict__ a)
{
    for (int i = 0; i < 3; ++i) {
        double product = 1.0;
        for (int j = i; j < 3; ++j) {
            product *= tanh(a[i]);
        }
        x[i] = product + sin(x[i]);
    }
}
