//! Drops an axis of a temporary.

use kingpost_analysis::Analysis;
use kingpost_ir::{Kernel, VarId};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::alive::{Alive, check_readers};
use kingpost_steps::proofs::elements::{
    AXIS, OF_NO_LAYOUT, ONLY_ACCESSED, TEMPORARY, check_axis, check_of_no_layout, check_only_accessed,
    rewrite_accesses, temporary,
};
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Drops an axis of a temporary of which only one element is alive at a time.
///
/// # Rewrite
/// ```text
/// temp t: f64[n]              =>   temp t: f64
/// for i in 0..n                    for i in 0..n
///   s: t[i] = a[i]                   s: t = a[i]
///   r: b[i] = t[i]*t[i]              r: b[i] = t*t
/// ```
///
/// # Precondition
/// In the contracted kernel every reader finds what it found before: with
/// `D` its flow and update dependences through the variable and `k` the dropped index,
/// `{ s -> t in D : k(s) /= k(t) }` is empty. (The last write of the remaining element then has the
/// index that is read, so it was the last write of that element before.) If loops are on axes, the
/// placement must still hold.
///
/// # Errors
/// A reader that would find another element, with two instances, also where the index is not affine
/// or runs over a reduction; an axis there is not; a variable that is no temporary or is assumed
/// injective.
///
/// # Elsewhere
/// Array contraction in the polyhedral literature; Halide's storage folding; TVM
/// `CompactBufferAllocation`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContractArray {
    /// The temporary.
    pub var: String,
    /// The axis, counted from 0.
    pub axis: u32,
}

impl ContractArray {
    /// Drops `axis` of `var`.
    pub fn new(var: impl Into<String>, axis: u32) -> Self {
        Self { var: var.into(), axis }
    }
}

impl fmt::Display for ContractArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "contract `{}` along axis {}", self.var, self.axis)
    }
}

/// The one element that is left is the one that is read.
const ONE_ALIVE: Obligation =
    Obligation::new("contract_array.one_alive", "one element along the axis is alive at a time");

/// An axis of a temporary of which one element is alive at a time.
pub struct LoneElements {
    var: VarId,
    axis: usize,
}

impl Primitive for ContractArray {
    const NAME: &'static str = "contract_array";
    const SUMMARY: &'static str = "Drops an axis of a temporary of which one element is alive at a time.";

    type Proof = LoneElements;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[OF_NO_LAYOUT, ONE_ALIVE, TEMPORARY, AXIS, ONLY_ACCESSED];

    fn check(&self, analysis: &Analysis) -> Result<LoneElements, Refusal> {
        let kernel = analysis.kernel();
        let var = temporary(kernel, &self.var, "only temporaries can be contracted")?;
        let axis = check_axis(&kernel.vars[var], self.axis)?;
        check_only_accessed(kernel, var)?;
        check_of_no_layout(&kernel.vars[var], axis)?;
        let proof = LoneElements { var, axis };
        let help = "keep the axis, or fuse the loops so that each value is read before the next is written";
        let alive = Alive { var, axis, length: None, obligation: ONE_ALIVE, help };
        check_readers(analysis, &self.draft(kernel, &proof), &alive)?;
        Ok(proof)
    }

    /// Every access without its index along the axis.
    fn edit(&self, kernel: &mut Kernel, proof: &LoneElements) {
        let axis = proof.axis;
        rewrite_accesses(kernel, proof.var, &mut |mut index| {
            if axis < index.len() {
                index.remove(axis);
            }
            index
        });
        let variable = &mut kernel.vars[proof.var];
        variable.shape.remove(axis);
        variable.layout.remove_axis(axis);
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let var = p.of(&draw::temporaries(kernel, 1))?;
        let axis = p.below(draw::axes(kernel, &var) as usize) as u32;
        Some(Self::new(var, axis))
    }
}
