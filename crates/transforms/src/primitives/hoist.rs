//! Moves statements that do not depend on a loop before it.

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::AccessSite;
use kingpost_analysis::deps::pair::{Order, pair_relation};
use kingpost_ir::{GuardedRange, InameId, InsnId, Kernel, Node};
use kingpost_steps::argument;
use kingpost_steps::condition::where_runs;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::former::Former;
use kingpost_steps::keeps::Instances;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::CURRENT;
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, changing_bounds, check_bounds_stay};
use kingpost_steps::proofs::exposed::{NOT_EXPOSED, Rerun};
use kingpost_steps::proofs::length::runs_if;
use kingpost_steps::proofs::stale::{Place, check_unchanged, witness};
use kingpost_steps::refusal::{Refusal, WrongOrder};
use kingpost_steps::run::{self, CONTIGUOUS, NOT_CALLED, same};
use kingpost_steps::tree::{body_of, edit_siblings, inames_of, insns_of, loop_around, loops_down_to};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Moves statements, instructions or loops with all they hold, before the loop around them,
/// whose iterations they do not depend on.
///
/// # Rewrite
/// ```text
/// for j in 0..n                    =>   for l in 0..4
///   for l in 0..4                         s0: p[l] = 0.0
///     s0: p[l] = 0.0                      for m in 0..4
///     for m in 0..4                         s: p[l] += b[m]*u[l, m]
///       s: p[l] += b[m]*u[l, m]         for j in 0..n
///   for k in 0..4                         for k in 0..4
///     t: y[j] += c[j, k]*p[k]               t: y[j] += c[j, k]*p[k]
/// ```
/// They run once instead of once an iteration: fewer instances are counted, and a product of sums
/// needs fewer operations. If the loop may be empty, each instruction gets its bounds as a
/// condition. Updates and reductions may be among the statements.
///
/// # Precondition
/// The statements stand one after the other in the loop and mention it nowhere, their bounds
/// included. With `L` the loops around the loop and `S` the statements:
/// (1) they start afresh: no read in `S` finds an element that `S` writes, and that no store of `S`
/// has written before in the same iteration, `{ r : exists w } \ { r : exists w, L = L', w before r
/// }` is empty for the writes `w` of the element;
/// (2) no other write inside the loop reaches an operand, `{ w -> s : L = L', element(w) =
/// element(s), w before s }` is empty;
/// (3) nobody else inside the loop writes what `S` writes;
/// (4) nobody inside the loop needs an older value: no access textually before `S` touches
/// what `S` writes. Nothing in the loop writes a scalar in the bounds of `S`, and `S`
/// none in those of the loop.
/// If loops are on axes, the placement must hold.
///
/// # Errors
/// Unknown statements, some outside all loops, apart, or part of a call; statements that mention
/// the loop; a read of what another iteration has left, with the point; (2), (3) or (4) broken,
/// with two instances; shared storage; bounds that change; a loop that may be empty and has no two
/// bounds, or around loops whose bounds are read from memory.
///
/// # Elsewhere
/// Loop-invariant code motion of whole nests; Halide `compute_at` further out; Exo `lift_scope`
/// with `fission`; the cut between two contractions of a sum factorisation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hoist {
    /// An instruction or loop, or a list of them.
    #[serde(with = "argument::one_or_several")]
    #[schemars(schema_with = "argument::one_or_several::schema")]
    pub statements: Vec<String>,
}

impl Hoist {
    /// Hoists statements out of the innermost loop around them.
    pub fn new<S: Into<String>>(statements: impl IntoIterator<Item = S>) -> Self {
        Self { statements: statements.into_iter().map(Into::into).collect() }
    }
}

impl fmt::Display for Hoist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.statements.iter().map(|n| format!("`{n}`")).collect();
        write!(f, "hoist {}", if names.is_empty() { "nothing".into() } else { names.join(", ") })
    }
}

/// There is a loop to leave.
const INSIDE: Obligation = Obligation::new("hoist.inside", "a loop is around the statements");

/// The same instances in every iteration.
const SAME: Obligation = Obligation::new("hoist.same", "the statements do not mention the loop");

/// Another array in the storage may be alive earlier.
const OWN_STORAGE: Obligation =
    Obligation::new("hoist.own_storage", "what the statements write has storage of its own");

/// `{ a -> s : L = L', element(a) = element(s), a before s }` is empty for what else accesses what
/// `s` writes.
const UNSEEN: Obligation = Obligation::new(
    "hoist.unseen",
    "no other instruction in the loop reads what stands there before the statements",
);

