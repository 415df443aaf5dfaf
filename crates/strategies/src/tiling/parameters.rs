//! The parameters of the tiling, and which of them mean something.

use super::sizes::{SpaceSizes, TilingSizes};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Parameters of the multi-level tiling of Kulkarni & Klöckner 2025.
///
/// # Source
/// Kulkarni & Klöckner 2025, section 4.2 and Algorithm 4.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TilingParameters {
    /// Cells of a work-group, `N_c`.
    pub cells: u64,
    /// Work-items of each cell, `N_WI`.
    pub work_items_per_cell: u64,
    /// Quadrature points of a tile of the quadrature loop, `T^Q`.
    pub quad_tile: u64,
    /// Points (rows) of a tile of the matrices of the evaluation, `T_e^r`.
    pub eval_rows: u64,
    /// Nodes (columns) of a tile of the matrices of each evaluated function, `T_e^c`, in the order
    /// of the sizes.
    pub eval_cols: Vec<u64>,
    /// Nodes (rows) of a tile of the matrices of the test function, `T_q^r`.
    pub quad_rows: u64,
    /// Points (columns) of a tile of the matrices of the test function, `T_q^c`.
    pub quad_cols: u64,
}

/// Sizes below this keep every quantity in 64 bits.
const MAX_SIZE: u64 = 1 << 14;
/// Work-items and cells of a work-group: four times what any device of today takes.
pub const MAX_WORK_GROUP: u64 = 1 << 12;
/// Functions of a form.
const MAX_SPACES: usize = 64;

/// Why sizes or parameters mean nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TilingError {
    /// A size of the problem is out of its range.
    #[error("sizes: {what} is {found}, needed {min} to {max}")]
    Size {
        /// The size.
        what: String,
        /// Its value.
        found: u64,
        /// The least that works.
        min: u64,
        /// The most that works.
        max: u64,
    },
    /// A parameter is out of its range.
    #[error("tiling: {what} is {found}, needed 1 to {max}, {bound}")]
    Parameter {
        /// The parameter.
        what: String,
        /// Its value.
        found: u64,
        /// The most that makes sense.
        max: u64,
        /// What bounds it.
        bound: &'static str,
    },
    /// A tile width for each function that is evaluated.
    #[error("tiling: {found} widths of evaluation tiles, needed {needed}, one for each of {functions}")]
    Columns {
        /// Widths given.
        found: usize,
        /// Functions that are evaluated.
        needed: usize,
        /// Their names.
        functions: String,
    },
}

impl TilingSizes {
    /// Whether the sizes are those of a kernel.
    ///
    /// # Errors
    /// No function, a size of zero or above 16,383 (so that no quantity leaves 64 bits), more
    /// matrices than derivatives.
    pub fn check(&self) -> Result<(), TilingError> {
        let within = |what: String, found: u64, min: u64, max: u64| match (min..=max).contains(&found) {
            true => Ok(()),
            false => Err(TilingError::Size { what, found, min, max }),
        };
        let max = MAX_SIZE - 1;
        within("the number of quadrature points".into(), self.quadrature_points, 1, max)?;
        within("the word of bytes".into(), self.word_bytes, 1, 64)?;
        within("the number of evaluated functions".into(), self.trial.len() as u64, 1, MAX_SPACES as u64)?;
        for space in self.spaces() {
            let name = &space.name;
            within(format!("the number of nodes of `{name}`"), space.nodes, 1, max)?;
            within(format!("the number of components of `{name}`"), space.components, 1, max)?;
            within(format!("the number of derivatives of `{name}`"), space.derivatives, 1, max)?;
            within(format!("the number of matrices of `{name}`"), space.matrices, 1, space.derivatives)?;
        }
        Ok(())
    }
}

impl TilingParameters {
    /// Whether the parameters make sense for a problem: no tile larger than what is tiled, none
    /// empty.
    ///
    /// # Errors
    /// The parameter and the bound it breaks; sizes that [`TilingSizes::check`] refuses.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, the ranges of equations (34)–(39).
    pub fn check(&self, sizes: &TilingSizes) -> Result<(), TilingError> {
        sizes.check()?;
        self.within(sizes)
    }

