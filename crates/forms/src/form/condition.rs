//! Conditions of conditional expressions.

use super::error::FormError;
use super::expr::{Compared, Comparison, Expr, Kind};
use super::shape::Shape;
use std::ops::{BitAnd, BitOr, Not};

/// A condition: comparisons, joined by `&` and `|`, turned around by `!`.
///
/// ```
/// use kingpost_fem::element::CellShape;
/// use kingpost_forms::form::*;
///
/// let x = coordinate(CellShape::Triangle);
/// let inside = gt(&x[0], 0.25) & !ge(&x[0], 0.75);
/// let chosen = "conditional(x[0] > 0.25, conditional(x[0] >= 0.75, 0, 1), 0)";
/// assert_eq!(conditional(inside, 1.0, 0.0).to_string(), chosen);
/// ```
#[derive(Clone)]
pub struct Condition(Connected);

#[derive(Clone)]
enum Connected {
    One(Compared),
    Both(Box<[Condition; 2]>),
    Either(Box<[Condition; 2]>),
    Opposite(Box<Condition>),
}

impl BitAnd for Condition {
    type Output = Self;

    /// Both.
    fn bitand(self, other: Self) -> Self {
        Self(Connected::Both(Box::new([self, other])))
    }
}

impl BitOr for Condition {
    type Output = Self;

    /// At least one of them.
    fn bitor(self, other: Self) -> Self {
        Self(Connected::Either(Box::new([self, other])))
    }
}

impl Not for Condition {
    type Output = Self;

    /// The opposite, also of comparisons with what is no number.
    fn not(self) -> Self {
        Self(Connected::Opposite(Box::new(self)))
    }
}

fn compare(comparison: Comparison, left: impl Into<Expr>, right: impl Into<Expr>) -> Condition {
    Condition(Connected::One(Compared { comparison, left: left.into(), right: right.into() }))
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
    match condition.0 {
        Connected::One(compared) => choice(compared, then, otherwise),
        Connected::Both(both) => {
            let [first, second] = *both;
            let inner = conditional(second, then, &otherwise);
            conditional(first, inner, otherwise)
        }
        Connected::Either(either) => {
            let [first, second] = *either;
            let inner = conditional(second, &then, otherwise);
            conditional(first, then, inner)
        }
        Connected::Opposite(condition) => conditional(*condition, otherwise, then),
    }
}

fn choice(condition: Compared, then: Expr, otherwise: Expr) -> Expr {
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
