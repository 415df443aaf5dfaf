//! Sparse matrices of bilinear forms: the pattern, and where the entries of each entity stand.

use super::PatternError;
use super::sorted::sorted;
use kingpost_capacity::check_memory;
use rayon::prelude::*;
use std::borrow::Cow;

/// Rows whose columns a thread finds at a time.
const ROWS_OF_A_BLOCK: usize = 4096;

/// The pattern of a sparse matrix by rows, and the places of the matrices of entities in it.
///
/// Degrees of freedom may have several components, whose rows have the same columns, side by side:
/// the pattern is found and kept by degree of freedom.
///
/// ```
/// use kingpost_fem::sparse::CsrPattern;
///
/// // two intervals with the nodes 0, 1 and 1, 2
/// let map = [0, 1, 1, 2];
/// let pattern = CsrPattern::of_rows(3, 3, 2, 2, &map, &map)?;
/// assert_eq!(pattern.row_starts, [0, 2, 5, 7]);
/// assert_eq!(pattern.columns, [0, 1, 0, 1, 2, 1, 2]);
/// assert_eq!(*pattern.positions(), [0, 1, 2, 3, 3, 4, 5, 6]);
/// # Ok::<(), kingpost_fem::sparse::PatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsrPattern {
    /// Place of the first entry of each row, and after them the number of entries.
    pub row_starts: Vec<i32>,
    /// The column of each entry, ascending in a row.
    pub columns: Vec<i32>,
    /// Rows and columns of an entity's matrix.
    pub extents: [usize; 2],
    /// Rows and columns of the block of two degrees of freedom.
    pub(super) components: [usize; 2],
    /// The first block of each degree of freedom, and after them the number of blocks.
    pub(super) block_starts: Vec<i32>,
    /// The degree of freedom of each of an entity's rows, `[entities, rows]`.
    pub(super) owners: Vec<i32>,
    /// The block of each pair of an entity's degrees of freedom, `[entities, rows, columns]`.
    pub(super) blocks: Vec<i32>,
    pub(super) order: EntryOrder,
}

/// In which order the entries of a matrix stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryOrder {
    /// Row by row of scalars.
    #[default]
    Rows,
    /// Block by block, row by row within: those of [`BlockPattern`].
    Blocks,
    /// Row by row of scalars, those on and above the diagonal of a symmetric matrix
    /// ([`CsrPattern::upper`]).
    UpperRows,
}

/// A matrix by rows of dense blocks, all of one size: block CSR, as of cuSPARSE (BSR) and PETSc
/// (BAIJ). Entries are `[blocks, rows, columns]` row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPattern {
    /// Rows and columns of a block.
    pub extents: [usize; 2],
    /// Place of the first block of each row of blocks, and after them the number of blocks.
    pub row_starts: Vec<i32>,
    /// The column of blocks of each block, ascending in a row.
    pub columns: Vec<i32>,
}

/// The entities of a kernel that adds to a sparse matrix. Rows and columns are those of scalars, or
/// degrees of freedom of several components each, as the [pattern](CsrPattern::of_components) says.
#[derive(Clone, Copy, Debug)]
pub struct CsrPart<'a> {
    /// Rows and columns of an entity.
    pub extents: [usize; 2],
    /// The number of each row of each entity, `[entities, rows]`.
    pub rows: &'a [i32],
    /// The number of each column of each entity, `[entities, columns]`.
    pub columns: &'a [i32],
}

impl CsrPart<'_> {
    fn columns_of(&self, entity: usize) -> &[i32] {
        let width = self.extents[1];
        &self.columns[entity * width..(entity + 1) * width]
    }

    fn check(&self, n_rows: usize, n_columns: usize) -> Result<(), PatternError> {
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
struct Touching<'p> {
    starts: Vec<i32>,
    /// Places in the rows of all parts, one after the other.
    places: Vec<i32>,
    /// Where the rows of each part start among them.
    firsts: Vec<usize>,
    parts: &'p [CsrPart<'p>],
}

