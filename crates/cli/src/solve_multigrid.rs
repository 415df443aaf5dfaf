//! `kingpost solve poisson --multigrid`: Poisson's equation on squares or cubes, matrix-free.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::run_args::open_device;
use super::solve_args::{CyclePrecision, MultigridMethod, SolveArgs};
use super::solve_domain::{Domain, write_vtu};
use super::solved::{Solved, TOLERANCE, history, problem};
use super::table::{facts, grouped, seconds};
use kingpost::check_memory;
use kingpost::multigrid::{
    Element, Hierarchy, HierarchyOptions, MultigridError, Precision, PreconditionedSolver, Start,
};
use kingpost::runtime::Device;
use kingpost::solve::{GmresOptions, SolveError};
use std::time::Instant;

impl From<MultigridError> for Failure {
    fn from(error: MultigridError) -> Self {
        match error {
            MultigridError::Runtime(error) | MultigridError::Solve(SolveError::Runtime(error)) => {
                error.into()
            }
            MultigridError::Degree { .. }
            | MultigridError::Cells { .. }
            | MultigridError::Length { .. }
            | MultigridError::Slabs { .. }
            | MultigridError::NoPolynomial
            | MultigridError::NoSteps
            | MultigridError::AdditivePoints
            | MultigridError::NoTiles(_)
            | MultigridError::Vertices { .. }
            | MultigridError::Coefficients { .. }
            | MultigridError::Coefficient { .. }
            | MultigridError::Inverted { .. }
            | MultigridError::DeformedSmoother(_)
            | MultigridError::MeshDimension { .. }
            | MultigridError::MeshSize { .. }
            | MultigridError::NoMesh
            | MultigridError::Source { .. }
            | MultigridError::MeshCells { .. }
            | MultigridError::IrregularVertex { .. }
            | MultigridError::NoBox { .. }
            | MultigridError::BoxCells { .. }
            | MultigridError::Host(_)
            | MultigridError::Memory { .. } => Self::Usage(error.to_string()),
            MultigridError::NotPositive(_)
            | MultigridError::NoSlab(_)
            | MultigridError::Element(_)
            | MultigridError::Quadrature(_)
            | MultigridError::NoRows { .. }
            | MultigridError::NoProduct { .. }
            | MultigridError::Kernel(_)
            | MultigridError::Step(_)
            | MultigridError::Code(_)
            | MultigridError::Solve(_) => Self::Refused(error.to_string()),
        }
    }
}

