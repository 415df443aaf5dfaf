//! The sizes that the multi-level tiling (Kulkarni & Klöckner 2025) depends on, from the stages of
//! a kernel.

use super::sizes::{SpaceSizes, TilingSizes};
use kingpost_forms::CellKernel;
use kingpost_forms::program::{CellProgram, Evaluation, NotAnAction, Tiled};
use std::collections::BTreeSet;

/// Reads the sizes of the small matrix-vector products of an operator action.
///
/// Of several quadrature loops the sizes are those of one with the most points that does the work
/// of all.
///
/// # Errors
/// A kernel that is not made of the stages of Algorithm 2.
///
/// # Source
/// Kulkarni & Klöckner 2025, Table 2.
pub fn tiling_sizes(form: &dyn CellKernel) -> Result<TilingSizes, NotAnAction> {
    let program = form.program()?;
    Ok(TilingSizes::of(&program, &program.tiled(form.kernel())?))
}

/// The sizes of a staged tiling: functions that are evaluated with the same matrices are one.
///
/// # Errors
/// As [`tiling_sizes`].
pub fn staged_tiling_sizes(form: &dyn CellKernel) -> Result<TilingSizes, NotAnAction> {
    let program = form.program()?;
    Ok(TilingSizes::of(&program.with_shared_columns(), &program.tiled(form.kernel())?))
}

impl TilingSizes {
    /// The sizes of a cell program.
    pub(crate) fn of(program: &CellProgram, tiled: &Tiled<'_>) -> Self {
        let (blocks, element) = (&program.blocks, tiled.element);
        let tables: BTreeSet<&str> =
            tiled.products.iter().flat_map(|p| &p.tables).map(|t| t.name()).collect();
        Self {
            // default: no rule has no points
            quadrature_points: blocks.iter().map(|b| b.points.unsigned_abs()).max().unwrap_or(0),
            word_bytes: element.ty.bytes(),
            trial: blocks.iter().flat_map(|b| &b.evaluations).map(|e| trial(program, e)).collect(),
            test: SpaceSizes {
                name: element.array.name().to_owned(),
                nodes: element.count.unsigned_abs(),
                components: element.components.unsigned_abs(),
                derivatives: tiled.products.iter().map(|p| p.insns.len() as u64).sum(),
                matrices: tables.len() as u64,
            },
        }
    }
}

fn trial(program: &CellProgram, evaluation: &Evaluation) -> SpaceSizes {
    // default: of a scalar there is one
    let components = program.inputs(evaluation).map(|g| g.components.unwrap_or(1).unsigned_abs());
    SpaceSizes {
        name: evaluation.function.clone(),
        nodes: evaluation.count.unsigned_abs(),
        components: components.sum(),
        derivatives: evaluation.outputs.len() as u64,
        matrices: evaluation.tables.len() as u64,
    }
}
