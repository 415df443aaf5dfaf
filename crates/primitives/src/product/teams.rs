//! Products of halves by the matrix instructions of teams of four sub-groups, which read tiles of both factors from
//! local memory, where the copy engine puts them. Sums are in single precision.

use super::calls::{call, declare};
use super::nest::{self, Sum, exactly, join, part, split_side};
use super::places::{Applied, Side, TileProduct};
use kingpost_ir::text::NamedLayout;
use kingpost_ir::{Access, AddressSpace, AxisTag, Kernel, ScalarType};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::{Loop, Made, Schedule};
use kingpost_transforms::ScheduleSteps;
use kingpost_transforms::primitives::{
    ChangeLayout, ExpandArray, JoinArrayAxes, MoveInsns, PipelineLoop, PrefetchArray, ReplaceWithIntrinsic,
    SplitArrayAxis, SplitIname, Tag, TransposeArrayAxes,
};

/// Rows of a team, columns of a panel, terms of a tile: the sides of a box, which is copied at once.
const BOX: i64 = 64;

/// Rows of a sub-group.
const ROWS: i64 = 16;

/// Rows and columns of a matrix of the instruction; elements of 16 bytes.
const EIGHT: i64 = 8;

/// Matrices next to each other whose rows are stored at once.
const STORED: i64 = 4;

/// Groups below each other that come next to each other in the order of a launch, so that they share tiles of `b` in
/// the second cache: 0.76 to 0.79 of cuBLAS at 8192 rows, 0.72 row by row (H200, 2026-11-29).
const BELOW: i64 = 8;

/// The loops that add products, in the order of the entries: team, sub-group, row and pair of columns of a
/// work-item, panel, matrix, half of the rows, column.
type Entries = [String; 8];

/// A tile, and the loop over the boxes of its copy.
struct Tile {
    name: String,
    boxes: String,
}

/// Makes the kernel.
pub(super) fn steps(product: &TileProduct, s: &mut Schedule) -> Applied<Made> {
    let sum = nest::sum_of(s, product)?;
    check(product, &sum).map_err(|cause| product.refused(cause))?;
    let [i, j, k] = &product.loops;
    let [rows, columns, _] = product.tile;
    let side = |lengths| Side { lengths };
    let stems = ["tile", "g", "w", "y", "l"];
    let [row_tiles, g, w, y, l] = split_side(s, i, &side([rows, BOX, ROWS, EIGHT]), stems)?;
    let stems = ["tile", "p", "c", "q", "x"];
    let [column_tiles, p, c, q, x] = split_side(s, j, &side([columns, BOX, EIGHT, 2]), stems)?;
    let start: Entries = [g, w, l, q, p, c, y, x];
    s.reorder([&row_tiles, &column_tiles].into_iter().chain(&start))?;
    s.make(ExpandArray::new(&sum.held, start.clone()))?;
    let [tiles, terms] = s.make(exactly(k, BOX))?;
    let [units, of_unit] = s.make(exactly(terms.name(), EIGHT))?;
    let [add, store] = part(s, &start, [tiles.name(), &sum.after])?;
    let add = entries(s, add)?;
    let store = entries(s, store)?;
    let inside = [units.name().to_owned(), of_unit.name().to_owned()];
    s.reorder([tiles.name().to_owned()].iter().chain(&add).chain(&inside))?;
    let ty = factors(s.kernel(), &sum, &add).map_err(|cause| product.refused(cause))?;
    let copies = [copied(s, &sum, tiles.name(), &add, 0)?, copied(s, &sum, tiles.name(), &add, 1)?];
    let [start, add, store] = [joined(s, &start)?, joined(s, &add)?, joined(s, &store)?];
    s.make(JoinArrayAxes::new(&sum.held, 2))?;
    s.make(JoinArrayAxes::new(&sum.held, 3))?;
    let [stored, of_stored] = s.make(SplitIname::new(&store.matrices, STORED))?;
    let of_stored = of_stored.name();
    s.reorder([
        &store.team,
        &store.sub_group,
        stored.name(),
        &store.half,
        &store.work_item,
        of_stored,
        &store.column,
    ])?;
    let groups = place(s, [&row_tiles, &column_tiles])?;
    for (axis, loops) in [
        (2, [&start.team, &add.team, &store.team]),
        (1, [&start.sub_group, &add.sub_group, &store.sub_group]),
        (0, [&start.work_item, &add.work_item, &store.work_item]),
    ] {
        s.make(Tag::all(loops.map(Clone::clone), AxisTag::Local(axis)))?;
    }
    let [a, b] = &copies;
    let unrolled =
        [&start.matrices, &start.half, &start.column, &a.boxes, &b.boxes, stored.name(), &store.half];
    s.make(Tag::all(unrolled.map(ToString::to_string), AxisTag::Unrolled))?;
    s.make(PipelineLoop::new(tiles.name(), [&a.name, &b.name]).with_buffers(product.buffers))?;
    // after the products, one group of which goes on meanwhile
    s.make(MoveInsns::after([&a.boxes, &b.boxes], &add.team))?;
    let callee = format!("copy_box_{ty}_64x64");
    declare(s, &callee)?;
    for tile in &copies {
        call(s, &callee, &tile.name, false, 3)?;
    }
    let callee = format!("wgmma_m64n{columns}k64_{ty}");
    declare(s, &callee)?;
    s.make(ReplaceWithIntrinsic::new([&add.sub_group], callee))?;
    let callee = format!("store_rows_{ty}x8");
    declare(s, &callee)?;
    s.make(ReplaceWithIntrinsic::new([&store.work_item], callee))?;
    Ok(Made { loops: groups, ..Made::default() })
}

