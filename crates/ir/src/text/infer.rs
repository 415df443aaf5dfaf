//! Types that declarations leave out.

use super::cursor::Cursor;
use super::error::{Fail, fail, fail_help};
use super::names::plain;
use super::parse::Parser;
use crate::expr::Expr;
use crate::guards::any_with_rules;
use crate::ids::VarId;
use crate::types::ScalarType;
use crate::typing::ExprType;

impl<'s> Parser<'s> {
    /// The type of a variable whose declaration has none.
    pub(super) fn type_left_out(
        &mut self,
        c: &mut Cursor<'_, 's>,
        keyword: &str,
        id: VarId,
    ) -> Result<ScalarType, Fail> {
        if keyword == "temp" {
            self.made.untyped.push(id);
            return Ok(ScalarType::F64); // until its values are known
        }
        let name = plain(&self.kernel.vars[id].name);
        match (keyword, &self.made.types) {
            ("param", Some(types)) => Ok(types.get(name).copied().unwrap_or(ScalarType::I32)),
            ("arg", Some(types)) => types.get(name).copied().ok_or_else(|| {
                let help = format!("write `{name}: f64`, or give a type for it");
                fail_help(c.last_span(), format!("argument `{name}` has no type"), help)
            }),
            _ => Err(c.expected("`:` and a type")),
        }
    }

    /// Gives temporaries without a type that of what is written to them.
    pub(super) fn infer_types(&mut self) {
        let is_asked = !self.made.untyped.is_empty() || !self.made.conditions.is_empty();
        if !is_asked || self.kernel.verify_rules().is_err() {
            return; // the verifier reports what is wrong with rules
        }
        self.check_written_once();
        let mut open = std::mem::take(&mut self.made.untyped);
        loop {
            let known = open.iter().position(|var| self.infer_type(*var, &open, true));
            // where variables wait for each other, some values are enough
            let next = known.or_else(|| open.iter().position(|var| self.infer_type(*var, &open, false)));
            let Some(k) = next else { break };
            open.remove(k);
        }
        if !self.errors.is_empty() {
            return; // which may be why
        }
        for (condition, span) in std::mem::take(&mut self.made.conditions) {
            if let Ok(found) = self.kernel.type_of(&condition, &[])
                && found != ExprType::Bool
            {
                let message = format!("the condition is {found}, needed a truth value such as `i < n`");
                self.note::<()>(Err(fail(span, message)));
            }
        }
        for var in open {
            let name = &self.kernel.vars[var].name;
            let help = format!("write its type, as in `temp {name}: f64`");
            let message = format!("no value tells the type of `{name}`");
            let error = fail_help(self.place_of_name(name), message, help);
            self.note::<()>(Err(error));
        }
    }

    /// Gives a variable the type of its values, if they are known: of all, or of those that do not load
    /// variables whose types are still open.
    fn infer_type(&mut self, var: VarId, open: &[VarId], all: bool) -> bool {
        let mut joined: Option<ExprType> = None;
        for insn in self.kernel.insns.values().filter(|insn| insn.lhs.var == var) {
            let is_open = &mut |e: &Expr| e.as_load().is_some_and(|a| open.contains(&a.var));
            let waits = any_with_rules(&self.kernel, &insn.rhs, is_open);
            if waits && all {
                return false;
            }
            if waits {
                continue;
            }
            let Ok(found) = self.kernel.type_of(&insn.rhs, &[]) else { return true }; // which the verifier refuses
            joined = Some(match joined {
                None => found,
                Some(before) if before == found => found,
                Some(before) => match before.join(found) {
                    Some(joined) => joined,
                    None => before, // the verifier refuses the store
                },
            });
        }
        let Some(ty) = joined.and_then(|ty| ty.stored().or(ty.scalar())) else { return false };
        self.kernel.vars[var].ty = ty;
        true
    }

    fn check_written_once(&mut self) {
        for var in self.made.once.clone() {
            let second = self.kernel.insns.values().filter(|insn| insn.lhs.var == var).nth(1);
            if let Some(second) = second {
                let name = &self.kernel.vars[var].name;
                let message = format!("`{name}` is written again; `let` names one value");
                let mut error = fail(self.place_of_name(&second.name), message);
                error.help = Some(format!("declare it with `temp {name}`"));
                self.note::<()>(Err(error));
            }
        }
    }
}
