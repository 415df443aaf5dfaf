//! Block-local lists of the values of a map.

use crate::ids::VarId;
use serde::{Deserialize, Serialize};

/// For each block of `block` rows of a map, the values that occur in them, and for each element of
/// the map its number in the list of its block.
///
/// For every row `r` and column `i`, with `b = floor(r/block)` and `k = numbers[i, r]`:
/// `0 <= k < counts[b]` and `items[b, k] = map[r, i]`. Entries of `items` after `counts[b]` mean
/// nothing.
///
/// With the inverse of the numbers, every element of the map in a block occurs once among `places` of
/// the block, under its number: `places[b, p] = i*block + r - b*block` for exactly one `p` in
/// `starts[b, k]..starts[b, k + 1]`, and there is no other place. After the last number, `starts`
/// repeats.
///
/// With exclusive items, with `first = exclusive.room` and `e = exclusive.counts`, the items with
/// `k < e[b] <= first` are those of block `b` alone: among all `items[b, k]` with `k < e[b]` or `first <=
/// k < counts[b]`, no other one has the value of one with `k < e[b]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlockLists {
    /// The map, `[rows, columns]`.
    pub map: VarId,
    /// The lists, `[blocks, capacity]`.
    pub items: VarId,
    /// Their lengths, `[blocks]`.
    pub counts: VarId,
    /// The numbers, `[columns, rows]`.
    pub numbers: VarId,
    /// Where each number occurs, if that is known.
    pub inverse: Option<InverseLists>,
    /// Rows of a block.
    pub block: i64,
    /// The items that no other block has, if those are known.
    pub exclusive: Option<ExclusiveItems>,
}

/// The items of lists that no other block has: they come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExclusiveItems {
    /// How many there are, `[blocks]`.
    pub counts: VarId,
    /// Where the others start in each list.
    pub room: i64,
}

/// The elements of a map in a block, by their numbers in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InverseLists {
    /// The first place of each number, `[blocks, capacity + 1]`.
    pub starts: VarId,
    /// The places, `[blocks, columns*block]`.
    pub places: VarId,
}

impl BlockLists {
    /// The arrays: map, lists, lengths, numbers, the inverse, and how many items are exclusive.
    #[must_use]
    pub fn vars(&self) -> Vec<VarId> {
        self.with_axes().into_iter().map(|(var, _)| var).collect()
    }

    /// The arrays with the number of their axes.
    pub(crate) fn with_axes(&self) -> Vec<(VarId, usize)> {
        let inverse = self.inverse.into_iter().flat_map(|inverse| [(inverse.starts, 2), (inverse.places, 2)]);
        let exclusive = self.exclusive.map(|exclusive| (exclusive.counts, 1));
        let always = [(self.map, 2), (self.items, 2), (self.counts, 1), (self.numbers, 2)];
        always.into_iter().chain(inverse).chain(exclusive).collect()
    }

    /// The same of other variables.
    #[must_use]
    pub fn map_vars(&self, moved: &dyn Fn(VarId) -> VarId) -> Self {
        let [map, items, counts, numbers] = [self.map, self.items, self.counts, self.numbers].map(moved);
        let inverse = self
            .inverse
            .map(|inverse| InverseLists { starts: moved(inverse.starts), places: moved(inverse.places) });
        let exclusive = self.exclusive.map(|of| ExclusiveItems { counts: moved(of.counts), room: of.room });
        Self { map, items, counts, numbers, inverse, block: self.block, exclusive }
    }
}
