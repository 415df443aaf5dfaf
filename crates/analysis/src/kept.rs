//! What an edit left of a kernel as it was.
//!
//! Edits keep the ids of what they do not make, and copies of a kernel share what neither changes:
//! an item of the same place in the table of both kernels is the same item.

use kingpost_ir::ids::{Id, InameId, InsnId};
use kingpost_ir::kernel::{Kernel, Node};

/// What of a draft, which an edit made of a kernel, stands as in the kernel. Ids are those of both.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The instructions that are shared and stand in the same loops.
    insns: Vec<bool>,
    /// The loops of the tree with the same domain and tag, in the same loops.
    loops: Vec<bool>,
    /// Whether those instructions stand in one order in both.
    in_order: bool,
    draft: Places,
}

impl Kept {
    pub(crate) fn of(before: &Kernel, draft: &Kernel) -> Self {
        let (was, is) = (Places::of(before), Places::of(draft));
        let mut same_nest = vec![false; draft.inames.len()];
        let mut loops = vec![false; draft.inames.len()];
        for (l, outer) in &is.loops {
            let inside_same = was.around_loops.get(l.index()) == Some(&Some(*outer));
            same_nest[l.index()] = inside_same && outer.is_none_or(|o| same_nest[o.index()]);
            let same_loop = || {
                let (a, b) = (&before.inames[*l], &draft.inames[*l]);
                std::ptr::eq(a, b) || a == b
            };
            let inside_kept = outer.is_none_or(|o| loops[o.index()]);
            loops[l.index()] = same_nest[l.index()] && inside_kept && same_loop();
        }
        let mut insns = vec![false; draft.insns.len()];
        for (s, outer) in &is.insns {
            let both = before.insns.get(*s).zip(draft.insns.get(*s));
            insns[s.index()] = both.is_some_and(|(a, b)| std::ptr::eq(a, b))
                && was.around_insns.get(s.index()) == Some(&Some(*outer))
                && outer.is_none_or(|o| same_nest[o.index()]);
        }
        let kept = |(s, _): &(InsnId, _)| insns.get(s.index()).copied().unwrap_or(false).then_some(*s);
        let in_order = was.insns.iter().filter_map(kept).eq(is.insns.iter().filter_map(kept));
        Self { insns, loops, in_order, draft: is }
    }

    /// Whether an instruction is shared and stands in the same loops, which may differ in domains
    /// and tags.
    pub(crate) fn insn(&self, s: InsnId) -> bool {
        self.insns[s.index()]
    }

    /// The same, in loops of the same domains and tags.
    pub(crate) fn insn_and_loops(&self, s: InsnId) -> bool {
        let around = self.draft.around_insns[s.index()].flatten();
        self.insn(s) && around.is_none_or(|l| self.loops[l.index()])
    }

    /// The instructions of the draft in textual order.
    pub(crate) fn draft_insns(&self) -> impl Iterator<Item = InsnId> {
        self.draft.insns.iter().map(|(s, _)| *s)
    }

    /// Whether the instructions that are kept stand in one order in both kernels.
    pub(crate) fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// The instructions that need not be verified again in the draft, if the kernel before is well
    /// formed.
    ///
    /// What the verifier asks of an instruction is decided by the instruction, the loops whose
    /// values it mentions, types and ranks of variables, whether these are read-only, and rules;
    /// where it has no reduction, which brings loops of its own ([`Kept::has_reductions`]).
    pub(crate) fn verified(&self, before: &Kernel, draft: &Kernel) -> Vec<InsnId> {
        let same_types = before.vars.len() <= draft.vars.len()
            && before
                .vars
                .changed(&draft.vars)
                .all(|(a, b)| a.ty == b.ty && a.kind == b.kind && a.shape.len() == b.shape.len());
        let same = same_types && before.rules == draft.rules && before.callees == draft.callees;
        if !same {
            return Vec::new();
        }
        self.draft_insns().filter(|s| self.insn(*s)).collect()
    }

    /// Whether the draft has reductions; `after` is its canonical form, which has no loops but
    /// theirs and those of the tree.
    pub(crate) fn has_reductions(&self, after: &Kernel) -> bool {
        self.draft.loops.len() != after.inames.len()
    }
}

/// Where the statements of a kernel stand.
#[derive(Debug)]
struct Places {
    /// The instructions of the tree in textual order, each with the loop directly around it.
    insns: Vec<(InsnId, Option<InameId>)>,
    /// The loops of the tree in textual order.
    loops: Vec<(InameId, Option<InameId>)>,
    /// The loop directly around each instruction, by id; none: it is not in the tree.
    around_insns: Vec<Option<Option<InameId>>>,
    /// The same for each loop.
    around_loops: Vec<Option<Option<InameId>>>,
}

impl Places {
    fn of(kernel: &Kernel) -> Self {
        let mut places = Self {
            insns: Vec::with_capacity(kernel.insns.len()),
            loops: Vec::with_capacity(kernel.inames.len()),
            around_insns: vec![None; kernel.insns.len()],
            around_loops: vec![None; kernel.inames.len()],
        };
        places.visit(&kernel.body, None);
        places
    }

    fn visit(&mut self, nodes: &[Node], outer: Option<InameId>) {
        for node in nodes {
            match node {
                Node::Insn(s) => {
                    self.insns.push((*s, outer));
                    self.around_insns[s.index()] = Some(outer);
                }
                Node::Loop(l, body) => {
                    self.loops.push((*l, outer));
                    self.around_loops[l.index()] = Some(outer);
                    self.visit(body, Some(*l));
                }
            }
        }
    }
}
