//! Canonical ids: inames and instructions numbered in order of appearance, nothing unreachable.

use crate::affine::{Affine, Atom};
use crate::defined::normalised;
use crate::expr::{Access, Expr};
use crate::ids::{Id, InameId, InsnId};
use crate::kernel::{Assumption, Kernel, Node};

/// The new id of each iname and each instruction, by the old one; none: the tree does not reach it.
type NewIds = (Vec<Option<InameId>>, Vec<Option<InsnId>>);

/// Which ids the canonical form of a kernel gave what stood in the kernel.
#[derive(Clone, Debug)]
pub struct Renumbering(Option<NewIds>);

impl Renumbering {
    /// The new id of an iname, if the tree reaches it.
    pub fn iname(&self, old: InameId) -> Option<InameId> {
        self.0.as_ref().map_or(Some(old), |(inames, _)| *inames.get(old.index())?)
    }

    /// The new id of an instruction, if the tree reaches it.
    pub fn insn(&self, old: InsnId) -> Option<InsnId> {
        self.0.as_ref().map_or(Some(old), |(_, insns)| *insns.get(old.index())?)
    }
}

impl Kernel {
    /// Renumbers inames and instructions in order of appearance and drops those the tree does not
    /// reach; brings assumptions to their normal form. Two kernels that print alike are equal after
    /// this.
    #[must_use]
    pub fn canonical(self) -> Self {
        self.renumbered().0
    }

    /// The canonical form, and which ids it gave.
    #[must_use]
    pub fn renumbered(mut self) -> (Self, Renumbering) {
        for assumption in &mut self.assumptions {
            match assumption {
                Assumption::Params(c) => *c = c.clone().normalised(),
                Assumption::Defined(_, value) => *value = normalised(value),
                Assumption::Injective(_)
                | Assumption::Ascending(_)
                | Assumption::Outside(_)
                | Assumption::Symmetric(_)
                | Assumption::Lists(_) => {}
            }
        }
        // definitions are written with their parameters, before all that is assumed
        self.assumptions.sort_by_key(|assumption| match assumption {
            Assumption::Defined(param, _) => param.index(),
            Assumption::Params(_)
            | Assumption::Injective(_)
            | Assumption::Ascending(_)
            | Assumption::Outside(_)
            | Assumption::Symmetric(_)
            | Assumption::Lists(_) => usize::MAX,
        });
        let order = appearance(&self);
        let insns: Vec<InsnId> = self.schedule().into_iter().map(|(insn, _)| insn).collect();
        if in_order(&order, self.inames.len()) && in_order(&insns, self.insns.len()) {
            return (self, Renumbering(None));
        }
        let mut new_iname = vec![None; self.inames.len()];
        for (k, iname) in order.iter().enumerate() {
            new_iname[iname.index()] = Some(InameId::from_index(k));
        }
        let mut new_insn = vec![None; self.insns.len()];
        for (k, insn) in insns.iter().enumerate() {
            new_insn[insn.index()] = Some(InsnId::from_index(k));
        }
        self.inames = self.inames.taken(&order);
        self.insns = self.insns.taken(&insns);
        self.rename_inames(&|i| new_iname[i.index()].unwrap_or(i));
        renumber_nodes(&mut self.body, &|i| new_iname[i.index()].unwrap_or(i), &|s| {
            new_insn[s.index()].unwrap_or(s)
        });
        (self, Renumbering(Some((new_iname, new_insn))))
    }

    /// Passes every iname in domains and expressions (not in the loop tree) through `rename`.
    fn rename_inames(&mut self, rename: &dyn Fn(InameId) -> InameId) {
        let replace = |atom: &Atom| match atom {
            Atom::Iname(i) => Some(Affine::iname(rename(*i))),
            Atom::Var(_) | Atom::Floor(..) => None,
        };
        for id in self.inames.ids() {
            let (mut renamed, domain) = (false, &self.inames[id].domain);
            domain.for_each_symbol(&mut |a| renamed |= matches!(a, Atom::Iname(i) if rename(*i) != *i));
            if renamed {
                self.inames[id].domain = domain.substitute(&replace);
            }
        }
        for id in self.insns.ids() {
            // what keeps its inames stays shared with the kernel before
            let (mut renamed, insn) = (false, &self.insns[id]);
            let parts = insn.expressions();
            parts.for_each(|e| e.for_each(&mut |e| renamed |= e.mentions_renamed(rename)));
            if !renamed {
                continue;
            }
            let insn = &mut self.insns[id];
            let index = insn.lhs.index.iter_mut();
            index.chain([&mut insn.rhs]).chain(&mut insn.predicate).for_each(|e| e.rename_inames(rename));
        }
    }
}