/// `{ w -> s }` and `{ s -> w }` are empty for every other write `w` in the loop.
const ONLY_WRITE: Obligation =
    Obligation::new("hoist.only_write", "no other instruction in the loop writes what the statements write");

/// Before an empty loop they must not run.
const CONDITION: Obligation = Obligation::new(
    "hoist.condition",
    "the loop is never empty, or is a range, whose bounds say when, and no bound of the statements is read from memory",
);

/// Statements that do the same in every iteration of a loop.
pub struct Invariant {
    /// They, without their bodies.
    statements: Vec<Node>,
    insns: Vec<InsnId>,
    iname: InameId,
    /// The values of the loop, if they may be none.
    bounds: Option<GuardedRange>,
}

impl Primitive for Hoist {
    const NAME: &'static str = "hoist";
    const SUMMARY: &'static str = "Moves statements before a loop that they do not depend on.";
    const FORMER: &'static [Former] =
        &[Former::of::<OneInsn, Self>("hoist_insn"), Former::of::<Self, Self>("hoist_nest")];

    type Proof = Invariant;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[
        INSIDE,
        CONTIGUOUS,
        NOT_CALLED,
        SAME,
        OWN_STORAGE,
        BOUNDS_STAY,
        NOT_EXPOSED,
        CURRENT,
        ONLY_WRITE,
        UNSEEN,
        CONDITION,
    ];
    const INSTANCES: Instances = Instances::Fewer;
    const WEIGHT: usize = 4;

    fn check(&self, analysis: &Analysis) -> Result<Invariant, Refusal> {
        let kernel = analysis.kernel();
        let run = run::named(kernel, &self.statements)?;
        let iname = INSIDE
            .find(loop_around(&kernel.body, &|n| run.nodes.iter().any(|m| same(m, n))), || {
                format!("no loop is around `{}`", self.statements[0])
            })?;
        let insns = insns_of(run.nodes);
        self.check_form(kernel, run.nodes, iname)?;
        let body = body_of(kernel, iname)?;
        inames_of(kernel, run.nodes).into_iter().try_for_each(|l| check_bounds_stay(kernel, l, body))?;
        // the bounds of the loop itself are read before it, and before the others run
        check_bounds_stay(kernel, iname, run.nodes)?;
        let rerun = Rerun { analysis, insns: &insns, around: &loops_down_to(kernel, iname)? };
        rerun.check_not_exposed()?;
        check_accesses(&rerun)?;
        let bounds = check_condition(analysis, run.nodes, iname)?;
        let statements = run.nodes.iter().map(without_body).collect();
        Ok(Invariant { statements, insns, iname, bounds })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Invariant) {
        if let Some(range) = &proof.bounds {
            for id in &proof.insns {
                let insn = &mut kernel.insns[*id];
                insn.predicate = Some(where_runs(range, insn.predicate.take()));
            }
        }
        let is_loop = |n: &Node| matches!(n, Node::Loop(l, _) if *l == proof.iname);
        edit_siblings(&mut kernel.body, &is_loop, &mut |nodes| {
            let Some(at) = nodes.iter().position(is_loop) else { return };
            let Node::Loop(_, body) = &mut nodes[at] else { return };
            let moved = |n: &Node| proof.statements.iter().any(|m| same(m, n));
            let (taken, rest): (Vec<_>, Vec<_>) = std::mem::take(body).into_iter().partition(moved);
            *body = rest;
            let empty = body.is_empty();
            nodes.splice(at..at, taken);
            if empty {
                nodes.retain(|n| !is_loop(n)); // it held nothing else
            }
        });
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut all = Vec::new();
        for (_, names) in draw::bodies(kernel).into_iter().filter(|(of, _)| of.is_some()) {
            all.extend((1..=2).flat_map(|n| names.windows(n).map(<[String]>::to_vec).collect::<Vec<_>>()));
        }
        draw::possible(kernel, all.into_iter().map(Self::new).collect(), p)
    }
}

