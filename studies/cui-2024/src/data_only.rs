//! `data`: kernels beside their data alone (Table 6).

use super::{dimension, largest, unreadable, usage};
use clap::Args;
use kingpost::Random;
use kingpost::runtime::open;
use kingpost_cli::{Failure, append_json_line};
use kingpost_multigrid::Element;
use std::path::PathBuf;
use study_cui_2024::data::rows;

/// What `data` times.
#[derive(Args)]
pub(super) struct DataArgs {
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Dimension
    #[arg(long, value_name = "D", default_value_t = 3)]
    dimension: usize,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [2, 6])]
    degrees: Vec<usize>,
    /// Most nodes
    #[arg(long, value_name = "N", default_value_t = 6e7)]
    most: f64,
    /// File of records
    #[arg(long, value_name = "FILE", default_value = "cui-2024-data.jsonl")]
    db: PathBuf,
    /// Seed of the inputs [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs the command.
pub(super) fn run(args: &DataArgs) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let seed = args.seed.unwrap_or_else(Random::fresh_seed);
    for degree in &args.degrees {
        let element = Element::new(dimension(args.dimension)?, *degree).map_err(usage)?;
        let cells = largest(element, args.most)?;
        match rows(&*device, element, cells, seed) {
            Ok(rows) => {
                for row in rows {
                    eprintln!("Q{degree} {}: {:.2e} s, data {:.2e} s", row.kernel, row.total_s, row.data_s);
                    append_json_line(&args.db, &row).map_err(unreadable)?;
                }
            }
            Err(e) => eprintln!("Q{degree}: {e}"),
        }
    }
    Ok(())
}
