//! The commands of the study; `--help` explains them.

use clap::{Args, Parser, Subcommand};
use kingpost::codegen::{Options, Target, generate};
use kingpost::kernels::BoundaryValueProblem;
use kingpost::runtime::cuda::nvrtc;
use kingpost::runtime::{Backend, Cache, Device, open};
use kingpost::solve::{AssemblyStrategy, LinearChoice, LinearMethod, PreconditionerKind, ResidualNorm};
use kingpost::tuning::vectors::HostVectors;
use kingpost::{Exchange, Mapping, Random};
use kingpost_cli::{Failure, JsonLinesError, append_json_line, end, out, read_json_lines};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use study_trotter_2023::assembly::{Prepared, measure};
use study_trotter_2023::candidates::{decided, lowered, mappings, matrix_of};
use study_trotter_2023::newton::{Told, solve};
use study_trotter_2023::page::{assembly_tables, free_table, newton_tables, scaling_table, setup_table};
use study_trotter_2023::scaling::Alone;
use study_trotter_2023::{Assembled, DIVISIONS, Free, Order, Question, Scaled, SetUp, Solved, Source};

/// As for `kingpost` itself, whose steps make and drop many small expressions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AFTER: &str = "\
Examples, after `cargo study study-trotter-2023 --`:
  time --device cuda --db h200.jsonl              Poisson, uniform mesh 3, P1 and P2, all strategies
  time --device c --divisions 8 --degrees 1       on the host
  time --mesh body.msh --order random,local       an unstructured mesh in two orders
  setup --device cuda --meshes 1,3                patterns and lists on the host and on the device
  solve --device cuda --db solves.jsonl           hyperelasticity on the uniform meshes 1 to 8
  solve --preconditioner amg --meshes 1           by algebraic multigrid
  free --device cuda --divisions 40               conjugate gradients without a matrix, beside those with one
  scale --devices cuda:0,cuda:1 --meshes 3,8      Poisson on one card and on two
  resources --degrees 1,2                         registers and spills by NVRTC, without a card
  page --db h200.jsonl --solves solves.jsonl      the tables as Markdown";

/// Assembly and Newton solves of Trotter et al. 2023.
#[derive(Parser)]
#[command(name = "study-trotter-2023", version, after_help = AFTER, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check and time assemblies of Poisson's matrix; lines of JSON
    Time(TimeArgs),
    /// Find patterns, lookup tables and cells by degree of freedom on the host and on a device; lines of JSON
    Setup(SetupArgs),
    /// Solve the hyperelastic problem; lines of JSON
    Solve(SolveArgs),
    /// Time products and conjugate gradients with Poisson's matrix and without; lines of JSON
    Free(FreeArgs),
    /// Time a V-cycle of algebraic multigrid for Poisson's equation, and its setup; lines of JSON
    Cycle(study_trotter_2023::cycle::CycleArgs),
    /// Solve Poisson's equation on one device and on several; lines of JSON
    Scale(ScaleArgs),
    /// Time products with the hyperelastic matrix by rows and by blocks; lines of JSON
    Blocks(FreeArgs),
    /// Compile all kernels for a card and print what they take
    Resources(ResourcesArgs),
    /// Print the tables of measurements
    Page(PageArgs),
}

#[derive(Args)]
struct Meshes {
    /// Uniform meshes of the publication, 1 to 8
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [3])]
    meshes: Vec<usize>,
    /// Divisions of a side of the unit cube, instead of --meshes
    #[arg(long, value_name = "N", value_delimiter = ',')]
    divisions: Vec<usize>,
}

#[derive(Args)]
struct Bodies {
    #[command(flatten)]
    meshes: Meshes,
    /// Meshes of tetrahedra in files of Gmsh's, instead of --meshes
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    mesh: Vec<PathBuf>,
    /// How cells and vertices are numbered
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Order::Made])]
    order: Vec<Order>,
}

#[derive(Args)]
struct Kernels {
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1, 2])]
    degrees: Vec<usize>,
    /// Strategies of assembly
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values_t = AssemblyStrategy::ALL)]
    strategies: Vec<AssemblyStrategy>,
    /// Mappings instead of those that are tried by default, as JSON; may be repeated
    #[arg(long, value_name = "JSON")]
    mapping: Vec<String>,
}

