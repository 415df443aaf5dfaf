//! Gives a temporary an axis for each of some loops.

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::Dependence;
use kingpost_analysis::polyhedral::{Polyhedral, step};
use kingpost_ir::{Affine, Expr, InameId, InsnId, Kernel, VarId};
use kingpost_isl as isl;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{
    NO_RULE, ONLY_ACCESSED, TEMPORARY, check_no_rule, check_only_accessed, rewrite_accesses, temporary,
};
use kingpost_steps::proofs::extent::parametric_extent;
use kingpost_steps::proofs::inside::NO_FAULT;
use kingpost_steps::refusal::{LostValue, Refusal};
use kingpost_steps::tree::loop_body;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Gives a temporary a leading axis for each of `inames`, so that every iteration of them has
/// elements of its own; the index is the loop's value, counted from its lower bound.
///
/// # Rewrite
/// ```text
/// temp t: f64                 =>   temp t: f64[n]
/// for i in 0..n                    for i in 0..n
///   s: t = a[i]                      s: t[i] = a[i]
///   r: b[i] = t*t                    r: b[i] = t[i]*t[i]
/// ```
/// The extent is the largest the loop can take, constant if there is a constant bound (4 for the
/// inner loop of a split by 4).
///
/// # Precondition
/// Every access lies inside the loops, and no value goes from one iteration to another: with
/// `D` the flow and update dependences through the variable, `{ s -> t in D : i(s) /= i(t)
/// }` is empty for each of `inames`. The range of each loop is affine in the parameters. If loops
/// are on axes, the placement must still hold.
///
/// # Errors
/// A value that an iteration takes from another one, with two instances; an access outside; a
/// reduction's iname; a variable that is no temporary, has strides, or is mentioned by a bound, an
/// assumption or a rule; a loop whose length is read from memory.
///
/// # Source
/// Kulkarni & Klöckner 2025, §4.2 (evaluation results over the quadrature loop).
///
/// # Elsewhere
/// Loopy `privatize_temporaries_with_inames`; Exo `expand_dim`; array expansion in the polyhedral
/// literature.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpandArray {
    /// The temporary.
    pub var: String,
    /// The loops, in the order of the new axes.
    pub inames: Vec<String>,
}

impl ExpandArray {
    /// Expands `var` over `inames`.
    pub fn new<S: Into<String>>(var: impl Into<String>, inames: impl IntoIterator<Item = S>) -> Self {
        Self { var: var.into(), inames: inames.into_iter().map(Into::into).collect() }
    }
}

impl fmt::Display for ExpandArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inames: Vec<_> = self.inames.iter().map(|i| format!("`{i}`")).collect();
        write!(f, "expand `{}` over {}", self.var, inames.join(", "))
    }
}

/// A new axis has no stride.
const NO_STRIDES: Obligation = Obligation::new("expand_array.no_strides", "the temporary has no strides");

/// The loops are loops of the program.
const OWN_LOOPS: Obligation = Obligation::new("expand_array.own_loops", "no loop belongs to a reduction");

/// Each iteration finds its own values.
pub(super) const SAME_ITERATION: Obligation = Obligation::new(
    "expand_array.same_iteration",
    "no value goes from one iteration of the loops to another",
);

/// Every use has an index.
pub(super) const INSIDE: Obligation =
    Obligation::new("expand_array.inside", "every use of the temporary is inside the loops");

/// The temporary is declared before the loops run.
const KNOWN_LENGTH: Obligation =
    Obligation::new("expand_array.known_length", "parameters bound the values of every loop");

/// Loops no value of a temporary leaves.
pub struct OwnValues {
    var: VarId,
    inames: Vec<InameId>,
    /// Lower bound and extent of each loop.
    axes: Vec<(Affine, Affine)>,
}

impl Primitive for ExpandArray {
    const NAME: &'static str = "expand_array";
    const VERB: Option<&'static str> = Some("expand");
    const SUMMARY: &'static str = "Gives a temporary an axis for each of some loops.";

    type Proof = OwnValues;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[
        OWN_LOOPS,
        NO_STRIDES,
        SAME_ITERATION,
        INSIDE,
        KNOWN_LENGTH,
        TEMPORARY,
        ONLY_ACCESSED,
        NO_RULE,
        NO_FAULT,
    ];

