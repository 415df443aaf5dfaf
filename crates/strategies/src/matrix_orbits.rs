//! Sixteen cells a sub-group by matrix instructions, on degrees of freedom combined in orbits.

use super::ahead::{Ahead, coordinates};
use super::blocks::{blocks_of_cells, gathers_first, loops_in};
use super::fragments::{Axes, Nest, exactly};
use super::instruction::{CELLS, MatrixInstruction};
use super::matrix_cells::{MatrixCells, MatrixSizes, fragment_words, held_values, row_length, tiles};
use super::modes::split_terms;
use super::orbit_basis::orbits_of;
use super::staging::check_parts;
use super::sub_groups::Places;
use super::{length, trial};
use crate::strategy::{Stopped, Work};
use kingpost_forms::lowering::Orbits;
use kingpost_forms::program::{Block, CellProgram, Evaluation, Gather, NotAnAction, Products, stage};
use kingpost_ir::{AddressSpace, Affine, InsnId, Kernel, ScalarType, TableData, VarId, VarKind, Variable};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{
    CombineOrbits, DropZeroTerms, FactorQuadrature, JoinArrayAxes, PeelIname, RemoveUnusedVars,
    SetAddressSpace, ShiftIname, SplitLives,
};
use kingpost_primitives::schedule::{Array, Loop, Statement};
use kingpost_primitives::{Schedule, TransformError};
use std::collections::BTreeSet;

/// Maps sixteen cells to a sub-group as [`MatrixCells`] does, with degrees
/// of freedom combined in orbits: each combination of an orbit is multiplied by its own table, and
/// blocks of modes in which a table is zero leave it out.
///
/// # Rewrite
/// ```text
/// for q in 0..m                     =>  for q in 0..m/4
///   for j in 0..n                         for j in 0..n/4
///     e += phi[q, j]*u[j]                   e += phi_2[q, j]*u_2[j]
///   f = g*e                               f = g*e
///   for i in 0..n                         for i in 0..n/4
///     y[i] += phi[q, i]*f                   y_2[i] += phi_2[q, i]*f
///                                       for q_1 in 0..m/4 ...
/// ```
/// A work-item holds all combinations of an orbit, so that sums and differences need no exchange.
///
/// Overlapped, copies of the next block begin when all combinations of a block are in registers.
///
/// # Errors
/// As [`MatrixCells`]; degrees of freedom that no orbits hold.
pub(super) fn matrix_orbits(on: &mut Work<'_>, args: &MatrixCells, orbits: &[Orbits]) -> Result<(), Stopped> {
    args.check()?;
    let form = on.form();
    let program = form.program()?;
    scalar_gather(form.kernel(), &program)?;
    let s = on.schedule();
    program.blocks.iter().try_for_each(|block| split_terms(s, block).map(drop))?;
    let kernel = s.kernel().clone();
    let program = CellProgram::read(&kernel)?;
    let gather = scalar_gather(&kernel, &program)?;
    check_parts(&args.parts, [gather.count, program.results[0].count])?;
    Ok(Plan { program: &program, gather, orbits, args }.map(s)?)
}

/// The sizes of a kernel that `matrix_orbits` can map.
#[must_use]
pub fn matrix_orbit_sizes(kernel: &Kernel, program: &CellProgram, orbits: &[Orbits]) -> Option<MatrixSizes> {
    orbit_sizes_for(MatrixInstruction::MmaM16n8k8, kernel, program, orbits)
}