#[derive(Args)]
struct TimeArgs {
    #[command(flatten)]
    on: Bodies,
    #[command(flatten)]
    kernels: Kernels,
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "cuda")]
    device: String,
    /// File of records; what it holds is not timed again
    #[arg(long, value_name = "FILE", default_value = "trotter-2023.jsonl")]
    db: PathBuf,
    /// Seed of the vector of products [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Args)]
struct SetupArgs {
    #[command(flatten)]
    on: Bodies,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1, 2])]
    degrees: Vec<usize>,
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "cuda")]
    device: String,
    /// File of records
    #[arg(long, value_name = "FILE", default_value = "trotter-2023-setup.jsonl")]
    db: PathBuf,
    /// Seed of random orders [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Args)]
struct SolveArgs {
    #[command(flatten)]
    meshes: Meshes,
    /// The problem: hyperelasticity, twist (as in the demonstration of DOLFINx)
    #[arg(long, default_value = "hyperelasticity")]
    problem: String,
    /// Residuals of linear systems that are small enough, relative to the right-hand side; a solve each
    #[arg(long, value_name = "PART", value_delimiter = ',', default_values_t = [1e-5])]
    relative: Vec<f64>,
    /// Let unknowns follow prescribed ones in the next update, as DOLFINx's demonstration does
    #[arg(long)]
    without_lifting: bool,
    /// Polynomial degree
    #[arg(long, default_value_t = 1)]
    degree: usize,
    /// Strategy of assembly
    #[arg(long, default_value_t = AssemblyStrategy::LookupTable)]
    strategy: AssemblyStrategy,
    /// What solves linear systems: cg, gmres, bicgstab
    #[arg(long, default_value_t = LinearMethod::ConjugateGradients)]
    method: LinearMethod,
    /// What preconditions it: none, jacobi, block-jacobi, chebyshev, amg, amg-f32
    #[arg(long, default_value_t = PreconditionerKind::Jacobi)]
    preconditioner: PreconditionerKind,
    /// The residual whose norm says when to stop: plain, preconditioned (as PETSc judges cg)
    #[arg(long, default_value_t = ResidualNorm::Plain)]
    norm: ResidualNorm,
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "cuda")]
    device: String,
    /// File of records; what it holds is not solved again
    #[arg(long, value_name = "FILE", default_value = "trotter-2023-solves.jsonl")]
    db: PathBuf,
}

#[derive(Args)]
struct FreeArgs {
    #[command(flatten)]
    meshes: Meshes,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1, 2, 3, 4])]
    degrees: Vec<usize>,
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "cuda")]
    device: String,
    /// File of records
    #[arg(long, value_name = "FILE", default_value = "trotter-2023-free.jsonl")]
    db: PathBuf,
    /// Seed of the right-hand side [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Args)]
struct ScaleArgs {
    #[command(flatten)]
    meshes: Meshes,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1])]
    degrees: Vec<usize>,
    /// The devices; one may be named more than once
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_values_t = ["cuda:0".to_owned(), "cuda:1".to_owned()])]
    devices: Vec<String>,
    /// How many of them solve, one after the other, in parts [default: 1 to all]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    counts: Vec<usize>,
    /// How they exchange numbers: nccl, host [default: nccl between different cards, else host]
    #[arg(long, value_name = "NAME")]
    exchange: Option<Exchange>,
    /// File of records
    #[arg(long, value_name = "FILE", default_value = "trotter-2023-scaling.jsonl")]
    db: PathBuf,
}

#[derive(Args)]
struct ResourcesArgs {
    #[command(flatten)]
    kernels: Kernels,
    /// The problem: poisson, hyperelasticity
    #[arg(long, default_value = "poisson")]
    problem: String,
    /// Architecture
    #[arg(long, default_value = "sm_90")]
    arch: String,
    /// Print the kernel and the source too
    #[arg(long)]
    source: bool,
}

