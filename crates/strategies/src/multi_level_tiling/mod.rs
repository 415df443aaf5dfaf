//! Parametric multi-level tiling (Kulkarni & Klöckner 2025, §4.2, Algorithm 4).

mod cells;
mod memory;
mod shape;
mod tiles;

pub use shape::MAX_KEPT;

use super::blocks::accumulations;
use super::length;
use super::single_cell::make_atomic;
use super::staging::roll_gathers;
use crate::strategy::{Arguments, Stopped, Strategy, Work};
use crate::tiling::{TilingParameters, TilingSizes};
use kingpost_forms::program::{CellProgram, Evaluation, Tiled};
use kingpost_ir::AxisTag;
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::MoveInsns;
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use shape::{Axes, BlockSizes, Shape};
use std::fmt;

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
