//! Lets the iterations of a loop with a running total start from totals that a scan over the
//! work-items gives.

mod chunks;
mod edit;

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::pair::{Order, pair_relation};
use kingpost_analysis::deps::{AccessSite, Mode};
use kingpost_analysis::polyhedral::{Polyhedral, smallest_point};
use kingpost_ir::{
    AddressSpace, Affine, AxisTag, Expr, InameId, Insn, InsnId, Kernel, UpdateOp, VarId, VarKind, WriteOp,
};
use kingpost_steps::Means;
use kingpost_steps::argument;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::accumulation::{IS_UPDATE, NO_REDUCTIONS, refuse_reductions, update_in_order};
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, check_bounds_stay};
use kingpost_steps::proofs::elements::{NO_RULE, check_no_rule};
use kingpost_steps::proofs::extent::parametric_extent;
use kingpost_steps::proofs::largest_length::{LARGEST_LENGTH, SOME_ITERATION, Values, work_item_tag};
use kingpost_steps::proofs::stale;
use kingpost_steps::proofs::written::{NewRead, reads_constants};
use kingpost_steps::refusal::{AtParameters, LostValue, Refusal};
use kingpost_steps::schedule::Array;
use kingpost_steps::tree::{body_of, insns_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Takes the running total of a scalar out of a loop of constant length: the terms of each
/// iteration are summed separately, the sums are scanned in local memory, and every iteration
/// starts from the total of those before it.
///
/// # Rewrite
/// ```text
///                              temp t_scan: f64[2, 4] local
///                              for t_scan_f in 0..4 {l.0}
///                                t_scan_fill: t_scan[0, t_scan_f] = 0.0
///                              for c_part in 0..4 {l.0}
///                                for j_part in 0..m
///                                  t_scan_part: t_scan[0, c_part] += a[c_part, j_part]
/// for c in 0..4           =>   for t_scan_0 in 0..4 {l.0}
///   for j in 0..m                t_scan_copy_0: t_scan[1, t_scan_0] = t_scan[0, t_scan_0]
///     u: t += a[c, j]            t_scan_add_0: t_scan[1, t_scan_0] += t_scan[0, t_scan_0 - 1] if 1 <= t_scan_0
///     s: y[c, j] = t           for t_scan_1 in 0..4 {l.0}
///                                …, by a distance of 2, from t_scan[1, …] to t_scan[0, …]
///                              for c in 0..4 {l.0}
///                                t_scan_start: t_run = t
///                                t_scan_before: t_run += t_scan[0, c - 1] if 0 < c
///                                for j in 0..m
///                                  u: t_run += a[c, j]
///                                  s: y[c, j] = t_run
///                              t_scan_total: t += t_scan[0, 3]
/// ```
/// That is the second level of a scan whose first one is the sequential loop inside. A sequential
/// loop around carries the total on. The order of `u` and `s` decides whether the scan is inclusive
/// or exclusive. The terms are computed twice. The scan takes `ceil(log2 n)` steps (Hillis & Steele
/// 1986); the barriers between them are derived like all others.
///
/// With sums in `global` memory the loop may have any length. Then a loop of its own adds them:
/// ```text
///                              temp t_scan: f64[2, n] global
///                              for c_part in 0..n
///                                t_scan_fill: t_scan[0, c_part] = 0.0
///                                for j_part in 0..m
///                                  t_scan_part: t_scan[0, c_part] += a[c_part, j_part]
/// for c in 0..n           =>   for c_total in 0..n
///   for j in 0..m                t_scan_before: t_scan[1, c_total] = t
///     u: t += a[c, j]            t_scan_total: t += t_scan[0, c_total]
///     s: y[c, j] = t           for c in 0..n
///                                t_scan_start: t_run = t_scan[1, c]
///                                for j in 0..m
///                                  u: t_run += a[c, j]
///                                  s: y[c, j] = t_run
/// ```
/// In launches of their own, blocks of the first and of the last loop are on different groups, and the loop
/// between them can be scanned again, by the work-items of one.
///
/// With a `chunk` as well, one pass is enough: every iteration adds the sums before it in its chunk of that
/// many, and the last one of a chunk keeps the total.
/// ```text
///                              temp t_scan: f64[2, n] global
/// for c in 0..n           =>   for c in 0..n
///   for j in 0..m                t_scan_fill: t_scan_sum = 0.0
///     u: t += a[c, j]            for j_part in 0..m
///     s: y[c, j] = t               t_scan_part: t_scan_sum += a[c, j_part]
///                                t_scan_store: t_scan[0, c] = t_scan_sum
///                                t_scan_start: t_run = t
///                                t_scan_chunk: t_run = t_scan[1, floor_div(c, 32)] if 32 <= c
///                                for t_scan_k in 0..min(32, c mod 32)
///                                  t_scan_read: t_scan_earlier = t_scan[0, t_scan_k + 32*floor_div(c, 32)]
///                                  t_scan_before: t_run += t_scan_earlier
///                                t_scan_end: t_scan[1, floor_div(c, 32) + 1] = t_run + t_scan_sum if c - 32*floor_div(c, 32) == 31
///                                for j in 0..m
///                                  u: t_run += a[c, j]
///                                  s: y[c, j] = t_run
/// ```
/// Every element of `t_scan` is written once and read by copies, in later iterations: on groups that start in
/// order ([`launch_hint`](super::LaunchHint)) this is a scan in one launch.
///
/// # Precondition
/// `t` is a scalar temporary that one update alone writes inside the loop, so that its terms may be
/// regrouped, and the terms do not mention it. What they read is there before the loop starts: with
/// `o` the loops around, for every read `r` of the update and every write `w` inside the loop,
/// `{ w -> r : o = o', element(w) = element(r), w before r }` is empty. The bounds of the loops
/// around the update do not change inside. The length of the loop has a constant bound. If loops are
/// on axes, the placement must hold.
///
/// The total has a value when the loop starts: in every iteration `o` an instruction before has
/// surely written it, or the update surely runs. This may hold only under the predicate of the
/// update. The predicate then mentions no loop of the nest, reads scalar inputs only, and holds
/// wherever the total is read inside. The new reads of the total are under it as well:
/// `t_scan_start: t_run = select(p, t, 0.0)` and `t_scan_total: t += … if p`.
///
/// In chunks the total is not kept: the loop is inside none, nothing outside reads the total after it,
/// and the total always has a value.
///
/// # Errors
/// A term that the loop writes, with two instances; a total that others write or terms read, or
/// that may have no value, with the iteration; a total that is no scalar temporary; a loop of
/// unknown length, or not around the update; a tag that is no axis of work-items; names that are
/// taken. In chunks: a loop inside another one, a total that is read later, a chunk that is not 2 to 1024.
///
/// # Elsewhere
/// Loopy's parallel scans; CUB `BlockScan`; Halide leaves it to `rfactor` on associative
/// definitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParalleliseScan {
    /// The loop.
    pub iname: String,
    /// The update of the running total.
    pub insn: String,
    /// Name of the scanned sums; `{total}_scan` if absent. Loops and instructions are named after
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<String>,
    /// `l.0`, `l.1` or `l.2`, for the loop itself as well; the tag of the loop if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "argument::write", deserialize_with = "argument::read")]
    #[schemars(schema_with = "argument::work_item_tags")]
    pub tag: Option<AxisTag>,
    /// `local`, where the sums are scanned in steps, or `global`, where a loop sums them one by one; local if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "argument::write", deserialize_with = "argument::read")]
    #[schemars(schema_with = "argument::copy_spaces")]
    pub space: Option<AddressSpace>,
    /// With sums in global memory, how many of them an iteration adds at most; else a loop of its own adds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<i64>,
}