#[derive(Args)]
struct PageArgs {
    /// The records that `time` wrote
    #[arg(long, value_name = "FILE", default_value = "trotter-2023.jsonl")]
    db: PathBuf,
    /// The records that `solve` wrote
    #[arg(long, value_name = "FILE")]
    solves: Option<PathBuf>,
    /// The records that `free` wrote
    #[arg(long, value_name = "FILE")]
    free: Option<PathBuf>,
    /// The records that `setup` wrote
    #[arg(long, value_name = "FILE")]
    setup: Option<PathBuf>,
    /// The records that `scale` wrote
    #[arg(long, value_name = "FILE")]
    scaling: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse(); // exits with 2 on a mistake
    end(match &cli.command {
        Command::Time(args) => time(args),
        Command::Setup(args) => setups(args),
        Command::Solve(args) => solves(args),
        Command::Free(args) => free(args),
        Command::Cycle(args) => study_trotter_2023::cycle::run(args),
        Command::Scale(args) => scale(args),
        Command::Blocks(args) => blocks(args),
        Command::Resources(args) => resources(args),
        Command::Page(args) => print_page(args),
    })
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

fn known<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>, JsonLinesError> {
    if path.exists() { read_json_lines(path) } else { Ok(Vec::new()) }
}

impl Meshes {
    fn divisions(&self) -> Result<Vec<usize>, Failure> {
        if !self.divisions.is_empty() {
            return Ok(self.divisions.clone());
        }
        let of = |mesh: &usize| {
            let found = mesh.checked_sub(1).and_then(|k| DIVISIONS.get(k)).copied();
            found.ok_or_else(|| usage(format!("--meshes {mesh}: needed 1 to {}", DIVISIONS.len())))
        };
        self.meshes.iter().map(of).collect()
    }
}

impl Kernels {
    fn mappings(
        &self,
        host: Option<HostVectors>,
        strategy: AssemblyStrategy,
    ) -> Result<Vec<Mapping>, Failure> {
        let parsed =
            |text: &String| serde_json::from_str(text).map_err(|e| usage(format!("--mapping {text}: {e}")));
        match self.mapping.is_empty() {
            true => Ok(mappings(host, strategy)),
            false => self.mapping.iter().map(parsed).collect(),
        }
    }
}

impl Bodies {
    fn sources(&self) -> Result<Vec<Source>, Failure> {
        match self.mesh.is_empty() {
            true => Ok(self.meshes.divisions()?.into_iter().map(Source::Cube).collect()),
            false => Ok(self.mesh.iter().cloned().map(Source::File).collect()),
        }
    }
}

impl TimeArgs {
    /// What is not among the records of a mesh.
    fn open(
        &self,
        device: &dyn Device,
        done: &[Assembled],
        (source, order, degree): (&Source, Order, usize),
    ) -> Result<Vec<(AssemblyStrategy, Mapping)>, Failure> {
        let host = (device.info().backend != Backend::Cuda).then(|| HostVectors::of(device.info()));
        let mut open = Vec::new();
        for strategy in &self.kernels.strategies {
            let strategy = &decided(BoundaryValueProblem::Poisson, degree, *strategy).map_err(usage)?;
            for mapping in self.kernels.mappings(host, *strategy)? {
                let is_known = |r: &Assembled| {
                    (r.degree, r.divisions, &r.file) == (degree, source.divisions(), &source.file())
                        && (r.order, &r.mapping) == (order, &mapping)
                        && (&r.strategy, &r.device.name) == (&strategy.to_string(), &device.info().name)
                };
                if !done.iter().any(is_known) {
                    open.push((*strategy, mapping));
                }
            }
        }
        Ok(open)
    }
}

fn time(args: &TimeArgs) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let device = &*device;
    let done: Vec<Assembled> = known(&args.db).map_err(usage)?;
    let seed = args.seed.unwrap_or_else(Random::fresh_seed);
    let mut checks: BTreeMap<usize, Prepared> = BTreeMap::new();
    for source in args.on.sources()? {
        let mut mesh = None;
        for (order, degree) in
            args.on.order.iter().flat_map(|o| args.kernels.degrees.iter().map(move |d| (o, d)))
        {
            let open = args.open(device, &done, (&source, *order, *degree))?;
            if open.is_empty() {
                continue;
            }
            let mesh = match &mut mesh {
                Some(mesh) => mesh,
                none => none.insert(source.mesh().map_err(usage)?),
            };
            let small = match checks.entry(*degree) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    place.insert(Prepared::cube(device, 2, *degree, true, seed).map_err(usage)?)
                }
            };
            let large =
                Prepared::new(device, (&source, mesh, *order), *degree, false, seed).map_err(usage)?;
            for (strategy, mapping) in open {
                timed(device, args, small, &large, strategy, &mapping)?;
            }
        }
    }
    Ok(())
}

