//! What the work-items of a group ask of arithmetic and memory, without running the code.
//!
//! The code of a card is walked with the values of its integers: indices, bounds and entries of maps
//! are computed for all work-items of a group in step, values in floating point are not. So each
//! access has the addresses that it will have, and is counted as the hardware serves it: distinct
//! sectors of 32 bytes of global memory, and wavefronts over the banks of local memory, for each
//! sub-group of 32 work-items. Of long loops some iterations stand for all.

mod counts;
mod live;
mod memory;
mod standing;
mod value;
mod walk;

pub use counts::{GlobalAccesses, Integers, Traffic};

use crate::code::Code;

/// Statements that a walk visits at most (some tenths of a second).
const LIMIT: u64 = 400_000;

/// What a group of a launch asks for.
///
/// # Shapes and units
/// `group` is the index of the group along each axis; the result is of that group alone.
///
/// # Errors
/// None: code that is too long is walked in part, and [`Traffic::complete`] says so; an address that
/// is not known counts as if each work-item had a sector of its own.
#[must_use]
pub fn traffic(code: &Code, group: [i64; 3], integers: &dyn Integers) -> Traffic {
    let mut walker = walk::Walker::new(code, group, integers, LIMIT);
    walker.block(&code.function.body);
    walker.finish()
}

#[cfg(test)]
mod tests;
