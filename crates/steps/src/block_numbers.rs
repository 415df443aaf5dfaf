//! Numbers of blocks of rows of a map that repeat each other in one pattern.

use std::num::NonZeroUsize;

/// Which entries of the rows of a block are the same number: the place of each entry among the numbers
/// of the block, row by row.
///
/// ```
/// use kingpost_steps::block_numbers::BlockPattern;
///
/// // two triangles of a square
/// let pattern = BlockPattern::of(&[7, 8, 3, 7, 3, 2], 3.try_into().unwrap());
/// assert_eq!(pattern.rows(), [[0, 1, 2], [0, 2, 3]]);
/// assert_eq!(pattern.count(), 4);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPattern {
    rows: Vec<Vec<usize>>,
    count: usize,
}

/// What is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPattern {
    /// There is nothing.
    #[error("no rows or no columns, needed at least one of each")]
    Empty,
    /// Rows are no rows of one map.
    #[error("rows of {first} and of {found} entries, needed as many in each")]
    Ragged {
        /// Entries of the first row.
        first: usize,
        /// Entries of another one.
        found: usize,
    },
    /// A place that nothing has.
    #[error("no entry at place {place} of {count}, needed places from 0 on without gaps")]
    Gap {
        /// The place.
        place: usize,
        /// One more than the largest one.
        count: usize,
    },
}

impl BlockPattern {
    /// A pattern of these places, `[rows of a block, columns]`.
    ///
    /// # Errors
    /// No places, rows of different lengths, places that are left out.
    pub fn new(rows: Vec<Vec<usize>>) -> Result<Self, NoPattern> {
        let first = rows.first().map_or(0, Vec::len);
        if first == 0 {
            return Err(NoPattern::Empty);
        }
        if let Some(other) = rows.iter().find(|row| row.len() != first) {
            return Err(NoPattern::Ragged { first, found: other.len() });
        }
        let mut places: Vec<usize> = rows.iter().flatten().copied().collect();
        places.sort_unstable();
        places.dedup();
        let count = places.last().map_or(0, |last| last.saturating_add(1));
        match places.iter().enumerate().find(|(k, place)| k != *place) {
            Some((place, _)) => Err(NoPattern::Gap { place, count }),
            None => Ok(Self { rows, count }),
        }
    }

    /// The pattern of some rows of a map, whose numbers are counted as they come.
    #[must_use]
    pub fn of(entries: &[i64], columns: NonZeroUsize) -> Self {
        let mut numbers: Vec<i64> = Vec::new();
        let mut place = |entry: &i64| {
            numbers.iter().position(|number| number == entry).unwrap_or_else(|| {
                numbers.push(*entry);
                numbers.len() - 1
            })
        };
        let rows = entries.chunks_exact(columns.get());
        let rows = rows.map(|row| row.iter().map(&mut place).collect()).collect();
        Self { rows, count: numbers.len() }
    }

    /// The places, row by row.
    #[must_use]
    pub fn rows(&self) -> &[Vec<usize>] {
        &self.rows
    }

    /// Numbers of a block.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// The order of the rows of a map in which blocks have the pattern one after the other, in ascending
    /// order of their first rows: each is the first one that is left, with the first ones that are left and
    /// fit.
    ///
    /// # Shapes and units
    /// `map` is `[rows, columns]` with the columns of the pattern.
    ///
    /// # Errors
    /// A number of rows that blocks do not fill, a row without others that fit.
    pub fn order(&self, name: &str, map: &[i64]) -> Result<Vec<usize>, BrokenBlock> {
        let columns = self.columns().max(1);
        let (n, block) = (map.len() / columns, self.rows.len());
        self.check_length(name, n)?;
        let entry = |row: usize, column: usize| map[row * columns + column];
        let known = self.known_columns();
        let mut sorted: Vec<Option<Vec<u32>>> = vec![None; columns];
        for column in known.iter().flatten() {
            sorted[*column].get_or_insert_with(|| {
                let mut rows: Vec<u32> = (0..n as u32).collect();
                rows.sort_by_key(|row| entry(*row as usize, *column));
                rows
            });
        }
        let (mut used, mut order) = (vec![false; n], Vec::with_capacity(n));
        let mut numbers: Vec<Option<i64>> = vec![None; self.count];
        for first in 0..n {
            if used[first] {
                continue;
            }
            numbers.fill(None);
            for c in 0..block {
                let fits = |row: usize, numbers: &[Option<i64>]| {
                    let mut places = self.rows[c].iter().enumerate();
                    !used[row]
                        && places.all(|(k, p)| numbers[*p].is_none_or(|number| number == entry(row, k)))
                };
                let found = match known[c].and_then(|k| Some((k, sorted[k].as_ref()?))) {
                    None => (c == 0).then_some(first),
                    Some((k, rows)) => {
                        let number = numbers[self.rows[c][k]];
                        let start = rows.partition_point(|row| Some(entry(*row as usize, k)) < number);
                        let alike = rows[start..].iter().map(|row| *row as usize);
                        let mut alike = alike.take_while(|row| Some(entry(*row, k)) == number);
                        alike.find(|row| fits(*row, &numbers))
                    }
                };
                let Some(row) = found else {
                    return Err(BrokenBlock::Alone { map: name.into(), row: first, other: c });
                };
                used[row] = true;
                order.push(row);
                for (k, place) in self.rows[c].iter().enumerate() {
                    numbers[*place] = Some(entry(row, k));
                }
            }
        }
        Ok(order)
    }

