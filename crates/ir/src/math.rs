//! Values of operations on reals, in double precision.

use crate::functions::MathFn;

/// A function at up to three arguments; none of those that make complex numbers or take them, and of declared
/// ones.
pub fn call(function: MathFn, [x, y, z]: [f64; 3]) -> Option<f64> {
    Some(match function {
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
        MathFn::Complex
        | MathFn::RealPart
        | MathFn::ImagPart
        | MathFn::Conj
        | MathFn::Abs
        | MathFn::Record(_)
        | MathFn::External(_) => return None,
    })
}

/// Remainder with the sign of the divisor, as NumPy's.
pub fn remainder(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
}
