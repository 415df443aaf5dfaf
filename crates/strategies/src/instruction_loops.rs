//! The loops and arrays that each matrix instruction has.

use super::fragments::{
    self, Axes, Fragment, Nest, Product, TILE, lanes, lay_out_spread_table, lay_out_table, product,
    spread_length,
};
use super::instruction::MatrixInstruction;
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{
    JoinArrayAxes, LaunchHint, PadArray, PadInames, SplitArrayAxis, TransposeArrayAxes,
};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};

/// What an array of cells and columns is, and where it stays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// A factor, in registers.
    Terms,
    /// Sums, in registers.
    Results,
    /// In local memory.
    Local,
}

/// Terms of the instruction of wavefronts, and rows of a work-item.
const FOUR: i64 = 4;

impl MatrixInstruction {
    /// Modes, or rows of a result, of one instruction.
    pub(super) const fn tile(self) -> i64 {
        match self {
            Self::MmaM16n8k8 => TILE,
            Self::Mfma16x16x4 => 16,
        }
    }

    /// Rows of a result in full tiles.
    pub(super) const fn tiled(self, n: i64) -> i64 {
        n + (-n).rem_euclid(self.tile())
    }

    /// Doubles of a copy in local memory of a table of modes, a multiple of the tile, and degrees of freedom.
    pub(super) const fn kept_length(self, modes: i64, dofs: i64) -> i64 {
        match self {
            Self::MmaM16n8k8 => spread_length(modes * self.tiled(dofs)),
            Self::Mfma16x16x4 => modes * self.tiled(dofs),
        }
    }

    /// Terms as they are multiplied: in tiles, or in fours.
    pub(super) const fn padded(self, n: i64) -> i64 {
        match self {
            Self::MmaM16n8k8 => self.tiled(n),
            Self::Mfma16x16x4 => n + (-n).rem_euclid(FOUR),
        }
    }

    /// Lets tiles divide loops over degrees of freedom, `count` of them: those of `terms`, and of `rows`.
    pub(super) fn pad(
        self,
        s: &mut Schedule,
        terms: &[&Loop],
        rows: &[&Loop],
        count: i64,
    ) -> Result<(), TransformError> {
        let longer = self.padded(count);
        if longer > count {
            s.apply(PadInames::new(terms.iter().chain(rows).copied(), longer))?;
        }
        if self.tiled(count) > longer {
            s.apply(PadInames::new(rows.iter().copied(), self.tiled(count)))?;
        }
        Ok(())
    }

    /// The loops of a nest over degrees of freedom that are terms.
    pub(super) fn terms(self, s: &mut Schedule, nest: &Nest) -> Result<Fragment, TransformError> {
        match self {
            Self::MmaM16n8k8 => fragments::fragment(s, nest, true),
            Self::Mfma16x16x4 => column_fragment(s, nest, false),
        }
    }

    /// The loops of a nest over rows of results, several tiles of them if it is `wide`.
    pub(super) fn rows(self, s: &mut Schedule, nest: &Nest, wide: bool) -> Result<Fragment, TransformError> {
        match self {
            Self::MmaM16n8k8 => fragments::fragment(s, nest, wide),
            Self::Mfma16x16x4 => column_fragment(s, nest, wide),
        }
    }

    /// The loops of a product whose terms are degrees of freedom, and whose rows are a tile of modes.
    pub(super) fn evaluation(
        self,
        s: &mut Schedule,
        nest: &Nest,
        terms: &Loop,
    ) -> Result<Product, TransformError> {
        let Nest { cells, columns } = nest;
        match self {
            Self::MmaM16n8k8 => product(s, cells, columns, terms, true),
            Self::Mfma16x16x4 => {
                let [of_term, k] = s.split_as(terms, FOUR, ["terms", "term"])?;
                let [v, t] = s.split_as(columns, FOUR, ["part", "place"])?;
                s.reorder([&of_term, &t, cells, &v, &k])?;
                let (tiles, lanes) = (vec![of_term], [t, cells.clone()]);
                Ok(Product { tiles, lanes, own: vec![v, k], is_short: false })
            }
        }
    }