    /// For each row, a column whose place one of the rows before it has.
    fn known_columns(&self) -> Vec<Option<usize>> {
        let of_row = |(c, row): (usize, &Vec<usize>)| {
            row.iter().position(|place| self.rows[..c].iter().flatten().any(|other| other == place))
        };
        self.rows.iter().enumerate().map(of_row).collect()
    }

    /// Whether each row but the first one shares a number with those before it, by which it is found.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.known_columns().iter().skip(1).all(Option::is_some)
    }

    fn check_length(&self, name: &str, rows: usize) -> Result<(), BrokenBlock> {
        let block = self.rows.len();
        match rows % block {
            0 => Ok(()),
            _ => Err(BrokenBlock::Rest { map: name.into(), rows, block }),
        }
    }
}

/// Rows of a map that have no blocks of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenBlock {
    /// Rows that fill no block.
    #[error(
        "`{map}` has {rows} rows, needed a multiple of {block}, the cells of a block; take a mesh that blocks fill, \
         in the order of `--numbering by-block`, or a mapping without blocks"
    )]
    Rest {
        /// The map.
        map: String,
        /// Its rows.
        rows: usize,
        /// Rows of a block.
        block: usize,
    },
    /// A row that belongs to no block.
    #[error(
        "row {row} of `{map}` begins no block: no row that is left fits as row {other} of the pattern; number \
         degrees of freedom with `--numbering by-block`, take the pattern of the mesh, or a mapping without blocks"
    )]
    Alone {
        /// The map.
        map: String,
        /// The row.
        row: usize,
        /// The row of the pattern.
        other: usize,
    },
    /// Entries that are not the same number.
    #[error(
        "block {block} of `{map}` has {found} in row {row} and column {column}, needed {needed}, which an entry \
         before it has at place {place} of the pattern; number degrees of freedom with `--numbering by-block`, take \
         the pattern of the mesh, or a mapping without blocks"
    )]
    Entry {
        /// The map.
        map: String,
        /// The block.
        block: usize,
        /// The row of the block.
        row: usize,
        /// The column of the map.
        column: usize,
        /// The entry.
        found: i64,
        /// The number.
        needed: i64,
        /// Its place.
        place: usize,
    },
}

/// Numbers of blocks of successive rows of a map, and the input that they are.
///
/// ```
/// use kingpost_steps::block_numbers::{BlockNumbers, BlockPattern};
///
/// let pattern = BlockPattern::new(vec![vec![0, 1], vec![1, 2]])?;
/// let columns = 2.try_into().unwrap();
/// let blocks = BlockNumbers { map: "map".into(), columns, first: 0, pattern, numbers: "map_blocks_0".into() };
/// assert_eq!(blocks.compute(&[5, 6, 6, 9, 6, 7, 7, 8])?, [5, 6, 6, 7, 9, 8]);
/// let broken = blocks.compute(&[5, 6, 6, 9, 6, 7, 8, 8]).unwrap_err().to_string();
/// assert!(broken.starts_with("block 1 of `map` has 8 in row 1 and column 0, needed 7"), "{broken}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockNumbers {
    /// The map, `[rows, columns]`.
    pub map: String,
    /// Columns of the map.
    pub columns: NonZeroUsize,
    /// The first column that the pattern says something of.
    pub first: usize,
    /// Which entries of a block are one number.
    pub pattern: BlockPattern,
    /// The input that has them, `[numbers, blocks]`.
    pub numbers: String,
}

impl BlockNumbers {
    /// The numbers of all blocks, `[numbers, blocks]`, of the entries of the map, row by row.
    ///
    /// # Errors
    /// A number of rows that blocks do not fill; the first entry that is another number than the
    /// pattern says.
    pub fn compute(&self, map: &[i64]) -> Result<Vec<i64>, BrokenBlock> {
        let (columns, block) = (self.columns.get(), self.pattern.rows.len());
        let rows = map.len() / columns;
        self.pattern.check_length(&self.map, rows)?;
        let blocks = rows / block;
        let mut all = vec![0; self.pattern.count * blocks];
        let mut numbers: Vec<Option<i64>> = vec![None; self.pattern.count];
        for (b, entries) in map.chunks_exact(block * columns).enumerate() {
            numbers.fill(None);
            for (row, places) in self.pattern.rows.iter().enumerate() {
                for (k, place) in places.iter().enumerate() {
                    let column = self.first + k;
                    let found = entries[row * columns + column];
                    let needed = *numbers[*place].get_or_insert(found);
                    if needed != found {
                        let (map, block, place) = (self.map.clone(), b, *place);
                        return Err(BrokenBlock::Entry { map, block, row, column, found, needed, place });
                    }
                }
            }
            for (place, number) in numbers.iter().flatten().enumerate() {
                all[place * blocks + b] = *number;
            }
        }
        Ok(all)
    }
}
