//! What may go wrong.

use kingpost::autotune::Refusal;
use kingpost::codegen::CodegenError;
use kingpost::forms::element::ElementError;
use kingpost::forms::form::FormError;
use kingpost::forms::mesh::MeshError;
use kingpost::forms::numbering::NumberingError;
use kingpost::forms::tabulated::TabulatedError;
use kingpost::runtime::RuntimeError;
use kingpost::solve::SolveError;
use kingpost::transforms::TransformError;
use kingpost::{JitError, SetUpError};

/// Why the benchmark did not run.
#[derive(Debug, thiserror::Error)]
pub enum BenchmarkError {
    /// The mesh cannot be made.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The mesh cannot be numbered.
    #[error(transparent)]
    Numbering(#[from] NumberingError),
    /// There is no such element.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// The form has no tables.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The form has no kernel.
    #[error(transparent)]
    Tabulated(#[from] TabulatedError),
    /// No mapping is taken.
    #[error("{0}")]
    Mapping(Refusal),
    /// A step is refused.
    #[error(transparent)]
    Step(#[from] TransformError),
    /// A kernel has no code.
    #[error(transparent)]
    Code(#[from] CodegenError),
    /// Inputs could not be computed.
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    /// The device failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// It does not fit the device.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The matrix could not be assembled.
    #[error(transparent)]
    Jit(#[from] JitError),
    /// Iterations went on after the residual was zero.
    #[error(
        "the result of {iterations} iterations of conjugate gradients with {free} unknowns is no number: the \
         residual was zero before the last one; lower --nreps"
    )]
    Spent {
        /// Iterations.
        iterations: usize,
        /// Unknowns that are solved for.
        free: usize,
    },
    /// The result is another one than that of the assembled matrix.
    #[error(
        "the result differs from that of the assembled matrix by {error:.1e} of its norm, needed {needed:.0e}"
    )]
    Wrong {
        /// By how much, in units of the norm.
        error: f64,
        /// Largest that is right.
        needed: f64,
    },
}
