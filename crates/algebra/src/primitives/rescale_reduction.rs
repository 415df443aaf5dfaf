//! Turns a maximum and the sums of exponentials below it into one loop that rescales the sums.

use crate::proofs::rescaled::{self, Sum};
use kingpost_analysis::Analysis;
use kingpost_analysis::deps::pair::{Order, pair_relation};
use kingpost_ir::{
    Access, AddressSpace, Affine, Atom, AxisTag, BinaryOp, Expr, ExprType, InameId, Insn, InsnId, Kernel,
    Node, UpdateOp, VarId, VarKind, Variable, WriteOp,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::lookup::{self, NO_REDUCTION};
use kingpost_steps::nest::{copy_loops, renamed, wrapped};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, check_bounds_stay};
use kingpost_steps::proofs::finite::{FINITE, check_finite};
use kingpost_steps::proofs::length::never_empty;
use kingpost_steps::proofs::order::{Reordering, check_order};
use kingpost_steps::proofs::stale;
use kingpost_steps::proofs::{CURRENT, ORDER};
use kingpost_steps::refusal::{LostValue, Refusal};
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::{Array, Loop, Made, Statement};
use kingpost_steps::substitute::substitute_iname;
use kingpost_steps::tree::{edit_siblings, insns_of, loops_down_to, siblings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Turns the loop of a maximum and later loops, which sum exponentials of differences from that
/// maximum, into one loop. The sums are rescaled whenever the maximum grows.
///
/// # Rewrite
/// ```text
/// m0: m = -inf                      =>   m0: m = -inf
/// for j in 0..n                          l0: l = 0.0
///   top: m max= x[j]                     for j in 0..n
/// l0: l = 0.0                              m_keep: m_before = m
/// for k in 0..n                            top: m max= x[j]
///   add: l += exp(x[k] - m)*v[k]           m_weigh: m_weight = exp(m_before - m)
///                                          l_scale: l *= m_weight
///                                          add: l += exp(x[j] - m)*v[j]
/// ```
/// by `rescale_reduction(max: m, sums: [l], along: j)`. Where the loops run over blocks, the sums are
/// rescaled once a block. Where an iteration may take no maximum, they are rescaled only if it grows.
/// What stands between the loops moves before them.
///
/// # Precondition
/// Every addend is a product with `g(x, m)`, and mentions `m` nowhere else. Of the functions `g`
/// that the step knows, `g(x, m') = g(m, m') g(x, m)`:
///
/// ```text
/// g(x, m) = exp(c*(x - m)), exp2(c*(x - m))   with a number c > 0, which may also divide
/// ```
///
/// So after each iteration a sum is that of the terms so far, with the maximum so far: it starts
/// from zero, `g(m, m')` scales it from one maximum to the next, and the last maximum is `m`. The
/// weight is at most one: `m` only grows. No exponent is positive: each `x` is one of the values
/// whose maximum was taken in the same iteration, and does not change until it is added. An element
/// of a sum is scaled once an iteration. All loops have the same values. No dependence but that
/// through `m` runs backward once they are one.
///
/// # Errors
/// A maximum that is written in another way; a sum that is used in between, or whose addend has
/// another form; a value that is not below the maximum, or overwritten, with two instances; a sum
/// that does not start from zero; loops of other values; a dependence that would run backward, with
/// two instances.
///
/// # Source
/// Milakov & Gimelshein 2018, §3; Dao et al. 2022, §3.1.
///
/// # Elsewhere
/// Written by hand in every attention kernel; FlashInfer and Triton's tutorial have it as code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RescaleReduction {
    /// The maximum.
    pub max: String,
    /// The sums.
    pub sums: Vec<String>,
    /// The loop that takes the maximum.
    pub along: String,
}

