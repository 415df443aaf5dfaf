//! Proofs that several primitives share.

pub mod order;