pub(super) fn orbit_sizes_for(
    instruction: MatrixInstruction,
    kernel: &Kernel,
    program: &CellProgram,
    orbits: &[Orbits],
) -> Option<MatrixSizes> {
    scalar_gather(kernel, program).ok()?;
    let terms = |s: &mut Schedule| program.blocks.iter().try_for_each(|b| split_terms(s, b).map(drop));
    let kernel = trial(kernel, terms)?;
    let program = CellProgram::read(&kernel).ok()?;
    let gather = scalar_gather(&kernel, &program).ok()?;
    let mut s = Schedule::of(&kernel);
    let parts = algebra(&mut s, &program, gather, orbits, instruction.tile()).ok()?;
    let (n, padded) = (gather.count, instruction.tiled(parts.orbits));
    let bytes = |count: i64| 8 * count.unsigned_abs();
    let per_cell = program.per_cell.len() as i64;
    let mut names: Vec<&Array> = Vec::new();
    let mut tables = Vec::new();
    for ModeBlock { block, products, .. } in &parts.blocks {
        for table in &products.tables {
            if !names.contains(&table) {
                names.push(table);
                tables.push(bytes(instruction.kept_length(block.points, parts.orbits)));
            }
        }
    }
    let small = parts.small.iter().filter_map(|t| s.kernel().var(t.name())).map(|t| &s.kernel().vars[t]);
    let small: u64 = small
        .map(|v| {
            v.shape.iter().filter_map(Affine::as_constant).product::<i64>().unsigned_abs() * v.ty.bytes()
        })
        .sum();
    let factors: i64 = program.blocks.iter().map(|b| b.points * b.factors.len() as i64).sum();
    let rest = bytes(2 * n + per_cell + factors) + small;
    let row = row_length(n.max(parts.members * padded));
    let overlap = bytes(row) + 8 * coordinates(&kernel, &program)?;
    let values: i64 = parts.blocks.iter().map(|m| held_values(&m.block, &m.evaluation)).sum();
    let members = parts.members.unsigned_abs();
    let words = members * fragment_words(instruction, [parts.orbits; 2], 0)
        + fragment_words(instruction, [0; 2], values);
    Some(MatrixSizes { dofs: n, cell: bytes(row + per_cell), overlap, tables, rest, words })
}

/// The only function that is evaluated, a scalar one of a scalar operator.
fn scalar_gather<'p>(kernel: &Kernel, program: &'p CellProgram) -> Result<&'p Gather, NotAnAction> {
    let refuse = |found: &str| {
        let found = format!("{found}; the mapping `orbits` of `straight_cells` takes it");
        NotAnAction { kernel: kernel.name.clone(), found }
    };
    let tiled = program.tiled(kernel)?;
    let [only] = program.evaluated()[..] else {
        return Err(refuse("several functions are evaluated, or none"));
    };
    let gather = &program.gathers[only];
    if gather.components.is_some() || tiled.element.components > 1 {
        return Err(refuse("a function has components"));
    }
    Ok(gather)
}

/// A cell in orbits.
pub(super) struct Parts {
    /// Combinations of degrees of freedom and of results, in the order of characters.
    pub(super) values: Vec<Array>,
    pub(super) results: Vec<Array>,
    /// The loops that compute the former, and results from the latter.
    pub(super) combine: Loop,
    pub(super) separate: Loop,
    /// The loop inside the latter over the members of an orbit.
    pub(super) member: Loop,
    /// Number of orbits, and of members of each.
    pub(super) orbits: i64,
    pub(super) members: i64,
    /// Tables of indices and factors.
    pub(super) small: Vec<Array>,
    pub(super) blocks: Vec<ModeBlock>,
}

impl Parts {
    /// Orbits as many as an instruction multiplies, and rows of results in full tiles.
    pub(super) fn pad(
        &self,
        s: &mut Schedule,
        instruction: MatrixInstruction,
        zero: &Loop,
    ) -> Result<(), TransformError> {
        let terms: Vec<&Loop> =
            [&self.combine].into_iter().chain(self.blocks.iter().map(|b| &b.evaluation.dofs)).collect();
        let rows = self.blocks.iter().map(|b| &b.products.rows);
        let rows: Vec<&Loop> = [zero, &self.separate].into_iter().chain(rows).collect();
        instruction.pad(s, &terms, &rows, self.orbits)
    }
}

