//! The pairs of a degree of freedom and a cell, for the owners of rows.

use super::sorted::sorted;
use super::{CsrPattern, PatternError};
use rayon::prelude::*;

/// Degrees of freedom of a slice, whose pairs stand one after the other: a sub-group reads what lies
/// side by side.
pub const SLICE: usize = 32;

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
    /// Where the columns of the entity's degrees of freedom stand in the rows, i32 `[words, pairs]`: the
    /// first component of each, after which the others follow, several in a number as [`SlotPacking`]
    /// says.
    pub slots: Vec<i32>,
}

/// Where the pairs of each degree of freedom stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slices {
    /// As [`OwnedRows::firsts`].
    pub firsts: Vec<i32>,
    /// As [`OwnedRows::counts`].
    pub counts: Vec<i32>,
    /// Pairs of all, with places that have none.
    pub n_pairs: usize,
}

impl Slices {
    /// Of pairs that stand by degrees of freedom, where those of each start, and after them their number.
    ///
    /// # Errors
    /// [`PatternError::Invalid`]: more pairs than 32 bits count.
    pub fn of(starts: &[i32]) -> Result<Self, PatternError> {
        Self::of_counts(starts.windows(2).map(|w| w[1] - w[0]).collect())
    }

    /// The same of how many pairs each degree of freedom has.
    pub(super) fn of_counts(counts: Vec<i32>) -> Result<Self, PatternError> {
        let mut firsts = Vec::with_capacity(counts.len());
        let mut n_pairs = 0_usize;
        for slice in counts.chunks(SLICE) {
            firsts.extend((0..slice.len()).map(|lane| (n_pairs + lane) as i32));
            n_pairs += SLICE * slice.iter().max().map_or(0, |n| n.unsigned_abs() as usize);
        }
        if i32::try_from(n_pairs).is_err() {
            return Err(refused(format!("{n_pairs} pairs"), "fewer than 32 bits count"));
        }
        Ok(Self { firsts, counts, n_pairs })
    }
}

/// How many places in a row stand in one number of 32 bits: what the owners of rows read most of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotPacking {
    /// Four, of rows of at most 128 entries.
    Four,
    /// Two, of rows of at most 32,768.
    Two,
    /// One.
    One,
}

impl SlotPacking {
    /// The one for rows of a given number of entries.
    #[must_use]
    pub const fn of(longest: usize) -> Self {
        // the place after the others has a bit less, so that numbers are not negative
        match longest {
            0..=128 => Self::Four,
            129..=32_768 => Self::Two,
            _ => Self::One,
        }
    }

    /// Places in a number.
    #[must_use]
    pub const fn slots(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Two => 2,
            Self::One => 1,
        }
    }

    /// What separates the places of a number; none if it has one.
    #[must_use]
    pub const fn radix(self) -> Option<i64> {
        match self {
            Self::Four => Some(1 << 8),
            Self::Two => Some(1 << 16),
            Self::One => None,
        }
    }

    /// Numbers for a given number of places.
    #[must_use]
    pub const fn words(self, columns: usize) -> usize {
        columns.div_ceil(self.slots())
    }

    /// The first place lowest.
    fn packed(self, slots: impl DoubleEndedIterator<Item = i32>) -> i32 {
        slots.rev().fold(0, |word, slot| match self.radix() {
            Some(radix) => word * radix as i32 + slot,
            None => slot,
        })
    }
}

pub(super) fn refused(found: String, needed: &str) -> PatternError {
    PatternError::Invalid { place: "rows of a matrix".into(), found, needed: needed.into() }
}

/// The degrees of freedom of an entity's rows and columns, of a pattern of as many components each.
pub(super) fn check_components(
    pattern: &CsrPattern,
    components: [usize; 2],
) -> Result<[usize; 2], PatternError> {
    let components = components.map(|n| n.max(1));
    if components != pattern.components {
        let found = format!("a pattern of blocks of {:?} numbers", pattern.components);
        return Err(refused(found, &format!("one of {components:?}; use a lookup table")));
    }
    Ok([0, 1].map(|k| pattern.extents[k] / components[k]))
}

/// Entries of the longest row, by where rows start and the last one ends.
#[must_use]
pub fn longest_row(row_starts: &[i32]) -> usize {
    row_starts.par_windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0).unsigned_abs() as usize
}

impl CsrPattern {
    /// Entries of the longest row.
    #[must_use]
    pub fn longest_row(&self) -> usize {
        longest_row(&self.row_starts)
    }

