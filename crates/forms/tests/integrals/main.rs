//! Integrals on meshes, as one program: a file is run by
//! `cargo nextest run --test integrals spaces::`.

mod boundary;
mod gmsh_groups;
mod interior_facets;
mod on_meshes;
mod spaces;
mod tabulated;
