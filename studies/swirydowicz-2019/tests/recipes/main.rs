//! The tuned kernels and their formulas, as one program: a file is run by
//! `cargo nextest run --test recipes kernels::`.

mod formulas;
mod kernels;
mod nvrtc;
