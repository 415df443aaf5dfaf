//! Running kernels: programs with their arguments on a device, inputs that are computed once, problems
//! with what their results must be, and comparisons with the interpreter.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod judge;
mod layout;
mod loaded;
mod matrix;
mod problem;
mod random;
mod setup;

pub use layout::{gathered, laid_out, settled};
pub use loaded::{LoadError, Loaded};
pub use matrix::CsrMatrix;
pub use problem::{Problem, ProblemError, RelativeError};
pub use random::Random;
pub use setup::{SetUp, SetUpError, check_room, exclusive_room, list_room, set_up, set_up_maps, set_up_with};