impl<'p> Touching<'p> {
    fn new(n_rows: usize, parts: &'p [CsrPart<'p>]) -> Self {
        let mut firsts = vec![0];
        for part in parts {
            firsts.push(firsts[firsts.len() - 1] + part.rows.len());
        }
        let (starts, places) = match parts {
            [part] => sorted(part.rows, n_rows),
            _ => sorted(&parts.iter().flat_map(|part| part.rows).copied().collect::<Vec<i32>>(), n_rows),
        };
        Self { starts, places, firsts, parts }
    }

    /// The columns of the entities of a row, as often as they have them.
    fn columns(&self, row: usize) -> impl Iterator<Item = i32> {
        let places = &self.places[self.starts[row] as usize..self.starts[row + 1] as usize];
        places.iter().flat_map(|place| {
            let part = self.firsts.partition_point(|first| *first <= *place as usize) - 1;
            let entity = (*place as usize - self.firsts[part]) / self.parts[part].extents[0];
            self.parts[part].columns_of(entity).iter().copied()
        })
    }
}

fn invalid(place: &str, found: String, needed: String) -> PatternError {
    PatternError::Invalid { place: place.into(), found, needed }
}

impl CsrPattern {
    /// The pattern of a matrix of `n_rows` rows and `n_columns` columns, from the numbers of the
    /// rows (and of the columns) of each entity's matrix: `rows` `[entities, height]`, `columns`
    /// `[entities, width]`.
    ///
    /// # Errors
    /// [`PatternError::Invalid`]: lists of other lengths, a number outside the matrix, more
    /// entries than 32 bits count.
    pub fn of_rows(
        n_rows: usize,
        n_columns: usize,
        height: usize,
        width: usize,
        rows: &[i32],
        columns: &[i32],
    ) -> Result<Self, PatternError> {
        let part = CsrPart { extents: [height, width], rows, columns };
        Self::of_part([n_rows, n_columns], [1, 1], part)
    }

    /// As [`CsrPattern::of_components`], of one part.
    ///
    /// # Errors
    /// As [`CsrPattern::of_rows`].
    pub fn of_part(
        sizes: [usize; 2],
        components: [usize; 2],
        part: CsrPart<'_>,
    ) -> Result<Self, PatternError> {
        only(Self::of_components(sizes, components, &[part])?)
    }

