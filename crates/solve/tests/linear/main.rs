//! Linear systems on devices, as one program: a file is run by
//! `cargo nextest run --test linear krylov::`.

mod amg;
mod block_csr;
mod krylov;
mod nested;
mod part_forms;
mod parts;
mod pattern;
mod scatter;
mod shared;
mod solvers;
mod systems;
mod turned;
mod two_levels;
