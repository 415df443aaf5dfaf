//! What can go wrong.

use purlin_codegen::CodegenError;
use purlin_ir::text::ParseErrors;
use purlin_runtime::RuntimeError;
use purlin_solve::SolveError;
use purlin_transforms::TransformError;

/// Why there is no hierarchy, or no solution.
#[derive(Debug, thiserror::Error)]
pub enum MultigridError {
    /// A degree that there is no element of.
    #[error("elements of degree {degree}: needed a degree from 1 to {highest}")]
    Degree {
        /// What was asked for.
        degree: usize,
        /// The highest there is.
        highest: usize,
    },
    /// Cells that do not halve down to two a side.
    #[error("{cells} cells a side do not nest: needed a power of two, at least 2, such as {nearest}")]
    Cells {
        /// What was asked for.
        cells: usize,
        /// A number that suits.
        nearest: usize,
    },
    /// A vector that is not of the finest level.
    #[error("a right-hand side of {found} values, needed one for each of the {needed} nodes")]
    Length {
        /// Its values.
        found: usize,
        /// Nodes of the finest level.
        needed: usize,
    },
    /// The vectors do not fit.
    #[error(
        "the vectors take {needed} bytes, and `{device}` has {available}; take fewer cells or a lower degree"
    )]
    Memory {
        /// Bytes of all vectors.
        needed: u64,
        /// Bytes of the device.
        available: u64,
        /// The device.
        device: String,
    },
    /// A polynomial of degree 0.
    #[error("a polynomial of degree 0 smooths nothing: needed a degree of at least 1")]
    NoPolynomial,
    /// Points all at once.
    #[error("point Gauss–Seidel takes one node after the other: needed patches for an additive smoother")]
    AdditivePoints,
    /// Tiles of matrix instructions do not suit.
    #[error(
        "matrix instructions for {0}: needed the fused kernel in double precision, three dimensions, a degree of \
         2, 3, 5, 6 or 7, and sub-groups that share its planes, 8 or 16, in pairs"
    )]
    NoTiles(String),
    /// A matrix has no factors; mass matrices are positive definite.
    #[error("bug of purlin: the mass matrix of degree {0} is not positive definite")]
    NotPositive(usize),
    /// A text is no kernel.
    #[error("bug of purlin: {0}")]
    Kernel(#[from] ParseErrors),
    /// A step is refused.
    #[error("bug of purlin: {0}")]
    Step(#[from] TransformError),
    /// A kernel has no code, as where its local arrays do not fit.
    #[error(transparent)]
    Code(#[from] CodegenError),
    /// The solver around the cycles refuses.
    #[error(transparent)]
    Solve(SolveError),
    /// The device refuses.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl From<SolveError> for MultigridError {
    fn from(error: SolveError) -> Self {
        match error {
            SolveError::Runtime(error) => Self::Runtime(error),
            SolveError::Code(error) => Self::Code(error),
            SolveError::Text(error) => Self::Kernel(error),
            SolveError::Form(_)
            | SolveError::Schedule(_)
            | SolveError::Mapping(_)
            | SolveError::Unmapped { .. }
            | SolveError::Missing { .. }
            | SolveError::Assembly
            | SolveError::Length { .. }
            | SolveError::NoDiagonal { .. }
            | SolveError::NoBlock { .. }
            | SolveError::Spectrum { .. }
            | SolveError::Choice { .. }
            | SolveError::Norm { .. }
            | SolveError::Unprepared
            | SolveError::Parts { .. }
            | SolveError::PartEnded { .. }
            | SolveError::Prescribed { .. }
            | SolveError::Memory { .. } => Self::Solve(error),
        }
    }
}
