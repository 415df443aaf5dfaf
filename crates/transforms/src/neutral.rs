//! The value of a reduction over nothing.

use purlin_ir::{Expr, ScalarType, UpdateOp};

/// The value that changes no other one when an operator joins them.
pub(crate) fn neutral(op: UpdateOp, ty: ScalarType) -> Expr {
    let real = |real: f64, int: i64| if ty.is_float() { Expr::from(real) } else { Expr::from(int) };
    let (least, most) =
        if ty == ScalarType::I32 { (i64::from(i32::MIN), i64::from(i32::MAX)) } else { (i64::MIN, i64::MAX) };
    match op {
        UpdateOp::Add => real(0.0, 0),
        UpdateOp::Mul => real(1.0, 1),
        UpdateOp::Min => real(f64::INFINITY, most),
        UpdateOp::Max => real(f64::NEG_INFINITY, least),
    }
}
