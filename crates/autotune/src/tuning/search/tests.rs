//! The search against loops over all integers and the constraints as they are written.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::known_devices;
use kingpost_runtime::DeviceModel;
use kingpost_strategies::tiling::{SpaceSizes, Tiling, TilingParameters, TilingSizes};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn titan() -> DeviceModel {
    known_devices().unwrap().into_iter().find(|m| m.name == "Titan V").unwrap()
}

/// Two functions of different sizes, so that aliasing cuts.
fn sizes() -> TilingSizes {
    TilingSizes {
        quadrature_points: 7,
        trial: vec![SpaceSizes::vector("v", 5, 2, 2), SpaceSizes::scalar("u", 3, 1)],
        test: SpaceSizes::vector("y", 6, 3, 2),
        word_bytes: 8,
    }
}

/// Bounds under which every constraint cuts something of these sizes.
fn bounds() -> SearchBounds {
    let published = SearchBounds::default();
    SearchBounds { alias_efficiency: 0.6, work_items: 40, max_work_group: 64, local_bytes: 4000, ..published }
}

/// The lengths of Constraint 1 as Kulkarni & Klöckner 2025 writes them.
fn ceilings(n: u64) -> BTreeSet<u64> {
    (1..=n).map(|k| n.div_ceil(k)).collect()
}

/// Every choice of parameters that satisfies the constraints as Kulkarni & Klöckner 2025 writes
/// them.
fn by_loops(sizes: &TilingSizes, bounds: &SearchBounds) -> BTreeSet<TilingParameters> {
    let mut found = BTreeSet::new();
    let mut tiles = Vec::new();
    for quad_tile in ceilings(sizes.quadrature_points) {
        for eval_rows in ceilings(quad_tile) {
            for a in ceilings(sizes.trial[0].nodes) {
                for b in ceilings(sizes.trial[1].nodes) {
                    for quad_rows in ceilings(sizes.test.nodes) {
                        for quad_cols in ceilings(quad_tile) {
                            tiles.push((quad_tile, eval_rows, vec![a, b], quad_rows, quad_cols));
                        }
                    }
                }
            }
        }
    }
    for cells in 1..=bounds.work_items {
        for work_items_per_cell in 1..=bounds.work_items {
            if cells * work_items_per_cell > bounds.work_items {
                continue;
            }
            for (quad_tile, eval_rows, eval_cols, quad_rows, quad_cols) in tiles.iter().cloned() {
                let p = TilingParameters {
                    cells,
                    work_items_per_cell,
                    quad_tile,
                    eval_rows,
                    eval_cols,
                    quad_rows,
                    quad_cols,
                };
                let t = Tiling::new(sizes, &p).unwrap();
                if t.alias_efficiency() >= bounds.alias_efficiency
                    && t.simd_efficiency(32) >= bounds.simd_efficiency
                    && t.local_bytes() <= bounds.local_bytes
                {
                    found.insert(p);
                }
            }
        }
    }
    found
}

#[test]
fn tile_options_are_all_ceilings() {
    for n in 1..300 {
        assert!(tile_options(n).into_iter().eq(ceilings(n)), "{n}");
    }
    assert_eq!(tile_options(84), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 17, 21, 28, 42, 84]);
}

#[test]
fn the_candidates_are_those_of_the_constraints() {
    let (sizes, bounds) = (sizes(), bounds());
    let expected = by_loops(&sizes, &bounds);
    let space = SearchSpace::new(sizes, bounds).unwrap();
    let found: Vec<TilingParameters> = space.candidates().collect();
    assert!(found.len() > 500, "{}", found.len());
    assert!(found.iter().all(|p| space.contains(p)));
    assert_eq!(space.par_candidates().count(), found.len());
    let survey = space.survey(&CostModel::new(&titan()).unwrap(), 3, |_, _| {});
    assert_eq!(survey.size, found.len() as u64);
    assert!(found.into_iter().collect::<BTreeSet<_>>() == expected);
}

#[test]
fn the_cuts_add_up() {
    let (sizes, bounds) = (sizes(), bounds());
    let space = SearchSpace::new(sizes.clone(), bounds.clone()).unwrap();
    let cuts = space.survey(&CostModel::new(&titan()).unwrap(), 1, |_, _| {}).cuts;
    let figures: Vec<(u64, u64)> = cuts.iter().map(|c| (c.before, c.after)).collect();
    // Any tile sizes: sum of t^2 to 7, times 5 * 3 * 6 nodes.
    assert_eq!(figures[0].0, 140 * 90);
    let unbounded = SearchBounds { alias_efficiency: 0.0, local_bytes: 1 << 20, ..bounds.clone() };
    let launches = (1..=40u64).flat_map(|c| (1..=40 / c).map(move |w| c * w));
    let full = launches.clone().filter(|n| *n as f64 / (32 * n.div_ceil(32)) as f64 >= 0.97).count() as u64;
    assert_eq!(figures[2].1, launches.count() as u64);
    assert_eq!(figures[3], (figures[2].1, full));
    assert_eq!(by_loops(&sizes, &unbounded).len() as u64, figures[0].1 * full);
    let aliased = SearchBounds { local_bytes: 1 << 20, ..bounds };
    assert_eq!(by_loops(&sizes, &aliased).len() as u64, figures[1].1 * full);
    assert_eq!(figures[4].0, figures[1].1 * full);
    assert!(figures.iter().all(|(before, after)| after < before), "{figures:?}");
}

