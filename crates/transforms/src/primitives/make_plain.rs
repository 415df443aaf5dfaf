//! Makes updates plain that meet no other one.

use kingpost_analysis::Analysis;
use kingpost_ir::{InsnId, Kernel, WriteOp};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup::Selection;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes the selected updates plain: a load, an operation and a store, where nothing else reads or
/// writes their elements at the same time.
///
/// # Rewrite
/// ```text
/// for c in 0..n {g.0}                   =>   for c in 0..n {g.0}
///   s: y[c] += t[c] {atomic}                   s: y[c] += t[c]
/// ```
///
/// # Precondition
/// Every selected instruction is an atomic update. The placement on work-groups and work-items
/// keeps every dependence without that: with `f` and `g` the elements of two updates, `{ i -> j :
/// f(i) = g(j) }` has no pair of two work-items, or a barrier is in between.
///
/// # Errors
/// An empty selection, an instruction that is no atomic update; two work-items that may update one
/// element, with a witness.
///
/// # Elsewhere
/// Compilers have no such pass: an atomic update is what the program says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MakePlain {
    /// The updates.
    pub insns: Selection,
}

impl MakePlain {
    /// Makes the update of this name plain.
    pub fn insn(name: impl Into<String>) -> Self {
        Self { insns: Selection::Insn(name.into()) }
    }
}

impl fmt::Display for MakePlain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "make plain {}", self.insns)
    }
}

/// There is something to change.
const ATOMIC: Obligation = Obligation::new("make_plain.atomic", "the instructions are atomic updates");

/// Atomic updates of others.
pub struct Atomic(Vec<InsnId>);

impl Primitive for MakePlain {
    const NAME: &'static str = "make_plain";
    const SUMMARY: &'static str = "Makes updates plain that meet no other one.";

    type Proof = Atomic;
    type Made = ();

    // that no two updates meet is what every step keeps: the frame asks the placement of the result
    const OBLIGATIONS: &'static [Obligation] = &[ATOMIC];

    fn check(&self, analysis: &Analysis) -> Result<Atomic, Refusal> {
        let kernel = analysis.kernel();
        let insns = self.insns.resolve(kernel)?;
        for insn in insns.iter().map(|id| &kernel.insns[*id]) {
            ATOMIC.require(insn.is_atomic(), || {
                format!("`{}` is no atomic update; name those that are", insn.name)
            })?;
        }
        Ok(Atomic(insns))
    }

    fn edit(&self, kernel: &mut Kernel, Atomic(insns): &Atomic) {
        for insn in insns {
            if let WriteOp::Update { atomic, .. } = &mut kernel.insns[*insn].op {
                *atomic = false;
            }
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::insn(p.of(&draw::insns(kernel, |i| i.is_atomic()))?))
    }
}