    /// The loops of a product whose terms are a tile of modes, the columns of the nest, and whose rows are
    /// degrees of freedom.
    pub(super) fn transposed(
        self,
        s: &mut Schedule,
        nest: &Nest,
        rows: &Loop,
    ) -> Result<Product, TransformError> {
        let Nest { cells, columns } = nest;
        match self {
            Self::MmaM16n8k8 => product(s, cells, rows, columns, false),
            Self::Mfma16x16x4 => {
                let [tile, inner] = s.split_as(rows, self.tile(), ["tile", "inner"])?;
                let [v, t] = s.split_as(&inner, FOUR, ["part", "place"])?;
                let [of_term, k] = s.split_as(columns, FOUR, ["terms", "term"])?;
                s.reorder([&tile, &of_term, &t, cells, &v, &k])?;
                let (tiles, lanes) = (vec![tile, of_term], [t, cells.clone()]);
                Ok(Product { tiles, lanes, own: vec![v, k], is_short: false })
            }
        }
    }

    /// Lays an array `[sub-groups, cells, degrees of freedom]` of terms out.
    pub(super) fn lay_out_terms(
        self,
        s: &mut Schedule,
        array: &Array,
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        match self {
            Self::MmaM16n8k8 => to_fragment(s, array, VALUES, axes),
            Self::Mfma16x16x4 => to_columns(s, array, axes),
        }
    }

    /// Lays an array `[sub-groups, cells, rows]` of results out.
    pub(super) fn lay_out_results(
        self,
        s: &mut Schedule,
        array: &Array,
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        match self {
            Self::MmaM16n8k8 => to_fragment(s, array, RESULTS, axes),
            Self::Mfma16x16x4 => {
                to_columns(s, array, axes)?;
                s.apply(SplitArrayAxis { var: array.into(), axis: 2, factor: FOUR }).map(drop)
            }
        }
    }

    /// Lays an array `[sub-groups, cells, modes of a tile]` out.
    pub(super) fn lay_out_modes(
        self,
        s: &mut Schedule,
        array: &Array,
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        match self {
            Self::MmaM16n8k8 => {
                for (axis, factor) in [(1, TILE), (3, TILE / 2)] {
                    s.apply(SplitArrayAxis { var: array.into(), axis, factor })?;
                }
                s.apply(TransposeArrayAxes { var: array.into(), order: vec![0, 2, 4, 1, 3] })?;
                s.apply(JoinArrayAxes { var: array.into(), axis: 1 })?;
                axes.fragments.push(array.clone());
                Ok(())
            }
            Self::Mfma16x16x4 => to_columns(s, array, axes),
        }
    }

    /// Lays an array `[cells, columns, components]` out, several axes of components perhaps, and several tiles
    /// of columns if it is `wide`: components first.
    pub(super) fn lay_out(
        self,
        s: &mut Schedule,
        array: &Array,
        components: u32,
        wide: bool,
        kept: Kept,
    ) -> Result<(), TransformError> {
        match self {
            Self::MmaM16n8k8 => fragments::lay_out_of(s, array, components, wide, kept != Kept::Local),
            Self::Mfma16x16x4 => {
                let order = (2..2 + components).chain([0, 1]).collect();
                s.apply(TransposeArrayAxes { var: array.into(), order })?;
                s.apply(SplitArrayAxis { var: array.into(), axis: components + 1, factor: FOUR })?;
                // cells, fours, and places in one: work-items are places of cells
                let (axes, lane): ([u32; 3], u32) = match kept {
                    Kept::Terms | Kept::Results => ([2, 0, 1], 0),
                    Kept::Local => ([1, 2, 0], 1),
                };
                let order = (0..components).chain(axes.map(|axis| components + axis)).collect();
                s.apply(TransposeArrayAxes { var: array.into(), order })?;
                s.apply(JoinArrayAxes { var: array.into(), axis: components + lane })?;
                if wide && kept == Kept::Results {
                    let (var, axis) = (array.into(), components + 1);
                    s.apply(SplitArrayAxis { var, axis, factor: FOUR })?;
                }
                Ok(())
            }
        }
    }

