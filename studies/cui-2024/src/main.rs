//! The commands of the study; `--help` explains them.

mod breakdowns;
mod data_only;
mod deformed_solves;
mod scales;

use clap::{Args, Parser, Subcommand};
use kingpost::Random;
use kingpost::files;
use kingpost::runtime::open;
use kingpost_cli::{Failure, JsonLinesError, append_json_line, end, out, read_json_lines};
use kingpost_multigrid::kernels::{self, Operation, plain};
use kingpost_multigrid::schedules;
use kingpost_multigrid::{Dimension, Element, HierarchyOptions, Precision, Start};
use std::path::PathBuf;
use std::process::ExitCode;
use study_cui_2024::Record;
use study_cui_2024::bars::{
    boundary_svg, breakdown_svg, levels_svg, percentages_svg, roofline_svg, sizes_svg,
};
use study_cui_2024::breakdown::Breakdown;
use study_cui_2024::data::{self, DataRecord};
use study_cui_2024::deformed::{self, DeformedSolve};
use study_cui_2024::measure::{inner, measure};
use study_cui_2024::page::tables;
use study_cui_2024::picture::{local_roofline_svg, patches_svg, rates_svg};
use study_cui_2024::resources::{HEAD, blended, compile_all, instructions, jobs, lines, row};
use study_cui_2024::scale::{self, Scale};
use study_cui_2024::smoother::{Smoother, Structure, Variant};
use study_cui_2024::solve::{Solve, cycles, iterations, solve, table};

/// As for `kingpost` itself, whose steps make and drop many small expressions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AFTER: &str = "\
Examples, after `cargo study study-cui-2024 --`:
  time --device cuda --db h200.jsonl              all structures, degrees 1 to 8, both dimensions
  time --device c --dimensions 2 --most 1e5       on the host
  solve --device cuda --db solves.jsonl           Table 7: cycles in double and in single precision
  page --db h200.jsonl                            the tables as Markdown
  page --solves solves.jsonl                      Table 7
  iterations --dimension 3 --levels 3,4           Table 2
  deformed --dimension 3 --levels 2,3 --jumps 1,100   deformed cells, coefficients that jump
  iterations --point --cycles --dimension 3 --levels 2,3   Table 3
  data --device cuda --db data.jsonl              Table 6
  time --items --dimensions 3 --degrees 1,2,3,4   Figure 5: a work-item for each node or column
  scale --devices cuda:0,cuda:1 --degrees 7       slabs, one a device
  scale --weak --devices cuda:0,cuda:1 --cells 64     a cube on each device
  figures --db h200.jsonl --out pictures          rates, patches a group, local memory as SVG
  time --lines --dimensions 3 --db lines.jsonl    the forms of fused lines
  time --instructions --dimensions 3 --degrees 7  those of matrix instructions
  time --blended --dimensions 3 --db blended.jsonl    those of the blended kernel
  compile --degrees 7 --lines                     fills the cache of compiled kernels, without a card
  resources --degrees 4,7                         their registers, without a card
  steps >smooth.kingpost                            the kernel, for `kingpost steps` and `kingpost stats`
  steps --structure conflict-free >steps.json     and its steps";

/// Throughput of the vertex-patch smoothers of Cui et al. 2024, by structure.
#[derive(Parser)]
#[command(name = "study-cui-2024", version, after_help = AFTER, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check and time smoothing steps; lines of JSON
    Time(TimeArgs),
    /// Solve by GMRES around V-cycles in double and in single precision; lines of JSON
    Solve(SolveArgs),
    /// Print the iterations of GMRES by level and degree, as Tables 1 and 2
    Iterations(IterationsArgs),
    /// Solve on deformed meshes with coefficients that jump; lines of JSON
    Deformed(deformed_solves::DeformedArgs),
    /// Solve and time the parts of the V-cycles by level; lines of JSON
    Breakdown(breakdowns::BreakdownArgs),
    /// Time kernels beside their data alone, Table 6; lines of JSON
    Data(data_only::DataArgs),
    /// Solve on one device and on slabs, one a device, and time what is exchanged; lines of JSON
    Scale(scales::ScaleArgs),
    /// Compile what `time` and `solve` run into the cache (`KINGPOST_CACHE_DIR`), without a card
    Compile(CompileArgs),
    /// Print registers, spills and operations of the forms of lines, without a card
    Resources(ResourcesArgs),
    /// Draw rates over the degree, over patches a group, and the roofline of local memory as SVG
    Figures(FiguresArgs),
    /// Print the tables of measurements
    Page(PageArgs),
    /// Print the fused kernel as it is written, or the steps to a structure, for `kingpost steps`
    Steps(StepsArgs),
}

