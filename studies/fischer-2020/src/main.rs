//! The commands of the study; `--help` explains them.

use clap::{Args, Parser, Subcommand};
use kingpost::files;
use kingpost::kernels::BakeOff;
use kingpost::runtime::{Device, TimingOptions, open};
use kingpost::{Mapping, Random};
use kingpost_cli::{Failure, JsonLinesError, append_json_line, end, out, read_json_lines};
use std::path::PathBuf;
use std::process::ExitCode;
use study_fischer_2020::measure::Action;
use study_fischer_2020::page::tables;
use study_fischer_2020::picture::rates_svg;
use study_fischer_2020::record::Record;
use study_fischer_2020::scatter::Scatter;
use study_fischer_2020::solve::Solver;

/// As for `kingpost` itself, whose steps make and drop many small expressions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AFTER: &str = "\
Examples, after `cargo study study-fischer-2020 --`:
  time --device cuda --db h200.jsonl                     BP1, BP3 and BP5, degrees 1 to 8, 10^4 to 10^8 unknowns
  time --device cuda --iterations 20 --db h200.jsonl     the same for an iteration of conjugate gradients
  time --device cuda --scatter transposed --db h200.jsonl without atomic updates
  time --device c --problems bp5 --degrees 7 --most 1e6  on the host
  page --db h200.jsonl --picture rates.svg               the tables as Markdown, and the figure";

/// The bake-off problems of Fischer et al. 2020 on L-vectors: gather, action, atomic scatter, and the
/// geometry from the vertices of each cell; alone, or in conjugate gradients.
#[derive(Parser)]
#[command(name = "study-fischer-2020", version, after_help = AFTER, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check and time actions, or conjugate gradients; lines of JSON
    Time(TimeArgs),
    /// Print the tables of measurements, and draw the figure
    Page(PageArgs),
}

#[derive(Args)]
struct TimeArgs {
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Problems: those of scalars
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "bp1,bp3,bp5")]
    problems: Vec<BakeOff>,
    /// Polynomial degrees
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 6, 7, 8])]
    degrees: Vec<usize>,
    /// Fewest unknowns
    #[arg(long, value_name = "N", default_value_t = 1e4)]
    least: f64,
    /// Most unknowns
    #[arg(long, value_name = "N", default_value_t = 1e8)]
    most: f64,
    /// Sizes for each factor of ten
    #[arg(long, value_name = "N", default_value_t = 2.0)]
    per_decade: f64,
    /// Time an iteration of conjugate gradients, as a part of this many, instead of the action alone
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    iterations: Option<u16>,
    /// Mapping in JSON instead of the default one
    #[arg(long, value_name = "JSON", value_parser = mapping)]
    mapping: Option<Mapping>,
    /// How cells add to the degrees of freedom that they share: atomic, coloured (a launch a colour) or
    /// transposed (vectors of cells, then a sum for each degree of freedom)
    #[arg(long, value_name = "HOW", default_value_t = Scatter::Atomic)]
    scatter: Scatter,
    /// File of records; what it holds is not timed again
    #[arg(long, value_name = "FILE", default_value = "fischer-2020.jsonl")]
    db: PathBuf,
    /// Seconds of counted runs of an action, at least
    #[arg(long, value_name = "S", default_value_t = 0.02)]
    min_seconds: f64,
    /// Seed of the inputs [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Args)]
struct PageArgs {
    /// The records that `time` wrote
    #[arg(long, value_name = "FILE", default_value = "fischer-2020.jsonl")]
    db: PathBuf,
    /// File for the figure; without it none is drawn
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
}

fn mapping(text: &str) -> Result<Mapping, String> {
    serde_json::from_str(text).map_err(|e| format!("{e}; `kingpost results --mapping` prints mappings"))
}

fn main() -> ExitCode {
    let cli = Cli::parse(); // exits with 2 on a mistake
    end(match &cli.command {
        Command::Time(args) => time(args),
        Command::Page(args) => print_page(args),
    })
}

fn unreadable(error: JsonLinesError) -> Failure {
    error.into()
}

fn time(args: &TimeArgs) -> Result<(), Failure> {
    check(args)?;
    let device = open(&args.device)?;
    let done = if args.db.exists() { read_json_lines(&args.db).map_err(unreadable)? } else { Vec::new() };
    for problem in &args.problems {
        for degree in &args.degrees {
            actions(args, &*device, &done, *problem, *degree)?;
        }
    }
    Ok(())
}

