//! `kingpost solve stokes --multigrid`: Stokes' equations in Raviart–Thomas elements on squares or
//! cubes, matrix-free.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::run_args::open_device;
use super::solve_args::{CyclePrecision, MultigridMethod, MultigridSmoother, SolveArgs};
use super::solve_domain::Domain;
use super::solved::{Solved, TOLERANCE, history};
use super::table::{facts, grouped, seconds};
use kingpost::check_memory;
use kingpost::multigrid::stokes::{SourceTerm, StokesSolver, numbers};
use kingpost::multigrid::{Element, Precision};
use kingpost::solve::GmresOptions;
use std::time::Instant;

/// Solves for a force that turns the fluid about the middle.
pub(super) fn run(args: &SolveArgs) -> Result<(), Failure> {
    check(args)?;
    let progress = Progress::new();
    let domain = Domain::of(args)?;
    let (element, cells) = (Element::new(domain.dimension, args.degree)?, domain.cells);
    // the right-hand side, and what the divergence is read from
    let bytes = (numbers(element, cells) as u64).saturating_mul(8 * 2);
    check_memory("the vectors on the host", bytes, "take fewer cells or a lower degree")?;
    let device = open_device(args.device.as_deref())?;
    progress.stage("setting up");
    let (precision, cycle) = match args.precision {
        CyclePrecision::Double => (Precision::Double, "a V-cycle"),
        CyclePrecision::Mixed => (Precision::Single, "a V-cycle in single precision"),
    };
    let options = GmresOptions {
        relative: args.residual.unwrap_or(TOLERANCE),
        max_iterations: args.iterations,
        ..GmresOptions::default()
    };
    let begin = Instant::now();
    let mut solver = StokesSolver::new(&*device, element, cells, precision, options)?;
    solver.set_source(&SourceTerm::swirl(domain.dimension))?;
    let setup = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let report = solver.solve()?;
    let solved = Solved::of(report, setup, begin);
    let divergence = solver.divergence()?;
    drop(progress);
    let info = device.info();
    out(&facts([
        (
            "problem",
            format!("stokes, RT{0} and Q{0} on each cell, a force that turns the fluid", args.degree),
        ),
        ("domain", domain.described),
        ("device", format!("{} ({})", info.name, info.selector())),
        ("cells", format!("{cells} a side, {} levels from 2 a side on", cells.ilog2())),
        ("unknowns", grouped(solver.unknowns() as u64)),
        ("method", format!("GMRES, preconditioned by {cycle}")),
        ("smoother", format!("vertex patches in {} colours", 1 << element.dimension.axes())),
        ("setup", seconds(solved.setup)),
        ("solve", seconds(solved.solve)),
        ("divergence", format!("{divergence:.1e} in the L2 norm")),
    ]))?;
    out(&history("iteration", "right-hand side", &solved.residuals))?;
    match solved.failure {
        Some(reason) => {
            Err(Failure::Refused(format!("`stokes` did not converge: {reason}; the history is above")))
        }
        None => Ok(()),
    }
}

/// What other problems have, and this one has not.
fn check(args: &SolveArgs) -> Result<(), Failure> {
    let refused = [
        ("--nested", args.nested),
        ("--deform, --jump and --mesh", args.has_mesh()),
        ("--devices", !args.devices.is_empty()),
        ("--vtu", args.vtu.is_some()),
        ("--smoother", args.smoother != MultigridSmoother::VertexPatch),
        ("--method", args.method.is_some() && args.multigrid_method()? != MultigridMethod::Gmres),
    ];
    match refused.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::Usage(format!(
            "{option}: `stokes` is solved by GMRES with vertex patches on squares and cubes, on one device; needed \
             `stokes` without it"
        ))),
        None => Ok(()),
    }
}
