//! `kingpost solve`: a boundary value problem, assembled and solved on a device.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::run_args::open_device;
use super::solve_args::SolveArgs;
use super::table::{facts, grouped, seconds, table};
use super::values::{read_mesh, simplex, unit_mesh};
use kingpost::files;
use kingpost::forms::element::LagrangeElement;
use kingpost::forms::mesh::{Mesh, MeshCounts};
use kingpost::forms::numbering::Numbering;
use kingpost::forms::vtu::{Vtu, VtuEncoding};
use kingpost::kernels::BoundaryValueProblem;
use kingpost::runtime::{Device, Traffic, open, with_stages};
use kingpost::solve::{BoundaryValueSetup, BoundaryValueSetupError, BoundaryValueSystem, Exchange};
use kingpost::solve::{
    LinearOptions, LinearReason, NewtonOptions, NewtonReason, NewtonReport, NewtonStep, SolveError,
    SystemSize,
};
use kingpost::tuning::known;
use std::path::Path;

impl From<SolveError> for Failure {
    fn from(error: SolveError) -> Self {
        match error {
            SolveError::Runtime(error) => error.into(),
            SolveError::Form(error) => error.into(),
            SolveError::Memory { .. }
            | SolveError::Missing { .. }
            | SolveError::Prescribed { .. }
            | SolveError::Parts { .. }
            | SolveError::PartsChoice { .. }
            | SolveError::HalfOfRows { .. }
            | SolveError::Choice { .. }
            | SolveError::Norm { .. }
            | SolveError::Option { .. } => Self::Usage(error.to_string()),
            SolveError::Text(_)
            | SolveError::Schedule(_)
            | SolveError::Code(_)
            | SolveError::Mapping(_)
            | SolveError::Unmapped { .. }
            | SolveError::Length { .. }
            | SolveError::Assembly
            | SolveError::NoBlock { .. }
            | SolveError::Spectrum { .. }
            | SolveError::Unprepared
            | SolveError::NotInPart { .. }
            | SolveError::PartEnded { .. }
            | SolveError::Messages { .. }
            | SolveError::NoSuchPart { .. }
            | SolveError::PartsForm { .. }
            | SolveError::NoNeighbour { .. }
            | SolveError::NoCoarse { .. }
            | SolveError::Element { .. }
            | SolveError::NoDiagonal { .. } => Self::Refused(error.to_string()),
        }
    }
}

impl From<BoundaryValueSetupError> for Failure {
    fn from(error: BoundaryValueSetupError) -> Self {
        match error {
            BoundaryValueSetupError::Solve(error) => error.into(),
            BoundaryValueSetupError::Numbering(_)
            | BoundaryValueSetupError::Parts { .. }
            | BoundaryValueSetupError::Cells { .. } => Self::Usage(error.to_string()),
        }
    }
}

/// Runs the command.
pub fn run(args: &SolveArgs) -> Result<(), Failure> {
    args.check_residual()?;
    args.check_deform()?;
    if let Some(path) = &args.vtu {
        // a solve may take an hour
        files::check_writable(path).map_err(|error| Failure::of_write(path, &error))?;
    }
    if args.multigrid {
        return super::solve_multigrid::run(args);
    }
    if args.problem == "stokes" {
        return Err(Failure::Usage("`stokes` is solved without a matrix; needed --multigrid".into()));
    }
    let problem: BoundaryValueProblem = args.problem.parse().map_err(|e| Failure::Usage(format!("{e}")))?;
    let options = options(args, problem)?;
    let progress = Progress::of_long_stages();
    let devices: Vec<Box<dyn Device>> = match &args.devices[..] {
        [] => vec![open_device(args.device.as_deref())?],
        names => names.iter().map(|name| open(name)).collect::<Result<_, _>>()?,
    };
    let devices: Vec<&dyn Device> = devices.iter().map(|device| &**device).collect();
    let exchange = args.exchange.unwrap_or_else(|| Exchange::between(&devices));
    progress.stage("reading the mesh");
    let (mesh, size) = mesh(args, problem, &devices)?;
    let devices = taken(args, exchange, devices, size);
    progress.stage("setting up");
    let setup = BoundaryValueSetup {
        problem,
        mesh: &mesh,
        degree: args.degree,
        assembly: args.assembly,
        options,
        mappings: &known::of_any_mesh()?,
    };
    let mut system =
        with_stages(progress.teller("setting up: "), || BoundaryValueSystem::on(&devices, exchange, &setup))?;
    let before = system.copied();
    progress.stage("solving");
    let mut tell = |iteration: usize, step: &NewtonStep| {
        progress.stage(format!("iteration {iteration}: update {:.1e}", step.update));
    };
    let report = with_stages(progress.teller(""), || system.solve(&mut tell))?;
    let traffic = system.copied().since(before);
    drop(progress);
    out(&described((problem, exchange), args, &mesh, &devices, &system))?;
    if devices.len() > 1 {
        out(&parts(&devices, &system))?;
    }
    out(&history(&report))?;
    out(&ended(&report, &system, traffic))?;
    if args.time_hierarchies > 0 {
        out(&again(&mut system, args)?)?;
    }
    if !report.converged() {
        return Err(unconverged(problem, &report));
    }
    if let Some(path) = &args.vtu {
        write_vtu(args, path, &mesh, system.numbering(), &system.solution()?)?;
    }
    Ok(())
}

