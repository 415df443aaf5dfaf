//! Conditions of blocks, as predicates of the instructions inside.

use crate::affine::{Affine, Atom};
use crate::expr::{BinaryOp, Expr, UnaryOp};
use crate::ids::{InameId, InsnId, VarId};
use crate::kernel::{Kernel, Node};
use crate::types::ScalarType;
use std::collections::{BTreeMap, BTreeSet};

/// A longer condition is stored, and not copied to each instruction.
const MAX_COPIED: usize = 32;

/// An `if` and what follows it; conditions with their places.
pub(crate) struct Branches<P> {
    /// A last `else` has none.
    pub(crate) conditions: Vec<(Option<Expr>, P)>,
    /// What stands below each.
    pub(crate) bodies: Vec<Vec<Node>>,
}

/// What conditions of blocks are still to be put on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guards {
    /// Instructions that always run, so that a condition around them changes their value: reads of bounds
    /// and the first values of flags.
    pub(crate) unconditional: BTreeSet<InsnId>,
    /// Loops with `while`: their flag has the conditions around them.
    flagged: BTreeSet<InameId>,
    /// The conditions around loops.
    guards: BTreeMap<InameId, Expr>,
}

/// Whoever builds a kernel of blocks with conditions.
pub(crate) trait Guarding {
    /// Where a condition stands.
    type Place: Copy;

    /// What there is of the kernel.
    fn kernel(&self) -> &Kernel;

    /// The same, to be changed, and what is still to be guarded.
    fn parts(&mut self) -> (&mut Kernel, &mut Guards);

    /// Declares a scalar of a new name.
    fn new_scalar(&mut self, stem: &str, ty: ScalarType) -> VarId;

    /// An instruction that stores a value in a scalar, under a condition; `place` is what it comes from.
    fn new_store(&mut self, scalar: VarId, rhs: Expr, predicate: Option<Expr>, place: Self::Place) -> InsnId;

    /// Where a loop stands.
    fn loop_place(&self, iname: InameId) -> Self::Place;

    /// Notes what must be a truth value.
    fn note_condition(&mut self, condition: &Expr, place: Self::Place);

