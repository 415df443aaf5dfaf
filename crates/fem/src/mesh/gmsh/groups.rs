//! Which physical groups elements belong to.
//!
//! MSH 4.1 lists the groups of a geometric entity, or of a part of it in a partitioned mesh, and
//! MSH 2.2 writes an element once for each of its groups. A negative number says that the group
//! holds the entity with the other orientation, so that its sign is no part of the group's name.

use super::file::{Element, File};
use super::kind::CellKind;
use super::{Cursor, GmshError, shown};
use std::collections::HashMap;

/// The group that a number names; none for 0.
pub(super) fn group(cursor: &mut Cursor) -> Result<Option<i32>, GmshError> {
    let number = cursor.int()?;
    match number.checked_abs() {
        Some(0) => Ok(None),
        Some(group) => Ok(Some(group)),
        None => Err(cursor.error("the number of a physical group", format!("`{number}`"))),
    }
}

/// A name in quotes that stands on the rest of a line.
fn name(cursor: &mut Cursor) -> Result<String, GmshError> {
    let line = String::from_utf8_lossy(cursor.line()).trim().to_owned();
    match line.strip_prefix('"').and_then(|line| line.strip_suffix('"')) {
        Some(name) => Ok(name.to_owned()),
        None => Err(cursor.error("a name in quotes", shown(Some(line.as_bytes())))),
    }
}

/// An element that is a cell, and its groups.
pub(super) struct Cell<'a> {
    pub(super) element: &'a Element,
    pub(super) groups: Vec<i32>,
}

/// What copies of a cell have in common: the geometric entity and the nodes of each facet. Nodes
/// alone are not enough, as two quadrangles may have the same.
type CopyKey = (i32, Vec<Vec<u64>>, Vec<u64>);

impl File {
    /// The names of groups, which are text in binary files, too.
    pub(super) fn physical_names(&mut self, cursor: &mut Cursor) -> Result<(), GmshError> {
        let binary = std::mem::replace(&mut cursor.binary, false);
        for _ in 0..cursor.size()? {
            let dim = cursor.size()? as usize;
            let Some(group) = group(cursor)? else { continue };
            self.names.insert(name(cursor)?, (dim, group));
        }
        cursor.binary = binary;
        cursor.mark("$EndPhysicalNames")
    }

    /// The groups of an element, as its entry or its entity says.
    pub(super) fn groups_of<'a>(&'a self, element: &'a Element) -> &'a [i32] {
        match self.old {
            true => element.group.as_slice(),
            false => self.groups.get(&(element.kind.dim, element.entity)).map_or(&[], Vec::as_slice),
        }
    }

    /// The cells with their groups. Elements of MSH 2.2 that differ in their groups alone are one.
    pub(super) fn grouped<'a>(&self, kind: CellKind, elements: Vec<&'a Element>) -> Vec<Cell<'a>> {
        let mut cells: Vec<Cell> = Vec::with_capacity(elements.len());
        let mut known: HashMap<CopyKey, usize> = HashMap::new();
        for element in elements {
            let groups = self.groups_of(element).to_vec();
            if self.old {
                let next = cells.len();
                let first = *known.entry(self.copy_key(kind, element)).or_insert(next);
                // the same groups again, or none: a duplicate, which the mesh refuses
                let is_copy =
                    first != next && groups.iter().any(|group| !cells[first].groups.contains(group));
                if is_copy && !cells[first].groups.is_empty() {
                    cells[first].groups.extend(groups);
                    continue;
                }
            }
            cells.push(Cell { element, groups });
        }
        cells
    }

    fn copy_key(&self, kind: CellKind, element: &Element) -> CopyKey {
        let nodes = self.corners_of(element);
        let facet = |corners: &&[usize]| {
            let facet: Vec<u64> = corners.iter().map(|corner| nodes[kind.places[*corner]]).collect();
            sorted(&facet)
        };
        let mut facets: Vec<Vec<u64>> = kind.shape.facets().iter().map(facet).collect();
        facets.sort_unstable();
        (element.entity, facets, sorted(nodes))
    }
}

fn sorted(nodes: &[u64]) -> Vec<u64> {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes
}
