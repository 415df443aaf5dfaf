//! What the parts of GMRES around V-cycles take (Figures 10 to 12, 16 and 19).

use crate::measure::MeasureError;
use crate::smoother::{Smoother, Structure, Variant};
use kingpost::analysis::stats::statistics;
use kingpost::runtime::Device;
use kingpost::solve::GmresOptions;
use kingpost_multigrid::kernels::{Operation, plain};
use kingpost_multigrid::{
    Element, Hierarchy, MultigridError, Order, Precision, PreconditionedSolver, Start, sine_load,
};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Wall times of the parts of a V-cycle on a level, seconds, the median of some runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelTimes {
    /// Cells a side.
    pub cells: usize,
    /// A step of the smoother.
    pub smooth: f64,
    /// The residual, with the copy of the right-hand side.
    pub residual: f64,
    /// Restriction to the level below; none on the coarsest level.
    pub restrict: f64,
    /// Prolongation from the level below; none on the coarsest level.
    pub prolongate: f64,
}

impl LevelTimes {
    /// What a V-cycle takes on the level: on the coarsest one step, else two with the rest.
    #[must_use]
    pub fn of_cycle(&self) -> f64 {
        if self.cells == 2 {
            self.smooth
        } else {
            2.0 * self.smooth + self.residual + self.restrict + self.prolongate
        }
    }
}

/// A solve with its parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breakdown {
    /// Dimension and degree.
    pub element: Element,
    /// Cells a side.
    pub cells: usize,
    /// Nodes of the mesh, those at the boundary among them.
    pub nodes: usize,
    /// The kernels of the smoother.
    pub variant: Variant,
    /// Their structure; the fastest that is known if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<Structure>,
    /// The numbers of the V-cycles.
    pub precision: Precision,
    /// The device, as it calls itself.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// Iterations of the solve.
    pub iterations: usize,
    /// Wall time of the solve, seconds, the median of some runs.
    pub solve_s: f64,
    /// Parts of the levels, the coarsest first.
    pub levels: Vec<LevelTimes>,
}

/// Names of the components of a solve.
pub const COMPONENTS: [&str; 5] = ["GMRES", "smoothing", "residual", "grid transfer", "coarser levels"];

impl Breakdown {
    /// Seconds of the solve by component: of GMRES what its cycles do not take.
    #[must_use]
    pub fn components(&self) -> [f64; 5] {
        let Some((finest, coarser)) = self.levels.split_last() else { return [0.0; 5] };
        let parts = [
            2.0 * finest.smooth,
            finest.residual,
            finest.restrict + finest.prolongate,
            coarser.iter().map(LevelTimes::of_cycle).sum(),
        ];
        let [smoothing, residual, transfer, coarser] = parts.map(|part| part * self.iterations as f64);
        let cycles = smoothing + residual + transfer + coarser;
        [(self.solve_s - cycles).max(0.0), smoothing, residual, transfer, coarser]
    }

    /// Parts of the time of a V-cycle by level: the finest, the next, the third, all below.
    #[must_use]
    pub fn levels(&self) -> [f64; 4] {
        let of_level: Vec<f64> = self.levels.iter().rev().map(LevelTimes::of_cycle).collect();
        let total: f64 = of_level.iter().sum();
        let part = |at: usize| of_level.get(at).copied().unwrap_or(0.0) / total;
        [part(0), part(1), part(2), of_level.iter().skip(3).sum::<f64>() / total]
    }
}

/// Runs that count.
const RUNS: usize = 3;

fn median(mut run: impl FnMut() -> Result<(), MultigridError>) -> Result<f64, MultigridError> {
    run()?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begin = Instant::now();
        run()?; // ends when the device has
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[RUNS / 2])
}

fn level_times(levels: &Hierarchy<'_>, level: usize) -> Result<LevelTimes, MultigridError> {
    let has_below = level > 0;
    let if_below = |run: &dyn Fn() -> Result<(), MultigridError>| {
        if has_below { median(run) } else { Ok(0.0) }
    };
    Ok(LevelTimes {
        cells: levels.cells(level),
        smooth: if has_below {
            median(|| levels.smooth(level, Order::Forward).map(drop))?
        } else {
            median(|| levels.v_cycle(0, Order::Forward).map(drop))?
        },
        residual: if_below(&|| levels.compute_residual(level))?,
        restrict: if_below(&|| levels.restrict(level))?,
        prolongate: if_below(&|| levels.prolongate(level))?,
    })
}

