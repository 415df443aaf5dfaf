//! Reads what a region is going to read of an array, for a cache.

use kingpost_analysis::Analysis;
use kingpost_ir::{AddressSpace, Expr, InsnId, Kernel, VarId};
use kingpost_steps::argument;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::footprint::CONSTANT_BOX;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::staging::{
    AFFINE_READS, BOX_NOT_EMPTY, BOX_SIZE, CLOSED_FORM, Footprint, Limits, NO_RULE_READS, Region,
    SOMETHING_READS, Staged, Staging, Temporary, check_no_rule_reads, filled_name, rule_that_reads,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reads the box of elements of `var` that one iteration of the loop `at` reads, right before the
/// first node of its body that reads them, into a temporary scalar that nothing reads.
///
/// # Rewrite
/// ```text
/// for i in 0..n                        =>   for i in 0..n
///   for k in 0..8                             for a_seen_0 in 0..8
///     S(a[i, k])                                touch_a_seen: a_seen = a[i, a_seen_0]
///                                             for k in 0..8
///                                               S(a[i, k])
/// ```
/// With `ahead` it is what a later iteration reads, where there is one:
/// ```text
/// for a_seen_at in i + 2..min(n, i + 3)
///   for a_seen_0 in 0..8
///     touch_a_seen: a_seen = a[a_seen_at, a_seen_0]
/// ```
/// Alone it is work for nothing. A callee whose code is a hint takes its place: `prefetch_f64`
/// or one for several neighbours, by `replace_with_intrinsic`. Such code stores nothing, and
/// nothing may read what its meaning stores. Elements of the box that are not in the array are left
/// out by the bounds of the loops. In local memory the first work-item of a group reads for all, in
/// private memory each that runs the statement.
///
/// # Precondition
/// Nothing writes `var`, so that a read anywhere has no dependence. The box has constant extents. Of
/// a later iteration `i + ahead`, the domain of the loop holds it, so that it reads what the loop
/// reads anyway.
///
/// # Errors
/// An unknown variable or loop, a scalar, an array that the region does not read or that something
/// writes, an index that is not affine, reads inside a rule, an extent that is not a constant,
/// taken names.
///
/// # Source
/// Callahan et al. 1991, section 2 (software prefetches).
///
/// # Elsewhere
/// Halide `prefetch`; TVM `prefetch`; Loopy has none, Exo none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TouchArray {
    /// The array.
    pub var: String,
    /// The loop in whose body the reads stand; the whole kernel if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// `local` or `private`, where the temporary is.
    #[serde(serialize_with = "argument::write", deserialize_with = "argument::read")]
    #[schemars(schema_with = "argument::copy_spaces")]
    pub space: AddressSpace,
    /// Name of the temporary; `{var}_seen` if absent, with a number if that is taken. Loops and the
    /// instruction are named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<String>,
    /// Names of the loops, one for each axis of the box with several elements; `{temporary}_0`, …
    /// if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inames: Vec<String>,
    /// Iterations of `at` between the reads and this one; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<i64>,
}

impl TouchArray {
    /// Reads what an iteration of `at` is going to read of `var`, into a temporary in `space`.
    pub fn new(var: impl Into<String>, at: impl Into<String>, space: AddressSpace) -> Self {
        Self { var: var.into(), at: Some(at.into()), space, temporary: None, inames: Vec::new(), ahead: None }
    }

    /// Calls the loops so, outer first.
    #[must_use]
    pub fn by_loops<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.inames = names.into_iter().map(Into::into).collect();
        self
    }

    /// Reads what the iteration reads that is this number of iterations later.
    #[must_use]
    pub fn ahead(mut self, iterations: i64) -> Self {
        self.ahead = Some(iterations);
        self
    }

    fn name(&self) -> String {
        self.temporary.clone().unwrap_or_else(|| format!("{}_seen", self.var))
    }

    fn temporary<'a>(&'a self, name: &'a str) -> Temporary<'a> {
        let (space, inames) = (self.space, &self.inames);
        Temporary { name, space, inames, work_items: &[], footprint: Footprint::Box, verb: "touch" }
    }
}

