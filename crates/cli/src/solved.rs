//! How a solve by multigrid went, and what is said of it.

use super::solve_args::SolveArgs;
use super::table::table;
use kingpost::solve::{LinearReason, LinearReport};
use std::time::Instant;

/// Residual that is small enough, relative to the right-hand side.
pub(super) const TOLERANCE: f64 = 1e-9;

/// How a solve went.
pub(super) struct Solved {
    /// Seconds of setup and solve.
    pub(super) setup: f64,
    pub(super) solve: f64,
    pub(super) residuals: Vec<f64>,
    /// Why it did not converge.
    pub(super) failure: Option<String>,
    /// At the nodes, if it is written to a file.
    pub(super) solution: Vec<f64>,
}

impl Solved {
    /// A solve that began at an instant.
    pub(super) fn of(report: LinearReport, setup: f64, begin: Instant) -> Self {
        let failure = match report.reason {
            LinearReason::Converged => None,
            LinearReason::Stagnated => Some(format!(
                "{}: it is as small as roundings allow; ask for a larger --residual",
                report.reason
            )),
            LinearReason::TooMany
            | LinearReason::Diverged
            | LinearReason::NotFinite
            | LinearReason::Indefinite
            | LinearReason::Breakdown => Some(report.reason.to_string()),
        };
        Self {
            setup,
            solve: begin.elapsed().as_secs_f64(),
            residuals: report.residuals,
            failure,
            solution: Vec::new(),
        }
    }
}

/// What is solved.
pub(super) fn problem(args: &SolveArgs) -> String {
    let deformed = args.deform.map(|part| format!(", vertices moved by {part}"));
    let jump = args.jump.map(|jump| format!(", a coefficient that alternates between 1 and {jump}"));
    let [deformed, jump] = [deformed, jump].map(Option::unwrap_or_default);
    format!("poisson, Q{}, a source of 1{deformed}{jump}", args.degree)
}

/// The residual before the first step, which `first` says what it is of, and after each: of full
/// multigrid, the way up comes before the first cycle.
pub(super) fn history(step: &str, first: &str, residuals: &[f64]) -> String {
    let start = residuals.first().copied().unwrap_or(f64::NAN);
    let pairs = std::iter::once(&start).chain(residuals).zip(residuals);
    let rows = pairs.enumerate().map(|(at, (before, now))| {
        let what = if at == 0 { first.to_owned() } else { at.to_string() };
        [what, format!("{now:.3e}"), format!("{:.1e}", now / start), format!("{:.1e}", now / before)]
    });
    table([step, "residual", "relative", "of the one before"], rows)
}