    /// Parameters for a form of other sizes, with as many tiles along each loop.
    #[must_use]
    pub fn rescaled(&self, from: &TilingSizes, to: &TilingSizes) -> Self {
        let same_count =
            |tile: u64, from: u64, to: u64| to.div_ceil(from.div_ceil(tile.max(1)).max(1)).max(1);
        let quad_tile = same_count(self.quad_tile, from.quadrature_points, to.quadrature_points);
        // functions beyond those of the known form are cut like its last one
        let cols = |(k, space): (usize, &SpaceSizes)| {
            let place = k.min(self.eval_cols.len().saturating_sub(1));
            match (self.eval_cols.get(place), from.trial.get(place)) {
                (Some(tile), Some(known)) => same_count(*tile, known.nodes, space.nodes),
                (None, _) | (_, None) => space.nodes,
            }
        };
        Self {
            cells: self.cells,
            work_items_per_cell: self.work_items_per_cell.min(quad_tile),
            quad_tile,
            eval_rows: same_count(self.eval_rows, self.quad_tile, quad_tile),
            eval_cols: to.trial.iter().enumerate().map(cols).collect(),
            quad_rows: same_count(self.quad_rows, from.test.nodes, to.test.nodes),
            quad_cols: same_count(self.quad_cols, self.quad_tile, quad_tile),
        }
    }

    /// As [`Self::check`], for sizes that are those of a kernel.
    pub(crate) fn within(&self, sizes: &TilingSizes) -> Result<(), TilingError> {
        if self.eval_cols.len() != sizes.trial.len() {
            let names: Vec<String> = sizes.trial.iter().map(|s| format!("`{}`", s.name)).collect();
            return Err(TilingError::Columns {
                found: self.eval_cols.len(),
                needed: sizes.trial.len(),
                functions: names.join(", "),
            });
        }
        let within = |what: &str, found: u64, max: u64, bound| match (1..=max).contains(&found) {
            true => Ok(()),
            false => Err(TilingError::Parameter { what: what.into(), found, max, bound }),
        };
        let points = "the points of a quadrature tile";
        within("the quadrature tile", self.quad_tile, sizes.quadrature_points, "the quadrature points")?;
        within("the height of evaluation tiles", self.eval_rows, self.quad_tile, points)?;
        for (cols, space) in self.eval_cols.iter().zip(&sizes.trial) {
            let what = format!("the width of evaluation tiles of `{}`", space.name);
            within(&what, *cols, space.nodes, "its nodes")?;
        }
        let nodes = "the nodes of the test function";
        within("the height of quadrature tiles", self.quad_rows, sizes.test.nodes, nodes)?;
        within("the width of quadrature tiles", self.quad_cols, self.quad_tile, points)?;
        let most = "the largest work-group";
        within("the number of cells of a work-group", self.cells, MAX_WORK_GROUP, most)?;
        within("the number of work-items of a cell", self.work_items_per_cell, MAX_WORK_GROUP, most)
    }

    /// Work-items of a work-group, `N_c N_WI`.
    #[must_use]
    pub fn work_group(&self) -> u64 {
        self.cells.saturating_mul(self.work_items_per_cell)
    }
}

impl fmt::Display for TilingParameters {
    /// `18x14 work-items, 112 points, tiles 112x3,3 and 42x8`: cells by work-items of each, the
    /// tile of the quadrature loop, tiles of the evaluation with a width for each function, tiles
    /// of the quadrature.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cells, work_items_per_cell, quad_tile, eval_rows, quad_rows, quad_cols, .. } = self;
        let widths: Vec<String> = self.eval_cols.iter().map(u64::to_string).collect();
        let widths = widths.join(",");
        write!(f, "{cells}x{work_items_per_cell} work-items, {quad_tile} points, ")?;
        write!(f, "tiles {eval_rows}x{widths} and {quad_rows}x{quad_cols}")
    }
}