/// Whether there is an instruction for the tiles, and sums are in single precision.
fn check(product: &TileProduct, sum: &Sum) -> Result<(), Refusal> {
    let [rows, columns, terms] = product.tile;
    let fits = rows > 0 && rows % BOX == 0 && [128, 256].contains(&columns) && terms == BOX;
    if !fits || !(3..=16).contains(&product.buffers) {
        let found =
            format!("tiles of {rows} rows, {columns} columns and {terms} terms, {} buffers", product.buffers);
        let needed = "a multiple of 64 rows, 128 or 256 columns, 64 terms, and 3 to 16 buffers";
        return Err(Refusal::argument("tile", found, needed));
    }
    if product.sub_group != [ROWS, columns] {
        let [rows, found] = product.sub_group;
        let found = format!("parts of {rows} by {found} entries");
        return Err(Refusal::argument("sub_group", found, format!("16 rows and all {columns} columns")));
    }
    if sum.ty != ScalarType::F32 {
        return Err(Refusal::argument("by", format!("the sums are in `{}`", sum.ty), "sums in `f32`"));
    }
    Ok(())
}

/// The type of the factors: the rows of one lie along the terms, those of the other one along the columns.
fn factors(kernel: &Kernel, sum: &Sum, add: &Entries) -> Result<ScalarType, Refusal> {
    let reads = [0, 1].map(|side| read_of(kernel, sum, add, side));
    let column = kernel.iname(&add[7]);
    let along = |read: &Access| {
        let last = read.index.last();
        last.is_some_and(|e| column.is_some_and(|l| e.mentions(l)))
    };
    if let [Some(a), Some(b)] = reads {
        let [first, second] = [a, b].map(|read| kernel.vars[read.var].ty);
        if first == second && first.is_half() && along(b) && a.index.len() == 2 && b.index.len() == 2 {
            return Ok(first);
        }
    }
    let found = reads.map(|read| read.map_or("none".to_owned(), |read| kernel.show_access(read).to_string()));
    let found = format!("the factors are {}", found.join(" and "));
    Err(Refusal::argument("by", found, "`a[i, k]*b[k, j]` of `bf16`, or of `f16`"))
}

