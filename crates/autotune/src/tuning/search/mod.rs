//! The space of tiling parameters of a problem: counted, ranked, drawn from, never stored.
//!
//! Constraint 1 of Kulkarni & Klöckner 2025 leaves few values of each parameter, but their product
//! has up to some hundred million candidates. They are visited in *groups* that share the tile of
//! the quadrature loop and the heights of the other tiles. Inside a group the predicted time
//! depends on the remaining tile sizes by the local memory alone, and never falls when that grows;
//! so tiles in the order of their memory, the fastest candidates, and how many are faster than a
//! given one are found without looking at most of them.

mod best;
mod bounds;
mod cost;
mod group;
mod options;
mod space;
mod staged;
#[cfg(test)]
mod tests;

pub use best::Ranked;
pub use bounds::{Cut, SearchBounds};
pub use cost::{CostModel, NoOccupancy};
pub use options::{SearchSpace, tile_options};
pub use space::{Standing, Survey};
pub use staged::staged_tilings;