/// How long hierarchies take.
fn again(system: &mut BoundaryValueSystem<'_>, args: &SolveArgs) -> Result<String, Failure> {
    let found = system.time_hierarchies(args.time_hierarchies as usize)?.ok_or(SolveError::Unprepared)?;
    let all = |times: &[f64]| {
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let cycles = least / found.cycle;
        let times = times.iter().map(|time| seconds(*time)).collect::<Vec<_>>().join(", ");
        format!("{times}: {cycles:.1} cycles or more")
    };
    Ok(facts([
        ("a cycle", seconds(found.cycle)),
        ("hierarchies", all(&found.setups)),
        ("renewals", all(&found.renewals)),
    ]))
}

fn options(args: &SolveArgs, problem: BoundaryValueProblem) -> Result<NewtonOptions, Failure> {
    let relative = args.residual.unwrap_or(if problem.is_linear() { 1e-10 } else { 1e-5 });
    if !(args.update.is_finite() && args.update >= 0.0) {
        return Err(Failure::Usage(format!("--update {}: needed a number of at least 0", args.update)));
    }
    if problem.is_linear() && args.load_steps > 1 {
        let message = format!("--load-steps {}: `{problem}` is linear, needed 1", args.load_steps);
        return Err(Failure::Usage(message));
    }
    if args.time_hierarchies > 0 && !args.preconditioner.is_multilevel() {
        let (n, found) = (args.time_hierarchies, args.preconditioner);
        let message = format!("--time-hierarchies {n}: `{found}` has none; needed --preconditioner amg");
        return Err(Failure::Usage(message));
    }
    let (norm, max_iterations) = (args.norm, args.iterations);
    let systems = LinearOptions { norm, relative, max_iterations, ..LinearOptions::default() };
    Ok(NewtonOptions {
        update: args.update,
        max_iterations: args.newton_iterations,
        load_steps: args.load_steps as usize,
        linear: problem.is_linear(),
        solver: args.solver()?,
        systems,
        ..NewtonOptions::default()
    })
}

/// The mesh of a file, or a unit mesh that is refused before it is made if its system does not fit.
fn mesh(
    args: &SolveArgs,
    problem: BoundaryValueProblem,
    devices: &[&dyn Device],
) -> Result<(Mesh, SystemSize), Failure> {
    if let Some(path) = &args.mesh {
        if args.cells.is_some() {
            let said =
                "--cells: a mesh of a file has its own cells; needed --multigrid, which refines it, or none";
            return Err(Failure::Usage(said.into()));
        }
        let mesh = read_mesh(path)?;
        let size = check_size(args, problem, devices, &MeshCounts::of(&mesh))?;
        return Ok((mesh, size));
    }
    let dim = usize::from(args.dim);
    let n = args.cells.unwrap_or(if dim == 2 { 64 } else { 8 });
    let counts = MeshCounts::unit(simplex(dim), n).map_err(|error| Failure::Usage(error.to_string()))?;
    let size = check_size(args, problem, devices, &counts)?;
    Ok((unit_mesh(dim, n)?, size))
}

/// One of several cards where more take longer, if the system fits there.
fn taken<'d>(
    args: &SolveArgs,
    exchange: Exchange,
    mut devices: Vec<&'d dyn Device>,
    size: SystemSize,
) -> Vec<&'d dyn Device> {
    let fits = size.check("the system", devices[0].info()).is_ok();
    // others that are asked to exchange by NCCL are refused
    let are_cards = Exchange::between(&devices) == Exchange::Nccl;
    if exchange == Exchange::Nccl && are_cards && fits && !args.all_devices {
        devices.truncate(size.cards_that_pay(devices.len()));
    }
    devices
}

