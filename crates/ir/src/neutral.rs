//! What operators start from.

use crate::constant::Real;
use crate::expr::{Expr, UpdateOp};
use crate::types::{Class, ScalarType};

impl UpdateOp {
    /// The value of a reduction of reals over nothing.
    pub const fn real_of_nothing(self) -> f64 {
        match self {
            Self::Add => 0.0,
            Self::Mul => 1.0,
            Self::Min => f64::INFINITY,
            Self::Max => f64::NEG_INFINITY,
        }
    }

    /// The value of a reduction of integers of a type over nothing, 64 bits of a type of none.
    pub fn integer_of_nothing(self, ty: ScalarType) -> i64 {
        let (smallest, largest) = ty.ends().unwrap_or((i64::MIN.into(), i64::MAX.into()));
        match self {
            Self::Add => 0,
            Self::Mul => 1,
            Self::Min => largest as i64,
            Self::Max => smallest as i64,
        }
    }
}

/// The value that changes no other one when an operator joins them, as partial values start that
/// are joined to what was there before. Of a minimum or maximum of reals that is nan, the one value
/// that both ignore: an infinity would replace a nan.
pub fn neutral(op: UpdateOp, ty: ScalarType) -> Expr {
    match op {
        UpdateOp::Min | UpdateOp::Max if ty.is_real() => Expr::from(f64::NAN),
        UpdateOp::Add | UpdateOp::Mul | UpdateOp::Min | UpdateOp::Max => of_nothing(op, ty),
    }
}

/// The value of a reduction over nothing, from which its meaning starts.
pub fn of_nothing(op: UpdateOp, ty: ScalarType) -> Expr {
    match ty.class() {
        Class::Real => Expr::from(op.real_of_nothing()),
        Class::Exact => Expr::from(op.integer_of_nothing(ty)),
    }
}

/// Whether a value is neutral, whatever is written for it.
pub fn is_neutral(value: &Expr, op: UpdateOp, ty: ScalarType) -> bool {
    is_number(value, &neutral(op, ty))
}

/// Whether a value is that of a reduction over nothing.
pub fn is_of_nothing(value: &Expr, op: UpdateOp, ty: ScalarType) -> bool {
    is_number(value, &of_nothing(op, ty))
}

fn is_number(value: &Expr, wanted: &Expr) -> bool {
    match (value, wanted) {
        (Expr::Int(a), Expr::Int(b)) => a == b,
        (Expr::Int(a), Expr::Real(Real(b))) => *a as f64 == *b,
        (Expr::Real(Real(a)), Expr::Real(Real(b))) => a == b || (a.is_nan() && b.is_nan()),
        _ => false,
    }
}
