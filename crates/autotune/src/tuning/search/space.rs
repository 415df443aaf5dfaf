//! Counting, ranking and drawing from the space.

use super::best::{Best, Ranked};
use super::bounds::{Cut, SearchBounds};
use super::cost::CostModel;
use super::group::{Candidates, Group};
use super::options::{Columns, Launch, SearchSpace, columns, count_launches, launches, tile_options};
use kingpost_strategies::tiling::{Tiling, TilingError, TilingParameters, TilingSizes};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What a pass over the space found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Number of candidates.
    pub size: u64,
    /// What each constraint cut, in order.
    pub cuts: Vec<Cut>,
    /// The best candidates, best first.
    pub best: Vec<Ranked>,
}

/// Where a predicted time stands among those of all candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Candidates that are predicted to be faster.
    pub faster: u64,
    /// Candidates with the same predicted time.
    pub equal: u64,
    /// All candidates.
    pub of: u64,
}

/// Times closer than this are the same: products of a dozen factors, rounded in another order.
const SAME_TIME: f64 = 1e-12;

impl SearchSpace {
    /// The space of a problem; nothing is enumerated yet.
    ///
    /// # Errors
    /// As [`TilingSizes::check`].
    pub fn new(sizes: TilingSizes, bounds: SearchBounds) -> Result<Self, TilingError> {
        sizes.check()?;
        let quad_tiles = tile_options(sizes.quadrature_points);
        let with_rows = |tile: u64| tile_options(tile).into_iter().map(move |rows| (tile, rows));
        let points = quad_tiles.into_iter().flat_map(with_rows).collect();
        let (launches, columns) = (launches(&bounds), columns(&sizes.trial, &bounds));
        let quad_rows = tile_options(sizes.test.nodes);
        Ok(Self { sizes, bounds, launches, columns, points, quad_rows })
    }

    /// The sizes of the problem.
    #[must_use]
    pub fn sizes(&self) -> &TilingSizes {
        &self.sizes
    }

    /// The bounds.
    #[must_use]
    pub fn bounds(&self) -> &SearchBounds {
        &self.bounds
    }

    pub(super) fn launches(&self) -> &[Launch] {
        &self.launches
    }

    pub(super) fn columns(&self) -> &[Columns] {
        &self.columns
    }

