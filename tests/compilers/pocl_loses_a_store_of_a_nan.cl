// pocl 3.1 (LLVM 14) and 5.0: the store of `tanh` of a literal nan in f32 is lost, and the place keeps what it held.
// Right with -cl-opt-disable, and in f64. To file: kernels whose value is a nan by constant folding of pocl's `tanh`
// for f32 end in code that is taken for unreachable.
// Expected: f[0] is nan. Found: 0.5.
// argument f: f32* = 0.5
// launch store: grid 1 1 1, work-group 1 1 1
__kernel void store(__global float *f)
{
    f[0] = tanh(NAN);
}
