//! Tilings that stage their degrees of freedom and results in local memory.

use kingpost_strategies::tiling::{SpaceSizes, TilingParameters, TilingSizes};

/// Cells of a work-group and work-items of each, best first: with a sub-group of cells at a time,
/// all its work-items read the same entries of the matrices; with few cells, several work-groups
/// share a multiprocessor and hide each other's barriers. Of the 29 cases where a staged tiling is
/// the fastest (`results/h200/tuned.jsonl`, 2026-11-21): 32 by 4 in 14, 64 by 3 in 5, 32 by 8 in 3,
/// 64 by 4 in 2, 32 by 6 in 2, 16 by 16 in 2, 32 by 12 in 1.
const LAUNCHES: [(u64, u64); 11] =
    [(32, 4), (32, 6), (64, 3), (32, 8), (64, 4), (32, 12), (64, 6), (16, 16), (16, 12), (16, 8), (8, 16)];

/// Most sums of a work-item: 80 still fit its registers where degrees of freedom are in local
/// memory.
const SUMS: u64 = 80;

/// Fewest points of a tile: below, one cell a work-item needs no tiles.
const FEWEST_POINTS: u64 = 6;

/// Staged tilings of a problem that fit `local_bytes` of local memory: each launch with the largest
/// quadrature tile that it has room for, then each with the next smaller one. The sizes are those
/// of functions that share their matrices. The other tiles are as large as the quadrature tile and
/// the whole cell, so that every matrix is fetched once a quadrature tile; where local memory
/// forbids that, a half or a third as wide.
pub fn staged_tilings(sizes: &TilingSizes, local_bytes: u64) -> impl Iterator<Item = TilingParameters> {
    let points = sizes.quadrature_points;
    let mut tiles: Vec<u64> = (1..=points).map(|count| points.div_ceil(count)).collect();
    tiles.dedup();
    tiles.retain(|tile| *tile >= FEWEST_POINTS);
    let of_launch = |launch: &(u64, u64)| -> Vec<TilingParameters> {
        tiles.iter().filter_map(|tile| fitting(sizes, local_bytes, *tile, *launch)).collect()
    };
    let found: Vec<Vec<TilingParameters>> = LAUNCHES.iter().map(of_launch).collect();
    let most = found.iter().map(Vec::len).max().unwrap_or(0);
    (0..most).flat_map(move |k| found.iter().filter_map(|of| of.get(k).cloned()).collect::<Vec<_>>())
}

/// The widest tiles of a quadrature tile and a launch that fit.
fn fitting(
    sizes: &TilingSizes,
    local_bytes: u64,
    tile: u64,
    (cells, items): (u64, u64),
) -> Option<TilingParameters> {
    let values: u64 = sizes.trial.iter().map(|s| s.derivatives).sum();
    let components = sizes.test.components;
    let sums = (tile.div_ceil(items) * values).max(sizes.test.nodes.div_ceil(items) * components);
    if sums > SUMS || items > tile {
        return None;
    }
    let tilings = [1, 2, 3].into_iter().map(|parts| TilingParameters {
        cells,
        work_items_per_cell: items,
        quad_tile: tile,
        eval_rows: tile,
        eval_cols: sizes.trial.iter().map(|s| s.nodes.div_ceil(parts)).collect(),
        quad_rows: sizes.test.nodes.div_ceil(parts),
        quad_cols: tile,
    });
    tilings.into_iter().find(|p| local_words(sizes, p) * sizes.word_bytes <= local_bytes)
}

/// Words of local memory of a staged tiling: factors, degrees of freedom and results of all cells,
/// each row of an odd length, and the largest tile.
fn local_words(sizes: &TilingSizes, p: &TilingParameters) -> u64 {
    let row = |words: u64| words | 1;
    let tiles = sizes.trial.iter().zip(&p.eval_cols).map(|(s, cols)| s.matrices * p.eval_rows * cols);
    let tile = tiles.max().unwrap_or(0).max(sizes.test.matrices * p.quad_rows * p.quad_cols);
    let factors = sizes.test.derivatives * row(p.quad_tile);
    let gathered: u64 = sizes.trial.iter().map(|s: &SpaceSizes| row(s.dofs())).sum();
    let results = row(p.quad_rows * sizes.test.components);
    tile + p.cells * (factors + gathered + results)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // what a failed test does
mod tests {
    use super::*;

    fn sizes(nodes: u64, points: u64) -> TilingSizes {
        let space = |name: &str| SpaceSizes::vector(name, nodes, 3, 3);
        TilingSizes { quadrature_points: points, trial: vec![space("u")], test: space("v"), word_bytes: 8 }
    }

    #[test]
    fn they_fit_and_are_different() {
        for (nodes, points) in [(10, 4), (20, 11), (35, 23), (56, 44), (84, 74), (84, 1331)] {
            let sizes = sizes(nodes, points);
            let found: Vec<_> = staged_tilings(&sizes, 227 << 10).take(9).collect();
            assert_eq!(found.is_empty(), points < 6, "{nodes} nodes, {points} points");
            for p in &found {
                p.check(&sizes).unwrap();
                assert!(local_words(&sizes, p) * 8 <= 227 << 10, "{p}");
                assert_eq!(found.iter().filter(|other| *other == p).count(), 1, "{p}");
            }
        }
    }

    #[test]
    fn whole_tiles_come_first() {
        let first = staged_tilings(&sizes(35, 23), 227 << 10).next().unwrap();
        assert_eq!(first.to_string(), "32x4 work-items, 23 points, tiles 23x35 and 35x23");
    }
}
