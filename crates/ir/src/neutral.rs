//! What operators start from, and how they join values.

use crate::constant::Real;
use crate::expr::{BinaryOp, Expr, UnaryOp, UpdateOp};
use crate::types::{Class, ScalarType};

impl UpdateOp {
    /// Two values joined, both of which are evaluated: `or` and `and` would leave the second one out.
    pub fn joined(self, a: Expr, b: Expr) -> Expr {
        let count = |a, b| {
            let number = |e| Expr::Cast(ScalarType::I32, Box::new(e));
            number(a) + number(b)
        };
        match self {
            Self::Add => Expr::binary(BinaryOp::Add, a, b),
            Self::Mul => Expr::binary(BinaryOp::Mul, a, b),
            Self::Min => Expr::binary(BinaryOp::Min, a, b),
            Self::Max => Expr::binary(BinaryOp::Max, a, b),
            Self::Or => Expr::binary(BinaryOp::Ne, count(a, b), 0),
            Self::And => Expr::binary(BinaryOp::Eq, count(a, b), 2),
            Self::Named(operator) => operator.apply(&a, &b),
        }
    }

    /// The value of a reduction of reals over nothing, and of sums and products of complex numbers.
    pub const fn real_of_nothing(self) -> f64 {
        match self {
            Self::Add => 0.0,
            Self::Mul => 1.0,
            Self::Min => f64::INFINITY,
            Self::Max => f64::NEG_INFINITY,
            // of truth values alone, or of records
            Self::Or | Self::And | Self::Named(_) => f64::NAN,
        }
    }

    /// The value of a reduction of integers or truth values of a type over nothing, as the bits of 64.
    pub fn integer_of_nothing(self, ty: ScalarType) -> i64 {
        let (smallest, largest) = ty.ends().unwrap_or((i64::MIN.into(), i64::MAX.into()));
        match self {
            Self::Add | Self::Or | Self::Named(_) => 0,
            Self::Mul | Self::And => 1,
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
        UpdateOp::Add
        | UpdateOp::Mul
        | UpdateOp::Min
        | UpdateOp::Max
        | UpdateOp::Or
        | UpdateOp::And
        | UpdateOp::Named(_) => of_nothing(op, ty),
    }
}

/// The value of a reduction over nothing, from which its meaning starts.
pub fn of_nothing(op: UpdateOp, ty: ScalarType) -> Expr {
    if let UpdateOp::Named(operator) = op {
        return operator.identity();
    }
    match ty.class() {
        Class::Real | Class::Complex => Expr::from(op.real_of_nothing()),
        Class::Exact => Expr::from(op.integer_of_nothing(ty)),
        // a literal has a sign, so that it may not reach the end of 64 bits
        Class::Word => match op.integer_of_nothing(ty) {
            literal @ 0.. => Expr::from(literal),
            _ => Expr::Unary(UnaryOp::BitNot, Box::new(Expr::Cast(ty, Box::new(Expr::Int(0))))),
        },
        Class::Truth => Expr::truth(op.integer_of_nothing(ty) != 0),
        // only declared operators join records
        Class::Record => Expr::Int(0),
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
        _ => value == wanted,
    }
}
