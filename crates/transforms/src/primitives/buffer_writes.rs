//! Writes to a temporary that stands for a box of an array, and stores it once.

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::pair::{Order, pair_relation};
use kingpost_analysis::deps::{AccessSite, Mode};
use kingpost_analysis::polyhedral::{Polyhedral, Side};
use kingpost_ir::neutral::neutral;
use kingpost_ir::{
    AddressSpace, Direction, Insn, InsnId, Kernel, UpdateOp, VarId, VarKind, Variable, WriteOp,
};
use kingpost_isl as isl;
use kingpost_steps::argument;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup::{self, NO_REDUCTION};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{ONLY_ACCESSED, check_only_accessed};
use kingpost_steps::proofs::footprint::CONSTANT_BOX;
use kingpost_steps::proofs::stale::witness;
use kingpost_steps::refusal::{LostValue, Refusal};
use kingpost_steps::staging::{
    BOX_NOT_EMPTY, BOX_SIZE, Footprint, Limits, NO_RULE_READS, Region, STORE, Staged, Staging, Start,
    Temporary, Tile, check_no_rule_reads, check_work_items, memory,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets one iteration of the loop `at` write a temporary instead of `var`, from the first node of
/// its body that writes `var` to the last one, and stores the temporary after that.
///
/// # Rewrite
/// Where `var` is only updated, by one operator, the temporary starts from the neutral element and
/// is added (by that operator) at the end:
/// ```text
/// for i in 0..n                  =>   for i in 0..n
///   for k in 0..m                       start_y_buffer: y_buffer = 0.0
///     s: y[i] += a[i, k]                for k in 0..m
///                                         s: y_buffer += a[i, k]
///                                       store_y_buffer: y[i] += y_buffer
/// ```
/// Where every element of the box is assigned before anything else happens to it, the temporary
/// starts undefined and is stored; else it starts as a copy of the box. The box is the smallest one
/// found around everything the region touches; axes along which it has one element disappear. With
/// `work_items` the loops that start and store it are flat loops over the work-items of a group, as
/// those of `prefetch_array`.
///
/// If data says which elements are updated, and nothing else is done to the array, the temporary has all of
/// the axis: a histogram of its own for each group or work-item.
/// ```text
/// for b in 0..4                  =>   for b in 0..4
///   for i in 0..n                       for start_c_buffer_0 in 0..256
///     s: c[x[b, i]] += 1                  start_c_buffer: c_buffer[start_c_buffer_0] = 0
///                                       for i in 0..n
///                                         s: c_buffer[x[b, i]] += 1
///                                       for store_c_buffer_0 in 0..256
///                                         store_c_buffer: c[store_c_buffer_0] += c_buffer[store_c_buffer_0]
/// ```
///
/// # Precondition
/// With `L` the loops around the temporary and `W` the writes of the region: (1) every access of
/// the region is affine, or is a read `r` through a map with `{ w -> r : w in W, L = L', w before r
/// }` empty for the elements they may share, or all are updates by one operator; (2) the box has constant extents; (3) what the start
/// or the final update reads is defined: `var` is an `inout` argument, or the updates fill the box,
/// `{ (L, e) : e in the box }` is a subset of `{ (L, e) : e is surely updated }`. Updates are
/// reassociated, which they declare to allow. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown variable or loop, something that is not written there, a write through a map, an
/// access inside a rule, an extent that is not constant, elements that may be undefined, names that
/// are taken; an array that another instruction reads through a map, with the write and the read; a store
/// that the placement breaks.
///
/// # Elsewhere
/// Loopy `buffer_array`; Halide `rfactor` and `store_in`; Exo `stage_mem`; TVM `cache_write`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferWrites {
    /// The array, or scalar.
    pub var: String,
    /// The loop in whose body the temporary lives; the whole kernel if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// `global`, `local` or `private`.
    #[serde(serialize_with = "argument::write", deserialize_with = "argument::read")]
    #[schemars(schema_with = "argument::copy_spaces")]
    pub space: AddressSpace,
    /// Name of the temporary; `{var}_buffer` if absent, with a number if that is taken. Loops and
    /// instructions are named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<String>,
    /// Work-items along `l.0`, `l.1`, `l.2` that share flat loops; none: loops over the axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_items: Vec<i64>,
}