#[derive(Args)]
struct TimeArgs {
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Dimensions
    #[arg(long, value_name = "D", value_delimiter = ',', default_values_t = [2, 3])]
    dimensions: Vec<usize>,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 6, 7, 8])]
    degrees: Vec<usize>,
    /// Compute in single precision
    #[arg(long)]
    single: bool,
    /// Time the forms of fused lines instead: patches a group, resident groups, separate terms
    #[arg(long)]
    lines: bool,
    /// Time the forms of matrix instructions instead: sub-groups of a patch, resident groups
    #[arg(long, conflicts_with_all = ["lines", "single"])]
    instructions: bool,
    /// Time lines of the blended kernel instead: patches a group, resident groups
    #[arg(long, conflicts_with_all = ["lines", "instructions"])]
    blended: bool,
    /// Time a work-item for each column of nodes and for each node instead (Figure 5)
    #[arg(long, conflicts_with_all = ["lines", "instructions", "blended"])]
    items: bool,
    /// Most nodes
    #[arg(long, value_name = "N", default_value_t = 6e7)]
    most: f64,
    /// File of records; what it holds is not timed again
    #[arg(long, value_name = "FILE", default_value = "cui-2024.jsonl")]
    db: PathBuf,
    /// Seed of the inputs [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Args)]
struct SolveArgs {
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Dimension
    #[arg(long, value_name = "D", default_value_t = 3)]
    dimension: usize,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1, 3, 7])]
    degrees: Vec<usize>,
    /// Most nodes
    #[arg(long, value_name = "N", default_value_t = 7.3e8)]
    most: f64,
    /// Solves that count, after one that does not
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// Start from the solution on half as many cells a side, found in the same way
    #[arg(long)]
    nested: bool,
    /// V-cycles to the left of the operator, as in the program of the publication
    #[arg(long)]
    left: bool,
    /// Records of `time --lines` or `--instructions`, whose fastest form of each precision smooths
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
    /// File of records; what it holds is not solved again
    #[arg(long, value_name = "FILE", default_value = "cui-2024-solves.jsonl")]
    db: PathBuf,
}

#[derive(Args)]
struct IterationsArgs {
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "c")]
    device: String,
    /// Dimension
    #[arg(long, value_name = "D", default_value_t = 2)]
    dimension: usize,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 6, 7, 8])]
    degrees: Vec<usize>,
    /// Levels, of 2^L cells a side
    #[arg(long, value_name = "L", value_delimiter = ',', default_values_t = [4])]
    levels: Vec<u32>,
    /// Most nodes
    #[arg(long, value_name = "N", default_value_t = 3e6)]
    most: f64,
    /// Smooth by point Gauss–Seidel instead of patches (Table 3)
    #[arg(long)]
    point: bool,
    /// Count V-cycles alone and those after full multigrid instead of GMRES
    #[arg(long)]
    cycles: bool,
    /// Smoothing steps before the coarser level and after it
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [1, 1])]
    steps: Vec<u32>,
}

