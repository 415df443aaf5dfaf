//! Proofs that several primitives share.

pub(crate) mod elements;
pub(crate) mod extent;
pub mod order;
pub(crate) mod storage;
