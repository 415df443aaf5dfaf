//! The operators of Kulkarni & Klöckner 2025, Appendix A.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod operators;

pub use operators::{Operator, OperatorError};
