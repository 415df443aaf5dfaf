//! The best of many candidates, of which a limited number is kept.

use kingpost_strategies::tiling::TilingParameters;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A candidate and what decides its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// Its parameters.
    pub parameters: TilingParameters,
    /// Predicted time of a cell, seconds.
    pub seconds_per_cell: f64,
    /// Barriers of a work-group.
    pub barriers: u64,
    /// Bytes of local memory of a work-group.
    pub local_bytes: u64,
    /// Sub-groups on a multiprocessor that do something.
    pub resident_sub_groups: f64,
}

impl Ranked {
    /// By predicted time; candidates of the same time by barriers, local memory, and their
    /// parameters, so that the order is the same on every machine.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let time = self.seconds_per_cell.total_cmp(&other.seconds_per_cell);
        let key = |r: &Self| (r.barriers, r.local_bytes);
        time.then(key(self).cmp(&key(other))).then_with(|| self.parameters.cmp(&other.parameters))
    }
}

/// The best candidates of those that were offered.
pub(super) struct Best {
    most: usize,
    /// The worst of them first.
    kept: BinaryHeap<ByRank>,
}

impl Best {
    pub(super) fn new(most: usize) -> Self {
        Self { most, kept: BinaryHeap::new() }
    }

    pub(super) fn offer(&mut self, candidate: Ranked) {
        let candidate = ByRank(candidate);
        if self.kept.len() < self.most {
            self.kept.push(candidate);
        } else if let Some(mut worst) = self.kept.peek_mut()
            && candidate < *worst
        {
            *worst = candidate;
        }
    }

    /// The time that a candidate must not exceed to be kept, seconds; `None` as long as any is.
    pub(super) fn bound(&self) -> Option<f64> {
        let worst = self.kept.peek().map_or(0.0, |worst| worst.0.seconds_per_cell);
        (self.kept.len() == self.most).then_some(worst)
    }

    /// The best of both.
    pub(super) fn join(self, other: Self) -> Self {
        let (mut more, fewer) =
            if self.kept.len() < other.kept.len() { (other, self) } else { (self, other) };
        fewer.kept.into_iter().for_each(|candidate| more.offer(candidate.0));
        more
    }

    /// Best first.
    pub(super) fn into_sorted(self) -> Vec<Ranked> {
        self.kept.into_sorted_vec().into_iter().map(|candidate| candidate.0).collect()
    }
}

/// A candidate in the order of ranks; that is total, since times are compared as `f64::total_cmp`
/// does.
struct ByRank(Ranked);

impl Ord for ByRank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(&other.0)
    }
}

impl PartialOrd for ByRank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByRank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByRank {}
