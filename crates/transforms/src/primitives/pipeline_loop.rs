//! Fetches what later iterations of a loop need while earlier ones compute.

use super::expand_array::ExpandArray;
use super::peel_iname::{LoopEnd, end_of_range};
use kingpost_analysis::Analysis;
use kingpost_analysis::deps::{Dependence, DependenceKind};
use kingpost_analysis::polyhedral::{equal_values, step};
use kingpost_ir::{
    Affine, Atom, AxisTag, BinaryOp, Constraint, Domain, Expr, GuardedRange, InameId, Insn, InsnId, Kernel,
    Node, Places, VarId, Variable,
};
use kingpost_isl as isl;
use kingpost_steps::condition::also;
use kingpost_steps::copy::copy_nest;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Instances;
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::VALUES;
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, CONSTANT_BOUNDS, check_bounds_stay, check_constant_value};
use kingpost_steps::proofs::elements::{
    NO_RULE, ONLY_ACCESSED, TEMPORARY, check_no_rule, check_only_accessed, product, rewrite_accesses,
    temporary,
};
use kingpost_steps::proofs::inside::{INSIDE, NO_FAULT};
use kingpost_steps::proofs::order::relation_text;
use kingpost_steps::refusal::{Refusal, WrongOrder};
use kingpost_steps::schedule::Loop;
use kingpost_steps::substitute::substitute_in_nodes;
use kingpost_steps::tree::{body_of, insns_of, loops_down_to, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets the statements that fill the temporaries `vars` in an iteration of a loop run `buffers - 1`
/// iterations, or `ahead`, before those that use them (software pipelining; double buffering with two
/// buffers).
///
/// # Rewrite
/// ```text
/// for t in lo..hi               =>   for t_first in lo..min(lo + 1, hi)
///   for j in 0..8                      for j_first in 0..8
///     f: tile[j] = a[8*t + j]            f_first: tile[(t_first - lo) mod 2, j_first] = a[8*t_first + j_first]
///   for k in 0..8                    for t in lo..hi
///     s: S(tile[k])                    for j in 0..8 where t + 2 <= hi
///                                        f: tile[(t + 1 - lo) mod 2, j] = a[8*(t + 1) + j]
///                                      for k in 0..8
///                                        s: S(tile[(t - lo) mod 2, k])
/// ```
/// With the tile in local memory an iteration needs one barrier instead of two: what is fetched and
/// what is used lie in different buffers.
///
/// With `ahead` less than `buffers - 1`, a buffer is filled again some iterations after its last use, so that
/// what uses it may complete later, such as matrix instructions that run asynchronously.
///
/// With one buffer, what is fetched for the next iteration follows the last statement of this one
/// that uses it, and runs concurrently with the statements after.
///
/// # Precondition
/// The loop is on no axis, begins at one value, `lo <= t`, and ends before some others,
/// `c*t < min(...)`, perhaps under conditions that do not mention it. Every write of `vars` stands
/// in it, in statements that write nothing else. With `F` the instances of these, `R` the others of
/// the loop, `o` the loops around, `n` the number of buffers:
///
/// 1. No value of `vars` leaves an iteration:
///    `{ w -> r in D through vars : (o, t)(w) /= (o, t)(r) }` is empty.
/// 2. Nothing that is fetched depends on an iteration that then runs later:
///    `{ r -> f in D : o(r) = o(f), t(f) <= t(r) + a }` is empty for every flow, anti and output
///    dependence `D` from `R` to `F`. Through `vars` `a = 0`, because an iteration fills them before
///    it uses them. Through other variables `a` is the number of iterations ahead, `n - 1` if it is not said.
///
/// A buffer is written again `n` iterations later, which then run at `t + n` less the iterations ahead, after the
/// last use.
/// With one buffer, `a` is 0 for the statements of `R` before what is fetched, among which are all
/// that use `vars`, and 1 for those after. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown loop or variable, a loop on an axis or without bounds, a number of buffers that is
/// not 1 to 16, or more iterations ahead than there are other buffers; variables that are no temporaries, share their storage, are used outside the loop,
/// or are filled by statements that do more; condition 1 or 2 broken, with two instances.
///
/// # Elsewhere
/// Halide `fold_storage` with `async`; TVM `double_buffer` and `software_pipeline`; Exo's
/// `stage_mem` with manual copies; MLIR `transform.loop.pipeline`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PipelineLoop {
    /// The loop.
    pub iname: String,
    /// The temporaries that are filled ahead.
    pub vars: Vec<String>,
    /// Buffers of each of them.
    #[serde(default = "two")]
    pub buffers: i64,
    /// How many iterations ahead they are filled; all buffers but one, if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<i64>,
}

