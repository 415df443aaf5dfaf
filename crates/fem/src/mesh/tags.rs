//! Tags of cells: a set of numbers for each.

use std::collections::{BTreeMap, BTreeSet};

/// The tags of the cells of a mesh: for each cell a set of numbers, of which a mesh has few.
///
/// ```
/// use kingpost_fem::mesh::CellTags;
///
/// let tags = CellTags::new([&[7][..], &[8, 7], &[]]);
/// assert_eq!((tags.of(0), tags.of(1), tags.of(2)), (&[7][..], &[7, 8][..], &[][..]));
/// assert_eq!(tags.all().into_iter().collect::<Vec<_>>(), [7, 8]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellTags {
    /// The sets that some cell has, each once and ascending.
    sets: Vec<Vec<i32>>,
    /// Which of them each cell has.
    of_cells: Vec<u32>,
}

impl CellTags {
    /// The tags of each cell, in any order.
    #[must_use]
    pub fn new<'a>(cells: impl IntoIterator<Item = &'a [i32]>) -> Self {
        let mut known: BTreeMap<Vec<i32>, u32> = BTreeMap::new();
        let mut of_cells = Vec::new();
        let mut set = Vec::new();
        for tags in cells {
            set.clear();
            set.extend_from_slice(tags);
            set.sort_unstable();
            set.dedup();
            let number = match known.get(&set) {
                Some(number) => *number,
                None => {
                    let number = known.len() as u32;
                    known.insert(set.clone(), number);
                    number
                }
            };
            of_cells.push(number);
        }
        // equal tags are equal values, whatever cell comes first
        let mut places = vec![0; known.len()];
        known.values().zip(0..).for_each(|(number, place)| places[*number as usize] = place);
        of_cells.iter_mut().for_each(|number| *number = places[*number as usize]);
        Self { sets: known.into_keys().collect(), of_cells }
    }

    /// The tags of a cell, ascending; none if there is no such cell.
    #[must_use]
    pub fn of(&self, cell: usize) -> &[i32] {
        self.of_cells.get(cell).map_or(&[], |set| &self.sets[*set as usize])
    }

    /// The number of cells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.of_cells.len()
    }

    /// Whether there are no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of_cells.is_empty()
    }

    /// The tags of each cell, in the order of the cells.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[i32]> {
        self.of_cells.iter().map(|set| &*self.sets[*set as usize])
    }

    /// The tags that some cell has.
    #[must_use]
    pub fn all(&self) -> BTreeSet<i32> {
        self.sets.iter().flatten().copied().collect()
    }

    /// The tags of some cells, in the order given.
    pub(super) fn rows(&self, cells: impl IntoIterator<Item = usize>) -> Self {
        Self::new(cells.into_iter().map(|cell| self.of(cell)))
    }
}

#[cfg(test)]
mod tests {
    use super::CellTags;

    #[test]
    fn equal_tags_are_equal_whatever_cell_comes_first() {
        let tags = CellTags::new([&[7, 3, 7][..], &[], &[-1], &[3, 7]]);
        assert_eq!(tags.iter().collect::<Vec<_>>(), [&[3, 7][..], &[], &[-1], &[3, 7]]);
        assert_eq!(tags.rows([2, 3]), CellTags::new([&[-1][..], &[7, 3]]));
        assert_eq!((tags.len(), tags.of(4)), (4, &[][..]));
        assert_eq!(tags.rows([1]).all().len(), 0);
    }
}
