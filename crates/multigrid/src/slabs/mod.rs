//! The hierarchy on several devices, each of which has a slab of the mesh.
//!
//! Slabs are layers of cells along the slowest axis, an even number each, with one layer of the
//! neighbours' cells next to them. The first half of the colours has patches within slabs. After it
//! neighbours exchange a layer, while the patches of the second half that lie within slabs are smoothed.
//! Those across a cut come last and are smoothed on both sides alike, so that no more is exchanged.
//!
//! That is the order of one device: the patches of the second half that lie above each other, in
//! whichever of its colours, change no node that the other one reads. Residuals are added at the cuts
//! after a restriction. Levels with few layers are on every device as a whole.

mod cycle;
mod level;
mod neighbours;
mod solver;

pub(crate) use level::Slab;
pub(crate) use neighbours::Neighbours;
pub use solver::{SlabOptions, SlabSolver};

/// What slabs do while numbers are under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exchanges {
    /// They smooth patches that need none of them.
    #[default]
    Overlapped,
    /// They wait.
    InTurn,
    /// Nothing is exchanged, and results are wrong: to time what is left.
    LeftOut,
}