fn two() -> i64 {
    2
}

impl PipelineLoop {
    /// Fills `vars` one iteration of `iname` ahead.
    pub fn new<S: Into<String>>(iname: impl Into<String>, vars: impl IntoIterator<Item = S>) -> Self {
        let vars = vars.into_iter().map(Into::into).collect();
        Self { iname: iname.into(), vars, buffers: two(), ahead: None }
    }

    /// Uses this number of buffers, to run that many iterations less one ahead.
    #[must_use]
    pub fn with_buffers(mut self, buffers: i64) -> Self {
        self.buffers = buffers;
        self
    }

    /// Runs this number of iterations ahead, fewer than there are other buffers: then uses of a buffer may go on
    /// for some iterations.
    #[must_use]
    pub fn with_ahead(mut self, ahead: i64) -> Self {
        self.ahead = Some(ahead);
        self
    }

    /// Iterations between filling a buffer and using it.
    fn ahead(&self) -> i64 {
        self.ahead.unwrap_or(self.most_ahead())
    }

    fn most_ahead(&self) -> i64 {
        (self.buffers - 1).max(1)
    }
}

impl fmt::Display for PipelineLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vars: Vec<_> = self.vars.iter().map(|v| format!("`{v}`")).collect();
        let plural = if self.buffers == 1 { "" } else { "s" };
        write!(f, "pipeline `{}` with {} buffer{plural} for {}", self.iname, self.buffers, vars.join(", "))?;
        self.ahead.map_or(Ok(()), |ahead| write!(f, ", {ahead} ahead"))
    }
}

/// Iterations run one after the other.
const OFF_AXIS: Obligation = Obligation::new("pipeline_loop.off_axis", "the loop is on no axis");

/// It has a first iteration, and one after another.
const RANGE: Obligation = Obligation::new(
    "pipeline_loop.range",
    "the loop is a range `lo..hi` or `lo..min(...)`, perhaps under conditions that do not mention it",
);

/// What fills the temporaries can run ahead of the rest.
const FILL_ONLY: Obligation = Obligation::new(
    "pipeline_loop.fill_only",
    "every write of the temporaries stands in the loop, in statements that write nothing else",
);

/// The other buffers hold nothing else.
const OWN_STORAGE: Obligation =
    Obligation::new("pipeline_loop.own_storage", "the temporaries have storage of their own");

/// There is something to run ahead.
const FILLED: Obligation = Obligation::new("pipeline_loop.filled", "the temporaries are written");

/// The place of the next buffer is known.
const CONSTANT_STRIDES: Obligation =
    Obligation::new("pipeline_loop.constant_strides", "temporaries with strides take a constant room");

/// `{ r -> f in D : o(r) = o(f), t(f) <= t(r) + a }` is empty.
const AHEAD: Obligation = Obligation::new(
    "pipeline_loop.ahead",
    "nothing that is fetched depends on an iteration that then runs later",
);

/// The loop and what of it runs ahead.
pub struct Stages {
    iname: InameId,
    range: Values,
    /// Loops around it.
    around: Vec<InameId>,
    buffered: Vec<Buffered>,
    /// Statements that fill the temporaries, and the others: those that stay before them, and
    /// those after.
    fetch: Vec<Node>,
    front: Vec<Node>,
    behind: Vec<Node>,
}

/// The values of a loop: those from `lo` on for which every `factor*t < end`.
struct Values {
    lo: Affine,
    ends: Vec<(i64, Affine)>,
    /// The same as a range with one end, if it is one.
    plain: Option<GuardedRange>,
}