impl RescaleReduction {
    /// Sums `sums` in the loop `along`, which takes the maximum `max`.
    pub fn new<S: Into<String>>(
        max: impl Into<String>,
        sums: impl IntoIterator<Item = S>,
        along: impl Into<String>,
    ) -> Self {
        Self { max: max.into(), sums: sums.into_iter().map(Into::into).collect(), along: along.into() }
    }
}

impl fmt::Display for RescaleReduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sums: Vec<_> = self.sums.iter().map(|s| format!("`{s}`")).collect();
        let sums = if sums.is_empty() { "no sum".to_owned() } else { sums.join(", ") };
        write!(f, "rescale {sums} by the maximum `{}` along `{}`", self.max, self.along)
    }
}

/// The maximum only grows, and is the last one when it is used.
const MAXIMUM: Obligation = Obligation::new(
    "rescale_reduction.maximum",
    "the loop takes the maximum of one element by `max=`, and nothing else writes it until the sums are done",
);

/// Nobody sees a sum before it is done.
const SUMS: Obligation = Obligation::new(
    "rescale_reduction.sums",
    "a later loop of the same body updates each sum by one `+=`, and touches it in no other way",
);

/// The loops become one.
const SAME_VALUES: Obligation =
    Obligation::new("rescale_reduction.same_values", "the loops are sequential and run over the same values");

/// A sum is scaled once an iteration.
const ONCE: Obligation =
    Obligation::new("rescale_reduction.once", "no element of a sum is scaled twice in an iteration");

/// What the edit relies on.
pub struct OneLoop {
    along: InameId,
    max: Access,
    /// The loops of the sums, in textual order.
    loops: Vec<InameId>,
    sums: Vec<Sum>,
    /// Whether the maximum is one of a value after every iteration.
    of_values: bool,
}

impl Primitive for RescaleReduction {
    const NAME: &'static str = "rescale_reduction";
    const SUMMARY: &'static str =
        "Turns a maximum and the sums of exponentials below it into one loop that rescales the sums.";

    type Proof = OneLoop;
    type Made = Made;

