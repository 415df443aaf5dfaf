//! Moves an instruction that does not depend on a loop before it.

use purlin_analysis::deps::AccessSite;
use purlin_analysis::deps::pair::{Order, pair_relation};
use purlin_analysis::{Analysis, Witness};
use purlin_ir::{Atom, Expr, GuardedRange, Id, InameId, InsnId, Kernel, Node, WriteOp};
use purlin_steps::condition::where_runs;
use purlin_steps::draw::{self, Picks};
use purlin_steps::expected::Expected;
use purlin_steps::keeps::Instances;
use purlin_steps::lookup;
use purlin_steps::obligation::Obligation;
use purlin_steps::primitive::Primitive;
use purlin_steps::proofs::CURRENT;
use purlin_steps::proofs::length::runs_if;
use purlin_steps::proofs::stale::{Place, check_unchanged, witness};
use purlin_steps::refusal::{Refusal, WrongOrder};
use purlin_steps::tree::loops_of;
use purlin_steps::tree::{edit_siblings, prune_insn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Moves an instruction before the loop around it, whose iterations it does not depend on.
///
/// # Rewrite
/// ```text
/// for i in 0..n          =>   s: t = 2.0*a[0] if 0 < n
///   s: t = 2.0*a[0]           for i in 0..n
///   u: y[i] = t                 u: y[i] = t
/// ```
/// It runs once instead of once an iteration: fewer instances are counted. If the loop may be
/// empty, the instruction gets its bounds as a condition.
///
/// # Precondition
/// The instruction is a store directly in the loop and does not mention its iname. With
/// `L` the loops around the loop: (1) no write inside the loop reaches an operand, `{ w -> s : L =
/// L', element(w) = element(s), w before s
/// }` is empty; (2) nobody inside the loop needs an older value: no other access textually before
/// `s` touches what `s` writes, in the same iteration of `L`; (3) nobody else inside the loop
/// writes what `s` writes. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown instruction, one outside all loops, an update, an instruction that mentions the loop,
/// a reduction; a loop that may be empty and has no two bounds; shared storage; (1), (2) or (3)
/// broken, with two instances.
///
/// # Elsewhere
/// Exo `lift_alloc` with `fission`; LLVM's loop-invariant code motion; Loopy has none; MLIR
/// `affine-loop-invariant-code-motion`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HoistInsn {
    /// The instruction.
    pub insn: String,
}

impl HoistInsn {
    /// Hoists `insn` out of the innermost loop around it.
    pub fn new(insn: impl Into<String>) -> Self {
        Self { insn: insn.into() }
    }
}

impl fmt::Display for HoistInsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hoist `{}`", self.insn)
    }
}

/// There is a loop to leave.
const INSIDE: Obligation = Obligation::new("hoist_insn.inside", "a loop is around the instruction");

/// An update counts every iteration.
const STORE: Obligation = Obligation::new("hoist_insn.store", "the instruction is a store");

/// Another array in the storage may be alive earlier.
const OWN_STORAGE: Obligation =
    Obligation::new("hoist_insn.own_storage", "what the instruction writes has storage of its own");

/// The bounds are read before the loop.
const NO_BOUND: Obligation =
    Obligation::new("hoist_insn.no_bound", "the instruction writes no bound of the loop");

/// The same instance in every iteration.
const SAME: Obligation = Obligation::new("hoist_insn.same", "the instruction does not mention the loop");

/// A reduction is a loop of its own.
const NO_REDUCTION: Obligation =
    Obligation::new("hoist_insn.no_reduction", "the instruction holds no reduction");

/// `{ a -> s : L = L', element(a) = element(s), a before s }` is empty for what else accesses what
/// `s` writes.
const UNSEEN: Obligation = Obligation::new(
    "hoist_insn.unseen",
    "no other instruction in the loop reads what stands there before the instruction",
);

/// `{ w -> s }` and `{ s -> w }` are empty for every other write `w` in the loop.
const ONLY_WRITE: Obligation = Obligation::new(
    "hoist_insn.only_write",
    "no other instruction in the loop writes what the instruction writes",
);

/// Before an empty loop it must not run.
const CONDITION: Obligation =
    Obligation::new("hoist_insn.condition", "the loop is never empty, or is a range, whose bounds say when");

/// An instruction that does the same in every iteration of a loop.
pub struct Invariant {
    insn: InsnId,
    iname: InameId,
    /// The values of the loop, if they may be none.
    bounds: Option<GuardedRange>,
}

impl Primitive for HoistInsn {
    const NAME: &'static str = "hoist_insn";
    const SUMMARY: &'static str = "Moves an instruction before a loop that it does not depend on.";