fn check(args: &TimeArgs) -> Result<(), Failure> {
    let usage = |message: String| Err(Failure::Usage(message));
    if let Some(problem) = args.problems.iter().find(|p| p.is_vector()) {
        return usage(format!("--problems: `{problem}` is of vectors; this study has bp1, bp3 and bp5"));
    }
    if let Some(degree) = args.degrees.iter().find(|d| !(1..=15).contains(*d)) {
        return usage(format!("--degrees: {degree}; degrees are 1 to 15"));
    }
    // maps have entries of 32 bits
    if !(1.0 <= args.least && args.least <= args.most && args.most <= 2e9) {
        return usage(format!(
            "--least {} --most {}: needed 1 to 2e9 unknowns, the fewest first",
            args.least, args.most
        ));
    }
    if !(args.per_decade > 0.0 && args.per_decade <= 100.0) {
        return usage(format!("--per-decade: {}; needed a number above 0, at most 100", args.per_decade));
    }
    Ok(())
}

/// Times a problem of a degree at all sizes.
fn actions(
    args: &TimeArgs,
    device: &dyn Device,
    done: &[Record],
    problem: BakeOff,
    degree: usize,
) -> Result<(), Failure> {
    let iterations = args.iterations.map(usize::from);
    let stores = args.mapping.as_ref().is_some_and(|mapping| mapping.needs().setup);
    let same = |mapping: &Mapping| args.mapping.as_ref().is_none_or(|asked| asked == mapping);
    let alike =
        |r: &&Record| r.mapping.needs().setup == stores && r.scatter == args.scatter && same(&r.mapping);
    let name = &device.info().name;
    let is_done = |n: usize| done.iter().filter(alike).any(|r| r.is_of(problem, degree, n, iterations, name));
    let sizes: Vec<usize> = divisions(args, degree).into_iter().filter(|n| !is_done(*n)).collect();
    if sizes.is_empty() {
        return Ok(());
    }
    let seed = args.seed.unwrap_or_else(Random::fresh_seed);
    let refused = |e| Failure::Refused(format!("{problem} of degree {degree}: {e}"));
    let how = (args.mapping.clone(), args.scatter);
    let action = Action::new(device, problem, degree, how, seed).map_err(refused)?;
    let solver = match iterations {
        Some(_) => Some(Solver::new(device, &action, seed).map_err(refused)?),
        None => None,
    };
    let options = TimingOptions { min_seconds: args.min_seconds, min_runs: 10, ..TimingOptions::default() };
    for divisions in sizes {
        let unknowns = action.unknowns(divisions);
        let measured = match (&solver, iterations) {
            (Some(solver), Some(iterations)) => solver.measure(divisions, iterations, &options),
            _ => action.measure(divisions, &options),
        };
        match measured {
            Ok(record) => {
                eprintln!(
                    "{problem}, p = {degree}, {unknowns} unknowns: {:.1} µs, {:.2} GDoF/s",
                    1e6 * record.median_s,
                    record.rate()
                );
                append_json_line(&args.db, &record).map_err(unreadable)?;
            }
            Err(e) => eprintln!("{problem}, p = {degree}, {unknowns} unknowns: {e}"),
        }
    }
    Ok(())
}

/// Cells along an axis, for sizes that are evenly spaced by their logarithm.
fn divisions(args: &TimeArgs, degree: usize) -> Vec<usize> {
    let steps = (args.per_decade * (args.most / args.least).log10()).round() as usize;
    let size = |k: usize| args.least * 10_f64.powf(k as f64 / args.per_decade);
    let cells = |unknowns: f64| ((unknowns.cbrt() - 1.0) / degree as f64).floor().max(1.0) as usize;
    let mut all: Vec<usize> = (0..=steps).map(|k| cells(size(k).min(args.most))).collect();
    all.dedup();
    all
}

fn print_page(args: &PageArgs) -> Result<(), Failure> {
    let records: Vec<Record> = read_json_lines(&args.db).map_err(unreadable)?;
    if let Some(path) = &args.picture {
        let svg = rates_svg(&records).map_err(|e| Failure::Refused(e.to_string()))?;
        files::write(path, svg).map_err(|e| Failure::of_write(path, &e))?;
    }
    out(&tables(&records))
}
