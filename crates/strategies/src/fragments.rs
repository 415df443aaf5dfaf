//! Loops and arrays as `mma.m16n8k8` has them: what strategies by matrix instructions share.

use super::blocks::statements;
use super::instruction::CELLS;
use super::staging::Flat;
use kingpost_ir::text::NamedLayout;
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::intrinsics::{self, MMA_M16N8K8_F64};
use kingpost_primitives::primitives::{
    ChangeLayout, DropZeroTerms, JoinArrayAxes, JoinInames, PadArray, PeelIname, ShiftIname, SplitArrayAxis,
    TransposeArrayAxes,
};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Refusal, Schedule, TransformError};

/// Work-items of a sub-group, as the instruction has them.
pub(super) const LANES: i64 = intrinsics::width(MMA_M16N8K8_F64);
/// Columns of its result, and of its first factor.
pub(super) const TILE: i64 = 8;

/// Columns in full tiles.
pub(super) fn tiled(n: i64) -> i64 {
    n + (-n).rem_euclid(TILE)
}

/// A nest over the cells of a sub-group and the columns of a fragment.
pub(super) struct Nest {
    pub(super) cells: Loop,
    pub(super) columns: Loop,
}

/// The loops of a nest whose elements lie as the instruction has them.
pub(super) struct Fragment {
    /// Work-items of a sub-group.
    pub(super) lanes: Loop,
    /// What a work-item has of it.
    pub(super) own: Vec<Loop>,
}

/// Where loops and arrays go.
#[derive(Default)]
pub(super) struct Axes {
    /// Written out.
    pub(super) unrolled: Vec<Loop>,
    /// On `l.0`.
    pub(super) items: Vec<Loop>,
    /// On `l.1`.
    pub(super) sub_groups: Vec<Loop>,
    /// Held by the work-items of a sub-group.
    pub(super) fragments: Vec<Array>,
    /// In local memory.
    pub(super) local: Vec<Array>,
    /// In local memory, of cells that fill no block, where they share the place of others.
    pub(super) of_rest: Vec<Array>,
    /// Loops that are an instruction each.
    pub(super) calls: Vec<Loop>,
    /// The same of instructions with half of the terms.
    pub(super) short_calls: Vec<Loop>,
    /// Tables of the products.
    pub(super) tables: Vec<Array>,
    /// How many of them, the first ones, have a copy in local memory.
    pub(super) kept_tables: u64,
    /// Whether a sub-group has all components of its cells.
    pub(super) all_components: bool,
}

impl Axes {
    pub(super) fn add(&mut self, fragment: Fragment) {
        self.items.push(fragment.lanes);
        self.unrolled.extend(fragment.own);
    }

    /// What was dealt to the work-items of a group, `[l.0, l.1]` of them; few rounds are written
    /// out.
    pub(super) fn take(&mut self, dealt: Flat, group: [i64; 2]) {
        if dealt.has_few_rounds(CELLS, group) {
            self.unrolled.push(dealt.round);
        }
        let mut items = dealt.items.into_iter();
        self.items.extend(items.next());
        self.sub_groups.extend(items);
    }

    /// A loop over components: a sub-group each, or written out in one.
    pub(super) fn add_components(&mut self, component: &Loop) {
        if self.all_components { &mut self.unrolled } else { &mut self.sub_groups }.push(component.clone());
    }
}

/// As many loops or nests as a step has been asked for.
pub(super) fn exactly<T, const N: usize>(
    s: &Schedule,
    all: Vec<T>,
    of: &str,
) -> Result<[T; N], TransformError> {
    let found = all.len();
    all.try_into().map_err(|_| {
        let cause = Refusal::internal(format!("{found} loops for {of}, needed {N}"), s.kernel());
        TransformError { operation: "map cells to matrix instructions".into(), cause }
    })
}