    /// The pairs of degrees of freedom and entities, of spaces whose degrees of freedom have a
    /// given number of components each, with places packed as of rows that are as long as the
    /// longest, or longer. Columns of the pairs of an entity's degree of freedom stand in the order
    /// that `turns` has for it, if entities are turned.
    ///
    /// # Errors
    /// [`PatternError::Invalid`]: a pattern of other components, a row that is longer, more pairs than
    /// 32 bits count, turns of other entities.
    pub fn owned_rows(
        &self,
        components: [usize; 2],
        packing: SlotPacking,
        turns: Option<&[Vec<u32>]>,
    ) -> Result<OwnedRows, PatternError> {
        let [local, columns] = check_components(self, components)?;
        if packing.slots() > SlotPacking::of(self.longest_row()).slots() {
            let found =
                format!("a row of {} entries, and {} places a number", self.longest_row(), packing.slots());
            return Err(refused(found, "fewer places a number"));
        }
        if turns.is_some_and(|t| t.len() != local || t.iter().any(|of| of.len() != columns)) {
            let found =
                format!("turns of other entities than those of {local} by {columns} degrees of freedom");
            return Err(refused(found, "one of each"));
        }
        let n_owners = self.block_starts.len().saturating_sub(1);
        let (starts, order) = sorted(&self.owners, n_owners);
        let Slices { firsts, counts, n_pairs } = Slices::of(&starts)?;
        let words = packing.words(columns);
        // of each slice its own part of each list
        let ends = firsts.iter().step_by(SLICE).skip(1).copied().chain([n_pairs as i32]);
        let slices: Vec<(i32, i32)> = firsts.iter().step_by(SLICE).copied().zip(ends).collect();
        let of_slice = |slice: usize, list: &dyn Fn(i32, usize) -> i32| {
            let (first, end) = slices[slice];
            let mut part = vec![0; (end - first) as usize];
            let owners = slice * SLICE..n_owners.min((slice + 1) * SLICE);
            for (lane, owner) in owners.enumerate() {
                let own = &order[starts[owner] as usize..starts[owner + 1] as usize];
                for (turn, k) in own.iter().enumerate() {
                    part[lane + SLICE * turn] = list(*k, owner);
                }
            }
            part
        };
        let list = |of: &(dyn Fn(i32, usize) -> i32 + Sync)| -> Vec<i32> {
            (0..slices.len())
                .into_par_iter()
                .flat_map_iter(|slice| of_slice(slice, &|k, o| of(k, o)))
                .collect()
        };
        let word = |word: usize| {
            list(&|k, owner| {
                let row = &self.blocks[k as usize * columns..(k as usize + 1) * columns];
                let slot = |column: usize| {
                    let at = turns.map_or(column, |turns| turns[k as usize % local][column] as usize);
                    (row[at] - self.block_starts[owner]) * self.components[1] as i32
                };
                let first = word * packing.slots();
                packing.packed((first..columns.min(first + packing.slots())).map(slot))
            })
        };
        Ok(OwnedRows {
            entities: list(&|k, _| (k as usize / local) as i32),
            rows: list(&|k, _| (k as usize % local) as i32),
            slots: (0..words).flat_map(word).collect(),
            firsts,
            counts,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sparse::CsrPart;

    /// Intervals in a row, a given number of components a node.
    fn intervals(cells: i32, components: usize) -> CsrPattern {
        let map: Vec<i32> = (0..cells).flat_map(|c| [c, c + 1]).collect();
        let part = CsrPart { extents: [2, 2], rows: &map, columns: &map };
        let size = cells as usize + 1;
        CsrPattern::of_components([size; 2], [components; 2], &[part]).unwrap().remove(0)
    }

    #[test]
    fn pairs_stand_in_slices() {
        let pattern = intervals(40, 2);
        for packing in [SlotPacking::Four, SlotPacking::Two, SlotPacking::One] {
            let owned = pattern.owned_rows([2, 2], packing, None).unwrap();
            assert_eq!((owned.firsts.len(), pattern.longest_row()), (41, 6));
            assert_eq!((&owned.counts[..3], owned.counts[40]), (&[1, 2, 2][..], 1));
            assert_eq!((owned.firsts[31], owned.firsts[32]), (31, 64));
            assert_eq!(owned.slots.len(), packing.words(2) * owned.rows.len());
            for dof in 0..41_usize {
                let mut cells = Vec::new();
                for turn in 0..owned.counts[dof] as usize {
                    let pair = owned.firsts[dof] as usize + SLICE * turn;
                    let (cell, local) = (owned.entities[pair] as usize, owned.rows[pair] as usize);
                    cells.push(cell);
                    assert_eq!(cell + local, dof);
                    for column in 0..2 {
                        let word = owned.slots[column / packing.slots() * owned.rows.len() + pair];
                        let shift =
                            packing.radix().unwrap_or(1).pow((column % packing.slots()) as u32) as i32;
                        let slot = word / shift % packing.radix().map_or(i32::MAX, |r| r as i32);
                        let place = pattern.row_starts[2 * dof] + slot;
                        assert_eq!(pattern.columns[place as usize], 2 * (cell + column) as i32);
                    }
                }
                let expected: Vec<usize> = (dof.saturating_sub(1)..(dof + 1).min(40)).collect();
                assert_eq!(cells, expected);
            }
        }
    }

    #[test]
    fn the_last_place_of_a_number_leaves_it_positive() {
        for (packing, last) in [(SlotPacking::Four, 127), (SlotPacking::Two, 32_767)] {
            let slots = vec![last; packing.slots()];
            let mut word = packing.packed(slots.iter().copied());
            assert!(word > 0);
            for slot in slots {
                assert_eq!(word % packing.radix().unwrap() as i32, slot);
                word /= packing.radix().unwrap() as i32;
            }
        }
        assert_eq!([128, 129, 32_768, 32_769].map(|n| SlotPacking::of(n).slots()), [4, 2, 2, 1]);
    }

    #[test]
    fn other_components_and_longer_rows_are_refused() {
        let error = intervals(2, 2).owned_rows([1, 1], SlotPacking::One, None).unwrap_err().to_string();
        assert!(error.contains("blocks of [2, 2] numbers"), "{error}");
        let long = intervals(2, 50);
        let error = long.owned_rows([50, 50], SlotPacking::Four, None).unwrap_err().to_string();
        assert!(error.contains("a row of 150 entries, and 4 places a number"), "{error}");
        assert!(long.owned_rows([50, 50], SlotPacking::Two, None).is_ok());
    }
}