impl BufferWrites {
    /// Buffers what an iteration of `at` writes of `var` in `space`.
    pub fn new(var: impl Into<String>, at: impl Into<String>, space: AddressSpace) -> Self {
        Self { at: Some(at.into()), ..Self::whole(var, space) }
    }

    /// Buffers what the kernel writes of `var`.
    pub fn whole(var: impl Into<String>, space: AddressSpace) -> Self {
        Self { var: var.into(), at: None, space, temporary: None, work_items: Vec::new() }
    }

    /// Calls the temporary `name`.
    #[must_use]
    pub fn into_temporary(mut self, name: impl Into<String>) -> Self {
        self.temporary = Some(name.into());
        self
    }

    /// Starts and stores the temporary by flat loops over the work-items of a group.
    #[must_use]
    pub fn by_work_items(mut self, sizes: impl IntoIterator<Item = i64>) -> Self {
        self.work_items = sizes.into_iter().collect();
        self
    }

    fn name(&self) -> String {
        self.temporary.clone().unwrap_or_else(|| format!("{}_buffer", self.var))
    }
}

impl fmt::Display for BufferWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        f.write_str(&self.temporary(&name).describe("buffer writes of", &self.var, self.at.as_ref(), None))
    }
}

/// There is something to buffer.
const SOMETHING_WRITES: Obligation =
    Obligation::new("buffer_writes.something_writes", "an instruction of the region writes the array");

/// It is known which elements are written.
const AFFINE_WRITES: Obligation = Obligation::new(
    "buffer_writes.affine_writes",
    "every index of a write is affine in the loops and parameters, or the region only updates the array by one operator",
);

/// What is buffered is not missed.
const NOT_MISSED: Obligation = Obligation::new(
    "buffer_writes.not_missed",
    "no read through a map finds an element that the buffer holds",
);

/// What the start or the final update reads has a value.
const DEFINED: Obligation = Obligation::new(
    "buffer_writes.defined",
    "the array is an `inout` argument, or every element of the box is surely written",
);

/// The box of the array that is buffered, and the parts of the kernel that buffer it.
pub struct BufferedBox(Staging);

impl Primitive for BufferWrites {
    const NAME: &'static str = "buffer_writes";
    const SUMMARY: &'static str = "Writes to a temporary instead of an array, and stores it once.";

    type Proof = BufferedBox;
    type Made = Staged;

