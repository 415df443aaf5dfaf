//! Inputs that are computed before a launch: what passes values, and block-local lists of a map.

use purlin_ir::Kernel;
use std::collections::BTreeMap;

/// What computes inputs that a recipe adds, before the launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// A kernel whose results they are.
    Kernel(Box<Kernel>),
    /// Lists of a map that is an input.
    Lists(ListNames),
}

impl Definition {
    /// The names of the inputs.
    #[must_use]
    pub fn results(&self) -> Vec<String> {
        match self {
            Self::Kernel(kernel) => {
                kernel.vars.values().filter(|v| v.is_output()).map(|v| v.name.clone()).collect()
            }
            Self::Lists(lists) => vec![lists.items.clone(), lists.counts.clone(), lists.numbers.clone()],
        }
    }
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
    pub fn of(map: &str, columns: i64, block: i64, capacity: i64) -> Self {
        let name = |what: &str| format!("{map}_{what}");
        let (items, counts, numbers) = (name("items"), name("counts"), name("numbers"));
        Self { map: map.into(), items, counts, numbers, columns, block, capacity }
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
        let rows = map.len() / columns;
        let block = usize::try_from(self.block).unwrap_or(1).max(1);
        let capacity = usize::try_from(self.capacity).unwrap_or(0);
        let blocks = rows.div_ceil(block);
        let mut values = ListValues {
            items: Vec::with_capacity(blocks * capacity),
            counts: Vec::with_capacity(blocks),
            numbers: vec![0; map.len()],
        };
        for (b, entries) in map.chunks(block * columns).enumerate() {
            let mut distinct = distinct(entries);
            if distinct.len() > capacity {
                let (map, found, capacity) = (self.map.clone(), distinct.len(), self.capacity);
                return Err(ListOverflow { map, block: b, found, capacity });
            }
            let places: BTreeMap<i64, usize> = distinct.iter().enumerate().map(|(k, v)| (*v, k)).collect();
            for (e, entry) in entries.iter().enumerate() {
                let row = b * block + e / columns;
                values.numbers[e % columns * rows + row] = places[entry] as i64;
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
