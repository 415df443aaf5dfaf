//! Runs a loop backward.

use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, InameId, Kernel};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::ORDER;
use kingpost_steps::proofs::any_order::{Together, check_any_order};
use kingpost_steps::proofs::bounds::{CONSTANT_BOUNDS, check_constant_value};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::substitute::remap_iname;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Runs the iterations of `iname` in the opposite order: the loop counts `lo + hi - 1 - i`.
///
/// # Rewrite
/// ```text
/// for i in 0..n      =>   for i in 0..n
///   S(i)                    S(-i + n - 1)
/// ```
/// The iname of a reduction is reversed likewise; reductions may be reassociated.
///
/// # Precondition
/// The loop is a range
/// `lo..hi`, perhaps under conditions that do not mention it, and it carries no dependence: with
/// `o` the loops around, `{ s[o, i] -> t[o, i'] in D : i < i' }` is empty for every flow, anti and
/// output dependence `D` between instructions inside. Commuting updates may be reordered; the reuse
/// of a temporary whose values stay inside one iteration does not count. If loops are on axes, the
/// placement must still hold.
///
/// # Errors
/// An unknown iname, values that are no range or whose bounds are read from memory, a dependence
/// the loop carries or that the placement breaks, with two instances.
///
/// # Elsewhere
/// Loop reversal (Wolfe 1989); Loopy `affine_map_inames`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReverseIname {
    /// The loop.
    pub iname: String,
}

impl ReverseIname {
    /// Reverses `iname`.
    pub fn new(iname: impl Into<String>) -> Self {
        Self { iname: iname.into() }
    }
}

impl fmt::Display for ReverseIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reverse `{}`", self.iname)
    }
}

/// The values of the loop are a range.
const RANGE: Obligation = Obligation::new(
    "reverse_iname.range",
    "the loop is a range `lo..hi`, perhaps under conditions that do not mention it",
);

/// What the edit relies on.
pub struct Reversed {
    iname: InameId,
    /// What stands for the iname in the body.
    value: Affine,
}

impl Primitive for ReverseIname {
    const NAME: &'static str = "reverse_iname";
    const SUMMARY: &'static str = "Runs a loop backward.";

    type Proof = Reversed;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[RANGE, CONSTANT_BOUNDS, ORDER];
    const KEEPS: Keeps = Keeps::REASSOCIATED;

    fn check(&self, analysis: &Analysis) -> Result<Reversed, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::iname(kernel, &self.iname)?;
        let domain = &kernel.inames[iname].domain;
        let range = RANGE.find(domain.as_guarded_range(iname), || {
            format!(
                "`{}` is no plain range `lo..hi`; split or peel the loop so that it is one",
                kernel.show_domain(iname, domain)
            )
        })?;
        let value = range.lo.plus(&range.hi).plus_constant(-1).minus(&Affine::iname(iname));
        check_constant_value(kernel, iname, &value)?;
        check_any_order(analysis, iname, &value, Together::Iteration, &|source, sink| {
            if source == sink {
                format!(
                    "keep `{}` in this order, or reverse a loop that `{source}` does not depend on",
                    self.iname
                )
            } else {
                format!("distribute `{source}` and `{sink}` first, or keep `{}` in this order", self.iname)
            }
        })?;
        Ok(Reversed { iname, value })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Reversed) {
        // the bounds of a range stay, in the form they have, and its guard does not mention it
        let domain = kernel.inames[proof.iname].domain.clone();
        remap_iname(kernel, proof.iname, &proof.value);
        kernel.inames[proof.iname].domain = domain;
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(p.of(&draw::inames(kernel))?))
    }
}