    /// Lets columns of what [`Self::lay_out`] has in local memory, with one axis of components, begin in other
    /// banks: all, or of each four the first.
    pub(super) fn spread_columns(self, s: &mut Schedule, array: &Array) -> Result<(), TransformError> {
        match self {
            Self::MmaM16n8k8 => fragments::spread_columns(s, array),
            Self::Mfma16x16x4 => s.apply(PadArray::new(array, 2, FOUR)).map(drop),
        }
    }

    /// Lays a table `[modes, degrees of freedom]` out, which has a copy in local memory or not; one
    /// without may have other axes in `front`.
    pub(super) fn lay_out_table(
        self,
        s: &mut Schedule,
        table: &Array,
        front: u32,
        is_kept: bool,
    ) -> Result<(), TransformError> {
        match (self, is_kept) {
            (Self::MmaM16n8k8, true) => lay_out_table(s, table),
            (Self::MmaM16n8k8, false) => lay_out_spread_table(s, table, front),
            (Self::Mfma16x16x4, _) => {
                // blocks of 16 modes by four columns: what an evaluation reads lies side by side, and of what
                // the other product reads four parts of 16 elements
                for (axis, factor) in [(0, self.tile()), (1, FOUR), (3, FOUR)] {
                    s.apply(SplitArrayAxis { var: table.into(), axis: front + axis, factor })?;
                }
                let order = (0..front).chain([0, 3, 1, 2, 4].map(|axis| front + axis));
                s.apply(TransposeArrayAxes::new(table, order)).map(drop)
            }
        }
    }

    /// Gives the kernel sub-groups of its width.
    pub(super) fn set_width(self, s: &mut Schedule) -> Result<(), TransformError> {
        match self {
            Self::MmaM16n8k8 => Ok(()),
            Self::Mfma16x16x4 => s.apply(LaunchHint::sub_group(self.lanes() as u32)).map(drop),
        }
    }
}

/// The loops of a nest of 16 cells and of columns in fours, or tiles of 16 of them: column `4*v + t` of cell
/// `g` belongs to work-item `16*t + g`.
fn column_fragment(s: &mut Schedule, nest: &Nest, wide: bool) -> Result<Fragment, TransformError> {
    let (tile, columns) = if wide {
        let tile = MatrixInstruction::Mfma16x16x4.tile();
        let [tile, columns] = s.split_as(&nest.columns, tile, ["tile", "column"])?;
        (Some(tile), columns)
    } else {
        (None, nest.columns.clone())
    };
    let [v, t] = s.split_as(&columns, FOUR, ["part", "place"])?;
    let own: Vec<Loop> = tile.into_iter().chain([v]).collect();
    s.reorder([&t, &nest.cells].into_iter().chain(&own))?;
    Ok(Fragment { lanes: lanes(s, &t, &nest.cells)?, own })
}

/// Lays an array `[sub-groups, cells, columns]` out as `[sub-groups, work-items, columns in fours]`.
fn to_columns(s: &mut Schedule, array: &Array, axes: &mut Axes) -> Result<(), TransformError> {
    s.apply(SplitArrayAxis { var: array.into(), axis: 2, factor: FOUR })?;
    s.apply(TransposeArrayAxes { var: array.into(), order: vec![0, 3, 1, 2] })?;
    s.apply(JoinArrayAxes { var: array.into(), axis: 1 })?;
    axes.fragments.push(array.clone());
    Ok(())
}

/// The order of the axes of degrees of freedom, and of results, as `mma_m16n8k8` has them.
const VALUES: [u32; 6] = [0, 2, 5, 3, 4, 1];
const RESULTS: [u32; 6] = [0, 2, 5, 3, 1, 4];

/// Lays an array `[sub-groups, cells, columns]` out as `mma_m16n8k8` has it.
fn to_fragment(
    s: &mut Schedule,
    array: &Array,
    order: [u32; 6],
    axes: &mut Axes,
) -> Result<(), TransformError> {
    for (axis, factor) in [(1, TILE), (3, TILE), (4, TILE / 2)] {
        s.apply(SplitArrayAxis { var: array.into(), axis, factor })?;
    }
    s.apply(TransposeArrayAxes { var: array.into(), order: order.to_vec() })?;
    s.apply(JoinArrayAxes { var: array.into(), axis: 1 })?;
    axes.fragments.push(array.clone());
    Ok(())
}
