//! Inputs that are computed before a launch: what passes values, block-local lists of a map, rows in
//! another order, runs of a map and numbers of its blocks.

use crate::block_numbers::{BlockNumbers, BlockPattern, BrokenBlock};
use crate::runs::RunStarts;
use kingpost_ir::{Kernel, ScalarType};
use std::collections::HashMap;
use std::num::NonZeroUsize;

/// What computes inputs that a recipe adds, before the launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// A kernel whose results they are.
    Kernel(Box<Kernel>),
    /// Lists of a map that is an input.
    Lists(ListNames),
    /// Inputs with their rows in another order.
    Rows(RowOrder),
    /// The first numbers of runs in the rows of a map that is an input.
    Runs(RunStarts),
    /// The numbers of blocks of rows of a map that is an input.
    Blocks(BlockNumbers),
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
                let exclusive = lists.exclusive.iter().map(|(name, _)| name);
                let always = [&lists.items, &lists.counts, &lists.numbers];
                always.into_iter().chain(inverse).chain(exclusive).cloned().collect()
            }
            Self::Rows(rows) => rows.copies.iter().map(|(_, copy)| copy.clone()).collect(),
            Self::Runs(runs) => vec![runs.result().to_owned()],
            Self::Blocks(blocks) => vec![blocks.numbers.clone()],
        }
    }
}

/// An order of rows in blocks, and the inputs that are passed in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOrder {
    /// The map, `[rows, columns]`.
    pub map: String,
    /// Columns of the map.
    pub columns: NonZeroUsize,
    /// Coordinates, `[points, dimension]`.
    pub points: String,
    /// Coordinates of a point.
    pub dimension: NonZeroUsize,
    /// Rows of a block.
    pub block: NonZeroUsize,
    /// The pattern that the rows of a block repeat; none if blocks are compact.
    pub pattern: Option<BlockPattern>,
    /// Inputs, and the names of those with the same rows in this order.
    pub copies: Vec<(String, String)>,
}

impl RowOrder {
    /// The row that comes at each place, by recursive bisection of the centroids of the points of
    /// rows across their longest side, at multiples of the block. Rows of a block are in ascending
    /// order; entries of the map that lead to no point count as the origin. With a pattern, the order in
    /// which blocks of it follow one another ([`BlockPattern::order`]).
    ///
    /// # Shapes and units
    /// `map` is `[rows, columns]`, `points` `[points, dimension]`; the result has `rows` entries.
    ///
    /// # Errors
    /// A row that belongs to no block of the pattern.
    pub fn compute(&self, map: &[i64], points: &[f64]) -> Result<Vec<usize>, BrokenBlock> {
        if let Some(pattern) = &self.pattern {
            return pattern.order(&self.map, map);
        }
        let [columns, dimension, block] = [self.columns, self.dimension, self.block].map(NonZeroUsize::get);
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
        Ok(order)
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
    let Some((axis, _)) = longest else { return };
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
    pub columns: NonZeroUsize,
    /// Rows of a block.
    pub block: NonZeroUsize,
    /// Elements that a list has room for.
    pub capacity: usize,
    /// Whether numbers and places have 16 bits; else at least 32, as the map.
    pub short: bool,
    /// The number of items of each block that no other one has, `[blocks]`, and the room for them
    /// before the others, if they are told apart.
    pub exclusive: Option<(String, usize)>,
}

/// The values of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListValues {
    /// `[blocks, capacity]`; the last entry of a list stands after it, too.
    pub items: Vec<i64>,
    /// `[blocks]`.
    pub counts: Vec<i64>,
    /// `[columns, rows]`.
    pub numbers: Vec<i64>,
    /// `[blocks, capacity + 1]`; empty without an inverse.
    pub starts: Vec<i64>,
    /// `[blocks, columns*block]`; empty without an inverse.
    pub places: Vec<i64>,
    /// `[blocks]`; empty where exclusive items are not told apart.
    pub exclusive: Vec<i64>,
}

