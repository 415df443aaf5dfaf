//! Sixteen cells a group and a sub-group for each component, by matrix instructions, on degrees of
//! freedom combined in orbits.

use super::blocks::{REST, blocks_of_cells, gathers_first, loops_in, statements};
use super::cell_groups::cell_groups;
use super::component_products::{Evaluated, Quadrature, of_table, products, roll_block, roll_groups};
use super::fragments::{Axes, Nest, exactly};
use super::instruction::{CELLS, MatrixInstruction};
use super::instruction_loops::Kept;
use super::matrix_cells::row_length;
use super::matrix_groups::MatrixGroups;
use super::matrix_orbits::{ModeBlock, Parts, algebra};
use super::modes::split_terms;
use super::single_cell::make_atomic;
use super::staging::{CellNest, check_parts, deal_parts, roll_gathers};
use crate::strategy::{Stopped, Work};
use kingpost_forms::lowering::Orbits;
use kingpost_forms::program::{CellProgram, Gather, NotAnAction};
use kingpost_ir::{AddressSpace, AxisTag, Expr, Kernel};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{
    AliasStorage, DeclareCallee, JoinArrayAxes, LaunchHint, PackArrays, PadArray, ReplaceWithIntrinsic,
    SetAddressSpace, TransposeArrayAxes,
};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};

/// Maps sixteen cells to a group and a component to a sub-group as
/// [`MatrixGroups`] does, with degrees of freedom combined in orbits as
/// `matrix_orbits` does: for linear operators on vectors.
///
/// Each sub-group holds the combinations of its component in registers, and its sums; blocks of
/// modes in which the table of a combination is zero leave it out. The values of eight modes go
/// through local memory to a pointwise group that all work-items share.
///
/// # Rewrite
/// ```text
/// for q in 0..m                        =>  for c in 0..3 {l.1}
///   for j in 0..n                            u_2[j, c] = sums and differences of u[.., c]
///     e0 += phi[q, j]*u[j, 0]              for q_tile in 0..ceil(m/4/8)
///     ...                                    for c in 0..3 {l.1}
///   f0 = g(e0, e1, e2)                         for j_tile in 0..ceil(n/4/8) {unroll}
///   ...                                          call mma  # e[c] of phi_2 and u_2
///   for i in 0..n                            f = g(e), modes and cells by work-items
///     y[i, 0] += phi[q, i]*f0                for c in 0..3 {l.1}
///     ...                                      for i_tile in 0..ceil(n/4/8) {unroll}
///                                                call mma  # y_2[c]
/// ```
///
/// # Errors
/// As [`MatrixGroups`]; integrands without modes, degrees of freedom that no orbits hold,
/// derivatives that are zero in a block of modes.
pub(super) fn matrix_group_orbits(
    on: &mut Work<'_>,
    args: &MatrixGroups,
    orbits: &[Orbits],
) -> Result<(), Stopped> {
    let form = on.form();
    let program = form.program()?;
    vector_gather(form.kernel(), &program)?;
    let s = on.schedule();
    program.blocks.iter().try_for_each(|block| split_terms(s, block).map(drop))?;
    let kernel = s.kernel().clone();
    let program = CellProgram::read(&kernel)?;
    let (gather, components) = vector_gather(&kernel, &program)?;
    check_parts(&args.parts, [gather.count, program.results[0].count])?;
    let plan = Plan { program: &program, gather, components, orbits, args };
    if args.kinds {
        plan.map_kinds(s)?
    } else {
        plan.map(s)?
    }
    if let Some(groups) = args.resident_groups {
        s.apply(LaunchHint::resident_groups(groups))?;
    }
    Ok(())
}

/// The only function that is evaluated, with as many components as the result, and their number.
fn vector_gather<'p>(kernel: &Kernel, program: &'p CellProgram) -> Result<(&'p Gather, i64), NotAnAction> {
    let tiled = program.tiled(kernel)?;
    let [only] = program.evaluated()[..] else {
        return Err(refusal(kernel, "several functions are evaluated, or none"));
    };
    let gather = &program.gathers[only];
    let components = tiled.element.components;
    if components < 2 || gather.components != Some(components) {
        return Err(refusal(kernel, "the function has not the components of the result, or only one"));
    }
    Ok((gather, components))
}

