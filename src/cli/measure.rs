//! `purlin measure`: the operator actions of document 000 on a device, beside the published times.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use clap::Args;
use purlin::measure::{Case, MeasureError, MeasureOptions, Record, measure};
use purlin::runtime::{Cache, TimingOptions, measure_ceilings, open};
use purlin::{Random, Strategy};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Largest relative error of a result that counts: sums of some hundred products in f64.
const TOLERANCE: f64 = 1e-12;

/// Clock of the H200 NVL of the published times, MHz.
const PUBLISHED_MHZ: f64 = 1785.0;

/// Check and time the 70 operator actions of document 000, and print them beside the published times
#[derive(Args)]
#[command(after_help = "\
Every case is checked against the reference on a small mesh, everywhere, and on the measured mesh, at random
degrees of freedom; then it is timed by device events. Records are appended to the file as they come, one JSON
object a line; cases that the file holds already are skipped, so a run that was stopped goes on where it was.

Examples:
  purlin measure --device cuda --out actions.jsonl                  all 70, on the published meshes
  purlin measure --device opencl --out small.jsonl --subdivisions 8 --cases 3D.P2
  purlin measure --report results/h200/single_cell.jsonl            the table of a file, as Markdown")]
pub struct MeasureArgs {
    /// Print the table of this file and measure nothing
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    report: Option<PathBuf>,
    /// File of records to append to
    #[arg(long, value_name = "FILE", required_unless_present = "report")]
    out: Option<PathBuf>,
    /// c, opencl, cuda, or one of several such as cuda:1
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Only cases whose name contains this, such as laplace.3D or 2D.P8
    #[arg(long, value_name = "TEXT", default_value = "")]
    cases: String,
    /// Subdivisions per side of the measured mesh [default: 1280 in 2-D, 56 in 3-D, as published]
    #[arg(long, value_name = "N")]
    subdivisions: Option<usize>,
    /// How kernels are mapped: single-cell or none
    #[arg(long, default_value = "single-cell")]
    strategy: Strategy,
    /// Seed of inputs [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs the command.
pub fn run(args: &MeasureArgs) -> Result<(), Failure> {
    match (&args.report, &args.out) {
        (Some(file), _) => out(&report(&read(file)?)),
        (None, Some(file)) => measure_all(args, file),
        (None, None) => Err(Failure::Usage("name a file with --out or --report".into())),
    }
}

fn measure_all(args: &MeasureArgs, file: &Path) -> Result<(), Failure> {
    let name = |case: &Case| case.to_string().to_lowercase();
    let wanted = args.cases.to_lowercase();
    let cases: Vec<_> = Case::all().into_iter().filter(|c| name(c).contains(&wanted)).collect();
    if cases.is_empty() {
        let message = format!("no case contains `{}`; cases are called like laplace.3D.P4", args.cases);
        return Err(Failure::Usage(message));
    }
    let device = open(&args.device)?;
    let progress = Progress::new();
    progress.stage("ceilings of the device");
    let ceilings = measure_ceilings(&*device, &Cache::from_environment(), false)?;
    let mut known = if file.exists() { read(file)? } else { Vec::new() };
    let options = MeasureOptions {
        strategy: args.strategy,
        subdivisions: args.subdivisions,
        samples: 20,
        timing: TimingOptions::default(),
        seed: args.seed.unwrap_or_else(Random::fresh_seed),
    };
    let mut wrong = Vec::new();
    for (k, case) in cases.iter().enumerate() {
        if known.iter().any(|r| is_record_of(r, *case, &options, &device.info().name)) {
            continue;
        }
        progress.stage(format!("{case}, {} of {}", k + 1, cases.len()));
        let record = measure(&*device, &ceilings, *case, &options)?;
        append(file, &record)?;
        if !is_right(&record) {
            wrong.push(case.to_string());
        }
        known.push(record);
    }
    drop(progress);
    out(&report(&known))?;
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(format!("wrong results (relative error above {TOLERANCE:e}): {}", wrong.join(", "))))
}

/// NaN is not right.
fn is_right(record: &Record) -> bool {
    record.error_small <= TOLERANCE && record.error_sampled <= TOLERANCE
}

fn is_record_of(record: &Record, case: Case, options: &MeasureOptions, device: &str) -> bool {
    let n = options.subdivisions.unwrap_or_else(|| case.published_subdivisions());
    let cells = if case.dim == 2 { 2 * n * n } else { 6 * n * n * n };
    record.operator == case.operator.name()
        && (record.dim, record.degree, record.n_cells) == (case.dim, case.degree, cells)
        && record.strategy == options.strategy.name()
        && record.device == device
}

fn append(file: &Path, record: &Record) -> Result<(), Failure> {
    let failed = |e: String| Failure::Usage(format!("cannot write `{}`: {e}", file.display()));
    let line = serde_json::to_string(record).map_err(|e| failed(e.to_string()))?;
    let mut handle = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .map_err(|e| failed(e.to_string()))?;
    handle.write_all(format!("{line}\n").as_bytes()).map_err(|e| failed(e.to_string()))
}

fn read(file: &Path) -> Result<Vec<Record>, Failure> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|e| Failure::Usage(format!("cannot read `{name}`: {e}")))?;
    let record = |(k, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| {
            Failure::Usage(format!("`{name}`, line {}: not a record: {e}; remove the line", k + 1))
        })
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(record).collect()
}

/// The records as a Markdown table with a summary above.
fn report(records: &[Record]) -> String {
    let mut text = String::new();
    let ratio = |r: &Record| r.published_s / r.median_s; // 0 where nothing was published for the mesh
    let count = |f: &dyn Fn(&Record) -> bool| records.iter().filter(|r| f(r)).count();
    if let Some(first) = records.first() {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} cases on {} ({}, at most {} MHz); {} with relative error at most {TOLERANCE:e}; {} at least as fast \
             as published for the H200 NVL; {} above half of document 000's roofline.\n",
            records.len(),
            first.device,
            first.driver,
            first.clock_mhz,
            count(&is_right),
            count(&|r| r.published_s > 0.0 && ratio(r) >= 1.0),
            count(&|r| r.of_document_roofline >= 0.5),
        );
    }
    text.push_str(
        "| case | cells | DoF | error, small mesh | error, sampled | median µs | min–max µs | runs | GFLOP/s | GDoF/s \
         | of document's roofline | of DRAM and FP64 | published µs | published / ours | the same at equal clocks |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for r in records {
        let micros = |s: f64| format!("{:.1}", s * 1e6);
        let _ = writeln!(
            text,
            "| {}.{}D.P{} | {} | {} | {:.1e} | {:.1e} | {} | {}–{} | {} | {:.0} | {:.2} | {:.0} % | {:.0} % | {} | {:.2} \
             | {:.2} |",
            r.operator,
            r.dim,
            r.degree,
            r.n_cells,
            r.n_dofs,
            r.error_small,
            r.error_sampled,
            micros(r.median_s),
            micros(r.min_s),
            micros(r.max_s),
            r.runs,
            r.gflops,
            r.gdofs,
            100.0 * r.of_document_roofline,
            100.0 * r.of_true_roofline,
            micros(r.published_s),
            ratio(r),
            ratio(r) * PUBLISHED_MHZ / f64::from(r.clock_mhz),
        );
    }
    text
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::Problem(e) => e.into(),
            MeasureError::Load(e) => e.into(),
            MeasureError::Recipe(e) => e.into(),
            MeasureError::Codegen(e) => e.into(),
            MeasureError::Stats(e) => e.into(),
            MeasureError::Mesh(_) | MeasureError::Published { .. } => Self::Usage(error.to_string()),
        }
    }
}
