//! Sixteen cells a group and a sub-group for each kind of modes, by matrix instructions, on degrees
//! of freedom combined in orbits.

use super::blocks::{blocks_of_cells, gathers_first, statements};
use super::component_products::{
    Quadrature, RolledBlock, evaluations, first_insns, roll_block, tile_of_points,
};
use super::fragments::{Axes, Fragment, Nest, Product, exactly};
use super::instruction::{CELLS, MatrixInstruction};
use super::instruction_loops::Kept;
use super::matrix_cells::row_length;
use super::matrix_group_orbits::{Ends, Plan, Rolled, quadrature, refusal};
use super::matrix_groups::MatrixGroups;
use super::matrix_orbits::{Parts, combined, drop_zeros, mode_block};
use crate::strategy::Stopped;
use kingpost_forms::program::CellProgram;
use kingpost_ir::{AddressSpace, Affine, Atom, AxisTag, InameId, Kernel};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{
    AliasStorage, CropTable, DeclareCallee, JoinArrayAxes, JoinArrays, PadArray, PrefetchArray,
    ReplaceWithIntrinsic, ReverseIname, SetAddressSpace, TransposeArrayAxes,
};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};

/// Kinds for which there are sub-groups: the combinations of orbits of pairs and of two pairs.
const KINDS: [usize; 2] = [2, 4];

/// Fewest degrees of freedom of a component for which a sub-group for each kind of modes pays: 3-D
/// P6 elasticity takes 3.24 ms so and 4.73 with a sub-group a component. P5, with 56, takes 2.56
/// and 2.23: of its kinds one has eleven modes, others eight, and each is multiplied as sixteen
/// (H200, 2026-11-30).
const KIND_DOFS: i64 = 84;

impl MatrixGroups {
    /// A sub-group for each kind of modes, for [orbits](super::InOrbits).
    pub(super) fn of_kinds(program: &CellProgram, instruction: MatrixInstruction) -> Option<Self> {
        let pays = program.results.iter().any(|r| r.components > 1 && r.count >= KIND_DOFS);
        (pays && instruction.is_default()).then(|| Self { kinds: true, instruction, ..Self::default() })
    }
}

/// What is in local memory for a time.
struct Exchanged {
    combinations: Array,
    factors: Array,
    results: Array,
}

