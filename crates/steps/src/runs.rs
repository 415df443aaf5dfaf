//! The first numbers of runs of consecutive numbers in the rows of a map.

use std::num::NonZeroUsize;

/// Runs of consecutive numbers in the rows of a map, and the input that has the first ones of them.
///
/// ```
/// use kingpost_steps::runs::RunStarts;
///
/// let [columns, length, count] = [4, 2, 1].map(|n| std::num::NonZeroUsize::new(n).unwrap());
/// let (map, starts) = ("map".into(), "map_starts".into());
/// let runs = RunStarts { map, columns, first: 1, length, count, starts, above: None };
/// assert_eq!(runs.compute(&[9, 3, 4, 7, 8, 5, 6, 1], &[]).unwrap(), [3, 5]);
/// let broken = runs.compute(&[9, 3, 4, 7, 8, 5, 5, 1], &[]).unwrap_err();
/// assert_eq!((broken.row, broken.column, broken.expected), (1, 2, 6));
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
    /// The first number of each run, `[rows, count]`; `[1]` where they are those of another input and
    /// one constant, which it has.
    pub starts: String,
    /// An input, `[rows, count]`, that all first numbers are above by one constant.
    pub above: Option<String>,
}

/// A number is not the one that follows from others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "entry {column} of row {row} of `{map}` is {found}, and {expected} would follow from {other}; number the \
     degrees of freedom of an entity one after the other in every cell, with the vertices of cells in ascending \
     order, or take a mapping without `runs`"
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
    /// The one that would follow.
    pub expected: i64,
    /// What it would follow from.
    pub other: String,
}

impl RunStarts {
    /// The first number of each run, of the entries of the map row by row; their distance from `above`
    /// where they are above an input, whose entries these are.
    ///
    /// # Errors
    /// The first entry that does not follow the one before it in its run, or the first run that starts at
    /// another distance than the first one.
    pub fn compute(&self, map: &[i64], above: &[i64]) -> Result<Vec<i64>, BrokenRun> {
        let starts = self.starts(map)?;
        let Some(name) = &self.above else { return Ok(starts) };
        let (length, count) = (self.length.get(), self.count.get());
        let distance = starts.iter().zip(above).next().map_or(0, |(start, other)| start - other);
        for (k, (found, other)) in starts.iter().zip(above).enumerate() {
            let expected = other + distance;
            if *found != expected {
                let (map, row, column) = (self.map.clone(), k / count, self.first + k % count * length);
                let other = format!("`{name}`, {distance} below the first one");
                return Err(BrokenRun { map, row, column, found: *found, expected, other });
            }
        }
        Ok(vec![distance])
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
                        let map = self.map.clone();
                        let other = "the entry before it".into();
                        return Err(BrokenRun { map, row, column, found, expected, other });
                    }
                }
                expected = Some(found.saturating_add(1));
            }
        }
        Ok(starts)
    }
}
