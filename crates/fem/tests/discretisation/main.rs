//! Elements, rules, meshes and numberings.

mod elements;
mod finite_elements;
mod gmsh;
mod gmsh_blocks;
mod gmsh_flat;
mod mesh;
#[cfg(feature = "metis")]
mod metis;
mod numbering;
mod quadrature;
mod refined;
mod vtu;
