//! `purlin solve`: a boundary value problem, assembled and solved on a device.

use super::failure::Failure;
use super::progress::Progress;
use super::solve_multigrid::MultigridSmoother;
use super::table::{facts, grouped, seconds, table};
use super::values::{check_writable, read_mesh, simplex, unit_mesh};
use super::{out, run::open_device};
use clap::{Args, ValueEnum};
use purlin::files;
use purlin::forms::element::LagrangeElement;
use purlin::forms::mesh::{Mesh, MeshCounts};
use purlin::forms::numbering::Numbering;
use purlin::forms::vtu::{Vtu, VtuEncoding};
use purlin::kernels::BoundaryValueProblem;
use purlin::runtime::{Device, Traffic, open};
use purlin::solve::{
    AssemblyStrategy, LinearChoice, LinearMethod, LinearOptions, LinearReason, NewtonOptions, NewtonReason,
    NewtonReport, NewtonStep, PreconditionerKind, ResidualNorm, SystemSize,
};
use purlin::solve::{BoundaryValueSetup, BoundaryValueSetupError, BoundaryValueSystem, Exchange};
use purlin::tuning::known;
use std::path::{Path, PathBuf};

/// Assemble and solve a boundary value problem on a device
///
/// The matrix is assembled in the memory of the device, as --assembly says, and the linear systems
/// are solved there, as --method and --preconditioner say. Between setup and result the host reads
/// norms, and copies nothing else: the bytes are counted and printed. A solver that does not
/// converge ends with exit code 1 and prints its history.
#[derive(Args)]
#[command(after_help = "\
Problems (Trotter et al. 2023):
  poisson           -div(kappa grad u) = f, zero on the boundary; kappa = f = 1
  hyperelasticity   a neo-Hookean body under a body force and a traction, clamped where x is least,
                    half turned by 60 degrees where x is greatest (section 4.5; figures of Ølgaard &
                    Wells 2012)
  twist             the same body without forces, a hundredth of that motion (a demonstration of
                    DOLFINx)

Examples:
  purlin solve hyperelasticity --mesh meshes/bracket.msh --degree 1 --vtu bracket.vtu
  purlin solve hyperelasticity --cells 16 --device opencl
  purlin solve hyperelasticity --preconditioner block-jacobi
  purlin solve hyperelasticity --cells 24 --load-steps 4
  purlin solve poisson --dim 2 --cells 200 --degree 2 --method bicgstab
  purlin solve poisson --devices cuda:0,cuda:1 --cells 128
  purlin solve poisson --multigrid --degree 4 --cells 16
  purlin solve poisson --multigrid --smoother chebyshev --dim 2 --degree 3
  purlin solve poisson --multigrid --method gmres --precision mixed --degree 3
  purlin solve poisson --multigrid --degree 3 --deform 0.2 --jump 100
  purlin solve poisson --multigrid --degree 3 --mesh meshes/bend.msh --cells 16 --vtu bend.vtu
  purlin solve poisson --multigrid --degree 7 --cells 32 --devices cuda:0,cuda:1")]