#[test]
fn the_best_are_the_best_of_all() {
    let device = titan();
    let model = CostModel::new(&device).unwrap();
    let space = SearchSpace::new(sizes(), bounds()).unwrap();
    let mut all: Vec<(f64, u64, u64, TilingParameters)> = space
        .candidates()
        .map(|p| {
            let t = Tiling::new(space.sizes(), &p).unwrap();
            (model.seconds_per_cell(&t), t.barriers(), t.local_bytes(), p.clone())
        })
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| (a.1, a.2, &a.3).cmp(&(b.1, b.2, &b.3))));
    for b in [0, 1, 9, 500] {
        let best = space.survey(&model, b, |_, _| {}).best;
        let found: Vec<_> = best.into_iter().map(|r| r.parameters).collect();
        let expected: Vec<_> = all.iter().take(b).map(|a| a.3.clone()).collect();
        assert!(found == expected, "{b}");
    }
    for place in [0, 17, all.len() / 2, all.len() - 1] {
        let (seconds, .., parameters) = &all[place];
        let standing = space.standing(&model, parameters).unwrap();
        let close = |t: f64| (t - seconds).abs() <= 1e-12 * seconds;
        let equal = all.iter().filter(|a| close(a.0)).count() as u64;
        let faster = all.iter().filter(|a| a.0 < *seconds && !close(a.0)).count() as u64;
        assert_eq!(standing, Standing { faster, equal, of: all.len() as u64 });
    }
}

/// Kulkarni & Klöckner 2025, equations (40) to (46), for one candidate by hand.
#[test]
fn a_predicted_time_by_hand() {
    let sizes = TilingSizes {
        quadrature_points: 24,
        trial: vec![SpaceSizes::scalar("u", 35, 3)],
        test: SpaceSizes::scalar("y", 35, 3),
        word_bytes: 8,
    };
    let p = TilingParameters {
        cells: 64,
        work_items_per_cell: 4,
        quad_tile: 24,
        eval_rows: 24,
        eval_cols: vec![7],
        quad_rows: 35,
        quad_cols: 5,
    };
    let device = titan();
    let model = CostModel::new(&device).unwrap();
    let tiling = Tiling::new(&sizes, &p).unwrap();
    // 35 rows of the quadrature take 9 steps of 4 work-items, 36 slots; the evaluation's 24 rows
    // are even.
    let predication = (3 * 24 * 35 + 3 * 35 * 24) as f64 / (3 * 24 * 35 + 3 * 36 * 24) as f64;
    let local = ((3 * 35 * 5 + 64 * 24 * 3) * 8) as f64;
    let resident = predication * 8.0 * (98304.0 / local);
    assert!((model.resident_sub_groups(&tiling) - resident).abs() < 1e-12 * resident);
    assert!(resident > 12.0, "{resident}");
    let global = (35.0 + 35.0 + (35.0 * 24.0 + 24.0) / 64.0) * 8.0;
    let local = ((3 * 35 * 24 + 2 * 3 * 24 + 3 * 24 * 35) * 8) as f64;
    let seconds = global / 653e9 + local / 13.8e12;
    assert!((model.seconds_per_cell(&tiling) - seconds).abs() < 1e-12 * seconds);
}

#[test]
fn more_memory_is_never_predicted_to_be_faster() {
    let device = titan();
    let model = CostModel::new(&device).unwrap();
    let space = SearchSpace::new(sizes(), bounds()).unwrap();
    let mut times = std::collections::BTreeMap::<_, Vec<(u64, f64)>>::new();
    for p in space.candidates() {
        let t = Tiling::new(space.sizes(), &p).unwrap();
        let key = (p.quad_tile, p.eval_rows, p.quad_rows, p.cells, p.work_items_per_cell);
        times.entry(key).or_default().push((t.local_words(), model.seconds_per_cell(&t)));
    }
    for (key, mut times) in times {
        times.sort_by_key(|(words, _)| *words);
        assert!(times.is_sorted_by(|a, b| a.1 <= b.1), "{key:?}: {times:?}");
    }
}

#[test]
fn samples_are_different_candidates_from_everywhere() {
    let space = SearchSpace::new(sizes(), bounds()).unwrap();
    let size = space.candidates().count() as u64;
    // Any generator does: multiplication by an odd number modulo 2^64.
    let mut state = 12345_u64;
    let mut draw = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 16) % n
    };
    let sample = space.sample(200, &mut draw);
    assert_eq!(sample.len(), 200);
    assert!(sample.iter().all(|p| space.contains(p)));
    assert_eq!(sample.iter().collect::<BTreeSet<_>>().len(), 200);
    let places: Vec<usize> =
        sample.iter().map(|p| space.candidates().position(|c| c == *p).unwrap()).collect();
    let half = places.iter().filter(|place| (**place as u64) < size / 2).count();
    assert!((60..140).contains(&half), "{half} of 200 in the first half");
    assert_eq!(space.sample(usize::MAX >> 1, &mut draw).len() as u64, size);
}

#[test]
fn progress_tells_all_parts_and_devices_need_limits() {
    let (calls, last) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut device = titan();
    let space = SearchSpace::new(sizes(), bounds()).unwrap();
    space.survey(&CostModel::new(&device).unwrap(), 1, |done, all| {
        calls.fetch_add(1, Relaxed);
        last.fetch_max(done, Relaxed);
        assert!(done <= all);
    });
    assert!(calls.load(Relaxed) == last.load(Relaxed) && last.load(Relaxed) > 1);
    device.occupancy = None;
    let refused = CostModel::new(&device).unwrap_err().to_string();
    assert!(refused.starts_with("the model of `Titan V` has no occupancy"), "{refused}");
    assert!(SearchSpace::new(TilingSizes { trial: vec![], ..sizes() }, bounds()).is_err());
}
