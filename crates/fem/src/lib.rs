//! Finite elements: cells, elements, quadrature, meshes, numberings, and the patterns of sparse matrices.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod cell;
pub mod element;
pub mod mesh;
pub mod numbering;
pub mod quadrature;
pub mod sparse;
pub mod vtu;