pub struct SolveArgs {
    /// A problem by name: poisson, hyperelasticity, twist
    #[arg(value_name = "PROBLEM")]
    pub(super) problem: String,
    /// Polynomial degree of the elements
    #[arg(long, default_value_t = 1)]
    pub(super) degree: usize,
    /// Dimension of the unit mesh
    #[arg(long, default_value_t = 3, conflicts_with = "mesh", value_parser = clap::value_parser!(u8).range(2..=3))]
    pub(super) dim: u8,
    /// Divisions of each side of the unit square or cube: 2 n^2 triangles or 6 n^3 tetrahedra
    /// [default: 64 or 8]. With --multigrid and --mesh the cells a side that the mesh is refined to
    #[arg(long, value_name = "N")]
    pub(super) cells: Option<usize>,
    /// Solve poisson in Q_k elements on squares or cubes by full multigrid with vertex-patch
    /// smoothers, without a matrix; --cells is a power of two [default: 64 or 16]. With --mesh on
    /// the mapped square or cube that its quadrilaterals or hexahedra are
    #[arg(long)]
    multigrid: bool,
    /// What solves linear systems: cg (conjugate gradients), gmres (restarted after 50 iterations),
    /// bicgstab, chebyshev. With --multigrid: full-multigrid (cycles until the residual is small),
    /// gmres (GMRES preconditioned by a V-cycle) [default: cg, with --multigrid full-multigrid,
    /// with --deform, --jump, --mesh or --devices gmres]
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// What preconditions it: none, jacobi, block-jacobi (of the components of vectors), chebyshev
    /// (a polynomial of degree 4), amg (smoothed aggregation, set up on the host)
    #[arg(long, value_name = "NAME", default_value_t = PreconditionerKind::Jacobi, conflicts_with = "multigrid")]
    preconditioner: PreconditionerKind,
    /// What smooths: vertex-patch (colour by colour), inverse (the same by dense inverses),
    /// additive (all at once, damped), chebyshev (all at once, under a polynomial), point (point
    /// Gauss–Seidel)
    #[arg(long, value_name = "NAME", default_value = "vertex-patch", requires = "multigrid")]
    pub(super) smoother: MultigridSmoother,
    /// Numbers of the V-cycles: double, or single within GMRES in double (mixed)
    #[arg(long, value_name = "NAME", default_value = "double", requires = "multigrid")]
    pub(super) precision: CyclePrecision,
    /// Start GMRES from the solution on half as many cells a side, found in the same way
    #[arg(long, requires = "multigrid")]
    pub(super) nested: bool,
    /// Move the vertices by at most this part of a side, below 0.25, and solve on bilinear or
    /// trilinear cells, by GMRES
    #[arg(long, value_name = "PART", requires = "multigrid", conflicts_with = "mesh")]
    pub(super) deform: Option<f64>,
    /// A coefficient that alternates between 1 and this in the quadrants or octants, by GMRES
    #[arg(long, value_name = "KAPPA", requires = "multigrid")]
    pub(super) jump: Option<f64>,
    /// Gmsh file (MSH 4.1 or 2.2) with triangles or tetrahedra, with --multigrid quadrilaterals or
    /// hexahedra
    #[arg(long, value_name = "FILE.msh")]
    pub(super) mesh: Option<PathBuf>,
    /// Where to solve: c, opencl, opencl:1, cuda, cuda:0 … [default: opencl if there is one, else
    /// c]
    #[arg(long)]
    pub(super) device: Option<String>,
    /// Divide the unknowns among devices; one may be named more than once. With --multigrid each
    /// has a slab of the mesh: their number is a power of two
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "device")]
    pub(super) devices: Vec<String>,
    /// How they exchange numbers: nccl (from card to card), host (through its memory) [default:
    /// nccl between different cards, else host]
    #[arg(long, value_name = "NAME", requires = "devices", conflicts_with = "device")]
    pub(super) exchange: Option<Exchange>,
    /// How the matrix is assembled: partial (matrices of cells are stored, then added by entry),
    /// full (bisection of each row), lookup-table, symmetric-half (entries on and above the
    /// diagonal), coloured, rowwise (cells by row), owned-rows (a work-item a row)
    #[arg(long, value_name = "NAME", default_value_t = AssemblyStrategy::LookupTable, conflicts_with = "multigrid")]
    pub(super) assembly: AssemblyStrategy,
    /// Write the solution on its mesh there, for ParaView
    #[arg(long, value_name = "FILE.vtu")]
    pub(super) vtu: Option<PathBuf>,
    /// Norm of an update of Newton's method that is small enough
    #[arg(long, value_name = "NORM", default_value = "1e-12", conflicts_with = "multigrid")]
    update: f64,
    /// Iterations of Newton's method that are allowed, in each load step
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "multigrid")]
    newton_iterations: usize,
    /// Apply prescribed values and forces in this number of equal parts; one that fails is halved
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000),
        conflicts_with = "multigrid")]
    load_steps: u32,
    /// Residual of a linear system that is small enough, relative to its right-hand side [default:
    /// 1e-5, of linear problems 1e-10]
    #[arg(long, value_name = "PART")]
    pub(super) residual: Option<f64>,
    /// The residual whose norm that is: plain, preconditioned (with --method cg, as PETSc judges)
    #[arg(long, value_name = "NAME", default_value_t = ResidualNorm::Plain, conflicts_with = "multigrid")]
    norm: ResidualNorm,
    /// Iterations of a linear system, or V-cycles, that are allowed
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(super) iterations: usize,
}

/// What solves around the V-cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MultigridMethod {
    /// Cycles alone.
    FullMultigrid,
    /// GMRES.
    Gmres,
}

/// The numbers of V-cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CyclePrecision {
    /// As those of the solution.
    Double,
    /// Single.
    Mixed,
}

impl SolveArgs {
    /// Whether multigrid solves on a deformed mesh or with a coefficient.
    pub(super) const fn has_mesh(&self) -> bool {
        self.deform.is_some() || self.jump.is_some() || self.mesh.is_some()
    }

