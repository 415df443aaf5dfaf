//! Accesses to arrays, with the loops and conditions under which they happen.

use crate::domain::Domain;
use crate::expr::{Access, BinaryOp, Expr, UnaryOp};
use crate::ids::{InameId, InsnId};
use crate::polyhedral::{Polyhedral, affine_condition};

/// An access to an array.
#[derive(Clone, Debug)]
pub(super) struct Site<'k> {
    pub(super) insn: InsnId,
    pub(super) access: &'k Access,
    /// Loops around it, those of reductions last.
    pub(super) loops: Vec<InameId>,
    /// What holds where it happens.
    pub(super) conditions: Vec<Domain>,
    /// Whether the conditions are all there are.
    pub(super) exact: bool,
}

/// The accesses to arrays in textual order; scalars have no index that could be wrong.
pub(super) fn sites<'k>(poly: &Polyhedral<'k>) -> Vec<Site<'k>> {
    let mut found = Vec::new();
    for (id, loops) in poly.kernel.schedule() {
        let insn = &poly.kernel.insns[id];
        let mut walk = Walk { insn: id, loops, conditions: Vec::new(), found: &mut found };
        walk.expression(insn.predicate.as_ref());
        walk.under(insn.predicate.as_ref().map(|p| condition(p, true)), |walk| {
            walk.access(&insn.lhs);
            walk.expression(Some(&insn.rhs));
        });
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
    fn under(&mut self, condition: Option<Option<Domain>>, inside: impl FnOnce(&mut Self)) {
        let depth = self.conditions.len();
        self.conditions.extend(condition);
        inside(self);
        self.conditions.truncate(depth);
    }

    fn access(&mut self, access: &'k Access) {
        access.index.iter().for_each(|e| self.expression(Some(e)));
        if access.index.is_empty() {
            return;
        }
        self.found.push(Site {
            insn: self.insn,
            access,
            loops: self.loops.clone(),
            conditions: self.conditions.iter().flatten().cloned().collect(),
            exact: self.conditions.iter().all(Option::is_some),
        });
    }

    fn expression(&mut self, e: Option<&'k Expr>) {
        match e {
            None => {}
            Some(Expr::Load(access)) => self.access(access),
            Some(Expr::Select(c, a, b)) => {
                self.expression(Some(c));
                self.under(Some(condition(c, true)), |walk| walk.expression(Some(a)));
                self.under(Some(condition(c, false)), |walk| walk.expression(Some(b)));
            }
            // the second operand is not evaluated where the first one decides
            Some(Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b)) => {
                self.expression(Some(a));
                let reached = condition(a, *op == BinaryOp::And);
                self.under(Some(reached), |walk| walk.expression(Some(b)));
            }
            Some(Expr::Reduce(r)) => {
                let depth = self.loops.len();
                self.loops.extend(&r.inames);
                self.expression(Some(&r.body));
                self.loops.truncate(depth);
            }
            Some(other) => other.operands().into_iter().for_each(|e| self.expression(Some(e))),
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
        _ => affine_condition(&Expr::Unary(UnaryOp::Not, Box::new(e.clone()))),
    }
}

fn union(a: &Domain, b: &Domain) -> Domain {
    Domain::union(a.disjuncts().iter().chain(b.disjuncts()).cloned())
}