    const OBLIGATIONS: &'static [Obligation] = &[
        MAXIMUM,
        SUMS,
        SAME_VALUES,
        rescaled::SCALED,
        rescaled::BELOW,
        rescaled::STARTED,
        rescaled::ELEMENTS,
        ONCE,
        CURRENT,
        BOUNDS_STAY,
        ORDER,
        FINITE,
        NOT_CALLED,
        NO_REDUCTION,
    ];
    const KEEPS: Keeps = Keeps::IDENTITIES;
    const INSTANCES: Instances = Instances::Free;
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<OneLoop, Refusal> {
        let kernel = analysis.kernel();
        let along = lookup::tree_loop(kernel, &self.along)?;
        let max = lookup::var(kernel, &self.max)?;
        let around = Around::of(kernel, along)?;
        let tops = self.maximum(kernel, &around, max)?;
        let top = tops.first().copied().expected("update of the maximum", kernel)?;
        let proof = OneLoop {
            along,
            max: kernel.insns[top].lhs.clone(),
            sums: self.found_sums(kernel, &around, max)?,
            loops: Vec::new(),
            of_values: takes_surely(analysis, &tops, around.loops.len() + 1)?,
        };
        let proof = self.with_loops(kernel, &around, proof)?;
        let nest = rescaled::Nest {
            analysis,
            along,
            outer: &around.loops,
            between: &around.until(&proof.loops),
            tops: &tops,
        };
        nest.check_maximum_starts(top)?;
        for sum in &proof.sums {
            check_finite(kernel, &kernel.insns[sum.insn].name, &kernel.insns[sum.insn].rhs)?;
            nest.check_below(sum)?;
            nest.check_sum_starts(sum)?;
        }
        check_once(analysis, &self.draft(kernel, &proof), &around, &proof)?;
        self.check_fused(analysis, &proof)?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &OneLoop) -> Made {
        let mut made = Made::default();
        let mut scalar = |kernel: &mut Kernel, stem: &str, verb: &str, value: Expr| {
            let max = &kernel.vars[proof.max.var];
            let ty = kernel.type_of(&value, &[]).ok().and_then(ExprType::scalar).unwrap_or(max.ty); // default: it has one
            let name = kernel.fresh_name(&format!("{}_{stem}", max.name));
            let insn = kernel.fresh_name(&format!("{}_{verb}", max.name));
            made.arrays.push(Array::named(&name));
            made.insns.push(Statement::named(&insn));
            let var = Variable::new(name, ty, VarKind::Temporary, [], AddressSpace::Private);
            let var = kernel.vars.push(var);
            let set = statement(insn, Access::scalar(var), WriteOp::Assign, value);
            (Expr::scalar(var), Node::Insn(kernel.insns.push(set)))
        };
        let max = Expr::Load(proof.max.clone());
        let (before, keep) = scalar(kernel, "before", "keep", max.clone());
        let mut first = vec![(None, keep)];
        let mut weights: Vec<(Expr, Expr)> = Vec::new();
        for weight in proof.sums.iter().map(|sum| sum.weight(&before)) {
            if weights.iter().all(|(known, _)| *known != weight) {
                let (stored, set) = scalar(kernel, "weight", "weigh", weight.clone());
                first.push((proof.loops.first().copied(), set));
                weights.push((weight, stored));
            }
        }
        // between two maxima of nothing there is no weight: the difference of infinities is nan
        let grows = (!proof.of_values).then(|| Expr::binary(BinaryOp::Lt, before.clone(), max));
        for sum in &proof.sums {
            let name = kernel.fresh_name(&format!("{}_scale", kernel.vars[sum.var].name));
            made.insns.push(Statement::named(&name));
            let pairs = copy_loops(kernel, &sum.axes, "scale");
            let loops = pairs.iter().map(|(_, new)| *new);
            made.loops.extend(loops.clone().map(|l| Loop::named(&kernel.inames[l].name)));
            let index = kernel.insns[sum.insn].lhs.index.iter().map(|e| renamed(e, &pairs));
            let lhs = Access::new(sum.var, index);
            let own = sum.weight(&before);
            let weight =
                weights.iter().find(|(weight, _)| *weight == own).map_or(own.clone(), |(_, w)| w.clone());
            let op = WriteOp::Update { op: UpdateOp::Mul, atomic: false };
            let scale = Insn { predicate: grows.clone(), ..statement(name, lhs, op, weight) };
            let scale = wrapped(loops, vec![Node::Insn(kernel.insns.push(scale))]);
            first.extend(scale.into_iter().map(|node| (Some(sum.iname), node)));
        }
        fuse(kernel, proof, &first);
        made
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut all = Vec::new();
        for max in draw::vars(kernel, |v| v.ty.is_real()) {
            let var = kernel.var(&max)?;
            let is_top = |i: &&Insn| i.lhs.var == var && i.update_op() == Some(UpdateOp::Max);
            let below = |i: &&Insn| i.update_op() == Some(UpdateOp::Add) && i.rhs.loads(var);
            let mut sums: Vec<_> = kernel.insns.values().filter(below).map(|i| i.lhs.var).collect();
            sums.sort_unstable();
            sums.dedup();
            let sums: Vec<_> = sums.iter().map(|v| kernel.vars[*v].name.clone()).collect();
            let Some(top) = kernel.insns.values().find(is_top).filter(|_| !sums.is_empty()) else { continue };
            let around = draw::loops_of(kernel, &top.name).into_iter();
            all.extend(around.map(|along| Self::new(&max, &sums, along)));
        }
        draw::possible(kernel, all, p)
    }
}

/// The statements of the body in which a loop stands, and the loops around them.
struct Around<'k> {
    nodes: &'k [Node],
    /// Where the loop stands among them.
    at: usize,
    loops: Vec<InameId>,
}

