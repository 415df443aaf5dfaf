//! Conditions of conditional expressions.

use super::error::FormError;
use super::expr::{Expr, Kind};
use super::shape::Shape;

/// A comparison of two scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comparison {
    /// Less.
    Less,
    /// Less or equal.
    LessEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterEqual,
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
}

impl Comparison {
    /// The symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }

    /// Whether it holds between two numbers.
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterEqual => left >= right,
            Self::Equal => left == right,
            Self::NotEqual => left != right,
        }
    }
}

/// A condition: one comparison.
#[derive(Clone)]
pub struct Condition {
    /// How the two are compared.
    pub comparison: Comparison,
    /// Left-hand side, a scalar.
    pub left: Expr,
    /// Right-hand side, a scalar.
    pub right: Expr,
}

fn compare(comparison: Comparison, left: impl Into<Expr>, right: impl Into<Expr>) -> Condition {
    Condition { comparison, left: left.into(), right: right.into() }
}

/// `left < right`.
pub fn lt(left: impl Into<Expr>, right: impl Into<Expr>) -> Condition {
    compare(Comparison::Less, left, right)
}

/// `left <= right`.
pub fn le(left: impl Into<Expr>, right: impl Into<Expr>) -> Condition {
    compare(Comparison::LessEqual, left, right)
}

/// `left > right`.
pub fn gt(left: impl Into<Expr>, right: impl Into<Expr>) -> Condition {
    compare(Comparison::Greater, left, right)
}

/// `left >= right`.
pub fn ge(left: impl Into<Expr>, right: impl Into<Expr>) -> Condition {
    compare(Comparison::GreaterEqual, left, right)
}

/// `left == right`.
pub fn eq(left: impl Into<Expr>, right: impl Into<Expr>) -> Condition {
    compare(Comparison::Equal, left, right)
}

/// `left != right`.
pub fn ne(left: impl Into<Expr>, right: impl Into<Expr>) -> Condition {
    compare(Comparison::NotEqual, left, right)
}

/// `then` where the condition holds, else `otherwise`; both of one shape.
///
/// # Errors
/// Compared expressions that are not scalars, or branches of different shapes.
pub fn conditional(condition: Condition, then: impl Into<Expr>, otherwise: impl Into<Expr>) -> Expr {
    let (then, otherwise) = (then.into(), otherwise.into());
    let (left, right) = (condition.left.clone(), condition.right.clone());
    let shape = if (left.shape(), right.shape()) != (Shape::Scalar, Shape::Scalar) {
        Err(FormError::Shapes {
            operation: condition.comparison.symbol(),
            left: left.shape(),
            right: right.shape(),
            needed: "two scalars",
        })
    } else if then.shape() != otherwise.shape() {
        Err(FormError::Shapes {
            operation: "conditional",
            left: then.shape(),
            right: otherwise.shape(),
            needed: "branches of one shape",
        })
    } else {
        Ok(then.shape())
    };
    let kind = Kind::Conditional(Box::new(condition), then.clone(), otherwise.clone());
    Expr::build(&[&left, &right, &then, &otherwise], shape, kind)
}
