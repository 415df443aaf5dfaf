//! Table 6: what the kernels of a smoothing step take, and what their data alone take.

use crate::measure::{MeasureError, inner};
use crate::published::{self, Published};
use crate::smoother::{Kernel, Smoother, Structure, Variant};
use kingpost::Random;
use kingpost::codegen::{Options, generate};
use kingpost::runtime::{Device, Timing, TimingOptions, open};
use kingpost_multigrid::kernels::{Blocks, Operation};
use kingpost_multigrid::{Element, Hierarchy, MultigridError, Order, Precision, Which};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// A kernel as published, beside one that reads and writes the same vectors and contracts nothing: all
/// patches of a step, double precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataRecord {
    /// Dimension and degree.
    pub element: Element,
    /// Cells a side.
    pub cells: usize,
    /// Nodes of the mesh, those at the boundary among them.
    pub nodes: usize,
    /// The kernel, a row of Table 6.
    pub kernel: String,
    /// The device, as it calls itself.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// Median time of the kernel for all colours, seconds.
    pub total_s: f64,
    /// That of its data alone.
    pub data_s: f64,
    /// Bytes of local memory of a group of the kernel.
    pub local_bytes: u64,
    /// Largest difference of a step of data alone from one in C, in units of its largest value.
    pub error: f64,
}

/// The rows of Table 6: a kernel, what moves its data alone, and the smoother of which that is a part.
const ROWS: [(&str, Kernel, Kernel, Variant); 3] = [
    ("Fused", Kernel::Of(Operation::Smooth), Kernel::MovePatch, Variant::MoveFused),
    (
        "Separate (residual)",
        Kernel::Of(Operation::PatchResidual),
        Kernel::MoveResidual,
        Variant::MoveSeparate,
    ),
    ("Separate (solver)", Kernel::Of(Operation::PatchSolve), Kernel::MoveSolution, Variant::MoveSeparate),
];

/// The kernels of the table: *Conflict free*.
const STRUCTURE: Published = Published::ConflictFree;

/// Largest difference of a step of data alone: sums of three numbers, in eight colours.
const TOLERANCE: f64 = 1e-13;

/// Sets the vectors of the finest level.
fn set(levels: &Hierarchy<'_>, vectors: &[Vec<f64>; 2]) -> Result<(), MultigridError> {
    let finest = levels.levels() - 1;
    levels.set(finest, Which::Solution, &vectors[0])?;
    levels.set(finest, Which::RightHandSide, &vectors[1])
}

/// A step of data alone on four cells a side beside one in C.
fn error(device: &dyn Device, element: Element, variant: Variant, seed: u64) -> Result<f64, MeasureError> {
    let host = open("c")?;
    let mut random = Random::new(seed);
    let vectors = [(); 2].map(|()| inner(&mut random, element, 4));
    let step = |device: &dyn Device, structure| -> Result<Vec<f64>, MultigridError> {
        let precision = Precision::Double;
        let levels = Smoother { variant, structure, precision }.hierarchy(device, element, 4)?;
        set(&levels, &vectors)?;
        levels.smooth(1, Order::Forward)?;
        levels.solution(1)
    };
    let (expected, found) = (step(&*host, None)?, step(device, Some(Structure::Published(STRUCTURE)))?);
    let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs() / largest);
    Ok(off.map(|d| if d.is_nan() { f64::INFINITY } else { d }).fold(0.0, f64::max))
}

/// Times the rows of Table 6 on a mesh, after a check on a small one with numbers of the seed.
///
/// # Errors
/// A device that cannot take the kernels, a mesh that does not fit, a wrong result.
pub fn rows(
    device: &dyn Device,
    element: Element,
    cells: usize,
    seed: u64,
) -> Result<Vec<DataRecord>, MeasureError> {
    let mut random = Random::new(seed);
    let vectors = [(); 2].map(|()| inner(&mut random, element, cells));
    let program = |kernel: Kernel| -> Result<_, MeasureError> {
        let mapped = published::schedule(kernel, element, STRUCTURE, Precision::Double)?;
        Ok(generate(mapped.kernel(), device.info().backend.target(), &Options::default())
            .map_err(MultigridError::from)?)
    };
    // the kernel alone for every colour
    let timed = |kernel: Kernel| -> Result<f64, MeasureError> {
        let levels = Hierarchy::new(device, element, cells)?;
        let levels = levels.with_smoother(&[(Blocks::Patches, program(kernel)?)])?;
        set(&levels, &vectors)?;
        let finest = levels.levels() - 1;
        let runs = TimingOptions { warm_up: 2, min_runs: 7, min_seconds: 0.0, max_runs: 7 };
        Ok(Timing::sample(&runs, || levels.smooth(finest, Order::Forward))?.median_s)
    };
    let info = device.info();
    let row = |(name, kernel, moves, moved): &(&str, Kernel, Kernel, Variant)| {
        let error = error(device, element, *moved, seed)?;
        if error > TOLERANCE {
            return Err(MeasureError::Wrong { error, tolerance: TOLERANCE });
        }
        Ok(DataRecord {
            element,
            cells,
            nodes: element.nodes(cells),
            kernel: (*name).to_owned(),
            device: info.name.clone(),
            driver: info.driver.clone(),
            total_s: timed(*kernel)?,
            data_s: timed(*moves)?,
            local_bytes: program(*kernel)?.plan.local_bytes,
            error,
        })
    };
    ROWS.iter().map(row).collect()
}

/// Groups that the local memory of a multiprocessor of an H100 or H200 has room for: 228 KiB, of which
/// the driver takes 1 KiB a group, and at most 32 groups.
fn groups(local_bytes: u64) -> u64 {
    ((228 << 10) / (local_bytes + (1 << 10))).min(32)
}

/// Table 6.
#[must_use]
pub fn table(records: &[DataRecord]) -> String {
    let mut text = String::from(
        "| k | nodes | kernel | total, ms | data only, ms | bytes of local memory | groups a multiprocessor |\n|--:|--:|--|--:|--:|--:|--:|\n",
    );
    for r in records {
        let _ = writeln!(
            text,
            "| {} | {:.1e} | {} | {:.2} | {:.2} | {} | {} |",
            r.element.degree,
            r.nodes as f64,
            r.kernel,
            r.total_s * 1e3,
            r.data_s * 1e3,
            r.local_bytes,
            groups(r.local_bytes),
        );
    }
    text
}