    fn check(&self, analysis: &Analysis) -> Result<OwnValues, Refusal> {
        let kernel = analysis.kernel();
        let var = temporary(kernel, &self.var, "buffer it in one first")?;
        let inames = self.loops(kernel)?;
        NO_STRIDES.require(kernel.vars[var].layout.is_row_major(), || {
            format!("`{}` has strides; expand it before padding it", self.var)
        })?;
        check_only_accessed(kernel, var)?;
        check_no_rule(kernel, var)?;
        self.check_carried(analysis, var, &inames)?;
        self.check_inside(kernel, var, &inames)?;
        let mut axes = Vec::new();
        for iname in &inames {
            let axis = parametric_extent(analysis.polyhedral(), *iname)?;
            axes.push(KNOWN_LENGTH.known(axis, || {
                format!(
                    "the length of `{}` is bounded by no expression of the parameters; assume bounds, or \
                     expand over loops of known length",
                    kernel.inames[*iname].name
                )
            })?);
        }
        Ok(OwnValues { var, inames, axes })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &OwnValues) {
        let axes = proof.inames.iter().zip(&proof.axes);
        let leading: Vec<_> =
            axes.map(|(i, (lo, _))| Expr::from_affine(&Affine::iname(*i).minus(lo))).collect();
        rewrite_accesses(kernel, proof.var, &mut |index| leading.iter().cloned().chain(index).collect());
        let variable = &mut kernel.vars[proof.var];
        variable.shape.splice(0..0, proof.axes.iter().map(|(_, extent)| extent.clone()));
        let added = proof.axes.len() as u32;
        variable.layout.vector_axis = variable.layout.vector_axis.map(|a| a.saturating_add(added));
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let var = p.of(&draw::temporaries(kernel, 0))?;
        let mut loops = draw::loops_around(kernel, &var);
        let keep = 1 + p.below(loops.len());
        Some(Self::new(var, loops.split_off(loops.len().saturating_sub(keep))))
    }
}

impl ExpandArray {
    fn loops(&self, kernel: &Kernel) -> Result<Vec<InameId>, Refusal> {
        if self.inames.is_empty() {
            return Err(Refusal::argument("inames", "no loop is given", "the loops to expand over"));
        }
        let mut found = Vec::new();
        for name in &self.inames {
            let iname = lookup::iname(kernel, name)?;
            OWN_LOOPS.require(loop_body(&kernel.body, iname).is_some(), || {
                format!("`{name}` belongs to a reduction and is no loop of its own")
            })?;
            if found.contains(&iname) {
                return Err(Refusal::argument(
                    "inames",
                    format!("`{name}` is named twice"),
                    "each loop once",
                ));
            }
            found.push(iname);
        }
        Ok(found)
    }

    /// `{ s -> t in D : i(s) /= i(t) }` is empty; what is outside `i` is in no iteration of it.
    pub(super) fn check_values(
        &self,
        kernel: &Kernel,
        var: VarId,
        inames: &[InameId],
    ) -> Result<(), Refusal> {
        self.check_carried(&Analysis::of(kernel), var, inames)
    }

    fn check_carried(&self, analysis: &Analysis, var: VarId, inames: &[InameId]) -> Result<(), Refusal> {
        let kernel = analysis.kernel();
        for d in analysis.dependences_of(&|v| v == var)?.into_iter().filter(|d| d.carries_value()) {
            for iname in inames {
                if d.equal.contains(iname) {
                    continue;
                }
                let part = between_iterations(analysis.polyhedral(), d, *iname)?;
                let loops = &kernel.inames[*iname].name;
                SAME_ITERATION.refute(d.witness(kernel, &part)?.map(|witness| {
                    let found = format!(
                        "{} takes the value of `{}` from {}, which is not in the same iteration of `{loops}`",
                        witness.sink, witness.element, witness.source
                    );
                    let help = format!("keep `{}` as it is over `{loops}`", self.var);
                    LostValue { witness, found, help }
                }))?;
            }
        }
        Ok(())
    }

    pub(super) fn check_inside(
        &self,
        kernel: &Kernel,
        var: VarId,
        inames: &[InameId],
    ) -> Result<(), Refusal> {
        for (insn, loops) in kernel.schedule() {
            let Some(missing) = inames.iter().find(|i| !loops.contains(i)) else { continue };
            INSIDE.require(!uses(kernel, insn, var), || {
                format!(
                    "`{}` uses `{}` outside `{}`; expand over loops around every use",
                    kernel.insns[insn].name, self.var, kernel.inames[*missing].name
                )
            })?;
        }
        Ok(())
    }
}

fn uses(kernel: &Kernel, insn: InsnId, var: VarId) -> bool {
    let insn = &kernel.insns[insn];
    insn.accesses(var)
}

/// The pairs of a dependence in different iterations of a loop.
fn between_iterations(poly: &Polyhedral, d: &Dependence, iname: InameId) -> Result<isl::Map, isl::IslError> {
    if !poly.common_loops(d.source, d.sink).contains(&iname) {
        return d.relation();
    }
    let forward = step(poly, iname).offset(-1);
    let backward = isl::Affine::constant(-1).add_scaled(-1, &step(poly, iname));
    let differ = [forward, backward].map(|e| vec![isl::Constraint::non_negative(e)]);
    d.relation_where(&differ)
}
