//! Candidates that share the tile of the quadrature loop and the heights of the other tiles.

use super::cost::{CostModel, Demand};
use super::options::{Columns, Launch, SearchSpace, tile_options};
use kingpost_strategies::tiling::{Tiling, TilingParameters, TilingSizes};

/// The remaining sizes of tiles: widths of the evaluation tiles, by their place, and of the
/// quadrature tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tile {
    /// Words of the buffer that the fetched tiles share.
    pub(super) buffer: u64,
    columns: usize,
    quad_cols: u64,
}

/// All candidates with one `T^Q`, one `T_e^r` and one `T_q^r` that satisfy Constraints 1 and 2.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    space: &'a SearchSpace,
    quad_tile: u64,
    eval_rows: u64,
    quad_rows: u64,
    /// In the order of their buffers.
    tiles: Vec<Tile>,
}

impl<'a> Group<'a> {
    pub(super) fn new(space: &'a SearchSpace, quad_tile: u64, eval_rows: u64, quad_rows: u64) -> Self {
        let mut tiles = Vec::new();
        for quad_cols in tile_options(quad_tile) {
            let words = space.sizes().test.matrices * quad_rows * quad_cols;
            let fits = |c: &Columns| {
                let (smallest, largest) = (c.smallest * eval_rows, c.largest * eval_rows);
                space.bounds().allow_tiles(smallest.min(words), largest.max(words))
            };
            let columns = space.columns().iter().enumerate().filter(|(_, c)| fits(c));
            tiles.extend(columns.map(|(place, c)| {
                let buffer = words.max(c.largest * eval_rows);
                Tile { buffer, columns: place, quad_cols }
            }));
        }
        tiles.sort_unstable();
        Self { space, quad_tile, eval_rows, quad_rows, tiles }
    }

    pub(super) fn sizes(&self) -> &'a TilingSizes {
        self.space.sizes()
    }

    /// Number of tiles, whatever their local memory.
    pub(super) fn len(&self) -> usize {
        self.tiles.len()
    }

    /// The tiles that the local memory holds besides the factors of a launch.
    fn fitting(&self, launch: Launch) -> &[Tile] {
        let sizes = self.space.sizes();
        let rows = |rows: u64| rows.div_ceil(launch.work_items);
        if !self.space.bounds().allow_rows(sizes, rows(self.eval_rows), rows(self.quad_rows)) {
            return &[];
        }
        let factors = launch.cells * self.quad_tile * sizes.test.derivatives;
        let words = (self.space.bounds().local_bytes / sizes.word_bytes).checked_sub(factors);
        let count = words.map_or(0, |words| self.tiles.partition_point(|t| t.buffer <= words));
        self.tiles.get(..count).unwrap_or_default()
    }

    /// Number of candidates: with every launch that its tiles leave room for.
    pub(super) fn count(&self) -> u64 {
        self.space.launches().iter().map(|l| self.fitting(*l).len() as u64).sum()
    }

    pub(super) fn parameters(&self, launch: Launch, tile: &Tile) -> TilingParameters {
        let columns = self.space.columns().get(tile.columns);
        TilingParameters {
            cells: launch.cells,
            work_items_per_cell: launch.work_items,
            quad_tile: self.quad_tile,
            eval_rows: self.eval_rows,
            eval_cols: columns.map(|c| c.widths.clone()).unwrap_or_default(),
            quad_rows: self.quad_rows,
            quad_cols: tile.quad_cols,
        }
    }

    /// The candidate at a place in the order of launches and tiles.
    pub(super) fn nth(&self, mut place: u64) -> Option<TilingParameters> {
        for launch in self.space.launches() {
            let fitting = self.fitting(*launch);
            if let Some(tile) = fitting.get(usize::try_from(place).ok()?) {
                return Some(self.parameters(*launch, tile));
            }
            place -= fitting.len() as u64;
        }
        None
    }

    /// For each launch its tiles and their times; within a launch no time is less than the one
    /// before it.
    pub(super) fn timed<'g>(&'g self, model: &'g CostModel<'_>) -> impl Iterator<Item = Timed<'g>> {
        self.space.launches().iter().filter_map(move |launch| {
            let tiles = self.fitting(*launch);
            // Besides the memory, nothing that the model asks for depends on the tile.
            let parameters = self.parameters(*launch, tiles.first()?);
            let tiling = Tiling::trusted(self.space.sizes(), &parameters);
            let (demand, factors) = (model.demand(&tiling), tiling.factor_words());
            Some(Timed {
                model,
                launch: *launch,
                tiles,
                demand,
                factors,
                word: self.space.sizes().word_bytes,
            })
        })
    }
}

/// Tiles with one launch.
pub(super) struct Timed<'g> {
    model: &'g CostModel<'g>,
    pub(super) launch: Launch,
    pub(super) tiles: &'g [Tile],
    demand: Demand,
    factors: u64,
    word: u64,
}

impl Timed<'_> {
    pub(super) fn seconds(&self, tile: &Tile) -> f64 {
        let allocated_bytes = ((tile.buffer + self.factors) * self.word) as f64;
        self.model.seconds(&Demand { allocated_bytes, ..self.demand })
    }

    /// Number of tiles that take less than `seconds`.
    pub(super) fn faster_than(&self, seconds: f64) -> u64 {
        self.tiles.partition_point(|tile| self.seconds(tile) < seconds) as u64
    }
}

/// The candidates of a group, one by one.
pub(super) struct Candidates<'a> {
    group: Group<'a>,
    launch: usize,
    tile: usize,
}

impl<'a> From<Group<'a>> for Candidates<'a> {
    fn from(group: Group<'a>) -> Self {
        Self { group, launch: 0, tile: 0 }
    }
}

impl Iterator for Candidates<'_> {
    type Item = TilingParameters;

    fn next(&mut self) -> Option<TilingParameters> {
        loop {
            let launch = *self.group.space.launches().get(self.launch)?;
            if let Some(tile) = self.group.fitting(launch).get(self.tile) {
                self.tile += 1;
                return Some(self.group.parameters(launch, tile));
            }
            (self.launch, self.tile) = (self.launch + 1, 0);
        }
    }
}
