//! When linear solvers stop.

use crate::choice::named;
use crate::{LinearMethod, SolveError, UnknownSolver};
use std::fmt;
use std::str::FromStr;

/// The residual whose Euclidean norm says whether a linear solver stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResidualNorm {
    /// The residual itself.
    #[default]
    Plain,
    /// The preconditioned residual, by which PETSc judges conjugate gradients.
    /// [`crate::ConjugateGradients`] only.
    Preconditioned,
}

impl ResidualNorm {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Preconditioned];

    /// Whether the preconditioner is part of it, as a factor.
    pub(crate) const fn scaled(self) -> f64 {
        match self {
            Self::Plain => 0.0,
            Self::Preconditioned => 1.0,
        }
    }
}

impl fmt::Display for ResidualNorm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Preconditioned => "preconditioned",
        })
    }
}

impl FromStr for ResidualNorm {
    type Err = UnknownSolver;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        named("norm", &Self::ALL, name)
    }
}

/// When a linear solver stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearOptions {
    /// The norm of residuals.
    pub norm: ResidualNorm,
    /// Norm of the residual that is small enough, relative to that of the right-hand side.
    pub relative: f64,
    /// Norm of the residual that is small enough in any case.
    pub absolute: f64,
    /// Iterations that are allowed; without any, the start of zero is judged.
    pub max_iterations: usize,
    /// Growth of the residual, relative to the right-hand side, that is allowed.
    pub divergence: f64,
    /// Iterations between two looks of the host at the residuals; at least 1. Those after
    /// convergence change nothing.
    pub look_every: usize,
}

impl LinearOptions {
    /// The same, if its numbers mean something.
    ///
    /// # Errors
    /// [`SolveError::Option`] of a norm that is negative, infinite or no number.
    pub fn checked(self) -> Result<Self, SolveError> {
        let norms =
            [("relative", self.relative), ("absolute", self.absolute), ("divergence", self.divergence)];
        match norms.into_iter().find(|(_, found)| !(*found >= 0.0 && found.is_finite())) {
            None => Ok(self),
            Some((name, found)) => Err(SolveError::Option { name, found }),
        }
    }

    /// The same for a method that judges by the residual itself, which looks at least once an iteration.
    ///
    /// # Errors
    /// [`SolveError::Norm`] of another norm.
    pub(crate) fn of_residuals(self, method: LinearMethod) -> Result<Self, SolveError> {
        match self.norm {
            ResidualNorm::Plain => Ok(Self { look_every: self.look_every.max(1), ..self }),
            ResidualNorm::Preconditioned => Err(SolveError::Norm { method }),
        }
    }
}

impl Default for LinearOptions {
    /// The tolerance of Trotter et al. 2023, §4.5.
    fn default() -> Self {
        Self {
            norm: ResidualNorm::Plain,
            relative: 1e-5,
            absolute: 0.0,
            max_iterations: 100_000,
            divergence: 1e5,
            look_every: 16,
        }
    }
}
