//! Makes bounds of a loop conditions of what is inside.

use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::is_symbol;
use kingpost_ir::{Affine, Atom, AxisTag, BinaryOp, Constraint, Domain, Expr, InameId, InsnId, Kernel};
use kingpost_steps::condition::{also, condition};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, changing_bounds, check_bounds_stay};
use kingpost_steps::proofs::recomputed::RECOMPUTED;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::Array;
use kingpost_steps::tree::{inames_of, insns_of, loop_body};
use kingpost_steps::widest::{WIDEST, Widest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

use kingpost_steps::hull::has_linear_bounds;

/// Makes the bounds of `iname` that are read from memory conditions of the instructions inside; the
/// others stay.
///
/// # Rewrite
/// ```text
/// for k in max(0, first)..min(8, last)   =>   for k in 0..8
///   s: y += a[k]                                s: y += a[k] if k + 1 <= last and first <= k
/// ```
/// So the loop has bounds that other steps can work with: those of a row of a sparse matrix, after
/// `split_iname`, become a loop over the lanes of a sub-group. With `over`, the bounds that mention
/// one of these loops, parameters or scalars move.
///
/// With `widest`, a loop around, the largest of the bounds above that move takes their place; it is computed
/// before that loop. Then the two can be interchanged, as in ELLPACK and its slices:
/// ```text
/// for i in 0..n           =>   k_max_start: k_max = 0
///   e: end = …                 for i_max in 0..n
///   for k in 0..end              k_max_update: k_max max= …
///     s: y[i] += a[k, i]       for i in 0..n
///                                e: end = …
///                                for k in 0..k_max
///                                  s: y[i] += a[k, i] if k + 1 <= end
/// ```
///
/// # Precondition
/// With `D = S and M`, `S` the bounds that stay and `M` those that move: `S` is linear in the loop
/// and bounds it from both sides. Nothing inside writes a scalar in `M`, `vars(M) ∩ written(body) =
/// {}`, so that it is the same in each iteration. The loops inside are entered in iterations of `S`
/// that were none before: no bound of theirs is read from memory. With `widest`, `S` bounds the loop from
/// below by a constant and `M` is one bound from above, `iname <= e`. Each scalar in `e` that the loop around
/// sets has one assignment `w` there, before `iname` and without condition, with
/// `vars(rhs(w)) ∩ written(widest) = {}`.
///
/// # Errors
/// An unknown iname, that of a reduction, one on an axis or in lanes; bounds that do not move or do
/// not stay; a scalar that the loop writes; a loop inside whose bounds are read from memory. With `widest`:
/// another loop than one around, other bounds, a scalar whose value is not known before.
///
/// # Elsewhere
/// Halide's tail strategy `GuardWithIf`; masked vector loops of ISPC and LLVM.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuardIname {
    /// The loop.
    pub iname: String,
    /// Loops, parameters and scalars whose bounds move; without any, all scalars that are read from
    /// memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<String>,
    /// A loop around, before which the largest of the bounds that move is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widest: Option<String>,
    /// Name of that; `{iname}_max` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<String>,
}

impl GuardIname {
    /// Makes the bounds of `iname` that are read from memory conditions.
    pub fn new(iname: impl Into<String>) -> Self {
        Self { iname: iname.into(), over: Vec::new(), widest: None, maximum: None }
    }

    /// Lets the loop run to the largest of these bounds in the loop `around`.
    #[must_use]
    pub fn widest(mut self, around: impl Into<String>) -> Self {
        self.widest = Some(around.into());
        self
    }

    /// The loops and variables whose bounds move.
    fn moving(&self, kernel: &Kernel) -> Result<Vec<Atom>, Refusal> {
        let atom = |name: &String| match lookup::iname(kernel, name) {
            Ok(iname) => Ok(Atom::Iname(iname)),
            Err(_) => lookup::var(kernel, name).map(Atom::Var),
        };
        self.over.iter().map(atom).collect()
    }
}

impl fmt::Display for GuardIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "guard `{}`", self.iname)?;
        let over: Vec<_> = self.over.iter().map(|name| format!("`{name}`")).collect();
        if !over.is_empty() {
            write!(f, " over {}", over.join(", "))?;
        }
        self.widest.as_ref().map_or(Ok(()), |l| write!(f, ", up to the largest in `{l}`"))
    }
}

/// Instructions inside have a condition, reductions none.
const IN_TREE: Obligation = Obligation::new("guard_iname.in_tree", "the loop is none of a reduction");

/// More iterations on an axis would be more places.
const NO_AXIS: Obligation = Obligation::new("guard_iname.no_axis", "the loop has no axis and no lanes");

/// A condition is part of a conjunction.
const CONJUNCTION: Obligation =
    Obligation::new("guard_iname.conjunction", "the values of the loop are those of one conjunction");

/// There is something to do.
const MOVES: Obligation = Obligation::new("guard_iname.moves", "a bound of the loop moves");

/// What stays is a loop.
const BOUNDED: Obligation =
    Obligation::new("guard_iname.bounded", "the bounds that stay bound the loop from both sides");

/// Bounds have values in iterations that were none.
const INNER_BOUNDS: Obligation =
    Obligation::new("guard_iname.inner_bounds", "no bound of a loop inside is read from memory");

