//! Operators of updates and reductions.

use crate::types::{Class, ScalarType};
use crate::user_operator::NamedOperator;
use serde::{Deserialize, Serialize};

/// An operator of updates and reductions; all but declared ones are associative and commutative.
///
/// Minimum and maximum of reals, here as in [`BinaryOp`], are `minNum` and `maxNum` of IEEE
/// 754-2008 (C's `fmin` and `fmax`): an operand that is nan is ignored, so nan is their neutral
/// element, and infinity is not, as it would replace a nan. A reduction starts from infinity all
/// the same: that is the minimum of nothing, and of nothing but nans. Which zero is the smaller
/// one, and the bits of a nan, are left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UpdateOp {
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Disjunction of truth values.
    Or,
    /// Conjunction of truth values.
    And,
    /// One of records that the kernel declares.
    Named(NamedOperator),
}

impl UpdateOp {
    /// Every operator that is not declared.
    pub const ALL: [Self; 6] = [Self::Add, Self::Mul, Self::Min, Self::Max, Self::Or, Self::And];

    /// Those that join numbers.
    pub const OF_NUMBERS: [Self; 4] = [Self::Add, Self::Mul, Self::Min, Self::Max];

    /// Whether it joins truth values, else numbers.
    pub fn is_logical(self) -> bool {
        match self {
            Self::Or | Self::And => true,
            Self::Add | Self::Mul | Self::Min | Self::Max | Self::Named(_) => false,
        }
    }

    /// The declared operator, if it is one.
    pub fn named(self) -> Option<NamedOperator> {
        if let Self::Named(operator) = self { Some(operator) } else { None }
    }

    /// Whether values may be joined in any order and grouping.
    pub fn commutes(self) -> bool {
        match self {
            Self::Add | Self::Mul | Self::Min | Self::Max | Self::Or | Self::And => true,
            Self::Named(operator) => operator.commutes(),
        }
    }

    /// What it joins, if those are not values of a type.
    pub(crate) fn refused(self, ty: ScalarType) -> Option<&'static str> {
        if let Self::Named(operator) = self {
            return (ty != ScalarType::Record(operator.record)).then_some(operator.record.name());
        }
        match (self.is_logical(), ty.class()) {
            (true, Class::Exact | Class::Word | Class::Real | Class::Complex | Class::Record) => {
                Some("truth values")
            }
            (false, Class::Truth | Class::Record) => Some("numbers"),
            (_, Class::Complex) if matches!(self, Self::Min | Self::Max) => Some("numbers with an order"),
            (true, Class::Truth) | (false, Class::Exact | Class::Word | Class::Real | Class::Complex) => None,
        }
    }

    /// Keyword of reductions in the text format (`sum(...)`).
    pub fn reduction_name(self) -> &'static str {
        match self {
            Self::Add => "sum",
            Self::Mul => "product",
            Self::Min => "minimum",
            Self::Max => "maximum",
            Self::Or => "any",
            Self::And => "all",
            Self::Named(operator) => operator.name(),
        }
    }

    /// Operator of updates in the text format (`y[i] += ...`).
    pub fn update_symbol(self) -> &'static str {
        match self {
            Self::Add => "+=",
            Self::Mul => "*=",
            Self::Min => "min=",
            Self::Max => "max=",
            Self::Or => "or=",
            Self::And => "and=",
            Self::Named(operator) => operator.symbol(),
        }
    }
}
