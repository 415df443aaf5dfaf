//! Levels, smoothers and their kernels, as one program: a file is run by
//! `cargo nextest run --test hierarchy smoothers::`.

mod deformed;
mod instructions;
mod krylov;
mod mapped_box;
mod nvrtc;
mod operators;
mod reference;
mod slabs;
mod smoothers;
mod stokes;
mod stokes_reference;
mod tables;
