//! Sixteen cells a sub-group, by matrix instructions.

use super::ahead::{Ahead, coordinates};
use super::blocks::{blocks_of_cells, gathers_first, statements, written};
use super::fragments::{Axes, Nest, Product, TILE, exactly, tiled};
use super::instruction::{CELLS, MatrixInstruction};
use super::matrix_orbits::matrix_orbits;
use super::modes::factor;
use super::staging::{check_parts, stage_results};
use super::sub_groups::Places;
use super::{length, show_parts, trial};
use crate::strategy::{Arguments, CombinedOrbits, Needs, Question, Stopped, Strategy, StrategyError, Work};
use kingpost_forms::program::{Block, CellProgram, Evaluation, Gather, NotAnAction, Products};
use kingpost_ir::{AddressSpace, Kernel};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::PrefetchArray;
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maps sixteen cells to a sub-group, and multiplies by tables with matrix instructions: modes times
/// degrees of freedom by cells. The values of modes stay in registers, where the result of an
/// instruction is a factor of the next one.
///
/// Sums run over [modes](super::Modes), in a number that tiles divide; rows and
/// columns that are added are zero. Gather and scatter go through local memory along the degrees of
/// freedom. Tables stay in local memory, as far as asked for, while a group takes one block of cells
/// after the other.
/// Cells that fill no block are mapped to a group each.
///
/// Overlapped, degrees of freedom and vertices of the next block are copied to local memory without
/// waiting, from when those of a block are in registers on; what the scatter adds has its own place.
///
/// # Rewrite
/// ```text
/// for q in 0..m                     =>  for q_tile in 0..ceil(m/8)
///   for j in 0..n                         for j_tile in 0..ceil(n/8) {unroll}
///     e += phi[q, j]*u[j]                   call mma  # e of 16 cells and 8 modes
///   f = g*e                               f = g*e, each work-item its own
///   for i in 0..n                         for i_tile in 0..ceil(n/8) {unroll}
///     y[i] += phi[q, i]*f                   call mma  # y of 16 cells and 8 rows
/// ```
///
/// By `mfma_16x16x4`, sub-groups are AMD's wavefronts of 64, and tiles have 16 modes, 16 rows and
/// four terms.
///
/// # Errors
/// Integrands without modes; functions with components; copies ahead by `mfma_16x16x4`, whose processors
/// have no copies that do not wait; a step that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixCells {
    /// Sub-groups of a group, of sixteen cells each.
    pub sub_groups: u64,
    /// Groups of a launch, each of which takes every n-th block of cells.
    pub groups: u64,
    /// Tables that a group keeps in local memory, counted from the first; others are read where they are.
    pub kept_tables: u64,
    /// Whether the degrees of freedom of the next block of cells are copied while products are
    /// computed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlapped: bool,
    /// Degrees of freedom that are gathered and scattered separately, as in
    /// [`StraightCells`](super::StraightCells).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<u64>,
    /// The instruction.
    #[serde(default, skip_serializing_if = "MatrixInstruction::is_default")]
    pub instruction: MatrixInstruction,
}

impl fmt::Display for MatrixCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sub_groups, groups, kept_tables, overlapped, parts, instruction } = self;
        let tables = if *kept_tables == 1 { "table" } else { "tables" };
        let ahead = if *overlapped { ", copies ahead" } else { "" };
        write!(
            f,
            "matrix cells, {sub_groups} sub-groups, {groups} groups, {kept_tables} {tables} kept{ahead}"
        )?;
        show_parts(f, parts)?;
        match instruction {
            MatrixInstruction::MmaM16n8k8 => Ok(()),
            MatrixInstruction::Mfma16x16x4 => f.write_str(", wavefronts"),
        }
    }
}

impl Arguments for MatrixCells {
    const NAME: &'static str = "matrix_cells";
    const SUMMARY: &'static str =
        "Sixteen cells a sub-group, products with tables over modes by matrix instructions.";
}

/// Sub-groups of a group and groups of a launch that are tried with matrix instructions: two groups
/// on each of the 132 multiprocessors of an H100 or H200, or up to four, as registers and local
/// memory allow, and one.
const TRIED: [[u64; 2]; 5] = [[4, 264], [8, 132], [12, 132], [4, 396], [4, 528]];

