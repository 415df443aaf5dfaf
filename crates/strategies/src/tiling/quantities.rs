//! What a tiled kernel executes, allocates and moves, as functions of sizes and parameters.
//!
//! Every function says where it stands in Kulkarni & Klöckner 2025. The text there is wrong in
//! places; what stands here follows from its Algorithm 4, whose loops the study of it counts one by
//! one.

use super::parameters::{TilingError, TilingParameters};
use super::sizes::TilingSizes;

/// A problem with parameters that make sense for it.
///
/// # Source
/// Kulkarni & Klöckner 2025, section 4.2.4.
#[derive(Clone, Copy, Debug)]
pub struct Tiling<'a> {
    sizes: &'a TilingSizes,
    parameters: &'a TilingParameters,
}

impl<'a> Tiling<'a> {
    /// Joins both.
    ///
    /// # Errors
    /// As [`TilingParameters::check`].
    pub fn new(sizes: &'a TilingSizes, parameters: &'a TilingParameters) -> Result<Self, TilingError> {
        parameters.check(sizes)?;
        Ok(Self { sizes, parameters })
    }

    /// Joins both; the caller has made the parameters from the sizes.
    ///
    /// For searches, which join millions of them. Of parameters that [`TilingParameters::check`] refuses,
    /// quantities may be wrong or panic.
    #[must_use]
    pub fn trusted(sizes: &'a TilingSizes, parameters: &'a TilingParameters) -> Self {
        Self { sizes, parameters }
    }

