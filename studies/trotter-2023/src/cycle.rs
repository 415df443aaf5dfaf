//! A V-cycle of algebraic multigrid and its setup, with the hierarchy in files for other codes.

use crate::assembly::{MeasureError, Prepared};
use crate::free::system;
use crate::record::Cycled;
use clap::Args;
use kingpost::Random;
use kingpost::runtime::{Device, Timing, TimingOptions, buffer_of, download_values, open};
use kingpost::solve::{
    Amg, AmgPreconditioner, Arrays, ConjugateGradients, LinearOptions, Operator, Preconditioning, Queue,
    SolveError, Spectrum, Unknowns,
};
use kingpost_cli::{Failure, append_json_line};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Hierarchies that are made, the first of which compiles kernels.
const SETUPS: usize = 4;

/// Arguments of the command.
#[derive(Args)]
pub struct CycleArgs {
    /// Divisions of a side of the unit cube
    #[arg(long, value_name = "N", default_value_t = 60)]
    divisions: usize,
    /// Polynomial degree
    #[arg(long, value_name = "K", default_value_t = 1)]
    degree: usize,
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "cuda")]
    device: String,
    /// File of records
    #[arg(long, value_name = "FILE", default_value = "trotter-2023-cycle.jsonl")]
    db: PathBuf,
    /// Write the matrices of all levels there, for `scripts/cupy_cycle.py`
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,
    /// Seed of the right-hand side [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
}