/// Solves for a product of sines to 1e-9 as for Table 7, then times the parts of its cycles one by one.
///
/// # Errors
/// A mesh that does not fit, a device that refuses.
pub fn breakdown(
    device: &dyn Device,
    element: Element,
    cells: usize,
    smoother: Smoother,
) -> Result<Breakdown, MeasureError> {
    let options = GmresOptions { max_iterations: 60, ..GmresOptions::default() };
    let mut solver =
        PreconditionedSolver::with(device, element, cells, smoother.options(), Start::Zero, options)?;
    solver = smoother.in_solver(solver, device, element)?;
    let (factor, line) = sine_load(solver.hierarchy().line(), element, cells);
    solver.set_product(factor, &line)?;
    let mut iterations = 0;
    let solve_s = median(|| {
        iterations = solver.solve()?.iterations();
        Ok(())
    })?;
    let levels = solver.hierarchy();
    let levels = (0..levels.levels()).map(|level| level_times(levels, level)).collect::<Result<_, _>>()?;
    let info = device.info();
    Ok(Breakdown {
        element,
        cells,
        nodes: element.nodes(cells),
        variant: smoother.variant,
        structure: smoother.structure,
        precision: smoother.precision,
        device: info.name.clone(),
        driver: info.driver.clone(),
        iterations,
        solve_s,
        levels,
    })
}

/// An operation on the finest level beside the roofline of DRAM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Floating-point operations of the kernel as it is written.
    pub flops: f64,
    /// Bytes of the vectors that it has to read and write.
    pub bytes: f64,
    /// Seconds.
    pub seconds: f64,
}

/// Names of the operations of [`works`].
pub const OPERATIONS: [&str; 4] = ["smoothing", "residual", "restriction", "prolongation"];

/// The operations of the finest level: operations counted by the statistics of four cells a side, and
/// a vector read or written once a colour, or once.
///
/// # Errors
/// A kernel that cannot be counted.
pub fn works(record: &Breakdown) -> Result<[Work; 4], crate::picture::PictureError> {
    let axes = record.element.dimension.axes() as i32;
    let of_blocks = |operation: Operation, blocks: f64| -> Result<f64, crate::picture::PictureError> {
        let kernel = plain(operation, record.element, record.precision)?;
        let params = ["n", "c0", "c1", "c2"].map(|name| (name.to_owned(), if name == "n" { 4 } else { 0 }));
        let counted = statistics(&kernel, &params.into_iter().collect())?.flops() as f64;
        Ok(counted * blocks)
    };
    let cells = (record.cells as f64).powi(axes);
    // two patches of a colour a side, four cells a side
    let patches = ((record.cells as f64 - 1.0) / 2.0).powi(axes);
    let coarse = (record.cells as f64 / 8.0).powi(axes);
    let vector = record.nodes as f64 * record.precision.bytes() as f64;
    let below = vector / 2.0_f64.powi(axes);
    let colours = 2.0_f64.powi(axes);
    let finest = record.levels.last().ok_or(crate::picture::PictureError::Empty)?;
    Ok([
        Work {
            flops: of_blocks(Operation::Smooth, patches)?,
            bytes: 3.0 * colours * vector,
            seconds: finest.smooth,
        },
        Work {
            flops: of_blocks(Operation::Residual, cells / 4.0_f64.powi(axes))?,
            bytes: 5.0 * vector, // b, x and r read, r written twice
            seconds: finest.residual,
        },
        Work {
            flops: of_blocks(Operation::Restrict, coarse)?,
            bytes: vector + 4.0 * below, // two vectors set to zero, one read and written
            seconds: finest.restrict,
        },
        Work {
            flops: of_blocks(Operation::Prolongate, coarse)?,
            bytes: 2.0 * vector + below,
            seconds: finest.prolongate,
        },
    ])
}
