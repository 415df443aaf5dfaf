//! The functions of the mathematics library of C.

use purlin_ir::expr::MathFn;

/// The value in `f64`. For `f32` the result is rounded once more, which is at least as accurate as
/// the C function of that type; `fma` has its own since rounding twice would be wrong.
pub(super) fn call(function: MathFn, single: bool, x: &[f64]) -> f64 {
    if single && function == MathFn::Fma {
        return f64::from((arg(x, 0) as f32).mul_add(arg(x, 1) as f32, arg(x, 2) as f32));
    }
    let value = double(function, arg(x, 0), arg(x, 1), arg(x, 2));
    if single { f64::from(value as f32) } else { value }
}

fn arg(x: &[f64], k: usize) -> f64 {
    x.get(k).copied().unwrap_or(0.0)
}

fn double(function: MathFn, x: f64, y: f64, z: f64) -> f64 {
    match function {
        MathFn::Sin => x.sin(),
        MathFn::Cos => x.cos(),
        MathFn::Tan => x.tan(),
        MathFn::Asin => x.asin(),
        MathFn::Acos => x.acos(),
        MathFn::Atan => x.atan(),
        MathFn::Atan2 => x.atan2(y),
        MathFn::Sinh => x.sinh(),
        MathFn::Cosh => x.cosh(),
        MathFn::Tanh => x.tanh(),
        MathFn::Asinh => libm::asinh(x),
        MathFn::Acosh => libm::acosh(x),
        MathFn::Atanh => libm::atanh(x),
        MathFn::Exp => x.exp(),
        MathFn::Exp2 => x.exp2(),
        MathFn::Expm1 => x.exp_m1(),
        MathFn::Log => x.ln(),
        MathFn::Log2 => x.log2(),
        MathFn::Log10 => x.log10(),
        MathFn::Log1p => x.ln_1p(),
        MathFn::Pow => x.powf(y),
        MathFn::Sqrt => x.sqrt(),
        MathFn::Cbrt => x.cbrt(),
        MathFn::Hypot => x.hypot(y),
        MathFn::Erf => libm::erf(x),
        MathFn::Erfc => libm::erfc(x),
        MathFn::Tgamma => libm::tgamma(x),
        MathFn::Lgamma => libm::lgamma(x),
        MathFn::Fabs => x.abs(),
        MathFn::Floor => x.floor(),
        MathFn::Ceil => x.ceil(),
        MathFn::Trunc => x.trunc(),
        MathFn::Round => x.round(),
        MathFn::Fmod => x % y,
        MathFn::Fmin => x.min(y),
        MathFn::Fmax => x.max(y),
        MathFn::Fma => x.mul_add(y, z),
        MathFn::Copysign => x.copysign(y),
        MathFn::BesselJ => libm::jn(x as i32, y),
        MathFn::BesselY => libm::yn(x as i32, y),
        // of complex numbers, which `complex` computes with
        MathFn::Complex | MathFn::RealPart | MathFn::ImagPart | MathFn::Conj | MathFn::Abs => f64::NAN,
        // no number
        MathFn::Record(_) => f64::NAN,
    }
}