    fn groups(&self, (quad_tile, eval_rows): (u64, u64)) -> impl Iterator<Item = Group<'_>> {
        self.quad_rows.iter().map(move |rows| Group::new(self, quad_tile, eval_rows, *rows))
    }

    /// All candidates, one by one, in a fixed order.
    pub fn candidates(&self) -> impl Iterator<Item = TilingParameters> + '_ {
        self.points.iter().flat_map(|points| self.groups(*points)).flat_map(Candidates::from)
    }

    /// All candidates, on all threads.
    pub fn par_candidates(&self) -> impl ParallelIterator<Item = TilingParameters> + '_ {
        let of = |points: &(u64, u64)| self.groups(*points).flat_map(Candidates::from);
        self.points.par_iter().flat_map_iter(of)
    }

    /// Whether a tiling is among the candidates.
    #[must_use]
    pub fn contains(&self, p: &TilingParameters) -> bool {
        let Ok(tiling) = Tiling::new(&self.sizes, p) else { return false };
        let nodes = self.sizes.trial.iter().map(|s| s.nodes).zip(&p.eval_cols);
        let in_options = |n: u64, tile: u64| tile_options(n).contains(&tile);
        in_options(self.sizes.quadrature_points, p.quad_tile)
            && in_options(p.quad_tile, p.eval_rows)
            && nodes.into_iter().all(|(n, cols)| in_options(n, *cols))
            && in_options(self.sizes.test.nodes, p.quad_rows)
            && in_options(p.quad_tile, p.quad_cols)
            && tiling.alias_efficiency() >= self.bounds.alias_efficiency
            && self.bounds.allow_work_group(p.work_group())
            && tiling.local_bytes() <= self.bounds.local_bytes
    }

    /// Counts the candidates, what the constraints cut, and finds the `b` best. `progress` is
    /// called with the number of parts that are done and of all parts, from any thread.
    pub fn survey(&self, model: &CostModel<'_>, b: usize, progress: impl Fn(usize, usize) + Sync) -> Survey {
        let bound = AtomicU64::new(f64::INFINITY.to_bits());
        let done = AtomicUsize::new(0);
        let part = |points: &(u64, u64)| {
            let mut part = Part::new(b);
            for group in self.groups(*points) {
                part.tiles += group.len() as u64;
                part.candidates += group.count();
                best_of(&group, model, &bound, &mut part.best);
            }
            progress(done.fetch_add(1, Relaxed) + 1, self.points.len());
            part
        };
        let whole = self.points.par_iter().map(part).reduce(|| Part::new(b), Part::join);
        Survey { size: whole.candidates, cuts: self.cuts(&whole), best: whole.best.into_sorted() }
    }

    /// What each constraint left of what there was before it.
    fn cuts(&self, whole: &Part) -> Vec<Cut> {
        let cut = |constraint: String, of: &str, before: u64, after: u64| {
            let of = of.to_owned();
            Cut { constraint, of, before, after }
        };
        let b = &self.bounds;
        let (device, largest) = (b.largest_of_device(), b.largest());
        let (all, bounded) = (count_launches(device), count_launches(largest));
        let launches = self.launches.len() as u64;
        let (any, ceilings) = (self.count_any_tiles(), self.count_tiles());
        vec![
            cut("1: tiles as small as their number allows".into(), "tile sizes", any, ceilings),
            cut(format!("2: aliasing at least {}", b.alias_efficiency), "tile sizes", ceilings, whole.tiles),
            cut(format!("4: at most {largest} work-items"), "work-groups", all, bounded),
            cut(format!("3: full lanes at least {}", b.simd_efficiency), "work-groups", bounded, launches),
            cut(
                format!("local memory of at most {} bytes", b.local_bytes),
                "candidates",
                whole.tiles.saturating_mul(launches),
                whole.candidates,
            ),
        ]
    }

    /// Choices of tile sizes if every length from 1 on were taken.
    fn count_any_tiles(&self) -> u64 {
        let points: u128 = (1..=u128::from(self.sizes.quadrature_points)).map(|tile| tile * tile).sum();
        let nodes = self.sizes.spaces().map(|s| u128::from(s.nodes));
        let all = nodes.fold(points, u128::saturating_mul);
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// Choices of tile sizes that Constraint 1 leaves.
    fn count_tiles(&self) -> u64 {
        let count = |n: u64| tile_options(n).len() as u64;
        let points: u64 = self.points.iter().map(|(tile, _)| count(*tile)).sum();
        self.sizes.spaces().map(|s| count(s.nodes)).fold(points, u64::saturating_mul)
    }

    /// How many candidates the model predicts to be faster than `parameters`, or as fast.
    ///
    /// # Errors
    /// Parameters that make no sense for the problem; they need not be among the candidates.
    pub fn standing(
        &self,
        model: &CostModel<'_>,
        parameters: &TilingParameters,
    ) -> Result<Standing, TilingError> {
        let seconds = model.seconds_per_cell(&Tiling::new(&self.sizes, parameters)?);
        let (below, above) = (seconds * (1.0 - SAME_TIME), seconds * (1.0 + SAME_TIME));
        let of = |points: &(u64, u64)| {
            let mut standing = Standing::default();
            for group in self.groups(*points) {
                for timed in group.timed(model) {
                    let faster = timed.faster_than(below);
                    standing.faster += faster;
                    standing.equal += timed.faster_than(above) - faster;
                    standing.of += timed.tiles.len() as u64;
                }
            }
            standing
        };
        Ok(self.points.par_iter().map(of).reduce(Standing::default, |a, b| Standing {
            faster: a.faster + b.faster,
            equal: a.equal + b.equal,
            of: a.of + b.of,
        }))
    }

    /// `count` different candidates, each as likely as any other, or all if there are fewer;
    /// `below(n)` draws a number below `n`.
    pub fn sample(&self, count: usize, mut below: impl FnMut(u64) -> u64) -> Vec<TilingParameters> {
        let of = |points: &(u64, u64)| self.groups(*points).map(|g| g.count()).collect::<Vec<_>>();
        let counts: Vec<Vec<u64>> = self.points.par_iter().map(of).collect();
        let size: u64 = counts.iter().flatten().sum();
        let mut places = std::collections::BTreeSet::new();
        // Floyd's choice of a subset: each step adds one place.
        for last in size.saturating_sub(count as u64)..size {
            let place = below(last + 1).min(last);
            if !places.insert(place) {
                places.insert(last);
            }
        }
        let (mut places, mut found, mut start) = (places.into_iter().peekable(), Vec::new(), 0);
        for (points, counts) in self.points.iter().zip(&counts) {
            for (rows, count) in self.quad_rows.iter().zip(counts) {
                let inside = std::iter::from_fn(|| places.next_if(|place| *place < start + count));
                let inside: Vec<u64> = inside.collect();
                if !inside.is_empty() {
                    let group = Group::new(self, points.0, points.1, *rows);
                    found.extend(inside.iter().filter_map(|place| group.nth(place - start)));
                }
                start += count;
            }
        }
        found
    }
}

/// What a pass found so far.
struct Part {
    tiles: u64,
    candidates: u64,
    best: Best,
}

impl Part {
    fn new(b: usize) -> Self {
        Self { tiles: 0, candidates: 0, best: Best::new(b) }
    }

    fn join(self, other: Self) -> Self {
        Self {
            tiles: self.tiles + other.tiles,
            candidates: self.candidates + other.candidates,
            best: self.best.join(other.best),
        }
    }
}

/// Offers the best of a group to `best`. `bound` is a time that as many candidates as are kept do
/// not exceed, somewhere; positive numbers are ordered as their bits are.
fn best_of(group: &Group<'_>, model: &CostModel<'_>, bound: &AtomicU64, best: &mut Best) {
    for timed in group.timed(model) {
        for tile in timed.tiles {
            let seconds_per_cell = timed.seconds(tile);
            if seconds_per_cell > f64::from_bits(bound.load(Relaxed)) {
                break;
            }
            let parameters = group.parameters(timed.launch, tile);
            let tiling = Tiling::trusted(group.sizes(), &parameters);
            let (barriers, local_bytes) = (tiling.barriers(), tiling.local_bytes());
            let resident_sub_groups = model.resident_sub_groups(&tiling);
            best.offer(Ranked { parameters, seconds_per_cell, barriers, local_bytes, resident_sub_groups });
            if let Some(time) = best.bound() {
                bound.fetch_min(time.to_bits(), Relaxed);
            }
        }
    }
}
