//! What is true of a kernel: dependences, placement, bounds of accesses, statistics, each with a
//! witness where it does not hold.

mod analysis;
mod answers;
pub mod deps;
mod entries;
pub mod inside;
pub mod placement;
pub mod polyhedral;
pub mod stats;
pub mod witness;

pub use analysis::Analysis;
pub use answers::Answers;
pub use entries::{Entries, changing_bounds};
pub use witness::{Instance, Witness};
