//! One cell at a time, the columns of its matrix in the lanes of vectors.

use super::blocks::statements;
use super::length;
use super::single_cell::{GroupOfCells, map_cells};
use crate::strategy::{Arguments, Stopped, Strategy, StrategyError, Work};
use kingpost_forms::program::{CellProgram, ElementResult, Products};
use kingpost_ir::{Atom, AxisTag, Expr, Kernel};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{PadInames, SplitArrayAxis, Tag, TransposeArrayAxes};
use kingpost_primitives::schedule::Loop;
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Runs the columns of the matrices of cells in the lanes of vectors, one cell at a time.
///
/// Rows of the matrix and of the tables get zeros at their ends, so that every vector is full and
/// starts at a multiple of its length. The columns of a component of a vector-valued function lie side
/// by side.
///
/// # Rewrite
/// ```text
/// for j in 0..10                       =>   for j_o in 0..3
///   A[i, j] += phi[q, j]*row                  for j_i in 0..4 {vector}
///                                               A[i, j_o, j_i] += phi[q, 4*j_o + j_i]*row
/// ```
/// with the extents `[3, 4]` instead of 10 of `A`'s rows, and 12 of `phi`'s.
///
/// # Errors
/// A form without such a matrix; a step that was refused: a number of lanes that no vector has.
///
/// # Source
/// Luporini et al. 2017, §6.3, and Luporini et al. 2015: padding and alignment of the innermost loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopLanes {
    /// Lanes of a vector: 2, 4, 8, …
    pub lanes: u64,
}

impl fmt::Display for LoopLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loops in lanes, {} columns a vector", self.lanes)
    }
}

impl Arguments for LoopLanes {
    const NAME: &'static str = "loop_lanes";
    const SUMMARY: &'static str = "One cell at a time, the columns of its matrix in the lanes of vectors.";
}

impl Strategy for LoopLanes {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        let program = form.program()?;
        let is_matrix = |result: &&ElementResult| result.columns.is_some();
        if program.results.iter().find(is_matrix).is_none() {
            return Err(StrategyError::Parameter {
                symbol: "the number of element matrices".into(),
                found: 0,
                needed: "at least 1; a linear form has vectors, whose cells run in lanes".into(),
            }
            .into());
        }
        let s = on.schedule();
        let mut lanes = Vec::new();
        for result in program.results.iter().filter(is_matrix) {
            lanes.extend(tiles_of_columns(s, &program, result, length(self.lanes))?);
        }
        let cells = GroupOfCells { cells: 1, constant_tables: true };
        map_cells(s, form.kernel(), &program.cells, cells)?;
        // lanes share no array but those of their cell, which are private now
        Ok(lanes.iter().try_for_each(|lane| s.make(Tag::new(lane.name(), AxisTag::Vector)))?)
    }
}

/// Tiles the columns of a matrix; returns the loops over the columns of a tile.
fn tiles_of_columns(
    s: &mut Schedule,
    program: &CellProgram,
    result: &ElementResult,
    lanes: i64,
) -> Result<Vec<Loop>, TransformError> {
    let array = result.array.name();
    let products =
        || program.blocks.iter().flat_map(|b| &b.products).filter(|p| adds_to(s.kernel(), p, array));
    let loops: Vec<String> = products().filter_map(|p| Some(p.columns.as_ref()?.name().to_owned())).collect();
    let Some(first) = loops.first().cloned() else { return Ok(Vec::new()) };
    let stride = products().next().and_then(|p| stride(s.kernel(), p, &first));
    let components = s.expected(stride, "column of a product")?;
    let Some(mut zero) = inner_loop(s.kernel(), result.zero.name()) else { return Ok(Vec::new()) };
    if components > 1 {
        // the loop first: its bounds decide the quotients of the new indices
        let [node, component] = s.split(&zero, components)?;
        s.interchange(&node, &component)?;
        s.make(SplitArrayAxis::new(array, 1, components))?;
        s.make(TransposeArrayAxes::new(array, [0, 2, 1]))?;
        zero = node.name().to_owned();
    }
    let mut all = vec![zero];
    let count = s.expected(extent(s.kernel(), &first), "constant number of columns")?;
    all.extend(loops.into_iter().filter(|l| extent(s.kernel(), l) == Some(count)));
    let padded = count.unsigned_abs().next_multiple_of(lanes.unsigned_abs().max(1)) as i64;
    if padded > count {
        s.make(PadInames::new(all.iter().map(String::as_str), padded))?;
    }
    let split = all.iter().map(|columns| s.split(columns, lanes).map(|[_, lane]| lane));
    let split = split.collect::<Result<Vec<_>, _>>()?;
    // an axis that the lanes alone index: each has elements of its own
    let last = if components > 1 { 2 } else { 1 };
    s.make(SplitArrayAxis::new(array, last, lanes))?;
    Ok(split)
}

/// Whether products are added to an array.
fn adds_to(kernel: &Kernel, products: &Products, array: &str) -> bool {
    let written = products.insns.first().and_then(|name| kernel.insn(name.name()));
    written.is_some_and(|id| kernel.vars[kernel.insns[id].lhs.var].name == array)
}

/// How far the columns of consecutive iterations are apart.
fn stride(kernel: &Kernel, products: &Products, columns: &str) -> Option<i64> {
    let insn = products.insns.first().and_then(|name| kernel.insn(name.name()));
    let index = insn.and_then(|id| kernel.insns[id].lhs.index.get(1)).and_then(Expr::as_affine);
    let is_columns = |atom: &Atom| matches!(atom, Atom::Iname(i) if kernel.inames[*i].name == columns);
    index?.terms().iter().find(|(atom, _)| is_columns(atom)).map(|(_, c)| *c)
}

/// The only statement of a loop, if it is a loop.
fn inner_loop(kernel: &Kernel, outer: &str) -> Option<String> {
    let [only] = <[String; 1]>::try_from(statements(kernel, outer)).ok()?;
    kernel.iname(&only).is_some().then_some(only)
}

/// The constant end of a range.
fn extent(kernel: &Kernel, name: &str) -> Option<i64> {
    let iname = kernel.iname(name)?;
    kernel.inames[iname].domain.as_range(iname)?.1.as_constant()
}
