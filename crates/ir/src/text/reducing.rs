//! Rules with reductions: each use has loops of its own, so that the kernel has what the rule stands for.

use super::error::{Fail, fail_help};
use super::lex::Span;
use super::parse::Parser;
use crate::affine::{Affine, Atom};
use crate::expr::{Expr, Reduction};
use crate::guards::size;
use crate::ids::{Id, InameId, RuleId};
use crate::kernel::{Iname, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of operations of all that rules with reductions and calls stand for.
const MAX_WRITTEN_OUT: usize = 1_000_000;

impl Parser<'_> {
    /// Notes that a rule whose body has been read holds a reduction, if it does.
    pub(super) fn note_reduction(&mut self, rule: RuleId) {
        if self.kernel.rules[rule].body.any(&mut |e| matches!(e, Expr::Reduce(_))) {
            self.made.reducing.insert(rule);
        }
    }

    /// What a use of a rule with a reduction stands for.
    pub(super) fn written_out(&mut self, rule: RuleId, args: &[Expr], span: Span) -> Result<Expr, Fail> {
        let body = self.kernel.rules[rule].body.clone();
        let mut loops = BTreeMap::new();
        let (mut operations, mut own) = (0_usize, Vec::new());
        body.for_each(&mut |e| {
            let arg = if let Expr::RuleParam(k) = e { args.get(*k as usize) } else { None };
            operations = operations.saturating_add(arg.map_or(1, size));
            if let Expr::Reduce(reduction) = e {
                own.extend(reduction.inames.iter().copied());
            }
        });
        self.count(operations, span)?;
        for iname in own {
            let Iname { name, domain, tag } = self.kernel.inames[iname].clone();
            let name = self.unnamed.fresh(&name);
            loops.insert(iname, self.kernel.inames.push(Iname { name, domain, tag }));
        }
        let renamed = |iname: InameId| loops.get(&iname).copied().unwrap_or(iname);
        for copy in loops.values() {
            let domain = self.kernel.inames[*copy].domain.substitute(&|atom| match atom {
                Atom::Iname(iname) => Some(Affine::iname(renamed(*iname))),
                Atom::Var(_) | Atom::Floor(..) => None,
            });
            self.kernel.inames[*copy].domain = domain;
        }
        Ok(put_in(&body, args, &renamed))
    }

    /// Counts what is written out: a short text may stand for a program that does not fit in memory.
    pub(super) fn count(&mut self, operations: usize, span: Span) -> Result<(), Fail> {
        self.made.written_out = self.made.written_out.saturating_add(operations);
        if self.made.written_out <= MAX_WRITTEN_OUT {
            return Ok(());
        }
        let message = format!("rules and calls stand for more than {MAX_WRITTEN_OUT} operations up to here");
        Err(fail_help(span, message, "store what a rule gives in a temporary, or call a `callee` in a loop"))
    }

    /// Takes rules with reductions out of the kernel, and their own loops.
    pub(super) fn remove_reducing(&mut self) {
        let reducing: BTreeSet<RuleId> = std::mem::take(&mut self.made.reducing);
        if reducing.is_empty() {
            return;
        }
        let kept: Vec<RuleId> = self.kernel.rules.ids().filter(|id| !reducing.contains(id)).collect();
        let place = |id: RuleId| kept.iter().position(|other| *other == id).map_or(id, RuleId::from_index);
        let mut renumber =
            |e: Expr| if let Expr::Rule(id, args) = e { Expr::Rule(place(id), args) } else { e };
        let rules = kept.iter().map(|id| {
            let Rule { name, params, body } = self.kernel.rules[*id].clone();
            Rule { name, params, body: body.map(&mut renumber) }
        });
        self.kernel.rules = rules.collect();
        for (condition, _) in &mut self.made.conditions {
            *condition = condition.map(&mut renumber);
        }
        for insn in self.kernel.insns.values_mut() {
            insn.map_expressions(&mut renumber);
        }
        if self.errors.is_empty() {
            // without loops that nothing in the tree mentions
            self.kernel = std::mem::take(&mut self.kernel).canonical();
        }
    }
}

/// The body of a rule with its arguments and under other names of its loops.
fn put_in(body: &Expr, args: &[Expr], renamed: &dyn Fn(InameId) -> InameId) -> Expr {
    body.map(&mut |e| match e {
        Expr::RuleParam(k) => args[k as usize].clone(),
        Expr::Iname(iname) => Expr::Iname(renamed(iname)),
        Expr::Reduce(Reduction { op, inames, body }) => {
            let inames = inames.into_iter().map(renamed).collect();
            Expr::Reduce(Reduction { op, inames, body })
        }
        other @ (Expr::Int(_)
        | Expr::Real(_)
        | Expr::Load(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Rule(..)) => other,
    })
}
