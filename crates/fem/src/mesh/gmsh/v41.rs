//! MSH 4.1: sections of blocks by geometric entity.

use super::cursor::Cursor;
use super::file::{Element, File};
use super::groups::group;
use super::{GmshError, Kind};

pub(super) fn entities(file: &mut File, cursor: &mut Cursor) -> Result<(), GmshError> {
    let mut counts = [0; 4];
    for count in &mut counts {
        *count = cursor.size()?;
    }
    for (dim, count) in counts.into_iter().enumerate() {
        for _ in 0..count {
            let tag = cursor.int()?;
            described(file, cursor, (dim, tag))?;
        }
    }
    Ok(())
}

/// Parts of entities, one for each piece of a partitioned mesh. Elements are listed by them, and
/// their groups are written with them.
pub(super) fn partitioned_entities(file: &mut File, cursor: &mut Cursor) -> Result<(), GmshError> {
    cursor.size()?; // the number of partitions
    for _ in 0..cursor.size()? {
        // a ghost entity and its partition
        cursor.int()?;
        cursor.int()?;
    }
    let mut counts = [0; 4];
    for count in &mut counts {
        *count = cursor.size()?;
    }
    for (dim, count) in counts.into_iter().enumerate() {
        for _ in 0..count {
            let tag = cursor.int()?;
            // the entity that it is a part of, by dimension and number
            cursor.int()?;
            cursor.int()?;
            for _ in 0..cursor.size()? {
                cursor.int()?; // a partition
            }
            described(file, cursor, (dim, tag))?;
        }
    }
    Ok(())
}

/// The rest of an entity of a dimension: where it lies, its groups and what bounds it.
fn described(file: &mut File, cursor: &mut Cursor, entity: (usize, i32)) -> Result<(), GmshError> {
    // A point has its coordinates, everything else its bounding box.
    for _ in 0..if entity.0 == 0 { 3 } else { 6 } {
        cursor.real()?;
    }
    let mut groups = Vec::new();
    for _ in 0..cursor.size()? {
        groups.extend(group(cursor)?);
    }
    file.groups.insert(entity, groups);
    if entity.0 > 0 {
        for _ in 0..cursor.size()? {
            cursor.int()?;
        }
    }
    Ok(())
}

pub(super) fn nodes(file: &mut File, cursor: &mut Cursor) -> Result<(), GmshError> {
    let blocks = cursor.size()?;
    for _ in 0..3 {
        cursor.size()?;
    }
    for _ in 0..blocks {
        let dim = cursor.int()?;
        cursor.int()?;
        let parameters = if cursor.int()? == 0 { 0 } else { dim };
        let count = cursor.size()?;
        let first = file.nodes.len();
        // Pushed one by one: a count that the file does not live up to ends at its end, not in
        // a huge allocation.
        for _ in 0..count {
            file.nodes.push((cursor.size()?, [0.0; 3]));
        }
        for (_, point) in &mut file.nodes[first..] {
            for x in point {
                *x = cursor.real()?;
            }
            for _ in 0..parameters {
                cursor.real()?;
            }
        }
    }
    Ok(())
}

pub(super) fn elements(file: &mut File, cursor: &mut Cursor) -> Result<(), GmshError> {
    let blocks = cursor.size()?;
    for _ in 0..3 {
        cursor.size()?;
    }
    for _ in 0..blocks {
        cursor.int()?;
        let entity = cursor.int()?;
        let number = cursor.int()?;
        let Some(kind) = Kind::of(number) else {
            return Err(GmshError::UnknownType { place: cursor.place(), number });
        };
        // `$Entities` may stand after the elements, so groups are looked up at the end
        for _ in 0..cursor.size()? {
            let element =
                Element { element: cursor.size()?, kind, entity, group: None, first: file.corners.len() };
            for _ in 0..kind.nodes {
                file.corners.push(cursor.size()?);
            }
            file.elements.push(element);
        }
    }
    Ok(())
}