#[derive(Args)]
struct FiguresArgs {
    /// The records that `time` wrote
    #[arg(long, value_name = "FILE", value_delimiter = ',', default_value = "cui-2024.jsonl")]
    db: Vec<PathBuf>,
    /// Folder of the pictures
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The records that `solve` wrote, for times over the size
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    solves: Vec<PathBuf>,
    /// The records that `breakdown` wrote, for components, levels and the roofline of DRAM
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    breakdowns: Vec<PathBuf>,
    /// Bytes of DRAM a second
    #[arg(long, value_name = "B", default_value_t = 4.1e12)]
    dram: f64,
    /// Bytes of local memory a second, of the whole card
    #[arg(long, value_name = "B", default_value_t = 33e12)]
    local: f64,
    /// Operations in double precision a second
    #[arg(long, value_name = "FLOP", default_value_t = 33.3e12)]
    peak: f64,
}

#[derive(Args)]
struct CompileArgs {
    /// Architecture
    #[arg(long, default_value = "sm_90")]
    arch: String,
    /// Dimension
    #[arg(long, value_name = "D", default_value_t = 3)]
    dimension: usize,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1, 3, 7])]
    degrees: Vec<usize>,
    /// The forms of fused lines as well
    #[arg(long)]
    lines: bool,
    /// Compilers at a time
    #[arg(long, value_name = "N", default_value_t = 16)]
    threads: usize,
}

#[derive(Args)]
struct ResourcesArgs {
    /// Dimension
    #[arg(long, value_name = "D", default_value_t = 3)]
    dimension: usize,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [4, 7])]
    degrees: Vec<usize>,
}

#[derive(Args)]
struct PageArgs {
    /// The records that `time` wrote
    #[arg(long, value_name = "FILE", default_value = "cui-2024.jsonl", conflicts_with = "solves")]
    db: PathBuf,
    /// The records that `solve` wrote, instead of those
    #[arg(long, value_name = "FILE")]
    solves: Option<PathBuf>,
    /// The records that `deformed` wrote, instead of those
    #[arg(long, value_name = "FILE", conflicts_with_all = ["solves", "db"])]
    deformed: Option<PathBuf>,
    /// The records that `data` wrote, instead of those
    #[arg(long, value_name = "FILE", conflicts_with_all = ["solves", "db", "deformed"])]
    data: Option<PathBuf>,
    /// The records that `scale` wrote, instead of those
    #[arg(long, value_name = "FILE", conflicts_with_all = ["solves", "db", "deformed"])]
    scale: Option<PathBuf>,
}

#[derive(Args)]
struct StepsArgs {
    /// Polynomial degree
    #[arg(long, default_value_t = 3)]
    degree: usize,
    /// Dimension
    #[arg(long, default_value_t = 3)]
    dimension: usize,
    /// Structure whose steps are printed as JSON; the kernel before them if absent
    #[arg(long)]
    structure: Option<Named>,
}

/// The structures of the publication.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Named {
    Basic,
    LinearIndexing,
    ConflictFree,
}

fn main() -> ExitCode {
    let cli = Cli::parse(); // exits with 2 on a mistake
    end(match &cli.command {
        Command::Time(args) => time(args),
        Command::Solve(args) => solves(args),
        Command::Iterations(args) => print_iterations(args),
        Command::Deformed(args) => deformed_solves::run(args),
        Command::Breakdown(args) => breakdowns::run(args),
        Command::Data(args) => data_only::run(args),
        Command::Scale(args) => scales::run(args),
        Command::Compile(args) => compile(args),
        Command::Resources(args) => print_resources(args),
        Command::Figures(args) => figures(args),
        Command::Page(args) => print_page(args),
        Command::Steps(args) => steps(args),
    })
}

fn unreadable(error: JsonLinesError) -> Failure {
    error.into()
}

/// The highest degree at which dense inverses are timed: 729 nodes of a patch, 4 MB.
const INVERSES: usize = 5;

/// What is timed of an element.
fn variants(element: Element) -> Vec<(Variant, Structure)> {
    let lines = Structure::Of(schedules::Structure::fastest_lines(element));
    let free = Structure::CONFLICT_FREE;
    let fused = [Structure::BASIC, Structure::LINEAR_INDEXING, free, lines];
    let rest = [Variant::Global, Variant::Separate, Variant::Boundary].map(|variant| (variant, free));
    let fused = fused.map(|structure| (Variant::Fused, structure));
    let inverse: &[_] = if element.degree <= INVERSES { &[(Variant::Inverse, free)] } else { &[] };
    [&fused[..], &rest, &[(Variant::Separate, lines)], inverse].concat()
}