impl Plan<'_> {
    /// Maps the modes of a kind, those that one combination of the degrees of freedom of an orbit
    /// has in the direction along which it stays, to a sub-group each. Combinations of all kinds
    /// are in local memory, as are factors of all modes; what a sub-group adds to a combination of
    /// results stays in its registers.
    ///
    /// # Rewrite
    /// ```text
    /// for q in 0..m/4                      =>  u_k[.., c] = sums and differences of u[.., c]
    ///   e += phi_0[q, j]*u_0[j], ...           for kind in 0..4 {l.1}
    ///   f = g(e)                                 call mma  # e[kind] of phi_k[kind] and u_k[3 - kind]
    ///   y_0[i] += phi_0[q, i]*f, ...             f[kind] = g(e)
    /// for q_1 in 0..m/4 ...                    for kind in 0..4 {l.1}
    ///                                            call mma  # y_k[kind] of phi_k[3 - kind] and f[3 - kind]
    /// ```
    pub(super) fn map_kinds(&self, s: &mut Schedule) -> Result<(), Stopped> {
        let program = self.program;
        let result = &program.results[0];
        let ([block, cell], rest) = blocks_of_cells(s, program, CELLS)?;
        let (mut parts, loops) = self.equal_kinds(s)?;
        let rolled = self.roll(s, &parts)?;
        let digits = self.roll_kinds(s, &mut parts, loops)?;
        let kind_zero = s.roll(statements(s.kernel(), rolled.zero.name()), "kind_zero")?;
        let found = "a table multiplies some components only, or a derivative is zero in a block of modes";
        let instruction = self.args.instruction;
        let of_kind = parts.blocks.first().and_then(|b| {
            quadrature(s.kernel(), b, &parts, (instruction, b.block.points / instruction.tile()))
        });
        let Some(of_kind) = of_kind else { return Err(refusal(s.kernel(), found).into()) };
        let of_block = roll_block(s, &of_kind)?;
        parts.pad(s, instruction, &result.zero)?;

        // loops over the cells of a block: for the gather, the geometry, the products, the scatter
        let order = gathers_first(s, &cell, program)?;
        let own = [&self.gather.array, &result.array].into_iter().chain(&program.per_cell);
        for array in own.chain(&parts.values).chain(&parts.results) {
            s.expand(array, [&cell])?;
        }
        let kinds = s.expected(digits.first(), "kinds of modes")?;
        let starts =
            [&result.zero, &parts.combine, kinds, &parts.separate, &result.scatter].map(String::from);
        let starts = [order.first].into_iter().chain(starts);
        let stems =
            ["cell_geometry", "cell_zero", "cell_combine", "cell_modes", "cell_separate", "cell_commit"];
        let cells = s.distribute_as(&cell, starts, &stems)?;
        let [geometry, zero, combine, modes, separate, commit] = exactly(s, cells, "parts of a cell")?;

        let mut axes = Axes { all_components: true, ..Axes::default() };
        s.reorder([&kind_zero, &rolled.zero, &zero, &result.zero])?;
        axes.sub_groups.push(kind_zero);
        axes.add_components(&rolled.zero);
        axes.add(instruction.rows(s, &Nest { cells: zero, columns: result.zero.clone() }, true)?);
        let nest = Nest { cells: combine, columns: parts.combine.clone() };
        s.reorder([&rolled.combine, &nest.cells, &nest.columns])?;
        let combined = instruction.terms(s, &nest)?;
        axes.unrolled.push(rolled.combine.clone());
        shared(s, combined, (instruction, parts.members), &mut axes)?;
        let factors = kind_products(s, &of_kind, &of_block, &digits, &modes, &mut axes)?;
        let exchanged = exchange(s, (&parts, instruction), &rolled, separate, factors, &mut axes)?;
        self.ends(s, &Ends { gather: cell, geometry, commit, rest }, &rolled, &mut axes)?;
        Ok(self.place_kinds(s, &parts, &block, &axes, &exchanged)?)
    }

    /// Combinations, and a loop for each kind of modes, of which all have as many.
    fn equal_kinds(&self, s: &mut Schedule) -> Result<(Parts, Vec<Loop>), Stopped> {
        let before = s.clone();
        let (parts, loops) =
            combined(s, self.program, self.gather, self.orbits, self.args.instruction.tile())?;
        let sizes: Vec<i64> = loops.iter().filter_map(|quad| length_of(s.kernel(), quad)).collect();
        let most = sizes.iter().copied().fold(0, i64::max);
        let (parts, loops) = match sizes.iter().all(|size| *size == most) {
            true => (parts, loops),
            false => {
                *s = before;
                combined(s, self.program, self.gather, self.orbits, most)?
            }
        };
        let all = loops.len();
        if self.program.blocks.len() != 1 || !KINDS.contains(&all) || parts.members != all as i64 {
            let found = format!(
                "there are {all} kinds of modes and {} combinations of an orbit, needed two or four of both",
                parts.members
            );
            return Err(refusal(s.kernel(), &found).into());
        }
        drop_zeros(s, &loops)?;
        Ok((parts, loops))
    }

    /// Loops over kinds, the digits of their binary numbers, instead of a loop over modes for each:
    /// combinations have one array, and so have the tables of a direction, in the order of kinds.
    /// Returns the loops, outer first.
    fn roll_kinds(
        &self,
        s: &mut Schedule,
        parts: &mut Parts,
        loops: Vec<Loop>,
    ) -> Result<Vec<Loop>, Stopped> {
        let tables = |quad: &Loop| mode_block(s.kernel(), quad).map(|block| block.evaluation.tables);
        let of_kinds: Vec<Vec<Array>> = loops.iter().filter_map(tables).collect();
        let found = "a kind of modes has no evaluation, or other tables than the others";
        let count = of_kinds.first().map_or(0, Vec::len);
        if of_kinds.len() != loops.len() || of_kinds.iter().any(|tables| tables.len() != count) {
            return Err(refusal(s.kernel(), found).into());
        }
        for k in 0..count {
            let tables: Vec<&Array> = of_kinds.iter().map(|tables| &tables[k]).collect();
            for table in &tables {
                s.apply(CropTable::new(*table))?;
            }
            let joined = s.fresh(&format!("{}_kinds", tables[0]));
            s.apply(JoinArrays::new(tables, joined, 0))?;
        }
        for (of, arrays) in
            [(&self.gather.array, &mut parts.values), (&self.program.results[0].array, &mut parts.results)]
        {
            let joined = Array::named(s.fresh(&format!("{of}_kinds")));
            s.apply(JoinArrays::new(arrays.iter(), &joined, 2))?;
            *arrays = vec![joined];
        }
        // two at a time: of two, indices always differ by one step
        let quad = loops[0].clone();
        let (mut all, mut around) = (loops, Vec::new());
        while all.len() > 1 {
            let pairs = all.chunks(2).map(|pair| s.roll(pair, "kind"));
            all = pairs.collect::<Result<Vec<_>, _>>()?;
            around.push(all[0].clone());
        }
        around.reverse();
        parts.blocks = mode_block(s.kernel(), &quad).into_iter().collect();
        Ok(around)
    }

    /// Loops to work-items, arrays to memory, products to instructions.
    fn place_kinds(
        &self,
        s: &mut Schedule,
        parts: &Parts,
        block: &Loop,
        axes: &Axes,
        exchanged: &Exchanged,
    ) -> Result<(), TransformError> {
        let (g, result) = (self.gather, &self.program.results[0]);
        let Exchanged { combinations, factors, results } = exchanged;
        s.apply(JoinArrayAxes { var: String::from(&result.array), axis: 1 })?;
        let instruction = self.args.instruction;
        instruction.set_width(s)?;
        let columns = parts.members * instruction.tiled(parts.orbits);
        for (array, columns) in [(&g.array, g.count), (&result.array, columns)] {
            s.apply(TransposeArrayAxes { var: array.into(), order: vec![2, 0, 1] })?;
            s.apply(PadArray::new(array, 2, row_length(columns) - columns))?;
        }
        let local = [&g.array, &result.array, combinations, factors, results];
        for array in local.into_iter().chain(&self.program.per_cell).chain(&axes.fragments) {
            s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
        }
        s.tag(block, AxisTag::Group(0))?;
        s.tag_all(&axes.items, AxisTag::Local(0))?;
        for array in &axes.fragments {
            s.apply(SetAddressSpace::new(array, AddressSpace::SubGroup))?;
        }
        s.tag_all(&axes.sub_groups, AxisTag::Local(1))?;
        // one after the other: what is gathered and what is added before it is separated;
        // combinations of values, factors and what is added
        s.apply(AliasStorage::new([&g.array, results], s.fresh("cell_values")))?;
        let of_modes = [combinations, factors, &result.array].into_iter().chain(&axes.of_rest);
        s.apply(AliasStorage::new(of_modes, s.fresh("mode_values")))?;
        let (callee, name) = instruction.callee();
        s.apply(DeclareCallee::new(callee))?;
        for call in &axes.calls {
            s.apply(ReplaceWithIntrinsic::new([call], name))?;
        }
        s.tag_all(&axes.unrolled, AxisTag::Unrolled)
    }
}

