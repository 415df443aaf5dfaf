//! The study of Fischer et al. 2020: bake-off problems on L-vectors, billions of degrees of freedom a
//! second over the number of unknowns.
//!
//! The library does not depend on it; its commands are those of the binary of this crate.

pub mod lattice;
pub mod measure;
pub mod page;
pub mod picture;
pub mod record;
pub mod scatter;
pub mod solve;
pub mod vectors;
