//! Parametric multi-level tiling (Kulkarni & Klöckner 2025, §4.2, Algorithm 4).

mod cells;
mod memory;
mod tiles;

use super::blocks::{Accumulation, accumulations};
use super::length;
use super::single_cell::make_atomic;
use super::staging::roll_gathers;
use crate::strategy::{Arguments, Stopped, Strategy, StrategyError, Work};
use crate::tiling::{TilingParameters, TilingSizes};
use purlin_forms::program::{Block, CellProgram, Evaluation, Products, Tiled};
use purlin_ir::AxisTag;
use purlin_primitives::ScheduleSteps;
use purlin_primitives::primitives::MoveInsns;
use purlin_primitives::schedule::Loop;
use purlin_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most sums and degrees of freedom of a column tile that a work-item keeps in registers together;
/// beyond, degrees of freedom are read when their column's turn comes. A work-item has 127
/// registers for doubles. With 79 in registers the 3-D P4 Helmholtz takes 3.48 ms, and 4.94 ms with
/// the degrees of freedom read late; with 141 the 3-D P4 elasticity takes 4.20 ms, and 4.18 ms read
/// late (H200, 2026-11-21).
pub const MAX_KEPT: i64 = 100;

/// Most multiplications of a column tile that are written out.
const MAX_UNROLLED: i64 = 2048;

/// Most work-items of a group on any device.
const MAX_GROUP: u64 = 1024;

/// Tiles the small matrix-vector products of an operator action and maps cells and rows onto a
/// group of `cells × work_items_per_cell` work-items, on `l.0` and `l.1`.
///
/// Every quadrature loop is tiled separately, with an element vector of its own; one with fewer
/// points than a tile has them all in one. Geometry and gathered degrees of freedom are shared.
/// Evaluations are in textual order.
///
/// # Errors
/// What [`CellProgram::tiled`] refuses, a parameter out of its bounds, or a step that was refused.
///
/// # Source
/// Kulkarni & Klöckner 2025, §4.2, equations (16) to (22), and Algorithm 4.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MultiLevelTiling(pub TilingParameters);

impl fmt::Display for MultiLevelTiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Arguments for MultiLevelTiling {
    const NAME: &'static str = "tiling";
    const SUMMARY: &'static str =
        "Several work-items a cell, tiles of the reference matrices in local memory.";
}

impl Strategy for MultiLevelTiling {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        let program = form.program()?;
        let parts = program.tiled(form.kernel())?;
        let shape = Shape::new(&self.0, &program, &parts, false)?;
        Ok(tile(on.schedule(), &program, &parts, &self.0, shape)?)
    }

    fn rescaled(&self, from: &TilingSizes, to: &TilingSizes) -> Self {
        Self(self.0.rescaled(from, to))
    }
}

/// As [`MultiLevelTiling`], and beyond the source: degrees of freedom of the cells of a group, and
/// what is added to the result, go through local memory, read and updated by consecutive
/// work-items.
///
/// Functions of a quadrature loop with the same matrices share their tiles, and one of
/// `eval_cols`. Rows of local arrays have an odd number of words.
///
/// # Errors
/// As [`MultiLevelTiling`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StagedTiling(pub TilingParameters);

impl fmt::Display for StagedTiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, staged", self.0)
    }
}

impl Arguments for StagedTiling {
    const NAME: &'static str = "staged_tiling";
    const SUMMARY: &'static str = "Tiles of the reference matrices, gather and scatter through local memory.";
}

impl Strategy for StagedTiling {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        let program = form.program()?;
        let parts = program.tiled(form.kernel())?;
        let shared = program.with_shared_columns();
        let shape = Shape::new(&self.0, &shared, &parts, true)?;
        let s = on.schedule();
        share_columns(s, &program)?;
        Ok(tile(s, &shared, &parts, &self.0, shape)?)
    }

    fn rescaled(&self, from: &TilingSizes, to: &TilingSizes) -> Self {
        Self(self.0.rescaled(from, to))
    }
}

