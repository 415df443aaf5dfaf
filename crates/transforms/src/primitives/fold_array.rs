//! Lets the elements along an axis of a temporary take turns.

use kingpost_analysis::Analysis;
use kingpost_ir::affine::MAX_COEFFICIENT;
use kingpost_ir::{Affine, BinaryOp, Expr, Kernel, VarId};
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

/// Lets the elements along an axis of a temporary take turns in `length` of them: the index `f`
/// becomes `f mod length`.
///
/// # Rewrite
/// ```text
/// temp t: f64[n + 2]                         =>   temp t: f64[3]
/// for k in 0..n + 2                               for k in 0..n + 2
///   s: t[k] = a[k]                                  s: t[k mod 3] = a[k]
///   r: b[k - 2] = t[k] - t[k - 2] if 2 <= k         r: b[k - 2] = t[k mod 3] - t[(k - 2) mod 3] if 2 <= k
/// ```
/// Sliding planes and queues: a loop produces one element and uses the last few. When as many
/// iterations as the length are unrolled, the indices are constants, and the elements registers.
///
/// # Precondition
/// In the folded kernel every reader finds what it found before: with `D` its flow and update
/// dependences through the variable and `k` the index before, `{ s -> t in D : k(s) /= k(t) }` is
/// empty. (The last write of the shared element then has the index that is read, so it was the last
/// write of that element before.) If loops are on axes, the placement must still hold.
///
/// # Errors
/// A reader that would find another element, with two instances, also where the index is not affine
/// or runs over a reduction; a length below 1, or not below a constant extent; an axis there is
/// not; a variable that is no temporary or is assumed injective.
///
/// # Elsewhere
/// Halide `fold_storage`; contraction by a modulus (Lefebvre & Feautrier 1998).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FoldArray {
    /// The temporary.
    pub var: String,
    /// The axis, counted from 0.
    pub axis: u32,
    /// Elements that are left along the axis.
    pub length: i64,
}

impl FoldArray {
    /// Folds `axis` of `var` into `length` elements.
    pub fn new(var: impl Into<String>, axis: u32, length: i64) -> Self {
        Self { var: var.into(), axis, length }
    }
}

impl fmt::Display for FoldArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fold `{}` along axis {} into {}", self.var, self.axis, self.length)
    }
}

/// The element that is read has not been taken by another index.
const ALIVE: Obligation =
    Obligation::new("fold_array.alive", "no element is read after another one has taken its place");

/// An axis of a temporary whose elements can take turns.
pub struct Turns {
    var: VarId,
    axis: usize,
}

impl Primitive for FoldArray {
    const NAME: &'static str = "fold_array";
    const SUMMARY: &'static str = "Lets the elements along an axis of a temporary take turns in a few.";

    type Proof = Turns;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[OF_NO_LAYOUT, ALIVE, TEMPORARY, AXIS, ONLY_ACCESSED];

    fn check(&self, analysis: &Analysis) -> Result<Turns, Refusal> {
        let kernel = analysis.kernel();
        let var = temporary(kernel, &self.var, "only temporaries can be folded")?;
        let axis = check_axis(&kernel.vars[var], self.axis)?;
        if !(1..=MAX_COEFFICIENT).contains(&self.length) {
            return Err(Refusal::argument("length", format!("the length is {}", self.length), "1 to 2^40"));
        }
        if let Some(extent) = kernel.vars[var].shape[axis].as_constant().filter(|e| *e <= self.length) {
            let found = format!("axis {} of `{}` has {extent} elements", self.axis, self.var);
            return Err(Refusal::argument("length", found, "a length below that"));
        }
        check_only_accessed(kernel, var)?;
        check_of_no_layout(&kernel.vars[var], axis)?;
        let proof = Turns { var, axis };
        let help =
            "fold into more elements, or fuse the loops so that each value is read before its place is taken";
        let alive = Alive { var, axis, length: Some(self.length), obligation: ALIVE, help };
        check_readers(analysis, &self.draft(kernel, &proof), &alive)?;
        Ok(proof)
    }

    /// Every access with its index along the axis taken modulo the length.
    fn edit(&self, kernel: &mut Kernel, proof: &Turns) {
        rewrite_accesses(kernel, proof.var, &mut |mut index| {
            if let Some(e) = index.get_mut(proof.axis) {
                *e = folded(e, self.length);
            }
            index
        });
        kernel.vars[proof.var].shape[proof.axis] = Affine::constant(self.length);
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let var = p.of(&draw::temporaries(kernel, 1))?;
        let axis = p.below(draw::axes(kernel, &var) as usize) as u32;
        Some(Self::new(var, axis, p.between(1, 4)))
    }
}

/// `e mod length`.
fn folded(e: &Expr, length: i64) -> Expr {
    match e.as_affine().and_then(|e| e.as_constant()) {
        Some(constant) => Expr::Int(constant.rem_euclid(length)),
        None if length == 1 => Expr::Int(0),
        None => Expr::binary(BinaryOp::Mod, e.clone(), Expr::Int(length)),
    }
}
