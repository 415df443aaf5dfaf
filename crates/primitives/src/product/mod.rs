//! A step that is made of others: a product of matrices in tiles, from its three loops.
//!
//! A work-group computes a tile of the result, term by term from tiles of the factors in local memory; each
//! of its sub-groups computes a part of the tile, which is dealt out to its work-items and stays in their
//! registers. Loops are split and joined before anything is distributed, so that the three nests that start,
//! add up and store the entries are dealt out alike.

mod ahead;
mod calls;
mod factors;
mod nest;
mod places;
mod teams;

pub use places::{TileProduct, Units};

use factors::{Copy, Factor, Parts};
use kingpost_ir::{AddressSpace, AxisTag};
use kingpost_steps::refusal::TransformError;
use kingpost_steps::schedule::{Made, Schedule};
use kingpost_steps::{Combined, CombinedInfo};
use kingpost_transforms::primitives::{PadArray, SetAddressSpace, Tag};
use nest::{Joined, Nests};
use places::{Applied, PADDING, Places};

/// The step, for a set.
pub(crate) fn combined() -> CombinedInfo {
    CombinedInfo::of::<TileProduct>(
        "tile_product",
        "Computes a product of matrices in tiles: copies ahead, parts in registers, matrix instructions.",
    )
}

impl Combined for TileProduct {
    fn apply(&self, schedule: &mut Schedule) -> Result<Made, TransformError> {
        schedule.together(|s| match self.by {
            Units::WorkItems | Units::MatrixInstructions => steps(self, s),
            Units::TeamInstructions => teams::steps(self, s),
        })
    }
}

fn steps(product: &TileProduct, s: &mut Schedule) -> Applied<Made> {
    let sum = nest::sum_of(s, product)?;
    let places = product.places(sum.ty).map_err(|cause| product.refused(cause))?;
    let mut nests = nest::deal(s, product, sum, &places)?;
    let (mut factors, mut copies) = (Vec::new(), Vec::new());
    for side in 0..2 {
        factors.push(Factor::copied(s, &nests, &places, side)?);
    }
    let parts = factors::take_parts(s, &mut nests, &places, &factors)?;
    let joined = nest::join_work_items(s, &nests)?;
    let entries = nest::wind(s, &places, &nests.add)?;
    for factor in &factors {
        copies.push(factor.share(s, &places)?);
        // what is copied and read along rows by vectors is in different banks as it is
        if places.by_matrix || factor.terms_last {
            s.make(PadArray::new(&factor.tile, 1, PADDING))?;
        }
    }
    if places.by_matrix {
        for part in &parts.arrays {
            s.make(SetAddressSpace::new(part, AddressSpace::SubGroup))?;
        }
    }
    tag(s, (&places, &nests, entries), &joined, &copies, &parts)?;
    calls::finish(s, &places, (&nests, &joined), &factors, &copies, &parts)?;
    Ok(Made { loops: nests.groups.to_vec(), ..Made::default() })
}

/// Says what runs where.
fn tag(
    s: &mut Schedule,
    (places, nests, entries): (&Places, &Nests, Vec<String>),
    joined: &Joined,
    copies: &[Copy],
    parts: &Parts,
) -> Applied<()> {
    for (axis, group) in [1, 0].into_iter().zip(&nests.groups) {
        s.make(Tag::new(group.name(), AxisTag::Group(axis)))?;
    }
    let of_copies = copies.iter().map(|copy| &copy.sub_group);
    let sub_groups = joined.sub_groups.iter().chain(&parts.sub_groups).chain(of_copies);
    s.make(Tag::all(sub_groups.cloned(), AxisTag::Local(1)))?;
    let of_copies = copies.iter().map(|copy| &copy.work_item);
    let work_items = joined.work_items.iter().chain(&parts.work_items).chain(of_copies);
    s.make(Tag::all(work_items.cloned(), AxisTag::Local(0)))?;
    let Nests { start, store, .. } = nests;
    let mut unrolled = [start.blocks.as_slice(), &start.entries, &entries, &store.blocks].concat();
    unrolled.push(store.entries[0].clone());
    if !places.by_matrix {
        unrolled.push(nests.terms.clone());
    }
    unrolled.extend(copies.iter().flat_map(|copy| &copy.turns).chain(&parts.unrolled).cloned());
    s.make(Tag::all(unrolled, AxisTag::Unrolled))?;
    let mut vectors = vec![store.entries[1].clone()];
    vectors.extend(parts.vectors.iter().cloned());
    if places.buffers == 1 {
        vectors.extend(copies.iter().filter_map(|copy| copy.vector.clone()));
    }
    s.make(Tag::all(vectors, AxisTag::Vector))
}
