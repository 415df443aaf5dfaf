//! Sparse matrices of bilinear forms: the pattern, and where the entries of each entity stand.

use super::Array;
use crate::tabulated::{TabulatedError, TabulatedForm};
use rayon::prelude::*;

/// Rows whose columns a thread finds at a time.
const ROWS_OF_A_BLOCK: usize = 4096;

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

/// The entities of a kernel that adds to a sparse matrix.
#[derive(Clone, Copy, Debug)]
pub struct CsrPart<'a> {
    /// Rows and columns of an entity's matrix.
    pub extents: [usize; 2],
    /// The row of each row of each entity's matrix, `[entities, rows]`.
    pub rows: &'a [i32],
    /// The column of each column of each entity's matrix, `[entities, columns]`.
    pub columns: &'a [i32],
}

impl CsrPart<'_> {
    fn columns_of(&self, entity: usize) -> &[i32] {
        let width = self.extents[1];
        &self.columns[entity * width..(entity + 1) * width]
    }

    fn check(&self, n_rows: usize, n_columns: usize) -> Result<(), TabulatedError> {
        let ([height, width], rows, columns) = (self.extents, self.rows, self.columns);
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
        check(columns, n_columns, "column")
    }
}

/// The entities that touch each row.
struct Touching {
    starts: Vec<usize>,
    /// Part and entity.
    entities: Vec<(u32, u32)>,
}

impl Touching {
    fn new(n_rows: usize, parts: &[CsrPart<'_>]) -> Self {
        let mut starts = vec![0; n_rows + 1];
        for row in parts.iter().flat_map(|part| part.rows) {
            starts[*row as usize + 1] += 1;
        }
        for row in 0..n_rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut entities = vec![(0, 0); starts[n_rows]];
        for (place, part) in parts.iter().enumerate() {
            for (k, row) in part.rows.iter().enumerate() {
                let at = &mut next[*row as usize];
                entities[*at] = (place as u32, (k / part.extents[0]) as u32);
                *at += 1;
            }
        }
        Self { starts, entities }
    }

    fn of(&self, row: usize) -> impl Iterator<Item = (u32, u32)> {
        self.entities[self.starts[row]..self.starts[row + 1]].iter().copied()
    }
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
        let part = CsrPart { extents: [height, width], rows, columns };
        let [pattern] = <[Self; 1]>::try_from(Self::joint(n_rows, n_columns, &[part])?)
            .map_err(|all| invalid("map", format!("{} patterns", all.len()), "one".into()))?;
        Ok(pattern)
    }

    /// The pattern of a matrix to which several kernels add, each with entities of its own: the same
    /// rows and columns for all of them, and the places of each.
    ///
    /// # Errors
    /// As [`CsrPattern::of_rows`].
    pub fn joint(
        n_rows: usize,
        n_columns: usize,
        parts: &[CsrPart<'_>],
    ) -> Result<Vec<Self>, TabulatedError> {
        for part in parts {
            part.check(n_rows, n_columns)?;
        }
        let touching = Touching::new(n_rows, parts);
        let columns_of_rows = |rows: std::ops::Range<usize>| {
            let (mut all, mut ends, mut found): (Vec<i32>, Vec<usize>, Vec<i32>) = Default::default();
            for row in rows {
                found.clear();
                for (part, entity) in touching.of(row) {
                    found.extend(parts[part as usize].columns_of(entity as usize));
                }
                found.sort_unstable();
                found.dedup();
                all.extend(&found);
                ends.push(all.len());
            }
            (all, ends)
        };
        let blocks = n_rows.div_ceil(ROWS_OF_A_BLOCK);
        let block = |k: usize| k * ROWS_OF_A_BLOCK..n_rows.min((k + 1) * ROWS_OF_A_BLOCK);
        let found: Vec<_> = (0..blocks).into_par_iter().map(|k| columns_of_rows(block(k))).collect();
        let total = found.iter().map(|(columns, _)| columns.len()).sum();
        if i32::try_from(total).is_err() {
            return Err(invalid("map", format!("{total} entries"), format!("at most {} of them", i32::MAX)));
        }
        let (mut row_starts, mut all) = (vec![0_i32], Vec::with_capacity(total));
        for (columns, ends) in found {
            row_starts.extend(ends.iter().map(|end| (all.len() + end) as i32));
            all.extend(columns);
        }
        let positions = |part: &CsrPart<'_>| -> Vec<i32> {
            let [height, width] = part.extents;
            let mut positions = vec![0; part.rows.len() * width];
            let of_rows = positions.par_chunks_mut(width.max(1)).zip(part.rows);
            of_rows.enumerate().for_each(|(k, (places, row))| {
                let (start, end) = (row_starts[*row as usize], row_starts[*row as usize + 1]);
                let own = &all[start as usize..end as usize];
                let columns = part.columns_of(k / height);
                for (place, c) in places.iter_mut().zip(columns) {
                    *place = start + own.partition_point(|o| o < c) as i32;
                }
            });
            positions
        };
        let pattern = |part: &CsrPart<'_>| Self {
            row_starts: row_starts.clone(),
            columns: all.clone(),
            positions: positions(part),
            extents: part.extents,
        };
        Ok(parts.iter().map(pattern).collect())
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