    /// How multigrid solves.
    pub(super) fn multigrid_method(&self) -> Result<MultigridMethod, Failure> {
        let Some(name) = &self.method else {
            let by_gmres = self.has_mesh() || !self.devices.is_empty();
            return Ok(if by_gmres { MultigridMethod::Gmres } else { MultigridMethod::FullMultigrid });
        };
        let known = || {
            let names = MultigridMethod::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            names.map(|name| name.get_name().to_owned()).collect::<Vec<_>>().join(", ")
        };
        MultigridMethod::from_str(name, false)
            .map_err(|_| Failure::Usage(format!("--method {name}: needed with --multigrid {}", known())))
    }

    /// From a quarter of a side on, cells of the coarsest mesh are inside out.
    fn check_deform(&self) -> Result<(), Failure> {
        match self.deform.filter(|part| !(0.0..0.25).contains(part)) {
            Some(part) => {
                Err(Failure::Usage(format!("--deform {part}: needed a number from 0 on, below 0.25")))
            }
            None => Ok(()),
        }
    }

    /// A residual that is relative to the right-hand side is a part of it: from 1 on, nothing would
    /// be solved.
    fn check_residual(&self) -> Result<(), Failure> {
        match self.residual.filter(|part| !(0.0..1.0).contains(part)) {
            Some(part) => {
                Err(Failure::Usage(format!("--residual {part}: needed a number from 0 on, below 1")))
            }
            None => Ok(()),
        }
    }

    /// What solves linear systems.
    fn solver(&self) -> Result<LinearChoice, Failure> {
        let method = match &self.method {
            Some(name) => name.parse().map_err(|e| Failure::Usage(format!("--method: {e}")))?,
            None => LinearMethod::default(),
        };
        Ok(LinearChoice { method, preconditioner: self.preconditioner })
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
        check_writable(path)?; // a solve may take an hour
    }
    if args.multigrid {
        return super::solve_multigrid::run(args);
    }
    let problem: BoundaryValueProblem = args.problem.parse().map_err(|e| Failure::Usage(format!("{e}")))?;
    let options = options(args, problem)?;
    let progress = Progress::new();
    let devices: Vec<Box<dyn Device>> = match &args.devices[..] {
        [] => vec![open_device(args.device.as_deref())?],
        names => names.iter().map(|name| open(name)).collect::<Result<_, _>>()?,
    };
    let devices: Vec<&dyn Device> = devices.iter().map(|device| &**device).collect();
    let exchange = args.exchange.unwrap_or_else(|| Exchange::between(&devices));
    progress.stage("reading the mesh");
    let mesh = mesh(args, problem, &devices)?;
    progress.stage("setting up");
    let mut system = BoundaryValueSystem::on(
        &devices,
        exchange,
        &BoundaryValueSetup {
            problem,
            mesh: &mesh,
            degree: args.degree,
            assembly: args.assembly,
            options,
            mappings: &known::of_any_mesh()?,
        },
    )?;
    let before = system.copied();
    progress.stage("solving");
    let mut tell = |iteration: usize, step: &NewtonStep| {
        progress.stage(format!("iteration {iteration}: update {:.1e}", step.update));
    };
    let report = system.solve(&mut tell)?;
    let traffic = system.copied().since(before);
    drop(progress);
    out(&described((problem, exchange), args, &mesh, &devices, &system))?;
    if devices.len() > 1 {
        out(&parts(&devices, &system))?;
    }
    out(&history(&report))?;
    out(&ended(&report, &system, traffic))?;
    if !report.converged() {
        return Err(unconverged(problem, &report));
    }
    if let Some(path) = &args.vtu {
        write_vtu(args, path, &mesh, system.numbering(), &system.solution()?)?;
    }
    Ok(())
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
fn mesh(args: &SolveArgs, problem: BoundaryValueProblem, devices: &[&dyn Device]) -> Result<Mesh, Failure> {
    if let Some(path) = &args.mesh {
        if args.cells.is_some() {
            let said =
                "--cells: a mesh of a file has its own cells; needed --multigrid, which refines it, or none";
            return Err(Failure::Usage(said.into()));
        }
        let mesh = read_mesh(path)?;
        check_size(args, problem, devices, &MeshCounts::of(&mesh))?;
        return Ok(mesh);
    }
    let dim = usize::from(args.dim);
    let n = args.cells.unwrap_or(if dim == 2 { 64 } else { 8 });
    let counts = MeshCounts::unit(simplex(dim), n).map_err(|error| Failure::Usage(error.to_string()))?;
    check_size(args, problem, devices, &counts)?;
    unit_mesh(dim, n)
}

/// Whether there are elements of the degree, and memory for the system.
fn check_size(
    args: &SolveArgs,
    problem: BoundaryValueProblem,
    devices: &[&dyn Device],
    counts: &MeshCounts,
) -> Result<(), Failure> {
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
    Ok(())
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