impl fmt::Display for TouchArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        f.write_str(&self.temporary(&name).describe("touch", &self.var, self.at.as_ref(), None))?;
        self.ahead.map_or(Ok(()), |ahead| write!(f, ", {ahead} ahead"))
    }
}

/// Scalars are in registers.
const ARRAY: Obligation = Obligation::new("touch_array.array", "the variable has an axis");

/// A read anywhere gives the same, and orders nothing.
const UNWRITTEN: Obligation = Obligation::new("touch_array.unwritten", "nothing writes the array");

/// Other work-items never see the temporary.
const PLACE: Obligation = Obligation::new("touch_array.place", "the temporary is in local or private memory");

/// Reads that nothing uses, and the place for them.
pub struct Touched(Staging);

impl Primitive for TouchArray {
    const NAME: &'static str = "touch_array";
    const SUMMARY: &'static str = "Reads what a region is going to read of an array, for a cache.";

    type Proof = Touched;
    type Made = Staged;

    const OBLIGATIONS: &'static [Obligation] = &[
        ARRAY,
        UNWRITTEN,
        PLACE,
        SOMETHING_READS,
        NO_RULE_READS,
        AFFINE_READS,
        BOX_NOT_EMPTY,
        BOX_SIZE,
        CLOSED_FORM,
        CONSTANT_BOX,
    ];

    fn check(&self, analysis: &Analysis) -> Result<Touched, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        ARRAY.require(!kernel.vars[var].shape.is_empty(), || {
            format!("`{}` is a scalar, which is in a register; only arrays are touched", self.var)
        })?;
        check_unwritten(kernel, var)?;
        PLACE.require(self.space != AddressSpace::Global, || {
            "all groups would write one place in global memory; take `local` or `private`".into()
        })?;
        let ahead = self.ahead.unwrap_or(0); // default: this iteration
        if self.ahead.is_some_and(|ahead| ahead < 1 || self.at.is_none()) {
            return Err(Refusal::argument(
                "ahead",
                format!("{ahead} iterations"),
                "a positive number of iterations of the loop `at`",
            ));
        }
        let reads = |i: InsnId| {
            let is_read = |e: &Expr| e.as_load().is_some_and(|a| a.var == var);
            kernel.insns[i].expressions().any(|e| e.any(&mut |e| is_read(e)))
                || rule_that_reads(kernel, i, var).is_some()
        };
        let region = Region::of(kernel, var, self.at.as_deref(), &reads, (&SOMETHING_READS, "read"))?;
        check_no_rule_reads(kernel, &region.insns, var)?;
        let name = filled_name(kernel, self.temporary.as_deref(), &self.name(), "touch")?;
        let temporary = self.temporary(&name);
        let space = temporary.check(kernel)?;
        let (poly, sites) = (analysis.polyhedral(), analysis.sites(var));
        let reads = region.reads(poly, sites)?;
        let array = &kernel.vars[var];
        let tile = region.tile(poly, &reads, Footprint::Box, Limits::of(&array.shape))?;
        temporary.plan(analysis, region, tile, (array.ty.loaded(), space)).touched(ahead).map(Touched)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Touched) -> Staged {
        proof.0.edit(kernel)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let at = p.of(&draw::loops(kernel))?;
        let var = p.of(&draw::read_inside(kernel, &at))?;
        let step = Self::new(var, at, p.among([AddressSpace::Local, AddressSpace::Private]));
        Some(if p.one_in(2) { step.ahead(1 + p.below(3) as i64) } else { step })
    }
}

/// Formula: no instruction has an access of `var` on its left.
fn check_unwritten(kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
    let writer = kernel.insns.values().find(|insn| insn.lhs.var == var);
    UNWRITTEN.require(writer.is_none(), || {
        let writer = writer.map_or("", |insn| &insn.name);
        format!(
            "`{writer}` writes `{}`, and a read that nothing uses would wait for it; touch what is only read",
            kernel.vars[var].name
        )
    })
}
