//! `scale`: solves on one device and on several.

use super::{dimension, unreadable, usage};
use clap::Args;
use kingpost::Exchange;
use kingpost::runtime::{Device, open};
use kingpost_cli::{Failure, append_json_line, read_json_lines};
use kingpost_multigrid::{Element, Precision};
use std::path::PathBuf;
use study_cui_2024::scale::{Scale, scale};

/// What `scale` times.
#[derive(Args)]
pub(super) struct ScaleArgs {
    /// Where to run; the first one, two, four … of them each have a slab
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_values_t = ["cuda:0".to_owned(), "cuda:1".to_owned()])]
    devices: Vec<String>,
    /// How they exchange numbers: nccl, host [default: nccl between different cards, else host]
    #[arg(long, value_name = "NAME")]
    exchange: Option<Exchange>,
    /// Dimension
    #[arg(long, value_name = "D", default_value_t = 3)]
    dimension: usize,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [3, 7])]
    degrees: Vec<usize>,
    /// Cells a side
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [32, 64])]
    cells: Vec<usize>,
    /// A cube on each device instead of one that they divide: weak scaling
    #[arg(long)]
    weak: bool,
    /// The fewest layers of cells of a slab below the finest level
    #[arg(long, value_name = "N", default_value_t = 4)]
    least_layers: usize,
    /// Cycles in single precision besides
    #[arg(long)]
    mixed: bool,
    /// Solves that count, after one that does not
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// File of records; what it holds is not solved again
    #[arg(long, value_name = "FILE", default_value = "cui-2024-scale.jsonl")]
    db: PathBuf,
}

/// Runs the command.
pub(super) fn run(args: &ScaleArgs) -> Result<(), Failure> {
    let devices: Vec<Box<dyn Device>> =
        args.devices.iter().map(|name| open(name)).collect::<Result<_, _>>()?;
    let devices: Vec<&dyn Device> = devices.iter().map(|device| &**device).collect();
    let done: Vec<Scale> =
        if args.db.exists() { read_json_lines(&args.db).map_err(unreadable)? } else { Vec::new() };
    let precisions = [Precision::Double, Precision::Single];
    let precisions = &precisions[..if args.mixed { 2 } else { 1 }];
    let parts =
        || std::iter::successors(Some(1), |parts| Some(2 * parts)).take_while(|n| *n <= devices.len());
    for degree in &args.degrees {
        let element = Element::new(dimension(args.dimension)?, *degree).map_err(usage)?;
        for cells in &args.cells {
            for precision in precisions {
                for parts in parts() {
                    let devices = &devices[..parts];
                    let height = if args.weak { parts } else { 1 };
                    let is_known = |s: &Scale| {
                        (s.element, s.cells, s.height, s.precision, s.parts, s.least_layers)
                            == (element, *cells, height, *precision, parts, args.least_layers)
                            && s.device == devices[0].info().name
                    };
                    if done.iter().any(is_known) {
                        continue;
                    }
                    let exchange = args.exchange.unwrap_or_else(|| Exchange::between(devices));
                    let how = (*precision, args.least_layers);
                    match scale(devices, exchange, element, (*cells, height), how, args.runs) {
                        Ok(record) => {
                            eprintln!(
                                "Q{degree}, {cells} a side, {parts} devices, {precision:?}: {} iterations, {}",
                                record.iterations(),
                                record.ended
                            );
                            append_json_line(&args.db, &record).map_err(unreadable)?;
                        }
                        Err(e) => eprintln!("Q{degree}, {cells} a side, {parts} devices: {e}"),
                    }
                }
            }
        }
    }
    Ok(())
}
