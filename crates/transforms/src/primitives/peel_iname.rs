//! Peels iterations off a loop.

use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, AxisTag, Constraint, Domain, GuardedRange, Iname, InameId, Kernel, Node};
use kingpost_steps::cut::{Part, in_two};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Instances;
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, check_bounds_stay};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::Loop;
use kingpost_steps::tree::body_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets the first or the last `count` iterations of `iname` run in a loop of their own.
///
/// # Rewrite
/// ```text
/// for i in 0..n      =>   for i_first in 0..min(1, n)
///   s: S(i)                 s_first: S(i_first)
///                         for i in 1..n
///                           s: S(i)
/// ```
/// Loops and instructions of the copy get new names, with `_first` or `_last` after them;
/// everything else of them is copied.
///
/// # Precondition
/// The loop is a range, perhaps under conditions that do not mention it, which both parts keep, and
/// on no axis, `count >= 1`, and nothing inside writes a scalar in its bounds. The order of the
/// instances stays: both loops together run `lo..hi` in ascending order. If other loops are on
/// axes, the placement must still hold.
///
/// # Errors
/// An unknown iname, the iname of a reduction, a loop on an axis, a count below 1 or beyond 2^31,
/// values that are no range, bounds that change, and a dependence that the placement breaks, with
/// two instances.
///
/// # Elsewhere
/// Loop peeling; Exo `cut_loop`; Halide `partition`; Loopy
/// `split_iname` with slabs; TVM `loop_partition`; MLIR `transform.loop.peel`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeelIname {
    /// The loop.
    pub iname: String,
    /// Iterations to peel off.
    pub count: i64,
    /// Where.
    pub end: LoopEnd,
}

/// One end of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoopEnd {
    /// The iterations that run first.
    First,
    /// The iterations that run last.
    Last,
}

impl LoopEnd {
    fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
        }
    }
}

impl PeelIname {
    /// Peels off the first `count` iterations of `iname`.
    pub fn first(iname: impl Into<String>, count: i64) -> Self {
        Self { iname: iname.into(), count, end: LoopEnd::First }
    }

    /// Peels off the last `count` iterations of `iname`.
    pub fn last(iname: impl Into<String>, count: i64) -> Self {
        Self { iname: iname.into(), count, end: LoopEnd::Last }
    }
}

impl fmt::Display for PeelIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peel the {} {} of `{}`", self.end.name(), self.count, self.iname)
    }
}

/// Work-items count from the start of a loop.
const OFF_AXIS: Obligation = Obligation::new("peel_iname.off_axis", "the loop is on no axis");

/// It has a first and a last iteration.
const RANGE: Obligation = Obligation::new(
    "peel_iname.range",
    "the loop is a range `lo..hi`, perhaps under conditions that do not mention it",
);

/// The values of a loop that can be cut in two.
pub struct Values {
    iname: InameId,
    range: GuardedRange,
    body: Vec<Node>,
}

impl Primitive for PeelIname {
    const NAME: &'static str = "peel_iname";
    const SUMMARY: &'static str = "Runs the first or last iterations of a loop in a loop of their own.";

    type Proof = Values;
    type Made = Loop;

    const OBLIGATIONS: &'static [Obligation] = &[OFF_AXIS, RANGE, BOUNDS_STAY, NO_REDUCTION];
    const INSTANCES: Instances = Instances::Copied;

    fn check(&self, analysis: &Analysis) -> Result<Values, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        if !(1..=1 << 31).contains(&self.count) {
            let found = format!("{} iterations are to be peeled off", self.count);
            return Err(Refusal::argument("count", found, "1 to 2^31"));
        }
        let domain = &kernel.inames[iname].domain;
        check_off_axis(kernel, iname, OFF_AXIS, "peel")?;
        let range = RANGE.find(domain.as_guarded_range(iname), || {
            format!(
                "`{}` is no plain range `lo..hi`; split the loop so that it is one",
                kernel.show_domain(iname, domain)
            )
        })?;
        let body = body_of(kernel, iname)?;
        check_bounds_stay(kernel, iname, body)?;
        Ok(Values { iname, range, body: body.to_vec() })
    }

    fn edit(&self, kernel: &mut Kernel, Values { iname, range, body }: &Values) -> Loop {
        let (lo, hi) = (&range.lo, &range.hi);
        let rest = range.guarded(&match self.end {
            LoopEnd::First => Domain::range(*iname, &lo.plus_constant(self.count), hi),
            LoopEnd::Last => Domain::range(*iname, lo, &hi.plus_constant(-self.count)),
        });
        let peeled = end_of_range(*iname, range, self.count, self.end);
        let [peeled, rest] = [peeled, rest].map(|values| Part::whole(*iname, values, body));
        in_two(kernel, *iname, &peeled, &rest, self.end.name(), self.end == LoopEnd::First)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let (iname, count) = (p.of(&draw::loops(kernel))?, p.between(0, 3));
        Some(if p.one_in(2) { Self::last(iname, count) } else { Self::first(iname, count) })
    }
}

/// Refuses a loop whose values are places; `verb` is what it should be done to.
pub(super) fn check_off_axis(
    kernel: &Kernel,
    iname: InameId,
    obligation: Obligation,
    verb: &str,
) -> Result<(), Refusal> {
    let Iname { name, tag, .. } = &kernel.inames[iname];
    let off_axis = match tag {
        AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled => true,
        AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Launch => false,
    };
    obligation.require(off_axis, || {
        format!("`{name}` is tagged {tag}; tag it sequential, {verb} it, then tag the parts")
    })
}

/// The first or last `count` values of a range, all of them if there are fewer.
pub(super) fn end_of_range(iname: InameId, range: &GuardedRange, count: i64, end: LoopEnd) -> Domain {
    let (lo, hi) = (&range.lo, &range.hi);
    let length = range.length().as_constant();
    // with a length that is known one of the two inner bounds is enough
    let short = length.is_none_or(|n| n < count);
    let long = length.is_none_or(|n| n >= count);
    let i = Affine::iname(iname);
    let mut bounds = match end {
        LoopEnd::First => vec![Constraint::le(lo, &i)],
        LoopEnd::Last => vec![Constraint::lt(&i, hi)],
    };
    let (at_end, at_cut) = match end {
        LoopEnd::First => (Constraint::lt(&i, hi), Constraint::lt(&i, &lo.plus_constant(count))),
        LoopEnd::Last => (Constraint::le(lo, &i), Constraint::le(&hi.plus_constant(-count), &i)),
    };
    bounds.extend(short.then_some(at_end));
    bounds.extend(long.then_some(at_cut));
    range.guarded(&Domain::conjunction(bounds))
}