/// Modes that some combinations have.
pub(super) struct ModeBlock {
    pub(super) block: Block,
    pub(super) evaluation: Evaluation,
    pub(super) products: Products,
}

/// Combines degrees of freedom, sums over modes in blocks of `tile`, and leaves out blocks of zeros.
pub(super) fn algebra(
    s: &mut Schedule,
    program: &CellProgram,
    gather: &Gather,
    orbits: &[Orbits],
    tile: i64,
) -> Result<Parts, TransformError> {
    let (mut parts, loops) = combined(s, program, gather, orbits, tile)?;
    for (k, quad) in loops.iter().enumerate().skip(1) {
        let shared = shared_scalars(s.kernel(), quad);
        if !shared.is_empty() {
            s.apply(SplitLives::new(quad, format!("block_{k}")).of(shared))?;
        }
    }
    drop_zeros(s, &loops)?;
    parts.blocks = loops.iter().filter_map(|quad| mode_block(s.kernel(), quad)).collect();
    Ok(parts)
}

/// Combines degrees of freedom; returns what there is then, without blocks, and the loops over
/// modes that the same tables have, multiples of `tile` of these.
pub(super) fn combined(
    s: &mut Schedule,
    program: &CellProgram,
    gather: &Gather,
    orbits: &[Orbits],
    tile: i64,
) -> Result<(Parts, Vec<Loop>), TransformError> {
    let result = &program.results[0];
    let orbits = orbits_of(s.kernel(), &gather.array, orbits).cloned();
    let orbits = orbits.unwrap_or_default(); // default: the step refuses an array that has none
    let (values, combine) = s.make(CombineOrbits::new(&gather.array, orbits.clone()))?;
    let (results, separate) = s.make(CombineOrbits::new(&result.array, orbits.clone()))?;
    let ends = [&gather.array, &result.array].map(|array| format!("{array}_"));
    let is_small =
        |v: &&Variable| matches!(v.kind, VarKind::Table(_)) && ends.iter().any(|end| v.name.starts_with(end));
    let tables: Vec<Variable> = s.kernel().vars.values().filter(is_small).cloned().collect();
    let (signs, small): (Vec<Variable>, Vec<Variable>) =
        tables.into_iter().partition(|v| v.shape.len() == 2 && v.ty == ScalarType::F64);
    for table in &signs {
        s.apply(SetAddressSpace::new(&table.name, AddressSpace::Literal))?;
    }
    let small = small.iter().map(|v| Array::named(&v.name)).collect();
    let quads: Vec<&Loop> = program.blocks.iter().map(|block| &block.quad).collect();
    for quad in &quads {
        s.apply(FactorQuadrature::new(*quad).in_blocks_of(tile as u32))?;
    }
    s.apply(RemoveUnusedVars {})?;
    let mut loops = Vec::new();
    for quad in &quads {
        loops.extend(peel_blocks(s, quad, tile)?);
    }
    let count = orbits.len() as i64;
    let members = s.expected(orbits.iter().map(|orbit| orbit.len() as i64).max(), "orbit")?;
    let [member] = exactly(s, loops_in(s.kernel(), &separate), "the members of an orbit")?;
    let blocks = Vec::new();
    Ok((Parts { values, results, combine, separate, member, orbits: count, members, small, blocks }, loops))
}

/// Leaves tables of zeros out of loops over modes.
pub(super) fn drop_zeros(s: &mut Schedule, loops: &[Loop]) -> Result<(), TransformError> {
    for quad in loops {
        for insn in table_users(s.kernel(), quad) {
            s.attempt(DropZeroTerms::new(insn))?; // refused where an entry is not zero
        }
    }
    Ok(())
}

/// A loop for each block of modes that the same tables have.
fn peel_blocks(s: &mut Schedule, quad: &Loop, tile: i64) -> Result<Vec<Loop>, TransformError> {
    let sizes = block_sizes(s.kernel(), quad, tile);
    let (mut loops, rest) = (Vec::new(), quad.clone());
    for size in sizes.iter().take(sizes.len().saturating_sub(1)) {
        loops.push(s.make(PeelIname::first(&rest, *size))?);
        s.apply(ShiftIname::new(&rest, -size))?;
    }
    loops.push(rest);
    Ok(loops)
}

