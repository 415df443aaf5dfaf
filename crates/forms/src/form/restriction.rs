//! Sides of interior facets: values of functions in the two cells, their means and jumps.

use super::error::FormError;
use super::expr::{Expr, Kind};
use super::functions::dot;
use super::integral::{Integral, Region};
use super::shape::Shape;
use super::walk::operands;
use crate::side::Side;
use std::collections::HashSet;

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

/// Refuses what has two values where one is needed, and a side where there is none.
pub(super) fn check(integral: &Integral) -> Result<(), FormError> {
    let over_two = integral.measure.region() == Region::InteriorFacets;
    let mut seen = HashSet::new();
    // With each node, whether it has a side already: that of an operation around it.
    let mut open = vec![(&integral.integrand, false)];
    while let Some((node, has_side)) = open.pop() {
        if !seen.insert((node.address(), has_side)) {
            continue;
        }
        let refuse = |found, needed| {
            let (expr, measure) = (node.to_string(), integral.measure.to_string());
            Err(FormError::Restriction { expr, found, measure, needed })
        };
        match node.kind() {
            Kind::Restricted(..) if !over_two => {
                return refuse("a side of a facet", "`dS`; over other measures functions have one value");
            }
            Kind::Restricted(..) if has_side => {
                return refuse("a side of what has one already", "one of them");
            }
            Kind::Restricted(_, a) => open.push((a, true)),
            Kind::Coefficient(_) | Kind::Argument(..) | Kind::FacetNormal | Kind::Size(_)
                if over_two && !has_side =>
            {
                return refuse("no side, and a value on each", "`plus`, `minus`, `avg` or `jump` around it");
            }
            // what it is differentiated by stands in `of`, with its side; the direction takes that
            Kind::Gateaux(of, _, direction) => {
                open.push((of, has_side));
                open.push((direction, over_two));
            }
            Kind::Diff(of, _) => open.push((of, has_side)),
            Kind::Literal(_)
            | Kind::Identity(_)
            | Kind::Constant(_)
            | Kind::Coefficient(_)
            | Kind::Argument(..)
            | Kind::Coordinate
            | Kind::FacetNormal
            | Kind::Size(_)
            | Kind::Components(_)
            | Kind::Unary(..)
            | Kind::Binary(..)
            | Kind::Math(..)
            | Kind::Index(..)
            | Kind::Conditional(..)
            | Kind::Variable(..)
            | Kind::Error(_) => open.extend(operands(node).into_iter().map(|o| (o, has_side))),
        }
    }
    Ok(())
}
