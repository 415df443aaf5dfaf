//! Inputs that are computed before a launch: what passes values, and block-local lists of a map.

use purlin_ir::Kernel;

/// What computes inputs that a recipe adds, before the launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// A kernel whose results they are.
    Kernel(Box<Kernel>),
    /// Lists of a map that is an input.
    Lists(ListNames),
    /// Inputs with their rows in another order.
    Rows(RowOrder),
}

impl Definition {
    /// The names of the inputs.
    #[must_use]
    pub fn results(&self) -> Vec<String> {
        match self {
            Self::Kernel(kernel) => {
                kernel.vars.values().filter(|v| v.is_output()).map(|v| v.name.clone()).collect()
            }
            Self::Lists(lists) => {
                let inverse = lists.inverse.iter().flatten();
                [&lists.items, &lists.counts, &lists.numbers].into_iter().chain(inverse).cloned().collect()
            }
            Self::Rows(rows) => rows.copies.iter().map(|(_, copy)| copy.clone()).collect(),
        }
    }
}

/// An order of rows in compact blocks, and the inputs that are passed in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOrder {
    /// The map, `[rows, columns]`.
    pub map: String,
    /// Columns of the map.
    pub columns: i64,
    /// Coordinates, `[points, dimension]`.
    pub points: String,
    /// Coordinates of a point.
    pub dimension: i64,
    /// Rows of a block.
    pub block: i64,
    /// Inputs, and the names of those with the same rows in this order.
    pub copies: Vec<(String, String)>,
}

impl RowOrder {
    /// The row that comes at each place, by recursive bisection of the centroids of the points of
    /// rows across their longest side, at multiples of the block. Rows of a block are in ascending
    /// order; entries of the map that lead to no point count as the origin.
    ///
    /// # Shapes and units
    /// `map` is `[rows, columns]`, `points` `[points, dimension]`; the result has `rows` entries.
    #[must_use]
    pub fn compute(&self, map: &[i64], points: &[f64]) -> Vec<usize> {
        let [columns, dimension, block] =
            [self.columns, self.dimension, self.block].map(|n| usize::try_from(n).unwrap_or(1).max(1));
        let mut centroids = Vec::with_capacity(map.len() / columns * dimension);
        for row in map.chunks_exact(columns) {
            for axis in 0..dimension {
                let of = |v: &i64| points.get(usize::try_from(*v).ok()? * dimension + axis);
                let sum: f64 = row.iter().filter_map(of).sum();
                centroids.push(sum / columns as f64);
            }
        }
        let mut order: Vec<usize> = (0..map.len() / columns).collect();
        bisect(&mut order, &centroids, dimension, block);
        order
    }
}

/// Rows of a half for which it has a thread of its own: some milliseconds of work.
const ROWS_OF_THREAD: usize = 1 << 16;

/// Brings rows into compact blocks.
fn bisect(rows: &mut [usize], centroids: &[f64], dimension: usize, block: usize) {
    if rows.len() <= block {
        rows.sort_unstable();
        return;
    }
    let extent = |axis: usize| {
        let along = rows.iter().map(|row| centroids[row * dimension + axis]);
        let ends = along.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        ends.1 - ends.0
    };
    let longest = (0..dimension).map(extent).enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    let axis = longest.map_or(0, |(axis, _)| axis);
    let half = rows.len().div_ceil(block) / 2 * block;
    // the row breaks ties, so that the order is one and the same on every machine
    let key = |row: &usize| (centroids[row * dimension + axis], *row);
    rows.select_nth_unstable_by(half, |a, b| {
        let (a, b) = (key(a), key(b));
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    });
    let halves = rows.split_at_mut(half);
    if halves.0.len() < ROWS_OF_THREAD {
        bisect(halves.0, centroids, dimension, block);
        return bisect(halves.1, centroids, dimension, block);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| bisect(halves.0, centroids, dimension, block));
        bisect(halves.1, centroids, dimension, block);
    });
}

/// The lists of a map by name, and their sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListNames {
    /// The map, `[rows, columns]`.
    pub map: String,
    /// The lists, `[blocks, capacity]`.
    pub items: String,
    /// Their lengths, `[blocks]`.
    pub counts: String,
    /// The number of each element of the map in its list, `[columns, rows]`.
    pub numbers: String,
    /// The first place of each number, `[blocks, capacity + 1]`, and the places, `[blocks,
    /// columns*block]`, if they are passed.
    pub inverse: Option<[String; 2]>,
    /// Columns of the map.
    pub columns: i64,
    /// Rows of a block.
    pub block: i64,
    /// Elements that a list has room for.
    pub capacity: i64,
}

/// The values of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListValues {
    /// `[blocks, capacity]`; the last entry of a list stands behind it, too.
    pub items: Vec<i64>,
    /// `[blocks]`.
    pub counts: Vec<i64>,
    /// `[columns, rows]`.
    pub numbers: Vec<i64>,
    /// `[blocks, capacity + 1]`; empty without an inverse.
    pub starts: Vec<i64>,
    /// `[blocks, columns*block]`; empty without an inverse.
    pub places: Vec<i64>,
}

impl ListValues {
    /// The values by the names of the inputs.
    #[must_use]
    pub fn named(self, names: &ListNames) -> Vec<(String, Vec<i64>)> {
        let Self { items, counts, numbers, starts, places } = self;
        let mut named = vec![
            (names.items.clone(), items),
            (names.counts.clone(), counts),
            (names.numbers.clone(), numbers),
        ];
        if let Some([first, all]) = &names.inverse {
            named.extend([(first.clone(), starts), (all.clone(), places)]);
        }
        named
    }

