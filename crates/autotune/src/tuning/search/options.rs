//! The values of Constraint 1, and the launch shapes of Constraints 3 and 4.

use super::bounds::SearchBounds;
use kingpost_strategies::tiling::{SpaceSizes, TilingSizes};

/// Tile lengths of a loop of length `n`: `ceil(n / k)` for all `k`, each once, ascending.
///
/// Any other length takes more memory for the same number of tiles.
///
/// # Source
/// Kulkarni & Klöckner 2025, Constraint 1, equations (34) to (39), and Figure 3.
#[must_use]
pub fn tile_options(n: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let mut tiles = 1;
    while tiles <= n {
        let length = n.div_ceil(tiles);
        found.push(length);
        if length == 1 {
            break;
        }
        // The least number of tiles for which they are shorter.
        tiles = n.div_ceil(length - 1);
    }
    found.reverse();
    found
}

/// Shape of a work-group: cells, work-items of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) cells: u64,
    pub(super) work_items: u64,
}

/// The work-groups that Constraints 3 and 4 allow, by cells, then work-items of a cell.
pub(super) fn launches(bounds: &SearchBounds) -> Vec<Launch> {
    let most = bounds.largest();
    let shapes = (1..=most).flat_map(|cells| {
        let shape = move |work_items| Launch { cells, work_items };
        (1..=most / cells).map(shape).filter(|l| bounds.allow_work_group(l.cells * l.work_items))
    });
    shapes.collect()
}

/// Number of work-groups of at most `most` work-items.
pub(super) fn count_launches(most: u64) -> u64 {
    (1..=most).map(|cells| most / cells).sum()
}

/// A choice of widths of evaluation tiles, with the words of one row of the smallest and the
/// largest tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) widths: Vec<u64>,
    pub(super) smallest: u64,
    pub(super) largest: u64,
}

/// All choices of widths whose tiles satisfy Constraint 2 among themselves.
pub(super) fn columns(trial: &[SpaceSizes], bounds: &SearchBounds) -> Vec<Columns> {
    let mut found = vec![Columns { widths: Vec::new(), smallest: u64::MAX, largest: 0 }];
    for space in trial {
        let options = tile_options(space.nodes);
        let longer = found.iter().flat_map(|chosen| {
            options.iter().filter_map(move |width| {
                let words = space.matrices * width;
                let (smallest, largest) = (chosen.smallest.min(words), chosen.largest.max(words));
                let widths = chosen.widths.iter().chain([width]).copied().collect();
                bounds.allow_tiles(smallest, largest).then_some(Columns { widths, smallest, largest })
            })
        });
        found = longer.collect();
    }
    found
}

/// All tilings of a problem that satisfy the bounds.
///
/// # Source
/// Kulkarni & Klöckner 2025, section 4.2.5.
#[derive(Clone, Debug)]
pub struct SearchSpace {
    pub(super) sizes: TilingSizes,
    pub(super) bounds: SearchBounds,
    pub(super) launches: Vec<Launch>,
    pub(super) columns: Vec<Columns>,
    /// Every `T^Q` with every `T_e^r`.
    pub(super) points: Vec<(u64, u64)>,
    pub(super) quad_rows: Vec<u64>,
}