/// Whether there are elements of the degree, and memory for the system.
fn check_size(
    args: &SolveArgs,
    problem: BoundaryValueProblem,
    devices: &[&dyn Device],
    counts: &MeshCounts,
) -> Result<SystemSize, Failure> {
    let MeshCounts { shape, vertices, cells } = *counts;
    if !(1..=LagrangeElement::max_degree(shape)).contains(&args.degree) {
        LagrangeElement::new(shape, args.degree).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let components = problem.space(shape, args.degree).components();
    let size = SystemSize::of_counts(shape.dim(), vertices, cells, args.degree, components, args.assembly)
        .with_solver(args.solver()?, components);
    for device in devices {
        let device_bytes = size.device_bytes / devices.len() as u64;
        SystemSize { device_bytes, ..size }.check("the system", device.info())?;
    }
    Ok(size)
}

fn described(
    (problem, exchange): (BoundaryValueProblem, Exchange),
    args: &SolveArgs,
    mesh: &Mesh,
    devices: &[&dyn Device],
    system: &BoundaryValueSystem<'_>,
) -> String {
    let count = |n: usize| grouped(n as u64);
    let times = system.times;
    let mut mappings: Vec<&String> = system.mappings().flatten().collect();
    mappings.dedup();
    let mappings: Vec<&str> = mappings.into_iter().map(String::as_str).collect();
    let on = match devices {
        [device] if args.devices.len() > 1 => {
            let given = args.devices.len();
            let more = "an iteration takes longer on more; --all-devices takes all";
            ("device", format!("{}, of {given}: {more}", named(*device)))
        }
        [device] => ("device", named(*device)),
        _ => ("exchange", format!("{exchange}, {} bytes a product", grouped(system.halo_bytes()))),
    };
    facts([
        ("problem", format!("{problem}, P{}", args.degree)),
        on,
        ("cells", count(mesh.n_cells())),
        ("unknowns", format!("{}, {} of them prescribed", count(system.unknowns), count(system.fixed))),
        ("entries", count(system.entries())),
        ("assembly", args.assembly.to_string()),
        ("solver", system.solver().to_string()),
        ("kernels", mappings.join("\n")),
        (
            "setup",
            format!(
                "{} to compile, {} for numbering and pattern, {} for arrays",
                seconds(times.compile_s),
                seconds(times.pattern_s),
                seconds(times.arrays_s)
            ),
        ),
    ])
}

fn named(device: &dyn Device) -> String {
    format!("{} ({})", device.info().name, device.info().selector())
}

/// What each of several devices has.
fn parts(devices: &[&dyn Device], system: &BoundaryValueSystem<'_>) -> String {
    let count = |n: usize| grouped(n as u64);
    let rows = devices.iter().zip(system.parts()).enumerate().map(|(part, (device, [owned, ghosts]))| {
        [part.to_string(), named(*device), count(owned), count(ghosts)]
    });
    table(["part", "device", "unknowns", "ghosts"], rows)
}

/// Why there is no solution, and what may help.
fn unconverged(problem: BoundaryValueProblem, report: &NewtonReport) -> Failure {
    let loads = report.steps.last().filter(|step| step.load < 1.0).map_or_else(String::new, |step| {
        format!(" under {} of its load, of which {} was solved for", step.load, report.load)
    });
    let more = match report.reason {
        NewtonReason::TooMany => "; allow more by --newton-iterations",
        NewtonReason::Linear(LinearReason::TooMany) => "; allow more by --iterations",
        NewtonReason::Linear(LinearReason::Stagnated) => {
            ": it is as small as roundings allow; ask for a larger --residual"
        }
        NewtonReason::LineSearch | NewtonReason::Linear(LinearReason::Indefinite) if !problem.is_linear() => {
            "; apply the load in smaller parts by --load-steps"
        }
        NewtonReason::LineSearch
        | NewtonReason::NotFinite
        | NewtonReason::Converged
        | NewtonReason::Linear(_) => "",
    };
    Failure::Refused(format!(
        "`{problem}` did not converge{loads}: {}{more}; the history is above, and nothing was written",
        report.reason
    ))
}

/// The iterations, with their loads if any of them is under a part of it.
fn history(report: &NewtonReport) -> String {
    let rows = report.steps.iter().enumerate().map(|(k, step)| {
        let linear = match step.linear.converged() {
            true => step.linear.iterations().to_string(),
            false => format!("{}, {}", step.linear.iterations(), short(step.linear.reason)),
        };
        [
            (k + 1).to_string(),
            format!("{:.3e}", step.residual),
            linear,
            format!("{}", step.length),
            format!("{:.3e}", step.update),
            seconds(step.assembly_s),
            seconds(step.preconditioner_s),
            seconds(step.linear.seconds),
        ]
    });
    let header = [
        "iteration",
        "residual before",
        "linear iterations",
        "step",
        "update",
        "assembly",
        "preconditioner",
        "linear solve",
    ];
    if report.steps.iter().all(|step| step.load >= 1.0) {
        return table(header, rows);
    }
    let loads = report.steps.iter().map(|step| format!("{:.4}", step.load));
    let [iteration, residual, linear, length, update, assembly, preconditioner, solve] = header;
    let header = [iteration, "load", residual, linear, length, update, assembly, preconditioner, solve];
    let rows = rows.zip(loads).map(|(row, load)| {
        let [iteration, residual, linear, length, update, assembly, preconditioner, solve] = row;
        [iteration, load, residual, linear, length, update, assembly, preconditioner, solve]
    });
    table(header, rows)
}

/// A word of a table.
fn short(reason: LinearReason) -> &'static str {
    match reason {
        LinearReason::Converged => "converged",
        LinearReason::TooMany => "not converged",
        LinearReason::Diverged => "diverged",
        LinearReason::NotFinite => "NaN",
        LinearReason::Indefinite => "indefinite",
        LinearReason::Stagnated => "stagnated",
        LinearReason::Breakdown => "broken down",
    }
}

