//! The pairs of a degree of freedom and a cell, for the owners of rows.

use super::CsrPattern;
use super::terms::sorted;
use crate::lowering::SLICE;
use crate::tabulated::TabulatedError;
use rayon::prelude::*;

/// The rows of the matrices of entities by the degree of freedom that they are of, in slices of 32
/// degrees of freedom: the first pair of each, then the second of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRows {
    /// The first pair of each degree of freedom, i32 `[dofs]`; the next ones stand 32 places apart.
    pub firsts: Vec<i32>,
    /// Pairs of each degree of freedom, i32 `[dofs]`.
    pub counts: Vec<i32>,
    /// The entity of each pair, i32 `[pairs]`; 0 where a slice has none.
    pub entities: Vec<i32>,
    /// Which degree of freedom of the entity it is, i32 `[pairs]`.
    pub rows: Vec<i32>,
    /// Where the columns of the entity's degrees of freedom stand in the rows, i32 `[columns, pairs]`:
    /// the first component of each, behind which the others follow.
    pub slots: Vec<i32>,
}

fn refused(found: String, needed: &str) -> TabulatedError {
    TabulatedError::Invalid { place: "rows of a matrix".into(), found, needed: needed.into() }
}

impl CsrPattern {
    /// Entries of the longest row.
    #[must_use]
    pub fn longest_row(&self) -> usize {
        self.row_starts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0).unsigned_abs() as usize
    }

    /// The pairs of degrees of freedom and entities, of spaces whose degrees of freedom have so many
    /// components each.
    ///
    /// # Errors
    /// [`TabulatedError::Invalid`]: components that do not have the same columns side by side, more
    /// pairs than 32 bits count.
    pub fn owned_rows(&self, components: [usize; 2]) -> Result<OwnedRows, TabulatedError> {
        let [height, width] = self.extents;
        let [block, components] = components.map(|n| n.max(1));
        let (local, columns) = (height / block, width / components);
        self.check_components(block, components)?;
        let rows = self.entity_rows();
        let owners: Vec<i32> = rows.par_iter().step_by(block).map(|row| row / block as i32).collect();
        let n_owners = self.row_starts.len().saturating_sub(1) / block;
        let (starts, order) = sorted(&owners, n_owners);
        let counts: Vec<i32> = starts.windows(2).map(|w| w[1] - w[0]).collect();
        let mut firsts = Vec::with_capacity(n_owners);
        let mut n_pairs = 0_usize;
        for slice in counts.chunks(SLICE) {
            firsts.extend((0..slice.len()).map(|lane| (n_pairs + lane) as i32));
            n_pairs += SLICE * slice.iter().max().map_or(0, |n| n.unsigned_abs() as usize);
        }
        if i32::try_from(n_pairs).is_err() {
            return Err(refused(format!("{n_pairs} pairs"), "fewer than 32 bits count"));
        }
        let mut lists = OwnedRows {
            firsts,
            counts,
            entities: vec![0; n_pairs],
            rows: vec![0; n_pairs],
            slots: vec![0; columns * n_pairs],
        };
        let mut from = vec![-1_i32; n_pairs];
        for (owner, bounds) in starts.windows(2).enumerate() {
            for (turn, k) in order[bounds[0] as usize..bounds[1] as usize].iter().enumerate() {
                from[lists.firsts[owner] as usize + SLICE * turn] = *k;
            }
        }
        let split = |k: i32| (k as usize / local, k as usize % local);
        lists.entities.par_iter_mut().zip(&mut lists.rows).zip(&from).for_each(|((entity, row), k)| {
            if *k >= 0 {
                let (e, r) = split(*k);
                (*entity, *row) = (e as i32, r as i32);
            }
        });
        lists.slots.par_chunks_mut(n_pairs.max(1)).enumerate().for_each(|(column, slots)| {
            for (slot, k) in slots.iter_mut().zip(&from).filter(|(_, k)| **k >= 0) {
                let (entity, dof) = split(*k);
                let row = entity * height + dof * block;
                let start = self.row_starts[rows[row] as usize];
                *slot = self.positions[row * width + column * components] - start;
            }
        });
        Ok(lists)
    }

    /// The components of a degree of freedom have the same columns, side by side.
    fn check_components(&self, block: usize, components: usize) -> Result<(), TabulatedError> {
        let [height, width] = self.extents;
        if block * components == 1 || height * width == 0 {
            return Ok(());
        }
        let start = |row: usize, places: &[i32]| {
            let first = places[row * width];
            self.row_starts[self.row_starts.partition_point(|start| *start <= first) - 1]
        };
        let fits = |places: &[i32]| {
            let starts: Vec<i32> = (0..height).map(|row| start(row, places)).collect();
            let within = |row: usize, column: usize| places[row * width + column] - starts[row];
            (0..height).all(|row| {
                (0..width).all(|column| {
                    let (first, of) = (row - row % block, column - column % components);
                    within(row, column) == within(first, of) + (column - of) as i32
                })
            })
        };
        match self.positions.par_chunks_exact(height * width).all(fits) {
            true => Ok(()),
            false => Err(refused(
                "components of a degree of freedom with different columns".into(),
                "the same columns side by side; use a lookup table",
            )),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pairs_stand_in_slices() {
        // 40 intervals in a row, two components each
        let (n, cells) = (41_i32, 40_i32);
        let map: Vec<i32> = (0..cells).flat_map(|c| [2 * c, 2 * c + 1, 2 * c + 2, 2 * c + 3]).collect();
        let pattern = CsrPattern::of_rows(2 * n as usize, 2 * n as usize, 4, 4, &map, &map).unwrap();
        let owned = pattern.owned_rows([2, 2]).unwrap();
        assert_eq!((owned.firsts.len(), pattern.longest_row()), (41, 6));
        assert_eq!((&owned.counts[..3], owned.counts[40]), (&[1, 2, 2][..], 1));
        assert_eq!((owned.firsts[31], owned.firsts[32]), (31, 64));
        for dof in 0..41_usize {
            let mut cells = Vec::new();
            for turn in 0..owned.counts[dof] as usize {
                let pair = owned.firsts[dof] as usize + SLICE * turn;
                let (cell, local) = (owned.entities[pair] as usize, owned.rows[pair] as usize);
                cells.push(cell);
                assert_eq!(cell + local, dof);
                for column in 0..2 {
                    let place = pattern.row_starts[2 * dof] + owned.slots[column * owned.rows.len() + pair];
                    assert_eq!(pattern.columns[place as usize], 2 * (cell + column) as i32);
                }
            }
            let expected: Vec<usize> = (dof.saturating_sub(1)..(dof + 1).min(40)).collect();
            assert_eq!(cells, expected);
        }
    }

    #[test]
    fn components_with_different_columns_are_refused() {
        // the second component has a column less
        let pattern = CsrPattern::of_rows(2, 2, 2, 2, &[0, 1], &[0, 1]).unwrap();
        assert!(pattern.owned_rows([2, 2]).is_ok());
        let swapped = CsrPattern::of_rows(2, 2, 2, 2, &[0, 1], &[1, 0]).unwrap();
        let error = swapped.owned_rows([2, 2]).unwrap_err().to_string();
        assert!(error.contains("different columns"), "{error}");
    }
}
