//! The terms of a sparse matrix by row and by entry.

use super::CsrPattern;
use super::sorted::sorted;
use rayon::prelude::*;

/// The rows of the matrices of entities, by the row of the sparse matrix that they are added to: the
/// cells by degree of freedom of Trotter et al. 2023, §3.7.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowTerms {
    /// The entity of each term, i32 `[terms]`.
    pub entities: Vec<i32>,
    /// Which row of the entity's matrix it is, i32 `[terms]`.
    pub rows: Vec<i32>,
    /// Where its entries stand, i32 `[terms, columns]` row-major.
    pub positions: Vec<i32>,
}

/// The entries of the matrices or vectors of entities, by the entry of the result that they are
/// added to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryTerms {
    /// The first term of each entry, and after them the number of terms: i32 `[entries + 1]`.
    pub starts: Vec<i32>,
    /// Where each term stands in `[entities, rows, columns]`, i32 `[terms]`.
    pub places: Vec<i32>,
}

impl EntryTerms {
    /// A map of degrees of freedom, transposed: of each of `n`, with a given number of components,
    /// the places in the vectors of entities, `[entities, columns, components]`.
    ///
    /// ```
    /// use kingpost_fem::sparse::EntryTerms;
    ///
    /// // two intervals, which share the node 1
    /// let terms = EntryTerms::of_map(&[0, 1, 1, 2], 3, 1);
    /// assert_eq!((terms.starts, terms.places), (vec![0, 1, 3, 4], vec![0, 1, 2, 3]));
    /// ```
    #[must_use]
    pub fn of_map(map: &[i32], n: usize, components: usize) -> Self {
        let width = components.max(1) as i32;
        let scalars: Vec<i32> =
            map.par_iter().flat_map_iter(|dof| (0..width).map(move |k| dof * width + k)).collect();
        let (starts, places) = sorted(&scalars, n * components.max(1));
        Self { starts, places }
    }
}

impl CsrPattern {
    /// Entities.
    #[must_use]
    pub fn n_entities(&self) -> usize {
        self.owners.len().checked_div(self.extents[0] / self.components[0]).unwrap_or(0)
    }

    /// The row of each row of an entity's matrix, `[entities, rows]`.
    #[must_use]
    pub fn entity_rows(&self) -> Vec<i32> {
        let n = self.components[0] as i32;
        self.owners.par_iter().flat_map_iter(|owner| (0..n).map(move |k| owner * n + k)).collect()
    }

    /// The column of each column of an entity's matrix, `[entities, columns]`.
    #[must_use]
    pub fn entity_columns(&self) -> Vec<i32> {
        let [height, width] = [0, 1].map(|k| self.extents[k] / self.components[k]);
        let n = self.components[1];
        let matrices = self.blocks.par_chunks_exact((height * width).max(1));
        let rows = matrices.zip(self.owners.par_chunks_exact(height.max(1)));
        rows.flat_map_iter(|(matrix, owners)| {
            let owner = owners[0] as usize;
            let start = self.row_starts[owner * self.components[0]] as usize;
            matrix[..width].iter().flat_map(move |block| {
                let first = start + (*block - self.block_starts[owner]) as usize * n;
                self.columns[first..first + n].iter().copied()
            })
        })
        .collect()
    }

    /// Halvings that leave one entry of the longest row.
    #[must_use]
    pub fn search_steps(&self) -> usize {
        let longest = self.row_starts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
        longest.max(1).unsigned_abs().next_power_of_two().trailing_zeros() as usize
    }

    /// The rows of the matrices of entities in the order of the rows that they are added to, those of
    /// one row in the order of the entities.
    #[must_use]
    pub fn row_terms(&self) -> RowTerms {
        let [height, width] = self.extents;
        let (rows, positions) = (self.entity_rows(), self.positions());
        let order = sorted(&rows, self.row_starts.len().saturating_sub(1)).1;
        let split = |k: &i32| (*k as usize / height, *k as usize % height);
        RowTerms {
            entities: order.par_iter().map(|k| split(k).0 as i32).collect(),
            rows: order.par_iter().map(|k| split(k).1 as i32).collect(),
            positions: order
                .par_iter()
                .flat_map_iter(|k| &positions[*k as usize * width..(*k as usize + 1) * width])
                .copied()
                .collect(),
        }
    }

