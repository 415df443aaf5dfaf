//! Whether the matrices of entities are symmetric.

use super::LoweredKernel;
use crate::form::FormError;
use crate::tabulated::TabulatedForm;
use kingpost_primitives::Schedule;
use kingpost_primitives::primitives::MirrorTriangle;

/// Proves that the matrices of the entities of each kernel are symmetric.
///
/// # Errors
/// [`FormError::Discretisation`] of test and trial functions of two spaces, or of entries that differ
/// from their mirror images, with both.
pub(super) fn check(form: &TabulatedForm, kernels: &[LoweredKernel]) -> Result<(), FormError> {
    let refused = |found: String| {
        FormError::Discretisation(format!(
            "the half of a symmetric matrix: found {found}, needed a form that is symmetric in its test and trial \
             functions; use a lookup table"
        ))
    };
    if let Some(output) = form.outputs.iter().find(|o| o.spaces.first() != o.spaces.get(1)) {
        return Err(refused(format!("two spaces in `{}`", output.name)));
    }
    for lowered in kernels {
        let program = lowered.program.as_ref().map_err(|e| refused(e.to_string()))?;
        let mut schedule = Schedule::of(&lowered.kernel);
        for result in &program.results {
            let mirrored = schedule.apply(MirrorTriangle::new(result.array.name()));
            mirrored.map_err(|e| refused(format!("a matrix of which that is not proved ({e})")))?;
        }
    }
    Ok(())
}
