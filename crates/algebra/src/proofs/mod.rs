//! Proofs about tables and sums.

pub mod identity;
pub mod linear;
pub mod orbit_products;
pub mod point_terms;
pub mod rescaled;
pub mod separable;
pub mod sums;