/// The same where the next block of cells is copied while products are computed: of five that were
/// tried in 18 cases, these were the fastest of all ten that gained (H200, 2026-11-24); after
/// orbits seven of twelve cases gain by the first one, 6 to 13 % (H200, 2026-11-26).
const TRIED_AHEAD: [[u64; 2]; 2] = [[8, 132], [12, 132]];

/// Wavefronts of a group and groups of a compute unit that are tried: one for each of its four vector
/// units, which have no others' work, in one group or several, and half of them where local memory holds
/// no more. Tables in local memory are shared by a group.
const TRIED_WAVEFRONTS: [[u64; 2]; 5] = [[4, 1], [2, 2], [1, 4], [2, 1], [1, 2]];

/// Fewest degrees of freedom of a cell for which matrix instructions pay: the Laplace operator
/// takes 692 µs by them on 2-D P5, with 21, and 541 µs in straight-line code, and on P6, with 28,
/// 934 µs and 1112 µs (results/h200/tuned.jsonl).
const MATRIX_DOFS: i64 = 28;

impl MatrixCells {
    /// One block of cells after the other, all degrees of freedom together, by `mma_m16n8k8`.
    #[must_use]
    pub const fn new(sub_groups: u64, groups: u64, kept_tables: u64) -> Self {
        let instruction = MatrixInstruction::MmaM16n8k8;
        Self { sub_groups, groups, kept_tables, overlapped: false, parts: Vec::new(), instruction }
    }

    /// What is tried of a kernel by wavefronts, with as many tables in local memory as fit: the first shape
    /// with which most vector units have a wavefront.
    fn of_wavefronts(sizes: &MatrixSizes, compute_units: u64, local_bytes: u64) -> Option<Self> {
        let instruction = MatrixInstruction::Mfma16x16x4;
        let of = |[sub_groups, of_unit]: [u64; 2]| {
            let kept_tables = sizes.tables_that_fit(sub_groups, false, local_bytes / of_unit)?;
            Some(Self { instruction, ..Self::new(sub_groups, compute_units * of_unit, kept_tables) })
        };
        let is_held = sizes.words <= instruction.most_words();
        is_held.then(|| TRIED_WAVEFRONTS.into_iter().find_map(of)).flatten()
    }

    /// What is tried of a kernel on a device, with as many tables in local memory as fit with the
    /// cells of a group that has `local_bytes` of it.
    pub(super) fn that_fit(
        sizes: &MatrixSizes,
        question: &Question<'_>,
        local_bytes: impl Fn(u64) -> u64,
    ) -> Vec<Self> {
        if sizes.dofs < MATRIX_DOFS {
            return Vec::new();
        }
        if question.matrix_instruction == Some(MatrixInstruction::Mfma16x16x4) {
            let found = Self::of_wavefronts(sizes, question.compute_units, question.local_bytes);
            return found.into_iter().collect();
        }
        let of = |[sub_groups, groups]: [u64; 2], overlapped| {
            let kept_tables = sizes.tables_that_fit(sub_groups, overlapped, local_bytes(groups))?;
            Some(Self { overlapped, ..Self::new(sub_groups, groups, kept_tables) })
        };
        let waiting = TRIED.into_iter().filter_map(|sizes| of(sizes, false));
        waiting.chain(TRIED_AHEAD.into_iter().filter_map(|sizes| of(sizes, true))).collect()
    }
}

