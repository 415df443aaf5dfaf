//! The terms of a sparse matrix by row and by entry.

use super::CsrPattern;
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

/// The entries of the matrices of entities, by the entry of the sparse matrix that they are added to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryTerms {
    /// The first term of each entry, and behind them the number of terms: i32 `[entries + 1]`.
    pub starts: Vec<i32>,
    /// Where each term stands in `[entities, rows, columns]`, i32 `[terms]`.
    pub places: Vec<i32>,
}

impl CsrPattern {
    /// Entities.
    #[must_use]
    pub fn n_entities(&self) -> usize {
        self.positions.len().checked_div(self.extents[0] * self.extents[1]).unwrap_or(0)
    }

    /// The row of each row of an entity's matrix, `[entities, rows]`.
    #[must_use]
    pub fn entity_rows(&self) -> Vec<i32> {
        let row_of = |position: &i32| self.row_starts.partition_point(|start| start <= position) as i32 - 1;
        self.positions.par_iter().step_by(self.extents[1].max(1)).map(row_of).collect()
    }

    /// The column of each column of an entity's matrix, `[entities, columns]`.
    #[must_use]
    pub fn entity_columns(&self) -> Vec<i32> {
        let [height, width] = self.extents;
        let matrices = self.positions.chunks_exact((height * width).max(1));
        matrices.flat_map(|matrix| &matrix[..width]).map(|k| self.columns[*k as usize]).collect()
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
        let rows = self.entity_rows();
        let order = sorted(&rows, self.row_starts.len().saturating_sub(1)).1;
        let split = |k: &i32| (*k as usize / height, *k as usize % height);
        RowTerms {
            entities: order.par_iter().map(|k| split(k).0 as i32).collect(),
            rows: order.par_iter().map(|k| split(k).1 as i32).collect(),
            positions: order
                .par_iter()
                .flat_map_iter(|k| &self.positions[*k as usize * width..(*k as usize + 1) * width])
                .copied()
                .collect(),
        }
    }

    /// The entries of the matrices of entities in the order of the entries that they are added to,
    /// those of one entry in the order of the entities.
    #[must_use]
    pub fn entry_terms(&self) -> EntryTerms {
        let (starts, places) = sorted(&self.positions, self.columns.len());
        EntryTerms { starts, places }
    }
}

/// Where the places of each of `n` keys start, and the places by their keys.
pub(super) fn sorted(keys: &[i32], n: usize) -> (Vec<i32>, Vec<i32>) {
    let mut starts = vec![0_i32; n + 1];
    for key in keys {
        starts[*key as usize + 1] += 1;
    }
    for k in 0..n {
        starts[k + 1] += starts[k];
    }
    let mut next = starts.clone();
    let mut places = vec![0; keys.len()];
    for (place, key) in keys.iter().enumerate() {
        let at = &mut next[*key as usize];
        places[*at as usize] = place as i32;
        *at += 1;
    }
    (starts, places)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

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
            assert_eq!(rows.positions[term * 3..term * 3 + 3], pattern.positions[first..first + 3]);
        }
        let entries = pattern.entry_terms();
        assert_eq!(entries.starts.len(), pattern.columns.len() + 1);
        for (entry, bounds) in entries.starts.windows(2).enumerate() {
            for place in &entries.places[bounds[0] as usize..bounds[1] as usize] {
                assert_eq!(pattern.positions[*place as usize], entry as i32);
            }
        }
        assert_eq!(entries.places.len(), 12);
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
