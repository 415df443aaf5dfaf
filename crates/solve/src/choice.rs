//! Methods and preconditioners of linear systems by name.

use std::fmt;
use std::str::FromStr;

/// Iterations of GMRES after which it starts again.
pub(crate) const RESTART: usize = 50;

/// A method for linear systems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinearMethod {
    /// [`ConjugateGradients`], for symmetric positive definite matrices.
    #[default]
    ConjugateGradients,
    /// [`Gmres`], for any matrix.
    Gmres,
    /// [`BiCgStab`], for any matrix.
    BiCgStab,
    /// [`ChebyshevSolver`], for symmetric positive definite matrices.
    Chebyshev,
}

/// What is near the inverse of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PreconditionerKind {
    /// Nothing.
    None,
    /// The inverse of the [`Diagonal`].
    #[default]
    Jacobi,
    /// The inverses of the blocks on the diagonal, [`BlockJacobi`].
    BlockJacobi,
    /// A polynomial, [`Chebyshev`].
    Chebyshev,
    /// Algebraic multigrid, [`Amg`].
    Amg,
    /// The same with matrices in single precision in its cycles; all vectors and sums are in double
    /// precision.
    AmgF32,
}

/// Numbers of the matrices that cycles multiply by; vectors and sums are in double precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CycleNumbers {
    /// In double precision.
    #[default]
    F64,
    /// In single precision, which are fewer bytes to read.
    F32,
}

impl CycleNumbers {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
        }
    }
}

/// A method and a preconditioner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinearChoice {
    /// The method.
    pub method: LinearMethod,
    /// The preconditioner.
    pub preconditioner: PreconditionerKind,
}

/// A name that no method or preconditioner has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{name}`; known: {known}")]
pub struct UnknownSolver {
    what: &'static str,
    name: String,
    known: String,
}

pub(crate) fn named<T: Copy + fmt::Display>(
    what: &'static str,
    all: &[T],
    name: &str,
) -> Result<T, UnknownSolver> {
    let found = all.iter().find(|one| one.to_string() == name).copied();
    found.ok_or_else(|| {
        let known: Vec<String> = all.iter().map(ToString::to_string).collect();
        UnknownSolver { what, name: name.into(), known: known.join(", ") }
    })
}

impl LinearMethod {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ConjugateGradients, Self::Gmres, Self::BiCgStab, Self::Chebyshev];

    /// Vectors that it keeps besides right-hand side and solution, at most.
    #[must_use]
    pub const fn vectors(self) -> u64 {
        match self {
            Self::ConjugateGradients => 4,
            Self::Gmres => 2 * RESTART as u64 + 1,
            Self::BiCgStab => 7,
            // those of the search for eigenvalues too
            Self::Chebyshev => 9,
        }
    }
}

impl fmt::Display for LinearMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConjugateGradients => "cg",
            Self::Gmres => "gmres",
            Self::BiCgStab => "bicgstab",
            Self::Chebyshev => "chebyshev",
        })
    }
}

impl FromStr for LinearMethod {
    type Err = UnknownSolver;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        named("method", &Self::ALL, name)
    }
}

impl PreconditionerKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Jacobi, Self::BlockJacobi, Self::Chebyshev, Self::Amg, Self::AmgF32];

    /// The numbers of the matrices of its cycles, if it has some.
    pub(crate) const fn cycle_numbers(self) -> CycleNumbers {
        match self {
            Self::AmgF32 => CycleNumbers::F32,
            Self::None | Self::Jacobi | Self::BlockJacobi | Self::Chebyshev | Self::Amg => CycleNumbers::F64,
        }
    }

    /// Whether it is a cycle of a hierarchy.
    #[must_use]
    pub const fn is_multilevel(self) -> bool {
        matches!(self, Self::Amg | Self::AmgF32)
    }

    /// Bytes that it takes on a device for a matrix of a number of unknowns of `components` each.
    #[must_use]
    pub const fn bytes(self, unknowns: u64, components: u64) -> u64 {
        match self {
            Self::None | Self::Jacobi => 8 * unknowns,
            Self::BlockJacobi => (8 + 4) * unknowns * components,
            // its diagonal, its vectors, those of the search for eigenvalues
            Self::Chebyshev => 8 * 10 * unknowns,
            // the vectors of the finest level, and those of the search for eigenvalues; matrices
            // are counted once they are known ([`Amg::new`])
            Self::Amg | Self::AmgF32 => 8 * 8 * unknowns,
        }
    }
}

impl fmt::Display for PreconditionerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Jacobi => "jacobi",
            Self::BlockJacobi => "block-jacobi",
            Self::Chebyshev => "chebyshev",
            Self::Amg => "amg",
            Self::AmgF32 => "amg-f32",
        })
    }
}

impl FromStr for PreconditionerKind {
    type Err = UnknownSolver;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        named("preconditioner", &Self::ALL, name)
    }
}

impl LinearChoice {}

impl fmt::Display for LinearChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, preconditioner {}", self.method, self.preconditioner)
    }
}
