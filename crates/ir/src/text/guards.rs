//! Conditions of blocks, as predicates of the instructions inside.

use super::lex::Span;
use super::made::Branches;
use super::parse::Parser;
use crate::affine::{Affine, Atom};
use crate::expr::{BinaryOp, Expr, UnaryOp};
use crate::ids::{InameId, InsnId, VarId};
use crate::kernel::Node;
use crate::types::ScalarType;
use std::collections::{BTreeMap, BTreeSet};

/// A longer condition is stored, and not copied to each instruction.
const MAX_COPIED: usize = 32;

impl Parser<'_> {
    /// The instructions of all branches, each under its conditions. Conditions that the branches may
    /// change are stored before, as are long ones and those with a reduction, whose loops stand in one place.
    pub(super) fn guarded(&mut self, branches: Branches) -> Vec<Node> {
        for (condition, span) in &branches.conditions {
            self.made.conditions.extend(condition.clone().map(|condition| (condition, *span)));
        }
        let stored = self.changes_conditions(&branches);
        let (mut nodes, mut guards) = (Vec::new(), Vec::new());
        let mut earlier: Option<Expr> = None;
        for (condition, span) in branches.conditions {
            let own = match &condition {
                Some(condition) => and(earlier.clone(), condition.clone()),
                None => earlier.clone().unwrap_or_else(|| Expr::truth(true)),
            };
            let guard = if stored && condition.is_some() {
                let flag = self.scalar("taken", ScalarType::Bool);
                nodes.push(Node::Insn(self.store(flag, own, None, span)));
                earlier = Some(and(earlier, not(Expr::scalar(flag))));
                Expr::scalar(flag)
            } else {
                earlier = condition.map(|condition| and(earlier, not(condition)));
                own
            };
            guards.push(guard);
        }
        for (body, guard) in branches.bodies.into_iter().zip(guards) {
            self.guard(&body, &guard);
            nodes.extend(body);
        }
        nodes
    }

    /// Whether a condition may not be evaluated once for each instruction, or is long.
    fn changes_conditions(&self, branches: &Branches) -> bool {
        let mut insns = Vec::new();
        branches.bodies.iter().for_each(|body| instructions(body, &mut insns));
        // nothing is evaluated after the last instruction, unless a loop repeats it
        let last = branches.bodies.last().and_then(|body| body.last());
        let last = last.filter(|node| matches!(node, Node::Insn(_)));
        let before_last = &insns[..insns.len() - usize::from(last.is_some())];
        let written: BTreeSet<VarId> = before_last.iter().map(|id| self.kernel.insns[*id].lhs.var).collect();
        let mut changes = |e: &Expr| {
            let is_read = e.as_load().is_some_and(|access| written.contains(&access.var));
            is_read || matches!(e, Expr::Reduce(_)) && insns.len() != 1
        };
        let mut conditions = branches.conditions.iter().filter_map(|(condition, _)| condition.as_ref());
        conditions.any(|condition| {
            let is_long = insns.len() > 1 && size(condition) > MAX_COPIED;
            is_long || self.any_with_rules(condition, &mut changes)
        })
    }

    /// Whether an expression, or a rule that it uses, holds what is looked for.
    pub(super) fn any_with_rules(&self, e: &Expr, is: &mut dyn FnMut(&Expr) -> bool) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![e];
        while let Some(e) = open.pop() {
            let mut rules = Vec::new();
            let found = e.any(&mut |part| {
                if let Expr::Rule(rule, _) = part {
                    rules.push(*rule);
                }
                is(part)
            });
            if found {
                return true;
            }
            let bodies = rules.into_iter().filter(|rule| seen.insert(*rule)).collect::<Vec<_>>();
            open.extend(bodies.into_iter().filter_map(|rule| Some(&self.kernel.rules.get(rule)?.body)));
        }
        false
    }

    /// Puts a condition on instructions.
    pub(super) fn guard(&mut self, nodes: &[Node], condition: &Expr) {
        for node in nodes {
            match node {
                Node::Insn(id) if self.made.unconditional.contains(id) => {
                    let insn = &mut self.kernel.insns[*id];
                    let value = std::mem::replace(&mut insn.rhs, Expr::Int(0));
                    let is_flag = self.kernel.vars[insn.lhs.var].ty == ScalarType::Bool;
                    let inner = Some(&value).filter(|value| value.as_truth() != Some(true)).cloned();
                    insn.rhs = if is_flag { and_maybe(condition, inner) } else { under(condition, value) };
                }
                Node::Insn(id) => {
                    let predicate = &mut self.kernel.insns[*id].predicate;
                    *predicate = Some(and_maybe(condition, predicate.take()));
                }
                Node::Loop(iname, body) => {
                    let inner = self.made.guards.remove(iname);
                    self.made.guards.insert(*iname, and_maybe(condition, inner));
                    if !self.made.flagged.contains(iname) {
                        self.guard(body, condition);
                    }
                }
            }
        }
    }

    /// The nodes of `for iname ... while condition`: a flag that is first true, and has the condition of
    /// each iteration, guards what is inside.
    pub(super) fn ended(
        &mut self,
        iname: InameId,
        nodes: Vec<Node>,
        (condition, span): (Expr, Span),
    ) -> Vec<Node> {
        self.made.conditions.push((condition.clone(), span));
        let stem = format!("{}_on", self.kernel.inames[iname].name);
        let flag = self.scalar(&stem, ScalarType::Bool);
        let first = self.store(flag, Expr::truth(true), None, span);
        self.made.unconditional.insert(first);
        self.made.flagged.insert(iname);
        self.guard(&nodes, &Expr::scalar(flag));
        let next = self.store(flag, condition, Some(Expr::scalar(flag)), span);
        let body = [vec![Node::Insn(next)], nodes].concat();
        vec![Node::Insn(first), Node::Loop(iname, body)]
    }

    /// Gives bounds that read what is written under conditions, in loops that stand under one, scalars of
    /// their own: what has not been written is not read.
    pub(super) fn guard_bounds(&mut self, nodes: Vec<Node>) -> Vec<Node> {
        let under_conditions = self.kernel.insns.values().filter(|insn| insn.predicate.is_some());
        let written: BTreeSet<VarId> = under_conditions.map(|insn| insn.lhs.var).collect();
        let mut all = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Node::Loop(iname, body) = node else {
                all.push(node);
                continue;
            };
            if let Some(guard) = self.made.guards.get(&iname).cloned() {
                all.extend(self.guard_bound(iname, &guard, &written));
            }
            let body = self.guard_bounds(body);
            all.push(Node::Loop(iname, body));
        }
        all
    }

    fn guard_bound(&mut self, iname: InameId, guard: &Expr, written: &BTreeSet<VarId>) -> Vec<Node> {
        let mut read = BTreeSet::new();
        self.kernel.inames[iname].domain.for_each_symbol(&mut |atom| {
            if let Atom::Var(var) = atom
                && written.contains(var)
            {
                read.insert(*var);
            }
        });
        let mut instead = BTreeMap::new();
        let mut nodes = Vec::new();
        for var in read {
            let (stem, ty) = (self.kernel.vars[var].name.clone(), self.kernel.vars[var].ty);
            let scalar = self.scalar(&stem, ty);
            let (value, span) = (under(guard, Expr::scalar(var)), self.place_of(iname));
            nodes.push(Node::Insn(self.store(scalar, value, None, span)));
            instead.insert(var, Affine::var(scalar));
        }
        let replace = |atom: &Atom| match atom {
            Atom::Var(var) => instead.get(var).cloned(),
            Atom::Iname(_) | Atom::Floor(..) => None,
        };
        let domain = self.kernel.inames[iname].domain.substitute(&replace);
        self.kernel.inames[iname].domain = domain;
        nodes
    }
}

