// Intel's OpenCL for processors (intel-opencl-rt 2026.2.0), with AVX-512, AVX2 and SSE4.2 alike: under conditions on the
// loop and the work-item, between barriers, the negative of a work-item as a real is a number near 0. Right with
// -cl-opt-disable. To file: CL_CONFIG_CPU_VECTORIZER_MODE=1 is as wrong as the default, so that no vectoriser is needed.
// Expected: f[2] is -321.0. Found: -7.7e-308, or -0.0 with CL_CONFIG_CPU_TARGET_ARCH=corei7.
// argument f: f64* = 0.0, 0.0, 0.0, 0.0
// launch negate: grid 1 1 1, work-group 4 1 1
__kernel __attribute__((reqd_work_group_size(4, 1, 1))) void negate(__global double *restrict f)
{
    __local double t[3];
    const int l = get_local_id(0);
    for (int i = 0; i < 4; ++i) {
        if (l < 3) {
            t[l] = 0.0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (1 == (i + 2) % 3 && i <= l + 1 && l <= i + 1) {
            t[l - 1] = -((double)l);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l == 0) {
            f[i] = t[0] + 10*t[1] + 100*t[2];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
