//! The kernels of the documents Purlin implements, and their recipes.

pub mod operators;

pub use operators::{Operator, OperatorError};