/// Shares what lies over cells and orbits among the sub-groups of all kinds: parts of a tile, or of terms,
/// belong to one each.
fn shared(
    s: &mut Schedule,
    fragment: Fragment,
    (instruction, kinds): (MatrixInstruction, i64),
    axes: &mut Axes,
) -> Result<(), TransformError> {
    let Fragment { lanes, mut own } = fragment;
    let parts = match instruction {
        MatrixInstruction::MmaM16n8k8 => {
            let [half, part] = exactly(s, own.split_off(own.len().saturating_sub(2)), "parts of a tile")?;
            s.join(&half, &part)?
        }
        MatrixInstruction::Mfma16x16x4 => {
            let [part] = exactly(s, own.split_off(own.len().saturating_sub(1)), "parts of a tile")?;
            part
        }
    };
    let [round, sub_group] = s.split_as(&parts, kinds, ["pair_round", "pair_sub_group"])?;
    axes.items.push(lanes);
    axes.sub_groups.push(sub_group);
    axes.unrolled.extend(own);
    axes.unrolled.push(round);
    Ok(())
}

/// The products of a kind of modes: evaluations of its own modes, the pointwise group in its
/// registers, and what modes of all kinds add to its own combinations. Returns the factors.
fn kind_products(
    s: &mut Schedule,
    quadrature: &Quadrature<'_>,
    rolled: &RolledBlock,
    kinds: &[Loop],
    cells: &Loop,
    axes: &mut Axes,
) -> Result<Array, TransformError> {
    let Quadrature { block, evaluated, products, instruction, .. } = quadrature;
    let point = &block.quad;
    for array in rolled.values().chain(&rolled.factors) {
        s.expand(array, kinds)?;
        (1..kinds.len()).try_for_each(|_| s.apply(JoinArrayAxes::new(array, 0)).map(drop))?;
        s.expand(array, [cells, point])?;
    }
    kinds.iter().try_for_each(|digit| s.interchange(cells, digit).map(drop))?;
    let dofs = evaluated.iter().map(|e| String::from(&e.evaluation.dofs));
    let starts: Vec<String> =
        dofs.chain(block.pointwise.first().map(String::from)).chain([String::from(&products.rows)]).collect();
    let points =
        s.distribute_as(point, starts.clone(), &["point_evaluate", "point_values", "point_multiply"])?;
    let around = s.distribute_as(cells, starts, &["cell_evaluate", "cell_values", "cell_multiply"])?;
    let nests: Vec<Nest> =
        around.into_iter().zip(points).map(|(cells, columns)| Nest { cells, columns }).collect();
    let [evaluate, values, multiply] = exactly(s, nests, "evaluations, points and products")?;
    s.reorder([&rolled.init, cells, point])?;
    axes.add_components(&rolled.init);
    axes.add(instruction.rows(s, &Nest { cells: cells.clone(), columns: point.clone() }, true)?);
    let mut calls = evaluations(s, quadrature, rolled, &[evaluate], axes)?;
    axes.add(instruction.rows(s, &values, true)?);
    calls.extend(kind_sums(s, quadrature, &rolled.multiply, kinds, &multiply, axes)?);
    for array in rolled.values() {
        instruction.lay_out(s, array, 2, true, Kept::Results)?;
        axes.fragments.push(array.clone());
    }
    for factors in &rolled.factors {
        instruction.lay_out(s, factors, 2, true, Kept::Local)?;
    }
    for table in &products.tables {
        instruction.lay_out_table(s, table, 1, false)?;
    }
    for (nest, insns) in calls {
        nest.to_calls(s, &insns, axes)?;
    }
    let [factors] = &rolled.factors[..] else {
        let all = Array::named(s.fresh("factors"));
        s.apply(JoinArrays::new(&rolled.factors, &all, 0))?;
        return Ok(all);
    };
    Ok(factors.clone())
}

