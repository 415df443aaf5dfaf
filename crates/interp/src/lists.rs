//! Lists that are assumed to hold the values of a map.

use crate::InterpError;
use crate::integers::Integers;
use crate::memory::Memory;
use crate::node::Program;
use crate::store::element_name;
use kingpost_ir::ids::Id;
use kingpost_ir::kernel::{Assumption, Kernel};
use kingpost_ir::{BlockLists, ExclusiveItems, InverseLists, VarId};
use std::collections::HashMap;

/// Lists that have values from the start must hold those of their map; the maps of those that the
/// kernel fills are returned.
pub(crate) fn check_lists(
    kernel: &Kernel,
    program: &Program,
    memory: &Memory,
) -> Result<Vec<VarId>, InterpError> {
    let mut unchecked = Vec::new();
    for assumption in &kernel.assumptions {
        let Assumption::Lists(lists) = assumption else { continue };
        let mut arrays = Vec::with_capacity(7);
        for var in lists.vars() {
            arrays.extend(Integers::of(kernel, program, memory, var)?);
        }
        if arrays.len() < lists.vars().len() {
            unchecked.push(lists.map);
            continue;
        }
        let [map, items, counts, numbers, further @ ..] = &arrays[..] else { continue };
        let mut first = wrong(lists, map, items, counts, numbers);
        if let (Some(of), [starts, places, ..]) = (lists.inverse, further) {
            first = first.or_else(|| wrong_inverse(lists, of, items, numbers, starts, places));
        }
        if let (Some(of), Some(exclusive)) = (lists.exclusive, further.last()) {
            first = first.or_else(|| not_exclusive(lists, of, items, counts, exclusive));
        }
        if let Some((var, at, found, needed)) = first {
            let element = element_name(&kernel.vars[var].name, &program.shapes[var.index()], at);
            let assumption = kernel.show_assumption(assumption).to_string();
            return Err(InterpError::NotListed { assumption, element, found, needed });
        }
    }
    Ok(unchecked)
}

/// The first entry of an inverse that is wrong: its array, its place, its value, and what was needed.
///
/// Places of a number must increase: then none occurs twice, and all that have it are there if there
/// are as many places as elements.
fn wrong_inverse(
    lists: &BlockLists,
    of: InverseLists,
    items: &Integers<'_>,
    numbers: &Integers<'_>,
    starts: &Integers<'_>,
    places: &Integers<'_>,
) -> Option<(VarId, usize, i64, String)> {
    let [columns, rows] = numbers.shape[..] else { return None };
    let (capacity, block) = (*items.shape.last()?, usize::try_from(lists.block).ok()?);
    let width = *places.shape.last()?;
    for b in 0..rows.div_ceil(block) {
        let rows_of_block = block.min(rows - b * block);
        let mut next = 0;
        for k in 0..=capacity {
            let at = b * (capacity + 1) + k;
            let start = starts.at(at)?;
            let end = if k < capacity { starts.at(at + 1)? } else { start };
            if start != next || end < start || end > width as i64 {
                return Some((of.starts, at, start, format!("{next}, and a next one from there to {width}")));
            }
            let mut before = -1;
            for p in start as usize..end as usize {
                let place = places.at(b * width + p)?;
                let (column, row) = (place.div_euclid(lists.block), place.rem_euclid(lists.block));
                let there = place > before && column < columns as i64 && row < rows_of_block as i64;
                let number = there.then(|| column as usize * rows + b * block + row as usize);
                if number.and_then(|at| numbers.at(at)) != Some(k as i64) {
                    let needed = format!("the next place with number {k}");
                    return Some((of.places, b * width + p, place, needed));
                }
                before = place;
            }
            next = end;
        }
        if next != (rows_of_block * columns) as i64 {
            let needed = format!("{}, the elements of the block", rows_of_block * columns);
            return Some((of.starts, b * (capacity + 1) + capacity, next, needed));
        }
    }
    None
}

/// The first item that is not exclusive and should be, as [`wrong_inverse`].
fn not_exclusive(
    lists: &BlockLists,
    of: ExclusiveItems,
    items: &Integers<'_>,
    counts: &Integers<'_>,
    exclusive: &Integers<'_>,
) -> Option<(VarId, usize, i64, String)> {
    let [blocks, capacity] = items.shape[..] else { return None };
    let room = usize::try_from(of.room).ok()?.min(capacity);
    let mut times: HashMap<i64, usize> = HashMap::new();
    for b in 0..blocks {
        let own = exclusive.at(b)?;
        if usize::try_from(own).map_or(true, |own| own > room) {
            return Some((of.counts, b, own, format!("a number up to {room}")));
        }
        let others = room..usize::try_from(counts.at(b)?).unwrap_or(0).min(capacity);
        for k in (0..own as usize).chain(others) {
            *times.entry(items.at(b * capacity + k)?).or_default() += 1;
        }
    }
    for b in 0..blocks {
        for k in 0..exclusive.at(b)? as usize {
            let item = items.at(b * capacity + k)?;
            if times.get(&item).is_some_and(|times| *times > 1) {
                let needed = "an item that is there once in all lists".into();
                return Some((lists.items, b * capacity + k, item, needed));
            }
        }
    }
    None
}

/// The first entry that is wrong: its array, its place, its value, and what was needed.
fn wrong(
    lists: &BlockLists,
    map: &Integers<'_>,
    items: &Integers<'_>,
    counts: &Integers<'_>,
    numbers: &Integers<'_>,
) -> Option<(VarId, usize, i64, String)> {
    let [rows, columns] = map.shape[..] else { return None };
    let capacity = *items.shape.last()?;
    for row in 0..rows {
        let block = row / usize::try_from(lists.block).ok()?;
        let count = counts.at(block).unwrap_or(0);
        if usize::try_from(count).map_or(true, |count| count > capacity) {
            return Some((lists.counts, block, count, format!("a length up to {capacity}")));
        }
        for column in 0..columns {
            let place = column * rows + row;
            let Some(number) = numbers.at(place) else { continue };
            if !(0..count).contains(&number) {
                return Some((lists.numbers, place, number, format!("one of the {count} of its block")));
            }
            let (listed, value) = (block * capacity + number as usize, map.at(row * columns + column)?);
            let found = items.at(listed)?;
            if found != value {
                return Some((lists.items, listed, found, format!("{value}")));
            }
        }
    }
    None
}