/// The work-items of a sub-group: `4*g + t` of `g` and `t`.
pub(super) fn lanes(s: &mut Schedule, outer: &Loop, inner: &Loop) -> Result<Loop, TransformError> {
    let joined = Some(s.fresh("lane"));
    s.make(JoinInames { joined, ..JoinInames::new(outer, inner) })
}

/// The loops of a nest of 16 rows and of 8 columns, or tiles of them: row `8*i + g` and column
/// `4*j + t` belong to work-item `4*g + t`.
pub(super) fn fragment(s: &mut Schedule, nest: &Nest, wide: bool) -> Result<Fragment, TransformError> {
    let [i, g] = s.split_as(&nest.cells, TILE, ["half", "row"])?;
    let (tile, columns) = match wide {
        true => {
            let [tile, columns] = s.split_as(&nest.columns, TILE, ["tile", "column"])?;
            (Some(tile), columns)
        }
        false => (None, nest.columns.clone()),
    };
    let [j, t] = s.split_as(columns, TILE / 2, ["part", "place"])?;
    let own: Vec<Loop> = tile.into_iter().chain([i, j]).collect();
    s.reorder([&g, &t].into_iter().chain(&own))?;
    Ok(Fragment { lanes: lanes(s, &g, &t)?, own })
}

/// Lays an array `[cells, columns, components]`, with any number of axes of components, out as the instruction
/// has it: `[components, lane, ...]` for what the work-items of a sub-group hold, and `[components, ..., lane]`
/// for what is in local memory, so that neighbours read neighbours.
pub(super) fn lay_out_of(
    s: &mut Schedule,
    array: &Array,
    components: u32,
    wide: bool,
    held: bool,
) -> Result<(), TransformError> {
    let order = |order: Vec<u32>| TransposeArrayAxes { var: array.into(), order };
    s.apply(order((2..2 + components).chain([0, 1]).collect()))?;
    let splits: &[(u32, i64)] =
        if wide { &[(0, TILE), (2, TILE), (3, TILE / 2)] } else { &[(0, TILE), (2, TILE / 2)] };
    for (axis, factor) in splits {
        s.apply(SplitArrayAxis { var: array.into(), axis: components + axis, factor: *factor })?;
    }
    let (axes, lane): (&[u32], u32) = match (wide, held) {
        (true, true) => (&[1, 4, 2, 0, 3], 0),
        (true, false) => (&[2, 3, 0, 1, 4], 3),
        (false, true) => (&[1, 3, 0, 2], 0),
        (false, false) => (&[2, 0, 1, 3], 2),
    };
    s.apply(order((0..components).chain(axes.iter().map(|axis| components + axis)).collect()))?;
    s.apply(JoinArrayAxes { var: array.into(), axis: components + lane })?;
    Ok(())
}

/// Lets what [`lay_out_of`] has of wide arrays in local memory, with one axis of components, begin
/// each four columns in other banks: neighbours along columns then meet in none.
pub(super) fn spread_columns(s: &mut Schedule, array: &Array) -> Result<(), TransformError> {
    s.apply(JoinArrayAxes { var: array.into(), axis: 3 })?;
    s.apply(PadArray::new(array, 3, TILE / 2)).map(drop)
}

/// Lays a table `[modes, columns]` out in tiles of 8 by 8, in each of which blocks of 4 by 4, for a
/// copy that [`spread_halves`] lays out.
pub(super) fn lay_out_table(s: &mut Schedule, table: &Array) -> Result<(), TransformError> {
    split_table(s, table, 0)?;
    s.apply(TransposeArrayAxes::new(table, [0, 3, 4, 1, 2, 5])).map(drop)
}

