//! Complex expressions.

use super::Lower;
use crate::ast::Expr;
use crate::complex::ComplexOp;
use crate::error::CodegenError;
use crate::value::Value;
use kingpost_ir::{BinaryOp, ExprType, MathFn, ScalarType, TypedExpr};

/// The type in which a complex number is computed, in a context of a real type.
pub(super) fn complex_type(ty: ExprType, weak: ScalarType) -> ScalarType {
    match ty {
        ExprType::Scalar(ty) => ty.complex(),
        ExprType::Bool | ExprType::Literal | ExprType::Index | ExprType::WeakReal | ExprType::WeakComplex => {
            weak.complex()
        }
    }
}

impl Lower<'_> {
    /// A function that makes a complex number or takes one; none of others.
    pub(super) fn complex_call(
        &mut self,
        f: MathFn,
        e: &TypedExpr<'_>,
        weak: ScalarType,
    ) -> Result<Option<Value>, CodegenError> {
        let takes = e.operands.first().is_some_and(|a| a.ty.is_complex());
        let Some(op) = ComplexOp::of(f).filter(|_| takes || e.ty.is_complex()) else { return Ok(None) };
        let ty = complex_type(e.ty, weak);
        let mut args = Vec::with_capacity(e.operands.len());
        for a in &e.operands {
            let value = self.value(a, ty.part())?;
            args.push(match op == ComplexOp::Make {
                true => value.into_real(&self.env, ty.part()),
                false => value.into_complex(&self.env, ty),
            });
        }
        let code = Expr::Complex(op, ty, args);
        Ok(Some(if e.ty.is_complex() { Value::Complex(code, ty) } else { Value::Real(code, ty.part()) }))
    }

    /// An operation of which an operand is complex.
    pub(super) fn complex_binary(
        &mut self,
        op: BinaryOp,
        (a, b): (&TypedExpr<'_>, &TypedExpr<'_>),
        ty: ScalarType,
    ) -> Result<Value, CodegenError> {
        let (x, y) = (self.value(a, ty.part())?, self.value(b, ty.part())?);
        let complex = |value: Value| value.into_complex(&self.env, ty);
        let real = |value: Value| value.into_real(&self.env, ty.part());
        let of = |op, args: [Expr; 2]| Ok(Value::Complex(Expr::Complex(op, ty, args.into()), ty));
        let whole = |op, x, y| of(op, [complex(x), complex(y)]);
        match (op, a.ty.is_complex(), b.ty.is_complex()) {
            (BinaryOp::Eq | BinaryOp::Ne, ..) => {
                let equal = Expr::Complex(ComplexOp::Equal, ty, vec![complex(x), complex(y)]);
                Ok(Value::Bool(if op == BinaryOp::Eq { equal } else { Expr::Not(Box::new(equal)) }))
            }
            (BinaryOp::Add, true, true) => whole(ComplexOp::Add, x, y),
            (BinaryOp::Sub, true, true) => whole(ComplexOp::Sub, x, y),
            (BinaryOp::Mul, true, true) => whole(ComplexOp::Mul, x, y),
            (BinaryOp::Div, _, true) => whole(ComplexOp::Div, x, y),
            (BinaryOp::Add, true, false) => of(ComplexOp::Plus, [complex(x), real(y)]),
            (BinaryOp::Add, false, _) => of(ComplexOp::Plus, [complex(y), real(x)]),
            (BinaryOp::Sub, true, false) => of(ComplexOp::Minus, [complex(x), real(y)]),
            (BinaryOp::Sub, false, _) => of(ComplexOp::From, [real(x), complex(y)]),
            (BinaryOp::Mul, true, false) => of(ComplexOp::Scale, [complex(x), real(y)]),
            (BinaryOp::Mul, false, _) => of(ComplexOp::Scale, [complex(y), real(x)]),
            (BinaryOp::Div, _, false) => of(ComplexOp::Shrink, [complex(x), real(y)]),
            _ => Err(self.internal(format!("`{}` of complex numbers", op.symbol()))),
        }
    }
}