    /// The places of each number of a block whose elements have these numbers, column by column.
    fn invert(&mut self, numbers: &[Vec<i64>], capacity: usize, block: usize) {
        let mut starts = vec![0; capacity + 1];
        for number in numbers.iter().flatten() {
            starts[*number as usize + 1] += 1;
        }
        for k in 0..capacity {
            starts[k + 1] += starts[k];
        }
        let mut next = starts.clone();
        let mut places = vec![0; numbers.len() * block];
        for (column, of_rows) in numbers.iter().enumerate() {
            for (row, number) in of_rows.iter().enumerate() {
                let place = &mut next[*number as usize];
                places[*place as usize] = (column * block + row) as i64;
                *place += 1;
            }
        }
        self.starts.append(&mut starts);
        self.places.append(&mut places);
    }
}

/// A block reaches more elements than a list has room for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "block {block} of `{map}` has {found} distinct entries, and its list has room for {capacity}; take a \
     larger capacity (`items` of a mapping)"
)]
pub struct ListOverflow {
    /// The map.
    pub map: String,
    /// The block.
    pub block: usize,
    /// Distinct entries.
    pub found: usize,
    /// Room.
    pub capacity: i64,
}

impl ListNames {
    /// The names that a map of this name gets.
    #[must_use]
    pub fn of(map: &str, columns: i64, block: i64, capacity: i64, inverse: bool) -> Self {
        let name = |what: &str| format!("{map}_{what}");
        let (items, counts, numbers) = (name("items"), name("counts"), name("numbers"));
        let inverse = inverse.then(|| [name("starts"), name("places")]);
        Self { map: map.into(), items, counts, numbers, inverse, columns, block, capacity }
    }

    /// Elements that the longest list needs room for.
    #[must_use]
    pub fn room(&self, map: &[i64]) -> u64 {
        let rows = usize::try_from(self.columns.saturating_mul(self.block)).unwrap_or(1).max(1);
        map.chunks(rows).map(|entries| distinct(entries).len() as u64).max().unwrap_or(0)
    }

    /// The lists of the entries of the map, row by row, in ascending order of the entries.
    ///
    /// # Errors
    /// The first block with too many entries.
    pub fn compute(&self, map: &[i64]) -> Result<ListValues, ListOverflow> {
        let columns = usize::try_from(self.columns).unwrap_or(1).max(1);
        let block = usize::try_from(self.block).unwrap_or(1).max(1);
        let rows = map.len() / columns;
        // blocks are independent: each thread takes some that follow one another
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let of_thread = rows.div_ceil(block).div_ceil(threads).max(1);
        let parts: Vec<Result<ListValues, ListOverflow>> = std::thread::scope(|scope| {
            let parts = map.chunks(of_thread * block * columns).enumerate();
            let parts: Vec<_> =
                parts.map(|(k, entries)| scope.spawn(move || self.part(entries, k * of_thread))).collect();
            parts
                .into_iter()
                .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut values = ListValues {
            items: Vec::new(),
            counts: Vec::new(),
            numbers: vec![0; map.len()],
            starts: Vec::new(),
            places: Vec::new(),
        };
        let mut first = 0;
        for part in parts {
            let mut part = part?;
            let of_part = part.numbers.len() / columns;
            for (column, numbers) in part.numbers.chunks(of_part.max(1)).enumerate() {
                let at = column * rows + first;
                values.numbers[at..at + of_part].copy_from_slice(numbers);
            }
            first += of_part;
            values.items.append(&mut part.items);
            values.counts.append(&mut part.counts);
            values.starts.append(&mut part.starts);
            values.places.append(&mut part.places);
        }
        Ok(values)
    }

    /// The lists of some blocks, the first of which has a number; `numbers` is `[columns, rows]` of
    /// these.
    fn part(&self, map: &[i64], first: usize) -> Result<ListValues, ListOverflow> {
        let columns = usize::try_from(self.columns).unwrap_or(1).max(1);
        let rows = map.len() / columns;
        let block = usize::try_from(self.block).unwrap_or(1).max(1);
        let capacity = usize::try_from(self.capacity).unwrap_or(0);
        let blocks = rows.div_ceil(block);
        let mut values = ListValues {
            items: Vec::with_capacity(blocks * capacity),
            counts: Vec::with_capacity(blocks),
            numbers: vec![0; map.len()],
            starts: Vec::new(),
            places: Vec::new(),
        };
        for (b, entries) in map.chunks(block * columns).enumerate() {
            let mut distinct = distinct(entries);
            if distinct.len() > capacity {
                let (map, found, capacity) = (self.map.clone(), distinct.len(), self.capacity);
                return Err(ListOverflow { map, block: first + b, found, capacity });
            }
            for (e, entry) in entries.iter().enumerate() {
                let row = b * block + e / columns;
                // every entry is among the distinct ones
                let number = distinct.binary_search(entry).unwrap_or_default();
                values.numbers[e % columns * rows + row] = number as i64;
            }
            if self.inverse.is_some() {
                let rows_of_block = b * block..(b * block + entries.len() / columns);
                let of_column = |column: usize| {
                    let first = column * rows;
                    values.numbers[first + rows_of_block.start..first + rows_of_block.end].to_vec()
                };
                let numbers: Vec<Vec<i64>> = (0..columns).map(of_column).collect();
                values.invert(&numbers, capacity, block);
            }
            values.counts.push(distinct.len() as i64);
            let last = distinct.last().copied().unwrap_or(0);
            distinct.resize(capacity, last);
            values.items.append(&mut distinct);
        }
        Ok(values)
    }
}

/// The distinct ones of some entries, in ascending order.
fn distinct(entries: &[i64]) -> Vec<i64> {
    let mut distinct = entries.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}
