//! A work-item for each line of nodes, which it contracts in registers.

use crate::ahead::{self, GROUPS, SOURCE};
use crate::mesh_plans;
use crate::operation::{Blocks, Operation};
use crate::plan::{Contraction, Plan, plan};
use crate::{Dimension, Element, Precision, Steps};
use kingpost_ir::kernel::VarKind;
use kingpost_ir::{AddressSpace, Affine, AxisTag, Variable};
use kingpost_primitives::primitives::{
    AliasStorage, ContractArray, ExpandArray, PadArray, PrefetchArray, SetAddressSpace, SplitIname, Tag,
};
use kingpost_primitives::{Schedule, ScheduleSteps, TransformError};

/// Whether lines take each other's place. It saves half of the local memory; in three dimensions up
/// to degree 4, where that does not bind, the rows of equal length cost more: 7.8 instead of 9.3
/// billion nodes a second at degree 4 (H200, 2026-11-24).
const fn takes_places(element: Element) -> bool {
    match element.dimension {
        Dimension::Two => true,
        Dimension::Three => element.degree >= 5,
    }
}

/// What each line of a contraction reads, in registers.
pub fn read_lines(s: &mut Schedule, contractions: &[Contraction]) -> Steps {
    for (along, lanes, read) in contractions {
        let Some(line) = lanes.last() else { continue };
        read.iter().try_for_each(|array| read_line(s, array, line, along))?;
    }
    Ok(())
}

/// What a line along a loop reads of an array, in registers.
pub(crate) fn read_line(s: &mut Schedule, array: &str, line: &str, along: &str) -> Steps {
    let name = format!("line_{array}_{along}");
    s.prefetch_as(PrefetchArray::new(array, line, AddressSpace::Private), &name).map(drop)
}

/// Takes several patches to a group, each with local arrays of its own: the names of the loop over
/// groups of them, and of that over the patches of one.
pub fn in_patches(
    s: &mut Schedule,
    block: &str,
    patches: u32,
    local: &[String],
) -> Result<[String; 2], TransformError> {
    let [group, inner] = [format!("{block}_group"), format!("{block}_in")];
    let (outer, inside) = (Some(group.clone()), Some(inner.clone()));
    s.apply(SplitIname { outer, inner: inside, ..SplitIname::new(block, i64::from(patches)) })?;
    for array in local {
        s.apply(ExpandArray::new(array, [inner.clone()]))?;
    }
    Ok([group, inner])
}

/// All arrays of a patch, which have at least a given number of axes, to local memory; their names.
///
/// # Errors
/// A step that is refused.
pub fn share(s: &mut Schedule, axes: usize) -> Result<Vec<String>, TransformError> {
    let is_array = |v: &&Variable| {
        v.kind == VarKind::Temporary && v.shape.len() >= axes && v.space == AddressSpace::Private
    };
    let arrays: Vec<String> = s.kernel().vars.values().filter(is_array).map(|v| v.name.clone()).collect();
    for array in &arrays {
        s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
    }
    Ok(arrays)
}

/// Nodes along an axis of a patch or cell, of a patch that is solved for inner ones.
const fn side(operation: Operation, element: Element) -> i64 {
    let k = element.degree as i64;
    match operation.blocks() {
        Blocks::Cells => k + 1,
        _ if matches!(operation, Operation::Smooth | Operation::PatchResidual) => 2 * k + 1,
        Blocks::Patches | Blocks::Points => 2 * k - 1,
    }
}