pub(super) fn refusal(kernel: &Kernel, found: &str) -> NotAnAction {
    let found = format!("{found}; the mapping `orbits` of `straight_cells` takes it");
    NotAnAction { kernel: kernel.name.clone(), found }
}

pub(super) struct Plan<'a> {
    pub(super) program: &'a CellProgram,
    pub(super) gather: &'a Gather,
    pub(super) components: i64,
    pub(super) orbits: &'a [Orbits],
    pub(super) args: &'a MatrixGroups,
}

/// Loops over components of what is not multiplied.
pub(super) struct Rolled {
    gathers: Vec<Option<Loop>>,
    pub(super) zero: Loop,
    pub(super) combine: Loop,
    pub(super) separate: Loop,
    commit: Loop,
}

/// Loops over the cells of a block around what is not multiplied.
pub(super) struct Ends {
    pub(super) gather: Loop,
    pub(super) geometry: Loop,
    pub(super) commit: Loop,
    pub(super) rest: Option<Loop>,
}

impl Plan<'_> {
    fn map(&self, s: &mut Schedule) -> Result<(), Stopped> {
        let program = self.program;
        let result = &program.results[0];
        let ([block, cell], rest) = blocks_of_cells(s, program, CELLS)?;
        let instruction = self.args.instruction;
        let parts = algebra(s, program, self.gather, self.orbits, instruction.tile())?;
        let of = |b| quadrature(s.kernel(), b, &parts, (instruction, self.args.tiles()));
        let blocks = parts.blocks.iter().map(of);
        let blocks: Vec<Quadrature<'_>> = blocks.collect::<Option<_>>().ok_or_else(|| {
            let found =
                "a table multiplies some components only, or a derivative is zero in a block of modes";
            Stopped::from(refusal(s.kernel(), found))
        })?;
        let rolled = self.roll(s, &parts)?;
        let of_blocks = blocks.iter().map(|q| roll_block(s, q)).collect::<Result<Vec<_>, _>>()?;
        parts.pad(s, instruction, &result.zero)?;

        // loops over the cells of a block: for the gather, the geometry, the products, the scatter
        let order = gathers_first(s, &cell, program)?;
        let own = [&self.gather.array, &result.array].into_iter().chain(&program.per_cell);
        for array in own.chain(&parts.values).chain(&parts.results) {
            s.expand(array, [&cell])?;
        }
        let starts = [order.first, String::from(&result.zero), String::from(&parts.combine)];
        let quads = blocks.iter().map(|q| String::from(&q.block.quad));
        let ends = [String::from(&parts.separate), String::from(&result.scatter)];
        let mut stems = vec!["cell_geometry", "cell_zero", "cell_combine"];
        stems.extend(blocks.iter().map(|_| "cell_modes"));
        stems.extend(["cell_separate", "cell_commit"]);
        let mut cells = s.distribute_as(&cell, starts.into_iter().chain(quads).chain(ends), &stems)?;
        let [separate, commit] = exactly(s, cells.split_off(cells.len() - 2), "results and commit")?;
        let modes = cells.split_off(3);
        let [geometry, zero, combine] = exactly(s, cells, "geometry, zeros and combinations")?;

        let mut axes = Axes { all_components: self.args.one_sub_group, ..Axes::default() };
        for (component, cells, columns, inner) in [
            (&rolled.zero, zero, &result.zero, None),
            (&rolled.combine, combine, &parts.combine, None),
            (&rolled.separate, separate, &parts.separate, Some(&parts.member)),
        ] {
            s.reorder([component, &cells, columns].into_iter().chain(inner))?;
            let nest = Nest { cells, columns: columns.clone() };
            axes.add(match columns == &parts.combine {
                true => instruction.terms(s, &nest)?,
                false => instruction.rows(s, &nest, true)?,
            });
            axes.add_components(component);
        }
        axes.unrolled.push(parts.member.clone());
        let mut local = Vec::new();
        for ((quadrature, of_block), cells) in blocks.iter().zip(&of_blocks).zip(&modes) {
            let known = axes.local.len();
            products(s, quadrature, of_block, cells, &mut axes)?;
            local.push(axes.local[known..].to_vec());
        }
        for (arrays, kept) in [(&parts.values, Kept::Terms), (&parts.results, Kept::Results)] {
            for array in arrays {
                instruction.lay_out(s, array, 1, true, kept)?;
                axes.fragments.push(array.clone());
            }
        }
        let ends = Ends { gather: cell, geometry, commit, rest };
        self.ends(s, &ends, &rolled, &mut axes)?;
        Ok(self.place(s, &parts, &block, &axes, &local)?)
    }

    /// A loop over components for each of what is done to one after the other, except for the
    /// products.
    pub(super) fn roll(&self, s: &mut Schedule, parts: &Parts) -> Result<Rolled, TransformError> {
        let result = &self.program.results[0];
        let gathers = roll_gathers(s, self.program)?;
        let zeros = by_component(s.kernel(), &result.zero, &parts.results);
        let zero = roll_groups(s, &zeros, "component_zero")?;
        let commit = s.roll(&result.commits, "commit_component")?;
        let [combine] = exactly(s, loops_in(s.kernel(), &parts.combine), "components of combinations")?;
        let [separate] = exactly(s, loops_in(s.kernel(), &parts.member), "components of results")?;
        Ok(Rolled { gathers, zero, combine, separate, commit })
    }

    /// Both ends by all work-items, one degree of freedom after the other; the geometry by one
    /// work-item a cell; what fills no block.
    pub(super) fn ends(
        &self,
        s: &mut Schedule,
        ends: &Ends,
        rolled: &Rolled,
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        let (program, g) = (self.program, self.gather);
        let result = &program.results[0];
        let items = [self.args.instruction.lanes(), self.args.sub_groups(self.components)];
        let component = program.evaluated().first().and_then(|k| rolled.gathers[*k].as_ref());
        let shape = [g.count, self.components];
        let gather = CellNest { array: &g.array, cells: &ends.gather, rows: &g.dofs, component, shape };
        let commit = CellNest {
            array: &result.array,
            cells: &ends.commit,
            rows: &result.scatter,
            component: Some(&rolled.commit),
            shape: [result.count, self.components],
        };
        make_atomic(s, &result.commits[..1])?;
        let mut dealt = deal_parts(s, &gather, g.dofs.name(), items, &self.args.parts)?;
        dealt.extend(deal_parts(s, &commit, "commit", items, &self.args.parts)?);
        axes.items.push(ends.geometry.clone());
        if let Some(rest) = &ends.rest {
            let lanes = cell_groups(s, program, rest, REST, items[1].unsigned_abs())?;
            if self.args.kinds {
                let pool = Array::named(s.fresh("values_of_rest"));
                s.apply(PackArrays::new(lanes.values.iter().chain(&lanes.factors), &pool))?;
                axes.of_rest.push(pool);
            }
            axes.items.extend(lanes.items);
            // the only sub-group has these loops, of one iteration, to itself
            let others = lanes.sub_groups.into_iter().filter(|_| !self.args.one_sub_group);
            axes.sub_groups.extend(others.collect::<Vec<_>>());
        }
        dealt.into_iter().for_each(|flat| axes.take(flat, items));
        Ok(())
    }

    /// Loops to work-items, arrays to memory, products to instructions.
    fn place(
        &self,
        s: &mut Schedule,
        parts: &Parts,
        block: &Loop,
        axes: &Axes,
        local: &[Vec<Array>],
    ) -> Result<(), TransformError> {
        let (g, result) = (self.gather, &self.program.results[0]);
        s.apply(JoinArrayAxes { var: String::from(&result.array), axis: 1 })?;
        let columns = parts.members * self.args.instruction.tiled(parts.orbits);
        let row = row_length(g.count.max(columns));
        self.args.instruction.set_width(s)?;
        let shared = [(&g.array, g.count), (&result.array, columns)];
        for (array, columns) in shared {
            s.apply(TransposeArrayAxes { var: array.into(), order: vec![2, 0, 1] })?;
            s.apply(PadArray::new(array, 2, row - columns))?;
        }
        let all = shared.map(|(array, _)| array).into_iter().chain(&axes.local);
        for array in all.chain(&self.program.per_cell).chain(&axes.fragments) {
            s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
        }
        s.tag(block, AxisTag::Group(0))?;
        s.tag_all(&axes.items, AxisTag::Local(0))?;
        for array in &axes.fragments {
            s.apply(SetAddressSpace::new(array, AddressSpace::SubGroup))?;
        }
        s.tag_all(&axes.sub_groups, AxisTag::Local(1))?;
        let vars = shared.map(|(array, _)| String::from(array)).to_vec();
        s.apply(AliasStorage { vars, storage: s.fresh("cell_values") })?;
        // each block of modes needs its values and factors until the next one begins
        let most = local.iter().map(Vec::len).fold(0, usize::max);
        for k in 0..most {
            let vars: Vec<String> = local.iter().filter_map(|of| of.get(k)).map(String::from).collect();
            if vars.len() > 1 {
                s.apply(AliasStorage { vars, storage: s.fresh(&format!("mode_values_{k}")) })?;
            }
        }
        let (callee, name) = self.args.instruction.callee();
        s.apply(DeclareCallee::new(callee))?;
        for call in &axes.calls {
            s.apply(ReplaceWithIntrinsic::new([call], name))?;
        }
        s.tag_all(&axes.unrolled, AxisTag::Unrolled)
    }
}