/// Lays a table `[modes, columns]` that is read where it is out as [`spread_halves`] does: the
/// first-level cache has the banks of local memory. Other axes may be in `front`.
pub(super) fn lay_out_spread_table(
    s: &mut Schedule,
    table: &Array,
    front: u32,
) -> Result<(), TransformError> {
    split_table(s, table, front)?;
    let order = (0..front).chain([1, 4, 0, 3, 2, 5].map(|axis| front + axis));
    s.apply(TransposeArrayAxes::new(table, order))?;
    for _ in 0..3 {
        s.apply(JoinArrayAxes::new(table, front + 2))?;
    }
    s.apply(PadArray::new(table, front + 2, COLUMN_HALVES))?;
    s.apply(JoinArrayAxes::new(table, front + 1))?;
    s.apply(PadArray::new(table, front + 1, ROW_HALVES - 2 * COLUMN_HALVES)).map(drop)
}

/// Tiles of 8, their halves and what these hold, of modes and of columns.
fn split_table(s: &mut Schedule, table: &Array, front: u32) -> Result<(), TransformError> {
    for (axis, factor) in [(0, TILE), (1, TILE / 2), (3, TILE), (4, TILE / 2)] {
        s.apply(SplitArrayAxis { var: table.into(), axis: front + axis, factor })?;
    }
    Ok(())
}

/// Doubles in all banks of local memory, and of a block of a table.
const BANKS: i64 = 16;
/// Doubles between the halves of the columns of a tile, and those of its rows, beyond all banks.
const COLUMN_HALVES: i64 = 2;
const ROW_HALVES: i64 = 8;

/// Lays a copy in local memory of what [`lay_out_table`] laid out so that no product meets a bank
/// twice: the halves of the columns of a tile begin two doubles of sixteen apart, those of its rows
/// eight.
///
/// A half of a sub-group reads sixteen doubles at a time, of two blocks of 4 by 4: two rows of both
/// halves of the rows, banks `8*half + 4*row + column`, or two columns of both halves of the
/// columns, banks `2*half + 4*row + column`. Either has each bank once. Blocks side by side would
/// have half of the banks twice.
pub(super) fn spread_halves(s: &mut Schedule, copy: &Array) -> Result<(), TransformError> {
    let var = s.expected(s.kernel().var(copy.name()), "copy of a table")?;
    let extents: Option<Vec<i64>> = s.kernel().vars[var].shape.iter().map(|n| n.as_constant()).collect();
    // tiles of which there is one are no axes of the copy
    let tiles = extents.and_then(|extents| Some(extents[..extents.len().checked_sub(4)?].to_vec()));
    let tiles = s.expected(tiles, "block of 16 by 8 in the copy of a table")?;
    let blocks = tiles.iter().product::<i64>();
    let mut strides: Vec<i64> =
        (1..=tiles.len()).map(|k| BANKS * tiles[k..].iter().product::<i64>()).collect();
    strides.extend([column_halves(blocks), row_halves(blocks), TILE / 2, 1]);
    s.apply(ChangeLayout::new(copy, NamedLayout::strides(strides))).map(drop)
}

/// Doubles from one half of the columns of each of a number of tiles to the other.
const fn column_halves(tiles: i64) -> i64 {
    BANKS * tiles + COLUMN_HALVES
}

/// Doubles from one half of their rows to the other.
const fn row_halves(tiles: i64) -> i64 {
    2 * BANKS * tiles + ROW_HALVES
}

/// Doubles of a table of that number of elements that [`spread_halves`] laid out.
pub(super) const fn spread_length(elements: i64) -> i64 {
    let tiles = elements / (TILE * TILE);
    BANKS * tiles + column_halves(tiles) + row_halves(tiles)
}

/// The loops of a product: tiles, then rows, columns and terms of an instruction.
pub(super) struct Product {
    /// Over instructions; none where one does it.
    pub(super) tiles: Vec<Loop>,
    /// What the work-items of a sub-group are joined of.
    pub(super) lanes: [Loop; 2],
    /// Of an instruction, outer first.
    pub(super) own: Vec<Loop>,
    /// Whether the instruction has half of the terms.
    pub(super) is_short: bool,
}

