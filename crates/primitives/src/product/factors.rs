//! The factors of a product: tiles of them in local memory, which all work-items of a group copy, and what a
//! work-item or a sub-group multiplies of these, in registers.

use super::nest::{Nests, cut_before, join};
use super::places::{Applied, LANES, MATRIX_TERMS, Places};
use kingpost_ir::{Access, AddressSpace, Kernel};
use kingpost_steps::schedule::{Loop, Schedule};
use kingpost_steps::staging::Staged;
use kingpost_transforms::ScheduleSteps;
use kingpost_transforms::primitives::{
    ExpandArray, JoinArrayAxes, JoinInames, PrefetchArray, SplitArrayAxis, SplitIname, TransposeArrayAxes,
};

/// The loops that copy a tile.
#[derive(Clone, Debug, Default)]
pub(super) struct Copy {
    /// Rounds of the work-group, outer first.
    pub(super) turns: Vec<String>,
    pub(super) sub_group: String,
    pub(super) work_item: String,
    /// Along what is copied at once; none of one element.
    pub(super) vector: Option<String>,
}

/// A factor of the product.
pub(super) struct Factor {
    pub(super) tile: String,
    /// The loops of its copy: across rows of the array, and along them.
    loops: [String; 2],
    /// Whether the terms lie along rows of the array.
    pub(super) terms_last: bool,
    /// How many elements there are in these directions.
    extents: [i64; 2],
}

/// What is multiplied, in registers.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) arrays: Vec<String>,
    pub(super) sub_groups: Vec<String>,
    pub(super) work_items: Vec<String>,
    pub(super) unrolled: Vec<String>,
    pub(super) vectors: Vec<String>,
}

/// The read of one factor: it moves with a side of the result.
fn read_of<'k>(kernel: &'k Kernel, nests: &Nests, side: usize) -> Option<&'k Access> {
    let insn = &kernel.insns[kernel.insn(&nests.sum.update)?];
    let moved: Vec<_> = nests.add.along(side).into_iter().filter_map(|l| kernel.iname(l)).collect();
    let moves = |access: &&Access| access.index.iter().any(|e| moved.iter().any(|l| e.mentions(*l)));
    let held = insn.lhs.var;
    insn.reads().into_iter().filter(|access| access.var != held).find(moves)
}

/// Copies what an iteration of a loop reads of a factor to a temporary.
fn fetch(
    s: &mut Schedule,
    nests: &Nests,
    side: usize,
    at: &str,
    end: &str,
    space: AddressSpace,
) -> Applied<Staged> {
    let kernel = s.kernel();
    let found = read_of(kernel, nests, side)
        .map(|read| (kernel.vars[read.var].name.clone(), kernel.show_access(read).to_string()));
    let (var, text) = s.expected(found, "factor that moves with a side of the product")?;
    let derived = |name: &str| vec![format!("fetch_{name}"), format!("{name}_0"), format!("{name}_1")];
    let name = s.fresh_with(&format!("{}_{end}", var.trim_end_matches("_tile")), derived);
    s.make(PrefetchArray::new(var, at, space).into_temporary(name).only_reads([text]))
}

impl Factor {
    /// Copies the tile of a factor to local memory.
    pub(super) fn copied(s: &mut Schedule, nests: &Nests, places: &Places, side: usize) -> Applied<Self> {
        let terms = [Some(&nests.terms), nests.of_one.as_ref()];
        let kernel = s.kernel();
        let along_terms = |access: &Access| {
            let last = access.index.last();
            terms
                .into_iter()
                .flatten()
                .filter_map(|l| kernel.iname(l))
                .any(|l| last.is_some_and(|e| e.mentions(l)))
        };
        let terms_last = read_of(kernel, nests, side).is_some_and(along_terms);
        let made = fetch(s, nests, side, &nests.tiles, "tile", AddressSpace::Local)?;
        let loops = made.loops.iter().map(|l| l.name().to_owned()).collect::<Vec<_>>();
        let loops = s.expected(<[String; 2]>::try_from(loops).ok(), "two loops that copy a tile")?;
        let tile = made.temporary.name().to_owned();
        let entries = places.sides[side].lengths[0];
        let extents = if terms_last { [entries, places.terms] } else { [places.terms, entries] };
        if !places.by_matrix {
            // the entries of a term side by side, in blocks of which each work-item has a vector
            if terms_last {
                s.make(TransposeArrayAxes::new(&tile, [1, 0]))?;
            }
            s.make(SplitArrayAxis::new(&tile, 1, places.sides[side].lengths[2]))?;
        }
        Ok(Self { tile, loops, terms_last, extents })
    }

    /// Shares the copy of a tile among the work-items of a group: neighbours copy neighbours.
    pub(super) fn share(&self, s: &mut Schedule, places: &Places) -> Applied<Copy> {
        let [across, along] = &self.loops;
        // what is turned on the way goes element by element
        let vector = if self.terms_last && !places.by_matrix { 1 } else { places.vector };
        let (mut copy, mut along) = (Copy::default(), along.clone());
        if vector > 1 {
            let [vectors, inner] = s.make(SplitIname::new(&along, vector))?;
            copy.vector = Some(inner.name().to_owned());
            vectors.name().clone_into(&mut along);
        }
        let of_row = self.extents[1] / vector;
        let turned = vector == 1 && self.terms_last;
        let sector = places.of_sector();
        let rows = LANES / sector * places.sub_groups;
        if turned && of_row > sector && of_row < LANES && self.extents[0] % rows == 0 {
            return self.share_sectors(s, [sector, rows]);
        }
        // sub-groups have rows of their own, or several
        let rows = (LANES / of_row).max(1);
        let [turn, within] = s.make(SplitIname::new(across, rows * places.sub_groups))?;
        copy.turns.push(turn.name().to_owned());
        if of_row >= LANES {
            let [turn_along, item] = s.make(SplitIname::new(&along, LANES))?;
            copy.turns.push(turn_along.name().to_owned());
            (copy.sub_group, copy.work_item) = (within.name().to_owned(), item.name().to_owned());
            let order = copy.turns.iter().chain([&copy.sub_group, &copy.work_item]).chain(&copy.vector);
            s.reorder(order.cloned().collect::<Vec<_>>())?;
        } else {
            let [sub_group, row] = s.make(SplitIname::new(within.name(), rows))?;
            copy.work_item = s.make(JoinInames::new(row.name(), &along))?.name().to_owned();
            sub_group.name().clone_into(&mut copy.sub_group);
        }
        Ok(copy)
    }

