//! Whether a value is alive where another sharer of its storage is written.

use super::{Pairs, Question, Relation};
use kingpost_isl as isl;
use std::sync::Arc;

/// Whether nothing runs between the ends of a relation that comes after its source and before its
/// sink.
///
/// Formula: `{ w -> r in D : exists x : w before x before r }` is empty, for any values that the
/// symbols can take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NothingBetween {
    /// From the write of a value to its reads.
    pub(crate) relation: Arc<Relation>,
    /// From the write to what comes after it.
    pub(crate) first: Pairs,
    /// From there to the reads that come after it.
    pub(crate) second: Pairs,
}

impl Question for NothingBetween {
    type Answer = bool;

    const ASKS: &'static str = "whether nothing is written while a value is still read";

    fn ask(&self) -> Result<bool, isl::IslError> {
        Ok(!self.pairs()?.has_pair_within(&self.relation.symbols().ranges)?)
    }
}

impl NothingBetween {
    /// The pairs between which something runs; loops by number.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn pairs(&self) -> Result<isl::Map, isl::IslError> {
        let between = self.first.map()?.apply_range(&self.second.map()?)?;
        self.relation.select(&|pairs| pairs.intersect(&between))
    }
}
