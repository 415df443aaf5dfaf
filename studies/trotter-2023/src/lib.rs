//! The study of Trotter et al. 2023: assembly of sparse matrices by strategy, and Newton solves.
//!
//! The library does not depend on it; its commands are those of the binary of this crate.

pub mod assembly;
pub mod candidates;
pub mod cycle;
pub mod free;
pub mod newton;
pub mod order;
pub mod page;
pub mod published;
pub mod record;
pub mod scaling;
pub mod setup;
pub mod source;

pub use order::Order;
pub use record::{Assembled, Blocked, Cycled, Free, Question, Scaled, SetUp, Solved};
pub use source::Source;

/// Divisions of a side of the unit cube in the uniform meshes 1 to 8, of six tetrahedra a division
/// (Trotter et al. 2023, Table 2).
pub const DIVISIONS: [usize; 8] = [60, 80, 100, 120, 140, 160, 180, 200];
