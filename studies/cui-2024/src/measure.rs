//! Checks and times smoothing steps.

use crate::smoother::{Smoother, Structure};
use crate::{Record, flops_of_patch};
use kingpost::Random;
use kingpost::runtime::{Device, RuntimeError, Timing, TimingOptions, open};
use kingpost_multigrid::kernels::Operation;
use kingpost_multigrid::schedules;
use kingpost_multigrid::{Element, Hierarchy, MultigridError, Order, Precision, Which};

/// Largest difference from the step in C: condition numbers of patches reach 1e3 at degree 8.
const fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::Double => 1e-11,
        Precision::Single => 1e-3,
    }
}

/// Why there is no time.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// There is no hierarchy.
    #[error(transparent)]
    Multigrid(#[from] MultigridError),
    /// The host has no compiler.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A wrong result.
    #[error("the step is off by {error:.1e} of its largest value, needed {tolerance:.0e}")]
    Wrong {
        /// The difference.
        error: f64,
        /// What is allowed.
        tolerance: f64,
    },
}

/// Random numbers at inner nodes, zero at the boundary.
#[must_use]
pub fn inner(random: &mut Random, element: Element, cells: usize) -> Vec<f64> {
    let (side, axes) = (element.nodes_of_side(cells), element.dimension.axes());
    let mut numbers = random.numbers(element.nodes(cells));
    numbers.iter_mut().enumerate().for_each(|(node, x)| {
        let at = |axis: usize| node / side.pow(axis as u32) % side;
        if (0..axes).any(|axis| at(axis) == 0 || at(axis) + 1 == side) {
            *x = 0.0;
        }
    });
    numbers
}

/// A step on four cells a side beside one in C, whose schedule tests compare with dense matrices.
fn error(device: &dyn Device, element: Element, smoother: Smoother, seed: u64) -> Result<f64, MeasureError> {
    let host = open("c")?;
    let mut random = Random::new(seed);
    let [x, b] = [(); 2].map(|()| inner(&mut random, element, 4));
    let step = |levels: &Hierarchy<'_>| -> Result<Vec<f64>, MultigridError> {
        levels.set(1, Which::Solution, &x)?;
        levels.set(1, Which::RightHandSide, &b)?;
        levels.smooth(1, Order::Forward)?;
        levels.solution(1)
    };
    let expected = step(&Hierarchy::new(&*host, element, 4)?)?;
    let found = step(&smoother.hierarchy(device, element, 4)?)?;
    let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs() / largest);
    Ok(off.map(|d| if d.is_nan() { f64::INFINITY } else { d }).fold(0.0, f64::max))
}

/// Times a structure on a mesh, from a solution and a right-hand side, after a check on a small one
/// with numbers of the seed.
///
/// # Errors
/// A structure that the device cannot take, a mesh that does not fit, a wrong result.
pub fn measure(
    device: &dyn Device,
    element: Element,
    cells: usize,
    smoother: Smoother,
    (seed, [x, b]): (u64, &[Vec<f64>; 2]),
) -> Result<Record, MeasureError> {
    let Smoother { variant, structure, precision } = smoother;
    let info = device.info();
    let on = (info.backend, info.arch.as_str());
    let fastest = || schedules::Structure::of(on, Operation::Smooth, element, precision);
    let structure = structure.unwrap_or_else(|| Structure::Of(fastest()));
    let tolerance = tolerance(precision);
    let error = error(device, element, smoother, seed)?;
    if error.is_nan() || error > tolerance {
        return Err(MeasureError::Wrong { error, tolerance });
    }
    let levels = smoother.hierarchy(device, element, cells)?;
    let finest = levels.levels() - 1;
    levels.set(finest, Which::Solution, x)?;
    levels.set(finest, Which::RightHandSide, b)?;
    let runs = TimingOptions { warm_up: 2, min_runs: 7, min_seconds: 0.0, max_runs: 7 };
    let timing = Timing::sample(&runs, || levels.smooth(finest, Order::Forward))?;
    let programs = smoother.programs(device, element)?;
    let source: String = programs.into_iter().map(|(_, program)| program.source).collect();
    let resources: Vec<String> =
        levels.smoother().filter_map(|e| e.resources()).map(ToString::to_string).collect();
    let patches = ((cells - 1) as f64).powi(element.dimension.axes() as i32);
    Ok(Record {
        element,
        cells,
        nodes: element.nodes(cells),
        variant,
        structure,
        precision,
        device: info.name.clone(),
        driver: info.driver.clone(),
        clock_mhz: info.clock_mhz,
        source: blake3::hash(source.as_bytes()).to_hex().to_string(),
        resources: (!resources.is_empty()).then(|| resources.join("; ")),
        median_s: timing.median_s,
        min_s: timing.min_s,
        max_s: timing.max_s,
        runs: timing.runs,
        error,
        flops: patches * flops_of_patch(element),
    })
}
