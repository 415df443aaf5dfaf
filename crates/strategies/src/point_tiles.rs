//! One cell a work-item, with several quadrature points at once.

use super::blocks::statements;
use super::length;
use super::point_loops::{Nest, PointLoop};
use super::single_cell::{GroupOfCells, map_cells};
use crate::strategy::{Arguments, Question, Stopped, Strategy, StrategyError, Work};
use kingpost_ir::AxisTag;
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{MirrorTriangle, PeelIname};
use kingpost_primitives::schedule::Loop;
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum of the points of a tile: the latency of a fused multiply-add (4 cycles) times the number
/// of them that start in a cycle (2), on the processors of Intel, AMD and Arm.
const MAX_POINTS: i64 = 8;

/// Maps every cell to one work-item, which evaluates and sums over a tile of quadrature points in
/// one loop over degrees of freedom.
///
/// The sum of one point is a chain of dependent additions, whose latency bounds forms with few sums
/// a point; those of several points run concurrently. A degree of freedom is read once for all
/// points of a tile, and an entry of the element vector is read and written once. The 3-D P4 mass
/// action of 750 cells takes 263 µs a point at a time and 118 µs with tiles of 8 (Zen 4, AVX-512,
/// GCC 12, 2026-11-22).
///
/// # Rewrite
/// ```text
/// for q in 0..Q                 =>   for q_tile in 0..ceil(Q/T)
///   u_q = 0                            for p in 0..T: u_q[p] = 0
///   for j: u_q += phi[q, j]*u[j]       for j
///   e = w[q]*u_q                         for p in 0..T: u_q[p] += phi[T*q_tile + p, j]*u[j]
///   for i: y[i] += phi[q, i]*e         for p in 0..T: e[p] = w[T*q_tile + p]*u_q[p]
///                                      for i
///                                        for p in 0..T: y[i] += phi[T*q_tile + p, i]*e[p]
/// ```
/// Loops over `p` are unrolled; a last tile of fewer points stands apart. Of a matrix that is
/// symmetric, one triangle is summed.
///
/// Of a kernel that steps have made something else of, such as
/// [`FewestOperations`](super::FewestOperations), loops are tiled in which functions are evaluated
/// and all else is instructions, sums, and rows of sums.
///
/// # Errors
/// A number of sums below 1, or a step that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointTiles {
    /// Cells, and so work-items, of a group.
    pub cells: u64,
    /// Maximum of the sums of a work-item in one loop over degrees of freedom; those of one
    /// quadrature point are never parted.
    pub sums: u64,
}

impl fmt::Display for PointTiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tiles of points, {} cells a group, {} sums, constant tables", self.cells, self.sums)
    }
}

impl Arguments for PointTiles {
    const NAME: &'static str = "point_tiles";
    const SUMMARY: &'static str = "One cell a work-item, several quadrature points in one loop.";
}

impl Strategy for PointTiles {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        if self.sums < 1 {
            return Err(StrategyError::Parameter {
                symbol: "the number of sums".into(),
                found: self.sums,
                needed: "at least 1".into(),
            }
            .into());
        }
        let form = on.form();
        let s = on.schedule();
        let (cells, loops) = match form.program() {
            Ok(program) => {
                for result in program.results.iter().filter(|r| r.columns.is_some()) {
                    s.attempt(MirrorTriangle::new(result.array.name()))?; // refused where not symmetric
                }
                let loops: Vec<PointLoop> = program.blocks.iter().map(PointLoop::of_block).collect();
                (program.cells.clone(), loops)
            }
            Err(refused) => {
                let cells = form.cell_loop().map_err(|_| refused)?.into_owned();
                let loops = PointLoop::of_kernel(form.kernel(), &cells);
                (cells, loops)
            }
        };
        for of in &loops {
            let points = points_of_tile(of, length(self.sums));
            if points > 1 {
                tile(s, of, points)?;
            }
        }
        let group = GroupOfCells { cells: self.cells, constant_tables: true };
        Ok(map_cells(s, form.kernel(), &cells, group)?)
    }

    /// Eight cells are a vector of a processor, 32 a sub-group of a card.
    fn candidates(question: &Question<'_>) -> Vec<Self> {
        let tiles: &[(u64, u64)] =
            if question.form.program().is_ok() { &[(8, 16), (8, 8), (32, 16), (32, 8)] } else { &[] };
        tiles.iter().map(|(cells, sums)| Self { cells: *cells, sums: *sums }).collect()
    }
}

/// Points whose sums are made in one loop: as many as have no more than `sums`, evened out over the
/// tiles.
fn points_of_tile(of: &PointLoop, sums: i64) -> i64 {
    let limit = (sums / (of.sums.max(1) as i64)).clamp(1, MAX_POINTS);
    let ceil_div = |a: i64, b: i64| (a + b - 1) / b;
    let points = of.points.max(1);
    ceil_div(points, ceil_div(points, limit))
}

/// Of a matrix: what is the same in a row for all points of the tile, then the columns, each with
/// the sum over the points. Returns the loop over the points inside the columns.
fn tile_columns(s: &mut Schedule, nest: &Nest, points: &Loop) -> Result<Option<Loop>, TransformError> {
    let Some(columns) = &nest.columns else { return Ok(None) };
    if nest.partials.is_empty() {
        s.interchange(points, columns)?;
        return Ok(None);
    }
    for partial in &nest.partials {
        s.expand(partial, [points])?;
    }
    let own = s.distribute_one(points, columns, "point_column")?;
    s.interchange(&own, columns)?;
    Ok(Some(own))
}

fn tile(s: &mut Schedule, of: &PointLoop, points: i64) -> Result<(), TransformError> {
    let [tiles, first] = s.split_as(&of.quad, points, ["quad_tile", "point_init"])?;
    for array in &of.of_point {
        s.expand(array, [&first])?;
    }
    // a part for each loop over degrees of freedom, and for what stands between two of them
    let body = statements(s.kernel(), first.name());
    let nest = |k: usize| of.nests.iter().find(|nest| nest.rows.name() == body[k]);
    let is_sum = |k: usize| nest(k).is_some();
    let starts: Vec<usize> = (0..body.len()).filter(|k| *k == 0 || is_sum(*k) || is_sum(*k - 1)).collect();
    let stems: Vec<String> = starts.iter().skip(1).map(|k| format!("point_{}", body[*k])).collect();
    let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
    let parts = starts.iter().skip(1).map(|k| &body[*k]);
    let mut loops = vec![first.clone()];
    loops.extend(s.distribute_as(&first, parts, &stems)?);
    let mut of_columns = Vec::new();
    for (points, start) in loops.iter().zip(&starts) {
        if let Some(nest) = nest(*start) {
            s.interchange(points, &nest.rows)?;
            of_columns.extend(tile_columns(s, nest, points)?);
        }
    }
    s.tag_all(&loops, AxisTag::Unrolled)?;
    s.tag_all(&of_columns, AxisTag::Unrolled)?;
    if of.points % points != 0 {
        s.make(PeelIname::last(&tiles, 1))?;
    }
    Ok(())
}
