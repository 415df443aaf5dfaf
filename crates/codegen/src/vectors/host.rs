//! What the work-items of a group have to be and to do to run as vectors in C, before there are
//! loops over them.

use super::offset::reads;
use crate::ast::{Expr, Name, Op, Place, Stmt};
use kingpost_ir::{ScalarType, UpdateOp};

/// Whether a group of that number of work-items is a vector of 64-bit reals.
pub(crate) fn is_width(extent: i64) -> bool {
    matches!(extent, 2 | 4 | 8)
}

/// Whether running a statement for a work-item that does not exist has no effect but on its own
/// private variables: a private real gets what arithmetic makes of private reals and uniform
/// values. `private` has the type of a private variable, `item` is the index of the work-item.
pub(crate) fn is_harmless(stmt: &Stmt, item: &Name, private: &dyn Fn(&Name) -> Option<ScalarType>) -> bool {
    let real = |name: &Name| private(name) == Some(ScalarType::F64);
    let uniform = |e: &Expr| !reads(e, &|name| name == item || private(name).is_some());
    match stmt {
        Stmt::Comment(_) => true,
        Stmt::Assign { place, op, value, .. } => {
            matches!(op, None | Some(UpdateOp::Add | UpdateOp::Mul))
                && real(&place.name)
                && place.offset.as_ref().is_none_or(|o| uniform(o))
                && is_arithmetic(value, &|place| {
                    place.name != *item
                        && (private(&place.name).is_none() || real(&place.name))
                        && place.offset.as_ref().is_none_or(|o| uniform(o))
                })
        }
        Stmt::Declare(_)
        | Stmt::Atomic(_)
        | Stmt::Intrinsic(_)
        | Stmt::If { .. }
        | Stmt::For(_)
        | Stmt::Iteration(_)
        | Stmt::Barrier(_) => false,
    }
}

/// Whether a value is made by arithmetic from literals and places that are allowed.
fn is_arithmetic(e: &Expr, allowed: &dyn Fn(&Place) -> bool) -> bool {
    match e {
        Expr::Real(..) => true,
        Expr::Load(place) => allowed(place),
        Expr::Neg(a) => is_arithmetic(a, allowed),
        Expr::Binary(Op::Add | Op::Sub | Op::Mul | Op::Div, a, b) => {
            is_arithmetic(a, allowed) && is_arithmetic(b, allowed)
        }
        Expr::Call(f, _, args) if !f.is_external() => args.iter().all(|a| is_arithmetic(a, allowed)),
        Expr::Int(..)
        | Expr::Bool(_)
        | Expr::Hardware { .. }
        | Expr::Not(_)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::IntCall(..)
        | Expr::LanesCall(..)
        | Expr::Half(..)
        | Expr::Complex(..)
        | Expr::Pair(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Vector { .. } => false,
    }
}
