//! Extents that are no affine expressions of parameters: products become parameters that are computed,
//! `?` is a parameter that an array says, and `extent(x, 0)` is that of an axis.

use super::cursor::Cursor;
use super::error::{Fail, fail, fail_help};
use super::lex::Kind;
use super::names::plain;
use super::parse::Parser;
use crate::affine::Affine;
use crate::defined::{is_definition, params_of};
use crate::expr::{BinaryOp, Expr, UnaryOp};
use crate::ids::VarId;
use crate::kernel::{AddressSpace, Assumption, VarKind, Variable};
use crate::types::ScalarType;

type Result<T> = std::result::Result<T, Fail>;

impl<'s> Parser<'s> {
    /// Reads the extents of a variable up to `]`.
    pub(super) fn shape(&mut self, c: &mut Cursor<'_, 's>, keyword: &str, name: &str) -> Result<Vec<Affine>> {
        let mut shape = Vec::new();
        while !c.take_symbol("]") {
            let at = c.span();
            if !c.take_symbol("?") {
                shape.push(self.affine(c)?);
            } else if keyword == "arg" && self.made.defines {
                let stem = format!("{}_extent_{}", plain(name), shape.len());
                shape.push(Affine::var(self.parameter(&stem)));
            } else {
                let message = format!("the extent of `{name}` is unknown, and no caller gives that array");
                return Err(fail_help(
                    at,
                    message,
                    "only arrays that a kernel is called with have an extent `?`",
                ));
            }
            if !c.is_symbol("]") {
                c.expect_symbol(",", "or `]`")?;
            }
        }
        Ok(shape)
    }

    /// Reads what follows `extent(`: an array and the number of an axis.
    pub(super) fn extent(&self, c: &mut Cursor<'_, 's>) -> Result<Expr> {
        let (name, span) = c.expect_word("the name of an array")?;
        let var = self.variable(name, span)?;
        c.expect_symbol(",", "and the number of an axis")?;
        let Some(Kind::Int(digits)) = c.peek() else { return Err(c.expected("the number of an axis")) };
        let axis: Option<usize> = digits.parse().ok();
        let at = c.span();
        c.advance();
        c.expect_symbol(")", "after the number of the axis")?;
        let shape = &self.kernel.vars[var].shape;
        match axis.and_then(|axis| shape.get(axis)) {
            Some(extent) => Ok(Expr::from_affine(extent)),
            None => {
                let message = format!("`{name}` has {} axes above, and none of that number", shape.len());
                Err(fail_help(at, message, "the first axis is 0; declare the array above its extent"))
            }
        }
    }

    /// The expression of a bound or an extent with parameters instead of what is no affine expression of
    /// parameters.
    pub(super) fn with_products(&mut self, e: &Expr) -> Expr {
        if !self.made.defines || self.to_affine(e).is_ok() {
            return e.clone();
        }
        if let Expr::Unary(UnaryOp::Neg, a) = e {
            return -self.with_products(a);
        }
        if let Expr::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) = e {
            let a = self.with_products(a);
            return Expr::binary(*op, a, self.with_products(b));
        }
        if let Some((factor, rest)) = leading_factor(e) {
            return Expr::binary(BinaryOp::Mul, factor, self.with_products(&rest));
        }
        if self.is_of_parameters(e) { Expr::scalar(self.defined(e)) } else { e.clone() }
    }

    fn is_of_parameters(&self, e: &Expr) -> bool {
        params_of(e).iter().all(|v| self.kernel.vars[*v].kind == VarKind::Param)
            && e.any(&mut is_not_affine)
            && is_definition(e)
    }

    /// The parameter that is computed as this.
    fn defined(&mut self, value: &Expr) -> VarId {
        if let Some((param, _)) = self.kernel.definitions().find(|(_, known)| *known == value) {
            return param;
        }
        let text = self.kernel.show_expr(value).to_string();
        let words =
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let stem = words.collect::<Vec<_>>().join("_");
        let named = stem.starts_with(|c: char| !c.is_ascii_digit());
        let param = self.parameter(&if named { stem } else { format!("size_{stem}") });
        self.kernel.assumptions.push(Assumption::Defined(param, value.clone()));
        param
    }

    /// Declares a parameter that the text does not name.
    fn parameter(&mut self, stem: &str) -> VarId {
        let name = self.unnamed.fresh(stem);
        self.kernel.vars.push(Variable::new(name, ScalarType::I64, VarKind::Param, [], AddressSpace::Private))
    }

    /// Reads what a parameter is computed as, if it is not given.
    pub(super) fn definition(&mut self, c: &mut Cursor<'_, 's>, param: VarId) -> Result<()> {
        let at = c.span();
        if !c.take_symbol("=") {
            return Ok(());
        }
        if !self.made.defines {
            return Err(fail(at, "the parameters of a callee are those of its calls, and not computed"));
        }
        let value = self.expression(c)?;
        self.kernel.assumptions.push(Assumption::Defined(param, value));
        Ok(())
    }
}

/// The literal that a product begins with, and the rest of it.
fn leading_factor(e: &Expr) -> Option<(i64, Expr)> {
    let Expr::Binary(BinaryOp::Mul, a, b) = e else { return None };
    if let Expr::Int(factor) = **a {
        return Some((factor, (**b).clone()));
    }
    leading_factor(a).map(|(factor, rest)| (factor, rest * (**b).clone()))
}

/// Whether an operation of parameters is affine for no parameters.
fn is_not_affine(e: &Expr) -> bool {
    let has_terms = |e: &Expr| !params_of(e).is_empty();
    match e {
        Expr::Binary(BinaryOp::Mul, a, b) => has_terms(a) && has_terms(b),
        Expr::Binary(BinaryOp::FloorDiv | BinaryOp::Mod, _, divisor) => has_terms(divisor),
        Expr::Binary(op, ..) => matches!(op, BinaryOp::Min | BinaryOp::Max),
        Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Load(_)
        | Expr::Unary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => false,
    }
}
