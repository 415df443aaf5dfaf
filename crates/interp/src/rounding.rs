//! Which operations are exact: another rounding cannot change them.

use super::node::RealOp;
use kingpost_ir::expr::MathFn;

/// Whether `value` is `a op b` without a rounding error. The errors are computed by error-free
/// transformations (Ogita et al. 2005, section 2).
pub(super) fn exact(op: RealOp, a: f64, b: f64, value: f64) -> bool {
    match op {
        RealOp::Add => exact_sum(a, b, value),
        RealOp::Sub => exact_sum(a, -b, value),
        RealOp::Mul => a.mul_add(b, -value) == 0.0,
        RealOp::Div => value.mul_add(b, -a) == 0.0,
        // `fmod` is exact, and where it has the other sign the divisor is added
        RealOp::Mod => value == a % b || exact_sum(a % b, b, value),
        RealOp::Min | RealOp::Max => true,
    }
}

fn exact_sum(a: f64, b: f64, value: f64) -> bool {
    let sum = a + b;
    let part = sum - a;
    sum == value && (a - (sum - part)) + (b - part) == 0.0
}

/// Whether `value`, that of a function at `x`, is exact; of transcendental functions that is
/// supposed of integers, such as `exp(0)`.
pub(super) fn exact_call(function: MathFn, x: f64, value: f64) -> bool {
    if function == MathFn::Sqrt {
        return value.mul_add(value, -x) == 0.0;
    }
    let selects = matches!(
        function,
        MathFn::Fabs
            | MathFn::Floor
            | MathFn::Ceil
            | MathFn::Trunc
            | MathFn::Round
            | MathFn::Fmod
            | MathFn::Fmin
            | MathFn::Fmax
            | MathFn::Copysign
    );
    selects || value.fract() == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_operations_are_told_from_rounded_ones() {
        for (op, a, b) in [
            (RealOp::Add, 0.1, 0.25),
            (RealOp::Sub, 1.0, 1e-17),
            (RealOp::Mul, 0.1, 0.1),
            (RealOp::Div, 1.0, 3.0),
        ] {
            let value = |a: f64, b: f64| match op {
                RealOp::Add => a + b,
                RealOp::Sub => a - b,
                RealOp::Mul => a * b,
                RealOp::Div => a / b,
                RealOp::Min | RealOp::Max | RealOp::Mod => a,
            };
            assert!(!exact(op, a, b, value(a, b)), "{a} {b}");
            assert!(exact(op, 0.75, 0.5, value(0.75, 0.5)));
            // a result of an operation in single precision that double precision holds
            assert!(!exact(op, 0.75, 0.5, value(0.75, 0.5) + 1e-9));
        }
        assert!(exact_call(MathFn::Sqrt, 6.25, 2.5) && !exact_call(MathFn::Sqrt, 2.0, 2.0_f64.sqrt()));
        assert!(exact_call(MathFn::Exp, 0.0, 1.0) && !exact_call(MathFn::Exp, 1.0, 1.0_f64.exp()));
    }
}
