//! Forms from their text to compiled kernels and solutions. One program, because each that is linked costs
//! seconds: a file is run by `cargo nextest run --test forms orbits::`.

#[path = "../support/mod.rs"]
mod support;

mod actions;
mod cell_blocks;
mod double_single;
mod exactness;
mod fewest_operations;
mod hip;
mod imported;
mod imported_orbits;
mod jit;
mod listed_cells;
mod map_runs;
mod mappings;
mod matrix_cells;
mod matrix_group_orbits;
mod matrix_groups;
mod matrix_orbits;
mod modes;
mod nvrtc;
mod orbits;
mod orientations;
mod parts;
mod polynomial;
mod quadrature_rules;
mod solve;
mod source_hashes;
mod stored_factors;
mod sum_factorisation;
mod wavefronts;
