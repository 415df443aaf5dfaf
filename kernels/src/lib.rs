//! The operators of Kulkarni & Klöckner 2025, Appendix A.

pub mod operators;

pub use operators::{Operator, OperatorError};