impl Hoist {
    fn check_form(&self, kernel: &Kernel, nodes: &[Node], iname: InameId) -> Result<(), Refusal> {
        let of_loop = &kernel.inames[iname].name;
        for l in inames_of(kernel, nodes) {
            SAME.require(!kernel.inames[l].domain.mentions(iname), || {
                format!(
                    "the bounds of `{}` mention `{of_loop}`; only what is the same in every iteration is hoisted",
                    kernel.inames[l].name
                )
            })?;
        }
        for id in insns_of(nodes) {
            let insn = &kernel.insns[id];
            let all = insn.expressions();
            SAME.require(!all.into_iter().any(|e| e.mentions(iname)), || {
                format!(
                    "`{}` mentions `{of_loop}`; only what is the same in every iteration is hoisted",
                    insn.name
                )
            })?;
            OWN_STORAGE.require(kernel.vars[insn.lhs.var].storage.is_none(), || {
                format!(
                    "`{}` writes to shared storage, where it may not come earlier; give it a buffer of its own",
                    insn.name
                )
            })?;
        }
        Ok(())
    }
}

/// The loop is never empty, or the statements may run under a condition.
fn check_condition(
    analysis: &Analysis,
    nodes: &[Node],
    iname: InameId,
) -> Result<Option<GuardedRange>, Refusal> {
    let kernel = analysis.kernel();
    let bounds = runs_if(analysis, iname, CONDITION)?;
    let from_memory = inames_of(kernel, nodes).into_iter().find(|l| !changing_bounds(kernel, *l).is_empty());
    CONDITION.require(bounds.is_none() || from_memory.is_none(), || {
        format!(
            "the loop `{}` may be empty, and the bounds of `{}` may have no value then; assume that it is not",
            kernel.inames[iname].name,
            from_memory.map_or("", |l| kernel.inames[l].name.as_str())
        )
    })?;
    Ok(bounds)
}

/// What the statements read and write is touched inside the loop by these statements only, or after
/// them.
fn check_accesses(rerun: &Rerun) -> Result<(), Refusal> {
    let Some((iname, outer)) = rerun.around.split_last() else { return Ok(()) };
    let (poly, insns) = (rerun.analysis.polyhedral(), rerun.insns);
    let kernel = &*poly.kernel;
    let is_own = |s: &&AccessSite| insns.contains(&s.insn);
    let is_other = |s: &&AccessSite| poly.loops(s.insn).starts_with(rerun.around) && !insns.contains(&s.insn);
    let positions = |s: &AccessSite| poly.position(s.insn);
    let inside = rerun.analysis.all_sites().iter().flatten();
    let start = inside.filter(|s| poly.loops(s.insn).starts_with(rerun.around)).map(positions).min();
    let first =
        insns.iter().map(|i| poly.position(*i)).min().expected("instruction that is hoisted", kernel)?;
    let what = format!("the start of `{}`", kernel.inames[*iname].name);
    let place = Place { loops: outer, position: start.expected("access in the loop", kernel)?, what: &what };
    let help = "keep the statements inside the loop";
    let clash = |source: &AccessSite, sink: &AccessSite, help: &str| {
        let Some(pair) = pair_relation(poly, source, sink, Order::Within(outer)) else { return Ok(None) };
        let found = witness(kernel, source, sink, &pair.map(poly)?)?;
        Ok::<_, Refusal>(found.map(|witness| {
            let relation = format!("which touches `{}` after {what}", witness.element);
            WrongOrder { witness, relation, help: help.into() }
        }))
    };
    for of_var in rerun.analysis.all_sites() {
        let others: Vec<_> = of_var.iter().filter(is_other).cloned().collect();
        let reads: Vec<_> = of_var.iter().filter(is_own).filter(|s| !s.writes()).collect();
        let reads: Vec<_> =
            reads.into_iter().filter(|s| s.bound_of.is_none_or(|l| !rerun.around.contains(&l))).collect();
        check_unchanged(poly, &others, &reads, place, help)?;
        for own in of_var.iter().filter(is_own).filter(|s| s.writes()) {
            for other in &others {
                if other.writes() {
                    let help = "both write it, so the last value would be another one; keep the statements inside the loop";
                    ONLY_WRITE.refute(clash(other, own, help)?)?;
                    ONLY_WRITE.refute(clash(own, other, help)?)?;
                } else if positions(other) < first {
                    // a later read sees the same value
                    let help = "the use would see the new value; keep the statements inside the loop";
                    UNSEEN.refute(clash(other, own, help)?)?;
                }
            }
        }
    }
    Ok(())
}

/// What `hoist_insn` took.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneInsn {
    insn: String,
}

impl From<OneInsn> for Hoist {
    fn from(old: OneInsn) -> Self {
        Self::new([old.insn])
    }
}

/// One statement.
fn without_body(node: &Node) -> Node {
    match node {
        Node::Insn(insn) => Node::Insn(*insn),
        Node::Loop(iname, _) => Node::Loop(*iname, Vec::new()),
    }
}
