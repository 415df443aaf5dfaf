//! Elements, quadrature, meshes, numberings and integrals, as one program: a file is run by
//! `cargo nextest run --test discretisation numbering::`.

mod boundary;
mod elements;
mod finite_elements;
mod gmsh;
mod gmsh_flat;
mod gmsh_groups;
mod interior_facets;
mod mesh;
mod numbering;
mod on_meshes;
mod quadrature;
mod spaces;
mod tabulated;
mod vtu;
