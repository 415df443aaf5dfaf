//! The operators of Kulkarni & Klöckner 2025, Appendix A, and the bake-off problems of Fischer et al.
//! 2020.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod bake_off;
pub mod operators;

pub use bake_off::{BakeOff, BakeOffError};
pub use operators::{Operator, OperatorError};
