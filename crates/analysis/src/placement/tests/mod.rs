#![allow(clippy::panic)] // what a failed test does

mod random;
mod remembered;

use super::{Placement, PlacementError};
use crate::Analysis;
use kingpost_ir::kernel::Kernel;

/// The placement of a kernel by its tags.
fn placed(kernel: &Kernel) -> Result<Placement, PlacementError> {
    Analysis::of(kernel).place().cloned()
}
