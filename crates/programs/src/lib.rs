//! Other programs made of whole ones: two in a row, many of one, other arguments.
//!
//! These are no steps, because callers see the difference: the result has other arguments. Each says what
//! became of names.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod batch;
mod bound_errors;
mod fuse;
mod interface;

pub use batch::{Batches, to_batched};
pub use bound_errors::{BoundedErrors, bound_errors};
pub use fuse::{Fused, fuse_kernels};
pub use interface::{remove_unused_arguments, rename_arguments};

use kingpost_ir::{Kernel, KernelError};
use kingpost_steps::refusal::{Refusal, TransformError};

/// The canonical form of what was made, if it is well formed.
fn checked(operation: &str, kernel: Kernel) -> Result<Kernel, TransformError> {
    let kernel = kernel.canonical();
    kernel.verify().map_err(|e: KernelError| refused(operation, Refusal::Malformed(e)))?;
    Ok(kernel)
}

fn refused(operation: &str, cause: Refusal) -> TransformError {
    TransformError { operation: operation.to_owned(), cause }
}
