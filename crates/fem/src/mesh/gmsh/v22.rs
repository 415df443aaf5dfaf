//! MSH 2.2: flat lists, with tags at each element.

use super::cursor::Cursor;
use super::file::{Element, File};
use super::{GmshError, Kind, groups};

/// A number that must not be negative.
fn count(cursor: &mut Cursor) -> Result<u64, GmshError> {
    let number = cursor.int()?;
    u64::try_from(number).map_err(|_| cursor.error("a non-negative integer", format!("`{number}`")))
}

/// The length of a list: text even in a binary file.
fn length(cursor: &mut Cursor) -> Result<u64, GmshError> {
    let binary = std::mem::replace(&mut cursor.binary, false);
    let length = count(cursor)?;
    cursor.binary = binary;
    if binary {
        cursor.end_of_line();
    }
    Ok(length)
}

pub(super) fn nodes(file: &mut File, cursor: &mut Cursor) -> Result<(), GmshError> {
    for _ in 0..length(cursor)? {
        let node = count(cursor)?;
        let mut point = [0.0; 3];
        for x in &mut point {
            *x = cursor.real()?;
        }
        file.nodes.push((node, point));
    }
    Ok(())
}

pub(super) fn elements(file: &mut File, cursor: &mut Cursor) -> Result<(), GmshError> {
    let mut left = length(cursor)?;
    while left > 0 {
        // a block of a binary file has one header, each element of a text one of its own
        let (first, number, follow, tags);
        if cursor.binary {
            (number, follow, tags) = (cursor.int()?, count(cursor)?, count(cursor)?);
            first = None;
        } else {
            first = Some(count(cursor)?);
            (number, follow) = (cursor.int()?, 1);
            tags = 0;
        }
        let Some(kind) = Kind::of(number) else {
            return Err(GmshError::UnknownType { place: cursor.place(), number });
        };
        if follow == 0 || follow > left {
            return Err(cursor.error("the number of elements that follow", format!("`{follow}`")));
        }
        left -= follow;
        for _ in 0..follow {
            let (element, tags) = match first {
                Some(element) => (element, count(cursor)?),
                None => (count(cursor)?, tags),
            };
            one(file, cursor, element, kind, tags)?;
        }
    }
    Ok(())
}

/// Tags are the physical group, the geometric entity, and what partitions say.
fn one(file: &mut File, cursor: &mut Cursor, element: u64, kind: Kind, tags: u64) -> Result<(), GmshError> {
    let (mut group, mut entity) = (None, 0);
    for place in 0..tags {
        match place {
            0 => group = groups::group(cursor)?,
            1 => entity = cursor.int()?,
            _ => drop(cursor.int()?),
        }
    }
    let first = file.corners.len();
    for _ in 0..kind.nodes {
        file.corners.push(count(cursor)?);
    }
    file.elements.push(Element { element, kind, entity, group, first });
    Ok(())
}