    /// The pattern of a matrix to which several kernels add, each with entities of its own: the
    /// same rows and columns for all of them, and the places of each.
    ///
    /// # Errors
    /// As [`CsrPattern::of_rows`].
    pub fn joint(n_rows: usize, n_columns: usize, parts: &[CsrPart<'_>]) -> Result<Vec<Self>, PatternError> {
        Self::of_components([n_rows, n_columns], [1, 1], parts)
    }

    /// As [`CsrPattern::joint`], where each row of a part stands for several of the matrix, and
    /// each column likewise: degree of freedom `d` has the rows `d*components[0]` and those after.
    /// `sizes` count degrees of freedom.
    ///
    /// # Errors
    /// As [`CsrPattern::of_rows`].
    pub fn of_components(
        sizes: [usize; 2],
        components: [usize; 2],
        parts: &[CsrPart<'_>],
    ) -> Result<Vec<Self>, PatternError> {
        for part in parts {
            part.check(sizes[0], sizes[1])?;
        }
        let components = components.map(|n| n.max(1));
        let total_rows: usize = parts.iter().map(|part| part.rows.len()).sum();
        if i32::try_from(total_rows).is_err() {
            let needed = format!("at most {} of them", i32::MAX);
            return Err(invalid("map", format!("{total_rows} rows of entities"), needed));
        }
        let help = "use fewer cells or a lower degree";
        check_memory("the pattern of the matrix", bytes_of_parts(sizes[0], parts), help)?;
        let (starts, columns) = blocks_of_rows(sizes[0], components, parts)?;
        let entries = columns.len() as u64 * (components[0] * components[1]) as u64;
        check_memory("the columns of the matrix", 4 * entries * (parts.len() as u64 + 1), help)?;
        let (row_starts, scalars) = scalar_rows(&starts, &columns, components);
        let pattern = |part: &CsrPart<'_>| Self {
            row_starts: row_starts.clone(),
            columns: scalars.clone(),
            extents: [part.extents[0] * components[0], part.extents[1] * components[1]],
            components,
            blocks: places(part, &starts, &columns),
            owners: part.rows.to_vec(),
            block_starts: starts.clone(),
            order: EntryOrder::Rows,
        };
        Ok(parts.iter().map(pattern).collect())
    }

    /// The pattern of a matrix by rows of blocks, to which no entity adds: where the rows of blocks
    /// start, and the columns of blocks, ascending in each.
    ///
    /// ```
    /// use kingpost_fem::sparse::CsrPattern;
    ///
    /// let pattern = CsrPattern::of_block_rows(vec![0, 1, 3], vec![0, 0, 1], [1, 2]);
    /// assert_eq!(pattern.row_starts, [0, 2, 6]);
    /// assert_eq!(pattern.columns, [0, 1, 0, 1, 2, 3]);
    /// assert_eq!(pattern.n_entities(), 0);
    /// ```
    #[must_use]
    pub fn of_block_rows(starts: Vec<i32>, columns: Vec<i32>, components: [usize; 2]) -> Self {
        let components = components.map(|n| n.max(1));
        let (row_starts, columns) = match components {
            [1, 1] => (starts.clone(), columns),
            _ => scalar_rows(&starts, &columns, components),
        };
        Self {
            row_starts,
            columns,
            extents: components,
            components,
            block_starts: starts,
            owners: Vec::new(),
            blocks: Vec::new(),
            order: EntryOrder::Rows,
        }
    }

    /// Where each entry of an entity's matrix stands: the lookup table, `[entities, rows, columns]`
    /// row-major.
    #[must_use]
    pub fn positions(&self) -> Cow<'_, [i32]> {
        match self.order {
            EntryOrder::Rows => self.row_positions(),
            EntryOrder::UpperRows => Cow::Owned(self.upper_positions()),
            EntryOrder::Blocks => {
                let [height, width] = self.components.map(|n| n as i32);
                Cow::Owned(self.expanded(|_, block, [row, column]| {
                    (block * height + row as i32) * width + column as i32
                }))
            }
        }
    }

    /// As [`CsrPattern::positions`], row by row of scalars whatever the order is.
    pub(super) fn row_positions(&self) -> Cow<'_, [i32]> {
        let [height, width] = self.components.map(|n| n as i32);
        if height * width == 1 {
            return Cow::Borrowed(&self.blocks);
        }
        Cow::Owned(self.expanded(|owner, block, [row, column]| {
            let (first, last) = (self.block_starts[owner], self.block_starts[owner + 1]);
            let before = first * height + row as i32 * (last - first) + (block - first);
            before * width + column as i32
        }))
    }

    /// The same pattern with its entries in another order, which the lookup table then gives.
    #[must_use]
    pub fn ordered(self, order: EntryOrder) -> Self {
        Self { order, ..self }
    }

    /// The order of the entries.
    #[must_use]
    pub const fn order(&self) -> EntryOrder {
        self.order
    }

    /// The rows and columns of blocks.
    #[must_use]
    pub fn by_blocks(&self) -> BlockPattern {
        let [height, width] = self.components;
        let columns_of = |owner: usize| {
            let row = self.row_starts[owner * height] as usize..self.row_starts[owner * height + 1] as usize;
            self.columns[row].iter().step_by(width).map(|column| column / width as i32)
        };
        let owners = 0..self.block_starts.len().saturating_sub(1);
        BlockPattern {
            extents: self.components,
            row_starts: self.block_starts.clone(),
            columns: owners.into_par_iter().flat_map_iter(columns_of).collect(),
        }
    }

    /// A number for each entry of an entity's matrix, from the degree of freedom of its row, its
    /// block, and its row and column there.
    fn expanded(&self, of: impl Fn(usize, i32, [usize; 2]) -> i32 + Sync) -> Vec<i32> {
        let [height, width] = self.components;
        let columns = self.extents[1] / width;
        let rows = self.blocks.par_chunks(columns.max(1)).zip(&self.owners);
        rows.flat_map_iter(|(blocks, owner)| {
            let of = &of;
            (0..height).flat_map(move |row| {
                let entry = move |block: &'_ i32| {
                    let block = *block;
                    (0..width).map(move |column| of(*owner as usize, block, [row, column]))
                };
                blocks.iter().flat_map(entry)
            })
        })
        .collect()
    }
}

