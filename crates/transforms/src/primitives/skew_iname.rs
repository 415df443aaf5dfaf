//! Adds a multiple of an outer loop to the values of an inner one.

use kingpost_analysis::Analysis;
use kingpost_ir::affine::MAX_COEFFICIENT;
use kingpost_ir::{Affine, Atom, AxisTag, Expr, InameId, Kernel};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::bounds::{PLACES_FOLLOW, check_places_follow};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::substitute::remap_iname;
use kingpost_steps::tree::{inames_of, loop_body};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Adds `factor` times the outer loop `outer` to the values of `iname`.
///
/// # Rewrite
/// ```text
/// for t in 0..m          =>   for t in 0..m
///   for i in 0..n               for i in t..t + n
///     S(t, i)                     S(t, -t + i)
/// ```
/// After it a dependence `(1, -1)` has become `(1, 0)`, so that the loops may be interchanged. The
/// inverse is a skew by `-factor`.
///
/// # Precondition
/// `outer` is around `iname`. Nothing to prove about the order: for every value of `outer` it
/// stays. If the loop is on an axis, it is a plain range, whose places count from its lower bound,
/// so that they stay, and that bound mentions no loop after it: the places of a launch are counted
/// from one value.
///
/// # Errors
/// Unknown inames, an `outer` that is not around, a factor of 0 or beyond 2^40, a loop on an axis
/// that is no range or would start at a value of another loop, and a dependence that the placement
/// breaks, with two instances.
///
/// # Elsewhere
/// Loop skewing (Wolfe 1986); Loopy `affine_map_inames`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkewIname {
    /// The loop whose values change.
    pub iname: String,
    /// A loop around it.
    pub outer: String,
    /// How many times `outer` is added.
    pub factor: i64,
}

impl SkewIname {
    /// Adds `factor` times `outer` to the values of `iname`.
    pub fn new(iname: impl Into<String>, outer: impl Into<String>, factor: i64) -> Self {
        Self { iname: iname.into(), outer: outer.into(), factor }
    }
}

impl fmt::Display for SkewIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skew `{}` by {}*`{}`", self.iname, self.factor, self.outer)
    }
}

/// The other loop has a value wherever the loop begins.
const AROUND: Obligation =
    Obligation::new("skew_iname.around", "the loop that is added is around the other one");

/// The places of an axis are counted from a value that is the same in the whole launch.
const ONE_START: Obligation =
    Obligation::new("skew_iname.one_start", "a loop on an axis starts at a value of the parameters");

/// What the edit relies on.
pub struct Skewed {
    iname: InameId,
    /// What stands for the iname in the body.
    value: Affine,
}

impl Primitive for SkewIname {
    const NAME: &'static str = "skew_iname";
    const SUMMARY: &'static str = "Adds a multiple of an outer loop to the values of an inner one.";

    type Proof = Skewed;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[AROUND, PLACES_FOLLOW, ONE_START];

    fn check(&self, analysis: &Analysis) -> Result<Skewed, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::iname(kernel, &self.iname)?;
        let outer = lookup::iname(kernel, &self.outer)?;
        AROUND.require(is_around(kernel, outer, iname), || {
            format!("`{}` is not around `{}`; name a loop that is", self.outer, self.iname)
        })?;
        if self.factor == 0 || self.factor.unsigned_abs() > MAX_COEFFICIENT as u64 {
            let found = format!("the factor is {}", self.factor);
            return Err(Refusal::argument("factor", found, "-2^40 to 2^40 and not 0"));
        }
        check_places_follow(kernel, iname)?;
        let value = Affine::iname(iname).minus(&Affine::iname(outer).times(self.factor));
        let proof = Skewed { iname, value };
        self.check_start(&self.draft(kernel, &proof), iname)?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Skewed) {
        remap_iname(kernel, proof.iname, &proof.value);
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let (outer, inner) = p.of(&draw::around(kernel))?;
        Some(Self::new(inner, outer, p.between(-2, 2)))
    }
}

impl SkewIname {
    fn check_start(&self, skewed: &Kernel, iname: InameId) -> Result<(), Refusal> {
        let data = &skewed.inames[iname];
        let start = data.domain.as_guarded_range(iname).map_or_else(Affine::default, |range| range.lo);
        let moves = start.any_symbol(&mut |atom| matches!(atom, Atom::Iname(_)));
        let on_axis = matches!(data.tag, AxisTag::Group(_) | AxisTag::Local(_));
        ONE_START.require(!(moves && on_axis), || {
            format!(
                "`{}` on {} would start at `{}`, from which no code can count its places; keep it as it is, or tag \
                 it sequential first",
                self.iname,
                data.tag,
                skewed.show_affine(&start)
            )
        })
    }
}

/// Whether one iname is in scope where the other one begins.
fn is_around(kernel: &Kernel, outer: InameId, inner: InameId) -> bool {
    if outer == inner {
        return false;
    }
    if let Some(body) = loop_body(&kernel.body, outer) {
        return inames_of(kernel, body).contains(&inner);
    }
    let is_around = |e: &Expr| is_around_in(e, outer, inner);
    kernel.insns.values().any(|insn| insn.expressions().any(|e| e.any(&mut |e| is_around(e))))
}

/// Whether a reduction has `outer` before `inner`, or `inner` in its body.
fn is_around_in(e: &Expr, outer: InameId, inner: InameId) -> bool {
    let Expr::Reduce(r) = e else { return false };
    let Some(k) = r.inames.iter().position(|i| *i == outer) else { return false };
    let inside = |e: &Expr| matches!(e, Expr::Reduce(r) if r.inames.contains(&inner));
    r.inames[k..].contains(&inner) || r.body.any(&mut |e| inside(e))
}
