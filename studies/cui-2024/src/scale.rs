//! Solves on slabs of the mesh, one a device, and what their exchanges take.

use crate::measure::MeasureError;
use kingpost::Exchange;
use kingpost::runtime::Device;
use kingpost::solve::{GmresOptions, SolveError};
use kingpost_multigrid::{Element, Exchanges, MultigridError, Precision, SlabOptions, SlabSolver};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::fmt::Write as _;
use std::time::Instant;

/// A solve on some devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Dimension and degree.
    pub element: Element,
    /// Cells a side.
    pub cells: usize,
    /// Cubes one after the other along the slowest axis.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub height: usize,
    /// Nodes of the mesh, those at the boundary among them.
    pub nodes: usize,
    /// The numbers of the V-cycles.
    pub precision: Precision,
    /// Slabs, each on a device of its own.
    pub parts: usize,
    /// The fewest layers of cells of a slab below the finest level.
    pub least_layers: usize,
    /// The devices, as the first one calls itself.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// How numbers are exchanged.
    pub exchange: String,
    /// Norms of the residual before the first iteration and after each.
    pub residuals: Vec<f64>,
    /// Why it ended.
    pub ended: String,
    /// L2 norm of the difference from the exact solution.
    pub error: f64,
    /// Wall time of each solve after the first, seconds.
    pub wall_s: Vec<f64>,
    /// Wall time of V-cycles, with exchanges beside patches, seconds.
    pub cycle_s: Vec<f64>,
    /// The same where devices wait for exchanges.
    pub in_turn_s: Vec<f64>,
    /// The same without exchanges, whose results are wrong.
    pub left_out_s: Vec<f64>,
    /// Bytes that all devices send in a V-cycle.
    pub bytes: u64,
}

impl Scale {
    /// Iterations.
    #[must_use]
    pub fn iterations(&self) -> usize {
        self.residuals.len().saturating_sub(1)
    }

    /// The part of the time of exchanges that is hidden by patches; below zero where the order
    /// that hides them costs more than it saves, and none where exchanges take no time that can be
    /// told.
    #[must_use]
    pub fn overlap(&self) -> Option<f64> {
        let [beside, in_turn, without] =
            [&self.cycle_s, &self.in_turn_s, &self.left_out_s].map(|s| median(s));
        (self.parts > 1 && in_turn > without).then(|| (in_turn - beside) / (in_turn - without))
    }
}