    const OBLIGATIONS: &'static [Obligation] = &[
        SOMETHING_WRITES,
        NO_RULE_READS,
        AFFINE_WRITES,
        NOT_MISSED,
        BOX_NOT_EMPTY,
        BOX_SIZE,
        DEFINED,
        ONLY_ACCESSED,
        NO_REDUCTION,
        CONSTANT_BOX,
    ];
    const KEEPS: Keeps = Keeps::REASSOCIATED;

    fn check(&self, analysis: &Analysis) -> Result<BufferedBox, Refusal> {
        let kernel = analysis.kernel();
        let region = self.region(kernel)?;
        let (name, space) = self.check_arguments(kernel, region.var)?;
        let poly = analysis.polyhedral();
        let sites: Vec<_> =
            analysis.sites(region.var).iter().filter(|s| region.insns.contains(&s.insn)).collect();
        let buffered = buffered(&region, poly, &sites)?;
        let array = &kernel.vars[region.var];
        let tile = Tile::around(poly, region.var, &buffered, &region.around, Limits::of(&array.shape))?;
        let (first, store) = match start(&region, poly, &buffered, &tile)? {
            Holds::Neutral(op) => {
                let writes =
                    region.insns.iter().map(|i| &kernel.insns[*i]).filter(|i| i.lhs.var == region.var);
                let atomic = writes.into_iter().any(Insn::is_atomic);
                (Some(Start::Value(neutral(op, array.ty))), WriteOp::Update { op, atomic })
            }
            Holds::Undefined => (None, WriteOp::Assign),
            Holds::Array => (Some(Start::Copy), WriteOp::Assign),
        };
        let plan = self.temporary(&name).plan(analysis, region, tile, (array.ty, space));
        plan.stored(first, store).map(BufferedBox)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &BufferedBox) -> Staged {
        proof.0.edit(kernel)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let written = draw::vars(kernel, |v| {
            let of = |i: &kingpost_ir::Insn| kernel.vars[i.lhs.var].name == v.name;
            kernel.insns.values().any(of)
        });
        let var = p.of(&written)?;
        let space = p.among([AddressSpace::Private, AddressSpace::Local, AddressSpace::Private]);
        let step = match p.of(&draw::loops_around(kernel, &var)) {
            Some(at) => Self::new(var, at, space),
            None => Self::whole(var, space),
        };
        let step = step.into_temporary(kernel.fresh_name("buffer"));
        Some(if p.one_in(4) { step.by_work_items([3]) } else { step })
    }
}

/// What the temporary holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// The neutral element of the operator that stores it.
    Neutral(UpdateOp),
    /// Nothing: all of it is assigned first.
    Undefined,
    /// What the array holds.
    Array,
}

/// The accesses of the region that the buffer serves: the affine ones, while the others must be reads of
/// what no write of the region has changed; or all, if they are updates by one operator, which may find
/// any element.
fn buffered<'s>(
    region: &Region,
    poly: &Polyhedral,
    sites: &[&'s AccessSite],
) -> Result<Vec<&'s AccessSite>, Refusal> {
    let (affine, others): (Vec<&AccessSite>, Vec<&AccessSite>) =
        sites.iter().copied().partition(|s| s.is_affine());
    let name = &poly.kernel.vars[region.var].name;
    if others.iter().any(|s| s.writes()) && operator(sites).is_some() {
        return Ok(sites.to_vec());
    }
    for other in others {
        let insn = &poly.kernel.insns[other.insn].name;
        AFFINE_WRITES.decide(!other.writes(), || {
            format!(
                "`{insn}` writes `{name}` through an index that is not affine in the loops and parameters, so \
                 what it writes is not known; buffer in a loop without that write, or in one that only updates \
                 `{name}` by one operator"
            )
        })?;
        for write in affine.iter().filter(|s| s.writes()) {
            let order = Order::Within(&region.around);
            let Some(pair) = pair_relation(poly, write, other, order) else { continue };
            let witness = witness(&poly.kernel, write, other, &pair.map(poly)?)?;
            NOT_MISSED.refute(witness.map(|witness| missed(name, witness)))?;
        }
    }
    Ok(affine)
}

/// The operator of all accesses, if they are updates by one.
fn operator(sites: &[&AccessSite]) -> Option<UpdateOp> {
    let Mode::Update(op) = sites.first()?.mode else { return None };
    sites.iter().all(|s| s.mode == Mode::Update(op)).then_some(op)
}

/// What the temporary must hold at first, and whether that and the final store are defined.
fn start(region: &Region, poly: &Polyhedral, sites: &[&AccessSite], tile: &Tile) -> Result<Holds, Refusal> {
    let var = &poly.kernel.vars[region.var];
    let given = var.kind == VarKind::Argument(Direction::InOut);
    if let Some(op) = operator(sites) {
        let known = sites.iter().all(|s| s.is_affine());
        let defined = given || (known && tile.is_filled_by(poly, sites, &region.around)?);
        DEFINED.decide(defined, || undefined(var))?;
        return Ok(Holds::Neutral(op));
    }
    let assigns: Vec<_> = sites.iter().copied().filter(|s| s.mode == Mode::Assign).collect();
    let mut assigned = tile.is_filled_by(poly, &assigns, &region.around)?;
    for site in sites.iter().filter(|s| s.mode != Mode::Assign) {
        assigned = assigned && is_assigned_before(region, poly, &assigns, site)?;
    }
    DEFINED.decide(assigned || given, || undefined(var))?;
    Ok(if assigned { Holds::Undefined } else { Holds::Array })
}