impl<'k> Around<'k> {
    fn of(kernel: &'k Kernel, along: InameId) -> Result<Self, Refusal> {
        let nodes = siblings(&kernel.body, &|n| is_loop(n, along)).expected("loop in the tree", kernel)?;
        let at = nodes.iter().position(|n| is_loop(n, along)).expected("loop among siblings", kernel)?;
        let mut loops = loops_down_to(kernel, along)?;
        loops.pop();
        Ok(Self { nodes, at, loops })
    }

    /// The statements from the loop to the last of some later ones.
    fn until(&self, loops: &[InameId]) -> Vec<Node> {
        let last = self.nodes.iter().rposition(|n| loops.iter().any(|l| is_loop(n, *l)));
        self.nodes[self.at..=last.unwrap_or(self.at)].to_vec() // default: of no later ones, the loop alone
    }
}

impl RescaleReduction {
    /// The updates of the maximum in the loop.
    fn maximum(&self, kernel: &Kernel, around: &Around, max: VarId) -> Result<Vec<InsnId>, Refusal> {
        let tops: Vec<_> = insns_of(&around.nodes[around.at..=around.at])
            .into_iter()
            .filter(|i| kernel.insns[*i].lhs.var == max)
            .collect();
        let first = MAXIMUM.find(tops.first(), || {
            format!("nothing in `{}` writes `{}`; name the loop that takes the maximum", self.along, self.max)
        })?;
        for id in &tops {
            let insn = &kernel.insns[*id];
            let takes = insn.update_op() == Some(UpdateOp::Max) && insn.callee.is_none();
            let of_outer = |e: &Expr| {
                e.as_affine().is_some()
                    && !e.any(&mut |e| match e {
                        Expr::Iname(l) => !around.loops.contains(l),
                        other => matches!(other, Expr::Load(_)),
                    })
            };
            let one = insn.lhs == kernel.insns[*first].lhs && insn.lhs.index.iter().all(of_outer);
            MAXIMUM.require(takes && one && kernel.vars[max].ty.is_real(), || {
                format!(
                    "`{}` does not take a maximum of reals by `max=` in one element of `{}`; convert it to an update, \
                     or choose an inner loop",
                    insn.name, self.max
                )
            })?;
        }
        Ok(tops)
    }

    /// The sums, with the loops that add to them.
    fn found_sums(&self, kernel: &Kernel, around: &Around, max: VarId) -> Result<Vec<Sum>, Refusal> {
        if self.sums.is_empty() {
            return Err(Refusal::argument("sums", "no sum is named", "the sums of what the maximum weighs"));
        }
        let top = insns_of(&around.nodes[around.at..=around.at])
            .into_iter()
            .find(|i| kernel.insns[*i].lhs.var == max)
            .expected("update of the maximum", kernel)?;
        let max = &kernel.insns[top].lhs;
        let mut found: Vec<Sum> = Vec::new();
        for name in &self.sums {
            let var = lookup::var(kernel, name)?;
            if found.iter().any(|s| s.var == var) {
                return Err(Refusal::argument("sums", format!("`{name}` is named twice"), "each sum once"));
            }
            let (iname, insn) = self.adds(kernel, &around.nodes[around.at + 1..], var)?;
            found.push(Sum::of(kernel, iname, insn, &around.loops, max)?);
        }
        Ok(found)
    }

