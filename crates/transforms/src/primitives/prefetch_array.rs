//! Copies what a region reads of an array to a temporary.

use kingpost_analysis::Analysis;
use kingpost_ir::{AddressSpace, Expr, InsnId, Kernel};
use kingpost_steps::argument;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup::{self, Selection};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::CURRENT;
use kingpost_steps::proofs::footprint::CONSTANT_BOX;
use kingpost_steps::proofs::stale::{Place, check_unchanged};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::staging::{
    AFFINE_READS, BOX_NOT_EMPTY, BOX_SIZE, CLOSED_FORM, DEFINED_BOX, Footprint, Limits, NO_RULE_READS,
    Region, SOMETHING_READS, Staged, Staging, Temporary, check_no_rule_reads, filled_name, rule_that_reads,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Copies the box of elements of `var` that one iteration of the loop `at` reads to a temporary,
/// right before the first node of its body that reads them, and reads the temporary instead.
///
/// # Rewrite
/// ```text
/// for k_o in 0..floor_div(n, 8)        =>   for k_o in 0..floor_div(n, 8)
///   for k_i in 0..8                           for a_tile_0 in 0..8
///     S(a[8*k_o + k_i])                         fetch_a_tile: a_tile[a_tile_0] = a[8*k_o + a_tile_0]
///                                             for k_i in 0..8
///                                               S(a_tile[k_i])
/// ```
/// Axes along which the box has one element disappear. In global memory the box has all of an axis
/// along which its extent would be no constant. Elements of the box that are not in the
/// array are left out by the bounds of the copy loops. Halves stay halves in local and global memory. With `work_items` the copy is one flat loop
/// of constant length, in rounds of a work-group, the last entry outermost:
/// ```text
/// for t_o in 0..2
///   for t_l1 in 0..4 {l.1}
///     for t_l0 in 0..32 {l.0} where 128*t_o + 32*t_l1 + t_l0 < 192
/// ```
/// With the footprint `exact` the copy loops run for the elements that are read and no others: of a
/// triangle a triangle. The temporary stays as large as the box. Conditions on values from memory
/// narrow nothing. The copy is an instruction of its own; the instances of the others stay. With
/// `only` the other reads stay, also in the same instruction: `prefetch_array(p, at: block, space:
/// local, only: ["p[j, *]"])`.
///
/// # Precondition
/// With `L` the loops around the copy, for every write `w` of `var` after it and every read `r`:
/// `{ w -> r : L = L', element(w) = element(r), w before r }` is empty. The box has constant
/// extents, or is in global memory. What may be undefined (temporaries and `out` arguments) is copied only if nothing is
/// copied but what is surely read. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown variable or loop, a scalar, an array that the region does not read, an index that is
/// not affine, reads inside a rule, an extent that is not a constant, taken names; a write between
/// the copy and a read, with two instances; a copy that the placement breaks.
///
/// # Source
/// Kulkarni & Klöckner 2025, section 4.2.2.
///
/// # Elsewhere
/// Loopy `add_prefetch`; Halide `compute_at` with `store_in`; Exo `stage_mem`; TVM
/// `cache_read`; MLIR `affine-data-copy-generate`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefetchArray {
    /// The array.
    pub var: String,
    /// The loop in whose body the copy stands; the whole kernel if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// `global`, `local` or `private`.
    #[serde(serialize_with = "argument::write", deserialize_with = "argument::read")]
    #[schemars(schema_with = "argument::copy_spaces")]
    pub space: AddressSpace,
    /// Name of the temporary; `{var}_tile` if absent, with a number if that is taken. Loops and the
    /// instruction are named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<String>,
    /// Names of the copy loops, one for each axis of the temporary; `{temporary}_0`, … if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inames: Vec<String>,
    /// Work-items along `l.0`, `l.1`, `l.2` that share one flat copy loop; none: loops over the
    /// axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_items: Vec<i64>,
    /// Which elements are copied: the `box` around what is read, or `exact`ly that.
    #[serde(default, skip_serializing_if = "Footprint::is_box")]
    pub footprint: Footprint,
    /// The instructions whose reads are replaced; all inside the loop if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insns: Option<Selection>,
    /// The texts of the reads that are replaced, such as `a[j, *]`; all if absent. In them `*` stands for any
    /// number of letters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
}

impl PrefetchArray {
    /// Copies what an iteration of `at` reads of `var` to a temporary in `space`.
    pub fn new(var: impl Into<String>, at: impl Into<String>, space: AddressSpace) -> Self {
        Self { at: Some(at.into()), ..Self::whole(var, space) }
    }

    /// Copies what the kernel reads of `var`.
    pub fn whole(var: impl Into<String>, space: AddressSpace) -> Self {
        Self {
            var: var.into(),
            at: None,
            space,
            temporary: None,
            inames: Vec::new(),
            work_items: Vec::new(),
            footprint: Footprint::Box,
            insns: None,
            only: Vec::new(),
        }
    }

    /// Calls the temporary `name`.
    #[must_use]
    pub fn into_temporary(mut self, name: impl Into<String>) -> Self {
        self.temporary = Some(name.into());
        self
    }

    /// Copies by a flat loop over the work-items of a group.
    #[must_use]
    pub fn by_work_items(mut self, sizes: impl IntoIterator<Item = i64>) -> Self {
        self.work_items = sizes.into_iter().collect();
        self
    }

    /// Copies exactly what is read.
    #[must_use]
    pub fn exactly(mut self) -> Self {
        self.footprint = Footprint::Exact;
        self
    }

    /// Replaces the reads of these instructions only.
    #[must_use]
    pub fn only_in(mut self, insns: Selection) -> Self {
        self.insns = Some(insns);
        self
    }