impl ParalleliseScan {
    /// Scans the sums of the iterations of `iname`.
    pub fn new(iname: impl Into<String>, insn: impl Into<String>) -> Self {
        Self { iname: iname.into(), insn: insn.into(), scan: None, tag: None, space: None, chunk: None }
    }

    /// Runs on the work-items along the axis of this tag.
    #[must_use]
    pub fn by_work_items(mut self, tag: AxisTag) -> Self {
        self.tag = Some(tag);
        self
    }

    /// Keeps the sums in global memory, for any number of iterations.
    #[must_use]
    pub fn in_global_memory(mut self) -> Self {
        self.space = Some(AddressSpace::Global);
        self
    }

    /// Lets every iteration add the sums before it in its chunk of global memory.
    #[must_use]
    pub fn in_chunks(mut self, of: i64) -> Self {
        self.chunk = Some(of);
        self.in_global_memory()
    }

    /// Calls the scanned sums `name`.
    #[must_use]
    pub fn into_temporary(mut self, name: impl Into<String>) -> Self {
        self.scan = Some(name.into());
        self
    }
}

impl fmt::Display for ParalleliseScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parallelise the scan of `{}` over `{}`", self.insn, self.iname)?;
        self.scan.as_ref().map_or(Ok(()), |name| write!(f, " in `{name}`"))?;
        self.tag.as_ref().map_or(Ok(()), |tag| write!(f, " on {tag}"))?;
        self.space.as_ref().map_or(Ok(()), |space| write!(f, " in {} memory", space.name()))?;
        self.chunk.map_or(Ok(()), |chunk| write!(f, " in chunks of {chunk}"))
    }
}

