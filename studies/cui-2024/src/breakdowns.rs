//! `breakdown`: what the parts of a solve take.

use super::{dimension, largest, unreadable, usage};
use clap::Args;
use kingpost::runtime::open;
use kingpost_cli::{Failure, append_json_line, read_json_lines};
use kingpost_multigrid::{Element, Precision};
use std::path::PathBuf;
use study_cui_2024::breakdown::{Breakdown, breakdown};
use study_cui_2024::smoother::{Smoother, Structure, Variant};

/// What `breakdown` times.
#[derive(Args)]
pub(super) struct BreakdownArgs {
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Dimensions
    #[arg(long, value_name = "D", value_delimiter = ',', default_values_t = [2, 3])]
    dimensions: Vec<usize>,
    /// Polynomial degrees
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 6, 7, 8])]
    degrees: Vec<usize>,
    /// Most nodes
    #[arg(long, value_name = "N", default_value_t = 1e8)]
    most: f64,
    /// *Basic* and *Boundary* as published, instead of the fastest kernels
    #[arg(long)]
    published: bool,
    /// File of records; what it holds is not timed again
    #[arg(long, value_name = "FILE", default_value = "cui-2024-breakdown.jsonl")]
    db: PathBuf,
}

/// Runs the command.
pub(super) fn run(args: &BreakdownArgs) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let done: Vec<Breakdown> =
        if args.db.exists() { read_json_lines(&args.db).map_err(unreadable)? } else { Vec::new() };
    let published =
        [(Variant::Fused, Some(Structure::BASIC)), (Variant::Boundary, Some(Structure::CONFLICT_FREE))];
    let kernels = if args.published { &published[..] } else { &[(Variant::Fused, None)] };
    for axes in &args.dimensions {
        for degree in &args.degrees {
            let element = Element::new(dimension(*axes)?, *degree).map_err(usage)?;
            let cells = largest(element, args.most)?;
            for (variant, structure) in kernels {
                let precision = Precision::Single;
                let is_known = |b: &Breakdown| {
                    (b.element, b.cells, b.variant, b.structure) == (element, cells, *variant, *structure)
                        && b.device == device.info().name
                };
                if done.iter().any(is_known) {
                    continue;
                }
                let smoother = Smoother { variant: *variant, structure: *structure, precision };
                match breakdown(&*device, element, cells, smoother) {
                    Ok(record) => {
                        let parts = record.components().map(|s| format!("{:.2}", s * 1e3)).join(", ");
                        eprintln!(
                            "{axes}-D Q{degree} {variant:?}: {} iterations, ms: {parts}",
                            record.iterations
                        );
                        append_json_line(&args.db, &record).map_err(unreadable)?;
                    }
                    Err(e) => eprintln!("{axes}-D Q{degree} {variant:?} {structure:?}: {e}"),
                }
            }
        }
    }
    Ok(())
}
