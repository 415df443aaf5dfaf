//! Proofs that several primitives share.

pub(crate) mod accumulation;
pub mod attained;
pub mod bounds;
pub(crate) mod elements;
pub(crate) mod extent;
pub mod footprint;
pub(crate) mod inside;
pub(crate) mod length;
pub mod order;
pub mod stale;
pub(crate) mod width;
pub(crate) mod windows;
pub(crate) mod written;
