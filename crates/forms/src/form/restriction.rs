//! Sides of interior facets: values of functions in the two cells, their means and jumps.

use super::expr::{Expr, Kind};
use super::functions::dot;
use super::shape::Shape;
use crate::side::Side;

fn restricted(side: Side, a: &Expr) -> Expr {
    Expr::build(&[a], Ok(a.shape()), Kind::Restricted(side, a.clone()))
}

/// The values in the first cell of an interior facet, UFL's `a('+')`.
///
/// Which of the two cells is the first is the mesh's choice. Forms that do not depend on it are
/// those of means, and of products of two jumps.
///
/// # Errors
/// The form carries [`FormError::Restriction`] where the integral is not over [`dS`](super::dS), or
/// `a` is restricted already.
pub fn plus(a: impl Into<Expr>) -> Expr {
    restricted(Side::Plus, &a.into())
}

/// The values in the second cell of an interior facet, UFL's `a('-')`.
///
/// # Errors
/// As [`plus`].
pub fn minus(a: impl Into<Expr>) -> Expr {
    restricted(Side::Minus, &a.into())
}

/// The mean of both sides, `(a⁺ + a⁻)/2`.
///
/// # Errors
/// As [`plus`].
pub fn avg(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    0.5 * (plus(&a) + minus(&a))
}

/// The difference of both sides, `a⁺ - a⁻`.
///
/// # Errors
/// As [`plus`].
pub fn jump(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    plus(&a) - minus(&a)
}

/// The difference of both sides along the normal: `a⁺ n⁺ + a⁻ n⁻` of a scalar, a vector, and
/// `a⁺·n⁺ + a⁻·n⁻` of a vector or matrix. It does not depend on which cell is the first.
///
/// # Errors
/// As [`plus`]; extents that differ.
///
/// # Source
/// Arnold et al. 2002, §3.1.
pub fn jump_along(a: impl Into<Expr>, normal: impl Into<Expr>) -> Expr {
    let (a, normal) = (a.into(), normal.into());
    let side = |of: fn(Expr) -> Expr| match a.shape() {
        Shape::Scalar => of(a.clone()) * of(normal.clone()),
        Shape::Vector(_) | Shape::Matrix(..) => dot(of(a.clone()), of(normal.clone())),
    };
    side(plus) + side(minus)
}
