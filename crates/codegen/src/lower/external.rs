//! Calls of declared functions.

use super::Lower;
use crate::ast::Expr;
use crate::error::CodegenError;
use crate::interval::Interval;
use crate::value::Value;
use kingpost_ir::{ExternalFn, MathFn, TypedExpr};

impl Lower<'_> {
    /// A call of a function with code for the target; arguments are converted to the types of parameters.
    pub(super) fn external_call(
        &mut self,
        function: ExternalFn,
        args: &[TypedExpr<'_>],
    ) -> Result<Value, CodegenError> {
        if function.code_for(self.target.name).is_none() {
            return Err(CodegenError::NoExternal { function: function.name(), target: self.target.target });
        }
        let mut code = Vec::with_capacity(args.len());
        for (param, arg) in function.params.iter().zip(args) {
            let value = self.cast(param.ty, arg)?;
            code.push(match param.ty.is_real() {
                true => value.into_real(&self.env, param.ty),
                false => match value.as_integer(&self.env) {
                    (e, ty, _) if ty == param.ty => e,
                    (e, ..) => Expr::Cast(param.ty, Box::new(e)),
                },
            });
        }
        let ty = function.result;
        let code = Expr::Call(MathFn::External(function), ty, code);
        Ok(if ty.is_real() { Value::Real(code, ty) } else { Value::Int(code, ty, Interval::of(ty)) })
    }
}