impl Strategy for MatrixCells {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        self.check()?;
        let form = on.form();
        let s = on.schedule();
        factor(s, &*form.program()?, self.instruction.tile() as u32)?;
        let kernel = s.kernel().clone();
        let program = CellProgram::read(&kernel)?;
        let parts = Parts::of(&kernel, &program, self.instruction.tile())?;
        check_parts(&self.parts, [parts.gather.count, program.results[0].count])?;
        Ok(Plan { program: &program, parts: &parts, args: self }.map(s)?)
    }

    fn needs(&self) -> Needs {
        Needs { matrix_instructions: true, ..Needs::default() }
    }

    fn is_over_modes(&self) -> bool {
        true
    }

    fn candidates(question: &Question<'_>) -> Vec<Self> {
        let (Some(instruction), Ok(program)) = (question.matrix_instruction, question.form.program()) else {
            return Vec::new();
        };
        let sizes = sizes_for(instruction, question.form.kernel(), &program);
        sizes.map_or_else(Vec::new, |sizes| Self::that_fit(&sizes, question, |_| question.local_bytes))
    }

    fn with_parts(&self, parts: &[u64]) -> Option<Self> {
        Some(Self { parts: parts.to_vec(), ..self.clone() })
    }

    fn in_orbits(&self, on: &mut Work<'_>, how: CombinedOrbits) -> Result<(), Stopped> {
        if how != CombinedOrbits::default() {
            return Err(how.refused(self));
        }
        let orbits = how.lower(on)?;
        matrix_orbits(on, self, &orbits)
    }
}

impl MatrixCells {
    pub(super) fn check(&self) -> Result<(), StrategyError> {
        let bounded = |symbol: &str, found: u64, most: u64| {
            let needed = format!("1 to {most}");
            match (1..=most).contains(&found) {
                true => Ok(()),
                false => Err(StrategyError::Parameter { symbol: symbol.into(), found, needed }),
            }
        };
        bounded("the number of sub-groups of a group", self.sub_groups, 32)?;
        bounded("the number of groups", self.groups, 1 << 20)?;
        match self.instruction {
            MatrixInstruction::Mfma16x16x4 if self.overlapped => {
                let reason = "copies ahead need instructions that copy to local memory without waiting, which wavefronts \
                              of gfx90a and gfx942 lack; leave `overlapped` out and give a compute unit more groups \
                              (`groups`), of which one multiplies while another one waits"
                    .into();
                Err(StrategyError::Unsuited { strategy: Self::NAME, reason })
            }
            // 1024 work-items
            MatrixInstruction::Mfma16x16x4 => {
                bounded("the number of wavefronts of a group", self.sub_groups, 16)
            }
            MatrixInstruction::MmaM16n8k8 => Ok(()),
        }
    }

    /// Work-items of a sub-group, along both axes of a group.
    pub(super) const fn items(&self) -> [i64; 2] {
        [self.instruction.lanes(), 1]
    }
}

/// What the strategy takes of a cell program: one scalar function with modes, one scalar result.
struct Parts<'p> {
    gather: &'p Gather,
    blocks: Vec<(&'p Block, &'p Evaluation, &'p Products)>,
}

impl<'p> Parts<'p> {
    fn of(kernel: &Kernel, program: &'p CellProgram, tile: i64) -> Result<Self, NotAnAction> {
        let refuse = |found: &str| {
            let found = format!("{found}; the strategies `straight_cells` and `staged_tiling` take it");
            NotAnAction { kernel: kernel.name.clone(), found }
        };
        let parts = program.tiled(kernel)?;
        let [only] = program.evaluated()[..] else {
            return Err(refuse("several functions are evaluated, or none"));
        };
        let gather = &program.gathers[only];
        if gather.components.is_some() || parts.element.components > 1 {
            return Err(refuse("a function has components"));
        }
        let mut blocks = Vec::new();
        for (block, products) in program.blocks.iter().zip(&parts.products) {
            let [evaluation] = &block.evaluations[..] else {
                return Err(refuse("a quadrature loop has several evaluations, or none"));
            };
            if block.pointwise.is_empty() {
                return Err(refuse("a quadrature loop has no pointwise group"));
            }
            if block.points % tile != 0 {
                return Err(refuse("a quadrature loop has no modes, because its integrand is not linear"));
            }
            blocks.push((block, evaluation, *products));
        }
        Ok(Self { gather, blocks })
    }
}

/// What [`MatrixCells`] needs of local memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixSizes {
    /// Degrees of freedom of a cell.
    pub dofs: i64,
    /// Bytes of a cell: values of degrees of freedom, and what the geometry gives.
    pub(super) cell: u64,
    /// More bytes of a cell where copies overlap with products.
    pub(super) overlap: u64,
    /// Bytes of each table.
    pub(super) tables: Vec<u64>,
    /// Bytes of a cell that fills no block.
    pub(super) rest: u64,
    /// Words of fragments of a work-item.
    pub(super) words: u64,
}

