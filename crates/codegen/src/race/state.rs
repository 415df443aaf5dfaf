//! What the walk knows at a point.

use crate::completions::OLDEST;
use std::cmp::Reverse;

/// How far a source is that may have run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Nothing is left to wait for.
    #[default]
    Ordered,
    /// Done, with no barrier since.
    Done,
    /// Under way, of this age at least; the younger, the more is left to wait for.
    Issued(Reverse<u8>),
}

/// What is known of a source at a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// In this iteration of the common loops, and in earlier ones of the carrier by their distance; at the
    /// least distance of source and sink, in all that are earlier still.
    earlier: [Stage; OLDEST as usize + 1],
}

impl State {
    pub(super) fn join(self, other: Self) -> Self {
        let mut all = other.earlier.into_iter();
        self.each(|stage| all.next().map_or(stage, |other| stage.max(other)))
    }

    pub(super) fn each(self, next: impl FnMut(Stage) -> Stage) -> Self {
        Self { earlier: self.earlier.map(next) }
    }

    /// The source this number of iterations earlier.
    pub(super) fn before(&self, iterations: usize) -> Stage {
        self.earlier[iterations]
    }

    /// The source runs.
    pub(super) fn run(&mut self, stage: Stage) {
        self.earlier[0] = self.earlier[0].max(stage);
    }

    /// The next iteration of the carrier begins, from whose source the sink is at least `apart` iterations.
    pub(super) fn next_iteration(mut self, apart: usize) -> Self {
        let last = self.earlier[apart];
        self.earlier.copy_within(..apart, 1);
        self.earlier[apart] = self.earlier[apart].max(last);
        self.earlier[0] = Stage::Ordered;
        self
    }
}
