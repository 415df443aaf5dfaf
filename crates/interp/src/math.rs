//! The functions of the mathematics library of C.

use kingpost_ir::expr::MathFn;
use kingpost_ir::math;

/// The value in `f64`. For `f32` the result is rounded once more, which is at least as accurate as
/// the C function of that type; `fma` has its own since rounding twice would be wrong.
///
/// Functions of complex numbers do not come here: their value is nan.
pub(super) fn call(function: MathFn, single: bool, x: [f64; 3]) -> f64 {
    if single && function == MathFn::Fma {
        return f64::from((x[0] as f32).mul_add(x[1] as f32, x[2] as f32));
    }
    let value = math::call(function, x).unwrap_or(f64::NAN);
    if single { f64::from(value as f32) } else { value }
}
