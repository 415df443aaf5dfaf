//! Peels iterations off a loop.

use super::Transform;
use super::tag_iname::check_placement;
use crate::copy::copy_nodes;
use crate::lookup;
use crate::proofs::bounds::check_bounds_stay;
use crate::refusal::Refusal;
use crate::tree::{loop_body, replace_loop};
use purlin_ir::{Affine, AxisTag, Constraint, Domain, GuardedRange, InameId, Kernel, Node};
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
/// Loops and instructions of the copy get new names, with `_first` or `_last` behind them; everything else
/// of them is copied.
///
/// # Precondition
/// The loop is a range, perhaps under conditions that do not mention it, which both parts keep, and on no axis, `count >= 1`, and nothing inside writes a scalar in its bounds. The order of the
/// instances stays: both loops together run `lo..hi` in ascending order. If other loops are on axes, the
/// placement must still hold.
///
/// # Errors
/// An unknown iname, the iname of a reduction, a loop on an axis, a count below 1 or beyond 2^31, values that are no range,
/// bounds that change, and a dependence that the placement breaks, with two instances.
///
/// # Elsewhere
/// Loop peeling; Exo `cut_loop`; Halide `partition`; Loopy `split_iname` with slabs; TVM `loop_partition`;
/// MLIR `transform.loop.peel`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl Transform for PeelIname {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        if !(1..=1 << 31).contains(&self.count) {
            return Err(Refusal::Other(format!(
                "{} iterations are to be peeled off, needed 1 to 2^31",
                self.count
            )));
        }
        match kernel.inames[iname].tag {
            AxisTag::Sequential | AxisTag::Unrolled => {}
            tag @ (AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_)) => {
                return Err(Refusal::Other(format!(
                    "`{}` is tagged {tag}; tag it sequential, peel it, then tag the parts",
                    self.iname
                )));
            }
        }
        let domain = &kernel.inames[iname].domain;
        let Some(range) = domain.as_guarded_range(iname) else {
            return Err(Refusal::Other(format!(
                "`{}` is no plain range `lo..hi`; split the loop so that it is one",
                kernel.show_domain(iname, domain)
            )));
        };
        check_bounds_stay(kernel, iname, loop_body(&kernel.body, iname).unwrap_or_default())?;
        let after = self.edit(kernel, iname, &range);
        after.verify()?;
        check_placement(&after)?;
        Ok(after)
    }
}

impl PeelIname {
    fn edit(&self, kernel: &Kernel, iname: InameId, range: &GuardedRange) -> Kernel {
        let (lo, hi) = (&range.lo, &range.hi);
        let mut after = kernel.clone();
        let body = loop_body(&kernel.body, iname).unwrap_or_default().to_vec();
        let original = Node::Loop(iname, body);
        let copy = copy_nodes(&mut after, std::slice::from_ref(&original), self.end.name());
        let Some((Node::Loop(peeled, _), original)) = copy.first().cloned().map(|c| (c, original)) else {
            return after; // not met: a loop is copied to a loop
        };
        let cut = match self.end {
            LoopEnd::First => lo.plus_constant(self.count),
            LoopEnd::Last => hi.plus_constant(-self.count),
        };
        after.inames[peeled].domain = end_of_range(peeled, range, self.count, self.end);
        after.inames[iname].domain = range.guarded(&match self.end {
            LoopEnd::First => Domain::range(iname, &cut, hi),
            LoopEnd::Last => Domain::range(iname, lo, &cut),
        });
        let mut both = match self.end {
            LoopEnd::First => copy.into_iter().chain([original]).collect::<Vec<_>>(),
            LoopEnd::Last => [original].into_iter().chain(copy).collect(),
        };
        replace_loop(&mut after.body, iname, &mut |_| std::mem::take(&mut both));
        after
    }
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
