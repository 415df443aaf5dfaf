//! Accesses to arrays, with the loops and conditions under which they happen.

use crate::polyhedral::{Polyhedral, affine_condition};
use kingpost_ir::domain::Domain;
use kingpost_ir::expr::{Access, BinaryOp, Expr, UnaryOp};
use kingpost_ir::ids::{InameId, InsnId};

/// An access to an array.
#[derive(Clone, Debug)]
pub(super) struct Site<'k> {
    pub(super) insn: InsnId,
    pub(super) access: &'k Access,
    /// Whether it is what the instruction writes.
    pub(super) writes: bool,
    /// Loops around it, those of reductions last.
    pub(super) loops: Vec<InameId>,
    /// What holds where it happens.
    pub(super) conditions: Vec<Domain>,
    /// Whether the conditions are all there are.
    pub(super) exact: bool,
}

/// The accesses to arrays in textual order; scalars have no index that could be wrong.
pub(super) fn sites<'p>(poly: &'p Polyhedral<'_>) -> Vec<Site<'p>> {
    let mut found = Vec::new();
    for (id, loops) in poly.kernel.schedule() {
        let insn = &poly.kernel.insns[id];
        let mut walk = Walk { insn: id, loops, conditions: Vec::new(), found: &mut found };
        if let Some(predicate) = &insn.predicate {
            walk.expression(predicate);
            walk.conditions.push(condition(predicate, true));
        }
        walk.access(&insn.lhs, true);
        walk.expression(&insn.rhs);
    }
    found
}

struct Walk<'f, 'k> {
    insn: InsnId,
    loops: Vec<InameId>,
    /// `None` for a condition that is not affine.
    conditions: Vec<Option<Domain>>,
    found: &'f mut Vec<Site<'k>>,
}

impl<'k> Walk<'_, 'k> {
    /// An expression that is evaluated where a condition holds.
    fn under(&mut self, condition: Option<Domain>, e: &'k Expr) {
        self.conditions.push(condition);
        self.expression(e);
        self.conditions.pop();
    }

    fn access(&mut self, access: &'k Access, writes: bool) {
        access.index.iter().for_each(|e| self.expression(e));
        if access.index.is_empty() {
            return;
        }
        self.found.push(Site {
            insn: self.insn,
            access,
            writes,
            loops: self.loops.clone(),
            conditions: self.conditions.iter().flatten().cloned().collect(),
            exact: self.conditions.iter().all(Option::is_some),
        });
    }

    fn expression(&mut self, e: &'k Expr) {
        match e {
            Expr::Load(access) => self.access(access, false),
            Expr::Select(c, a, b) => {
                self.expression(c);
                self.under(condition(c, true), a);
                self.under(condition(c, false), b);
            }
            // the second operand is not evaluated where the first one decides
            Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                self.expression(a);
                self.under(condition(a, *op == BinaryOp::And), b);
            }
            Expr::Reduce(r) => {
                let depth = self.loops.len();
                self.loops.extend(&r.inames);
                self.expression(&r.body);
                self.loops.truncate(depth);
            }
            other @ (Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Rule(..)
            | Expr::RuleParam(_)) => other.operands().for_each(|e| self.expression(e)),
        }
    }
}

/// Where a condition is true, or false, if it compares quasi-affine integers.
fn condition(e: &Expr, is_true: bool) -> Option<Domain> {
    match e {
        Expr::Unary(UnaryOp::Not, a) => condition(a, !is_true),
        Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
            let (a, b) = (condition(a, is_true)?, condition(b, is_true)?);
            let both = (*op == BinaryOp::And) == is_true;
            Some(if both { a.intersect(&b) } else { union(&a, &b) })
        }
        _ if is_true => affine_condition(e),
        Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Load(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => affine_condition(&Expr::Unary(UnaryOp::Not, Box::new(e.clone()))),
    }
}

fn union(a: &Domain, b: &Domain) -> Domain {
    Domain::union(a.disjuncts().iter().chain(b.disjuncts()).cloned())
}