/// How many modes, in tiles of `length`, follow each other that the same tables have.
fn block_sizes(kernel: &Kernel, quad: &Loop, length: i64) -> Vec<i64> {
    let tables: BTreeSet<VarId> = insns_in(kernel, quad).iter().flat_map(|i| tables_of(kernel, *i)).collect();
    let mut sizes: Vec<(BTreeSet<VarId>, i64)> = Vec::new();
    let rows = tables.iter().filter_map(|t| kernel.vars[*t].shape.first()?.as_constant()).max();
    let Some(rows) = rows.filter(|rows| *rows > 0) else { return Vec::new() };
    for tile in 0..rows / length {
        let has = |t: &VarId| {
            let VarKind::Table(TableData::Real(values)) = &kernel.vars[*t].kind else { return false };
            let columns = values.len() as i64 / rows;
            let range = tile * length * columns..(tile + 1) * length * columns;
            range.into_iter().any(|k| values[k as usize].0 != 0.0)
        };
        let holders: BTreeSet<VarId> = tables.iter().copied().filter(has).collect();
        match sizes.last_mut() {
            Some((known, size)) if *known == holders => *size += length,
            Some(_) | None => sizes.push((holders, length)),
        }
    }
    sizes.into_iter().map(|(_, size)| size).collect()
}

fn insns_in(kernel: &Kernel, quad: &Loop) -> Vec<InsnId> {
    let iname = kernel.iname(quad.name());
    let inside = kernel.schedule().into_iter().filter(|(_, l)| iname.is_some_and(|q| l.contains(&q)));
    inside.map(|(insn, _)| insn).collect()
}

fn tables_of(kernel: &Kernel, insn: InsnId) -> Vec<VarId> {
    let is_table = |v: &VarId| matches!(kernel.vars[*v].kind, VarKind::Table(_));
    kernel.insns[insn].reads().iter().map(|a| a.var).filter(is_table).collect()
}

/// The scalars that a loop writes, and others use, too.
fn shared_scalars(kernel: &Kernel, quad: &Loop) -> Vec<String> {
    let inside: BTreeSet<InsnId> = insns_in(kernel, quad).into_iter().collect();
    let uses = |i: InsnId, v: VarId| {
        let insn = &kernel.insns[i];
        insn.accesses(v)
    };
    let written: BTreeSet<VarId> = inside.iter().map(|i| kernel.insns[*i].lhs.var).collect();
    let outside = |v: &VarId| kernel.insns.ids().any(|i| !inside.contains(&i) && uses(i, *v));
    let shared = written.into_iter().filter(|v| kernel.vars[*v].shape.is_empty() && outside(v));
    shared.map(|v| kernel.vars[v].name.clone()).collect()
}

/// The instructions of a loop that read tables.
fn table_users(kernel: &Kernel, quad: &Loop) -> Vec<String> {
    let reads = |i: &InsnId| !tables_of(kernel, *i).is_empty();
    insns_in(kernel, quad).into_iter().filter(reads).map(|i| kernel.insns[i].name.clone()).collect()
}

