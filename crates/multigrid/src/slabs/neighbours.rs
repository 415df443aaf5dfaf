//! What the other parts of a mesh in slabs are to one.

use super::Exchanges;
use super::level::{Gathering, Slab};
use kingpost_runtime::Executable;

/// What the other parts of a mesh in slabs are to one.
pub(crate) struct Neighbours {
    pub(super) exchanges: Exchanges,
    pub(super) pack: Executable,
    pub(super) unpack: Executable,
    pub(super) add: Executable,
    /// How many levels every part has as a whole, before those in slabs.
    pub(super) n_whole: usize,
    /// Steps of the smoother that solve on the coarsest level.
    pub(crate) steps: usize,
    pub(super) gathering: Gathering,
}

impl Neighbours {
    /// The layer of a coarser level that a slab begins with: of one that every part has as a whole, that
    /// of the part.
    pub(crate) const fn first_layer(&self, coarse: Slab, fine: Slab) -> usize {
        let is_gathered = fine.layers() != fine.own && coarse.layers() == coarse.own;
        if is_gathered { self.gathering.slab.first } else { coarse.below }
    }
}