impl Values {
    fn of(domain: &Domain, iname: InameId) -> Option<Self> {
        let plain = domain.as_guarded_range(iname);
        let (mut lo, mut ends) = (None, Vec::new());
        for c in domain.as_conjunction()?.iter().filter(|c| c.expr().mentions(iname)) {
            let Constraint::NonNegative(e) = c else { return None };
            let factor = e.coefficient(&Atom::Iname(iname));
            let rest = e.minus(&Affine::iname(iname).times(factor));
            if rest.mentions(iname) {
                return None;
            }
            match factor {
                1 if lo.is_none() => lo = Some(rest.times(-1)),
                ..=-1 => ends.push((-factor, rest.plus_constant(1))),
                _ => return None,
            }
        }
        (!ends.is_empty()).then_some(Self { lo: lo?, ends, plain })
    }

    /// The first `count` values, all of them if there are fewer, of `iname`, whose domain is that
    /// of the loop.
    fn first(&self, iname: InameId, domain: &Domain, count: i64) -> Domain {
        match &self.plain {
            Some(range) => end_of_range(iname, range, count, LoopEnd::First),
            None => {
                let before = Constraint::lt(&Affine::iname(iname), &self.lo.plus_constant(count));
                domain.intersect(&Domain::conjunction([before]))
            }
        }
    }
}

/// A temporary that gets an axis of buffers.
struct Buffered {
    var: VarId,
    /// The stride of that axis, if there are any.
    stride: Option<Affine>,
}

impl Primitive for PipelineLoop {
    const NAME: &'static str = "pipeline_loop";
    const SUMMARY: &'static str =
        "Fills temporaries for later iterations of a loop while earlier ones use theirs.";

    type Proof = Stages;
    type Made = Loop;

    const OBLIGATIONS: &'static [Obligation] = &[
        OFF_AXIS,
        RANGE,
        CONSTANT_BOUNDS,
        BOUNDS_STAY,
        OWN_STORAGE,
        FILLED,
        CONSTANT_STRIDES,
        FILL_ONLY,
        VALUES,
        AHEAD,
        TEMPORARY,
        ONLY_ACCESSED,
        NO_RULE,
        NO_REDUCTION,
        INSIDE,
        NO_FAULT,
        super::expand_array::INSIDE,
        super::expand_array::SAME_ITERATION,
    ];
    const INSTANCES: Instances = Instances::Copied;
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Stages, Refusal> {
        let kernel = analysis.kernel();
        let stages = self.stages(kernel)?;
        self.check_values(kernel, &stages)?;
        check_ahead(analysis, &stages, self)?;
        Ok(stages)
    }

    fn edit(&self, kernel: &mut Kernel, stages: &Stages) -> Loop {
        let t = stages.iname;
        let domain = kernel.inames[t].domain.clone();
        if self.buffers > 1 {
            self.add_buffers(kernel, stages);
        }
        let (first, prologue) = copy_nest(kernel, t, &stages.fetch, "first");
        let own = domain.substitute(&|atom| (*atom == Atom::Iname(t)).then(|| Affine::iname(first)));
        kernel.inames[first].domain = stages.range.first(first, &own, self.ahead());
        let ahead = Affine::iname(t).plus_constant(self.ahead());
        substitute_in_nodes(kernel, &stages.fetch, t, &ahead);
        for (factor, end) in &stages.range.ends {
            let ahead = ahead.times(*factor);
            let guard = Constraint::lt(&ahead, end);
            for node in &stages.fetch {
                constrain(kernel, node, &guard, (&ahead, end));
            }
        }
        let body: Vec<_> =
            [&stages.front, &stages.fetch, &stages.behind].into_iter().flatten().cloned().collect();
        replace_loop(&mut kernel.body, t, &mut |_| vec![prologue.clone(), Node::Loop(t, body.clone())]);
        Loop::named(&kernel.inames[first].name)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let (iname, var) = p.of(&draw::filled(kernel))?;
        let step = Self::new(iname, [var]).with_buffers(p.between(1, 4));
        Some(if step.buffers == 4 { step.with_ahead(p.between(1, 3)) } else { step })
    }
}

