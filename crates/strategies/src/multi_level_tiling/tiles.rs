//! The tiles of a quadrature loop: of its points, of the matrices, and the nests of its stages.

use super::shape::{Axes, BlockSizes, CellsOfTiles, Shape};
use crate::staging::{Staged, stage_results};
use kingpost_forms::program::Evaluation;
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{ContractArray, MoveInsns, SinkAccumulation, SplitArrayAxis};
use kingpost_primitives::schedule::{Loop, Statement};
use kingpost_primitives::{Schedule, TransformError};

/// Rows of a tile: those of a work-item, one round after the other.
#[derive(Clone)]
pub(super) struct Rows {
    pub(super) round: Loop,
    pub(super) item: Loop,
}

/// Columns of a tile.
pub(super) struct Columns {
    pub(super) tile: Loop,
    pub(super) col: Loop,
}

/// A quadrature loop in tiles.
pub(super) struct Tiles<'p> {
    pub(super) sizes: BlockSizes<'p>,
    /// The loop over tiles of quadrature points.
    pub(super) quad_tile: Loop,
    /// The loop over tiles of rows of the evaluation, and the rows.
    pub(super) eval_row_tile: Loop,
    pub(super) eval: Rows,
    /// The columns of each evaluation.
    pub(super) columns: Vec<Columns>,
    /// The loop over tiles of rows of the products.
    pub(super) quad_row_tile: Loop,
    /// The loop over tiles of their columns.
    pub(super) quad_col_tile: Loop,
    zero: Rows,
    sum: Rows,
    scatter: Rows,
    pub(super) staged: Option<Staged>,
}

/// §4.2.1: the quadrature loop is tiled, and each tile evaluates, then multiplies, then scatters.
/// §4.2.2, equations (16) to (20): tiles of the matrices, and the rows of a tile by the work-items
/// of a cell.
pub(super) fn matrices<'p>(
    s: &mut Schedule,
    shape: Shape,
    sizes: BlockSizes<'p>,
) -> Result<Tiles<'p>, TransformError> {
    let (block, of) = (sizes.block, &sizes.accumulation);
    let [quad_tile, eval_point] = s.split_as(&block.quad, sizes.quad_tile, ["quad_tile", "eval_point"])?;
    s.apply(SinkAccumulation::new(&of.vector, &quad_tile))?;
    for factor in &block.factors {
        s.expand(factor, [&eval_point])?;
    }
    let quad_point = s.distribute_one(&eval_point, &sizes.products.rows, "quad_point")?;
    s.apply(MoveInsns::before([&of.zero], &quad_point))?;

    let items = shape.work_items;
    let [eval_row_tile, eval_row] = s.split_as(eval_point, sizes.eval_rows, ["eval_row_tile", "eval_row"])?;
    let eval = rows(s, eval_row, items, "eval")?;
    let mut columns = Vec::new();
    for (e, cols) in block.evaluations.iter().zip(&sizes.eval_cols) {
        let [tile, col] = s.split_as(&e.dofs, *cols, [&named("col_tile", e), &named("col", e)])?;
        columns.push(Columns { tile, col });
    }
    let [quad_col_tile, quad_col] = s.split_as(quad_point, sizes.quad_cols, ["quad_col_tile", "quad_col"])?;
    let [quad_row_tile, row] = s.split_as(&of.zero, shape.quad_rows, ["quad_row_tile", "zero_row"])?;
    let zero = rows(s, row, items, "zero")?;
    let [sum_row_tile, row] =
        s.split_as(&sizes.products.rows, shape.quad_rows, ["sum_row_tile", "sum_row"])?;
    let sum = rows(s, row, items, "sum")?;
    let [scatter_row_tile, row] =
        s.split_as(&of.scatter, shape.quad_rows, ["scatter_row_tile", "scatter_row"])?;
    let staged = match shape.staged {
        true => Some(stage_results(s, &of.commits, &row, None, "commit_row")?),
        false => None,
    };
    let scatter = rows(s, row, items, "scatter")?;
    s.interchange(&quad_col, &sum_row_tile)?;
    s.interchange(&quad_col_tile, &sum_row_tile)?;
    s.fuse(&quad_row_tile, sum_row_tile)?;
    s.fuse(&quad_row_tile, scatter_row_tile)?;
    s.apply(SplitArrayAxis { var: String::from(&of.vector), axis: 0, factor: shape.quad_rows })?;
    s.apply(ContractArray::new(&of.vector, 0))?;
    s.apply(SplitArrayAxis { var: String::from(&of.vector), axis: 0, factor: items })?;
    Ok(Tiles {
        sizes,
        quad_tile,
        eval_row_tile,
        eval,
        columns,
        quad_row_tile,
        quad_col_tile,
        zero,
        sum,
        scatter,
        staged,
    })
}

/// Rows of a tile, dealt out to the work-items of a cell.
fn rows(s: &mut Schedule, row: Loop, items: i64, stem: &str) -> Result<Rows, TransformError> {
    let [round, item] = s.split_as(row, items, [&format!("{stem}_round"), &format!("{stem}_item")])?;
    Ok(Rows { round, item })
}

pub(super) fn named(stem: &str, e: &Evaluation) -> String {
    format!("{stem}_{}", e.function)
}