impl ListValues {
    /// The values by the names of the inputs, with the types of these, where `map` is that of the
    /// map.
    #[must_use]
    pub fn named(self, names: &ListNames, map: ScalarType) -> Vec<(String, ScalarType, Vec<i64>)> {
        let Self { items, counts, numbers, starts, places, exclusive } = self;
        let number = if names.short { ScalarType::I16 } else { map.loaded() };
        let mut named = vec![
            (names.items.clone(), map, items),
            (names.counts.clone(), map.loaded(), counts),
            (names.numbers.clone(), number, numbers),
        ];
        if let Some([first, all]) = &names.inverse {
            named.extend([(first.clone(), number, starts), (all.clone(), number, places)]);
        }
        if let Some((name, _)) = &names.exclusive {
            named.push((name.clone(), map.loaded(), exclusive));
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
    pub capacity: usize,
}

impl ListNames {
    /// The names that a map of this name gets.
    #[must_use]
    pub fn of(map: &str, columns: NonZeroUsize, block: NonZeroUsize, capacity: usize, inverse: bool) -> Self {
        let name = |what: &str| format!("{map}_{what}");
        let (items, counts, numbers) = (name("items"), name("counts"), name("numbers"));
        let inverse = inverse.then(|| [name("starts"), name("places")]);
        Self {
            map: map.into(),
            items,
            counts,
            numbers,
            inverse,
            columns,
            block,
            capacity,
            short: false,
            exclusive: None,
        }
    }

    /// The same with room for items in front that no other block has.
    #[must_use]
    pub fn with_exclusive(mut self, room: usize) -> Self {
        self.exclusive = Some((format!("{}_exclusive", self.map), room));
        self
    }

    /// The same with numbers and places of 16 bits.
    #[must_use]
    pub fn with_short_numbers(mut self) -> Self {
        self.short = true;
        self
    }

    /// Elements that the longest list needs room for.
    #[must_use]
    pub fn room(&self, map: &[i64]) -> u64 {
        let owners = self.owners(map);
        let room = |(b, entries)| self.order(b, distinct(entries), owners.as_ref()).end() as u64;
        map.chunks(self.entries()).enumerate().map(room).max().unwrap_or(0) // default: of no block
    }

    /// Items that the block with most of them has alone.
    #[must_use]
    pub fn exclusive_room(&self, map: &[i64]) -> u64 {
        let owners = Owners::of(map, self.entries());
        let alone =
            |(b, entries)| distinct(entries).iter().filter(|v| owners.has_alone(b, **v)).count() as u64;
        map.chunks(self.entries()).enumerate().map(alone).max().unwrap_or(0) // default: of no block
    }

    /// Which block has each value alone, where that counts.
    fn owners(&self, map: &[i64]) -> Option<Owners> {
        self.exclusive.as_ref().map(|_| Owners::of(map, self.entries()))
    }

    /// Entries of the map in a block.
    fn entries(&self) -> usize {
        self.columns.saturating_mul(self.block).get()
    }

    /// The distinct values of a block, those that it has alone first, as far as there is room for
    /// them.
    fn order(&self, b: usize, distinct: Vec<i64>, owners: Option<&Owners>) -> Ordered {
        let (Some(owners), Some((_, room))) = (owners, &self.exclusive) else {
            return Ordered { own: Vec::new(), others: distinct, first: 0 };
        };
        let first = *room;
        let (mut own, mut others): (Vec<i64>, Vec<i64>) =
            distinct.into_iter().partition(|v| owners.has_alone(b, *v));
        if own.len() > first {
            others.extend(own.split_off(first));
            others.sort_unstable();
        }
        Ordered { own, others, first }
    }

    /// The lists of the entries of the map, row by row, in ascending order of the entries.
    ///
    /// # Errors
    /// The first block with too many entries.
    pub fn compute(&self, map: &[i64]) -> Result<ListValues, ListOverflow> {
        let (columns, block) = (self.columns.get(), self.block.get());
        let rows = map.len() / columns;
        // blocks are independent: each thread takes some that follow one another
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let of_thread = rows.div_ceil(block).div_ceil(threads).max(1);
        let owners = self.owners(map);
        let owners = owners.as_ref();
        let parts: Vec<Result<ListValues, ListOverflow>> = std::thread::scope(|scope| {
            let parts = map.chunks(of_thread * block * columns).enumerate();
            let parts: Vec<_> = parts
                .map(|(k, entries)| scope.spawn(move || self.part(entries, k * of_thread, owners)))
                .collect();
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
            exclusive: Vec::new(),
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
            values.exclusive.append(&mut part.exclusive);
        }
        Ok(values)
    }

    /// The lists of some blocks, the first of which has a number; `numbers` is `[columns, rows]` of
    /// these.
    fn part(&self, map: &[i64], first: usize, owners: Option<&Owners>) -> Result<ListValues, ListOverflow> {
        let (columns, block, capacity) = (self.columns.get(), self.block.get(), self.capacity);
        let rows = map.len() / columns;
        let blocks = rows.div_ceil(block);
        let mut values = ListValues {
            items: Vec::with_capacity(blocks * capacity),
            counts: Vec::with_capacity(blocks),
            numbers: vec![0; map.len()],
            starts: Vec::new(),
            places: Vec::new(),
            exclusive: Vec::new(),
        };
        for (b, entries) in map.chunks(block * columns).enumerate() {
            let ordered = self.order(first + b, distinct(entries), owners);
            if ordered.end() > capacity {
                let (map, found, capacity) = (self.map.clone(), ordered.end(), self.capacity);
                return Err(ListOverflow { map, block: first + b, found, capacity });
            }
            for (e, entry) in entries.iter().enumerate() {
                let row = b * block + e / columns;
                // every entry is among the distinct ones
                let number = ordered.number(*entry);
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
            values.counts.push(ordered.end() as i64);
            if owners.is_some() {
                values.exclusive.push(ordered.own.len() as i64);
            }
            values.items.append(&mut ordered.list(capacity));
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

/// The distinct values of a block: those that no other one has, and after the room for them the
/// others, both in ascending order.
struct Ordered {
    own: Vec<i64>,
    others: Vec<i64>,
    first: usize,
}

impl Ordered {
    /// One after the last place.
    fn end(&self) -> usize {
        self.first + self.others.len()
    }

    /// The place of a value that is there.
    fn number(&self, value: i64) -> usize {
        let own = self.own.binary_search(&value);
        own.unwrap_or_else(|_| self.first + self.others.partition_point(|other| *other < value))
    }

    /// The list with room for `capacity`: what means nothing repeats a value of the block.
    fn list(&self, capacity: usize) -> Vec<i64> {
        let last = |values: &[i64], other: &[i64]| values.last().or(other.first()).copied();
        let mut list = self.own.clone();
        // a block has an entry
        let Some((front, end)) = last(&self.own, &self.others).zip(last(&self.others, &self.own)) else {
            return list;
        };
        list.resize(self.first, front);
        list.extend(&self.others);
        list.resize(capacity, end);
        list
    }
}

/// The block that has each value of a map, if one has it alone.
enum Owners {
    /// From the least value on.
    Near(i64, Vec<u32>),
    /// Of values far from each other.
    Far(HashMap<i64, u32>),
}

/// Stands for more than one block.
const SEVERAL: u32 = u32::MAX;
/// Stands for no block.
const NONE: u32 = u32::MAX - 1;

impl Owners {
    /// The owners of the values of blocks of `length` entries.
    fn of(map: &[i64], length: usize) -> Self {
        let (least, most) = map.iter().fold((i64::MAX, i64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
        let span = if map.is_empty() { 0 } else { most.abs_diff(least).saturating_add(1) };
        // four bytes a value of the span, or some tens a value that is there
        let mut owners = if span / 8 <= map.len() as u64 {
            Self::Near(least, vec![NONE; span as usize])
        } else {
            Self::Far(HashMap::with_capacity(map.len()))
        };
        for (b, entries) in map.chunks(length.max(1)).enumerate() {
            for value in entries {
                let owner = match &mut owners {
                    Self::Near(least, of) => &mut of[value.abs_diff(*least) as usize],
                    Self::Far(of) => of.entry(*value).or_insert(NONE),
                };
                *owner = if *owner == NONE || *owner == b as u32 { b as u32 } else { SEVERAL };
            }
        }
        owners
    }

    fn has_alone(&self, b: usize, value: i64) -> bool {
        let owner = match self {
            Self::Near(least, of) => of.get(value.abs_diff(*least) as usize),
            Self::Far(of) => of.get(&value),
        };
        owner == Some(&(b as u32))
    }
}