impl PipelineLoop {
    fn stages(&self, kernel: &Kernel) -> Result<Stages, Refusal> {
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        if !(1..=16).contains(&self.buffers) {
            let found = format!("{} buffers are asked for", self.buffers);
            return Err(Refusal::argument("buffers", found, "1 to 16"));
        }
        if !(1..=self.most_ahead()).contains(&self.ahead()) {
            let found = format!("{} iterations ahead are asked for", self.ahead());
            return Err(Refusal::argument("ahead", found, format!("1 to {}", self.most_ahead())));
        }
        let data = &kernel.inames[iname];
        let off_axis = match data.tag {
            AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled => true,
            AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Launch => false,
        };
        OFF_AXIS.require(off_axis, || {
            format!(
                "`{}` is tagged {}, and only iterations that run one after the other are pipelined",
                self.iname, data.tag
            )
        })?;
        let range = RANGE.find(Values::of(&data.domain, iname), || {
            format!(
                "`{}` is no range `lo..hi` or `lo..min(...)`; split the loop so that it is one",
                kernel.show_domain(iname, &data.domain)
            )
        })?;
        check_constant_value(kernel, iname, &range.lo)?;
        let body = body_of(kernel, iname)?;
        check_bounds_stay(kernel, iname, body)?;
        let buffered = self.buffered(kernel)?;
        let filled = |insn: &Insn| buffered.iter().any(|b| b.var == insn.lhs.var);
        let fills =
            |node: &Node| insns_of(std::slice::from_ref(node)).iter().all(|i| filled(&kernel.insns[*i]));
        let (fetch, rest): (Vec<_>, Vec<_>) = body.iter().cloned().partition(fills);
        let inside = insns_of(&fetch);
        for (id, insn) in kernel.insns.iter().filter(|(_, i)| filled(i)) {
            FILL_ONLY.require(inside.contains(&id), || {
                format!(
                    "`{}` writes `{}` and does not stand in `{}` among statements that only fill `{}`; distribute the \
                     loop around it",
                    insn.name,
                    kernel.vars[insn.lhs.var].name,
                    self.iname,
                    self.vars.join("`, `")
                )
            })?;
        }
        let mut around = loops_down_to(kernel, iname)?;
        around.pop();
        // with one buffer the next values come after the last use of these
        let uses = |node: &Node| buffered.iter().any(|b| mentions(kernel, node, b.var));
        let used = if self.buffers == 1 { rest.iter().rposition(uses) } else { None };
        let mut front = rest;
        let behind = front.split_off(used.map_or(0, |last| last + 1));
        Ok(Stages { iname, range, around, buffered, fetch, front, behind })
    }

    /// An axis of buffers before the others.
    fn add_buffers(&self, kernel: &mut Kernel, stages: &Stages) {
        let counted = Expr::from_affine(&Affine::iname(stages.iname).minus(&stages.range.lo));
        let buffer = Expr::binary(BinaryOp::Mod, counted, Expr::Int(self.buffers));
        for Buffered { var, stride } in &stages.buffered {
            rewrite_accesses(kernel, *var, &mut |mut index| {
                index.insert(0, buffer.clone());
                index
            });
            let variable = &mut kernel.vars[*var];
            variable.shape.insert(0, Affine::constant(self.buffers));
            if let (Places::Strides(strides), Some(stride)) = (&mut variable.layout.places, stride) {
                strides.insert(0, stride.clone());
            }
            variable.layout.insert_axis(0, true);
        }
    }

    fn buffered(&self, kernel: &Kernel) -> Result<Vec<Buffered>, Refusal> {
        if self.vars.is_empty() {
            return Err(Refusal::argument("vars", "no temporary is given", "those that are filled ahead"));
        }
        let mut found: Vec<Buffered> = Vec::new();
        for name in &self.vars {
            let var = temporary(kernel, name, "prefetch it into one first")?;
            check_only_accessed(kernel, var)?;
            check_no_rule(kernel, var)?;
            let data = &kernel.vars[var];
            OWN_STORAGE.forbid(data.storage.as_ref(), |storage| {
                format!("`{name}` shares the storage `{storage}`; pipeline the loop before sharing")
            })?;
            FILLED.require(kernel.insns.values().any(|i| i.lhs.var == var), || {
                format!("nothing fills `{name}`; name temporaries that are written")
            })?;
            if found.iter().any(|b| b.var == var) {
                let found = format!("`{name}` is named twice");
                return Err(Refusal::argument("vars", found, "different temporaries"));
            }
            found.push(Buffered { var, stride: buffer_stride(data)? });
        }
        Ok(found)
    }