/// What modes add, one table after the other, as each adds to other combinations: a sub-group adds
/// to those of its own, from the factors of the kind that has them.
fn kind_sums(
    s: &mut Schedule,
    quadrature: &Quadrature<'_>,
    component: &Loop,
    kinds: &[Loop],
    multiply: &Nest,
    axes: &mut Axes,
) -> Result<Vec<(Product, Vec<String>)>, TransformError> {
    let mut owners: Vec<Loop> = Vec::new();
    for digit in kinds.iter().rev() {
        let inner = owners.first().unwrap_or(&multiply.cells);
        owners.insert(0, s.distribute_one(digit, inner, "kind_multiply")?);
    }
    axes.sub_groups.push(join_all(s, kinds)?);
    let of_product = [component, &multiply.cells, &multiply.columns, &quadrature.products.rows];
    let loops: Vec<&Loop> = owners.iter().chain(of_product).collect();
    s.reorder(loops.clone())?;
    let insns = first_insns(&quadrature.of_tables);
    let mut nests: Vec<Vec<Loop>> = insns.iter().map(|_| Vec::new()).collect();
    for iname in loops.iter().rev() {
        let mut all = vec![(*iname).clone()];
        if insns.len() > 1 {
            all.extend(s.distribute(*iname, &insns[1..])?);
        }
        nests.iter_mut().zip(all).for_each(|(nest, iname)| nest.push(iname));
    }
    let mut calls = Vec::new();
    for (nest, insn) in nests.into_iter().zip(insns) {
        let (of_product, owners) = nest.split_at(4);
        let [rows, columns, cells, component] = exactly(s, of_product.to_vec(), "loops of a product")?;
        axes.add_components(&component);
        axes.sub_groups.push(own_combinations(s, owners, &insn)?);
        let (part, columns) =
            tile_of_points(s, &Nest { cells: cells.clone(), columns }, true, quadrature.instruction)?;
        let columns = Nest { cells, columns };
        let nest = quadrature.instruction.transposed(s, &columns, &rows)?;
        for inner in part.iter().chain(&nest.tiles) {
            s.interchange(&component, inner)?;
        }
        axes.unrolled.extend(part);
        calls.push((nest, vec![insn]));
    }
    Ok(calls)
}