/// Whether an access surely comes after an assignment of its element in the same iteration of
/// the loops around.
///
/// Formula: `instances(s)` is a subset of the range of the union of
/// `{ w -> s : L = L', element(w) = element(s), w before s }` over the certain assignments `w`.
fn is_assigned_before(
    region: &Region,
    poly: &Polyhedral,
    assigns: &[&AccessSite],
    site: &AccessSite,
) -> Result<bool, isl::IslError> {
    if !site.reduction.is_empty() {
        return Ok(false); // the relation does not say at which points of the reduction
    }
    let certain = |w: &&&AccessSite| {
        let insn = &poly.kernel.insns[w.insn];
        insn.predicate.is_none() && poly.domains(poly.loops(w.insn), Side::Source).1
    };
    let mut covered: Option<isl::Set> = None;
    for write in assigns.iter().filter(certain) {
        let Some(pair) = pair_relation(poly, write, site, Order::Within(&region.around)) else { continue };
        let range = pair.map(poly)?.range()?;
        covered = Some(match covered {
            None => range,
            Some(all) => all.union(&range)?,
        });
    }
    let Some(covered) = covered else { return Ok(false) };
    let (domain, _) = poly.instances_under(site.insn, site.conditions, Side::Sink);
    isl::Set::from_disjuncts(&covered.space()?, &poly.in_context(domain))?.is_subset(&covered)
}

fn missed(var: &str, witness: kingpost_analysis::Witness) -> LostValue {
    let found = format!(
        "{} reads `{var}`{} and may find the element that {} writes, which the buffer would still hold",
        witness.sink,
        witness.through_text(),
        witness.source
    );
    let help = "buffer in a loop further inside, without that read".into();
    LostValue { witness, found, help }
}

fn undefined(var: &Variable) -> String {
    format!(
        "not every element of the box around what is written of `{}` is surely written, and of {} the others may be \
         undefined; buffer in a loop that writes a whole box, or make it an `inout` argument",
        var.name,
        if var.kind == VarKind::Temporary { "a temporary" } else { "an output" }
    )
}

impl BufferWrites {
    /// The name of the temporary, the one that is asked for or one that is free, and where it lives.
    fn check_arguments(&self, kernel: &Kernel, var: VarId) -> Result<(String, AddressSpace), Refusal> {
        let all = |name: &str| ["", "start_", "store_"].map(|prefix| format!("{prefix}{name}")).to_vec();
        let name = lookup::made(kernel, self.temporary.as_deref(), &self.name(), all)?;
        check_work_items(&self.work_items)?;
        check_only_accessed(kernel, var)?;
        Ok((name, memory(self.space, "buffer")?))
    }

    fn temporary<'a>(&'a self, name: &'a str) -> Temporary<'a> {
        let (space, work_items, footprint) = (self.space, &self.work_items, Footprint::Box);
        Temporary { name, space, inames: &[], work_items, footprint, verb: STORE }
    }

    fn region(&self, kernel: &Kernel) -> Result<Region, Refusal> {
        let var = lookup::var(kernel, &self.var)?;
        let writes = |i: InsnId| kernel.insns[i].lhs.var == var;
        let region = Region::of(kernel, var, self.at.as_deref(), &writes, (&SOMETHING_WRITES, "write"))?;
        let region = region.with_all_between(kernel)?;
        check_no_rule_reads(kernel, &region.insns, var)?;
        Ok(region)
    }
}