/// There is something to scan.
const AROUND: Obligation = Obligation::new("parallelise_scan.around", "the loop is around the update");

/// One value at a time.
const SCALAR: Obligation = Obligation::new("parallelise_scan.scalar", "the total is a scalar temporary");

/// A term is known without the total.
const TERMS_APART: Obligation =
    Obligation::new("parallelise_scan.terms_apart", "the terms do not mention the total");

/// The terms are all that the total sums.
const ONLY_WRITE: Obligation =
    Obligation::new("parallelise_scan.only_write", "inside the loop only the update writes the total");

/// Bounds mention the total by its name.
const NO_BOUND: Obligation = Obligation::new("parallelise_scan.no_bound", "no bounds mention the total");

/// `{ w -> r : o = o', element(w) = element(r), w before r }` is empty for what the terms read.
const TERMS_KNOWN: Obligation =
    Obligation::new("parallelise_scan.terms_known", "nothing inside the loop writes what the terms read");

/// The sums in global memory are declared before the loops run.
const KNOWN_LENGTH: Obligation = Obligation::new(
    "parallelise_scan.known_length",
    "parameters bound the values of a loop whose sums are in global memory",
);

/// No iteration knows the total of all.
const NOT_KEPT: Obligation = Obligation::new(
    "parallelise_scan.not_kept",
    "in chunks, the loop is inside none, and nothing reads the total after it",
);

/// `{ o } \\ U \\ W` is empty.
const DEFINED: Obligation =
    Obligation::new("parallelise_scan.defined", "the total surely has a value when the loop starts");

/// How many sums an iteration may add: at most the work-items of a group.
const CHUNKS: std::ops::RangeInclusive<i64> = 2..=1024;

/// Where the sums of the iterations are.
enum Sums {
    /// In local memory, as many as this.
    Local(Values),
    /// In global memory: the lower bound of the loop, how many there are, and how many an iteration adds, if a loop
    /// of its own does not.
    Global { lo: Affine, extent: Affine, chunk: Option<i64> },
}

impl Sums {
    fn lo(&self) -> &Affine {
        match self {
            Self::Local(values) => &values.lo,
            Self::Global { lo, .. } => lo,
        }
    }
}