fn steps(args: &StepsArgs) -> Result<(), Failure> {
    let element = Element::new(dimension(args.dimension)?, args.degree).map_err(usage)?;
    let structure = match args.structure {
        None => {
            return out(&plain(Operation::Smooth, element, Precision::Double).map_err(usage)?.to_string());
        }
        Some(Named::Basic) => Structure::BASIC,
        Some(Named::LinearIndexing) => Structure::LINEAR_INDEXING,
        Some(Named::ConflictFree) => Structure::CONFLICT_FREE,
    };
    let (_, recipe) = structure.of_fused(element, Precision::Double).map_err(usage)?.finish();
    out(&recipe.to_json().map_err(usage)?)
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

fn dimension(axes: usize) -> Result<Dimension, Failure> {
    match axes {
        2 => Ok(Dimension::Two),
        3 => Ok(Dimension::Three),
        other => Err(usage(format!("dimension {other}; needed 2 or 3"))),
    }
}

fn time(args: &TimeArgs) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let done: Vec<Record> =
        if args.db.exists() { read_json_lines(&args.db).map_err(unreadable)? } else { Vec::new() };
    let precision = if args.single { Precision::Single } else { Precision::Double };
    let seed = args.seed.unwrap_or_else(Random::fresh_seed);
    for axes in &args.dimensions {
        let dimension = dimension(*axes)?;
        for degree in &args.degrees {
            let element = Element::new(dimension, *degree).map_err(usage)?;
            let cells = largest(element, args.most)?;
            let fused = |structure| (Variant::Fused, Structure::Of(structure));
            let tried = if args.lines {
                lines(element).into_iter().map(fused).collect()
            } else if args.instructions {
                instructions(element).into_iter().map(fused).collect()
            } else if args.blended {
                let of = |structure| (Variant::Blended, Structure::Of(structure));
                blended(element).into_iter().map(of).collect()
            } else if args.items {
                [schedules::Structure::Layers, schedules::Structure::Nodes].map(fused).into()
            } else {
                variants(element)
            };
            let mut random = Random::new(seed);
            let vectors = [(); 2].map(|()| inner(&mut random, element, cells));
            for (variant, structure) in tried {
                let smoother = Smoother { variant, structure: Some(structure), precision };
                let is_known = |r: &Record| {
                    (r.element, r.cells, r.variant, r.structure, r.precision)
                        == (element, cells, variant, structure, precision)
                        && r.device == device.info().name
                };
                if done.iter().any(is_known) {
                    continue;
                }
                match measure(&*device, element, cells, smoother, (seed, &vectors)) {
                    Ok(record) => {
                        eprintln!(
                            "{dimension:?} Q{degree} {variant:?} {structure:?}: {:.2} GDoF/s",
                            record.rate()
                        );
                        append_json_line(&args.db, &record).map_err(unreadable)?;
                    }
                    Err(e) => eprintln!("{dimension:?} Q{degree} {variant:?} {structure:?}: {e}"),
                }
            }
        }
    }
    Ok(())
}

/// The finest mesh of at most a given number of nodes.
fn largest(element: Element, most: f64) -> Result<usize, Failure> {
    let fits =
        |cells: &usize| (element.nodes_of_side(*cells) as f64).powi(element.dimension.axes() as i32) <= most;
    let cells = (1..30).map(|level| 1 << level).take_while(fits).last();
    cells.ok_or_else(|| Failure::Usage(format!("--most {most}: two cells a side have more nodes")))
}

