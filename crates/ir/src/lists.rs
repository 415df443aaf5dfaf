//! Block-local lists of the values of a map.

use crate::ids::VarId;
use crate::kernel::{Kernel, VarKind};
use crate::verify::KernelError;
use serde::{Deserialize, Serialize};

/// For each block of `block` rows of a map, the values that occur in them, and for each element of
/// the map its number in the list of its block.
///
/// For every row `r` and column `i`, with `b = floor(r/block)` and `k = numbers[i, r]`:
/// `0 <= k < counts[b]` and `items[b, k] = map[r, i]`. Entries of `items` behind `counts[b]` mean
/// nothing.
///
/// With the inverse of the numbers, every element of the map in a block occurs once among `places` of
/// the block, under its number: `places[b, p] = i*block + r - b*block` for exactly one `p` in
/// `starts[b, k]..starts[b, k + 1]`, and there is no other place. Behind the last number, `starts`
/// repeats.
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
    /// The arrays: map, lists, lengths, numbers, and the inverse.
    #[must_use]
    pub fn vars(&self) -> Vec<VarId> {
        let inverse = self.inverse.into_iter().flat_map(|inverse| [inverse.starts, inverse.places]);
        [self.map, self.items, self.counts, self.numbers].into_iter().chain(inverse).collect()
    }

    /// The same of other variables.
    #[must_use]
    pub fn map_vars(&self, moved: &dyn Fn(VarId) -> VarId) -> Self {
        let [map, items, counts, numbers] = [self.map, self.items, self.counts, self.numbers].map(moved);
        let inverse = self
            .inverse
            .map(|inverse| InverseLists { starts: moved(inverse.starts), places: moved(inverse.places) });
        Self { map, items, counts, numbers, inverse, block: self.block }
    }

    /// As [`check`](Self::check), in the words of the verifier.
    pub(crate) fn verify(&self, kernel: &Kernel) -> Result<(), KernelError> {
        let refused = |(v, why): (VarId, _)| KernelError::Variable { var: kernel.vars[v].name.clone(), why };
        self.check(kernel).map_err(refused)
    }

    /// Whether the arrays can be lists of the map.
    ///
    /// # Errors
    /// The array that cannot, and why.
    pub fn check(&self, kernel: &Kernel) -> Result<(), (VarId, &'static str)> {
        if self.block < 1 {
            return Err((self.map, "a block of a map has at least one row"));
        }
        for (var, axes) in self.vars().into_iter().zip([2, 2, 1, 2, 2, 2]) {
            let data = &kernel.vars[var];
            if data.ty.is_float() || data.shape.len() != axes {
                return Err((var, "lists and their map are integers: two axes, their lengths one"));
            }
            if !matches!(data.kind, VarKind::Argument(_) | VarKind::Table(_)) {
                return Err((var, "lists and their map are arguments or tables"));
            }
        }
        Ok(())
    }
}