    /// The entries of the matrices of entities in the order of the entries that they are added to,
    /// those of one entry in the order of the entities.
    #[must_use]
    pub fn entry_terms(&self) -> EntryTerms {
        let (starts, places) = sorted(&self.positions(), self.columns.len());
        EntryTerms { starts, places }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sparse::{CsrPart, EntryOrder};

    /// Two intervals with the nodes 0, 1 and 1, 2, and a column that stands for all rows.
    #[test]
    fn terms_of_rows_and_entries_are_those_of_entities() {
        let map = [0, 1, 1, 2];
        let pattern = CsrPattern::of_rows(3, 4, 2, 3, &map, &[0, 1, 3, 1, 2, 3]).unwrap();
        assert_eq!(pattern.entity_rows(), map);
        assert_eq!(pattern.entity_columns(), [0, 1, 3, 1, 2, 3]);
        let rows = pattern.row_terms();
        assert_eq!((&rows.entities[..], &rows.rows[..]), (&[0, 0, 1, 1][..], &[0, 1, 0, 1][..]));
        for (term, (entity, row)) in rows.entities.iter().zip(&rows.rows).enumerate() {
            let first = (entity * 6 + row * 3) as usize;
            assert_eq!(rows.positions[term * 3..term * 3 + 3], pattern.positions()[first..first + 3]);
        }
        let entries = pattern.entry_terms();
        assert_eq!(entries.starts.len(), pattern.columns.len() + 1);
        for (entry, bounds) in entries.starts.windows(2).enumerate() {
            for place in &entries.places[bounds[0] as usize..bounds[1] as usize] {
                assert_eq!(pattern.positions()[*place as usize], entry as i32);
            }
        }
        assert_eq!(entries.places.len(), 12);
    }

    /// A triangle and an interval of three components a node, by degree of freedom and by scalar.
    #[test]
    fn components_give_the_pattern_of_scalars() {
        let map = [0, 2, 3, 3, 1, 0];
        let scalars = |map: &[i32], n: i32| -> Vec<i32> {
            map.iter().flat_map(|d| (0..n).map(move |k| d * n + k)).collect()
        };
        let part = CsrPart { extents: [3, 3], rows: &map, columns: &map };
        for [height, width] in [[3, 3], [2, 1], [1, 2]] {
            let pattern = CsrPattern::of_components([4, 4], [height, width], &[part]).unwrap().remove(0);
            let rows = (scalars(&map, height as i32), scalars(&map, width as i32));
            let by_scalar =
                CsrPattern::of_rows(4 * height, 4 * width, 3 * height, 3 * width, &rows.0, &rows.1).unwrap();
            assert_eq!((&pattern.row_starts, &pattern.columns), (&by_scalar.row_starts, &by_scalar.columns));
            assert_eq!(pattern.positions(), by_scalar.positions());
            assert_eq!((pattern.entity_rows(), pattern.entity_columns()), rows);
            assert_eq!(pattern.n_entities(), 2);
            let blocks = pattern.by_blocks();
            let entries = pattern.clone().ordered(EntryOrder::Blocks);
            assert_eq!((blocks.extents, blocks.row_starts.len()), ([height, width], 5));
            for (position, entry) in pattern.positions().iter().zip(entries.positions().iter()) {
                let row = pattern.row_starts.partition_point(|start| start <= position) - 1;
                let block = *entry as usize / (height * width);
                let (of_rows, of_columns) = (*entry as usize / width % height, *entry as usize % width);
                let dof = blocks.row_starts.partition_point(|start| *start as usize <= block) - 1;
                let column = blocks.columns[block] as usize * width + of_columns;
                assert_eq!(
                    (dof * height + of_rows, column),
                    (row, pattern.columns[*position as usize] as usize)
                );
            }
        }
    }

    #[test]
    fn steps_leave_one_entry_of_the_longest_row() {
        for (longest, steps) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (15, 4), (16, 4), (17, 5)] {
            let row: Vec<i32> = (0..longest).collect();
            let pattern = CsrPattern::of_rows(1, 20, 1, longest as usize, &[0], &row).unwrap();
            assert_eq!(pattern.search_steps(), steps, "{longest}");
        }
        assert_eq!(CsrPattern::of_rows(0, 0, 1, 1, &[], &[]).unwrap().search_steps(), 0);
    }
}
