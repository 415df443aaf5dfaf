//! The cells of a group: inside the loops over tiles, around each stage.

use super::super::blocks::{gathers_first, statements};
use super::shape::{Axes, CellsOfTiles, Shape};
use super::tiles::Tiles;
use kingpost_forms::program::CellProgram;
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};
use std::collections::BTreeMap;

/// Gathered degrees of freedom as they are kept, for each of [`CellProgram::gathers`]: one array a
/// component in registers, else one.
pub(super) fn gathered_parts(
    s: &mut Schedule,
    shape: Shape,
    program: &CellProgram,
) -> Result<Vec<Vec<Array>>, TransformError> {
    let mut parts: Vec<Vec<Array>> = program.gathers.iter().map(|g| vec![g.array.clone()]).collect();
    for k in program.evaluated() {
        if !shape.staged && program.gathers[k].components.is_some() {
            parts[k] = s.separate(&program.gathers[k].array, 1)?;
        }
    }
    Ok(parts)
}

/// Loops over the cells of a group.
pub(super) struct Group {
    /// The loop over groups.
    pub(super) group: Loop,
    /// Around what is the same for all quadrature loops.
    geometry: Loop,
    /// If staged, around each of [`CellProgram::gathers`].
    pub(super) gathers: Vec<Loop>,
    /// Of each quadrature loop.
    pub(super) tiles: Vec<CellsOfTiles>,
}

/// The cells of a group go inside the loops over tiles.
pub(super) fn group(
    s: &mut Schedule,
    shape: Shape,
    program: &CellProgram,
    parts: &[Vec<Array>],
    blocks: &[Tiles<'_>],
) -> Result<Group, TransformError> {
    let [group, first] = s.split_as(&program.cells.cell, shape.cells, ["cell_group", "cell_item"])?;
    let mut of_cell: Vec<&Array> = program.per_cell.iter().collect();
    for tiles in blocks {
        of_cell.push(&tiles.sizes.accumulation.vector);
        of_cell.extend(&tiles.sizes.block.factors);
    }
    of_cell.extend(program.evaluated().into_iter().flat_map(|k| &parts[k]));
    of_cell.extend(blocks.iter().filter_map(|tiles| tiles.staged.as_ref()).map(|staged| &staged.array));
    for array in of_cell {
        s.expand(array, [&first])?;
    }
    for tiles in blocks {
        for result in tiles.sizes.block.evaluations.iter().flat_map(|e| &e.outputs) {
            s.expand(result, [&first, &tiles.eval.round, &tiles.eval.item])?;
        }
    }
    let mut around = Group { group, geometry: first, gathers: Vec::new(), tiles: Vec::new() };
    if shape.staged {
        around.gathers_by_themselves(s, program)?;
    }
    // on curved cells nothing is the same at all points: then the first tiles have the loop
    let first = statements(s.kernel(), around.geometry.name()).into_iter().next();
    let is_bare = blocks.first().is_some_and(|b| first.as_deref() == Some(b.quad_tile.name()));
    let later = &blocks[usize::from(is_bare)..];
    let mut zeroes: Vec<Loop> = is_bare.then(|| around.geometry.clone()).into_iter().collect();
    if !later.is_empty() {
        let stems = vec!["cell_zero"; later.len()];
        zeroes.extend(s.distribute_as(&around.geometry, later.iter().map(|b| &b.quad_tile), &stems)?);
    }
    for (tiles, zero) in blocks.iter().zip(zeroes) {
        s.interchange(&zero, &tiles.quad_tile)?;
        let start = s.distribute_one(&zero, &tiles.quad_row_tile, "cell_start")?;
        s.interchange(&zero, &tiles.eval_row_tile)?;
        s.interchange(&start, &tiles.quad_row_tile)?;
        around.tiles.push(CellsOfTiles { zero, start });
    }
    Ok(around)
}

impl Group {
    /// The gather of each function in a loop over cells of its own, before the geometry.
    fn gathers_by_themselves(
        &mut self,
        s: &mut Schedule,
        program: &CellProgram,
    ) -> Result<(), TransformError> {
        let order = gathers_first(s, &self.geometry, program)?;
        let names = |k: &usize| String::from(&program.gathers[*k].dofs);
        let Some(first) = order.gathers.first() else { return Ok(()) };
        let cells = s.fresh(&format!("cells_{}", names(first)));
        let mut loops = vec![s.rename_loop(&self.geometry, cells)?];
        let parts = order.gathers.iter().map(names).chain([order.first]).skip(1);
        let stems: Vec<String> = order.gathers[1..].iter().map(|k| format!("cells_{}", names(k))).collect();
        let stems: Vec<&str> = stems.iter().map(String::as_str).chain(["cell_geometry"]).collect();
        loops.extend(s.distribute_as(&loops[0], parts, &stems)?);
        self.geometry = loops.pop().unwrap_or_else(|| self.geometry.clone());
        let nests: BTreeMap<usize, Loop> = order.gathers.into_iter().zip(loops).collect();
        let nest = |k: usize| s.expected(nests.get(&k).cloned(), "loop over cells of a gather");
        self.gathers = (0..program.gathers.len()).map(nest).collect::<Result<_, _>>()?;
        Ok(())
    }

    pub(super) fn on_axes(&self, s: &Schedule, axes: &mut Axes) {
        // on curved cells it may have held gathers alone, which are part of the prefetches by now
        if s.kernel().iname(self.geometry.name()).is_some() {
            axes.cells.push(self.geometry.clone());
        }
    }
}