    /// The first later loop that updates a sum, and the update.
    fn adds(&self, kernel: &Kernel, later: &[Node], var: VarId) -> Result<(InameId, InsnId), Refusal> {
        let name = &kernel.vars[var].name;
        let is_update = |i: &InsnId| {
            kernel.insns[*i].lhs.var == var && kernel.insns[*i].update_op() == Some(UpdateOp::Add)
        };
        let loops = later.iter().filter_map(|n| match n {
            Node::Loop(l, body) => insns_of(body).into_iter().find(is_update).map(|i| (*l, body, i)),
            Node::Insn(_) => None,
        });
        let (iname, body, update) = SUMS.find(loops.into_iter().next(), || {
            format!(
                "no loop after `{}` in the same body updates `{name}` by `+=`; distribute or interchange the loops first",
                self.along
            )
        })?;
        let touches = |i: &InsnId| {
            let insn = &kernel.insns[*i];
            insn.lhs.var == var || insn.expressions().any(|e| kernel.expand_rules(e).loads(var))
        };
        let own = insns_of(body).into_iter().filter(touches).find(|i| *i != update);
        let reads = kernel.insns[update].expressions().any(|e| kernel.expand_rules(e).loads(var));
        let other = own.or(reads.then_some(update));
        SUMS.forbid(other, |i| {
            format!(
                "`{}` uses `{name}` in `{}` before it is done, and it would find a sum of another scale; distribute the \
                 loop first",
                kernel.insns[i].name, kernel.inames[iname].name
            )
        })?;
        NOT_CALLED.require(kernel.insns[update].callee.is_none(), || {
            format!("`{}` belongs to a call; inline the call first", kernel.insns[update].name)
        })?;
        Ok((iname, update))
    }

    /// The proof with the loops of its sums, which run over the values of that of the maximum.
    fn with_loops(&self, kernel: &Kernel, around: &Around, proof: OneLoop) -> Result<OneLoop, Refusal> {
        let later = around.nodes[around.at + 1..].iter();
        let of_sum = |n: &Node| match n {
            Node::Loop(l, _) => proof.sums.iter().any(|s| s.iname == *l).then_some(*l),
            Node::Insn(_) => None,
        };
        let loops: Vec<_> = later.filter_map(of_sum).collect();
        let along = &kernel.inames[proof.along];
        let until = around.until(&loops);
        for l in &loops {
            let other = &kernel.inames[*l];
            let to_along = |atom: &Atom| (*atom == Atom::Iname(*l)).then(|| Affine::iname(proof.along));
            let same = other.domain.substitute(&to_along) == along.domain;
            let sequential = [other, along].iter().all(|i| i.tag == AxisTag::Sequential);
            SAME_VALUES.require(same && sequential, || {
                format!(
                    "`{}` {{{}}} and `{}` {{{}}} are no sequential loops over the same values; split or shift both alike",
                    kernel.show_domain(proof.along, &along.domain),
                    along.tag,
                    kernel.show_domain(*l, &other.domain),
                    other.tag
                )
            })?;
            check_bounds_stay(kernel, *l, &until)?;
        }
        let writer = insns_of(&until[1..]).into_iter().find(|i| kernel.insns[*i].lhs.var == proof.max.var);
        MAXIMUM.forbid(writer, |i| {
            let name = &kernel.insns[i].name;
            format!("`{name}` writes `{}` before the sums are done; use another temporary there", self.max)
        })?;
        Ok(OneLoop { loops, ..proof })
    }

    /// The loops may be one, if the sums need no last maximum.
    fn check_fused(&self, analysis: &Analysis, proof: &OneLoop) -> Result<(), Refusal> {
        let mut before = analysis.kernel().clone();
        for sum in &proof.sums {
            let insn = &mut before.insns[sum.insn];
            let now = |e: Expr| {
                if e.as_load() == Some(&proof.max) { Expr::from(0.0) } else { e }
            };
            insn.rhs = insn.rhs.map(&mut { now });
        }
        let mut after = before.clone();
        fuse(&mut after, proof, &[]);
        let moved: Vec<(InameId, Vec<InsnId>)> = proof
            .loops
            .iter()
            .map(|l| {
                let body = kingpost_steps::tree::body_of(&before, *l)?;
                Ok((*l, insns_of(body)))
            })
            .collect::<Result<_, Refusal>>()?;
        let value = |insn, l| {
            let own = moved.iter().find(|(_, insns)| insns.contains(&insn)).filter(|_| l == proof.along);
            own.map(|(l, _)| Affine::iname(*l))
        };
        let before = analysis.next(&before);
        let order = Reordering { before: &before, after: &after, value: &value, whole: &[] };
        check_order(&order, &|source, sink| {
            format!(
                "move `{source}` or `{sink}` out of the loops, or name every sum that needs `{}`",
                self.max
            )
        })
    }
}

