//! Drops an axis of a temporary.

use crate::draw::{self, Picks};
use crate::obligation::Obligation;
use crate::primitive::Primitive;
use crate::proofs::elements::AXIS;
use crate::proofs::elements::ONLY_ACCESSED;
use crate::proofs::elements::TEMPORARY;
use crate::proofs::elements::{check_axis, check_only_accessed, element_at, rewrite_accesses, temporary};
use crate::refusal::{LostValue, Refusal};
use purlin_analysis::deps::{AccessSite, Dependence, DependenceKind, Mode};
use purlin_analysis::polyhedral::{Polyhedral, Side, difference};
use purlin_analysis::{Analysis, Witness};
use purlin_ir::{Affine, Atom, Kernel, VarId};
use purlin_isl as isl;
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

/// Vectors stay whole.
const NO_VECTOR_AXIS: Obligation =
    Obligation::new("contract_array.no_vector_axis", "the axis is not the vector axis of the layout");

/// The one element that is left is the one that is read.
const ONE_ALIVE: Obligation =
    Obligation::new("contract_array.one_alive", "one element along the axis is alive at a time");

/// An axis of a temporary of which one element is alive at a time.
pub struct LoneElements {
    var: VarId,
    axis: usize,
}

impl Primitive for ContractArray {
    type Proof = LoneElements;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[NO_VECTOR_AXIS, ONE_ALIVE, TEMPORARY, AXIS, ONLY_ACCESSED];

    fn check(&self, analysis: &Analysis) -> Result<LoneElements, Refusal> {
        let kernel = analysis.kernel();
        let var = temporary(kernel, &self.var, "only temporaries can be contracted")?;
        let axis = check_axis(&kernel.vars[var], self.axis)?;
        check_only_accessed(kernel, var)?;
        let vector = kernel.vars[var].layout.vector_axis == Some(self.axis);
        NO_VECTOR_AXIS.require(!vector, || {
            format!("axis {} is the vector axis of `{}`; change the layout first", self.axis, self.var)
        })?;
        let proof = LoneElements { var, axis };
        check_readers(analysis, &self.draft(kernel, &proof), var, axis)?;
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
        if let Some(strides) = &mut variable.layout.strides {
            strides.remove(axis);
        }
        let moved = |a: u32| if a as usize > axis { a - 1 } else { a };
        variable.layout.vector_axis = variable.layout.vector_axis.map(moved);
        if variable.shape.is_empty() {
            variable.layout.strides = None;
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let var = p.of(&draw::temporaries(kernel, 1))?;
        let axis = p.below(draw::axes(kernel, &var) as usize) as u32;
        Some(Self::new(var, axis))
    }
}

/// `{ s -> t in D : k(s) /= k(t) }` is empty.
fn check_readers(analysis: &Analysis, contracted: &Kernel, var: VarId, axis: usize) -> Result<(), Refusal> {
    let (poly, sites) = (analysis.polyhedral(), analysis.sites(var));
    let after = analysis.next(contracted);
    for d in after.dependences_of(&|v| v == var)?.into_iter().filter(|d| d.carries_value()) {
        for source in sites.iter().filter(|s| s.insn == d.source && s.writes()) {
            for sink in sites.iter().filter(|s| s.insn == d.sink && receives(s, d.kind)) {
                check_pair(poly, contracted, d, [source, sink], axis)?;
            }
        }
    }
    Ok(())
}

/// Whether an access is the end of a dependence of that kind.
fn receives(site: &AccessSite, kind: DependenceKind) -> bool {
    match site.mode {
        Mode::Read => kind == DependenceKind::Flow,
        Mode::Update(_) => true,
        Mode::Assign => false,
    }
}

fn check_pair(
    poly: &Polyhedral,
    contracted: &Kernel,
    d: &Dependence,
    [source, sink]: [&AccessSite; 2],
    axis: usize,
) -> Result<(), Refusal> {
    let Some(part) = different_elements(poly, d, [source, sink], axis)? else { return Ok(()) };
    let witness = d.witness(contracted, &part)?;
    ONE_ALIVE.refute(witness.map(|witness| another_element(poly, d, [source, sink], witness)))
}

fn another_element(
    poly: &Polyhedral,
    d: &Dependence,
    [source, sink]: [&AccessSite; 2],
    witness: Witness,
) -> LostValue {
    let read = element_at(poly, sink, &witness.sink.point, &witness.params);
    let written = element_at(poly, source, &witness.source.point, &witness.params);
    let known = |element: &str| element.contains('[');
    let found = if !known(&read) || !known(&written) {
        format!(
            "{} may read another element of `{}` than {} writes, and would find that one",
            witness.sink, poly.kernel.vars[d.var].name, witness.source
        )
    } else {
        format!(
            "{} reads `{read}` and would find what {} writes to `{written}`",
            witness.sink, witness.source
        )
    };
    let help = "keep the axis, or fuse the loops so that each value is read before the next is written";
    LostValue { witness, found, help: help.into() }
}

/// The pairs whose dropped indices may differ; `None` if there are none.
fn different_elements(
    poly: &Polyhedral,
    d: &Dependence,
    [source, sink]: [&AccessSite; 2],
    axis: usize,
) -> Result<Option<isl::Map>, isl::IslError> {
    let known = |site: &AccessSite, side| {
        let index = site.index[axis].as_ref().filter(|e| !site.reduction.iter().any(|i| e.mentions(*i)))?;
        Some((index.clone(), poly.affine(index, side)?))
    };
    let (Some((p, x)), Some((q, y))) = (known(source, Side::Source), known(sink, Side::Sink)) else {
        return d.relation().map(Some);
    };
    if p == q && settled(d, &p) {
        return Ok(None);
    }
    let e = difference(&y, &x);
    let less = isl::Constraint::non_negative(e.clone().offset(-1));
    let more = isl::Constraint::non_negative(isl::Affine::constant(-1).add_scaled(-1, &e));
    let whole = d.relation()?;
    whole.intersect(&isl::Map::from_disjuncts(&whole.space()?, &[vec![less], vec![more]])?).map(Some)
}

/// Whether an index has one value at both ends because it mentions nothing but loops that do not
/// advance.
fn settled(d: &Dependence, index: &Affine) -> bool {
    let mut same = true;
    index.for_each_symbol(&mut |atom| match atom {
        Atom::Iname(i) => same &= d.equal.contains(i),
        Atom::Var(_) | Atom::Floor(..) => {}
    });
    same
}