    /// Replaces the reads of these texts only.
    #[must_use]
    pub fn only_reads<S: Into<String>>(mut self, texts: impl IntoIterator<Item = S>) -> Self {
        self.only = texts.into_iter().map(Into::into).collect();
        self
    }

    fn name(&self) -> String {
        self.temporary.clone().unwrap_or_else(|| format!("{}_tile", self.var))
    }
}

impl fmt::Display for PrefetchArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        let temporary = self.temporary(&name);
        f.write_str(&temporary.describe("prefetch", &self.var, self.at.as_ref(), self.insns.as_ref()))?;
        f.write_str(&lookup::with_texts(&self.only))
    }
}

/// Scalars are read where they are.
const ARRAY: Obligation = Obligation::new("prefetch_array.array", "the variable has an axis");

/// A copy that holds what is read, and the place for it.
pub struct Copied(Staging);

impl Primitive for PrefetchArray {
    const NAME: &'static str = "prefetch_array";
    const VERB: Option<&'static str> = Some("prefetch");
    const SUMMARY: &'static str = "Copies what a region reads of an array to a temporary.";

    type Proof = Copied;
    type Made = Staged;

    const OBLIGATIONS: &'static [Obligation] = &[
        ARRAY,
        SOMETHING_READS,
        NO_RULE_READS,
        AFFINE_READS,
        CURRENT,
        BOX_NOT_EMPTY,
        BOX_SIZE,
        DEFINED_BOX,
        CLOSED_FORM,
        CONSTANT_BOX,
    ];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Copied, Refusal> {
        let kernel = analysis.kernel();
        let region = self.region(kernel)?;
        let name = filled_name(kernel, self.temporary.as_deref(), &self.name(), "fetch")?;
        let temporary = self.temporary(&name);
        let space = temporary.check(kernel)?;
        let (poly, sites) = (analysis.polyhedral(), analysis.sites(region.var));
        let reads = region.reads(poly, sites)?;
        let place = Place { loops: &region.around, position: poly.position(region.first), what: "the copy" };
        let help = "prefetch it in a loop further inside, or after that write";
        check_unchanged(poly, sites, &reads, place, help)?;
        let array = &kernel.vars[region.var];
        let tile = region.tile(poly, &reads, self.footprint, Limits::of(&array.shape).in_memory(space))?;
        region.check_defined(poly, &reads, &tile)?;
        // registers hold what is computed with; in memory, a copy is as large as what is copied
        let in_memory = matches!(space, AddressSpace::Local | AddressSpace::Global);
        let ty = if in_memory && array.ty.is_half() { array.ty } else { array.ty.loaded() };
        temporary.plan(analysis, region, tile, (ty, space)).filled().map(Copied)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Copied) -> Staged {
        proof.0.edit(kernel)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let at = p.of(&draw::loops(kernel))?;
        let var = p.of(&draw::read_inside(kernel, &at))?;
        let spaces = [AddressSpace::Local, AddressSpace::Private, AddressSpace::Local];
        let space = if p.below(16) == 7 { AddressSpace::Global } else { p.among(spaces) };
        let step = Self::new(&var, at, space).into_temporary(kernel.fresh_name("tile"));
        let items = match p.below(4) {
            0 => vec![3],
            1 => vec![2, 2],
            _ => vec![],
        };
        let step = step.by_work_items(items);
        let step = if p.one_in(4) { step.only_reads(p.of(&texts_of_reads(kernel, &var))) } else { step };
        Some(if p.one_in(3) { step.exactly() } else { step })
    }
}

impl PrefetchArray {
    fn temporary<'a>(&'a self, name: &'a str) -> Temporary<'a> {
        let (space, inames, work_items) = (self.space, &self.inames, &self.work_items);
        Temporary { name, space, inames, work_items, footprint: self.footprint, verb: "fetch" }
    }

    fn region(&self, kernel: &Kernel) -> Result<Region, Refusal> {
        let var = lookup::var(kernel, &self.var)?;
        ARRAY.require(!kernel.vars[var].shape.is_empty(), || {
            format!("`{}` is a scalar; only arrays are prefetched", self.var)
        })?;
        let chosen = self.insns.as_ref().map(|s| s.resolve(kernel)).transpose()?;
        let wanted = |i: InsnId| chosen.as_ref().is_none_or(|chosen| chosen.contains(&i));
        let is_read =
            |e: &Expr| e.as_load().is_some_and(|a| a.var == var) && lookup::has_text(kernel, e, &self.only);
        let loads = |i: InsnId| {
            kernel.insns[i].expressions().any(|e| e.any(&mut |e| is_read(e)))
                || (self.only.is_empty() && rule_that_reads(kernel, i, var).is_some())
        };
        let reads = |i| wanted(i) && loads(i);
        SOMETHING_READS.require(self.only.is_empty() || kernel.insns.ids().any(reads), || {
            let texts = texts_of_reads(kernel, &self.var);
            let texts = lookup::near(&self.only.join(" "), texts.iter().map(String::as_str));
            format!("no read of `{}` has such a text; there is {texts}", self.var)
        })?;
        let region = Region::of(kernel, var, self.at.as_deref(), &reads, (&SOMETHING_READS, "read"))?;
        let region = Region { only: self.only.clone(), ..region };
        check_no_rule_reads(kernel, &region.insns, var)?;
        Ok(region)
    }
}

/// The texts of the reads of an array.
fn texts_of_reads(kernel: &Kernel, var: &str) -> Vec<String> {
    let mut texts = std::collections::BTreeSet::new();
    for e in kernel.insns.values().flat_map(|i| i.expressions()) {
        e.for_each(&mut |e| {
            if e.as_load().is_some_and(|a| kernel.vars[a.var].name == var) {
                texts.insert(kernel.show_expr(e).to_string());
            }
        });
    }
    texts.into_iter().collect()
}