fn timed(
    device: &dyn Device,
    args: &TimeArgs,
    small: &Prepared,
    large: &Prepared,
    strategy: AssemblyStrategy,
    mapping: &Mapping,
) -> Result<(), Failure> {
    let what = format!("{large}, {strategy}, {mapping}");
    match measure(device, small, large, strategy, mapping) {
        Ok(record) => {
            eprintln!("{what}: {:.1} million unknowns a second", record.rate());
            append_json_line(&args.db, &record).map_err(Failure::from)
        }
        Err(e) => {
            eprintln!("{what}: {e}");
            Ok(())
        }
    }
}

fn setups(args: &SetupArgs) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let seed = args.seed.unwrap_or_else(Random::fresh_seed);
    for source in args.on.sources()? {
        let mesh = source.mesh().map_err(usage)?;
        for (order, degree) in args.on.order.iter().flat_map(|o| args.degrees.iter().map(move |d| (o, d))) {
            match study_trotter_2023::setup::measure(&*device, (&source, &mesh, *order), *degree, seed) {
                Ok(record) => {
                    let host = record.host_pattern_s + record.host_terms_s;
                    eprintln!("P{degree}, {source}, {order} order: {host:.3e} s, {:.3e} s", record.wall_s);
                    append_json_line(&args.db, &record)?;
                }
                Err(e) => eprintln!("P{degree}, {source}, {order} order: {e}"),
            }
        }
    }
    Ok(())
}

fn solves(args: &SolveArgs) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let problem: BoundaryValueProblem = args.problem.parse().map_err(usage)?;
    let done: Vec<Solved> = known(&args.db).map_err(usage)?;
    let solver = LinearChoice { method: args.method, preconditioner: args.preconditioner };
    let strategy = decided(problem, args.degree, args.strategy).map_err(usage)?;
    for divisions in args.meshes.divisions()? {
        let question = |relative: &f64| Question {
            problem: problem.to_string(),
            relative: *relative,
            lifts: !args.without_lifting,
            method: args.method.to_string(),
            preconditioner: args.preconditioner.to_string(),
            norm: args.norm.to_string(),
        };
        let is_known = |question: &Question| {
            done.iter().any(|r| {
                (r.divisions, r.degree, &r.strategy) == (divisions, args.degree, &strategy.to_string())
                    && (&r.device.name, &r.question) == (&device.info().name, question)
            })
        };
        let questions: Vec<Question> =
            args.relative.iter().map(question).filter(|question| !is_known(question)).collect();
        if questions.is_empty() {
            continue;
        }
        let mut written = Ok(());
        let mut tell = |told: Told<'_>| match told {
            Told::Step(k, step) => eprintln!(
                "{divisions}: iteration {k}, load {}, {} linear ones, step {}, update {:.1e}",
                step.load,
                step.linear.iterations(),
                step.length,
                step.update
            ),
            Told::Solved(record) if written.is_ok() => written = append_json_line(&args.db, record),
            Told::Solved(_) => {}
        };
        let size = (divisions, args.degree);
        let solver = (solver, args.norm);
        if let Err(e) = solve(&*device, problem, size, strategy, solver, &questions, &mut tell) {
            eprintln!("{divisions} divisions: {e}");
        }
        written?;
    }
    Ok(())
}

fn free(args: &FreeArgs) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let seed = args.seed.unwrap_or_else(Random::fresh_seed);
    for divisions in args.meshes.divisions()? {
        for degree in &args.degrees {
            let on = Prepared::cube(&*device, divisions, *degree, false, seed).map_err(usage)?;
            match study_trotter_2023::free::measure(&*device, &on, *degree, seed) {
                Ok(record) => {
                    eprintln!(
                        "P{degree}, {divisions} divisions: product {:.3e} s with a matrix, {:.3e} s without",
                        record.matrix_product_s, record.free_product_s
                    );
                    append_json_line(&args.db, &record)?;
                }
                Err(e) => eprintln!("P{degree}, {divisions} divisions: {e}"),
            }
        }
    }
    Ok(())
}

fn blocks(args: &FreeArgs) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let seed = args.seed.unwrap_or_else(Random::fresh_seed);
    for divisions in args.meshes.divisions()? {
        for degree in &args.degrees {
            match study_trotter_2023::free::measure_blocks(&*device, divisions, *degree, seed) {
                Ok(record) => {
                    eprintln!(
                        "P{degree}: {:.3e} s by rows, {:.3e} s by blocks",
                        record.rows_s, record.blocks_s
                    );
                    append_json_line(&args.db, &record)?;
                }
                Err(e) => eprintln!("P{degree}, {divisions} divisions: {e}"),
            }
        }
    }
    Ok(())
}

