//! `purlin solve --devices`: a problem whose unknowns are divided among devices.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::solve::{SolveArgs, history, mesh, unconverged, write_vtu};
use super::table::{facts, grouped, seconds, table};
use purlin::forms::mesh::Mesh;
use purlin::kernels::BoundaryValueProblem;
use purlin::runtime::{Device, open};
use purlin::solve::{NewtonOptions, NewtonStep};
use purlin::{Exchange, PartitionedReport, PartitionedSystem};

/// Runs the command.
pub(super) fn run(
    args: &SolveArgs,
    problem: BoundaryValueProblem,
    options: NewtonOptions,
) -> Result<(), Failure> {
    let progress = Progress::new();
    let devices: Vec<Box<dyn Device>> =
        args.devices.iter().map(|name| open(name)).collect::<Result<_, _>>()?;
    let devices: Vec<&dyn Device> = devices.iter().map(|device| &**device).collect();
    let exchange = args.exchange.unwrap_or_else(|| Exchange::between(&devices));
    progress.stage("reading the mesh");
    let mesh = mesh(args, problem, &devices)?;
    progress.stage("setting up");
    let mut system =
        PartitionedSystem::new(&devices, problem, &mesh, args.degree, args.assembly, options, exchange)?;
    progress.stage("solving");
    let mut tell = |iteration: usize, step: &NewtonStep| {
        progress.stage(format!("iteration {iteration}: update {:.1e}", step.update));
    };
    let report = system.solve(&mut tell)?;
    drop(progress);
    out(&described(problem, args, &mesh, &system, exchange))?;
    out(&parts(&devices, &system))?;
    out(&history(&report.newton))?;
    out(&ended(&system, &report))?;
    if !report.newton.converged() {
        return Err(unconverged(problem, &report.newton));
    }
    if let Some(path) = &args.vtu {
        write_vtu(args, path, &mesh, system.numbering(), &system.solution()?)?;
    }
    Ok(())
}

fn described(
    problem: BoundaryValueProblem,
    args: &SolveArgs,
    mesh: &Mesh,
    system: &PartitionedSystem<'_>,
    exchange: Exchange,
) -> String {
    let count = |n: usize| grouped(n as u64);
    facts([
        ("problem", format!("{problem}, P{}", args.degree)),
        ("cells", count(mesh.n_cells())),
        ("unknowns", format!("{}, {} of them prescribed", count(system.unknowns), count(system.fixed))),
        ("entries", count(system.entries())),
        ("assembly", args.assembly.to_string()),
        ("exchange", format!("{exchange}, {} bytes a product", grouped(system.halo_bytes()))),
        ("setup", seconds(system.setup_s)),
    ])
}

fn parts(devices: &[&dyn Device], system: &PartitionedSystem<'_>) -> String {
    let count = |n: usize| grouped(n as u64);
    let rows = devices.iter().zip(system.parts()).enumerate().map(|(part, (device, [owned, ghosts]))| {
        let info = device.info();
        let named = format!("{} ({})", info.name, info.selector());
        [part.to_string(), named, count(owned), count(ghosts)]
    });
    table(["part", "device", "unknowns", "ghosts"], rows)
}

fn ended(system: &PartitionedSystem<'_>, report: &PartitionedReport) -> String {
    let PartitionedReport { newton, traffic } = report;
    let iterations = newton.linear_iterations();
    let linear_s: f64 = newton.steps.iter().map(|step| step.linear.seconds).sum();
    let rate = (iterations * system.unknowns) as f64 / linear_s / 1e6;
    facts([
        ("result", format!("{}, residual {:.3e}", newton.reason, newton.residual)),
        ("iterations", format!("{} of Newton's method, {iterations} of linear systems", newton.steps.len())),
        ("linear solves", format!("{} ({rate:.1} million unknowns a second)", seconds(linear_s))),
        ("all", seconds(newton.seconds)),
        (
            "copied since",
            format!("{} bytes to the devices, {} back", grouped(traffic.to_device), grouped(traffic.to_host)),
        ),
    ])
}