/// The fastest form of lines or instructions that is known of a device.
fn fastest(
    records: &[Record],
    element: Element,
    precision: Precision,
    device: &str,
) -> Option<schedules::Structure> {
    let of_library = |r: &Record| match r.structure {
        Structure::Of(
            structure @ (schedules::Structure::Lines { .. } | schedules::Structure::Instructions { .. }),
        ) => Some((r.rate(), structure)),
        Structure::Of(_) | Structure::Published(_) => None,
    };
    let suits = |r: &&Record| {
        (r.element, r.precision, r.variant) == (element, precision, Variant::Fused) && r.device == device
    };
    let all = records.iter().filter(suits).filter_map(of_library);
    all.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, structure)| structure)
}

fn solves(args: &SolveArgs) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let forms: Vec<Record> = match &args.lines {
        Some(file) => read_json_lines(file).map_err(unreadable)?,
        None => Vec::new(),
    };
    let done: Vec<Solve> =
        if args.db.exists() { read_json_lines(&args.db).map_err(unreadable)? } else { Vec::new() };
    for degree in &args.degrees {
        let element = Element::new(dimension(args.dimension)?, *degree).map_err(usage)?;
        let cells = largest(element, args.most)?;
        for precision in [Precision::Double, Precision::Single] {
            let is_known = |s: &Solve| {
                (s.element, s.cells, s.precision, s.left, s.nested)
                    == (element, cells, precision, args.left, args.nested)
                    && s.device == device.info().name
            };
            if done.iter().any(is_known) {
                continue;
            }
            let smoother = fastest(&forms, element, precision, &device.info().name);
            let cycle = HierarchyOptions { precision, smoother, ..HierarchyOptions::default() };
            let start = if args.nested { Start::Nested } else { Start::Zero };
            match solve(&*device, element, cells, (cycle, args.left, start), args.runs) {
                Ok(solve) => {
                    eprintln!(
                        "Q{degree}, {cells} a side, cycles in {precision:?}: {} iterations, {}, error {:.2e}, {:.3} s",
                        solve.iterations(),
                        solve.ended,
                        solve.error,
                        solve.seconds()
                    );
                    append_json_line(&args.db, &solve).map_err(unreadable)?;
                }
                Err(e) => eprintln!("Q{degree}, {cells} a side, cycles in {precision:?}: {e}"),
            }
        }
    }
    Ok(())
}

fn compile(args: &CompileArgs) -> Result<(), Failure> {
    let dimension = dimension(args.dimension)?;
    let elements: Result<Vec<_>, _> = args.degrees.iter().map(|k| Element::new(dimension, *k)).collect();
    let elements = elements.map_err(usage)?;
    let (mut done, jobs) = (0, jobs(&elements, &args.arch, args.lines));
    for outcome in compile_all(&jobs, &args.arch, args.threads) {
        match outcome {
            Ok(()) => done += 1,
            Err(e) => eprintln!("{e}"),
        }
    }
    out(&format!("{done} of {} kernels for {}\n", jobs.len(), args.arch))
}

fn print_resources(args: &ResourcesArgs) -> Result<(), Failure> {
    let dimension = dimension(args.dimension)?;
    out(HEAD)?;
    for degree in &args.degrees {
        let element = Element::new(dimension, *degree).map_err(usage)?;
        for structure in lines(element) {
            match row(element, structure) {
                Ok(row) => out(&row)?,
                Err(e) => eprintln!("Q{degree} {structure:?}: {e}"),
            }
        }
    }
    Ok(())
}

/// From the left, then from the right; a dash beyond the nodes that are allowed.
fn print_iterations(args: &IterationsArgs) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let heads: String = args.degrees.iter().map(|k| format!(" Q{k} |")).collect();
    let variant = Some(if args.point { kernels::Variant::Point } else { kernels::Variant::Fused });
    let steps = <[u32; 2]>::try_from(&args.steps[..])
        .map_err(|_| usage(format!("--steps: {} numbers, needed two", args.steps.len())))?;
    let of_cycle = HierarchyOptions { variant, steps, ..HierarchyOptions::default() };
    let count = if args.cycles { cycles } else { iterations };
    out(&format!("| L |{heads}\n|--:|{}\n", "--:|".repeat(args.degrees.len())))?;
    for level in &args.levels {
        let cells = 1_usize.checked_shl(*level).unwrap_or(0);
        let mut row = format!("| {level} |");
        for degree in &args.degrees {
            let element = Element::new(dimension(args.dimension)?, *degree).map_err(usage)?;
            let nodes = (element.nodes_of_side(cells) as f64).powi(args.dimension as i32);
            let shown = if nodes > args.most {
                "–".to_owned()
            } else {
                let [left, right] = count(&*device, element, cells, of_cycle).map_err(usage)?;
                format!("{left}, {right}")
            };
            row += &format!(" {shown} |");
        }
        out(&format!("{row}\n"))?;
    }
    Ok(())
}