impl MatrixSizes {
    /// How many tables fit `bytes` of local memory with the cells of a group; none if the cells do
    /// not.
    #[must_use]
    pub fn tables_that_fit(&self, sub_groups: u64, overlapped: bool, bytes: u64) -> Option<u64> {
        let cell = self.cell + if overlapped { self.overlap } else { 0 };
        let mut left = bytes.checked_sub(CELLS as u64 * sub_groups * cell + self.rest)?;
        let fits = |table: &&u64| {
            let rest = left.checked_sub(**table);
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        Some(self.tables.iter().take_while(fits).count() as u64)
    }
}

/// The sizes of a kernel that [`MatrixCells`] can map.
#[must_use]
pub fn matrix_sizes(kernel: &Kernel, program: &CellProgram) -> Option<MatrixSizes> {
    sizes_for(MatrixInstruction::MmaM16n8k8, kernel, program)
}

fn sizes_for(instruction: MatrixInstruction, kernel: &Kernel, program: &CellProgram) -> Option<MatrixSizes> {
    let kernel = trial(kernel, |s| factor(s, program, instruction.tile() as u32))?;
    let program = CellProgram::read(&kernel).ok()?;
    let parts = Parts::of(&kernel, &program, instruction.tile()).ok()?;
    let n = parts.gather.count;
    let row = 8 * (instruction.tiled(n) + BETWEEN_ROWS).unsigned_abs();
    let mut names: Vec<&Array> = Vec::new();
    let mut tables = Vec::new();
    let per_cell = program.per_cell.len() as u64;
    let factors = |block: &Block| block.points.unsigned_abs() * block.factors.len() as u64;
    let factors: u64 = program.blocks.iter().map(factors).sum();
    for (block, _, products) in &parts.blocks {
        for table in &products.tables {
            if !names.contains(&table) {
                names.push(table);
                tables.push(8 * instruction.kept_length(block.points, n).unsigned_abs());
            }
        }
    }
    let rest = 8 * (2 * n.unsigned_abs() + per_cell + factors);
    let overlap = row + 8 * coordinates(&kernel, &program)?;
    let points = parts.blocks.iter().map(|(block, evaluation, _)| held_values(block, evaluation));
    let words = fragment_words(instruction, [n, n], points.sum());
    Some(MatrixSizes { dofs: n, cell: row + 8 * per_cell, overlap, tables, rest, words })
}

/// Values and factors of a mode.
pub(super) const fn held_values(block: &Block, evaluation: &Evaluation) -> i64 {
    (evaluation.outputs.len() + block.factors.len()) as i64
}

/// Words of the fragments of a work-item: of terms and of results, and of `values` of a tile of modes.
pub(super) const fn fragment_words(
    instruction: MatrixInstruction,
    [terms, results]: [i64; 2],
    values: i64,
) -> u64 {
    let columns = instruction.padded(terms) + instruction.tiled(results) + values * instruction.tile();
    2 * instruction.held(columns).unsigned_abs()
}

/// Doubles from one row of fragments to the next, of `n` columns in tiles: 4 or 12 of 16 apart, so
/// that rows begin in other banks.
pub(super) fn row_length(n: i64) -> i64 {
    tiled(n) + BETWEEN_ROWS
}

/// Doubles between rows.
const BETWEEN_ROWS: i64 = TILE / 2;

struct Plan<'a> {
    program: &'a CellProgram,
    parts: &'a Parts<'a>,
    args: &'a MatrixCells,
}

/// A quadrature loop in tiles of modes.
pub(super) struct Tiles<'p> {
    block: &'p Block,
    products: &'p Products,
    instruction: MatrixInstruction,
    /// Evaluations as the instructions that make them.
    evaluations: Vec<String>,
    init: Nest,
    evaluate: Nest,
    dofs: Loop,
    point: Nest,
    multiply: Nest,
}