    type Proof = Invariant;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] =
        &[INSIDE, STORE, OWN_STORAGE, NO_BOUND, SAME, NO_REDUCTION, CURRENT, UNSEEN, ONLY_WRITE, CONDITION];
    const INSTANCES: Instances = Instances::Fewer;
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Invariant, Refusal> {
        let kernel = analysis.kernel();
        let insn = lookup::insn(kernel, &self.insn)?;
        let loops = loops_of(kernel, insn)?;
        let Some(iname) = loops.last().copied() else {
            return Err(INSIDE.unfit(format!("no loop is around `{}`", self.insn)));
        };
        self.check_form(kernel, insn, iname)?;
        check_accesses(analysis, insn, &loops)?;
        let bounds = runs_if(analysis, iname, CONDITION)?;
        Ok(Invariant { insn, iname, bounds })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Invariant) {
        if let Some(range) = &proof.bounds {
            let insn = &mut kernel.insns[proof.insn];
            insn.predicate = Some(where_runs(range, insn.predicate.take()));
        }
        let is_loop = |n: &Node| matches!(n, Node::Loop(l, _) if *l == proof.iname);
        edit_siblings(&mut kernel.body, &is_loop, &mut |nodes| {
            let Some(at) = nodes.iter().position(is_loop) else { return };
            if let Node::Loop(_, body) = &mut nodes[at] {
                prune_insn(body, proof.insn);
                if body.is_empty() {
                    nodes.remove(at); // it held nothing else
                }
            }
            nodes.insert(at, Node::Insn(proof.insn));
        });
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let all = draw::insns(kernel, |i| i.op == WriteOp::Assign).into_iter().map(Self::new).collect();
        draw::possible(kernel, all, p)
    }
}

impl HoistInsn {
    fn check_form(&self, kernel: &Kernel, id: InsnId, iname: InameId) -> Result<(), Refusal> {
        let insn = &kernel.insns[id];
        let (name, of_loop) = (&self.insn, &kernel.inames[iname].name);
        STORE.require(insn.op == WriteOp::Assign, || {
            format!("`{name}` is an update, which counts every iteration; only stores are hoisted")
        })?;
        OWN_STORAGE.require(kernel.vars[insn.lhs.var].storage.is_none(), || {
            format!(
                "`{name}` writes to shared storage, where it may not come earlier; give it a buffer of its own"
            )
        })?;
        let mut bounds = false;
        kernel.inames[iname].domain.for_each_symbol(&mut |a| bounds |= *a == Atom::Var(insn.lhs.var));
        NO_BOUND.require(!bounds, || {
            format!("`{name}` writes a bound of `{of_loop}`, which is read before; keep it inside the loop")
        })?;
        let (mut mentions, mut reduces) = (false, false);
        for e in insn.lhs.index.iter().chain([&insn.rhs]).chain(&insn.predicate) {
            e.for_each(&mut |e| {
                mentions |= *e == Expr::Iname(iname);
                if let Expr::Reduce(r) = e {
                    reduces = true;
                    mentions |= r.inames.iter().any(|i| kernel.inames[*i].domain.mentions(iname));
                }
            });
        }
        SAME.require(!mentions, || {
            format!("`{name}` mentions `{of_loop}`; only what is the same in every iteration is hoisted")
        })?;
        NO_REDUCTION.require(!reduces, || format!("`{name}` holds a reduction; realise it first"))
    }
}

/// Nothing that accesses what the instruction reads and writes stands between the start of the
/// innermost of `loops` and it.
fn check_accesses(analysis: &Analysis, id: InsnId, loops: &[InameId]) -> Result<(), Refusal> {
    let Some((iname, around)) = loops.split_last() else { return Ok(()) };
    let (kernel, poly, sites) = (analysis.expanded(), analysis.polyhedral(), analysis.all_sites());
    let inside = |s: &AccessSite| poly.loops(s.insn).starts_with(loops);
    let start = sites.iter().flatten().filter(|s| inside(s)).map(|s| poly.position(s.insn)).min();
    let start = start.expected("access in the loop of an instruction", kernel)?;
    let what = format!("the start of `{}`", kernel.inames[*iname].name);
    let insn = &kernel.insns[id];
    for of_var in sites {
        let operands: Vec<_> =
            of_var.iter().filter(|s| s.insn == id && !s.writes()).filter(|s| s.bound_of.is_none()).collect();
        // only what runs inside this loop comes after its start
        let here: Vec<_> = of_var.iter().filter(|s| inside(s)).cloned().collect();
        let place = Place { loops: around, position: start, what: &what };
        check_unchanged(poly, &here, &operands, place, "keep it inside the loop")?;
    }
    let target = &sites[insn.lhs.var.index()];
    let Some(own) = target.iter().find(|s| s.insn == id && s.writes()) else { return Ok(()) };
    let clash = |source, sink| {
        let Some(pair) = pair_relation(poly, source, sink, Order::Within(around)) else { return Ok(None) };
        Ok::<_, Refusal>(witness(kernel, source, sink, &pair.map(poly)?)?)
    };
    for other in target.iter().filter(|s| s.insn != id && inside(s)) {
        if other.writes() {
            let found = match clash(other, own)? {
                Some(found) => Some(found),
                None => clash(own, other)?,
            };
            let help = "both write it, so the last value would be another one; keep it inside the loop";
            ONLY_WRITE.refute(found.map(|witness| too_early(witness, &what, help)))?;
        } else if poly.position(other.insn) < poly.position(id) {
            // a later read sees the same value
            let help = "the use would see the new value; keep it inside the loop";
            UNSEEN.refute(clash(other, own)?.map(|witness| too_early(witness, &what, help)))?;
        }
    }
    Ok(())
}

/// The later one of two accesses would come before the earlier one.
fn too_early(witness: Witness, what: &str, help: &str) -> WrongOrder {
    let relation = format!("which touches `{}` after {what}", witness.element);
    WrongOrder { witness, relation, help: help.into() }
}