fn ended(report: &NewtonReport, system: &BoundaryValueSystem<'_>, traffic: Traffic) -> String {
    let (steps, linear) = (report.steps.len(), report.linear_iterations());
    let linear_s: f64 = report.steps.iter().map(|s| s.linear.seconds).sum();
    let assembly_s: f64 = report.steps.iter().map(|s| s.assembly_s).sum();
    let to = if system.parts().len() > 1 { "devices" } else { "device" };
    let rate =
        |n: usize, s: f64| format!("{:.1} million unknowns a second", (n * system.unknowns) as f64 / s / 1e6);
    let mut all = vec![
        ("result", format!("{}, residual {:.3e}", report.reason, report.residual)),
        ("iterations", format!("{steps} of Newton's method, {linear} of linear systems")),
        ("assembly", format!("{} ({})", seconds(assembly_s), rate(steps, assembly_s))),
        ("linear solves", format!("{} ({})", seconds(linear_s), rate(linear, linear_s))),
        ("all", seconds(report.seconds)),
        (
            "copied in setup",
            format!(
                "{} bytes to the {to}, {} back",
                grouped(system.traffic.to_device),
                grouped(system.traffic.to_host)
            ),
        ),
        (
            "copied since",
            format!(
                "{} bytes to the {to}, {} back ({})",
                grouped(traffic.to_device),
                grouped(traffic.to_host),
                match (system.hierarchy(), system.parts().len()) {
                    (Some(_), _) => "norms, curvatures and hierarchies",
                    (None, 1) => "norms and curvatures",
                    (None, _) => "norms, curvatures and what parts exchange",
                }
            ),
        ),
    ];
    if let Some(hierarchy) = system.hierarchy() {
        let unknowns: Vec<String> = hierarchy.unknowns.iter().map(|n| grouped(*n as u64)).collect();
        let complexity = hierarchy.operator_complexity;
        all.push(("levels", format!("{} unknowns; {complexity:.2} times the entries", unknowns.join(", "))));
    }
    facts(all)
}

/// Writes a solution on its mesh.
fn write_vtu(
    args: &SolveArgs,
    path: &Path,
    mesh: &Mesh,
    numbering: &Numbering,
    solution: &[f64],
) -> Result<(), Failure> {
    let refused = |e: &dyn std::fmt::Display| Failure::Usage(format!("--vtu: {e}"));
    let order = args.degree.max(mesh.geometry_degree()).min(4);
    let mut vtu = Vtu::new(mesh, order).map_err(|e| refused(&e))?;
    vtu.field("u", numbering, solution).map_err(|e| refused(&e))?;
    files::write(path, vtu.to_bytes(VtuEncoding::Base64)).map_err(|e| Failure::of_write(path, &e))?;
    out(&format!("wrote {}\n", path.display()))
}
