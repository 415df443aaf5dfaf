// Intel's OpenCL for processors (intel-opencl-rt 2026.2.0) with AVX-512: the bitwise complement of a minimum or a
// maximum is not the complement of it. Right with CL_CONFIG_CPU_TARGET_ARCH=core-avx2 and with -cl-opt-disable; the
// same of `max` of 32 and 64 bits, with and without sign, and of `~max(a[0], max(a[1], …))` of a loop. To file: an
// integer minimum or maximum under a bitwise NOT (also `^ 0xffffffff`) is miscompiled where AVX-512 may be used.
// Expected: w[0] is 1038895164. Found: 1038896109.
// argument w: u32* = 3256072131
// argument e: u32* = 4294966318
// launch invert: grid 1 1 1, work-group 1 1 1
__kernel void invert(__global uint *w, __global const uint *e)
{
    w[0] = ~min(w[0], e[0]);
}