    /// (1): every value is used in the iteration that made it.
    fn check_values(&self, kernel: &Kernel, stages: &Stages) -> Result<(), Refusal> {
        let mut loops = stages.around.clone();
        loops.push(stages.iname);
        for (Buffered { var, .. }, name) in stages.buffered.iter().zip(&self.vars) {
            let expansion = ExpandArray::new(name, [&self.iname]);
            expansion.check_values(kernel, *var, &loops)?;
            expansion.check_inside(kernel, *var, &loops)?;
        }
        Ok(())
    }
}

/// The elements from one buffer to the next, of a temporary that has strides.
fn buffer_stride(variable: &Variable) -> Result<Option<Affine>, Refusal> {
    let Some(strides) = variable.layout.strides() else { return Ok(None) };
    let room = |(s, n)| product(s, n)?.as_constant();
    let rooms: Option<Vec<i64>> = strides.iter().zip(&variable.shape).map(room).collect();
    let room = rooms.and_then(|rooms| rooms.into_iter().max());
    CONSTANT_STRIDES.decide(room.is_some(), || {
        format!(
            "the strides of `{}` are no constants, so that the place of a second buffer is not known; \
             pipeline the loop before changing the layout",
            variable.name
        )
    })?;
    Ok(room.map(Affine::constant))
}

/// Whether a statement reads or writes a variable, or bounds of loops in it mention it.
fn mentions(kernel: &Kernel, node: &Node, var: VarId) -> bool {
    match node {
        Node::Insn(insn) => {
            let insn = &kernel.insns[*insn];
            insn.accesses(var)
        }
        Node::Loop(l, body) => {
            let bound = kernel.inames[*l].domain.any_symbol(&mut |atom| *atom == Atom::Var(var));
            bound || body.iter().any(|node| mentions(kernel, node, var))
        }
    }
}

/// (2): `{ r -> f in D : o(r) = o(f), t(f) <= t(r) + a }` is empty, with
/// `a` zero through what has buffers and from what stays in front, else `ahead`.
fn check_ahead(analysis: &Analysis, stages: &Stages, args: &PipelineLoop) -> Result<(), Refusal> {
    let fetch = insns_of(&stages.fetch);
    let front = insns_of(&stages.front);
    let rest: Vec<_> = front.iter().copied().chain(insns_of(&stages.behind)).collect();
    analysis.with_entries(|analysis, entries| {
        let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
        // what reads the bounds of a loop goes with the loop
        let among = |insns: &[InsnId], id| {
            poly.loops(id).contains(&stages.iname) && insns.contains(&entries.inside(id))
        };
        let concerned = |d: &&Dependence| {
            d.kind != DependenceKind::Update && among(&rest, d.source) && among(&fetch, d.sink)
        };
        for d in analysis.dependences()?.into_iter().filter(concerned) {
            let mut late = equal_values(poly, &stages.around);
            // other iterations have other buffers; what uses a single one stands in front
            let buffered = stages.buffered.iter().any(|b| b.var == d.var);
            let reach = if buffered || among(&front, d.source) { 0 } else { args.ahead() };
            let distance = isl::Affine::constant(reach).add_scaled(-1, &step(poly, stages.iname));
            late.push(isl::Constraint::non_negative(distance));
            AHEAD.refute(d.witness(kernel, &d.relation_where(&[late])?)?.map(|witness| {
                let relation = relation_text(d.kind, &witness.element);
                let help = format!("keep `{}` in its iteration", witness.sink.insn);
                WrongOrder { witness, relation, help }
            }))?;
        }
        Ok(())
    })
}

/// Runs a statement only where `a < b`, which is `guard`.
fn constrain(kernel: &mut Kernel, node: &Node, guard: &Constraint, (a, b): (&Affine, &Affine)) {
    match node {
        Node::Loop(l, _) => {
            let domain = &kernel.inames[*l].domain;
            kernel.inames[*l].domain = domain.intersect(&Domain::conjunction([guard.clone()]));
        }
        Node::Insn(insn) => add_condition(kernel, *insn, a, b),
    }
}

fn add_condition(kernel: &mut Kernel, insn: InsnId, a: &Affine, b: &Affine) {
    let runs = Expr::binary(BinaryOp::Lt, Expr::from_affine(a), Expr::from_affine(b));
    let insn = &mut kernel.insns[insn];
    insn.predicate = also(insn.predicate.take(), Some(runs));
}
