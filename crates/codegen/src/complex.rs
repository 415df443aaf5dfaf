//! Operations on complex numbers in code.

use kingpost_ir::{MathFn, ScalarType};

/// An operation on complex numbers `z`, `w` and reals `x`, `y`, in the order of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the operations of the name
pub enum ComplexOp {
    /// The number with parts `x` and `y`.
    Make,
    /// The number `z` of the other precision.
    Convert,
    Real,
    Imag,
    Neg,
    Conj,
    Abs,
    /// Whether `z` and `w` are equal.
    Equal,
    Add,
    Sub,
    Mul,
    Div,
    /// `z + x`.
    Plus,
    /// `z - x`.
    Minus,
    /// `x - z`.
    From,
    /// `z*x`.
    Scale,
    /// `z/x`.
    Shrink,
    Exp,
    Log,
    Sqrt,
    Sin,
    Cos,
    Pow,
}

impl ComplexOp {
    /// The operation that a function of the kernel's expressions is.
    pub(crate) fn of(function: MathFn) -> Option<Self> {
        let all = [
            (MathFn::Complex, Self::Make),
            (MathFn::RealPart, Self::Real),
            (MathFn::ImagPart, Self::Imag),
            (MathFn::Conj, Self::Conj),
            (MathFn::Abs, Self::Abs),
            (MathFn::Exp, Self::Exp),
            (MathFn::Log, Self::Log),
            (MathFn::Sqrt, Self::Sqrt),
            (MathFn::Sin, Self::Sin),
            (MathFn::Cos, Self::Cos),
            (MathFn::Pow, Self::Pow),
        ];
        all.into_iter().find(|(f, _)| *f == function).map(|(_, op)| op)
    }

    /// The member that it is, where it is no function.
    pub(crate) fn member(self) -> Option<&'static str> {
        [(Self::Real, "x"), (Self::Imag, "y")].into_iter().find(|(op, _)| *op == self).map(|(_, m)| m)
    }

    /// Operations that its function calls.
    pub(crate) fn calls(self) -> &'static [Self] {
        if self == Self::Pow { &[Self::Mul, Self::Exp, Self::Log] } else { &[] }
    }

    /// The type of its value, none of a truth value.
    pub(crate) fn value(self, ty: ScalarType) -> Option<ScalarType> {
        let is_real = matches!(self, Self::Real | Self::Imag | Self::Abs);
        (self != Self::Equal).then(|| if is_real { ty.part() } else { ty })
    }

    /// Operations on reals that it takes, and functions of reals.
    pub(crate) fn cost(self) -> (f64, f64) {
        match self {
            Self::Make | Self::Convert | Self::Real | Self::Imag | Self::Neg | Self::Conj => (0.0, 0.0),
            Self::Plus | Self::Minus | Self::From => (1.0, 0.0),
            Self::Equal | Self::Add | Self::Sub | Self::Scale => (2.0, 0.0),
            // sums are fused with products
            Self::Mul => (4.0, 0.0),
            Self::Div => (6.0, 3.0),
            Self::Shrink | Self::Log => (0.0, 2.0),
            Self::Abs => (0.0, 1.0),
            Self::Exp => (2.0, 3.0),
            Self::Sqrt => (4.0, 3.0),
            Self::Sin | Self::Cos => (2.0, 4.0),
            Self::Pow => (6.0, 5.0),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Make => "of",
            Self::Convert => "from",
            Self::Real => "real",
            Self::Imag => "imag",
            Self::Neg => "neg",
            Self::Conj => "conj",
            Self::Abs => "abs",
            Self::Equal => "equal",
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Plus => "plus",
            Self::Minus => "minus",
            Self::From => "rest",
            Self::Scale => "scale",
            Self::Shrink => "shrink",
            Self::Exp => "exp",
            Self::Log => "log",
            Self::Sqrt => "sqrt",
            Self::Sin => "sin",
            Self::Cos => "cos",
            Self::Pow => "pow",
        }
    }

    /// The name of its function.
    pub(crate) fn name(self, ty: ScalarType) -> String {
        format!("kingpost_{}_{}", ty.name(), self.word())
    }
}
