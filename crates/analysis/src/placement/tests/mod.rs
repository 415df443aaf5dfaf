#![allow(clippy::panic)] // what a failed test does

mod random;
mod table;

use super::{Placement, PlacementError};
use crate::Analysis;
use purlin_ir::kernel::Kernel;

/// The placement of a kernel by its tags.
fn placed(kernel: &Kernel) -> Result<Placement, PlacementError> {
    Analysis::of(kernel).place().cloned()
}
