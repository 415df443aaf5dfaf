// Intel's OpenCL for processors (intel-opencl-rt 2026.2.0) with AVX-512 and AVX2: a store under the condition `l < 1` is
// not seen by the read of the same work-item under `l == 0` after it. Right with CL_CONFIG_CPU_TARGET_ARCH=corei7,
// with -cl-opt-disable, without the stores to `flag`, and with `l == 0` in both places. To file: wrong with
// CL_CONFIG_CPU_VECTORIZER_MODE=1, too; the array of flags has three elements, the work-group four work-items.
// Expected: x[0] is 2.5. Found: 1.25.
// argument x: f64* = 0.0
// launch sum: grid 1 1 1, work-group 4 1 1
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel __attribute__((reqd_work_group_size(4, 1, 1))) void sum(__global double *x)
{
    __local double t[4];
    __local int flag[3];
    const int l = get_local_id(0);
    if (l < 3) {
        flag[l] = 1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 1) {
        flag[l] = flag[l + 2];
    }
    t[l] = 1.25;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 1) {
        t[l] = 2.5;
    }
    if (l == 0) {
        x[0] = t[0];
    }
}
