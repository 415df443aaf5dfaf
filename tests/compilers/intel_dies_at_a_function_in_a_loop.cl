// Intel's OpenCL for processors (intel-opencl-rt 2026.2.0): clBuildProgram ends with SIGSEGV at a loop that stores a
// function of each element in the same place. The same of `atan` and `sin` in f64 with AVX2 and AVX-512, of `fabs(v[i])`,
// `min(i, 1)` and `v[min(i, 1)]`; right with -cl-opt-disable, of `v[i < 1 ? i : 1]`, and where the elements of `x` differ.
// To file: a crash of the compiler at a loop that keeps the last value of a function that has a vector form.
// Expected: x[0] is 0.6351489523872873. Found: no code.
// argument x: f64* = 0.0
// argument v: f64* = 0.5, 0.25, 0.125, 0.75
// argument n: i32 = 4
// launch last: grid 1 1 1, work-group 1 1 1
__kernel void last(__global double *restrict x, __global const double *restrict v, const int n)
{
    for (int i = 0; i < n; ++i) {
        x[0] = tanh(v[i]);
    }
}
