//! Parametric multi-level tiling (Kulkarni & Klöckner 2025, §4.2, Algorithm 4).

mod cells;
mod memory;
mod tiles;

use super::blocks::{Accumulation, accumulations};
use super::single_cell::make_atomic;
use super::staging::roll_gathers;
use super::{StrategyError, applied};
use crate::program::{Block, CellProgram, ElementResult, Evaluation, Products, Tiled};
use purlin_ir::{AxisTag, Kernel};
use purlin_transforms::primitives::MoveInsns;
use purlin_transforms::schedule::Loop;
use purlin_transforms::{Recipe, Schedule, TransformError};

/// Arguments of [`multi_level_tiling`], with the document's symbols.
///
/// Sizes of tiles are those of every quadrature loop; one with fewer points than a tile has them
/// all in one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MultiLevelTiling {
    /// Cells of a work-group (*N*_c), on `l.0`.
    pub cells: i64,
    /// Work-items that share a cell (*N*_WI), on `l.1`.
    pub work_items_per_cell: i64,
    /// Quadrature points of a tile (*T*^Q).
    pub quad_tile: i64,
    /// Rows, which are quadrature points, of a tile of the evaluation stage (*T*_e^r).
    pub eval_rows: i64,
    /// Columns, which are degrees of freedom, of a tile of the evaluation stage (*T*_e^c), one for
    /// each evaluation of a function in textual order; if `staged`, one for all functions of a
    /// quadrature loop with the same matrices.
    pub eval_cols: Vec<i64>,
    /// Rows, which are test functions, of a tile of the quadrature stage (*T*_q^r).
    pub quad_rows: i64,
    /// Columns, which are quadrature points, of a tile of the quadrature stage (*T*_q^c).
    pub quad_cols: i64,
    /// Beyond the document: degrees of freedom of the cells of a group, and what is added to the
    /// result, go through local memory, read and updated by consecutive work-items; functions with
    /// the same matrices share their tiles (and one of `eval_cols`); rows of local arrays have an
    /// odd number of words.
    pub staged: bool,
}

/// Most sums and degrees of freedom of a column tile that a work-item keeps in registers together;
/// beyond, degrees of freedom are read when their column's turn comes. A work-item has 127
/// registers for doubles. With 79 in registers the 3-D P4 Helmholtz takes 3.48 ms, and 4.94 ms with
/// the degrees of freedom read late; with 141 the 3-D P4 elasticity takes 4.20 ms, and 4.18 ms read
/// late (H200, 2026-11-21).
pub const MAX_KEPT: i64 = 100;

/// Most multiplications of a column tile that are written out.
const MAX_UNROLLED: i64 = 2048;

/// Tiles the small matrix-vector products of an operator action and maps cells and rows onto a
/// group of `cells × work_items_per_cell` work-items.
///
/// Every quadrature loop is tiled by itself, with an element vector of its own; geometry and
/// gathered degrees of freedom are shared. Returns the kernel and the recipe that made it.
///
/// # Errors
/// What [`CellProgram::tiled`] refuses, a parameter out of its bounds, or a step that was refused.
///
/// # Source
/// Kulkarni & Klöckner 2025, §4.2, equations (16) to (22), and Algorithm 4.
pub fn multi_level_tiling(
    kernel: &Kernel,
    program: &CellProgram,
    args: &MultiLevelTiling,
) -> Result<(Kernel, Recipe), StrategyError> {
    let parts = program.tiled(kernel)?;
    let shared = args.staged.then(|| program.with_shared_columns());
    args.check(shared.as_ref().unwrap_or(program), parts.element)?;
    applied(kernel, |s| {
        if args.staged {
            share_columns(s, program)?;
        }
        tile(s, shared.as_ref().unwrap_or(program), &parts, args)
    })
}

