//! Variational forms: their language, their import, their lowering to kernels whose parts have roles, and a
//! reference that evaluates them.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod array;
mod cell_kernel;
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "private kinds of nodes and roles, of which most functions ask for few"
)]
pub mod form;
mod grid;
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "private kinds of nodes and roles, of which most functions ask for few"
)]
pub mod import;
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "private kinds of nodes and roles, of which most functions ask for few"
)]
pub mod lowering;
pub mod program;
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "private kinds of nodes and roles, of which most functions ask for few"
)]
pub mod reference;
mod side;
pub mod tabulated;

pub use cell_kernel::{CellKernel, Relowered};