impl Expr {
    /// Whether this node itself, not its operands, mentions an iname that `rename` changes.
    fn mentions_renamed(&self, rename: &dyn Fn(InameId) -> InameId) -> bool {
        match self {
            Self::Iname(i) => rename(*i) != *i,
            Self::Reduce(r) => r.inames.iter().any(|i| rename(*i) != *i),
            Self::Int(_)
            | Self::Real(_)
            | Self::Load(_)
            | Self::Unary(..)
            | Self::Binary(..)
            | Self::Call(..)
            | Self::Cast(..)
            | Self::Select(..)
            | Self::Rule(..)
            | Self::RuleParam(_) => false,
        }
    }

    /// Passes every iname through `rename`.
    fn rename_inames(&mut self, rename: &dyn Fn(InameId) -> InameId) {
        match self {
            Self::Int(_) | Self::Real(_) | Self::RuleParam(_) => {}
            Self::Iname(i) => *i = rename(*i),
            Self::Load(Access { index: all, .. }) | Self::Call(_, all) | Self::Rule(_, all) => {
                all.iter_mut().for_each(|e| e.rename_inames(rename));
            }
            Self::Unary(_, a) | Self::Cast(_, a) => a.rename_inames(rename),
            Self::Binary(_, a, b) => [a, b].into_iter().for_each(|e| e.rename_inames(rename)),
            Self::Select(c, a, b) => [c, a, b].into_iter().for_each(|e| e.rename_inames(rename)),
            Self::Reduce(r) => {
                r.inames.iter_mut().for_each(|i| *i = rename(*i));
                r.body.rename_inames(rename);
            }
        }
    }
}

impl crate::kernel::Insn {
    /// Passes every expression node of the instruction through `rewrite`, from inside out: index
    /// expressions of the left-hand side, right-hand side, predicate.
    pub fn map_expressions(&mut self, rewrite: &mut dyn FnMut(Expr) -> Expr) {
        let lhs = self.lhs.index.iter_mut();
        lhs.chain([&mut self.rhs]).chain(&mut self.predicate).for_each(|e| e.rewrite(rewrite));
    }

    /// Replaces each expression of the instruction as a whole, in that order.
    pub fn map_roots(&mut self, rewrite: &mut dyn FnMut(&Expr) -> Expr) {
        let lhs = self.lhs.index.iter_mut();
        lhs.chain([&mut self.rhs]).chain(&mut self.predicate).for_each(|e| *e = rewrite(e));
    }
}

fn in_order<I: Id>(ids: &[I], len: usize) -> bool {
    ids.len() == len && ids.iter().enumerate().all(|(k, id)| id.index() == k)
}

/// Inames in order of appearance: loops before their bodies, reduction loops where they stand.
fn appearance(kernel: &Kernel) -> Vec<InameId> {
    let mut order = Vec::with_capacity(kernel.inames.len());
    loops(&kernel.body, &mut order);
    let mut seen = vec![false; kernel.inames.len()];
    order.iter().for_each(|l| seen[l.index()] = true);
    if order.len() == seen.len() && seen.iter().all(|seen| *seen) {
        return order; // no iname is left for a reduction
    }
    order.clear();
    visit(kernel, &kernel.body, &mut order);
    order
}

/// The loops of the tree.
fn loops(nodes: &[Node], order: &mut Vec<InameId>) {
    for node in nodes {
        if let Node::Loop(iname, body) = node {
            order.push(*iname);
            loops(body, order);
        }
    }
}

fn visit(kernel: &Kernel, nodes: &[Node], order: &mut Vec<InameId>) {
    for node in nodes {
        match node {
            Node::Loop(iname, body) => {
                order.push(*iname);
                visit(kernel, body, order);
            }
            Node::Insn(insn) => {
                let insn = &kernel.insns[*insn];
                for e in insn.expressions() {
                    e.for_each(&mut |e| {
                        if let Expr::Reduce(r) = e {
                            order.extend(&r.inames);
                        }
                    });
                }
            }
        }
    }
}

fn renumber_nodes(nodes: &mut [Node], iname: &dyn Fn(InameId) -> InameId, insn: &dyn Fn(InsnId) -> InsnId) {
    for node in nodes {
        match node {
            Node::Loop(i, body) => {
                *i = iname(*i);
                renumber_nodes(body, iname, insn);
            }
            Node::Insn(s) => *s = insn(*s),
        }
    }
}
