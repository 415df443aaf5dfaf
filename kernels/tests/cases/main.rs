//! The operators and bake-off problems, as one program: a file is run by
//! `cargo nextest run --test cases operators::`.

mod bake_off;
mod operators;
mod tiling_sizes;