/// Results from the combinations that sub-groups hold, which are in local memory for it, too.
fn exchange(
    s: &mut Schedule,
    (parts, instruction): (&Parts, MatrixInstruction),
    rolled: &Rolled,
    cells: Loop,
    factors: Array,
    axes: &mut Axes,
) -> Result<Exchanged, TransformError> {
    let [combinations, held] = [&parts.values, &parts.results].map(|arrays| arrays[0].clone());
    let [once, cells] = s.split_as(&cells, CELLS, ["separate_once", "separate_cell"])?;
    let fetch = PrefetchArray::new(&held, &once, AddressSpace::Private);
    let (results, loops) = s.prefetch_as(fetch, &format!("{held}_all"))?;
    let [own, columns, component, kind] = exactly(s, loops, "combinations of results")?;
    s.reorder([&kind, &component, &own, &columns])?;
    axes.sub_groups.push(kind);
    axes.add_components(&component);
    axes.add(instruction.rows(s, &Nest { cells: own, columns }, true)?);
    let nest = Nest { cells, columns: parts.separate.clone() };
    s.reorder([&rolled.separate, &nest.cells, &nest.columns, &parts.member])?;
    let separated = instruction.rows(s, &nest, true)?;
    axes.unrolled.push(rolled.separate.clone());
    shared(s, separated, (instruction, parts.members), axes)?;
    axes.unrolled.extend([once, parts.member.clone()]);
    for (array, kept) in [(&combinations, Kept::Local), (&results, Kept::Local), (&held, Kept::Results)] {
        instruction.lay_out(s, array, 2, true, kept)?;
    }
    axes.fragments.push(held);
    Ok(Exchanged { combinations, factors, results })
}

/// Lets loops over kinds of modes, the innermost first, run over the combinations that `insn` adds
/// to: kind `k` adds to combination `k xor first`. Returns one loop of them.
fn own_combinations(s: &mut Schedule, digits: &[Loop], insn: &str) -> Result<Loop, TransformError> {
    let first = s.expected(first_combination(s.kernel(), digits, insn), "combination that is added to")?;
    for (_, digit) in digits.iter().enumerate().filter(|(k, _)| first >> k & 1 == 1) {
        s.apply(ReverseIname::new(digit))?;
    }
    join_all(s, &digits.iter().rev().cloned().collect::<Vec<_>>())
}

/// The combination that `insn` adds to in the first iteration of some loops.
fn first_combination(kernel: &Kernel, inames: &[Loop], insn: &str) -> Option<i64> {
    let index = kernel.insns[kernel.insn(insn)?].lhs.index.last()?.as_affine()?;
    let inames: Vec<InameId> = inames.iter().filter_map(|l| kernel.iname(l.name())).collect();
    let is_first = |atom: &Atom| matches!(atom, Atom::Iname(l) if inames.contains(l));
    index.substitute(&|atom| is_first(atom).then(|| Affine::constant(0))).as_constant()
}

/// One loop of a nest of some, outer first.
fn join_all(s: &mut Schedule, nest: &[Loop]) -> Result<Loop, TransformError> {
    let [outer, inner @ ..] = nest else {
        let none = exactly::<Loop, 1>(s, Vec::new(), "a nest")?;
        return Ok(none[0].clone());
    };
    inner.iter().try_fold(outer.clone(), |joined, next| s.join(&joined, next))
}

fn length_of(kernel: &Kernel, iname: &Loop) -> Option<i64> {
    let l = kernel.iname(iname.name())?;
    kernel.inames[l].domain.as_range(l)?.1.as_constant()
}
