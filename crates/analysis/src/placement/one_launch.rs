//! The pairs of a dependence that a launch has, and those whose places in it differ.

use crate::placement::axes::{Axis, LaunchAxes};
use crate::polyhedral::Polyhedral;
use crate::question::{Linear, Part};
use kingpost_ir::ids::InameId;
use std::collections::{BTreeMap, BTreeSet};

/// Where the coordinates of the ends of a dependence differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// In no pair.
    Nowhere,
    /// In every pair, as far as is known.
    Everywhere,
    /// Where these values at the source and at the sink differ.
    Where(Linear, Linear),
    /// Where a common loop has other values, and the first `around` common loops have the same
    /// ones.
    OfLanes { lane: usize, around: usize },
}

impl Difference {
    /// The pairs whose coordinates differ.
    pub(super) fn part(self) -> Option<Part> {
        match self {
            Self::Nowhere => None,
            Self::Everywhere => Some(Part::whole()),
            Self::Where(source, sink) => Some(Part::apart(&source, &sink)),
            Self::OfLanes { lane, around } => Some(Part::of_lanes(lane, around)),
        }
    }
}

/// The launches of a kernel, each with the axes of its loops.
pub(super) fn launches(poly: &Polyhedral) -> BTreeMap<Option<InameId>, Vec<Axis>> {
    let kernel = &*poly.kernel;
    let of = |insn| kernel.launch_among(poly.loops(insn));
    let all: BTreeSet<_> = kernel.insns.ids().map(of).collect();
    all.into_iter().map(|launch| (launch, LaunchAxes::of_launch(poly, launch).axes)).collect()
}

/// Where both ends of pairs of a dependence are in one launch.
pub(super) struct OneLaunch {
    pub(super) axes: Vec<Axis>,
    /// The first of the common loops that have other values in other launches, where the indices do
    /// not tell that both ends have the same ones.
    pub(super) around: Vec<usize>,
    /// How many of the common loops have one value in a launch.
    pub(super) outer: usize,
}

impl OneLaunch {
    pub(super) fn axes(&self, group: bool) -> Vec<Axis> {
        self.axes.iter().copied().filter(|axis| matches!(axis, Axis::Group(_)) == group).collect()
    }

    /// The part of some pairs that is in one launch.
    pub(super) fn part(&self, differ: Difference) -> Option<Part> {
        Some(differ.part()?.within(&self.around))
    }
}