/// The records of some files.
fn all<T: serde::de::DeserializeOwned>(files: &[PathBuf]) -> Result<Vec<T>, Failure> {
    let mut records = Vec::new();
    for file in files {
        records.extend(read_json_lines::<T>(file).map_err(unreadable)?);
    }
    Ok(records)
}

fn figures(args: &FiguresArgs) -> Result<(), Failure> {
    let records: Vec<Record> = all(&args.db)?;
    let solves: Vec<Solve> = all(&args.solves)?;
    let parts: Vec<Breakdown> = all(&args.breakdowns)?;
    let failed = |e: std::io::Error| usage(format!("{}: {e}", args.out.display()));
    std::fs::create_dir_all(&args.out).map_err(failed)?;
    let pictures = [
        ("rates.svg", rates_svg(&records)),
        ("patches.svg", patches_svg(&records)),
        ("local_roofline.svg", local_roofline_svg(&records, args.local, args.peak)),
    ];
    let of_sizes = (!solves.is_empty()).then(|| ("sizes.svg", sizes_svg(&solves)));
    let of_parts = (!parts.is_empty()).then(|| {
        [
            ("breakdown.svg", breakdown_svg(&parts)),
            ("percentages.svg", percentages_svg(&parts)),
            ("levels.svg", levels_svg(&parts)),
            ("boundary.svg", boundary_svg(&parts)),
            ("roofline.svg", roofline_svg(&parts, args.dram, args.peak)),
        ]
    });
    for (name, picture) in pictures.into_iter().chain(of_sizes).chain(of_parts.into_iter().flatten()) {
        match picture {
            Ok(svg) => {
                let path = args.out.join(name);
                files::write(&path, svg).map_err(|e| Failure::of_write(&path, &e))?;
            }
            Err(e) => eprintln!("{name}: {e}"),
        }
    }
    Ok(())
}

fn print_page(args: &PageArgs) -> Result<(), Failure> {
    if let Some(file) = &args.solves {
        let records: Vec<Solve> = read_json_lines(file).map_err(unreadable)?;
        return out(&table(&records));
    }
    if let Some(file) = &args.data {
        let records: Vec<DataRecord> = read_json_lines(file).map_err(unreadable)?;
        return out(&data::table(&records));
    }
    if let Some(file) = &args.scale {
        let records: Vec<Scale> = read_json_lines(file).map_err(unreadable)?;
        let is_weak = records.iter().any(|solve| solve.height > 1);
        return out(&if is_weak { scale::weak_table(&records) } else { scale::table(&records) });
    }
    if let Some(file) = &args.deformed {
        let records: Vec<DeformedSolve> = read_json_lines(file).map_err(unreadable)?;
        let (timed, counted): (Vec<_>, Vec<_>) = records.into_iter().partition(|s| !s.wall_s.is_empty());
        let tables = [(&counted, deformed::iterations_table(&counted)), (&timed, deformed::table(&timed))];
        let tables = tables.into_iter().filter(|(records, _)| !records.is_empty());
        return out(&tables.map(|(_, text)| text).collect::<Vec<_>>().join("\n"));
    }
    let records: Vec<Record> = read_json_lines(&args.db).map_err(unreadable)?;
    out(&tables(&records).map_err(|e| Failure::Refused(e.to_string()))?)
}