impl Plan<'_> {
    fn map(&self, s: &mut Schedule) -> Result<(), TransformError> {
        let (program, parts) = (self.program, self.parts);
        let [sub_groups, groups] = [self.args.sub_groups, self.args.groups].map(length);
        let result = &program.results[0];
        // full blocks of cells, every n-th to a group; what remains to a group a cell
        let ([block, cell], rest) = blocks_of_cells(s, program, CELLS * sub_groups)?;
        let staged = stage_results(s, &result.commits, &result.scatter, None, "commit_dof")?;
        let [turn, group] = s.split_as(&block, groups, ["turn", "cell_group"])?;
        s.interchange(&turn, &group)?;

        // loops over the cells of a block: for the gather, the geometry, the products, the scatter
        let order = gathers_first(s, &cell, program)?;
        for array in [&parts.gather.array, &staged.array].into_iter().chain(&program.per_cell) {
            s.expand(array, [&cell])?;
        }
        let starts = [order.first.clone(), String::from(&result.zero), String::from(&staged.rows)];
        let cells = s.distribute_as(&cell, starts, &["cell_geometry", "cell_products", "cell_commit"])?;
        let [geometry, products, commit] = exactly(s, cells, "geometry, products and commit")?;
        let mut axes = Axes { kept_tables: self.args.kept_tables, ..Axes::default() };
        self.products(s, &products, &mut axes)?;

        let (geometry, ahead) = match self.args.overlapped {
            true => {
                let (ahead, geometry) = Ahead::of(s, &parts.gather.array, geometry, &order.first)?;
                (geometry, Some(ahead))
            }
            false => (geometry, None),
        };
        let places = Places { gather: cell, geometry, commit, group, turn, ahead, rest };
        let gather = parts.gather;
        places.ends(s, (program, gather, self.args), (&staged.array, &staged.rows), &mut axes)?;
        // what is gathered has no columns of zeros, but rows of one length: a sub-group finds its cells
        // in one place of the buffer before and after
        let columns = self.args.instruction.tiled(gather.count);
        let shared = [(&gather.array, gather.count), (&staged.array, columns)];
        places.place(s, self.args, shared, columns + BETWEEN_ROWS, (&[], &axes))
    }

    /// The products of the sixteen cells of each sub-group, in fragments.
    fn products(&self, s: &mut Schedule, cells: &Loop, axes: &mut Axes) -> Result<(), TransformError> {
        let (program, parts) = (self.program, self.parts);
        let result = &program.results[0];
        let n = parts.gather.count;
        let [first, own] = s.split_as(cells, CELLS, ["sub_group_fetch", "cell_zero"])?;
        s.expand(&result.array, [&first, &own])?;
        let fetch = PrefetchArray::new(&parts.gather.array, &first, AddressSpace::Private);
        let (values, copy) = s.prefetch_as(fetch, &format!("{}_fragment", parts.gather.array))?;
        let [fetch_cells, fetch_dofs] = exactly(s, copy, "the copy of degrees of freedom")?;
        s.expand(&values, [&first])?;
        let sub_group = s.distribute_one(&first, &own, "sub_group")?;
        let starts =
            program.blocks.iter().map(|b| String::from(&b.quad)).chain([String::from(&result.scatter)]);
        let stems: Vec<&str> = program.blocks.iter().map(|_| "cell_modes").chain(["cell_store"]).collect();
        let mut around = s.distribute_as(&own, starts, &stems)?;
        let [store] = exactly(s, around.split_off(program.blocks.len()), "the results")?;
        let instruction = self.args.instruction;
        let terms: Vec<&Loop> =
            [&fetch_dofs].into_iter().chain(parts.blocks.iter().map(|(_, e, _)| &e.dofs)).collect();
        let rows = parts.blocks.iter().map(|(_, _, products)| &products.rows);
        let rows: Vec<&Loop> = [&result.zero, &result.scatter].into_iter().chain(rows).collect();
        instruction.pad(s, &terms, &rows, n)?;
        let mut all_tiles = Vec::new();
        for ((block, evaluation, products), cells) in parts.blocks.iter().zip(around) {
            all_tiles.push(tiles(s, [&sub_group, &cells], block, evaluation, products, instruction)?);
        }

        // arrays and loops of each product as the instruction has them
        let wide = |cells: &Loop, columns: &Loop| Nest { cells: cells.clone(), columns: columns.clone() };
        axes.add(instruction.terms(s, &wide(&fetch_cells, &fetch_dofs))?);
        for nest in [wide(&own, &result.zero), wide(&store, &result.scatter)] {
            axes.add(instruction.rows(s, &nest, true)?);
        }
        let split = all_tiles.iter().map(|tiles| tiles.split(s, axes)).collect::<Result<Vec<_>, _>>()?;
        instruction.lay_out_terms(s, &values, axes)?;
        instruction.lay_out_results(s, &result.array, axes)?;
        for (tiles, products) in all_tiles.iter().zip(split) {
            tiles.to_fragments(s, &products, axes)?;
        }
        axes.sub_groups.extend([first, sub_group]);
        Ok(())
    }
}

