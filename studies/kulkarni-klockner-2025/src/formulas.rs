//! Quantities of Algorithm 4 that the cost model leaves out.

use kingpost::forms::tiling::Tiling;

/// What a tiling does beside what [`Tiling`] says of it.
pub trait Algorithm4 {
    /// Words of reference matrices that a work-group fetches from start to end: each matrix of a
    /// function once.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, Algorithm 4, lines 28–34 and 72–78;
    /// [`Tiling::modelled_reference_words`] is what its cost model has instead.
    fn reference_words(&self) -> u64;

    /// Words of local memory that a work-group writes while it fetches tiles, which equation (44)
    /// leaves out.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, Algorithm 4, lines 28–34 and 72–78.
    fn fetch_local_writes(&self) -> u64 {
        self.reference_words()
    }

    /// Words of factors `e_k` that the quadrature of a cell reads: one for each entry of a matrix.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, Algorithm 4, lines 81–89. Equation (44) counts each factor once,
    /// as if a work-item that has several rows, and all others of its cell, shared one load.
    fn quadrature_factor_reads(&self) -> u64;
}

impl Algorithm4 for Tiling<'_> {
    fn reference_words(&self) -> u64 {
        let sizes = self.sizes();
        sizes.spaces().map(|s| s.matrices * s.nodes * sizes.quadrature_points).sum()
    }

    fn quadrature_factor_reads(&self) -> u64 {
        self.quadrature_matrix_reads()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kingpost::forms::tiling::{SpaceSizes, TilingError, TilingParameters, TilingSizes};

    /// 7 points, a vector function with 2 x 3 derivatives on 5 nodes, a scalar one on 4; 3 nodes of
    /// the test.
    #[test]
    fn quantities_by_hand() -> Result<(), TilingError> {
        let sizes = TilingSizes {
            quadrature_points: 7,
            trial: vec![SpaceSizes::vector("v", 5, 2, 3), SpaceSizes::scalar("u", 4, 1)],
            test: SpaceSizes::scalar("y", 3, 2),
            word_bytes: 8,
        };
        let parameters = TilingParameters {
            cells: 11,
            work_items_per_cell: 3,
            quad_tile: 4,
            eval_rows: 2,
            eval_cols: vec![3, 4],
            quad_rows: 2,
            quad_cols: 3,
        };
        let tiling = Tiling::new(&sizes, &parameters)?;
        assert_eq!(tiling.reference_words(), 7 * (15 + 4 + 6));
        assert_eq!((tiling.fetch_local_writes(), tiling.quadrature_factor_reads()), (175, 42));
        Ok(())
    }
}