fn tile(
    s: &mut Schedule,
    program: &CellProgram,
    parts_of: &Tiled<'_>,
    args: &MultiLevelTiling,
) -> Result<(), TransformError> {
    let components = if args.staged { roll_gathers(s, program)? } else { Vec::new() };

    // each quadrature loop with its element vector, in tiles
    let accumulations = accumulations(s, program, parts_of.element)?;
    let mut columns = args.eval_cols.iter().copied();
    let blocks = program.blocks.iter().zip(&parts_of.products).zip(accumulations);
    let blocks = blocks.map(|((block, products), accumulation)| {
        BlockSizes::new(args, block, products, accumulation, &mut columns)
    });
    let mut tiled = Vec::new();
    for block in blocks.collect::<Vec<_>>() {
        tiled.push(tiles::matrices(s, args, block)?);
    }

    // the cells of a group around each stage of each tile
    let parts = cells::gathered_parts(s, args, program)?;
    let group = cells::group(s, args, program, &parts, &tiled)?;
    let mut nests = Vec::new();
    for (tiles, cells) in tiled.into_iter().zip(&group.tiles) {
        nests.push(tiles::stages(s, tiles, cells)?);
    }

    // memory: degrees of freedom, factors, tiles of the matrices
    let moved = match args.staged {
        true => memory::through_local(s, args, program, &group, &nests, &components)?,
        false => memory::to_registers(s, args, program, &parts, &nests)?,
    };
    memory::factors_to_local(s, args, &nests)?;
    let commits: Vec<_> = nests.iter().flat_map(|n| n.commits()).collect();
    make_atomic(s, &commits)?;
    let mut axes = Axes { unrolled: moved.unrolled, cells: moved.cells, items: moved.items };
    group.on_axes(s, &mut axes);
    nests.iter().for_each(|nest| nest.on_axes(&mut axes));
    s.tag_all(&axes.unrolled, AxisTag::Unrolled)?;
    s.tag(&group.group, AxisTag::Group(0))?;
    s.tag_all(&axes.cells, AxisTag::Local(0))?;
    s.tag_all(&axes.items, AxisTag::Local(1))?;
    memory::prefetch(s, args, program, &nests)
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
        args: &MultiLevelTiling,
        block: &'p Block,
        products: &'p Products,
        accumulation: Accumulation,
        columns: &mut impl Iterator<Item = i64>,
    ) -> Self {
        let quad_tile = args.quad_tile.min(block.points);
        Self {
            block,
            products,
            accumulation,
            quad_tile,
            eval_rows: args.eval_rows.min(quad_tile),
            quad_cols: args.quad_cols.min(quad_tile),
            eval_cols: columns.take(block.evaluations.len()).collect(),
        }
    }

    /// Whether the degrees of freedom of a column tile are read before it is multiplied, into
    /// registers.
    fn keeps_columns(&self, args: &MultiLevelTiling, program: &CellProgram, e: usize) -> bool {
        let rounds = (self.eval_rows + args.work_items_per_cell - 1) / args.work_items_per_cell;
        let outputs = |e: &Evaluation| e.outputs.len() as i64;
        let sums = rounds * self.block.evaluations.iter().map(outputs).sum::<i64>();
        let (evaluation, cols) = (&self.block.evaluations[e], self.eval_cols[e]);
        let values: i64 = program.inputs(evaluation).map(|g| g.components.unwrap_or(1)).sum();
        !args.staged
            && sums + cols * values <= MAX_KEPT
            && cols * rounds * outputs(evaluation) <= MAX_UNROLLED
    }
}

impl MultiLevelTiling {
    /// Whether the parameters suit the sizes.
    fn check(&self, program: &CellProgram, element: &ElementResult) -> Result<(), StrategyError> {
        let within = |what: &str, found: i64, most: i64, of: &str| {
            if (1..=most).contains(&found) {
                return Ok(());
            }
            Err(StrategyError::Parameter { symbol: what.into(), found, needed: format!("1 to {most}, {of}") })
        };
        let group = "the work-items of a group on any device";
        within("the number of cells of a group, N_c,", self.cells, 1024, group)?;
        within("the number of work-items of a cell, N_WI,", self.work_items_per_cell, 1024, group)?;
        within("the size of a group, N_c N_WI,", self.cells * self.work_items_per_cell, 1024, group)?;
        let points = match program.blocks.len() {
            1 => "the number of quadrature points Q",
            _ => "the largest number of quadrature points Q",
        };
        let most = program.blocks.iter().map(|b| b.points).max().unwrap_or(0);
        within("the quadrature tile T^Q", self.quad_tile, most, points)?;
        let tile = "the quadrature tile T^Q";
        within("the row tile T_e^r of the evaluation", self.eval_rows, self.quad_tile, tile)?;
        within("the column tile T_q^c of the quadrature", self.quad_cols, self.quad_tile, tile)?;
        let rows = "the number of test functions n_W";
        within("the row tile T_q^r of the quadrature", self.quad_rows, element.count, rows)?;
        let evaluations: Vec<&Evaluation> = program.blocks.iter().flat_map(|b| &b.evaluations).collect();
        if self.eval_cols.len() != evaluations.len() {
            return Err(StrategyError::Parameter {
                symbol: "the number of column tiles T_e^c".into(),
                found: self.eval_cols.len() as i64,
                needed: format!("{}, one for each function that is evaluated", evaluations.len()),
            });
        }
        for (cols, evaluation) in self.eval_cols.iter().zip(evaluations) {
            let what = format!("the column tile T_e^c of `{}`", evaluation.function);
            within(&what, *cols, evaluation.count, "the number of its degrees of freedom in a cell")?;
        }
        Ok(())
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