/// The read of one factor: it moves with the rows, or with the columns.
fn read_of<'k>(kernel: &'k Kernel, sum: &Sum, add: &Entries, side: usize) -> Option<&'k Access> {
    let insn = &kernel.insns[kernel.insn(&sum.update)?];
    let moved = kernel.iname(if side == 0 { &add[2] } else { &add[7] })?;
    let moves =
        |access: &&Access| access.var != insn.lhs.var && access.index.iter().any(|e| e.mentions(moved));
    insn.reads().into_iter().find(moves)
}

/// Copies a tile of a factor to local memory, box by box, with the swizzle that the instruction reads.
fn copied(s: &mut Schedule, sum: &Sum, tiles: &str, add: &Entries, side: usize) -> Applied<Tile> {
    let kernel = s.kernel();
    let found = read_of(kernel, sum, add, side)
        .map(|read| (kernel.vars[read.var].name.clone(), kernel.show_access(read).to_string()));
    let (var, text) = s.expected(found, "factor that moves with a side of the product")?;
    let derived = |name: &str| vec![format!("fetch_{name}"), format!("{name}_0"), format!("{name}_1")];
    let name = s.fresh_with(&format!("{var}_tile"), derived);
    let fetch = PrefetchArray::new(var, tiles, AddressSpace::Local).into_temporary(&name).only_reads([text]);
    let loops = s.make(fetch)?.loops;
    let loops = s.expected(<[Loop; 2]>::try_from(loops).ok(), "two loops that copy a tile")?;
    let [across, along] = loops.map(|l| l.name().to_owned());
    let (boxes, rows, along) = if side == 0 {
        let [boxes, rows] = s.make(exactly(&across, BOX))?;
        (boxes, rows.name().to_owned(), along)
    } else {
        let [boxes, along] = s.make(exactly(&along, BOX))?;
        (boxes, across, along.name().to_owned())
    };
    let boxes = boxes.name().to_owned();
    let [units, of_unit] = s.make(exactly(&along, EIGHT))?;
    s.reorder([&boxes, &rows, units.name(), of_unit.name()])?;
    let swizzle = if side == 0 {
        s.make(SplitArrayAxis::new(&name, 1, EIGHT))?;
        "swizzle(1 ^= 0)"
    } else {
        s.make(SplitArrayAxis::new(&name, 1, BOX))?;
        s.make(SplitArrayAxis::new(&name, 2, EIGHT))?;
        s.make(TransposeArrayAxes::new(&name, [1, 0, 2, 3]))?;
        "swizzle(2 ^= 1)"
    };
    let layout = s.expected(swizzle.parse::<NamedLayout>().ok(), "layout with a swizzle")?;
    s.make(ChangeLayout::new(&name, layout))?;
    Ok(Tile { name, boxes })
}

/// The loops of a nest, once those of work-items and matrices are joined.
struct Joined {
    team: String,
    sub_group: String,
    work_item: String,
    matrices: String,
    half: String,
    column: String,
}

fn joined(
    s: &mut Schedule,
    [team, sub_group, row, pair, panel, matrix, half, column]: &Entries,
) -> Applied<Joined> {
    let work_item = join(s, &[row.clone(), pair.clone()])?;
    let matrices = join(s, &[panel.clone(), matrix.clone()])?;
    let [team, sub_group, half, column] = [team, sub_group, half, column].map(Clone::clone);
    Ok(Joined { team, sub_group, work_item, matrices, half, column })
}

fn entries(s: &Schedule, loops: Vec<String>) -> Applied<Entries> {
    s.expected(Entries::try_from(loops).ok(), "loop for each place")
}

/// Deals tiles out to groups, some of them below each other, where there is a whole number of these.
fn place(s: &mut Schedule, [rows, columns]: [&str; 2]) -> Applied<Vec<Loop>> {
    let mut groups = vec![Loop::named(rows), Loop::named(columns)];
    if let Some([outer, inner]) = s.attempt(exactly(rows, BELOW))? {
        s.reorder([outer.name(), columns, inner.name()])?;
        groups = vec![inner, Loop::named(columns), outer];
    }
    for (axis, group) in (0..).zip(&groups) {
        s.make(Tag::new(group.name(), AxisTag::Group(axis)))?;
    }
    Ok(groups)
}
