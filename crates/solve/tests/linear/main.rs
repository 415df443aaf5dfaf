//! Linear systems on devices, as one program: a file is run by
//! `cargo nextest run --test linear krylov::`.

mod amg;
mod block_csr;
mod krylov;
mod parts;
mod pattern;
mod scatter;
mod solvers;
mod systems;
