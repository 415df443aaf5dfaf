//! Variational forms, elements, quadrature, meshes, numberings, and their lowering to kernels.

pub mod element;
pub mod form;
pub mod lowering;
pub mod mesh;
pub mod numbering;
pub mod quadrature;
pub mod reference;
