// pocl 3.1 (Debian 3.1-3+deb12u1), POCL_WORK_GROUP_METHOD=loops, =cbs and =workitemrepl: clBuildProgram or the first
// launch ends with SIGABRT, ParallelRegion.cc:399, "Incoming edges to non-entry block!". Right with =loopvec and with
// -cl-opt-disable. To file: an assertion of the passes over work-items at a loop with three barriers, between which
// conditions on the work-item are joined by the optimiser.
// Expected: f[0] is 19.25. Found: no code.
// argument f: f32* = 0.5, 0.75
// launch scan: grid 1 1 1, work-group 2 1 1
__kernel __attribute__((reqd_work_group_size(2, 1, 1))) void scan(__global float *restrict f)
{
    __local float t[4];
    const int l = get_local_id(0);
    for (int i = 0; i < 4; ++i) {
        barrier(CLK_LOCAL_MEM_FENCE);
        t[l] = f[l];
        barrier(CLK_LOCAL_MEM_FENCE);
        t[l + 2] = t[l];
        if (1 <= l) {
            t[l + 2] += t[l - 1];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l == 0) {
            f[0] += t[3];
        }
    }
    if (l == 0) {
        f[1] = t[2];
    }
}