/// Solves for a source of 1.
pub(super) fn run(args: &SolveArgs) -> Result<(), Failure> {
    if args.problem == "stokes" {
        return super::solve_stokes::run(args);
    }
    if args.problem != "poisson" {
        return Err(Failure::Usage(format!(
            "`{}` has no multigrid; needed poisson or stokes, or leave --multigrid out",
            args.problem
        )));
    }
    let progress = Progress::new();
    let domain = Domain::of(args)?;
    let (element, cells) = (Element::new(domain.dimension, args.degree)?, domain.cells);
    // the right-hand side and what it is made from, and the solution, besides what devices have
    let bytes = (element.nodes(cells) as u64).saturating_mul(8 * if args.vtu.is_some() { 8 } else { 2 });
    check_memory("the vectors on the host", bytes, "take fewer cells or a lower degree")?;
    if !args.devices.is_empty() {
        drop(progress);
        return super::solve_slabs::run(args, element, &domain);
    }
    let device = open_device(args.device.as_deref())?;
    progress.stage("setting up");
    let around = args.multigrid_method()?;
    if args.nested && around == MultigridMethod::FullMultigrid {
        return Err(Failure::Usage(
            "--nested: full multigrid starts from coarser meshes as it is; needed --method gmres".into(),
        ));
    }
    if args.has_mesh() && around == MultigridMethod::FullMultigrid {
        return Err(Failure::Usage("--deform, --jump and --mesh: needed --method gmres".into()));
    }
    let (method, solved) = match (around, args.precision) {
        (MultigridMethod::FullMultigrid, CyclePrecision::Double) => {
            ("full multigrid".to_owned(), full_multigrid(args, &*device, element, cells)?)
        }
        (MultigridMethod::FullMultigrid, CyclePrecision::Mixed) => {
            return Err(Failure::Usage(
                "--precision mixed: cycles alone end at the roundings of single precision; needed --method gmres".into(),
            ));
        }
        (MultigridMethod::Gmres, CyclePrecision::Double) => {
            let solved = gmres(args, &*device, element, &domain, Precision::Double)?;
            ("GMRES, preconditioned by a V-cycle".to_owned(), solved)
        }
        (MultigridMethod::Gmres, CyclePrecision::Mixed) => {
            let solved = gmres(args, &*device, element, &domain, Precision::Single)?;
            ("GMRES, preconditioned by a V-cycle in single precision".to_owned(), solved)
        }
    };
    drop(progress);
    let info = device.info();
    out(&facts([
        ("problem", problem(args)),
        ("domain", domain.described.clone()),
        ("device", format!("{} ({})", info.name, info.selector())),
        ("cells", format!("{cells} a side, {} levels from 2 a side on", cells.ilog2())),
        ("nodes", grouped(element.nodes(cells) as u64)),
        ("method", method),
        ("smoother", args.smoother.describe(element.dimension.axes())),
        ("setup", seconds(solved.setup)),
        ("solve", seconds(solved.solve)),
    ]))?;
    let step = match around {
        MultigridMethod::FullMultigrid => "V-cycle",
        MultigridMethod::Gmres => "iteration",
    };
    let first = if args.nested { "start from the mesh below" } else { "right-hand side" };
    out(&history(step, first, &solved.residuals))?;
    if let Some(reason) = solved.failure {
        return Err(Failure::Refused(format!("`poisson` did not converge: {reason}; the history is above")));
    }
    write_vtu(args, element, &domain, &solved.solution)
}

fn full_multigrid(
    args: &SolveArgs,
    device: &dyn Device,
    element: Element,
    cells: usize,
) -> Result<Solved, Failure> {
    let begin = Instant::now();
    let levels = Hierarchy::with(device, element, cells, args.smoother.options(Precision::Double))?;
    let loads: Vec<Vec<f64>> = (0..levels.levels()).map(|level| levels.load(level)).collect();
    let setup = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let report = levels.full_multigrid(&loads, args.residual.unwrap_or(TOLERANCE), args.iterations)?;
    let solved = Solved::of(report, setup, begin);
    let finest = levels.levels() - 1;
    let solution = if args.vtu.is_some() { levels.solution(finest)? } else { Vec::new() };
    Ok(Solved { solution, ..solved })
}

fn gmres(
    args: &SolveArgs,
    device: &dyn Device,
    element: Element,
    domain: &Domain,
    precision: Precision,
) -> Result<Solved, Failure> {
    let options = GmresOptions {
        relative: args.residual.unwrap_or(TOLERANCE),
        max_iterations: args.iterations,
        ..GmresOptions::default()
    };
    let begin = Instant::now();
    let cycle = args.smoother.options(precision);
    let mut solver = with_source(args, device, element, domain, (cycle, options))?;
    let setup = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let report = solver.solve()?;
    let solved = Solved::of(report, setup, begin);
    let solution = if args.vtu.is_some() { solver.solution()? } else { Vec::new() };
    Ok(Solved { solution, ..solved })
}

/// The solver with its right-hand side, on a deformed mesh where one is asked for.
fn with_source<'d>(
    args: &SolveArgs,
    device: &'d dyn Device,
    element: Element,
    domain: &Domain,
    (cycle, options): (HierarchyOptions, GmresOptions),
) -> Result<PreconditionedSolver<'d>, MultigridError> {
    let start = if args.nested { Start::Nested } else { Start::Zero };
    let Some(mesh) = &domain.mesh else {
        let solver = PreconditionedSolver::with(device, element, domain.cells, cycle, start, options)?;
        solver.set_product(1.0, &solver.hierarchy().line().load(domain.cells))?;
        return Ok(solver);
    };
    let solver = PreconditionedSolver::on(device, element, mesh, cycle, start, options)?;
    solver.set_source(&vec![1.0; element.nodes(domain.cells)])?;
    Ok(solver)
}