/// A running total whose terms are known before the loop.
pub struct Scan {
    iname: InameId,
    id: InsnId,
    op: UpdateOp,
    total: VarId,
    tag: AxisTag,
    name: String,
    run: String,
    /// The loop and those inside it around the update, outer first.
    nest: Vec<InameId>,
    /// The instructions in the loop.
    inside: Vec<InsnId>,
    sums: Sums,
    /// The condition under which the total has a value.
    condition: Option<Expr>,
}

impl Primitive for ParalleliseScan {
    const NAME: &'static str = "parallelise_scan";
    const SUMMARY: &'static str =
        "Scans the sums of the iterations of a loop with a running total over the work-items.";

    type Proof = Scan;
    /// The scanned sums, and the total of an iteration.
    type Made = [Array; 2];

    const OBLIGATIONS: &'static [Obligation] = &[
        AROUND,
        SCALAR,
        TERMS_APART,
        ONLY_WRITE,
        NO_BOUND,
        BOUNDS_STAY,
        TERMS_KNOWN,
        DEFINED,
        NOT_KEPT,
        KNOWN_LENGTH,
        NO_RULE,
        NO_REDUCTION,
        IS_UPDATE,
        NO_REDUCTIONS,
        LARGEST_LENGTH,
        SOME_ITERATION,
    ];
    const KEEPS: Keeps = Keeps::REASSOCIATED;
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Scan, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let (id, op) = update_in_order(kernel, &self.insn)?;
        let (expanded, poly) = (analysis.expanded(), analysis.polyhedral());
        let outer = AROUND.find(poly.loops(id).iter().position(|l| *l == iname), || {
            format!("`{}` is not around `{}`", self.iname, self.insn)
        })?;
        let total = kernel.insns[id].lhs.var;
        check_no_rule(kernel, total)?;
        check_total(poly, id, iname)?;
        let insn = &expanded.insns[id];
        refuse_reductions(kernel, insn, &[&insn.rhs].into_iter().chain(&insn.predicate).collect::<Vec<_>>())?;
        let nest = poly.loops(id)[outer..].to_vec();
        let body = body_of(kernel, iname)?;
        nest.iter().try_for_each(|l| check_bounds_stay(kernel, *l, body))?;
        check_terms(poly, analysis.all_sites(), id, outer)?;
        let condition = match has_value(poly, analysis.sites(total), id, outer)? {
            HasValue::Always => None,
            HasValue::UnderPredicate => kernel.insns[id].predicate.clone(),
        };
        if condition.is_some() && self.chunk.is_some() {
            return Err(Refusal::argument(
                "chunk",
                "a total that has a value under a condition alone",
                "no chunks",
            ));
        }
        let tag = work_item_tag(kernel, iname, self.tag)?;
        let sums = self.sums(analysis, iname)?;
        if self.chunk.is_some() {
            check_not_kept(analysis, id, iname)?;
        }
        let of = &kernel.vars[total].name;
        let (run, inside) = (kernel.fresh_name(&format!("{of}_run")), insns_of(body));
        let mut scan =
            Scan { iname, id, op, total, tag, name: String::new(), run, nest, inside, sums, condition };
        let stem = format!("{of}_scan");
        scan.name = lookup::made(kernel, self.scan.as_deref(), &stem, |name| scan.names(name))?;
        Ok(scan)
    }

    fn edit(&self, kernel: &mut Kernel, scan: &Scan) -> [Array; 2] {
        scan.edit(kernel);
        [Array::named(&scan.name), Array::named(&scan.run)]
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let scalar = |i: &kingpost_ir::Insn| i.op != WriteOp::Assign && i.lhs.index.is_empty();
        let mut all = Vec::new();
        for update in draw::insns(kernel, scalar) {
            all.extend(draw::loops_of(kernel, &update).into_iter().map(|l| Self::new(l, &update)));
        }
        let step = draw::possible(kernel, all, p)?.into_temporary(kernel.fresh_name("scanned"));
        Some(match p.below(8) {
            0 => step.in_chunks(p.between(2, 4)),
            1 => step.in_global_memory(),
            2 | 3 => step,
            _ => step.by_work_items(AxisTag::Local(0)),
        })
    }
}

