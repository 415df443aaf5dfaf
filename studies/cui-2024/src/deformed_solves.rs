//! `deformed`: solves on deformed meshes.

use super::{dimension, unreadable, usage};
use clap::Args;
use kingpost::runtime::open;
use kingpost_cli::{Failure, append_json_line, read_json_lines};
use kingpost_multigrid::{Element, Precision, Relaxation};
use std::path::PathBuf;
use study_cui_2024::deformed::{self, Case, DeformedSolve};

/// What `deformed` solves.
#[derive(Args)]
pub(super) struct DeformedArgs {
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "c")]
    device: String,
    /// Dimension
    #[arg(long, value_name = "D", default_value_t = 2)]
    dimension: usize,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 6, 7])]
    degrees: Vec<usize>,
    /// Levels, of 2^L cells a side
    #[arg(long, value_name = "L", value_delimiter = ',', default_values_t = [4])]
    levels: Vec<u32>,
    /// What vertices are moved by, in sides of the mesh
    #[arg(long, value_name = "A", value_delimiter = ',', default_values_t = [0.0, 0.1, 0.2])]
    amplitudes: Vec<f64>,
    /// Coefficients in every second quadrant or octant, 1 in the others
    #[arg(long, value_name = "KAPPA", value_delimiter = ',', default_values_t = [1.0])]
    jumps: Vec<f64>,
    /// V-cycles in single precision
    #[arg(long)]
    single: bool,
    /// All patches at once under a polynomial of this degree
    #[arg(long, value_name = "N")]
    polynomial: Option<u32>,
    /// Most nodes
    #[arg(long, value_name = "N", default_value_t = 3e6)]
    most: f64,
    /// Solves that count, after one that does not
    #[arg(long, value_name = "N", default_value_t = 0)]
    runs: usize,
    /// File of records; what it holds is not solved again
    #[arg(long, value_name = "FILE", default_value = "cui-2024-deformed.jsonl")]
    db: PathBuf,
}

/// Runs the command.
pub(super) fn run(args: &DeformedArgs) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let done: Vec<DeformedSolve> =
        if args.db.exists() { read_json_lines(&args.db).map_err(unreadable)? } else { Vec::new() };
    let precision = if args.single { Precision::Single } else { Precision::Double };
    let relaxation =
        args.polynomial.map_or(Relaxation::Multiplicative, |degree| Relaxation::Additive { degree });
    let mut cases = Vec::new();
    for degree in &args.degrees {
        let element = Element::new(dimension(args.dimension)?, *degree).map_err(usage)?;
        let cells = args.levels.iter().map(|level| 1_usize.checked_shl(*level).unwrap_or(0));
        for cells in
            cells.filter(|n| (element.nodes_of_side(*n) as f64).powi(args.dimension as i32) <= args.most)
        {
            for amplitude in &args.amplitudes {
                let case = |jump: &f64| Case {
                    element,
                    cells,
                    amplitude: *amplitude,
                    jump: *jump,
                    precision,
                    relaxation,
                };
                cases.extend(args.jumps.iter().map(case));
            }
        }
    }
    for case in cases {
        if done.iter().any(|s| s.case == case && s.device == device.info().name) {
            continue;
        }
        match deformed::solve(&*device, case, args.runs) {
            Ok(solve) => {
                eprintln!(
                    "{case:?}: {} iterations, {}, error {}, operator {:.2} ms, cycle {:.2} ms",
                    solve.iterations(),
                    solve.ended,
                    solve.error.map_or("–".into(), |error| format!("{error:.2e}")),
                    solve.operator_s * 1e3,
                    solve.cycle_s * 1e3
                );
                append_json_line(&args.db, &solve).map_err(unreadable)?;
            }
            Err(e) => eprintln!("{case:?}: {e}"),
        }
    }
    Ok(())
}
