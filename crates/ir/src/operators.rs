//! Operators of expressions.

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
