//! `kingpost solve poisson --multigrid --devices`: each device has a slab of the mesh.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::solve_args::{CyclePrecision, MultigridMethod, MultigridSmoother, SolveArgs};
use super::solve_domain::{Domain, write_vtu};
use super::solved::{Solved, TOLERANCE, history, problem};
use super::table::{facts, grouped, seconds, table};
use kingpost::Exchange;
use kingpost::multigrid::{Element, Precision, SlabOptions, SlabSolver};
use kingpost::runtime::{Device, open};
use kingpost::solve::GmresOptions;
use std::time::Instant;

/// Refuses what slabs do not have.
fn check(args: &SolveArgs) -> Result<(), Failure> {
    let refused = |what: &str, needed: &str| {
        Err(Failure::Usage(format!("{what} with --multigrid on several devices: needed {needed}")))
    };
    if args.multigrid_method()? == MultigridMethod::FullMultigrid {
        return refused("--method full-multigrid", "--method gmres");
    }
    if args.smoother != MultigridSmoother::VertexPatch {
        return refused("this --smoother", "--smoother vertex-patch");
    }
    match (args.nested, args.has_mesh()) {
        (true, _) => refused("--nested", "a start from zero"),
        (false, true) => refused("--deform, --jump and --mesh", "a Cartesian mesh"),
        (false, false) => Ok(()),
    }
}

/// Solves for a source of 1.
pub(super) fn run(args: &SolveArgs, element: Element, domain: &Domain) -> Result<(), Failure> {
    check(args)?;
    let cells = domain.cells;
    let progress = Progress::new();
    let devices: Vec<Box<dyn Device>> =
        args.devices.iter().map(|name| open(name)).collect::<Result<_, _>>()?;
    let devices: Vec<&dyn Device> = devices.iter().map(|device| &**device).collect();
    let exchange = args.exchange.unwrap_or_else(|| Exchange::between(&devices));
    progress.stage("setting up");
    let (precision, cycle) = match args.precision {
        CyclePrecision::Double => (Precision::Double, ""),
        CyclePrecision::Mixed => (Precision::Single, " in single precision"),
    };
    let gmres = GmresOptions {
        relative: args.residual.unwrap_or(TOLERANCE),
        max_iterations: args.iterations,
        ..GmresOptions::default()
    };
    let options = SlabOptions { precision, gmres, ..SlabOptions::default() };
    let begin = Instant::now();
    let communicators = exchange.communicators(&devices)?;
    let mut solver = SlabSolver::new(&devices, communicators, element, cells, options)?;
    solver.set_product(1.0, |_| 1.0)?;
    let setup = begin.elapsed().as_secs_f64();
    progress.stage("solving");
    let begin = Instant::now();
    let solved = Solved::of(solver.solve()?, setup, begin);
    drop(progress);
    let [in_slabs, whole] = solver.levels();
    out(&facts([
        ("problem", problem(args)),
        ("cells", format!("{cells} a side, {in_slabs} of {} levels in slabs", in_slabs + whole)),
        ("nodes", grouped(element.nodes(cells) as u64)),
        ("method", format!("GMRES, preconditioned by a V-cycle{cycle}")),
        ("smoother", args.smoother.describe(element.dimension.axes())),
        ("exchange", format!("{exchange}, {} bytes a V-cycle", grouped(solver.bytes_of_cycle()))),
        ("setup", seconds(solved.setup)),
        ("solve", seconds(solved.solve)),
    ]))?;
    let rows = devices.iter().zip(solver.parts()).enumerate().map(|(part, (device, [owned, others]))| {
        let info = device.info();
        let named = format!("{} ({})", info.name, info.selector());
        [part.to_string(), named, grouped(owned as u64), grouped(others as u64)]
    });
    out(&table(["part", "device", "nodes", "of neighbours"], rows))?;
    out(&history("iteration", "right-hand side", &solved.residuals))?;
    if let Some(reason) = solved.failure {
        return Err(Failure::Refused(format!("`poisson` did not converge: {reason}; the history is above")));
    }
    let solution = if args.vtu.is_some() { solver.solution()? } else { Vec::new() };
    write_vtu(args, element, domain, &solution)
}
