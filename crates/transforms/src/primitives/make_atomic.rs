//! Makes updates indivisible.

use super::Transform;
use crate::lookup::Selection;
use crate::refusal::Refusal;
use purlin_ir::{AddressSpace, Kernel, WriteOp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes the selected updates atomic.
///
/// # Rewrite
/// ```text
/// s: y[dof[c, j]] += out[j]      =>   s: y[dof[c, j]] += out[j] {atomic}
/// ```
///
/// # Precondition
/// Every selected instruction is an update (`+=`, `*=`, `min=`, `max=`) of a global or local variable.
/// A plain store never becomes an update.
///
/// # Errors
/// An empty selection, a plain store, a private variable.
///
/// # Elsewhere
/// Loopy `tag_array_axes` with `AtomicNumpyType`; CUDA `atomicAdd`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MakeAtomic {
    /// The updates.
    pub insns: Selection,
}

impl MakeAtomic {
    /// Makes the update of this name atomic.
    pub fn insn(name: impl Into<String>) -> Self {
        Self { insns: Selection::Insn(name.into()) }
    }

    /// Makes the updates with this tag atomic.
    pub fn tag(tag: impl Into<String>) -> Self {
        Self { insns: Selection::Tag(tag.into()) }
    }
}

impl fmt::Display for MakeAtomic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "make atomic {}", self.insns)
    }
}

impl Transform for MakeAtomic {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let mut atomic = kernel.clone();
        for id in self.insns.resolve(kernel)? {
            let insn = &mut atomic.insns[id];
            let var = &kernel.vars[insn.lhs.var];
            let WriteOp::Update { atomic, .. } = &mut insn.op else {
                return Err(Refusal::Other(format!(
                    "`{}` is a plain store to `{}`, needed an update such as `+=`; write it as one if that is \
                     what it means",
                    insn.name, var.name
                )));
            };
            match var.space {
                AddressSpace::Global | AddressSpace::Local => *atomic = true,
                AddressSpace::Private | AddressSpace::SubGroup | AddressSpace::Constant => {
                    return Err(Refusal::Other(format!(
                        "`{}` updates `{}`, which is {}: nobody else sees it; leave the update as it is",
                        insn.name,
                        var.name,
                        var.space.name()
                    )));
                }
            }
        }
        Ok(atomic)
    }
}
