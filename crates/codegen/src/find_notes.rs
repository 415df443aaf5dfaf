//! What is remarked of a kernel before there is code: work that few work-items do, accesses without a proof.

use crate::axes::{Axes, is_replicated};
use crate::notes::Note;
use kingpost_ir::{AxisTag, InameId, InsnId, Kernel, Node, VarId};
use std::collections::BTreeSet;

/// What is known before there is code; `open` are arrays with accesses that no proof covers.
pub(crate) fn of_kernel(kernel: &Kernel, axes: &Axes, open: &BTreeSet<VarId>) -> Vec<Note> {
    let mut notes = at_one_index(kernel, axes);
    if !open.is_empty() {
        let arrays = open.iter().map(|var| kernel.vars[*var].name.clone()).collect();
        notes.push(Note::Open { arrays });
    }
    notes
}

/// The loops that run at index 0 of an axis; of nested ones the outermost.
fn at_one_index(kernel: &Kernel, axes: &Axes) -> Vec<Note> {
    let mut notes = Vec::new();
    for (group, k) in [true, false].into_iter().flat_map(|group| (0..3_u8).map(move |k| (group, k))) {
        let inames = axes.inames(group, k.into());
        if inames.is_empty() || axes.is_trivial(group, k.into()) {
            continue;
        }
        let axis = if group { AxisTag::Group(k) } else { AxisTag::Local(k) };
        Finder { kernel, inames, axis, group }.nodes(&kernel.body, &mut notes);
    }
    notes
}

struct Finder<'a> {
    kernel: &'a Kernel,
    /// The loops of the axis.
    inames: &'a [InameId],
    axis: AxisTag,
    group: bool,
}

impl Finder<'_> {
    fn nodes(&self, nodes: &[Node], notes: &mut Vec<Note>) {
        for node in nodes {
            let Node::Loop(iname, body) = node else { continue };
            // what is inside the axis runs at all of its indices
            if self.inames.contains(iname) {
                continue;
            }
            let insns = self.alone(body).filter(|insns| !insns.is_empty() && self.repeats(*iname));
            match insns {
                Some(insns) => {
                    let name = |id: &InsnId| self.kernel.insns[*id].name.clone();
                    let iname = self.kernel.inames[*iname].name.clone();
                    let insns = insns.iter().map(name).collect();
                    notes.push(Note::OneIndex { iname, axis: self.axis, insns });
                }
                None => self.nodes(body, notes),
            }
        }
    }

    /// The instructions below that run at index 0; none if the axis is among the loops below.
    fn alone(&self, nodes: &[Node]) -> Option<Vec<InsnId>> {
        let mut found = Vec::new();
        for node in nodes {
            match node {
                Node::Insn(insn) if is_replicated(self.kernel, *insn, self.group) => {}
                Node::Insn(insn) => found.push(*insn),
                Node::Loop(iname, _) if self.inames.contains(iname) => return None,
                Node::Loop(_, body) => found.extend(self.alone(body)?),
            }
        }
        Some(found)
    }

    /// Whether a loop counts: one on another axis, or of one iteration, repeats nothing.
    fn repeats(&self, iname: InameId) -> bool {
        let info = &self.kernel.inames[iname];
        let once = || {
            let range = info.domain.as_guarded_range(iname);
            range.is_some_and(|range| range.length().as_constant().is_some_and(|n| n <= 1))
        };
        match info.tag {
            AxisTag::Group(_) | AxisTag::Local(_) => false,
            AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled | AxisTag::Vector | AxisTag::Launch => {
                !once()
            }
        }
    }
}