    /// Shares the copy of a tile that is turned: neighbours copy the elements of a sector, then
    /// those of the next rows. Their places differ in the number of the bank, and the other sectors
    /// of a row are near, so that their addresses cost nothing; large distances take two
    /// instructions each.
    fn share_sectors(&self, s: &mut Schedule, [sector, rows]: [i64; 2]) -> Applied<Copy> {
        let [across, along] = &self.loops;
        let [turn, within] = s.make(SplitIname::new(across, rows))?;
        let [sub_group, row] = s.make(SplitIname::new(within.name(), LANES / sector))?;
        let [sectors, element] = s.make(SplitIname::new(along, sector))?;
        s.reorder([&turn, &sectors, &sub_group, &row, &element].map(Loop::name))?;
        let work_item = join(s, &[row.name().to_owned(), element.name().to_owned()])?;
        let turns = [&turn, &sectors].map(|l| l.name().to_owned()).to_vec();
        Ok(Copy { turns, sub_group: sub_group.name().to_owned(), work_item, vector: None })
    }
}

/// Reads what is multiplied into registers.
pub(super) fn take_parts(
    s: &mut Schedule,
    nests: &mut Nests,
    places: &Places,
    factors: &[Factor],
) -> Applied<Parts> {
    if places.by_matrix {
        return take_fragments(s, nests, places, factors);
    }
    let mut parts = Parts::default();
    for (side, factor) in factors.iter().enumerate() {
        let made = fetch(s, nests, side, &nests.terms, "part", AddressSpace::Private)?;
        let mut loops: Vec<String> = made.loops.iter().map(|l| l.name().to_owned()).collect();
        parts.vectors.extend(loops.pop());
        parts.unrolled.extend(loops);
        parts.arrays.push(made.temporary.name().to_owned());
        // the blocks have done their work: what is read is a box
        s.make(JoinArrayAxes::new(&factor.tile, 1))?;
    }
    Ok(parts)
}

/// Reads the operands of matrix instructions: of 8 rows, or columns, and 4 terms, each work-item has one.
fn take_fragments(
    s: &mut Schedule,
    nests: &mut Nests,
    places: &Places,
    factors: &[Factor],
) -> Applied<Parts> {
    let around = nests.add.sub_groups.clone();
    let mut parts = Parts::default();
    let mut made = Vec::new();
    for side in 0..2 {
        made.push(fetch(s, nests, side, &around[1], "part", AddressSpace::Private)?);
    }
    for staged in &made {
        s.make(ExpandArray::new(staged.temporary.name(), around.clone()))?;
    }
    let cut = <[String; 2]>::try_from(cut_before(s, &around, &nests.add.blocks[0])?).ok();
    nests.add.sub_groups = s.expected(cut, "loop for each place")?;
    parts.sub_groups.push(join(s, &around)?);
    for (side, (staged, factor)) in made.iter().zip(factors).enumerate() {
        let array = staged.temporary.name();
        let loops: Vec<String> = staged.loops.iter().map(|l| l.name().to_owned()).collect();
        let loops = s.expected(<[String; 2]>::try_from(loops).ok(), "two loops that read a part")?;
        let [entries, term] = if factor.terms_last {
            loops
        } else {
            let [term, entries] = loops;
            [entries, term]
        };
        if !factor.terms_last {
            s.make(TransposeArrayAxes::new(array, [0, 1, 3, 2]))?;
        }
        // rows of an instruction in two halves; columns are 8
        let block = places.sides[side].lengths[2];
        let [blocks, within] = s.make(SplitIname::new(entries, block))?;
        let mut outer = vec![blocks.name().to_owned()];
        let mut row = within.name().to_owned();
        if block > 2 * MATRIX_TERMS {
            let [half, within] = s.make(SplitIname::new(&row, 2 * MATRIX_TERMS))?;
            outer.push(half.name().to_owned());
            within.name().clone_into(&mut row);
        }
        s.reorder(outer.iter().chain([&row, &term]).cloned().collect::<Vec<_>>())?;
        parts.work_items.push(join(s, &[row, term])?);
        s.make(SplitArrayAxis::new(array, 2, 2 * MATRIX_TERMS))?;
        // of sub-group, sub-group, block, row and term: work-items before blocks
        if outer.len() > 1 {
            s.make(SplitArrayAxis::new(array, 2, block / (2 * MATRIX_TERMS)))?;
            s.make(TransposeArrayAxes::new(array, [0, 1, 4, 5, 2, 3]))?;
        } else {
            s.make(TransposeArrayAxes::new(array, [0, 1, 3, 4, 2]))?;
        }
        s.make(JoinArrayAxes::new(array, 2))?;
        s.make(JoinArrayAxes::new(array, 0))?;
        parts.unrolled.extend(outer);
        parts.arrays.push(array.to_owned());
    }
    Ok(parts)
}
