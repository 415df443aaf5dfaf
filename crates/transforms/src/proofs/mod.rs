//! Proofs that several primitives share.

pub(crate) mod elements;
pub(crate) mod extent;
pub mod bounds;
pub mod footprint;
pub mod order;
pub mod stale;
pub(crate) mod storage;
