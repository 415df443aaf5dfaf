//! Fuses two neighbouring loops.

use super::reschedule::Reschedule;
use kingpost_analysis::polyhedral::{Side, cross};
use kingpost_analysis::{Analysis, Witness};
use kingpost_ir::{Affine, Atom, Domain, InameId, Kernel, Node};
use kingpost_isl as isl;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::ORDER;
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, CONSTANT_BOUNDS, check_bounds_stay, check_constant_value};
use kingpost_steps::proofs::order::{Reordering, check_order};
use kingpost_steps::recipe::Recipe;
use kingpost_steps::refusal::{Clash, Refusal};
use kingpost_steps::substitute::{simplify_indices, substitute_iname};
use kingpost_steps::tree::{body_of, edit_siblings, insns_of, loop_body, siblings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Fuses `first` and the loop `second` directly after it into one loop, which keeps the name
/// `first`.
///
/// # Rewrite
/// ```text
/// for i in 0..n          =>   for i in 0..n
///   S(i)                        S(i)
/// for j in 2..n + 2             T(i + 2)
///   T(j)
/// ```
///
/// # Precondition
/// Both run over the same values after a shift `j = i + c`,
/// `c` affine in parameters and loops around, and have the same tag. No dependence runs from an
/// iteration of the first to one of the second that would come earlier: with `o` the loops around,
/// `{ s[o, i] -> t[o, j] in D : j - c < i }` is empty for every flow, anti and output dependence
/// `D`. Nothing in the first loop writes a scalar in the bounds of the second. If loops are on
/// axes, the placement must still hold.
///
/// # Errors
/// Unknown inames, the iname of a reduction, loops that are no neighbours, other values or tags,
/// bounds that change, a dependence of that direction, with the `reschedule` that shifts the second
/// loop where one does, or one that the placement breaks, with two instances.
///
/// # Elsewhere
/// Loopy `rename_iname` with `existing_ok`; Exo `fuse`; Halide `compute_with`; MLIR
/// `affine-loop-fusion`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FuseLoops {
    /// The loop that comes first.
    pub first: String,
    /// The loop directly after it.
    pub second: String,
}

impl FuseLoops {
    /// Fuses `first` and `second`.
    pub fn new(first: impl Into<String>, second: impl Into<String>) -> Self {
        Self { first: first.into(), second: second.into() }
    }
}

impl fmt::Display for FuseLoops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fuse `{}` and `{}`", self.first, self.second)
    }
}

/// Nothing between the loops.
const NEIGHBOURS: Obligation =
    Obligation::new("fuse_loops.neighbours", "the second loop stands directly after the first one");

/// The iterations of both run in the same places.
const SAME_TAG: Obligation = Obligation::new("fuse_loops.same_tag", "both loops have the same tag");

/// An iteration of one for each of the other.
const SAME_VALUES: Obligation =
    Obligation::new("fuse_loops.same_values", "both loops run over the same values after a shift");

/// Two neighbours, and how far the second one runs ahead: `c` with `domain(second) = domain(first)
/// + c`.
pub struct SameValues {
    first: InameId,
    second: InameId,
    shift: Affine,
}

impl Primitive for FuseLoops {
    const NAME: &'static str = "fuse_loops";
    const VERB: Option<&'static str> = Some("fuse");
    const SUMMARY: &'static str = "Fuses two neighbouring loops over the same values up to a shift.";

