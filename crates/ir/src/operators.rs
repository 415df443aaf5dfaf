//! Operators of expressions, and functions of the mathematics library.

use crate::types::RecordType;
use serde::{Deserialize, Serialize};

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UnaryOp {
    /// Negation.
    Neg,
    /// Logical not.
    Not,
    /// Complement of an integer, `-1 - x`; of a word that of each bit.
    BitNot,
    /// The bits of a word as an integer with a sign.
    Bits,
    /// A field of a record, by its number.
    Field(RecordType, u8),
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BinaryOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Real quotient.
    Div,
    /// Integer quotient rounded down.
    FloorDiv,
    /// Remainder with the sign of the divisor, of integers or reals.
    Mod,
    /// Integer quotient rounded towards zero.
    TruncDiv,
    /// Integer remainder with the sign of the dividend.
    TruncRem,
    /// Conjunction of bits; integers are two's complement without end.
    BitAnd,
    /// Disjunction of bits.
    BitOr,
    /// Bits that differ.
    BitXor,
    /// Product with a power of two.
    Shl,
    /// Quotient by a power of two, rounded down.
    Shr,
    /// Smaller of two.
    Min,
    /// Larger of two.
    Max,
    /// Less than.
    Lt,
    /// Less than or equal.
    Le,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Logical and, short-circuit.
    And,
    /// Logical or, short-circuit.
    Or,
}

impl BinaryOp {
    /// Operator of the text format.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::FloorDiv => "floor_div",
            Self::Mod => "mod",
            Self::TruncDiv => "trunc_div",
            Self::TruncRem => "trunc_rem",
            Self::BitAnd => "bit_and",
            Self::BitOr => "bit_or",
            Self::BitXor => "bit_xor",
            Self::Shl => "shl",
            Self::Shr => "shr",
            Self::Min => "min",
            Self::Max => "max",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::And => "and",
            Self::Or => "or",
        }
    }

    /// The operators that are written like functions.
    pub(crate) const FUNCTIONS: [Self; 10] = [
        Self::Min,
        Self::Max,
        Self::FloorDiv,
        Self::TruncDiv,
        Self::TruncRem,
        Self::BitAnd,
        Self::BitOr,
        Self::BitXor,
        Self::Shl,
        Self::Shr,
    ];

    /// Whether it works on the bits of integers.
    pub fn is_bitwise(self) -> bool {
        matches!(self, Self::BitAnd | Self::BitOr | Self::BitXor | Self::Shl | Self::Shr)
    }

    /// Whether the result is a truth value of two numbers.
    pub fn is_comparison(self) -> bool {
        matches!(self, Self::Lt | Self::Le | Self::Eq | Self::Ne)
    }

    /// Whether it asks which of two numbers is smaller, or rounds: no operation on complex numbers.
    pub fn is_ordered(self) -> bool {
        matches!(self, Self::Lt | Self::Le | Self::Min | Self::Max | Self::Mod)
    }

    /// Whether operands and result are truth values.
    pub fn is_logical(self) -> bool {
        matches!(self, Self::And | Self::Or)
    }
}

macro_rules! math_fns {
    ($($variant:ident $name:literal $arity:literal),* $(,)?) => {
        /// A function of the C99 mathematics library, or a Bessel function of POSIX; or what makes a record.
        ///
        /// The first argument of the Bessel functions is the order, a whole number. The last five
        /// functions make complex numbers or take them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[allow(missing_docs)] // each variant is the function of that name
        pub enum MathFn {
            $($variant,)*
            /// The record of its arguments.
            Record(RecordType),
        }

        impl MathFn {
            /// Every function of numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in texts: the C99 name (of the double-precision function), or `bessel_j`
            /// and `bessel_y`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Record(record) => record.name(),
                }
            }

            /// Number of arguments.
            pub fn arity(self) -> usize {
                match self {
                    $(Self::$variant => $arity,)*
                    Self::Record(record) => record.fields.len(),
                }
            }

            /// The function of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

math_fns! {
    Sin "sin" 1, Cos "cos" 1, Tan "tan" 1, Asin "asin" 1, Acos "acos" 1, Atan "atan" 1, Atan2 "atan2" 2,
    Sinh "sinh" 1, Cosh "cosh" 1, Tanh "tanh" 1, Asinh "asinh" 1, Acosh "acosh" 1, Atanh "atanh" 1,
    Exp "exp" 1, Exp2 "exp2" 1, Expm1 "expm1" 1, Log "log" 1, Log2 "log2" 1, Log10 "log10" 1, Log1p "log1p" 1,
    Pow "pow" 2, Sqrt "sqrt" 1, Cbrt "cbrt" 1, Hypot "hypot" 2, Erf "erf" 1, Erfc "erfc" 1,
    Tgamma "tgamma" 1, Lgamma "lgamma" 1, Fabs "fabs" 1, Floor "floor" 1, Ceil "ceil" 1, Trunc "trunc" 1,
    Round "round" 1, Fmod "fmod" 2, Fmin "fmin" 2, Fmax "fmax" 2, Fma "fma" 3, Copysign "copysign" 2,
    BesselJ "bessel_j" 2, BesselY "bessel_y" 2,
    Complex "complex" 2, RealPart "real" 1, ImagPart "imag" 1, Conj "conj" 1, Abs "abs" 1,
}

impl MathFn {
    /// Whether it makes a complex number of its parts, or takes complex numbers alone. The names of these
    /// functions may be names of variables.
    pub fn is_of_complex(self) -> bool {
        matches!(self, Self::Complex | Self::RealPart | Self::ImagPart | Self::Conj | Self::Abs)
    }

    /// The functions of reals.
    pub fn of_reals() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|f| !f.is_of_complex())
    }

    /// Whether it is defined of reals and of complex numbers.
    pub fn extends(self) -> bool {
        matches!(self, Self::Exp | Self::Log | Self::Sqrt | Self::Pow | Self::Sin | Self::Cos)
    }

    /// The name of the double-precision function in C and CUDA.
    pub fn symbol(self) -> &'static str {
        self.posix_symbol().unwrap_or_else(|| self.name())
    }

    /// The name of a function that POSIX adds to C99; OpenCL has none of them.
    pub fn posix_symbol(self) -> Option<&'static str> {
        if self == Self::BesselJ {
            return Some("jn");
        }
        (self == Self::BesselY).then_some("yn")
    }
}
