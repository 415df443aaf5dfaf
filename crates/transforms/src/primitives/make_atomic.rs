//! Makes updates indivisible.

use kingpost_analysis::Analysis;
use kingpost_ir::{AddressSpace, InsnId, Kernel, WriteOp};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup::Selection;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes the selected updates atomic.
///
/// # Rewrite
/// ```text
/// s: y[dof[c, j]] += t[j]      =>   s: y[dof[c, j]] += t[j] {atomic}
/// ```
///
/// # Precondition
/// Every selected instruction is an update (`+=`, `*=`, `min=`, `max=`) of a global or local
/// variable. A plain store never becomes an update.
///
/// # Errors
/// An empty selection, a plain store, a private variable.
///
/// # Elsewhere
/// Loopy `tag_array_axes` with `AtomicNumpyType`; CUDA `atomicAdd`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// A store never becomes an update.
const UPDATE: Obligation = Obligation::new("make_atomic.update", "the instructions are updates");

/// Another work-item might update it at the same time.
const SHARED: Obligation =
    Obligation::new("make_atomic.shared", "other work-items see the variables, in global or local memory");

/// Updates of variables that others see.
pub struct Updates(Vec<InsnId>);

impl Primitive for MakeAtomic {
    const NAME: &'static str = "make_atomic";
    const SUMMARY: &'static str = "Makes updates indivisible.";

    type Proof = Updates;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[UPDATE, SHARED];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Updates, Refusal> {
        let kernel = analysis.kernel();
        let insns = self.insns.resolve(kernel)?;
        for insn in insns.iter().map(|id| &kernel.insns[*id]) {
            let var = &kernel.vars[insn.lhs.var];
            UPDATE.require(insn.update_op().is_some(), || {
                format!(
                    "`{}` is a plain store to `{}`, needed an update such as `+=`; write it as one if that is \
                     what it means",
                    insn.name, var.name
                )
            })?;
            let shared = match var.space {
                AddressSpace::Global | AddressSpace::Local => true,
                AddressSpace::Private
                | AddressSpace::SubGroup
                | AddressSpace::Constant
                | AddressSpace::Literal => false,
            };
            UPDATE.require(var.ty.record().is_none(), || {
                format!(
                    "`{}` updates `{}`, which holds records, and no target updates those atomically; use \
                     `reduce_in_tree`",
                    insn.name, var.name
                )
            })?;
            SHARED.require(shared, || {
                format!(
                    "`{}` updates `{}`, which is {}: nobody else sees it; leave the update as it is",
                    insn.name,
                    var.name,
                    var.space.name()
                )
            })?;
        }
        Ok(Updates(insns))
    }

    fn edit(&self, kernel: &mut Kernel, Updates(insns): &Updates) {
        for insn in insns {
            if let WriteOp::Update { atomic, .. } = &mut kernel.insns[*insn].op {
                *atomic = true;
            }
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::insn(p.of(&draw::insns(kernel, |i| i.op != WriteOp::Assign))?))
    }
}