    type Proof = SameValues;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] =
        &[NEIGHBOURS, SAME_TAG, SAME_VALUES, CONSTANT_BOUNDS, BOUNDS_STAY, ORDER, NO_REDUCTION];
    const KEEPS: Keeps = Keeps::REASSOCIATED;
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<SameValues, Refusal> {
        let kernel = analysis.kernel();
        let first = lookup::tree_loop(kernel, &self.first)?;
        let second = lookup::tree_loop(kernel, &self.second)?;
        self.check_neighbours(kernel, first, second)?;
        let (tag, other) = (kernel.inames[first].tag, kernel.inames[second].tag);
        SAME_TAG.require(tag == other, || {
            format!("`{}` is {tag} and `{}` is {other}; tag both alike first", self.first, self.second)
        })?;
        let shift = self.shift(analysis, first, second)?;
        let body = body_of(kernel, first)?;
        check_bounds_stay(kernel, second, body)?;
        let proof = SameValues { first, second, shift };
        let after = self.draft(kernel, &proof);
        let moved = insns_of(body_of(kernel, second)?);
        let back = Affine::iname(second).minus(&proof.shift);
        let value = |insn, l| (l == first && moved.contains(&insn)).then(|| back.clone());
        let order = Reordering { before: analysis, after: &after, value: &value, whole: &[] };
        check_order(&order, &|source, sink| {
            format!("keep the loops apart, or let `{source}` and `{sink}` use memory of their own")
        })
        .map_err(|refusal| self.with_shift(analysis, &proof, refusal))?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &SameValues) {
        let SameValues { first, second, shift } = proof;
        let mut moved = Vec::new();
        edit_siblings(&mut kernel.body, &|node| is_loop(node, *second), &mut |nodes| {
            let Some(k) = nodes.iter().position(|node| is_loop(node, *second)) else { return };
            let Node::Loop(_, inside) = nodes.remove(k) else { return };
            moved = insns_of(&inside);
            if let Some(Node::Loop(_, body)) = nodes.iter_mut().find(|node| is_loop(node, *first)) {
                body.extend(inside);
            }
        });
        substitute_iname(kernel, *second, &Affine::iname(*first).plus(shift));
        simplify_indices(kernel, &moved);
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let (first, second) = p.of(&draw::neighbours(kernel))?;
        Some(Self::new(first, second))
    }
}

/// Shifts that a refusal tries beyond that of its two instances, which are the smallest, not the farthest.
const MORE_SHIFTS: i64 = 3;

impl FuseLoops {
    /// The refusal of two instances in the wrong order; where a shift of the second loop helps, it names the
    /// step.
    fn with_shift(&self, analysis: &Analysis, loops: &SameValues, mut refusal: Refusal) -> Refusal {
        if let Refusal::NotProved(failed) = &mut refusal
            && let Clash::Reordered(order) = &mut failed.clash
            && let Some(step) = self.past(analysis, loops, &order.witness)
        {
            order.help = format!("keep the loops apart, or shift the second one: {step}");
        }
        refusal
    }

    /// The fusion with the smallest shift that keeps the order of two instances, and of all others.
    fn past(&self, analysis: &Analysis, loops: &SameValues, witness: &Witness) -> Option<String> {
        let SameValues { first, second, shift } = loops;
        let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
        let source = poly.loops(kernel.insn(&witness.source.insn)?).iter().position(|l| l == first)?;
        let sink = poly.loops(kernel.insn(&witness.sink.insn)?).iter().position(|l| l == second)?;
        let ahead = witness.source.point.get(source)? - witness.sink.point.get(sink)?;
        let least = ahead + shift.as_constant().unwrap_or(0); // default: an unknown shift is tried from there on
        self.shifted(analysis, loops, least.max(1))
    }

    /// The text of a step that fuses the loops with a shift of at least so much that keeps the order.
    fn shifted(&self, analysis: &Analysis, loops: &SameValues, least: i64) -> Option<String> {
        let SameValues { first, second, shift } = loops;
        let kernel = analysis.kernel();
        let names =
            |iname: InameId| loop_body(&kernel.body, iname).into_iter().flatten().map(name_of(kernel));
        (least..=least + MORE_SHIFTS).find_map(|by| {
            let moved = Affine::iname(*second).minus(shift).plus_constant(by);
            let moved = kernel.show_affine(&moved).to_string();
            let step = Reschedule::new([&self.first, &self.second], [&self.first]);
            let step = names(*first).fold(step, |step, name| step.map(name, [self.first.clone()]));
            let step = names(*second).fold(step, |step, name| step.map(name, [moved.clone()]));
            step.check(analysis).ok()?;
            let recipe = Recipe { steps: vec![step.into()], ..Recipe::default() };
            Some(kingpost_steps::schedule::print(&recipe).trim_end().to_owned())
        })
    }

