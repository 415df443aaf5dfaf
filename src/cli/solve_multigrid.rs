//! `purlin solve poisson --multigrid`: Poisson's equation on squares or cubes, matrix-free.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::run::open_device;
use super::solve::SolveArgs;
use super::table::{facts, grouped, seconds, table};
use purlin::multigrid::{Convergence, Dimension, Element, Ended, Hierarchy, MultigridError};
use std::time::Instant;

/// Residual that is small enough, relative to the right-hand side.
const TOLERANCE: f64 = 1e-9;

impl From<MultigridError> for Failure {
    fn from(error: MultigridError) -> Self {
        match error {
            MultigridError::Runtime(error) => error.into(),
            MultigridError::Degree { .. }
            | MultigridError::Cells { .. }
            | MultigridError::Length { .. }
            | MultigridError::Memory { .. } => Self::Usage(error.to_string()),
            MultigridError::NotPositive(_)
            | MultigridError::Kernel(_)
            | MultigridError::Step(_)
            | MultigridError::Code(_) => Self::Refused(error.to_string()),
        }
    }
}

/// Solves for a source of 1 by full multigrid.
pub(super) fn run(args: &SolveArgs) -> Result<(), Failure> {
    if args.problem != "poisson" {
        return Err(Failure::Usage(format!(
            "`{}` has no multigrid; needed poisson, or leave --multigrid out",
            args.problem
        )));
    }
    let dimension = if args.dim == 2 { Dimension::Two } else { Dimension::Three };
    let element = Element::new(dimension, args.degree)?;
    let cells = args.cells.unwrap_or(if args.dim == 2 { 64 } else { 16 });
    let progress = Progress::new();
    let device = open_device(args.device.as_deref())?;
    progress.stage("setting up");
    let begin = Instant::now();
    let levels = Hierarchy::new(&*device, element, cells)?;
    let loads: Vec<Vec<f64>> = (0..levels.levels()).map(|level| levels.load(level)).collect();
    let setup = begin.elapsed().as_secs_f64();
    progress.stage("solving");
    let begin = Instant::now();
    let solved = levels.full_multigrid(&loads, args.residual.unwrap_or(TOLERANCE), args.iterations)?;
    let solve = begin.elapsed().as_secs_f64();
    drop(progress);
    let info = device.info();
    out(&facts([
        ("problem", format!("poisson, Q{}, a source of 1", args.degree)),
        ("device", format!("{} ({})", info.name, info.selector())),
        ("cells", format!("{cells} a side, {} levels from 2 a side on", levels.levels())),
        ("nodes", grouped(element.nodes(cells) as u64)),
        ("smoother", format!("vertex patches in {} colours", 1 << usize::from(args.dim))),
        ("setup", seconds(setup)),
        ("solve", seconds(solve)),
    ]))?;
    out(&history(&solved))?;
    match solved.ended {
        Ended::Converged => Ok(()),
        Ended::Diverged | Ended::NotANumber | Ended::Stagnated | Ended::TooManyIterations => {
            Err(Failure::Refused(format!(
                "`poisson` did not converge: {}; the history is above",
                reason(solved.ended)
            )))
        }
    }
}

const fn reason(ended: Ended) -> &'static str {
    match ended {
        Ended::Converged => "the residual is small enough",
        Ended::Diverged => "the residual grows",
        Ended::NotANumber => "the residual is not a number",
        Ended::Stagnated => "the residual is as small as roundings allow; ask for a larger --residual",
        Ended::TooManyIterations => "as many cycles as are allowed",
    }
}

/// The residual after full multigrid's way up and each V-cycle on the finest level.
fn history(solved: &Convergence) -> String {
    let start = solved.residuals.first().copied().unwrap_or(f64::NAN);
    let pairs = std::iter::once(start).chain(solved.residuals.iter().copied()).zip(&solved.residuals);
    let rows = pairs.enumerate().map(|(cycle, (before, now))| {
        let what = if cycle == 0 { "right-hand side".into() } else { cycle.to_string() };
        [what, format!("{now:.3e}"), format!("{:.1e}", now / start), format!("{:.1e}", now / before)]
    });
    table(["V-cycle", "residual", "relative", "of the one before"], rows)
}
