//! Sparse matrices of bilinear forms: the pattern, and where the entries of each entity stand.

use super::Array;
use crate::tabulated::{TabulatedError, TabulatedForm};
use std::collections::BTreeSet;

/// The pattern of a sparse matrix by rows, and the places of the matrices of entities in it.
///
/// ```
/// use purlin_forms::import::CsrPattern;
///
/// // two intervals with the nodes 0, 1 and 1, 2
/// let map = [0, 1, 1, 2];
/// let pattern = CsrPattern::of_rows(3, 3, 2, 2, &map, &map)?;
/// assert_eq!(pattern.row_starts, [0, 2, 5, 7]);
/// assert_eq!(pattern.columns, [0, 1, 0, 1, 2, 1, 2]);
/// assert_eq!(pattern.positions, [0, 1, 2, 3, 3, 4, 5, 6]);
/// # Ok::<(), purlin_forms::tabulated::TabulatedError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsrPattern {
    /// Place of the first entry of each row, and behind them the number of entries.
    pub row_starts: Vec<i32>,
    /// The column of each entry, ascending in a row.
    pub columns: Vec<i32>,
    /// The place of each entry of an entity's matrix, `[entities, rows, columns]` row-major.
    pub positions: Vec<i32>,
    /// Rows and columns of an entity's matrix.
    pub extents: [usize; 2],
}

fn invalid(place: &str, found: String, needed: String) -> TabulatedError {
    TabulatedError::Invalid { place: place.into(), found, needed }
}

impl CsrPattern {
    /// The pattern of a matrix of `n_rows` rows and `n_columns` columns, from the numbers of the
    /// rows (and of the columns) of each entity's matrix: `rows` `[entities, height]`, `columns`
    /// `[entities, width]`.
    ///
    /// # Errors
    /// [`TabulatedError::Invalid`]: lists of other lengths, a number outside of the matrix, more
    /// entries than 32 bits count.
    pub fn of_rows(
        n_rows: usize,
        n_columns: usize,
        height: usize,
        width: usize,
        rows: &[i32],
        columns: &[i32],
    ) -> Result<Self, TabulatedError> {
        let entities = rows.len().checked_div(height).unwrap_or(0);
        if entities * height != rows.len() || entities * width != columns.len() {
            let found = format!("{} rows and {} columns", rows.len(), columns.len());
            return Err(invalid("map", found, format!("{height} rows and {width} columns an entity")));
        }
        let check = |list: &[i32], n: usize, what: &str| match list
            .iter()
            .find(|k| usize::try_from(**k).map_or(true, |k| k >= n))
        {
            Some(k) => Err(invalid("map", format!("{what} {k}"), format!("0 to {}", n.saturating_sub(1)))),
            None => Ok(()),
        };
        check(rows, n_rows, "row")?;
        check(columns, n_columns, "column")?;
        let mut entries: Vec<BTreeSet<i32>> = vec![BTreeSet::new(); n_rows];
        for e in 0..entities {
            for row in &rows[e * height..(e + 1) * height] {
                entries[*row as usize].extend(&columns[e * width..(e + 1) * width]);
            }
        }
        let total: usize = entries.iter().map(BTreeSet::len).sum();
        if i32::try_from(total).is_err() {
            return Err(invalid("map", format!("{total} entries"), format!("at most {}", i32::MAX)));
        }
        let mut row_starts = vec![0_i32];
        let mut all = Vec::with_capacity(total);
        for row in entries {
            all.extend(row);
            row_starts.push(all.len() as i32);
        }
        let mut positions = Vec::with_capacity(rows.len() * width);
        for e in 0..entities {
            for row in &rows[e * height..(e + 1) * height] {
                let start = row_starts[*row as usize];
                let own = &all[start as usize..row_starts[*row as usize + 1] as usize];
                for column in &columns[e * width..(e + 1) * width] {
                    positions.push(start + own.partition_point(|c| c < column) as i32);
                }
            }
        }
        Ok(Self { row_starts, columns: all, positions, extents: [height, width] })
    }

    /// The pattern of an output of a form over cells, from the maps `[cells, columns]` of its test
    /// and trial spaces and the numbers of their degrees of freedom.
    ///
    /// # Errors
    /// As [`CsrPattern::of_rows`], or an output that is no matrix.
    pub fn of_cells(
        form: &TabulatedForm,
        output: usize,
        maps: [&[i32]; 2],
        sizes: [usize; 2],
    ) -> Result<Self, TabulatedError> {
        let spaces = form.outputs.get(output).map(|o| &o.spaces[..]);
        let Some([test, trial]) = spaces else {
            return Err(invalid("output", format!("{output}"), "the place of a bilinear form".into()));
        };
        let blocks = [form.spaces[*test].block, form.spaces[*trial].block];
        let heights = [form.spaces[*test].columns * blocks[0], form.spaces[*trial].columns * blocks[1]];
        let [rows, columns] = [0, 1].map(|k| -> Vec<i32> {
            let block = blocks[k] as i32;
            maps[k].iter().flat_map(|d| (0..block).map(move |c| d * block + c)).collect()
        });
        Self::of_rows(sizes[0] * blocks[0], sizes[1] * blocks[1], heights[0], heights[1], &rows, &columns)
    }

    /// The places as an argument of the kernel.
    #[must_use]
    pub fn positions_array(&self) -> Array {
        let [height, width] = self.extents;
        let entities = self.positions.len().checked_div(height * width).unwrap_or(0);
        Array::new([entities, height, width], self.positions.clone())
    }
}