/// What all quadrature loops share of the parameters.
#[derive(Clone, Copy)]
struct Shape {
    /// Cells of a group.
    cells: i64,
    /// Work-items of a cell.
    work_items: i64,
    /// Rows of a tile of the products.
    quad_rows: i64,
    /// Whether degrees of freedom and results go through local memory.
    staged: bool,
}

impl Shape {
    /// From parameters that suit the sizes of a program and any device.
    fn new(
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

fn tile(
    s: &mut Schedule,
    program: &CellProgram,
    parts_of: &Tiled<'_>,
    parameters: &TilingParameters,
    shape: Shape,
) -> Result<(), TransformError> {
    let components = if shape.staged { roll_gathers(s, program)? } else { Vec::new() };

    // each quadrature loop with its element vector, in tiles
    let accumulations = accumulations(s, program, parts_of.element)?;
    let mut columns = parameters.eval_cols.iter().copied().map(length);
    let blocks = program.blocks.iter().zip(&parts_of.products).zip(accumulations);
    let blocks = blocks.map(|((block, products), accumulation)| {
        BlockSizes::new(parameters, block, products, accumulation, &mut columns)
    });
    let mut tiled = Vec::new();
    for block in blocks.collect::<Vec<_>>() {
        tiled.push(tiles::matrices(s, shape, block)?);
    }

    // the cells of a group around each stage of each tile
    let parts = cells::gathered_parts(s, shape, program)?;
    let group = cells::group(s, shape, program, &parts, &tiled)?;
    let mut nests = Vec::new();
    for (tiles, cells) in tiled.into_iter().zip(&group.tiles) {
        nests.push(tiles::stages(s, tiles, cells)?);
    }

    // memory: degrees of freedom, factors, tiles of the matrices
    let moved = match shape.staged {
        true => memory::through_local(s, shape, program, &group, &nests, &components)?,
        false => memory::to_registers(s, shape, program, &parts, &nests)?,
    };
    memory::factors_to_local(s, shape, &nests)?;
    let commits: Vec<_> = nests.iter().flat_map(|n| n.commits()).collect();
    make_atomic(s, &commits)?;
    let mut axes = Axes { unrolled: moved.unrolled, cells: moved.cells, items: moved.items };
    group.on_axes(s, &mut axes);
    nests.iter().for_each(|nest| nest.on_axes(&mut axes));
    s.tag_all(&axes.unrolled, AxisTag::Unrolled)?;
    s.tag(&group.group, AxisTag::Group(0))?;
    s.tag_all(&axes.cells, AxisTag::Local(0))?;
    s.tag_all(&axes.items, AxisTag::Local(1))?;
    memory::prefetch(s, shape, program, &nests)
}

/// Where loops go.
#[derive(Default)]
struct Axes {
    /// Written out.
    unrolled: Vec<Loop>,
    /// On `l.0`.
    cells: Vec<Loop>,
    /// On `l.1`.
    items: Vec<Loop>,
}

/// A quadrature loop, and the tiles of its products.
struct BlockSizes<'p> {
    block: &'p Block,
    products: &'p Products,
    accumulation: Accumulation,
    quad_tile: i64,
    eval_rows: i64,
    quad_cols: i64,
    eval_cols: Vec<i64>,
}

impl<'p> BlockSizes<'p> {
    fn new(
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
    fn keeps_columns(&self, shape: Shape, program: &CellProgram, e: usize) -> bool {
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

/// Evaluates functions of the same matrices in one loop, in each quadrature loop: the steps to
/// [`CellProgram::with_shared_columns`].
fn share_columns(s: &mut Schedule, program: &CellProgram) -> Result<(), TransformError> {
    for block in &program.blocks {
        let mut firsts: Vec<&Evaluation> = Vec::new();
        for e in &block.evaluations {
            let Some(k) = firsts.iter().position(|first| first.shares_columns_with(e)) else {
                firsts.push(e);
                continue;
            };
            s.apply(MoveInsns::before(&e.inits, &firsts[k].dofs))?;
            if k + 1 != firsts.len() {
                // the loops of other functions stand between
                s.apply(MoveInsns::after([&e.dofs], &firsts[k].dofs))?;
            }
            s.fuse(&firsts[k].dofs, &e.dofs)?;
        }
    }
    Ok(())
}