const fn one() -> usize {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it so
const fn is_one(height: &usize) -> bool {
    *height == 1
}

/// The median, NaN of none.
fn median(seconds: &[f64]) -> f64 {
    let mut all = seconds.to_vec();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Solves for a product of sines on a given number of devices, once to warm up and `runs` times, and times
/// V-cycles.
///
/// # Errors
/// A mesh that does not fit or divide, a device that refuses.
pub fn scale(
    devices: &[&dyn Device],
    exchange: Exchange,
    element: Element,
    (cells, height): (usize, usize),
    (precision, least_layers): (Precision, usize),
    runs: usize,
) -> Result<Scale, MeasureError> {
    let gmres = GmresOptions { relative: 1e-9, max_iterations: 60, ..GmresOptions::default() };
    let options = SlabOptions { precision, least_layers, gmres, height };
    let of_solve = |error: SolveError| MultigridError::from(error);
    let communicators = exchange.communicators(devices).map_err(of_solve)?;
    let mut solver = SlabSolver::new(devices, communicators, element, cells, options)?;
    let axes = element.dimension.axes() as f64;
    solver.set_product(axes * PI * PI, |x| (PI * x).sin())?;
    let mut report = solver.solve()?;
    let mut wall_s = Vec::new();
    for _ in 0..runs {
        let begin = Instant::now();
        report = solver.solve()?;
        wall_s.push(begin.elapsed().as_secs_f64());
    }
    let error = solver.error(|x| (PI * x).sin())?;
    let (nodes, bytes) = (solver.nodes(), solver.bytes_of_cycle());
    let mut cycles = |exchanges| {
        solver.set_exchanges(exchanges);
        solver.time_cycles(3 * runs)
    };
    let info = devices[0].info();
    Ok(Scale {
        element,
        cells,
        height,
        nodes,
        precision,
        parts: devices.len(),
        least_layers,
        device: info.name.clone(),
        driver: info.driver.clone(),
        exchange: exchange.to_string(),
        residuals: report.residuals,
        ended: report.reason.to_string(),
        error,
        wall_s,
        cycle_s: cycles(Exchanges::Overlapped)?,
        in_turn_s: cycles(Exchanges::InTurn)?,
        left_out_s: cycles(Exchanges::LeftOut)?,
        bytes,
    })
}

/// The table of solves on meshes that grow with the number of devices, a cube on each.
#[must_use]
pub fn weak_table(all: &[Scale]) -> String {
    let mut text = String::from(
        "| k | cells of a card | devices | nodes | cycles in | iterations | L2 error | s | efficiency | ms a V-cycle | efficiency | in turn | without exchanges | MB a V-cycle |\n|--:|--:|--:|--:|--|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for solve in all {
        let is_alone = |one: &&Scale| {
            (one.element, one.cells, one.precision, &one.device, one.parts)
                == (solve.element, solve.cells, solve.precision, &solve.device, 1)
        };
        let one = all.iter().find(is_alone);
        let part = |seconds: fn(&Scale) -> f64| {
            one.map_or("–".into(), |one| format!("{:.0} %", 100.0 * seconds(one) / seconds(solve)))
        };
        let ms = |all: &[f64]| format!("{:.2}", 1e3 * median(all));
        let axes = solve.element.dimension.axes() as u32;
        let _ = writeln!(
            text,
            "| {} | {}^{axes} | {} | {:.2e} | {} | {} | {:.3e} | {:.4} | {} | {} | {} | {} | {} | {:.1} |",
            solve.element.degree,
            solve.cells,
            solve.parts,
            solve.nodes as f64,
            match solve.precision {
                Precision::Double => "double",
                Precision::Single => "single",
            },
            solve.iterations(),
            solve.error,
            median(&solve.wall_s),
            part(|solve| median(&solve.wall_s)),
            ms(&solve.cycle_s),
            part(|solve| median(&solve.cycle_s)),
            ms(&solve.in_turn_s),
            ms(&solve.left_out_s),
            solve.bytes as f64 * 1e-6,
        );
    }
    text
}

/// The table of solves, those of one problem next to each other.
#[must_use]
pub fn table(all: &[Scale]) -> String {
    let mut text = String::from(
        "| k | cells a side | nodes | cycles in | devices | iterations | L2 error | s | times as fast | ms a V-cycle | in turn | without exchanges | hidden | MB a V-cycle |\n|--:|--:|--:|--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for solve in all {
        let is_alone = |one: &&Scale| {
            (one.element, one.cells, one.precision, &one.device, one.parts)
                == (solve.element, solve.cells, solve.precision, &solve.device, 1)
        };
        let seconds = median(&solve.wall_s);
        let speed = all.iter().find(is_alone).map(|one| median(&one.wall_s) / seconds);
        let shown = |x: Option<String>| x.unwrap_or_else(|| "–".into());
        let ms = |all: &[f64]| format!("{:.2}", 1e3 * median(all));
        let _ = writeln!(
            text,
            "| {} | {} | {:.2e} | {} | {} | {} | {:.3e} | {seconds:.4} | {} | {} | {} | {} | {} | {:.1} |",
            solve.element.degree,
            solve.cells,
            solve.nodes as f64,
            match solve.precision {
                Precision::Double => "double",
                Precision::Single => "single",
            },
            solve.parts,
            solve.iterations(),
            solve.error,
            shown(speed.map(|s| format!("{s:.2}"))),
            ms(&solve.cycle_s),
            ms(&solve.in_turn_s),
            ms(&solve.left_out_s),
            shown(solve.overlap().map(|part| format!("{:.0} %", 100.0 * part))),
            solve.bytes as f64 * 1e-6,
        );
    }
    text
}