/// Number of operations and operands.
pub(super) fn size(e: &Expr) -> usize {
    let mut size = 0;
    e.for_each(&mut |_| size += 1);
    size
}

fn instructions(nodes: &[Node], found: &mut Vec<InsnId>) {
    for node in nodes {
        match node {
            Node::Insn(insn) => found.push(*insn),
            Node::Loop(_, body) => instructions(body, found),
        }
    }
}

/// What a bound reads under a condition, and else 0.
fn under(condition: &Expr, read: Expr) -> Expr {
    let (inner, value) =
        if let Expr::Select(inner, value, _) = read { (Some(*inner), value) } else { (None, Box::new(read)) };
    Expr::Select(Box::new(and_maybe(condition, inner)), value, Box::new(Expr::Int(0)))
}

fn and(a: Option<Expr>, b: Expr) -> Expr {
    match a {
        Some(a) => Expr::binary(BinaryOp::And, a, b),
        None => b,
    }
}

fn and_maybe(a: &Expr, b: Option<Expr>) -> Expr {
    match b {
        Some(b) => Expr::binary(BinaryOp::And, a.clone(), b),
        None => a.clone(),
    }
}

fn not(condition: Expr) -> Expr {
    Expr::Unary(UnaryOp::Not, Box::new(condition))
}