/// The one pattern of one part.
fn only(patterns: Vec<CsrPattern>) -> Result<CsrPattern, PatternError> {
    let [pattern] = <[CsrPattern; 1]>::try_from(patterns)
        .map_err(|all| invalid("map", format!("{} patterns", all.len()), "one".into()))?;
    Ok(pattern)
}

/// Bytes of the places of entities in a matrix, without its columns.
fn bytes_of_parts(n_rows: usize, parts: &[CsrPart<'_>]) -> u64 {
    let of_part = |part: &CsrPart<'_>| {
        // the rows as they are sorted, those that a pattern keeps, and the block of each pair
        let each = 3 + part.extents[1] as u64;
        (4 * part.rows.len() as u64).saturating_mul(each)
    };
    parts.iter().map(of_part).fold(8 * n_rows as u64, u64::saturating_add)
}

/// The first block of each row of blocks, and the columns of blocks.
fn blocks_of_rows(
    n_rows: usize,
    components: [usize; 2],
    parts: &[CsrPart<'_>],
) -> Result<(Vec<i32>, Vec<i32>), PatternError> {
    let touching = Touching::new(n_rows, parts);
    let columns_of_rows = |rows: std::ops::Range<usize>| {
        let (mut all, mut ends, mut found): (Vec<i32>, Vec<usize>, Vec<i32>) = Default::default();
        for row in rows {
            found.clear();
            found.extend(touching.columns(row));
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
    let total: usize = found.iter().map(|(columns, _)| columns.len()).sum();
    let entries = total.saturating_mul(components[0] * components[1]);
    if i32::try_from(entries).is_err() {
        return Err(invalid("map", format!("{entries} entries"), format!("at most {} of them", i32::MAX)));
    }
    let (mut starts, mut all) = (vec![0_i32], Vec::with_capacity(total));
    for (columns, ends) in found {
        starts.extend(ends.iter().map(|end| (all.len() + end) as i32));
        all.extend(columns);
    }
    Ok((starts, all))
}

/// The rows and columns of scalars, from those of blocks.
fn scalar_rows(starts: &[i32], columns: &[i32], components: [usize; 2]) -> (Vec<i32>, Vec<i32>) {
    if components == [1, 1] {
        return (starts.to_vec(), columns.to_vec());
    }
    let [height, width] = components.map(|n| n as i32);
    let (mut row_starts, mut next) = (vec![0], 0);
    for bounds in starts.windows(2) {
        for _ in 0..height {
            next += (bounds[1] - bounds[0]) * width;
            row_starts.push(next);
        }
    }
    let rows = starts.par_windows(2).flat_map_iter(|bounds| {
        let own = &columns[bounds[0] as usize..bounds[1] as usize];
        (0..height).flat_map(move |_| own.iter().flat_map(move |c| (0..width).map(move |k| c * width + k)))
    });
    (row_starts, rows.collect())
}

/// The block of each pair of an entity's rows and columns.
fn places(part: &CsrPart<'_>, starts: &[i32], columns: &[i32]) -> Vec<i32> {
    let [height, width] = part.extents;
    let mut places = vec![0; part.rows.len() * width];
    let of_rows = places.par_chunks_mut(width.max(1)).zip(part.rows);
    of_rows.enumerate().for_each(|(k, (places, row))| {
        let (start, end) = (starts[*row as usize], starts[*row as usize + 1]);
        let own = &columns[start as usize..end as usize];
        for (place, c) in places.iter_mut().zip(part.columns_of(k / height)) {
            *place = start + own.partition_point(|o| o < c) as i32;
        }
    });
    places
}