    /// The instructions of all branches, each under its conditions. Conditions that the branches may
    /// change are stored before, as are long ones and those with a reduction, whose loops stand in one place.
    fn guarded(&mut self, branches: Branches<Self::Place>) -> Vec<Node> {
        for (condition, place) in &branches.conditions {
            condition.iter().for_each(|condition| self.note_condition(condition, *place));
        }
        let stored = changes_conditions(self.kernel(), &branches);
        let (mut nodes, mut guards) = (Vec::new(), Vec::new());
        let mut earlier: Option<Expr> = None;
        for (condition, place) in branches.conditions {
            let own = match &condition {
                Some(condition) => and(earlier.clone(), condition.clone()),
                None => earlier.clone().unwrap_or_else(|| Expr::truth(true)),
            };
            let guard = if stored && condition.is_some() {
                let flag = self.new_scalar("taken", ScalarType::Bool);
                nodes.push(Node::Insn(self.new_store(flag, own, None, place)));
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

    /// Puts a condition on instructions.
    fn guard(&mut self, nodes: &[Node], condition: &Expr) {
        let (kernel, state) = self.parts();
        let mut inside = Vec::new();
        for node in nodes {
            match node {
                Node::Insn(id) if state.unconditional.contains(id) => {
                    let insn = &mut kernel.insns[*id];
                    let value = std::mem::replace(&mut insn.rhs, Expr::Int(0));
                    let is_flag = kernel.vars[insn.lhs.var].ty == ScalarType::Bool;
                    let inner = Some(&value).filter(|value| value.as_truth() != Some(true)).cloned();
                    insn.rhs = if is_flag { and_maybe(condition, inner) } else { under(condition, value) };
                }
                Node::Insn(id) => {
                    let predicate = &mut kernel.insns[*id].predicate;
                    *predicate = Some(and_maybe(condition, predicate.take()));
                }
                Node::Loop(iname, body) => {
                    let inner = state.guards.remove(iname);
                    state.guards.insert(*iname, and_maybe(condition, inner));
                    if !state.flagged.contains(iname) {
                        inside.push(body);
                    }
                }
            }
        }
        for body in inside {
            self.guard(body, condition);
        }
    }

    /// The nodes of `for iname ... while condition`: a flag that is first true, and has the condition of
    /// each iteration, guards what is inside.
    fn ended(
        &mut self,
        iname: InameId,
        nodes: Vec<Node>,
        (condition, place): (Expr, Self::Place),
    ) -> Vec<Node> {
        self.note_condition(&condition, place);
        let stem = format!("{}_on", self.kernel().inames[iname].name);
        let flag = self.new_scalar(&stem, ScalarType::Bool);
        let first = self.new_store(flag, Expr::truth(true), None, place);
        let (_, state) = self.parts();
        state.unconditional.insert(first);
        state.flagged.insert(iname);
        self.guard(&nodes, &Expr::scalar(flag));
        let next = self.new_store(flag, condition, Some(Expr::scalar(flag)), place);
        let body = [vec![Node::Insn(next)], nodes].concat();
        vec![Node::Insn(first), Node::Loop(iname, body)]
    }

    /// Gives bounds that read what is written under conditions, in loops that stand under one, scalars of
    /// their own: what has not been written is not read.
    fn guard_bounds(&mut self, nodes: Vec<Node>) -> Vec<Node> {
        if self.parts().1.guards.is_empty() {
            return nodes;
        }
        let under_conditions = self.kernel().insns.values().filter(|insn| insn.predicate.is_some());
        let written: BTreeSet<VarId> = under_conditions.map(|insn| insn.lhs.var).collect();
        let mut all = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Node::Loop(iname, body) = node else {
                all.push(node);
                continue;
            };
            if let Some(guard) = self.parts().1.guards.get(&iname).cloned() {
                all.extend(self.guard_bound(iname, &guard, &written));
            }
            let body = self.guard_bounds(body);
            all.push(Node::Loop(iname, body));
        }
        all
    }

    fn guard_bound(&mut self, iname: InameId, guard: &Expr, written: &BTreeSet<VarId>) -> Vec<Node> {
        let mut read = BTreeSet::new();
        self.kernel().inames[iname].domain.for_each_symbol(&mut |atom| {
            if let Atom::Var(var) = atom
                && written.contains(var)
            {
                read.insert(*var);
            }
        });
        let mut instead = BTreeMap::new();
        let mut nodes = Vec::new();
        for var in read {
            let (stem, ty) = (self.kernel().vars[var].name.clone(), self.kernel().vars[var].ty);
            let scalar = self.new_scalar(&stem, ty);
            let (value, place) = (under(guard, Expr::scalar(var)), self.loop_place(iname));
            nodes.push(Node::Insn(self.new_store(scalar, value, None, place)));
            instead.insert(var, Affine::var(scalar));
        }
        let replace = |atom: &Atom| match atom {
            Atom::Var(var) => instead.get(var).cloned(),
            Atom::Iname(_) | Atom::Floor(..) => None,
        };
        let domain = self.kernel().inames[iname].domain.substitute(&replace);
        self.parts().0.inames[iname].domain = domain;
        nodes
    }
}

/// Whether a condition may not be evaluated once for each instruction, or is long.
fn changes_conditions<P>(kernel: &Kernel, branches: &Branches<P>) -> bool {
    let mut insns = Vec::new();
    branches.bodies.iter().for_each(|body| instructions(body, &mut insns));
    // nothing is evaluated after the last instruction, unless a loop repeats it
    let last = branches.bodies.last().and_then(|body| body.last());
    let last = last.filter(|node| matches!(node, Node::Insn(_)));
    let before_last = &insns[..insns.len() - usize::from(last.is_some())];
    let written: BTreeSet<VarId> = before_last.iter().map(|id| kernel.insns[*id].lhs.var).collect();
    let mut changes = |e: &Expr| {
        let is_read = e.as_load().is_some_and(|access| written.contains(&access.var));
        is_read || matches!(e, Expr::Reduce(_)) && insns.len() != 1
    };
    let mut conditions = branches.conditions.iter().filter_map(|(condition, _)| condition.as_ref());
    conditions.any(|condition| {
        let is_long = insns.len() > 1 && size(condition) > MAX_COPIED;
        is_long || any_with_rules(kernel, condition, &mut changes)
    })
}

/// Whether an expression, or a rule that it uses, holds what is looked for.
pub(crate) fn any_with_rules(kernel: &Kernel, e: &Expr, is: &mut dyn FnMut(&Expr) -> bool) -> bool {
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
        open.extend(bodies.into_iter().filter_map(|rule| Some(&kernel.rules.get(rule)?.body)));
    }
    false
}

/// Number of operations and operands.
pub(crate) fn size(e: &Expr) -> usize {
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