/// The roles of what a loop over modes holds.
pub(super) fn mode_block(kernel: &Kernel, quad: &Loop) -> Option<ModeBlock> {
    let has = |i: InsnId, tag: &str| kernel.insns[i].tags.contains(tag);
    let target = |i: InsnId| Array::named(&kernel.vars[kernel.insns[i].lhs.var].name);
    let named = |i: InsnId| Statement::named(&kernel.insns[i].name);
    let all = insns_in(kernel, quad);
    let around = |i: InsnId| {
        let schedule = kernel.schedule();
        let loops = schedule.into_iter().find(|(k, _)| *k == i).map(|(_, loops)| loops)?;
        loops.last().map(|l| (Loop::named(&kernel.inames[*l].name), *l))
    };
    let length = |l: kingpost_ir::InameId| kernel.inames[l].domain.as_range(l)?.1.as_constant();
    let chosen = |tag: &str, init: bool| -> Vec<InsnId> {
        all.iter().copied().filter(|i| has(*i, tag) && has(*i, stage::INIT) == init).collect()
    };
    let (inits, evaluated) = (chosen(stage::EVALUATION, true), chosen(stage::EVALUATION, false));
    let (pointwise, multiplied) = (chosen(stage::POINTWISE, false), chosen(stage::QUADRATURE, false));
    let ((dofs, d), (rows, r)) = (around(*evaluated.first()?)?, around(*multiplied.first()?)?);
    let tables = |insns: &[InsnId]| {
        let mut found: Vec<Array> = Vec::new();
        for table in insns.iter().flat_map(|i| tables_of(kernel, *i)) {
            let table = Array::named(&kernel.vars[table].name);
            if !found.contains(&table) {
                found.push(table);
            }
        }
        found
    };
    let mut factors: Vec<Array> = Vec::new();
    for insn in multiplied.iter().map(|i| &kernel.insns[*i]) {
        let scalars = insn.reads().into_iter().map(|a| a.var).filter(|v| {
            kernel.vars[*v].kind == VarKind::Temporary
                && *v != insn.lhs.var
                && kernel.vars[*v].shape.is_empty()
        });
        for name in scalars.map(|v| &kernel.vars[v].name) {
            let factor = Array::named(name);
            if pointwise.iter().any(|i| target(*i) == factor) && !factors.contains(&factor) {
                factors.push(factor);
            }
        }
    }
    let evaluation = Evaluation {
        function: String::new(),
        dofs,
        count: length(d)?,
        inputs: Vec::new(),
        tables: tables(&evaluated),
        outputs: inits.iter().map(|i| target(*i)).collect(),
        inits: inits.iter().map(|i| named(*i)).collect(),
    };
    let products = Products {
        result: 0,
        rows,
        count: length(r)?,
        columns: None,
        partials: Vec::new(),
        insns: multiplied.iter().map(|i| named(*i)).collect(),
        tables: tables(&multiplied),
    };
    let block = Block {
        quad: quad.clone(),
        points: length(kernel.iname(quad.name())?)?,
        evaluations: vec![evaluation.clone()],
        pointwise: pointwise.iter().map(|i| named(*i)).collect(),
        factors,
        products: vec![products.clone()],
        sums: Vec::new(),
    };
    Some(ModeBlock { block, evaluation, products })
}

struct Plan<'a> {
    program: &'a CellProgram,
    gather: &'a Gather,
    orbits: &'a [Orbits],
    args: &'a MatrixCells,
}

