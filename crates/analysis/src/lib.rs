//! What is true of a kernel: dependences, placement, bounds of accesses, statistics, each with a
//! witness where it does not hold.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod analysis;
mod answers;
pub mod deps;
mod entries;
pub mod inside;
mod kept;
mod known;
mod origin;
pub mod placement;
pub mod polyhedral;
mod question;
pub mod stats;
pub mod witness;

pub use analysis::Analysis;
pub use answers::Answers;
pub use entries::{Entries, changing_bounds};
pub use known::Known;
pub use witness::{Instance, Witness};