/// Why there is no record.
#[derive(Debug, thiserror::Error)]
pub enum CycleError {
    /// What is measured fails.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// The hierarchy cannot be made.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// A file cannot be written.
    #[error("writing the hierarchy: {0}")]
    Write(#[from] std::io::Error),
    /// The description of the hierarchy cannot be written.
    #[error("writing the hierarchy: {0}")]
    Describe(#[from] serde_json::Error),
}

impl From<kingpost::runtime::RuntimeError> for CycleError {
    fn from(error: kingpost::runtime::RuntimeError) -> Self {
        Self::Measure(error.into())
    }
}

/// What files say of a level.
#[derive(serde::Serialize)]
struct Described {
    rows: usize,
    /// The interval that is smoothed; none of the coarsest.
    smoothed: Option<[f64; 2]>,
}

/// Numbers of a file, lowest byte first.
enum Numbers<'n> {
    I32(&'n [i32]),
    F64(&'n [f64]),
}

fn write(to: &Path, name: &str, numbers: Numbers<'_>) -> Result<(), CycleError> {
    let (ending, bytes): (&str, Vec<u8>) = match numbers {
        Numbers::I32(list) => ("i32", list.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Numbers::F64(list) => ("f64", list.iter().flat_map(|x| x.to_le_bytes()).collect()),
    };
    Ok(kingpost_files::write(&to.join(format!("{name}.{ending}")), bytes)?)
}

/// Writes a matrix by rows.
fn write_rows(
    to: &Path,
    name: &str,
    starts: &[i32],
    columns: &[i32],
    values: &[f64],
) -> Result<(), CycleError> {
    write(to, &format!("{name}_starts"), Numbers::I32(starts))?;
    write(to, &format!("{name}_columns"), Numbers::I32(columns))?;
    write(to, &format!("{name}_values"), Numbers::F64(values))
}

/// Times cycles of the hierarchy of Poisson's equation on a uniform mesh, zero on the boundary, its setup, and a solve
/// to 1e-8; writes all matrices to a folder, if there is one.
///
/// # Errors
/// What the device refuses, a file that cannot be written.
pub fn measure(
    device: &dyn Device,
    (on, degree): (&Prepared, usize),
    seed: u64,
    to: Option<&Path>,
) -> Result<Cycled, CycleError> {
    let (matrix, _) = system(device, on, degree, &mut Arrays::default())?;
    let (n, unknowns) = (matrix.size(), Unknowns::of_components(1));
    let rows = matrix.block_rows()?;
    let mut setups = Vec::new();
    let mut made = None;
    for _ in 0..SETUPS {
        let start = Instant::now();
        made = Some(Amg::new(device, &rows, &unknowns, None)?);
        setups.push(start.elapsed().as_secs_f64());
    }
    let mut hierarchy = made.ok_or(SolveError::Unprepared)?;
    let mut renewals = Vec::new();
    for _ in 0..SETUPS {
        let start = Instant::now();
        hierarchy = hierarchy.renew(device, &rows, None)?.ok_or(SolveError::Unprepared)?;
        renewals.push(start.elapsed().as_secs_f64());
    }
    let cycle = AmgPreconditioner { hierarchy: &hierarchy, operator: &matrix };
    let right = Random::new(seed).numbers(n);
    let (b, x) = (buffer_of(device, &right)?, device.allocate(8 * n as u64)?);
    let mut queue = Queue::new();
    cycle.apply(&b, &x, &mut queue);
    let recorded = queue.record(device)?;
    let times = TimingOptions { warm_up: 3, min_runs: 25, min_seconds: 0.0, max_runs: 25 };
    let timing = Timing::sample(&times, || device.rerun(&recorded))?;
    let solution: Vec<f64> = download_values(device, &x)?;
    drop(recorded);
    let options = LinearOptions { relative: 1e-8, ..LinearOptions::default() };
    let solved = ConjugateGradients::new(device, n, options)?.solve(
        &matrix,
        Preconditioning::Operator(&cycle),
        &b,
        &x,
    )?;
    if let Some(to) = to {
        std::fs::create_dir_all(to)?;
        write(to, "b", Numbers::F64(&right))?;
        write(to, "cycle", Numbers::F64(&solution))?;
        let pattern = &on.patterns()[0];
        let values: Vec<f64> = download_values(device, matrix.values())?;
        write_rows(to, "a0", &pattern.row_starts, &pattern.columns, &values)?;
        let mut levels = Vec::new();
        for (k, level) in hierarchy.levels().enumerate() {
            let Spectrum { least, largest } = level.spectrum;
            let inverse: Vec<f64> = download_values(device, level.inverse_diagonal)?;
            levels.push(Described { rows: inverse.len(), smoothed: Some([least, largest]) });
            write(to, &format!("inverse{k}"), Numbers::F64(&inverse))?;
            for (name, of) in [(format!("p{k}"), level.interpolation), (format!("a{}", k + 1), level.coarse)]
            {
                let [starts, columns] = of.download_lists(device)?;
                let values: Vec<f64> = download_values(device, of.values())?;
                write_rows(to, &name, &starts, &columns, &values)?;
            }
        }
        let coarsest = hierarchy.size().unknowns.last().copied().ok_or(SolveError::Unprepared)?;
        levels.push(Described { rows: coarsest, smoothed: None });
        kingpost_files::write(&to.join("levels.json"), serde_json::to_string(&levels)?)?;
    }
    let size = hierarchy.size();
    Ok(Cycled {
        divisions: on.divisions(),
        degree,
        unknowns: size.unknowns.clone(),
        operator_complexity: size.operator_complexity,
        device: device.info().into(),
        cycle_s: timing.median_s,
        setup_s: setups,
        renewal_s: renewals,
        iterations: solved.iterations(),
        solve_s: solved.seconds,
    })
}

/// Runs the command.
///
/// # Errors
/// As [`measure`]; a file of records that cannot be written.
pub fn run(args: &CycleArgs) -> Result<(), Failure> {
    let usage = |e: &dyn std::fmt::Display| Failure::Usage(e.to_string());
    let device = open(&args.device)?;
    let seed = args.seed.unwrap_or_else(Random::fresh_seed);
    let on = Prepared::cube(&*device, args.divisions, args.degree, false, seed).map_err(|e| usage(&e))?;
    let record = measure(&*device, (&on, args.degree), seed, args.write.as_deref()).map_err(|e| usage(&e))?;
    eprintln!(
        "{:?} unknowns: a cycle {:.3e} s, setups {:.4?} s, renewals {:.4?} s, {} iterations in {:.3e} s",
        record.unknowns, record.cycle_s, record.setup_s, record.renewal_s, record.iterations, record.solve_s
    );
    append_json_line(&args.db, &record).map_err(Failure::from)
}