/// A nest over the cells of a group and the rows of a tile.
pub(super) struct Nest {
    pub(super) cell: Loop,
    pub(super) rows: Rows,
}

/// The stages of a tile of quadrature points, each in a nest of its own.
pub(super) struct Stages<'p> {
    pub(super) tiles: Tiles<'p>,
    /// Zeroes the results of the evaluation.
    init: Nest,
    /// One for each evaluation, its column tiles outermost.
    pub(super) evaluations: Vec<Nest>,
    point: Nest,
    /// Zeroes the sums.
    start: Nest,
    sum: Nest,
    scatter: Nest,
    /// The loop over cells around the commits of what is staged.
    pub(super) commit_cells: Option<Loop>,
}

/// The evaluation stage: one nest for each function, its column tiles outermost. The quadrature
/// stage: zero, accumulate over column tiles, scatter.
pub(super) fn stages<'p>(
    s: &mut Schedule,
    tiles: Tiles<'p>,
    cells: &CellsOfTiles,
) -> Result<Stages<'p>, TransformError> {
    let block = tiles.sizes.block;
    if let ([_, others @ ..], [first, ..]) = (&block.evaluations[..], &tiles.columns[..])
        && !others.is_empty()
    {
        s.apply(MoveInsns::before(others.iter().flat_map(|e| &e.inits), &first.tile))?;
    }
    let init = Nest { cell: cells.zero.clone(), rows: tiles.eval.clone() };
    let (evaluations, point) = match block.evaluations.is_empty() {
        true => (Vec::new(), Nest { cell: init.cell.clone(), rows: init.rows.clone() }),
        false => evaluation(s, &tiles, &init)?,
    };
    let mut parts = vec![String::from(&tiles.quad_col_tile), String::from(&tiles.scatter.round)];
    parts.extend(tiles.staged.as_ref().map(|staged| String::from(&staged.rows)));
    let stems = &["cell_sum", "cell_scatter", "cell_commit"][..parts.len()];
    let mut split = s.distribute_as(&cells.start, parts, stems)?.into_iter();
    let mut next = || split.next().unwrap_or_else(|| cells.start.clone());
    let sum = Nest { cell: next(), rows: tiles.sum.clone() };
    let scatter = Nest { cell: next(), rows: tiles.scatter.clone() };
    let commit_cells = tiles.staged.as_ref().map(|_| next());
    s.interchange(&sum.cell, &tiles.quad_col_tile)?;
    let start = Nest { cell: cells.start.clone(), rows: tiles.zero.clone() };
    Ok(Stages { tiles, init, evaluations, point, start, sum, scatter, commit_cells })
}

fn evaluation(s: &mut Schedule, tiles: &Tiles<'_>, init: &Nest) -> Result<(Vec<Nest>, Nest), TransformError> {
    let block = tiles.sizes.block;
    let parts = || {
        let first = block.pointwise.iter().take(1).map(String::from);
        tiles.columns.iter().map(|c| String::from(&c.tile)).chain(first)
    };
    let mut distribute = |nest: &Loop, stem: &str| {
        let stems: Vec<String> = block.evaluations.iter().map(|e| named(stem, e)).collect();
        let point = format!("point_{stem}");
        let stems: Vec<&str> = stems.iter().map(String::as_str).chain([point.as_str()]).collect();
        s.distribute_as(nest, parts(), &stems)
    };
    let items = distribute(&init.rows.item, "item")?;
    let rounds = distribute(&init.rows.round, "round")?;
    let cells = distribute(&init.cell, "cell")?;
    let nests = cells.into_iter().zip(rounds.into_iter().zip(items));
    let mut nests: Vec<Nest> =
        nests.map(|(cell, (round, item))| Nest { cell, rows: Rows { round, item } }).collect();
    for (nest, columns) in nests.iter().zip(&tiles.columns) {
        for outer in [&nest.rows.item, &nest.rows.round, &nest.cell] {
            s.interchange(outer, &columns.tile)?;
        }
        // a column of all rounds after the other: what belongs to the column is read once
        for outer in [&nest.rows.item, &nest.rows.round] {
            s.interchange(outer, &columns.col)?;
        }
    }
    let point = nests.pop().unwrap_or_else(|| Nest { cell: init.cell.clone(), rows: init.rows.clone() });
    Ok((nests, point))
}

impl Stages<'_> {
    /// What adds to the result.
    pub(super) fn commits(&self) -> Vec<Statement> {
        match &self.tiles.staged {
            Some(staged) => vec![staged.commit.clone()],
            None => self.tiles.sizes.accumulation.commits.clone(),
        }
    }

    /// Cells of a group on `l.0`, rows of a tile on `l.1`, rounds written out.
    pub(super) fn on_axes(&self, axes: &mut Axes) {
        let mut nests: Vec<&Nest> = self.evaluations.iter().collect();
        nests.extend([&self.point, &self.init, &self.start, &self.sum, &self.scatter]);
        for nest in nests {
            for (list, iname) in [
                (&mut axes.cells, &nest.cell),
                (&mut axes.unrolled, &nest.rows.round),
                (&mut axes.items, &nest.rows.item),
            ] {
                if !list.contains(iname) {
                    list.push(iname.clone());
                }
            }
        }
    }
}