/// A loop over modes with its statements by table, at most `tiles` tiles at a time.
pub(super) fn quadrature<'p>(
    kernel: &Kernel,
    modes: &'p ModeBlock,
    parts: &Parts,
    (instruction, tiles): (MatrixInstruction, i64),
) -> Option<Quadrature<'p>> {
    let ModeBlock { block, evaluation, products } = modes;
    let by_table = |insns: &[String], tables: &[Array], vectors: &[Array], is_sum: bool| {
        let vectors: Vec<&Array> = vectors.iter().collect();
        tables
            .iter()
            .map(|table| of_table(kernel, insns, table, &vectors, is_sum))
            .collect::<Option<Vec<_>>>()
    };
    let insns = statements(kernel, evaluation.dofs.name());
    let of_tables = by_table(&insns, &evaluation.tables, &parts.values, false)?;
    let is_evaluated = |value: &Array| of_tables.iter().any(|c| c.scalars.contains(value));
    if !evaluation.outputs.iter().all(is_evaluated) {
        return None;
    }
    let evaluated = vec![Evaluated { evaluation, of_tables }];
    let insns: Vec<String> = products.insns.iter().map(String::from).collect();
    let of_tables = by_table(&insns, &products.tables, &parts.results, true)?;
    let all = block.points / instruction.tile();
    let tiles = (1..=tiles.min(all)).rev().find(|tiles| all % tiles == 0)?;
    Some(Quadrature { block, evaluated, products, of_tables, tiles, short: None, shared: None, instruction })
}

/// The statements of a loop by what they write, one of some arrays, each in order of components.
fn by_component(kernel: &Kernel, iname: &Loop, arrays: &[Array]) -> Vec<Vec<String>> {
    let of = |array: &Array| {
        let var = kernel.var(array.name());
        let mut found: Vec<(i64, String)> = Vec::new();
        for name in statements(kernel, iname.name()) {
            let Some(insn) = kernel.insn(&name).map(|i| &kernel.insns[i]) else { continue };
            if let (true, Some(Expr::Int(component))) = (Some(insn.lhs.var) == var, insn.lhs.index.get(1)) {
                found.push((*component, name));
            }
        }
        found.sort();
        found.into_iter().map(|(_, name)| name).collect()
    };
    arrays.iter().map(of).collect()
}
