//! Sizes of tiles, and where their loops go.

use super::super::blocks::Accumulation;
use super::super::length;
use crate::strategy::StrategyError;
use crate::tiling::{TilingParameters, TilingSizes};
use kingpost_forms::program::{Block, CellProgram, Evaluation, Products, Tiled};
use kingpost_primitives::schedule::Loop;

/// Most multiplications of a column tile that are written out.
const MAX_UNROLLED: i64 = 2048;

/// Most work-items of a group on any device.
const MAX_GROUP: u64 = 1024;

/// Most sums and degrees of freedom of a column tile that a work-item keeps in registers together;
/// beyond, degrees of freedom are read when their column's turn comes. A work-item has 127
/// registers for doubles. With 79 in registers the 3-D P4 Helmholtz takes 3.48 ms, and 4.94 ms with
/// the degrees of freedom read late; with 141 the 3-D P4 elasticity takes 4.20 ms, and 4.18 ms read
/// late (H200, 2026-11-21).
pub const MAX_KEPT: i64 = 100;

/// What all quadrature loops share of the parameters.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Cells of a group.
    pub(super) cells: i64,
    /// Work-items of a cell.
    pub(super) work_items: i64,
    /// Rows of a tile of the products.
    pub(super) quad_rows: i64,
    /// Whether degrees of freedom and results go through local memory.
    pub(super) staged: bool,
}

impl Shape {
    /// From parameters that suit the sizes of a program and any device.
    pub(super) fn new(
        p: &TilingParameters,
        program: &CellProgram,
        parts: &Tiled<'_>,
        staged: bool,
    ) -> Result<Self, StrategyError> {
        p.within(&TilingSizes::of(program, parts))?;
        if p.work_group() > MAX_GROUP {
            return Err(StrategyError::Parameter {
                symbol: "the size of a group, N_c N_WI,".into(),
                found: p.work_group(),
                needed: format!("1 to {MAX_GROUP}, the work-items of a group on any device"),
            });
        }
        let [cells, work_items, quad_rows] = [p.cells, p.work_items_per_cell, p.quad_rows].map(length);
        Ok(Self { cells, work_items, quad_rows, staged })
    }
}

/// Where loops go.
#[derive(Default)]
pub(super) struct Axes {
    /// Written out.
    pub(super) unrolled: Vec<Loop>,
    /// On `l.0`.
    pub(super) cells: Vec<Loop>,
    /// On `l.1`.
    pub(super) items: Vec<Loop>,
}

/// A quadrature loop, and the tiles of its products.
pub(super) struct BlockSizes<'p> {
    pub(super) block: &'p Block,
    pub(super) products: &'p Products,
    pub(super) accumulation: Accumulation,
    pub(super) quad_tile: i64,
    pub(super) eval_rows: i64,
    pub(super) quad_cols: i64,
    pub(super) eval_cols: Vec<i64>,
}

impl<'p> BlockSizes<'p> {
    pub(super) fn new(
        parameters: &TilingParameters,
        block: &'p Block,
        products: &'p Products,
        accumulation: Accumulation,
        columns: &mut impl Iterator<Item = i64>,
    ) -> Self {
        let quad_tile = length(parameters.quad_tile).min(block.points);
        Self {
            block,
            products,
            accumulation,
            quad_tile,
            eval_rows: length(parameters.eval_rows).min(quad_tile),
            quad_cols: length(parameters.quad_cols).min(quad_tile),
            eval_cols: columns.take(block.evaluations.len()).collect(),
        }
    }

    /// Whether the degrees of freedom of a column tile are read before it is multiplied, into
    /// registers.
    pub(super) fn keeps_columns(&self, shape: Shape, program: &CellProgram, e: usize) -> bool {
        let rounds = (self.eval_rows + shape.work_items - 1) / shape.work_items;
        let outputs = |e: &Evaluation| e.outputs.len() as i64;
        let sums = rounds * self.block.evaluations.iter().map(outputs).sum::<i64>();
        let (evaluation, cols) = (&self.block.evaluations[e], self.eval_cols[e]);
        let values: i64 = program.inputs(evaluation).map(|g| g.components.unwrap_or(1)).sum(); // default: a scalar has one
        !shape.staged
            && sums + cols * values <= MAX_KEPT
            && cols * rounds * outputs(evaluation) <= MAX_UNROLLED
    }
}

/// Loops over the cells of a group inside the loop over tiles of a quadrature loop.
pub(super) struct CellsOfTiles {
    /// Around the evaluation.
    pub(super) zero: Loop,
    /// Around the products.
    pub(super) start: Loop,
}
