//! Kernels: expressions, types, domains, the loop tree, the text format, dependences, statistics and the interpreter.

pub mod constant;
pub mod types;

pub use constant::{Real, TableData};
pub use types::ScalarType;