/// Whether one of the updates of the maximum, with a number of loops around that of the maximum and
/// itself, surely runs in every iteration.
fn takes_surely(analysis: &Analysis, tops: &[InsnId], depth: usize) -> Result<bool, Refusal> {
    for top in tops.iter().filter(|top| analysis.kernel().insns[**top].predicate.is_none()) {
        let mut runs = true;
        for l in &analysis.polyhedral().loops(*top)[depth..] {
            runs &= never_empty(analysis, *l)?;
        }
        if runs {
            return Ok(true);
        }
    }
    Ok(false)
}

/// No element of a sum is scaled twice in an iteration.
///
/// Formula: with `o` the loops down to that of the maximum, for every new update `s` of a sum,
/// `{ s -> s' : o = o', element(s) = element(s'), s before s' }` is empty.
fn check_once(analysis: &Analysis, draft: &Kernel, around: &Around, proof: &OneLoop) -> Result<(), Refusal> {
    let draft = analysis.next(draft);
    let (kernel, poly) = (draft.kernel(), draft.polyhedral());
    let outer: Vec<_> = around.loops.iter().copied().chain([proof.along]).collect();
    let scales =
        |s: &&kingpost_analysis::deps::AccessSite| kernel.insns[s.insn].update_op() == Some(UpdateOp::Mul);
    for sum in &proof.sums {
        for site in draft.sites(sum.var).iter().filter(|s| s.writes()).filter(scales) {
            if !poly.loops(site.insn).starts_with(&outer) {
                continue;
            }
            let Some(pair) = pair_relation(poly, site, site, Order::Within(&outer)) else { continue };
            let found = stale::witness(kernel, site, site, &pair.map(poly)?)?;
            ONCE.refute(found.map(|witness| LostValue {
                found: format!(
                    "{} and {} would both scale `{}`",
                    witness.source, witness.sink, witness.element
                ),
                witness,
                help: "let each loop of the sum's index be an index of its own".into(),
            }))?;
        }
    }
    Ok(())
}

/// Puts the loops of the sums into that of the maximum, and what stands between them in front.
/// `first` comes before the body of the loop that it names, or of that of the maximum.
fn fuse(kernel: &mut Kernel, proof: &OneLoop, first: &[(Option<InameId>, Node)]) {
    let is_along = |n: &Node| is_loop(n, proof.along);
    edit_siblings(&mut kernel.body, &is_along, &mut |nodes| {
        let Some(at) = nodes.iter().position(is_along) else { return };
        let Some(last) = nodes.iter().rposition(|n| proof.loops.iter().any(|l| is_loop(n, *l))) else {
            return;
        };
        let (mut between, mut inside) = (Vec::new(), Vec::new());
        for node in nodes.drain(at..=last) {
            match node {
                Node::Loop(l, body) if l == proof.along || proof.loops.contains(&l) => {
                    let own = (l != proof.along).then_some(l);
                    let of_it = first.iter().filter(|(before, _)| *before == own);
                    inside.extend(of_it.map(|(_, node)| node.clone()).chain(body));
                }
                other => between.push(other),
            }
        }
        between.push(Node::Loop(proof.along, inside));
        nodes.splice(at..at, between);
    });
    for l in &proof.loops {
        substitute_iname(kernel, *l, &Affine::iname(proof.along));
    }
}

fn statement(name: String, lhs: Access, op: WriteOp, rhs: Expr) -> Insn {
    Insn { name, lhs, op, rhs, predicate: None, tags: Default::default(), callee: None }
}

fn is_loop(node: &Node, iname: InameId) -> bool {
    matches!(node, Node::Loop(l, _) if *l == iname)
}
