//! Bounds that mention elements of arrays: scalars that are read before the statement.

use super::error::{Fail, fail_help};
use super::lex::Span;
use super::parse::Parser;
use crate::expr::{Access, Expr};
use crate::ids::{InameId, InsnId, VarId};
use crate::kernel::{AddressSpace, Insn, VarKind, Variable, WriteOp};
use crate::types::ScalarType;
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, Fail>;

impl Parser<'_> {
    /// A bound of a loop with scalars instead of the elements of arrays in it. They are read before the
    /// statement that is read, where it may have such reads.
    pub(super) fn with_reads(&mut self, bound: Expr, iname: InameId, end: &str, span: Span) -> Result<Expr> {
        let Some(outside) = self.made.outside else { return Ok(bound) };
        Ok(match bound {
            Expr::Load(access) if !access.index.is_empty() => {
                let (name, ty) = (&self.kernel.vars[access.var].name, self.kernel.vars[access.var].ty);
                if !ty.is_exact() {
                    let message = format!("the bound reads `{name}[...]` of type {ty}, needed an integer");
                    return Err(fail_help(span, message, "convert it into an integer scalar before"));
                }
                let mut inner = self.names.scope[outside..].iter();
                if let Some(inner) = inner.find(|i| access.index.iter().any(|e| e.mentions(**i))) {
                    let inner = &self.kernel.inames[*inner].name;
                    let message = format!("the bound reads `{name}[...]`, which depends on `{inner}`");
                    let help = "only loops around the statement may stand there; write an inner `for`";
                    return Err(fail_help(span, message, help));
                }
                let stem = format!("{}_{end}", self.kernel.inames[iname].name);
                let scalar = self.scalar(&stem, ty.loaded());
                let read = self.store(scalar, Expr::Load(access), None, span);
                self.made.guards.unconditional.insert(read);
                self.made.reads.push(read);
                Expr::scalar(scalar)
            }
            Expr::Unary(op, a) => Expr::Unary(op, Box::new(self.with_reads(*a, iname, end, span)?)),
            Expr::Binary(op, a, b) => {
                let a = self.with_reads(*a, iname, end, span)?;
                Expr::binary(op, a, self.with_reads(*b, iname, end, span)?)
            }
            Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => bound,
        })
    }

    /// Reads what may not have elements of arrays in its bounds.
    pub(super) fn without_reads<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let outside = self.made.outside.take();
        let result = read(self);
        self.made.outside = outside;
        result
    }

    /// Declares a scalar that the text does not mention.
    pub(super) fn scalar(&mut self, stem: &str, ty: ScalarType) -> VarId {
        let name = self.unnamed.fresh(stem);
        self.kernel.vars.push(Variable::new(name, ty, VarKind::Temporary, [], AddressSpace::Private))
    }

    /// An instruction that stores a value in a scalar; `span` is what it comes from.
    pub(super) fn store(&mut self, scalar: VarId, rhs: Expr, predicate: Option<Expr>, span: Span) -> InsnId {
        let name = self.unnamed.name();
        self.statement_of(name.clone(), span);
        let (lhs, tags) = (Access::scalar(scalar), BTreeSet::new());
        self.kernel.insns.push(Insn { name, lhs, op: WriteOp::Assign, rhs, predicate, tags, callee: None })
    }
}