/// Lines of nodes in registers.
pub(crate) fn lines(
    s: &mut Schedule,
    (operation, element, precision): (Operation, Element, Precision),
    blocks: &[String],
    patches: u32,
    ahead: Option<u32>,
) -> Steps {
    let dimension = element.dimension;
    let of_mesh = matches!(operation, Operation::MeshResidual | Operation::MeshLoad);
    let plan = if of_mesh { mesh_plans::plan(operation, dimension) } else { plan(operation, dimension) };
    for (along, lanes, _) in plan.contractions {
        s.reorder(lanes.iter().copied().chain([*along]))?;
    }
    for (first, second, between) in plan.fused {
        first.iter().zip(*second).try_for_each(|(a, b)| s.fuse(*a, *b).map(|_| ()))?;
        let (array, axis) = *between;
        first.iter().try_for_each(|_| s.apply(ContractArray::new(array, axis)).map(|_| ()))?;
    }
    read_lines(s, plan.contractions)?;
    let copies_source = ahead.is_some() && element.degree > 1; // else one number
    if copies_source {
        ahead::copy_source(s, dimension, AddressSpace::Private)?;
    }
    let local = share(s, 2)?; // lines have one axis
    let axes = plan.copies.len() as u8;
    if let Some(block) = blocks.last().filter(|_| patches > 1) {
        let [group, inner] = in_patches(s, block, patches, &local)?;
        let mut parts = vec![inner.clone()];
        if ahead.is_some() {
            parts.extend(ahead::part(s, &inner, dimension, copies_source)?);
        }
        s.apply(Tag::all(parts, AxisTag::Local(axes - 1)))?;
        s.rename_loop(group, block.as_str())?;
    }
    let in_place = takes_places(element);
    // copies that are under way take no turns
    let is_copied = |array: &str| ahead.is_some() && ["u", SOURCE].contains(&array);
    if in_place {
        for array in local.iter().filter(|array| !is_copied(array)) {
            pad_as_a_patch(s, array, plan.copies.len(), side(operation, element))?;
        }
    }
    for turn in if in_place { plan.places } else { plan.turns } {
        let turn: Vec<&str> = turn.iter().copied().filter(|array| !is_copied(array)).collect();
        if let [first, _, ..] = turn[..] {
            s.apply(AliasStorage::new(turn.iter().copied(), format!("in_turn_{first}")))?;
        }
    }
    let Some(in_turn) = ahead else { return place(s, &plan, blocks, &[]) };
    ahead::take_in_turn(s, in_turn)?;
    place(s, &plan, blocks, &ahead::SOURCE_LOOPS)?;
    let arrays: &[_] = if copies_source { &["u", SOURCE] } else { &["u"] };
    ahead::pipeline(s, arrays, precision)
}

/// Gives an array the strides of one of a whole patch or cell, so that a line has its place in every
/// array that takes its turn in a buffer.
///
/// # Errors
/// A step that is refused.
pub fn pad_as_a_patch(s: &mut Schedule, array: &str, axes: usize, side: i64) -> Result<(), TransformError> {
    let Some(var) = s.kernel().var(array) else { return Ok(()) };
    let extents: Vec<i64> = s.kernel().vars[var].shape.iter().filter_map(Affine::as_constant).collect();
    let first = extents.len() - axes; // after the patch of the group, if there are several
    // all axes but the outermost: that one too where patches lie one after the other
    let rows = extents.iter().enumerate().skip(if first == 0 { 1 } else { first });
    for (axis, extent) in rows.filter(|(_, extent)| **extent < side) {
        s.apply(PadArray::new(array, axis as u32, side - extent))?;
    }
    Ok(())
}

/// Lines on the axes of a group, as the loops of another copy, everything inside them written out.
fn place(s: &mut Schedule, plan: &Plan, blocks: &[String], more: &'static [&'static str]) -> Steps {
    let lanes = plan.contractions.iter().map(|(_, lanes, _)| *lanes);
    let copies = &plan.copies[1..];
    let at = |depth: usize| {
        let along = lanes.clone().chain([copies, more]);
        along.filter_map(|nest| nest.iter().rev().nth(depth)).map(|name| (*name).to_owned()).collect()
    };
    let lanes: Vec<Vec<String>> = (0..copies.len()).map(at).collect();
    place_lanes(s, &lanes, blocks)
}

/// Loops on each axis of a group, and everything inside the blocks that has no axis written out.
pub(crate) fn place_lanes(s: &mut Schedule, lanes: &[Vec<String>], blocks: &[String]) -> Steps {
    for (axis, along) in lanes.iter().enumerate() {
        let along = along.iter().filter(|name| s.kernel().iname(name).is_some()).cloned();
        let along: Vec<String> = along.collect();
        s.apply(Tag::all(along, AxisTag::Local(axis as u8)))?;
    }
    let rest: Vec<String> =
        s.kernel().inames.values().filter(|i| i.tag == AxisTag::Sequential).map(|i| i.name.clone()).collect();
    let inside = rest.into_iter().filter(|name| name != GROUPS && !blocks.contains(name));
    s.apply(Tag::all(inside, AxisTag::Unrolled)).map(|_| ())
}
