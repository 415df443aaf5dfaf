//! The kernels of the documents Purlin implements, and their recipes.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))] // a new variant must not fall into an old arm unseen

pub mod operators;

pub use operators::{Operator, OperatorError};
