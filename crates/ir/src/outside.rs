//! Arrays of integers that have no entries in a range, or a part of the range for each row.

use crate::affine::{Affine, Atom};
use crate::ids::VarId;
use serde::{Deserialize, Serialize};

/// The entries of an array of integers are outside a range, perhaps with the exception of numbers
/// that a row has alone.
///
/// Formula: not `from <= array[i] < to`. With `own = first`, for an array `[rows, columns]` and `l = columns -
/// first`: so for columns `i < first`, and `array[r, i] = from + l*r + i - first` for the others.
/// Whatever entry of row `r` is in the range is then in `from + l*r .. from + l*(r + 1)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OutsideRange {
    /// The array.
    pub array: VarId,
    /// The first number of the range, of parameters and scalars that are inputs.
    pub from: Affine,
    /// The number after it.
    pub to: Affine,
    /// The first column of the numbers that a row has alone, if there are any.
    pub own: Option<i64>,
}

impl OutsideRange {
    /// The same of other variables.
    #[must_use]
    pub fn map_vars(&self, moved: &dyn Fn(VarId) -> VarId) -> Self {
        let end = |end: &Affine| {
            end.substitute(&|atom| match atom {
                Atom::Var(v) => Some(Affine::var(moved(*v))),
                Atom::Iname(_) | Atom::Floor(..) => None,
            })
        };
        Self { array: moved(self.array), from: end(&self.from), to: end(&self.to), own: self.own }
    }
}
