//! The study of Świrydowicz et al. 2019: its three benchmark problems, its tuned kernels as
//! recipes, its rooflines, and pages of measurements beside them.
//!
//! The library does not depend on it; its commands are those of the binary of this crate.

pub mod measure;
pub mod model;
pub mod page;
pub mod picture;
pub mod problem;
pub mod recipes;
pub mod record;
pub mod reference;
pub mod stale;
pub mod steps;
