// Intel's OpenCL for processors (intel-opencl-rt 2026.2.0) with AVX-512: after a loop that stores to one place what it
// reads, next to a store of wider elements, the place holds an element that the loop does not read: after its end, and
// not of the argument where that ends there. Right with -cl-opt-disable and with CL_CONFIG_CPU_TARGET_ARCH=corei7; with
// core-avx2 this one is right, and one in two more loops whose y[i] is fmax((double)j, -0.25) of the inner is wrong.
// To file: a loop whose length is no multiple of the vectors stores the value of a lane beyond its end.
// Expected: x[0] is 3. Found: 4.
// argument x: f32* = 0.0
// argument y: f64* = 0.0, 0.0, 0.0, 0.0
// argument e: f32* = 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0
// argument n: i32 = 3
// launch last: grid 1 1 1, work-group 1 1 1
__kernel void last(
    __global float *restrict x, __global double *restrict y, __global const float *restrict e, const int n)
{
    for (int i = 0; i < n; ++i) {
        y[i] = 1;
        x[0] = e[i];
    }
}
