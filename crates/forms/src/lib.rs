//! Variational forms, elements, quadrature, meshes, numberings, and their lowering to kernels.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod element;
pub mod form;
pub mod lowering;
pub mod mesh;
pub mod numbering;
pub mod quadrature;
pub mod reference;