/// What the edit relies on.
pub struct Guarded {
    iname: InameId,
    stays: Domain,
    guard: Expr,
    insns: Vec<InsnId>,
    widest: Option<Widest>,
}

impl Primitive for GuardIname {
    const NAME: &'static str = "guard_iname";
    const SUMMARY: &'static str = "Makes bounds of a loop conditions of what is inside.";

    const WEIGHT: usize = 1;

    type Proof = Guarded;
    type Made = Option<Array>;

    const OBLIGATIONS: &'static [Obligation] = &[
        IN_TREE,
        NO_AXIS,
        CONJUNCTION,
        MOVES,
        BOUNDED,
        WIDEST,
        RECOMPUTED,
        INNER_BOUNDS,
        BOUNDS_STAY,
        NOT_CALLED,
    ];

    fn check(&self, analysis: &Analysis) -> Result<Guarded, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::iname(kernel, &self.iname)?;
        let data = &kernel.inames[iname];
        let body = IN_TREE.find(loop_body(&kernel.body, iname), || {
            format!("`{}` runs inside a reduction; realise the reduction first", self.iname)
        })?;
        let shown = || kernel.show_domain(iname, &data.domain).to_string();
        let has_place = matches!(data.tag, AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Vector);
        NO_AXIS.forbid(has_place.then_some(data.tag), |tag| {
            format!("`{}` is tagged {tag}; tag it sequential first", self.iname)
        })?;
        let all = CONJUNCTION
            .find(data.domain.as_conjunction(), || format!("`{}` is a union; cut the loop first", shown()))?;
        let over = self.moving(kernel)?;
        let moves = |c: &&Constraint| {
            let mut found = false;
            c.expr().for_each_symbol(&mut |atom| {
                found |= match atom {
                    Atom::Var(var) if over.is_empty() => !is_symbol(kernel, *var),
                    Atom::Iname(_) | Atom::Floor(..) if over.is_empty() => false,
                    atom => over.contains(atom) && *atom != Atom::Iname(iname),
                };
            });
            found
        };
        let (mut moved, stay): (Vec<_>, Vec<_>) = all.iter().partition(moves);
        MOVES.require(!moved.is_empty(), || {
            let what = if over.is_empty() { "is read from memory" } else { "mentions what `over` names" };
            format!("no bound of `{}` {what}", shown())
        })?;
        let stays = Domain::conjunction(stay.into_iter().cloned());
        let ask = |around: &String| {
            let maximum = self.maximum.clone();
            Widest::find(analysis, iname, around, &stays, &moved, maximum)
        };
        let widest = self.widest.as_ref().map(ask).transpose()?;
        BOUNDED.require(widest.is_some() || has_linear_bounds(&stays, iname), || {
            format!(
                "without them, `{}` has no two bounds; split it by a constant first, or name a loop around it with \
                 `widest`",
                shown()
            )
        })?;
        check_bounds_stay(kernel, iname, body)?;
        let reads = |inner: &&InameId| {
            loop_body(body, **inner).is_some() && !changing_bounds(kernel, **inner).is_empty()
        };
        INNER_BOUNDS.forbid(inames_of(kernel, body).iter().find(reads), |inner| {
            let name = &kernel.inames[*inner].name;
            format!(
                "the bounds of `{name}` are read from memory, and may have no value in more iterations of `{}`; guard \
                 `{name}` first",
                self.iname
            )
        })?;
        // what does not mention the loop comes first: bounds may mean nothing without it
        moved.sort_by_key(|c| c.expr().mentions(iname));
        let parts = moved.into_iter().filter_map(|c| condition(&Domain::conjunction([c.clone()])));
        let guard = parts.reduce(|a, b| Expr::binary(BinaryOp::And, a, b));
        let guard = MOVES.find(guard, || "the bounds always hold".into())?;
        let insns = insns_of(body);
        let called = insns.iter().map(|insn| &kernel.insns[*insn]).find(|insn| insn.callee.is_some());
        NOT_CALLED
            .forbid(called, |insn| format!("`{}` belongs to a call; inline the call first", insn.name))?;
        Ok(Guarded { iname, stays, guard, insns, widest })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Guarded) -> Option<Array> {
        kernel.inames[proof.iname].domain = proof.stays.clone();
        for insn in &proof.insns {
            let insn = &mut kernel.insns[*insn];
            insn.predicate = also(insn.predicate.take(), Some(proof.guard.clone()));
        }
        let widest = proof.widest.as_ref()?;
        let end = Affine::var(widest.compute(kernel));
        let below = Domain::conjunction([Constraint::lt(&Affine::iname(proof.iname), &end)]);
        kernel.inames[proof.iname].domain = proof.stays.intersect(&below);
        Some(Array::named(widest.name()))
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut all: Vec<_> = draw::loops(kernel).into_iter().map(Self::new).collect();
        let nests: BTreeSet<_> = draw::around(kernel).into_iter().collect();
        for (outer, inner) in nests {
            all.push(Self::new(&inner).widest(&outer));
            all.push(Self { over: vec![outer], ..Self::new(inner) });
        }
        draw::possible(kernel, all, p)
    }
}