    /// How far the second loop runs ahead: `c` with `domain(second) = domain(first) + c`.
    fn shift(&self, analysis: &Analysis, first: InameId, second: InameId) -> Result<Affine, Refusal> {
        let kernel = analysis.kernel();
        let (a, b) = (&kernel.inames[first].domain, &kernel.inames[second].domain);
        let shift = match (a.as_guarded_range(first), b.as_guarded_range(second)) {
            (Some(a), Some(b)) => b.lo.minus(&a.lo),
            (None, _) | (_, None) => Affine::constant(0),
        };
        check_constant_value(kernel, second, &shift)?;
        let value = Affine::iname(first).plus(&shift);
        let shifted = b.substitute(&|atom| (*atom == Atom::Iname(second)).then(|| value.clone()));
        if shifted == *a {
            return Ok(shift);
        }
        let other = || {
            let loops = SameValues { first, second, shift: Affine::default() };
            let more = self.shifted(analysis, &loops, 0);
            let more =
                more.map_or_else(String::new, |step| format!(", or fuse them under conditions: {step}"));
            format!(
                "`{}` and `{}` do not run over the same values; split off what is more by peel_iname first{more}",
                kernel.show_domain(first, a),
                kernel.show_domain(second, b)
            )
        };
        let same = same_values(analysis, first, a, &shifted)?;
        SAME_VALUES.decide(same.is_some(), other)?;
        SAME_VALUES.require(same != Some(false), other)?;
        Ok(shift)
    }

    fn check_neighbours(&self, kernel: &Kernel, first: InameId, second: InameId) -> Result<(), Refusal> {
        if first == second {
            return Err(Refusal::argument(
                "second",
                "a loop cannot be fused with itself",
                format!("another loop than `{}`", self.first),
            ));
        }
        let position = |nodes: &[Node], l| nodes.iter().position(|node| is_loop(node, l));
        let around = siblings(&kernel.body, &|node| is_loop(node, first)).expected("first loop", kernel)?;
        let (a, b) = (position(around, first), position(around, second));
        let neighbours = a.is_some_and(|a| b == Some(a + 1));
        NEIGHBOURS.require(neighbours, || match (a, b) {
            (Some(a), Some(b)) if b < a => {
                format!("`{}` comes before `{}`; name it first", self.second, self.first)
            }
            (Some(a), Some(b)) => format!(
                "{} stands between `{}` and `{}`; move it first",
                lookup::names_in(kernel, &around[a + 1..b]),
                self.first,
                self.second
            ),
            (None, _) | (_, None) => format!(
                "`{}` and `{}` do not stand in the same body; fuse the loops around them first",
                self.first, self.second
            ),
        })
    }
}

/// The name of an instruction or a loop.
fn name_of(kernel: &Kernel) -> impl Fn(&Node) -> String {
    move |node: &Node| match node {
        Node::Insn(insn) => kernel.insns[*insn].name.clone(),
        Node::Loop(iname, _) => kernel.inames[*iname].name.clone(),
    }
}

fn is_loop(node: &Node, iname: InameId) -> bool {
    matches!(node, Node::Loop(found, _) if *found == iname)
}

/// Whether two domains of
/// `iname` hold the same values in every iteration of the loops around, under the assumptions;
/// `None` if values from memory decide.
fn same_values(analysis: &Analysis, iname: InameId, a: &Domain, b: &Domain) -> Result<Option<bool>, Refusal> {
    let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
    let ((a, exact_a), (b, exact_b)) = (poly.domain(a, Side::Source), poly.domain(b, Side::Source));
    if !(exact_a && exact_b) {
        return Ok(None);
    }
    let inside = insns_of(body_of(kernel, iname)?);
    let Some(inside) = inside.first() else { return Ok(None) };
    let around: Vec<_> = poly.loops(*inside).iter().copied().take_while(|l| *l != iname).collect();
    let mut dims = poly.names(&around, Side::Source);
    dims.push(poly.name(iname, Side::Source));
    let space = isl::SetSpace::new(&dims, &poly.params);
    let context = poly.in_context(poly.domains(&around, Side::Source).0);
    let set = |d| isl::Set::from_disjuncts(&space, &cross(&context, d));
    let (a, b) = (set(&a)?, set(&b)?);
    Ok(Some(a.is_subset(&b)? && b.is_subset(&a)?))
}
