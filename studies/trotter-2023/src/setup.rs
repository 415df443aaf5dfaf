//! Checks and times the setup of assemblies, on the host and on a device.

use crate::assembly::MeasureError;
use crate::record::SetUp;
use crate::{Order, Source};
use kingpost::forms::form::FormError;
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::{Numbering, NumberingOrder};
use kingpost::forms::sparse::{CsrPart, CsrPattern};
use kingpost::runtime::{Buffer, Device, download_values};
use kingpost::solve::{DevicePattern, PatternKernels};
use std::time::Instant;

/// Setups of which the median counts.
const RUNS: usize = 5;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Refuses arrays that are not those of the host.
fn compare(
    device: &dyn Device,
    found: &DevicePattern,
    pattern: &CsrPattern,
    terms: &[Vec<i32>; 2],
) -> Result<(), MeasureError> {
    let expected: [(&'static str, &Buffer, &[i32]); 5] = [
        ("the start of a row", &found.row_starts, &pattern.row_starts),
        ("a column", &found.columns, &pattern.columns),
        ("a position", &found.positions, &pattern.positions()),
        ("the cell of a row", &found.term_entities, &terms[0]),
        ("the row in a cell", &found.term_rows, &terms[1]),
    ];
    for (what, found, expected) in expected {
        let found: Vec<i32> = download_values(device, found)?;
        let furthest = found.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
        if found.len() != expected.len() || furthest > 0 {
            return Err(MeasureError::Wrong { what, error: f64::from(furthest), needed: 0.0 });
        }
    }
    Ok(())
}

/// Finds the pattern of Poisson's matrix, its lookup table and the cells by degree of freedom on the host and
/// on a device, compares all arrays and times both.
///
/// # Errors
/// A mesh without numbering, what the device refuses, an array that is not that of the host.
pub fn measure(
    device: &dyn Device,
    (source, mesh, order): (&Source, &Mesh, Order),
    degree: usize,
    seed: u64,
) -> Result<SetUp, MeasureError> {
    let mesh = order.of(mesh.clone(), seed)?;
    let numbering = Numbering::new_in_order(&mesh, degree, NumberingOrder::OF_MATRICES)?;
    let (map, width) = (numbering.dofs(), numbering.dofs_per_cell());
    let n = map.iter().max().map_or(0, |last| *last as usize + 1);
    let part = CsrPart { extents: [width, width], rows: map, columns: map };
    let refused = |e: &dyn std::fmt::Display| FormError::Discretisation(e.to_string());

    let start = Instant::now();
    let pattern = CsrPattern::of_rows(n, n, width, width, map, map).map_err(|e| refused(&e))?;
    let host_pattern_s = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let terms = pattern.row_terms();
    let host_terms_s = start.elapsed().as_secs_f64();

    let kernels = PatternKernels::new(device)?;
    compare(device, &kernels.find(device, [n, n], &part)?, &pattern, &[terms.entities, terms.rows])?;
    let (mut device_s, mut wall_s) = (Vec::new(), Vec::new());
    let before = device.traffic();
    for _ in 0..RUNS {
        let start = Instant::now();
        device_s.push(kernels.find(device, [n, n], &part)?.seconds);
        wall_s.push(start.elapsed().as_secs_f64());
    }
    Ok(SetUp {
        divisions: source.divisions(),
        file: source.file(),
        order,
        degree,
        cells: mesh.n_cells(),
        unknowns: n,
        entries: pattern.columns.len(),
        device: device.info().into(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        host_pattern_s,
        host_terms_s,
        device_s: median(device_s),
        wall_s: median(wall_s),
        to_device: device.traffic().since(before).to_device / RUNS as u64,
    })
}