/// A quadrature loop in tiles of modes, a nest for each of its parts.
pub(super) fn tiles<'p>(
    s: &mut Schedule,
    [sub_group, cells]: [&Loop; 2],
    block: &'p Block,
    evaluation: &'p Evaluation,
    products: &'p Products,
    instruction: MatrixInstruction,
) -> Result<Tiles<'p>, TransformError> {
    let evaluations = statements(s.kernel(), evaluation.dofs.name());
    let [tile, mode] = s.split_as(&block.quad, instruction.tile(), ["mode_tile", "mode_init"])?;
    for array in evaluation.outputs.iter().chain(&block.factors) {
        s.expand(array, [sub_group, cells, &mode])?;
    }
    s.interchange(cells, &tile)?;
    let point = block.pointwise.iter().take(1).map(String::from);
    let starts: Vec<String> = [String::from(&evaluation.dofs)]
        .into_iter()
        .chain(point)
        .chain([String::from(&products.rows)])
        .collect();
    let modes = s.distribute_as(&mode, starts.clone(), &["mode_evaluate", "mode_point", "mode_multiply"])?;
    let around = s.distribute_as(cells, starts, &["cell_evaluate", "cell_point", "cell_multiply"])?;
    let nests = around.into_iter().zip(modes).map(|(cells, columns)| Nest { cells, columns });
    let [evaluate, point, multiply] =
        exactly(s, nests.collect(), "evaluation, pointwise group and products")?;
    let init = Nest { cells: cells.clone(), columns: mode };
    let dofs = evaluation.dofs.clone();
    Ok(Tiles { block, products, instruction, evaluations, init, evaluate, dofs, point, multiply })
}

impl Tiles<'_> {
    /// Splits the loops of both products, that of the evaluation and that of the result.
    pub(super) fn split(&self, s: &mut Schedule, axes: &mut Axes) -> Result<[Product; 2], TransformError> {
        axes.add(self.instruction.rows(s, &self.init, false)?);
        axes.add(self.instruction.rows(s, &self.point, false)?);
        let evaluate = self.instruction.evaluation(s, &self.evaluate, &self.dofs)?;
        let multiply = self.instruction.transposed(s, &self.multiply, &self.products.rows)?;
        Ok([evaluate, multiply])
    }

    /// Arrays as the instruction has them, and a loop over work-items for each instruction.
    pub(super) fn to_fragments(
        &self,
        s: &mut Schedule,
        [evaluate, multiply]: &[Product; 2],
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        let evaluated = self.evaluations.iter().filter_map(|insn| written(s.kernel(), insn));
        let evaluated: Vec<Array> = evaluated.collect();
        for array in evaluated.iter().chain(&self.block.factors) {
            self.instruction.lay_out_modes(s, array, axes)?;
        }
        let insns: Vec<String> = self.products.insns.iter().map(String::from).collect();
        for (nest, insns) in [(evaluate, &self.evaluations), (multiply, &insns)] {
            nest.to_calls(s, insns, axes)?;
        }
        for table in &self.products.tables {
            if !axes.tables.contains(table) {
                let is_kept = (axes.tables.len() as u64) < axes.kept_tables;
                self.instruction.lay_out_table(s, table, 0, is_kept)?;
                axes.tables.push(table.clone());
            }
        }
        Ok(())
    }
}