impl ParalleliseScan {
    fn sums(&self, analysis: &Analysis, iname: InameId) -> Result<Sums, Refusal> {
        let kernel = analysis.kernel();
        match self.space {
            None | Some(AddressSpace::Local) if self.chunk.is_none() => {
                Ok(Sums::Local(Values::of(kernel, iname)?))
            }
            Some(AddressSpace::Global) if self.tag.is_none() => {
                let known = parametric_extent(analysis.polyhedral(), iname)?;
                let (lo, extent) = KNOWN_LENGTH.find(known, || {
                    format!(
                        "no expression of the parameters bounds the length of `{}`; assume bounds",
                        self.iname
                    )
                })?;
                if let Some(chunk) = self.chunk.filter(|chunk| !CHUNKS.contains(chunk)) {
                    return Err(Refusal::argument("chunk", format!("chunks of {chunk}"), "2 to 1024"));
                }
                Ok(Sums::Global { lo, extent, chunk: self.chunk })
            }
            None => Err(Refusal::argument("chunk", "chunks of sums in local memory", "global memory")),
            Some(space) => Err(Refusal::argument(
                "space",
                format!("sums in `{}` memory{}", space.name(), self.tag.map_or("", |_| " on work-items")),
                "local, or global without a tag",
            )),
        }
    }
}

/// The total is a scalar temporary that inside the loop only the update writes, and that its terms
/// do not read.
fn check_total(poly: &Polyhedral, id: InsnId, iname: InameId) -> Result<(), Refusal> {
    let kernel = &*poly.kernel;
    let insn = &kernel.insns[id];
    let var = &kernel.vars[insn.lhs.var];
    SCALAR.require(var.kind == VarKind::Temporary && var.shape.is_empty(), || {
        format!("`{}` is no scalar temporary, needed one as running total", var.name)
    })?;
    TERMS_APART.require(insn.reads().iter().all(|a| a.var != insn.lhs.var), || {
        format!("the terms of `{}` mention `{}`, so that none is known before", insn.name, var.name)
    })?;
    let other = |(other, i): &(InsnId, &Insn)| {
        *other != id && i.lhs.var == insn.lhs.var && poly.loops(*other).contains(&iname)
    };
    ONLY_WRITE.forbid(kernel.insns.iter().find(other), |(_, other)| {
        format!(
            "`{}` writes `{}` inside the loop as well as `{}`; distribute the loop first",
            other.name, var.name, insn.name
        )
    })?;
    let bound = |l: &InameId| {
        kernel.inames[*l].domain.any_symbol(&mut |a| *a == kingpost_ir::Atom::Var(insn.lhs.var))
    };
    NO_BOUND.forbid(kernel.inames.ids().find(bound), |bounded| {
        format!("the bounds of `{}` mention `{}`", kernel.inames[bounded].name, var.name)
    })
}

/// Nothing needs the total of all iterations.
fn check_not_kept(analysis: &Analysis, id: InsnId, iname: InameId) -> Result<(), Refusal> {
    let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
    let total = kernel.insns[id].lhs.var;
    NOT_KEPT.require(poly.loops(id).first() == Some(&iname), || {
        format!("`{}` is inside another loop, whose iterations take the total on", kernel.inames[iname].name)
    })?;
    let reads = |s: &&AccessSite| {
        s.mode != Mode::Assign
            && !poly.loops(s.insn).contains(&iname)
            && poly.position(s.insn) > poly.position(id)
    };
    NOT_KEPT.forbid(analysis.sites(total).iter().find(reads), |site| {
        let (insn, total) = (&kernel.insns[site.insn].name, &kernel.vars[total].name);
        format!("`{insn}` reads `{total}` after the loop, and no iteration keeps the total of all")
    })
}

