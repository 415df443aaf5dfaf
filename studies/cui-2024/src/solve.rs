//! Tables 1, 2 and 7: iterations of GMRES around V-cycles, in double and in single precision.

use crate::measure::MeasureError;
use kingpost::runtime::Device;
use kingpost::solve::{GmresOptions, PreconditionerSide};
use kingpost_multigrid::schedules::Structure;
use kingpost_multigrid::{
    Element, Hierarchy, HierarchyOptions, Order, Precision, PreconditionedSolver, Start, Which, sine_load,
};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::fmt::Write as _;
use std::time::Instant;

/// Residual that is small enough, relative to the right-hand side (§4.2).
const TOLERANCE: f64 = 1e-9;

/// The most cycles.
const MOST: usize = 100;

/// A solve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Solve {
    /// Dimension and degree.
    pub element: Element,
    /// Cells a side.
    pub cells: usize,
    /// Nodes of the mesh, those at the boundary among them.
    pub nodes: usize,
    /// The numbers of the V-cycles.
    pub precision: Precision,
    /// The structure of their smoother, if it is not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<Structure>,
    /// Whether V-cycles stand to the left of the operator, as in the program of the publication.
    #[serde(default)]
    pub left: bool,
    /// Whether it starts from the solution on half as many cells a side.
    #[serde(default)]
    pub nested: bool,
    /// The device, as it calls itself.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// Norms of the residual before the first iteration and after each.
    pub residuals: Vec<f64>,
    /// Why it ended.
    pub ended: String,
    /// L2 norm of the difference from the exact solution.
    pub error: f64,
    /// Wall time of each solve after the first, seconds.
    pub wall_s: Vec<f64>,
    /// Time of their kernels by the device's clock, seconds.
    pub device_s: Vec<f64>,
    /// Wall time of a V-cycle alone by the device's clock, seconds.
    pub cycle_s: f64,
}

impl Solve {
    /// Iterations.
    #[must_use]
    pub fn iterations(&self) -> usize {
        self.residuals.len().saturating_sub(1)
    }

    /// The median wall time, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let mut all = self.wall_s.clone();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Solves for a product of sines, once to warm up and `runs` times, by such cycles, to the left
/// of the operator or to its right, from such a start.
///
/// # Errors
/// A mesh that does not fit, a device that refuses.
pub fn solve(
    device: &dyn Device,
    element: Element,
    cells: usize,
    (cycle, left, start): (HierarchyOptions, bool, Start),
    runs: usize,
) -> Result<Solve, MeasureError> {
    let side = if left { PreconditionerSide::Left } else { PreconditionerSide::Right };
    let options = GmresOptions { relative: TOLERANCE, max_iterations: 60, side, ..GmresOptions::default() };
    let mut solver = PreconditionedSolver::with(device, element, cells, cycle, start, options)?;
    let (factor, line) = sine_load(solver.hierarchy().line(), element, cells);
    solver.set_product(factor, &line)?;
    let mut report = solver.solve()?;
    let (mut wall_s, mut device_s) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let begin = Instant::now();
        report = solver.solve()?;
        wall_s.push(begin.elapsed().as_secs_f64());
        device_s.push(report.seconds);
    }
    let info = device.info();
    Ok(Solve {
        element,
        cells,
        nodes: element.nodes(cells),
        precision: cycle.precision,
        structure: cycle.smoother,
        left,
        nested: start == Start::Nested,
        device: info.name.clone(),
        driver: info.driver.clone(),
        residuals: report.residuals,
        ended: report.reason.to_string(),
        error: solver.error(|x| (PI * x).sin())?,
        wall_s,
        device_s,
        cycle_s: time_cycle(solver.hierarchy())?,
    })
}

/// Seconds of a V-cycle on the finest level by the device's clock, on what its vectors hold.
pub(crate) fn time_cycle(levels: &Hierarchy<'_>) -> Result<f64, MeasureError> {
    Ok(levels.v_cycle(levels.levels() - 1, Order::Forward)?)
}

/// Iterations for a source of 1, to 1e-9 of the start, by such cycles: of GMRES preconditioned from
/// the left, whose residuals are preconditioned, and from the right.
///
/// # Errors
/// A mesh that does not fit, a device that refuses.
pub fn iterations(
    device: &dyn Device,
    element: Element,
    cells: usize,
    of_cycle: HierarchyOptions,
) -> Result<[usize; 2], MeasureError> {
    let mut found = [0; 2];
    for (found, side) in found.iter_mut().zip([PreconditionerSide::Left, PreconditionerSide::Right]) {
        let options =
            GmresOptions { relative: TOLERANCE, max_iterations: 60, side, ..GmresOptions::default() };
        let mut solver = PreconditionedSolver::with(device, element, cells, of_cycle, Start::Zero, options)?;
        let line = solver.hierarchy().line().load(cells);
        solver.set_product(1.0, &line)?;
        *found = solver.solve()?.iterations();
    }
    Ok(found)
}

/// Cycles for a source of 1, to a residual of 1e-9 of the right-hand side: V-cycles from zero, and
/// those after full multigrid. 100 if they do not reach it.
///
/// # Errors
/// A mesh that does not fit, a device that refuses.
pub fn cycles(
    device: &dyn Device,
    element: Element,
    cells: usize,
    of_cycle: HierarchyOptions,
) -> Result<[usize; 2], MeasureError> {
    let levels = Hierarchy::with(device, element, cells, of_cycle)?;
    let finest = levels.levels() - 1;
    levels.set(finest, Which::RightHandSide, &levels.load(finest))?;
    levels.clear(finest)?;
    let start = levels.right_hand_side_norm(finest)?;
    let mut alone = 0;
    while alone < MOST {
        levels.v_cycle(finest, Order::Forward)?;
        alone += 1;
        if levels.residual_norm(finest)? <= TOLERANCE * start {
            break;
        }
    }
    let loads: Vec<_> = (0..levels.levels()).map(|level| levels.load(level)).collect();
    let full = levels.full_multigrid(&loads, TOLERANCE, MOST)?;
    Ok([alone, if full.converged() { full.iterations() } else { MOST }])
}

/// The table of solves, each pair of precisions a row.
#[must_use]
pub fn table(solves: &[Solve]) -> String {
    let mut text = String::from(
        "| k | d | side | cells a side | nodes | L2 error, double | mixed | iterations, double | mixed | s, double | mixed | ratio |\n|--:|--:|--|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for double in solves.iter().filter(|s| s.precision == Precision::Double) {
        let is_partner = |s: &&Solve| {
            s.precision == Precision::Single
                && s.structure.is_some() == double.structure.is_some()
                && (s.element, s.cells, s.left, s.nested, &s.device)
                    == (double.element, double.cells, double.left, double.nested, &double.device)
        };
        let mixed = solves.iter().find(is_partner);
        let of = |show: &dyn Fn(&Solve) -> String| mixed.map_or("–".into(), show);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.2e} | {:.3e} | {} | {} | {} | {:.3} | {} | {} |",
            double.element.degree,
            double.element.dimension.axes(),
            match (double.left, double.nested) {
                (true, false) => "left",
                (true, true) => "left, nested",
                (false, false) => "right",
                (false, true) => "right, nested",
            },
            double.cells,
            double.nodes as f64,
            double.error,
            of(&|s| format!("{:.3e}", s.error)),
            double.iterations(),
            of(&|s| s.iterations().to_string()),
            double.seconds(),
            of(&|s| format!("{:.3}", s.seconds())),
            of(&|s| format!("{:.2}", double.seconds() / s.seconds())),
        );
    }
    text
}
