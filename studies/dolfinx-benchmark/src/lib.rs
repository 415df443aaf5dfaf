//! The study of the DOLFINx benchmark of UKRI: `-div(2 grad u) = f` on a box of hexahedra, matrix-free, as an
//! action or in conjugate gradients without a preconditioner.
//!
//! The library does not depend on it; its command is that of the binary of this crate.

pub mod error;
pub mod matrix;
pub mod operator;
pub mod part;
pub mod problem;
pub mod report;
pub mod solve;
pub mod vectors;
