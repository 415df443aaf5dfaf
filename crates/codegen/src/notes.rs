//! What a reader of the code would not expect: a tag that changed nothing, work that few
//! work-items do.

use crate::axes::{Axes, is_replicated};
use purlin_ir::{AxisTag, InameId, InsnId, Kernel, Node, VarId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A remark of code generation on the code for a target, which is right all the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Note {
    /// A loop with the tag `vector` that is written without vectors.
    ScalarLoop {
        /// The loop.
        iname: String,
        /// Why.
        why: NoVectors,
    },
    /// A loop all of whose iterations run at index 0 of an axis.
    OneIndex {
        /// The loop.
        iname: String,
        /// The axis.
        axis: AxisTag,
        /// The instructions in it that do.
        insns: Vec<String>,
    },
    /// Arrays with accesses of which nothing proves that they stay inside.
    Open {
        /// The arrays.
        arrays: Vec<String>,
    },
}

/// Why a loop over lanes is written without vectors.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NoVectors {
    /// It starts or ends at something that is no number.
    Ends,
    /// No vector that the target has divides its length.
    Length,
    /// It holds a barrier, a call or lanes of another loop.
    Inside,
    /// Lanes share a private variable, or one keeps its value after the loop.
    Shared {
        /// The variable.
        variable: String,
    },
    /// Lanes find no elements next to each other in memory that vectors are loaded from.
    Apart,
    /// Lanes find elements next to each other, and the first is at no multiple of the smallest vector
    /// for all that is known.
    Unaligned {
        /// The array.
        array: String,
        /// Bytes of which the first lane's address is known to be a multiple.
        known: u64,
        /// Bytes of the smallest vector.
        needed: u64,
    },
}

impl fmt::Display for NoVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ends => f.write_str("its ends are no numbers; split it so that it starts at 0"),
            Self::Length => f.write_str("no vector of the target divides its length"),
            Self::Inside => f.write_str("it holds a barrier, a call or other lanes"),
            Self::Shared { variable } => {
                write!(f, "its lanes share `{variable}`, or its value is needed after the loop")
            }
            Self::Apart => f.write_str(
                "its lanes find no elements next to each other in memory that vectors are loaded from",
            ),
            Self::Unaligned { array, known, needed } => write!(
                f,
                "the first lane's element of `{array}` is known to lie at a multiple of {known} bytes, needed {needed}; \
                 give rows a length that says so, or assume it, as in `assume n mod 4 == 0`"
            ),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScalarLoop { iname, why } => {
                write!(f, "`{iname}` is tagged vector and stays scalar: {why}")
            }
            Self::OneIndex { iname, axis, insns } => {
                let who = match axis {
                    AxisTag::Group(_) => "one work-group",
                    AxisTag::Sequential
                    | AxisTag::Unrolled
                    | AxisTag::Rolled
                    | AxisTag::Vector
                    | AxisTag::Launch
                    | AxisTag::Local(_) => "one work-item of a group",
                };
                let insns = quoted(insns);
                write!(
                    f,
                    "`{iname}` runs on {who}, at index 0 of {axis}: {insns}; tag it, or an inner loop that it is \
                     split into, {axis} to share the iterations out"
                )
            }
            Self::Open { arrays } => write!(
                f,
                "nothing proves that accesses to {} stay inside: their indices, bounds or conditions are read from \
                 memory or not affine; `check`, or `purlin run --check`, looks at the values before a launch",
                quoted(arrays)
            ),
        }
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

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
