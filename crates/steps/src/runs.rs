//! The first numbers of runs of consecutive numbers in the rows of a map.

use std::num::NonZeroUsize;

/// Runs of consecutive numbers in the rows of a map, and what the first ones of them are.
///
/// ```
/// use kingpost_steps::runs::{FirstNumbers, RunStarts};
///
/// let [columns, length, count] = [4, 2, 1].map(|n| std::num::NonZeroUsize::new(n).unwrap());
/// let numbers = FirstNumbers::Passed("map_starts_1".into());
/// let runs = RunStarts { map: "map".into(), columns, first: 1, length, count, numbers };
/// assert_eq!(runs.compute(&[9, 3, 4, 7, 8, 5, 6, 1], &[]).unwrap(), [3, 5]);
/// let broken = runs.compute(&[9, 3, 4, 7, 8, 5, 5, 1], &[]).unwrap_err();
/// assert_eq!((broken.row, broken.column, broken.found), (1, 2, 5));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStarts {
    /// The map, `[rows, columns]`.
    pub map: String,
    /// Columns of the map.
    pub columns: NonZeroUsize,
    /// The first column that is in a run.
    pub first: usize,
    /// Columns of a run.
    pub length: NonZeroUsize,
    /// Runs in a row, one after the other.
    pub count: NonZeroUsize,
    /// The first number of each run.
    pub numbers: FirstNumbers,
}

/// What the first numbers of runs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstNumbers {
    /// An input of their own, `[rows, count]`.
    Passed(String),
    /// The numbers of an input, `[rows, count]`, and one constant, which another one is.
    Above {
        /// The input that they are above.
        other: String,
        /// The input that is the constant.
        base: String,
    },
    /// The number of row 0, which an input is, and `length` more in each row: numbers that a row
    /// has alone.
    Own(String),
}

/// A number is not the one that follows from others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "entry {column} of row {row} of `{map}` is {found}, needed {needed}; number degrees of freedom by dimension, \
     those of an entity one after the other in every cell, with the vertices of cells in ascending order, or take \
     a mapping without `runs`"
)]
pub struct BrokenRun {
    /// The map.
    pub map: String,
    /// The row.
    pub row: usize,
    /// The column.
    pub column: usize,
    /// The entry.
    pub found: i64,
    /// What would follow, and from what.
    pub needed: String,
}

impl RunStarts {
    /// The input that is computed from the map.
    #[must_use]
    pub fn result(&self) -> &str {
        match &self.numbers {
            FirstNumbers::Passed(starts)
            | FirstNumbers::Above { base: starts, .. }
            | FirstNumbers::Own(starts) => starts,
        }
    }

    /// The input that first numbers are above, if there is one.
    #[must_use]
    pub fn above(&self) -> Option<&str> {
        match &self.numbers {
            FirstNumbers::Above { other, .. } => Some(other),
            FirstNumbers::Passed(_) | FirstNumbers::Own(_) => None,
        }
    }

    /// What is passed, of the entries of the map row by row, and of those of the input that first
    /// numbers are above: the first number of each run, or their distance, or the first number of
    /// row 0.
    ///
    /// # Errors
    /// The first entry that does not follow from those before it, or from others.
    pub fn compute(&self, map: &[i64], above: &[i64]) -> Result<Vec<i64>, BrokenRun> {
        let starts = self.starts(map)?;
        match &self.numbers {
            FirstNumbers::Passed(_) => Ok(starts),
            FirstNumbers::Above { other: name, .. } => {
                let distance = starts.iter().zip(above).next().map_or(0, |(start, other)| start - other);
                self.check_above(&starts, above, distance, name)?;
                Ok(vec![distance])
            }
            FirstNumbers::Own(_) => {
                let first = starts.first().copied().unwrap_or_default(); // default: of no row, which reads none
                self.check_own(map, first)?;
                Ok(vec![first])
            }
        }
    }

    fn broken(&self, (row, column): (usize, usize), found: i64, needed: String) -> BrokenRun {
        BrokenRun { map: self.map.clone(), row, column, found, needed }
    }

    /// First numbers are at a distance from others.
    fn check_above(&self, starts: &[i64], above: &[i64], distance: i64, name: &str) -> Result<(), BrokenRun> {
        let (length, count) = (self.length.get(), self.count.get());
        for (k, (found, other)) in starts.iter().zip(above).enumerate() {
            let expected = other.saturating_add(distance);
            if *found != expected {
                let at = (k / count, self.first + k % count * length);
                let needed = format!("{expected}, {distance} above `{name}` as the first one");
                return Err(self.broken(at, *found, needed));
            }
        }
        Ok(())
    }

    /// The columns of the run have the numbers from `first` on, row by row, and no other entry is
    /// among these.
    fn check_own(&self, map: &[i64], first: i64) -> Result<(), BrokenRun> {
        let (columns, length) = (self.columns.get(), self.length.get());
        let end = first.saturating_add((map.len() / columns * length) as i64);
        for (row, entries) in map.chunks_exact(columns).enumerate() {
            for (column, found) in entries.iter().enumerate() {
                let needed = match column.checked_sub(self.first).filter(|k| *k < length) {
                    None if !(first..end).contains(found) => continue,
                    None => {
                        format!("a number outside {first}..{end}, of which each row has {length} alone")
                    }
                    Some(k) => {
                        let expected = first.saturating_add((row * length + k) as i64);
                        if *found == expected {
                            continue;
                        }
                        format!("{expected}: from {first} on, each row has {length} numbers alone")
                    }
                };
                return Err(self.broken((row, column), *found, needed));
            }
        }
        Ok(())
    }

    fn starts(&self, map: &[i64]) -> Result<Vec<i64>, BrokenRun> {
        let (columns, length, count) = (self.columns.get(), self.length.get(), self.count.get());
        let mut starts = Vec::with_capacity(map.len() / columns * count);
        for (row, entries) in map.chunks_exact(columns).enumerate() {
            let runs = entries.iter().enumerate().skip(self.first).take(length * count);
            let mut expected = None;
            for (k, (column, found)) in runs.enumerate() {
                let found = *found;
                match expected.filter(|_| k % length > 0) {
                    None => starts.push(found),
                    Some(expected) if expected == found => {}
                    Some(expected) => {
                        let needed = format!("{expected}, which follows the entry before it");
                        return Err(self.broken((row, column), found, needed));
                    }
                }
                expected = Some(found.saturating_add(1));
            }
        }
        Ok(starts)
    }
}