/// Splits the loops of a product. The tiles are those of the terms if `tiled_terms` says so, else
/// those of the columns.
pub(super) fn product(
    s: &mut Schedule,
    cells: &Loop,
    columns: &Loop,
    terms: &Loop,
    tiled_terms: bool,
) -> Result<Product, TransformError> {
    let [i, g] = s.split_as(cells, TILE, ["half", "row"])?;
    let [tile, inner] = s.split_as(if tiled_terms { terms } else { columns }, TILE, ["tile", "inner"])?;
    let (columns, terms) = if tiled_terms { (columns.clone(), inner) } else { (inner, terms.clone()) };
    let [j, t] = s.split_as(columns, TILE / 2, ["part", "place"])?;
    let [h, k] = s.split_as(terms, TILE / 2, ["term_part", "term"])?;
    s.reorder([&tile, &g, &t, &i, &j, &h, &k])?;
    Ok(Product { tiles: vec![tile], lanes: [g, t], own: vec![i, j, h, k], is_short: false })
}

/// Terms that an instruction of half the length takes for those after the last full tile; none if
/// it would save nothing.
pub(super) fn short_terms(n: i64) -> Option<i64> {
    (n > TILE && (1..=TILE / 2).contains(&(n % TILE))).then_some(TILE / 2)
}

/// The product of a nest whose `terms`, `count` of them, are padded to full tiles of zeros: with
/// the last tile by an instruction of half the length, where that holds all of its terms. Each
/// product comes with its statements, which are `insns` in the first one.
pub(super) fn short_product(
    s: &mut Schedule,
    nest: &Nest,
    terms: &Loop,
    count: i64,
    insns: Vec<String>,
) -> Result<Vec<(Product, Vec<String>)>, TransformError> {
    let Nest { cells, columns } = nest;
    let Some(length) = short_terms(count) else {
        return Ok(vec![(product(s, cells, columns, terms, true)?, insns)]);
    };
    let all = statements(s.kernel(), terms.name());
    let last = s.make(PeelIname::last(terms, TILE))?;
    let copies = statements(s.kernel(), last.name());
    let zeros = s.make(PeelIname::last(&last, TILE - length))?;
    for insn in statements(s.kernel(), zeros.name()) {
        s.apply(DropZeroTerms::new(insn))?;
    }
    s.apply(ShiftIname::new(&last, TILE - tiled(count)))?;
    let own_columns = s.distribute_one(columns, &last, "short_columns")?;
    let own_cells = s.distribute_one(cells, &own_columns, "short_cells")?;
    let own_insns = insns.iter().filter_map(|insn| {
        let place = all.iter().position(|other| other == insn)?;
        copies.get(place).cloned()
    });
    let own_insns = own_insns.collect();
    let full = product(s, cells, columns, terms, true)?;
    let [i, g] = s.split_as(&own_cells, TILE, ["half", "row"])?;
    let [j, t] = s.split_as(&own_columns, TILE / 2, ["part", "place"])?;
    s.reorder([&g, &t, &i, &j, &last])?;
    let short = Product { tiles: Vec::new(), lanes: [g, t], own: vec![i, j, last], is_short: true };
    Ok(vec![(full, insns), (short, own_insns)])
}

impl Product {
    /// One instruction for each of several that stand in the nest.
    pub(super) fn to_calls(
        &self,
        s: &mut Schedule,
        insns: &[String],
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        let [outer, inner] = &self.lanes;
        let lanes = lanes(s, outer, inner)?;
        let others = &insns[1.min(insns.len())..];
        let mut calls = vec![lanes.clone()];
        if !others.is_empty() {
            for inner in self.own.iter().rev() {
                s.distribute(inner, others)?;
            }
            calls.extend(s.distribute(&lanes, others)?);
        }
        axes.items.extend(calls.iter().cloned());
        let all = if self.is_short { &mut axes.short_calls } else { &mut axes.calls };
        all.extend(calls);
        axes.unrolled.extend(self.tiles.iter().cloned());
        Ok(())
    }
}
