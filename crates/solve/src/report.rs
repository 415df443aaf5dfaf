//! Why a solver stopped, and what it went through.

use std::fmt;

/// Why a linear solver stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearReason {
    /// The residual is small enough.
    Converged,
    /// The iterations that were allowed did not do.
    TooMany,
    /// The residual grew beyond what is allowed.
    Diverged,
    /// A number is infinite or none.
    NotFinite,
    /// The matrix or the preconditioner is not positive definite.
    Indefinite,
    /// The residual no longer decreases: it is as small as roundings allow.
    Stagnated,
    /// A product that the method divides by is zero.
    Breakdown,
}

impl fmt::Display for LinearReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::TooMany => "too many iterations",
            Self::Diverged => "the residual grew",
            Self::NotFinite => "a number is infinite or NaN",
            Self::Indefinite => "the matrix is not positive definite",
            Self::Stagnated => "the residual no longer decreases",
            Self::Breakdown => "the method broke down: a product that it divides by is zero",
        })
    }
}

/// What a linear solver did.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearReport {
    /// Why it stopped.
    pub reason: LinearReason,
    /// The norm of the residual before the first iteration and after each.
    pub residuals: Vec<f64>,
    /// Seconds of its kernels by the device's clock.
    pub seconds: f64,
}

impl LinearReport {
    /// Iterations.
    #[must_use]
    pub fn iterations(&self) -> usize {
        self.residuals.len().saturating_sub(1)
    }

    /// Whether it converged.
    #[must_use]
    pub fn converged(&self) -> bool {
        self.reason == LinearReason::Converged
    }
}

/// Why Newton's method stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewtonReason {
    /// The update is small enough.
    Converged,
    /// The iterations that were allowed did not do.
    TooMany,
    /// A linear system was not solved.
    Linear(LinearReason),
    /// No step along the update reduces the residual.
    LineSearch,
    /// The residual at the start is infinite or no number.
    NotFinite,
}

impl fmt::Display for NewtonReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Converged => f.write_str("converged"),
            Self::TooMany => f.write_str("too many iterations"),
            Self::Linear(reason) => write!(f, "the linear system was not solved: {reason}"),
            Self::LineSearch => f.write_str("no step along the update reduces the residual"),
            Self::NotFinite => f.write_str("the residual at the start is infinite or NaN"),
        }
    }
}

/// An iteration of Newton's method.
#[derive(Clone, Debug, PartialEq)]
pub struct NewtonStep {
    /// Norm of the residual before it, on unknowns that are not prescribed.
    pub residual: f64,
    /// The part of the load that it is solved for.
    pub load: f64,
    /// The linear system.
    pub linear: LinearReport,
    /// Which part of the update was added.
    pub length: f64,
    /// Norm of what was added.
    pub update: f64,
    /// Seconds of the assembly of the matrix by the device's clock.
    pub assembly_s: f64,
    /// Seconds, by the wall clock, in which the preconditioner was made.
    pub preconditioner_s: f64,
}

/// What Newton's method did.
#[derive(Clone, Debug, PartialEq)]
pub struct NewtonReport {
    /// Why it stopped.
    pub reason: NewtonReason,
    /// Its iterations.
    pub steps: Vec<NewtonStep>,
    /// Norm of the residual at the end.
    pub residual: f64,
    /// The part of the load that was solved for: one if it converged.
    pub load: f64,
    /// Wall time of all, seconds.
    pub seconds: f64,
}

impl NewtonReport {
    /// Whether it converged.
    #[must_use]
    pub fn converged(&self) -> bool {
        self.reason == NewtonReason::Converged
    }

    /// Load steps that were tried: runs of iterations for the same part of the load.
    #[must_use]
    pub fn load_steps(&self) -> usize {
        self.steps.chunk_by(|one, next| one.load == next.load).count()
    }

    /// Iterations of all linear systems.
    #[must_use]
    pub fn linear_iterations(&self) -> usize {
        self.steps.iter().map(|step| step.linear.iterations()).sum()
    }
}
