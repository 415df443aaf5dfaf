//! A primitive in a crate of its own.
//!
//! [`RotateIname`] starts a loop in its middle. [`steps`] is Kingpost's set with it: recipes and schedules that are
//! read by that set may name `acme.rotate_iname`, and random recipes draw it.
//!
//! ```
//! use own_primitive::{RotateIname, steps};
//! use kingpost_primitives::Schedule;
//!
//! let kernel = kingpost_ir::text::parse("kernel scale\narg y: f64[8] inout\n\nfor i in 0..8\n  s: y[i] = 2.0*y[i]\n")?;
//! let mut schedule = Schedule::of(&kernel);
//! schedule.make(RotateIname { iname: "i".into(), first: 3 })?;
//! assert!(schedule.kernel().to_string().contains("s: y[i - 8*floor_div(i + 3, 8) + 3] = 2.0*"));
//!
//! // recorded, saved and read back
//! let json = schedule.recipe().to_json()?;
//! assert!(json.contains(r#"{"acme.rotate_iname": {"iname": "i", "first": 3}}"#));
//! assert_eq!(steps()?.recipe(&json)?, *schedule.recipe());
//!
//! // as the text of a schedule
//! let script = steps()?.script("acme.rotate_iname(i, first: 3)\nreverse_iname(i)\n")?;
//! assert_eq!(script.apply(&kernel)?.recipe().steps.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, InameId, Kernel};
use kingpost_primitives::draw::{self, Picks};
use kingpost_primitives::kit;
use kingpost_primitives::proofs::ORDER;
use kingpost_primitives::proofs::bounds::check_places_follow;
use kingpost_primitives::proofs::order::{Reordering, check_order};
use kingpost_primitives::{Keeps, Obligation, Primitive, Refusal, StepSet, StepSetError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Kingpost's primitives and that of this crate.
///
/// # Errors
/// A name that Kingpost has already; names with that of a crate in front are never Kingpost's.
pub fn steps() -> Result<StepSet, StepSetError> {
    kingpost_primitives::steps().clone().with::<RotateIname>()
}

/// Starts a loop at iteration `first` and runs the iterations before it last, so that work-groups that run the same
/// loop can begin at different places of an array.
///
/// # Rewrite
/// ```text
/// for i in 0..8      =>   for i in 0..8
///   S(i)                    S((i + 3) mod 8)
/// ```
///
/// # Precondition
/// The loop is `0..n` with a constant `n`, and carries no dependence that the new order turns around: with
/// `p(i) = (i - first) mod n` and `o` the loops around, `{ s[o, i] -> t[o, i'] in D : p(i) > p(i') }` is empty for
/// every flow, anti and output dependence `D`. Commuting updates may be reordered.
///
/// # Errors
/// An unknown loop, bounds that are not `0..n`, a `first` that is no iteration, a dependence that would be turned
/// around, with two instances.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateIname {
    /// The loop.
    pub iname: String,
    /// The iteration that runs first.
    pub first: i64,
}

impl fmt::Display for RotateIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rotate `{}` by {}", self.iname, self.first)
    }
}

/// The loop counts from zero to a constant.
const LENGTH: Obligation = Obligation::new(
    "acme.rotate_iname.length",
    "the loop is `0..n` with a constant `n`, and `first` is below `n`",
);

/// What the edit relies on.
pub struct Rotated {
    iname: InameId,
    /// What stands for the iname in the body.
    value: Affine,
}

impl Primitive for RotateIname {
    const NAME: &'static str = "acme.rotate_iname";
    const SUMMARY: &'static str = "Starts a loop in its middle.";

    type Proof = Rotated;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[LENGTH, ORDER];
    // updates and reductions add in another order
    const KEEPS: Keeps = Keeps::REASSOCIATED;

    fn check(&self, analysis: &Analysis) -> Result<Rotated, Refusal> {
        let kernel = analysis.kernel();
        let iname = kit::iname(kernel, &self.iname)?;
        check_places_follow(kernel, iname)?;
        let domain = &kernel.inames[iname].domain;
        let shown = || kernel.show_domain(iname, domain);
        let range = domain.as_range(iname).filter(|(lo, _)| lo.as_constant() == Some(0));
        let length = range.and_then(|(_, hi)| hi.as_constant()).filter(|n| (0..*n).contains(&self.first));
        let n = LENGTH.find(length, || {
            format!("`{}` is no loop `0..n` with an iteration {}; shift it first", shown(), self.first)
        })?;
        let at = Affine::iname(iname);
        let proof = Rotated { iname, value: at.plus_constant(self.first).modulo(n) };
        let (after, before) = (self.draft(kernel, &proof), at.plus_constant(n - self.first).modulo(n));
        // where an old iteration runs in the new order: the inverse of `value`
        let place = |_, l| (l == iname).then(|| before.clone());
        let order = Reordering { before: analysis, after: &after, value: &place, whole: &[iname] };
        check_order(&order, &|source, sink| {
            let distribute = format!("distribute `{source}` and `{sink}` first, or ");
            format!("{}keep `{}` in this order", if source == sink { "" } else { &distribute }, self.iname)
        })?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Rotated) {
        let domain = kernel.inames[proof.iname].domain.clone();
        kit::remap_iname(kernel, proof.iname, &proof.value);
        kernel.inames[proof.iname].domain = domain; // the same iterations
    }

    fn draw(kernel: &Kernel, picks: &mut Picks<'_>) -> Option<Self> {
        let iname = picks.of(&draw::inames(kernel))?;
        Some(Self { iname, first: picks.below(4) as i64 })
    }
}