fn scale(args: &ScaleArgs) -> Result<(), Failure> {
    let devices: Vec<Box<dyn Device>> =
        args.devices.iter().map(|name| open(name)).collect::<Result<_, _>>()?;
    let devices: Vec<&dyn Device> = devices.iter().map(|device| &**device).collect();
    let exchange = args.exchange.unwrap_or_else(|| Exchange::between(&devices));
    let counts = if args.counts.is_empty() { (1..=devices.len()).collect() } else { args.counts.clone() };
    if let Some(count) = counts.iter().find(|count| **count == 0 || **count > devices.len()) {
        return Err(usage(format!("--counts {count}: needed 1 to {}", devices.len())));
    }
    for degree in &args.degrees {
        for divisions in args.meshes.divisions()? {
            let (alone, record) = Alone::solve(devices[0], divisions, *degree).map_err(usage)?;
            told(&record, &args.db)?;
            for count in &counts {
                for record in alone.beside(&devices[..*count], exchange).map_err(usage)? {
                    told(&record, &args.db)?;
                }
            }
        }
    }
    Ok(())
}

fn told(record: &Scaled, db: &Path) -> Result<(), Failure> {
    eprintln!(
        "P{}, {} divisions, {} devices, overlap {}: {} iterations of {:.3e} s, difference {:.1e}",
        record.degree,
        record.divisions,
        record.devices,
        record.overlaps,
        record.iterations,
        record.iteration_s(),
        record.error
    );
    append_json_line(db, record).map_err(Failure::from)
}

fn resources(args: &ResourcesArgs) -> Result<(), Failure> {
    let problem: BoundaryValueProblem = args.problem.parse().map_err(usage)?;
    for degree in &args.kernels.degrees {
        for strategy in &args.kernels.strategies {
            let strategy = &decided(problem, *degree, *strategy).map_err(usage)?;
            let form =
                matrix_of(problem, *degree, *strategy).and_then(|matrix| lowered(problem, *degree, matrix));
            let form = match form {
                Ok(form) => form,
                Err(e) => {
                    out(&format!("{problem} P{degree}, {strategy}: {e}\n"))?;
                    continue;
                }
            };
            for mapping in args.kernels.mappings(None, *strategy)? {
                for kernel in form.kernels() {
                    let name = format!("{problem} P{degree}, {strategy}, {mapping}");
                    let mapped = match mapping.apply(kernel) {
                        Ok((mapped, _)) => mapped,
                        Err(e) => {
                            out(&format!("{name}: {e}\n"))?;
                            continue;
                        }
                    };
                    let program = generate(&mapped, Target::Cuda, &Options::default()).map_err(usage)?;
                    if args.source {
                        out(&format!("{mapped}\n{}\n", program.source))?;
                    }
                    let cache = Cache::from_environment();
                    let object = nvrtc::compile_for(&args.arch, &name, &program.source, &cache)?;
                    let taken: Vec<String> = object.resources.iter().map(ToString::to_string).collect();
                    out(&format!("{name}: {}\n", taken.join("; ")))?;
                }
            }
        }
    }
    Ok(())
}

fn print_page(args: &PageArgs) -> Result<(), Failure> {
    let assembled: Vec<Assembled> = read_json_lines(&args.db).map_err(usage)?;
    let solved: Vec<Solved> = match &args.solves {
        Some(path) => read_json_lines(path).map_err(usage)?,
        None => Vec::new(),
    };
    let free: Vec<Free> = match &args.free {
        Some(path) => read_json_lines(path).map_err(usage)?,
        None => Vec::new(),
    };
    let setups: Vec<SetUp> = match &args.setup {
        Some(path) => read_json_lines(path).map_err(usage)?,
        None => Vec::new(),
    };
    let scaled: Vec<Scaled> = match &args.scaling {
        Some(path) => read_json_lines(path).map_err(usage)?,
        None => Vec::new(),
    };
    out(&assembly_tables(&assembled))?;
    out(&setup_table(&setups))?;
    out(&newton_tables(&solved))?;
    out(&free_table(&free))?;
    out(&scaling_table(&scaled))
}