impl Plan<'_> {
    fn map(&self, s: &mut Schedule) -> Result<(), TransformError> {
        let program = self.program;
        let [sub_groups, groups] = [self.args.sub_groups, self.args.groups].map(length);
        let result = &program.results[0];
        // full blocks of cells, every n-th to a group; what remains to a group a cell
        let ([block, cell], rest) = blocks_of_cells(s, program, CELLS * sub_groups)?;
        let [turn, group] = s.split_as(&block, groups, ["turn", "cell_group"])?;
        s.interchange(&turn, &group)?;
        let instruction = self.args.instruction;
        let parts = algebra(s, program, self.gather, self.orbits, instruction.tile())?;

        // loops over the cells of a block: for the gather, the geometry, the products, the scatter
        let order = gathers_first(s, &cell, program)?;
        for array in [&self.gather.array, &result.array].into_iter().chain(&program.per_cell) {
            s.expand(array, [&cell])?;
        }
        let starts = [order.first.clone(), String::from(&result.zero), String::from(&result.scatter)];
        let cells = s.distribute_as(&cell, starts, &["cell_geometry", "cell_products", "cell_commit"])?;
        let [geometry, products, commit] = exactly(s, cells, "geometry, products and commit")?;
        let mut axes = Axes { kept_tables: self.args.kept_tables, ..Axes::default() };
        self.products(s, &parts, &products, &mut axes)?;
        let (geometry, ahead) = match self.args.overlapped {
            true => {
                let (ahead, geometry) = Ahead::of(s, &self.gather.array, geometry, &order.first)?;
                (geometry, Some(ahead))
            }
            false => (geometry, None),
        };
        let places = Places { gather: cell, geometry, commit, group, turn, ahead, rest };
        let gather = self.gather;
        places.ends(s, (program, gather, self.args), (&result.array, &result.scatter), &mut axes)?;
        // rows of one length: a sub-group finds its cells in one place of the buffer before and after
        s.apply(JoinArrayAxes { var: String::from(&result.array), axis: 1 })?;
        let columns = parts.members * instruction.tiled(parts.orbits);
        let shared = [(&gather.array, gather.count), (&result.array, columns)];
        places.place(s, self.args, shared, row_length(gather.count.max(columns)), (&parts.small, &axes))
    }

    /// The products of the sixteen cells of each sub-group, in fragments.
    fn products(
        &self,
        s: &mut Schedule,
        parts: &Parts,
        cells: &Loop,
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        let zero = &self.program.results[0].zero;
        let [sub_group, own] = s.split_as(cells, CELLS, ["sub_group", "cell_zero"])?;
        for array in parts.values.iter().chain(&parts.results) {
            s.expand(array, [&sub_group, &own])?;
        }
        let starts = [&parts.combine].into_iter().chain(parts.blocks.iter().map(|b| &b.block.quad));
        let starts: Vec<String> = starts.chain([&parts.separate]).map(String::from).collect();
        let modes = parts.blocks.iter().map(|_| "cell_modes");
        let stems: Vec<&str> = ["cell_combine"].into_iter().chain(modes).chain(["cell_separate"]).collect();
        let mut around = s.distribute_as(&own, starts, &stems)?;
        let [separate] = exactly(s, around.split_off(parts.blocks.len() + 1), "the results")?;
        let combine = around.remove(0);
        let instruction = self.args.instruction;
        parts.pad(s, instruction, zero)?;
        let multiplied = match (self.args.overlapped, around.first()) {
            // after this loop nothing reads what was gathered
            (true, Some(first)) => s.distribute_one(&sub_group, first, "sub_group_products")?,
            (true, None) | (false, _) => sub_group.clone(),
        };
        let mut all_tiles = Vec::new();
        for (ModeBlock { block, evaluation, products }, cells) in parts.blocks.iter().zip(&around) {
            all_tiles.push(tiles(s, [&multiplied, cells], block, evaluation, products, instruction)?);
        }
        // arrays and loops of each product as the instruction has them
        let wide = |cells: &Loop, columns: &Loop| Nest { cells: cells.clone(), columns: columns.clone() };
        axes.unrolled.push(parts.member.clone());
        axes.add(instruction.terms(s, &wide(&combine, &parts.combine))?);
        for nest in [wide(&own, zero), wide(&separate, &parts.separate)] {
            axes.add(instruction.rows(s, &nest, true)?);
        }
        let split = all_tiles.iter().map(|tiles| tiles.split(s, axes)).collect::<Result<Vec<_>, _>>()?;
        for array in &parts.values {
            instruction.lay_out_terms(s, array, axes)?;
        }
        for array in &parts.results {
            instruction.lay_out_results(s, array, axes)?;
        }
        for (tiles, products) in all_tiles.iter().zip(split) {
            tiles.to_fragments(s, &products, axes)?;
        }
        if multiplied != sub_group {
            axes.sub_groups.push(multiplied);
        }
        axes.sub_groups.push(sub_group);
        Ok(())
    }
}