    /// The sizes.
    #[must_use]
    pub fn sizes(&self) -> &'a TilingSizes {
        self.sizes
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> &'a TilingParameters {
        self.parameters
    }

    /// Sum of `f(points)` over the tiles of the quadrature loop: full ones and the rest, if there
    /// is one.
    fn over_quad_tiles(&self, f: impl Fn(u64) -> u64) -> u64 {
        let (points, tile) = (self.sizes.quadrature_points, self.parameters.quad_tile);
        let rest = points % tile;
        (points / tile) * f(tile) + if rest > 0 { f(rest) } else { 0 }
    }

    /// Tiles of the quadrature loop, `ceil(Q / T^Q)`.
    #[must_use]
    pub fn quad_tiles(&self) -> u64 {
        self.over_quad_tiles(|_| 1)
    }

    /// Row tiles of the evaluation, over all tiles of the quadrature loop.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, the first factor of `M_gather` in equation (43).
    #[must_use]
    pub fn eval_row_tiles(&self) -> u64 {
        self.over_quad_tiles(|q| q.div_ceil(self.parameters.eval_rows))
    }

    /// Tiles of reference matrices that a work-group fetches while it evaluates, each of all
    /// matrices of one function.
    #[must_use]
    pub fn eval_tiles(&self) -> u64 {
        let widths = self.sizes.trial.iter().zip(&self.parameters.eval_cols);
        let columns: u64 = widths.map(|(space, cols)| space.nodes.div_ceil(*cols)).sum();
        self.eval_row_tiles() * columns
    }

    /// The same for the test function.
    #[must_use]
    pub fn quadrature_tiles(&self) -> u64 {
        let p = self.parameters;
        let rows = self.sizes.test.nodes.div_ceil(p.quad_rows);
        self.over_quad_tiles(|q| rows * q.div_ceil(p.quad_cols))
    }

    /// Barriers that a work-group executes from start to end, `N_sync`.
    ///
    /// Two for each fetched tile (one before it is read, one before the next overwrites it) and two
    /// for each tile of the quadrature loop: between evaluation and quadrature, and before the next
    /// tile. The source multiplies the last two with the row tiles of the evaluation,
    /// `ceil(q / T_e^r)`, but both barriers of Algorithm 4 (its lines 58 and 99) stand outside
    /// that loop; the figures agree where `T_e^r = T^Q`.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equations (23) and (24).
    #[must_use]
    pub fn barriers(&self) -> u64 {
        self.needed_barriers() + 2 * self.quad_tiles()
    }

    /// Barriers that Algorithm 4 needs: those around fetched tiles.
    ///
    /// The first barrier around a tile of the test function's matrices already separates the
    /// factors
    /// `e_k` from their use, and the last one their use from the next tile of the quadrature loop;
    /// so the other two of [`Self::barriers`] order nothing that is not ordered.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, terms 1 and 2 of equation (23).
    #[must_use]
    pub fn needed_barriers(&self) -> u64 {
        2 * (self.eval_tiles() + self.quadrature_tiles())
    }

    /// Words of a tile of the matrices of each function: the evaluated ones, then the test
    /// function.
    fn tile_words(&self) -> impl Iterator<Item = u64> {
        let p = self.parameters;
        let widths = self.sizes.trial.iter().zip(&p.eval_cols);
        let eval = widths.map(move |(space, cols)| space.matrices * p.eval_rows * cols);
        eval.chain([self.sizes.test.matrices * p.quad_rows * p.quad_cols])
    }

    /// Words of the buffer that all fetched tiles share.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (22) and term 1 of (25), with matrices where it has
    /// derivatives.
    #[must_use]
    pub fn buffer_words(&self) -> u64 {
        self.tile_words().max().unwrap_or(0) // default: no tile has no words
    }

    /// Words of the factors `e_k` of a tile of the quadrature loop, for all cells of the
    /// work-group.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, term 2 of equation (25).
    #[must_use]
    pub fn factor_words(&self) -> u64 {
        self.parameters.cells * self.parameters.quad_tile * self.sizes.test.derivatives
    }

    /// Words of local memory of a work-group, `L`.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (25).
    #[must_use]
    pub fn local_words(&self) -> u64 {
        self.buffer_words() + self.factor_words()
    }

    /// [`Self::local_words`] in bytes.
    #[must_use]
    pub fn local_bytes(&self) -> u64 {
        self.local_words() * self.sizes.word_bytes
    }

    /// Part of the lanes of a work-group's sub-groups that are work-items, `eta_simd`.
    ///
    /// # Shapes and units
    /// `sub_group` in work-items (32 on NVIDIA), at least 1; 0 < result <= 1.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (26).
    #[must_use]
    pub fn simd_efficiency(&self, sub_group: u64) -> f64 {
        let lanes = self.sub_groups(sub_group) * sub_group.max(1);
        self.parameters.work_group() as f64 / lanes as f64
    }

    /// Sub-groups of a work-group.
    #[must_use]
    pub fn sub_groups(&self, sub_group: u64) -> u64 {
        self.parameters.work_group().div_ceil(sub_group.max(1))
    }

    /// Operations for which the work-items of a cell have a slot while `points` points are
    /// evaluated: each of them makes as many steps as the busiest.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (30); it leaves out the factor 2 that its equation (28)
    /// has.
    fn eval_slots(&self, points: u64) -> u64 {
        let steps = self.steps(points, self.parameters.eval_rows);
        let per_row: u64 = self.sizes.trial.iter().map(|s| s.derivatives * s.nodes).sum();
        2 * self.parameters.work_items_per_cell * steps * per_row
    }

    /// The same for the quadrature.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (31); it leaves out the factor 2 and has `T_q^r` too
    /// often in its first term.
    fn quadrature_slots(&self, points: u64) -> u64 {
        let steps = self.steps(self.sizes.test.nodes, self.parameters.quad_rows);
        2 * self.parameters.work_items_per_cell * steps * self.sizes.test.derivatives * points
    }

    /// Steps of a work-item over `rows` rows in tiles of `tile` rows, dealt out among the
    /// work-items of a cell.
    fn steps(&self, rows: u64, tile: u64) -> u64 {
        let items = self.parameters.work_items_per_cell;
        (rows / tile) * tile.div_ceil(items) + (rows % tile).div_ceil(items)
    }

    /// Operations of a cell's small matrix–vector products, counted with those that masked
    /// work-items only wait for, `Ops^performed`.
    ///
    /// # Shapes and units
    /// FLOP per cell; a masked work-item counts as busy.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equations (29)–(31), corrected as their parts say.
    #[must_use]
    pub fn performed_ops(&self) -> u64 {
        self.over_quad_tiles(|q| self.eval_slots(q) + self.quadrature_slots(q))
    }

    /// Part of the operations that do something, `eta_pred`; 0 < result <= 1.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (27).
    #[must_use]
    pub fn predication_efficiency(&self) -> f64 {
        self.sizes.usable_ops() as f64 / self.performed_ops() as f64
    }

    /// Smallest tile over the buffer that all tiles share, `eta_alias`; 0 < result <= 1.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (33), with matrices where it has derivatives.
    #[must_use]
    pub fn alias_efficiency(&self) -> f64 {
        // default: no tile has no words
        self.tile_words().min().unwrap_or(0) as f64 / self.buffer_words() as f64
    }

    /// Words of degrees of freedom that a work-item loads, `M_gather`: all of its cell, again for
    /// each row tile.
    ///
    /// The other work-items of the cell load the same words at the same time.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (43).
    #[must_use]
    pub fn gather_words(&self) -> u64 {
        self.eval_row_tiles() * self.sizes.trial.iter().map(|s| s.dofs()).sum::<u64>()
    }

    /// Words that are added to the result for each cell, `M_scatter`.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (43), with all components of a vector test function.
    #[must_use]
    pub fn scatter_words(&self) -> u64 {
        self.quad_tiles() * self.sizes.test.dofs()
    }

    /// Words of reference data of a work-group in the cost model, `N_c M_ref`: one matrix of each
    /// evaluated function and the weights. It leaves out the other derivatives and the test
    /// function.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (43).
    #[must_use]
    pub fn modelled_reference_words(&self) -> u64 {
        let nodes: u64 = self.sizes.trial.iter().map(|s| s.nodes).sum();
        (nodes + 1) * self.sizes.quadrature_points
    }

    /// Words that the evaluation of a cell reads from tiles of reference matrices, `M_eval,read`.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (44).
    #[must_use]
    pub fn eval_local_reads(&self) -> u64 {
        let points = self.sizes.quadrature_points;
        self.sizes.trial.iter().map(|s| s.derivatives * s.nodes * points).sum()
    }

    /// Words of factors `e_k` of a cell that are written, `M_eval,write`.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (44).
    #[must_use]
    pub fn eval_local_writes(&self) -> u64 {
        self.sizes.test.derivatives * self.sizes.quadrature_points
    }

    /// Words that the quadrature of a cell reads from tiles of reference matrices.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, the second term of `M_quad,read` in equation (44).
    #[must_use]
    pub fn quadrature_matrix_reads(&self) -> u64 {
        self.sizes.test.derivatives * self.sizes.quadrature_points * self.sizes.test.nodes
    }

    /// Bytes of global memory that the cost model charges to a cell.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (43).
    #[must_use]
    pub fn modelled_global_bytes(&self) -> f64 {
        let shared = self.modelled_reference_words() as f64 / self.parameters.cells as f64;
        (self.gather_words() as f64 + self.scatter_words() as f64 + shared) * self.sizes.word_bytes as f64
    }

    /// Bytes of local memory that the cost model charges to a cell.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (44).
    #[must_use]
    pub fn modelled_local_bytes(&self) -> u64 {
        let factors = 2 * self.eval_local_writes();
        (self.eval_local_reads() + factors + self.quadrature_matrix_reads()) * self.sizes.word_bytes
    }
}
