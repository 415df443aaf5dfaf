//! Where a tile's operands are: degrees of freedom, factors, tiles of the matrices.

use super::cells::Group;
use super::shape::{Axes, Shape};
use super::tiles::{Stages, named};
use crate::staging::{CellNest, flat, to_local};
use kingpost_forms::program::CellProgram;
use kingpost_ir::{AddressSpace, Kernel};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{
    AliasStorage, AssignToRule, ExpandRule, PrefetchArray, SetAddressSpace,
};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};

/// Degrees of freedom of all cells of the group to local memory, and results from there.
pub(super) fn through_local(
    s: &mut Schedule,
    shape: Shape,
    program: &CellProgram,
    group: &Group,
    blocks: &[Stages<'_>],
    components: &[Option<Loop>],
) -> Result<Axes, TransformError> {
    let items = [shape.cells, shape.work_items];
    let mut flats = Vec::new();
    for k in program.evaluated() {
        let g = &program.gathers[k];
        let nest = CellNest {
            array: &g.array,
            cells: &group.gathers[k],
            rows: &g.dofs,
            component: components[k].as_ref(),
            shape: [g.count, g.insns.len() as i64],
        };
        flats.extend(flat(s, &nest, g.dofs.name(), items, &[])?);
    }
    for stages in blocks {
        if let (Some(staged), Some(cells)) = (&stages.tiles.staged, &stages.commit_cells) {
            let nest = staged.nest(cells, shape.quad_rows);
            flats.extend(flat(s, &nest, "commit", items, &[])?);
        }
    }
    let mut axes = Axes::default();
    for flat in flats {
        if flat.has_few_rounds(shape.cells, items) {
            axes.unrolled.push(flat.round);
        }
        let mut items = flat.items.into_iter();
        axes.cells.extend(items.next());
        axes.items.extend(items);
    }
    Ok(axes)
}

/// §4.2.2: degrees of freedom of a column tile to registers.
pub(super) fn to_registers(
    s: &mut Schedule,
    shape: Shape,
    program: &CellProgram,
    parts: &[Vec<Array>],
    blocks: &[Stages<'_>],
) -> Result<Axes, TransformError> {
    let mut axes = Axes::default();
    let mut kept: Vec<(&Stages<'_>, usize, Vec<Array>)> = Vec::new();
    for stages in blocks {
        let sizes = &stages.tiles.sizes;
        for (e, evaluation) in sizes.block.evaluations.iter().enumerate() {
            if !sizes.keeps_columns(shape, program, e) {
                continue;
            }
            let (mut tiles, cell) = (Vec::new(), &stages.evaluations[e].cell);
            for part in evaluation.inputs.iter().flat_map(|k| &parts[*k]) {
                if !is_read_in(s.kernel(), part, cell) {
                    continue; // a component that the form does not have
                }
                let fetch = PrefetchArray::new(part, cell, AddressSpace::Private);
                let (tile, loops) = s.prefetch_as(fetch, &format!("{part}_tile"))?;
                // one column alone has no loop that reads it
                axes.unrolled.extend(loops.into_iter().filter(|_| sizes.eval_cols[e] > 1));
                tiles.push(tile);
            }
            kept.push((stages, e, tiles));
        }
    }
    for part in program.evaluated().into_iter().flat_map(|k| &parts[k]) {
        s.apply(AssignToRule::new(part))?;
        s.apply(ExpandRule::new(part))?;
    }
    for (stages, e, tiles) in kept {
        let (cell, col) = (&stages.evaluations[e].cell, &stages.tiles.columns[e].col);
        for tile in &tiles {
            s.expand(tile, [cell])?;
        }
        // the gather comes before the barrier, so that both fetches are under way at a time
        let evaluation = &stages.tiles.sizes.block.evaluations[e];
        axes.cells.push(s.distribute_one(cell, col, &named("eval_cell", evaluation))?);
        if stages.tiles.sizes.eval_cols[e] > 1 {
            // registers have no addresses: a column of a run-time number would send the tile to
            // memory
            axes.unrolled.push(col.clone());
        }
    }
    Ok(axes)
}

/// Whether an instruction inside a loop reads an array.
fn is_read_in(kernel: &Kernel, array: &Array, iname: &Loop) -> bool {
    let (var, iname) = (kernel.var(array.name()), kernel.iname(iname.name()));
    kernel.schedule().iter().any(|(insn, loops)| {
        iname.is_some_and(|l| loops.contains(&l))
            && kernel.insns[*insn].reads().iter().any(|a| Some(a.var) == var)
    })
}

/// The factors of the products, which all work-items of a cell read.
pub(super) fn factors_to_local(
    s: &mut Schedule,
    shape: Shape,
    blocks: &[Stages<'_>],
) -> Result<(), TransformError> {
    for sizes in blocks.iter().map(|stages| &stages.tiles.sizes) {
        for factor in &sizes.block.factors {
            match shape.staged {
                true => to_local(s, factor, sizes.quad_tile, 1)?,
                false => s.apply(SetAddressSpace::new(factor, AddressSpace::Local)).map(drop)?,
            }
        }
    }
    Ok(())
}

/// §4.2.2: tiles of the matrices to local memory, all in the same memory (equation (22)). After
/// the tags: the placement of every prefetch is that of the result, and no step of placing follows.
pub(super) fn prefetch(
    s: &mut Schedule,
    shape: Shape,
    program: &CellProgram,
    blocks: &[Stages<'_>],
) -> Result<(), TransformError> {
    let mut buffers: Vec<Vec<Array>> = Vec::new();
    for stages in blocks {
        let (tiles, sizes) = (&stages.tiles, &stages.tiles.sizes);
        let block = sizes.block;
        let evaluations = block.evaluations.iter().zip(&tiles.columns).zip(&sizes.eval_cols);
        let nests = evaluations.map(|((e, columns), cols)| {
            (&columns.tile, &e.tables, e.function.as_str(), sizes.eval_rows, *cols)
        });
        let products =
            (&tiles.quad_col_tile, &sizes.products.tables, "quad", sizes.quad_cols, shape.quad_rows);
        for (at, tables, name, points, others) in nests.chain([products]) {
            for (k, table) in tables.iter().enumerate() {
                let mut fetch = PrefetchArray::new(table, at, AddressSpace::Local);
                // the box of the last tile would reach into the next quadrature tile
                if sizes.quad_tile < block.points && sizes.quad_tile % points != 0 {
                    fetch = fetch.exactly();
                }
                let fetch = fetch.by_work_items([shape.cells, shape.work_items]);
                let (tile, _) = s.prefetch_as(fetch, &format!("{table}_{name}"))?;
                if points * others == 1 {
                    continue; // a scalar shares no buffer
                }
                match buffers.get_mut(k) {
                    Some(sharers) => sharers.push(tile),
                    None => buffers.push(vec![tile]),
                }
            }
        }
    }
    buffers.extend(shared_by_stages(program, blocks));
    for (k, vars) in buffers.into_iter().enumerate().filter(|(_, v)| v.len() > 1) {
        let vars = vars.into_iter().map(String::from).collect();
        s.apply(AliasStorage { vars, storage: s.fresh(&format!("tile_{k}")) })?;
    }
    Ok(())
}

/// Arrays in local memory of which one is needed after the other.
fn shared_by_stages(program: &CellProgram, blocks: &[Stages<'_>]) -> Vec<Vec<Array>> {
    let staged = blocks.iter().filter_map(|b| b.tiles.staged.as_ref()).map(|staged| staged.array.clone());
    let staged: Vec<Array> = staged.collect();
    let mut shared = Vec::new();
    if let ([only], [_]) = (blocks, &staged[..])
        && only.tiles.sizes.quad_tile == only.tiles.sizes.block.points
    {
        // with one quadrature tile the degrees of freedom are not needed any more when results are
        // staged
        let first = program.evaluated().into_iter().take(1).map(|k| program.gathers[k].array.clone());
        shared.push(first.chain(staged).collect());
    } else if blocks.len() > 1 {
        shared.push(staged);
    }
    if blocks.len() > 1 {
        let most = blocks.iter().map(|b| b.tiles.sizes.block.factors.len()).fold(0, usize::max);
        let factor =
            |k: usize| blocks.iter().filter_map(move |b| b.tiles.sizes.block.factors.get(k).cloned());
        shared.extend((0..most).map(|k| factor(k).collect()));
    }
    shared
}