/// `{ w -> r : o = o', element(w) = element(r), w before r }` is empty for what the terms read.
fn check_terms(
    poly: &Polyhedral,
    sites: &[Vec<AccessSite>],
    id: InsnId,
    outer: usize,
) -> Result<(), Refusal> {
    let kernel = &*poly.kernel;
    let around = poly.loops(id);
    for of_var in sites {
        // the terms do not read the total, which an update that keeps its order does
        let is_term =
            |s: &AccessSite| s.insn == id && !s.writes() && s.access.var != kernel.insns[id].lhs.var;
        for read in of_var.iter().filter(|s| is_term(s)) {
            let inside = |insn| poly.loops(insn).starts_with(&around[..=outer]);
            for write in of_var.iter().filter(|s| s.writes() && inside(s.insn)) {
                let Some(pair) = pair_relation(poly, write, read, Order::Within(&around[..outer])) else {
                    continue;
                };
                let witness = stale::witness(kernel, write, read, &pair.map(poly)?)?;
                TERMS_KNOWN.refute(witness.map(|witness| {
                    let var = &kernel.vars[read.access.var].name;
                    let found = format!(
                        "{} sums `{}`, which {} writes inside the loop",
                        witness.sink, witness.element, witness.source
                    );
                    let help = format!("replace `{var}` by its definition, or distribute the loop first");
                    LostValue { witness, found, help }
                }))?;
            }
        }
    }
    Ok(())
}

/// Whether the total has a value at the start of the loop in every iteration of those around, or in
/// those in which the predicate of the update holds.
enum HasValue {
    Always,
    UnderPredicate,
}

/// The total has a value at the start of the loop: with
/// `U` the iterations of the loops around in which the update surely runs, which reads it, and `W`
/// those in which something in front surely writes it, `{ o } \ U \ W` is empty.
fn has_value(poly: &Polyhedral, sites: &[AccessSite], id: InsnId, outer: usize) -> Result<HasValue, Refusal> {
    let kernel = &*poly.kernel;
    let (loops, nest) = poly.loops(id).split_at(outer);
    let iname = nest[0];
    let users: Vec<_> = sites.iter().map(|s| s.insn).filter(|s| poly.loops(*s).contains(&iname)).collect();
    let unwritten = |condition| {
        let read = NewRead { poly, sites, id, iname, loops, condition };
        let set = read.unwritten(read.without()?)?;
        smallest_point(kernel, &set).map_err(Refusal::from)
    };
    let Some(point) = unwritten(None)? else {
        DEFINED.holds_in(kernel, Means::Empty, String::new);
        return Ok(HasValue::Always);
    };
    let predicate = kernel.insns[id].predicate.as_ref();
    if let Some(p) = predicate.filter(|p| is_scalar_condition(kernel, p, nest)) {
        let holds = |user: &InsnId| {
            let given: Vec<&Expr> = kernel.insns[*user].predicate.iter().flat_map(Expr::conjuncts).collect();
            p.conjuncts().iter().all(|c| given.contains(c))
        };
        if users.iter().all(holds) && unwritten(Some(p))?.is_none() {
            DEFINED.holds_in(kernel, Means::Empty, || "where the update runs".into());
            return Ok(HasValue::UnderPredicate);
        }
    }
    let (total, iname) = (&kernel.vars[kernel.insns[id].lhs.var].name, &kernel.inames[iname].name);
    DEFINED.refute(Some(AtParameters {
        params: point,
        found: format!("nothing surely writes `{total}` before `{iname}` starts"),
        reason: "where perhaps no iteration reads it and the scan would; write it before the loop without a \
                 condition"
            .into(),
    }))?;
    Ok(HasValue::Always)
}

/// Whether a condition is the same throughout some loops, and can be evaluated where they are
/// empty.
fn is_scalar_condition(kernel: &Kernel, p: &Expr, loops: &[InameId]) -> bool {
    let mut scalars = reads_constants(kernel, p) && !loops.iter().any(|l| p.mentions(*l));
    p.for_each(&mut |e| scalars &= !matches!(e, Expr::Load(access) if !access.index.is_empty()));
    scalars
}
