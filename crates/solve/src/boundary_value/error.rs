//! Why a boundary value problem cannot be set up or solved.

use crate::{SolveError, in_parts};
use kingpost_fem::numbering::NumberingError;
use kingpost_forms::form::FormError;
use kingpost_kernels::BoundaryValueProblem;

/// Why a boundary value problem cannot be set up or solved.
#[derive(Debug, thiserror::Error)]
pub enum BoundaryValueSetupError {
    /// The degrees of freedom cannot be numbered.
    #[error(transparent)]
    Numbering(#[from] NumberingError),
    /// The solver refuses.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// An assembly that is not for several devices.
    #[error("{what} on several devices: needed {needed}")]
    Parts {
        /// What was asked for.
        what: String,
        /// What would do.
        needed: &'static str,
    },
    /// A problem that is not for such cells.
    #[error("`{problem}` on {found}: needed {needed}")]
    Cells {
        /// The problem.
        problem: BoundaryValueProblem,
        /// The cells of the mesh.
        found: String,
        /// What would do.
        needed: &'static str,
    },
}

impl From<FormError> for BoundaryValueSetupError {
    fn from(error: FormError) -> Self {
        Self::Solve(error.into())
    }
}

/// Does something for each part, the first in the caller's thread and each other in one of its own.
pub(super) fn each_part<I: Send, T: Send>(
    parts: impl Iterator<Item = I>,
    first: impl FnOnce(I) -> Result<T, BoundaryValueSetupError>,
    others: impl Fn(I) -> Result<T, BoundaryValueSetupError> + Sync,
) -> Result<Vec<T>, BoundaryValueSetupError> {
    let has_ended = |error: &_| matches!(error, BoundaryValueSetupError::Solve(SolveError::PartEnded { .. }));
    in_parts(parts, first, others, has_ended)
}
