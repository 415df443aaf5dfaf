//! Deformed meshes with coefficients that jump: iterations and times of GMRES around V-cycles.

use crate::measure::MeasureError;
use crate::solve::time_cycle;
use kingpost::runtime::{Device, buffer_of};
use kingpost::solve::{GmresOptions, Operator, Queue};
use kingpost_multigrid::{
    DeformedMesh, Element, HierarchyOptions, LevelOperator, MultigridError, Precision, PreconditionedSolver,
    Relaxation, Start,
};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::fmt::Write as _;
use std::time::Instant;

/// What is solved: vertices moved by sines, a coefficient of 1 and another alternately, to 1e-9 of the
/// right-hand side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Dimension and degree.
    pub element: Element,
    /// Cells a side.
    pub cells: usize,
    /// What vertices are moved by, in sides of the mesh.
    pub amplitude: f64,
    /// The coefficient in every second quadrant or octant; 1 in the others.
    pub jump: f64,
    /// The numbers of the V-cycles.
    pub precision: Precision,
    /// How their patches are put together.
    pub relaxation: Relaxation,
}

/// A solve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeformedSolve {
    /// What is solved.
    pub case: Case,
    /// Nodes of the mesh, those at the boundary among them.
    pub nodes: usize,
    /// The device, as it calls itself.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// Norms of the residual before the first iteration and after each.
    pub residuals: Vec<f64>,
    /// Why it ended.
    pub ended: String,
    /// L2 norm of the difference from the product of sines of the coordinates, of a coefficient of 1.
    pub error: Option<f64>,
    /// Seconds of the setup.
    pub setup_s: f64,
    /// Wall time of each solve after the first, seconds.
    pub wall_s: Vec<f64>,
    /// Time of the operator of the finest mesh by the device's clock, seconds.
    pub operator_s: f64,
    /// Time of a V-cycle, likewise.
    pub cycle_s: f64,
}

impl DeformedSolve {
    /// Iterations.
    #[must_use]
    pub fn iterations(&self) -> usize {
        self.residuals.len().saturating_sub(1)
    }
}

/// Solves once to warm up and `runs` times: for a product of sines of the coordinates if the
/// coefficient is 1, else for a source of 1.
///
/// # Errors
/// A mesh that does not fit or is turned inside out, a device that refuses.
pub fn solve(device: &dyn Device, case: Case, runs: usize) -> Result<DeformedSolve, MeasureError> {
    let Case { element, cells, amplitude, jump, precision, relaxation } = case;
    let axes = element.dimension.axes();
    let options = GmresOptions { max_iterations: 200, ..GmresOptions::default() };
    let cycle = HierarchyOptions { precision, relaxation, ..HierarchyOptions::default() };
    let begin = Instant::now();
    let mesh = DeformedMesh::of_sines(element.dimension, cells, amplitude)?.with_jump(jump)?;
    let mut solver = PreconditionedSolver::on(device, element, &mesh, cycle, Start::Zero, options)?;
    let setup_s = begin.elapsed().as_secs_f64();
    let sines = |x: [f64; 3]| x.iter().take(axes).map(|x| (PI * x).sin()).product::<f64>();
    let exact = (jump == 1.0).then(|| mesh.at_nodes(element, sines));
    match &exact {
        Some(exact) => {
            let factor = axes as f64 * PI * PI;
            solver.set_source(&exact.iter().map(|x| factor * x).collect::<Vec<_>>())?;
        }
        None => solver.set_source(&vec![1.0; element.nodes(cells)])?,
    }
    let mut report = solver.solve()?;
    let mut wall_s = Vec::new();
    for _ in 0..runs {
        let begin = Instant::now();
        report = solver.solve()?;
        wall_s.push(begin.elapsed().as_secs_f64());
    }
    let info = device.info();
    Ok(DeformedSolve {
        case,
        nodes: element.nodes(cells),
        device: info.name.clone(),
        driver: info.driver.clone(),
        residuals: report.residuals,
        ended: report.reason.to_string(),
        error: match exact {
            Some(exact) => Some(solver.distance(&exact)?),
            None => None,
        },
        setup_s,
        wall_s,
        cycle_s: time_cycle(solver.hierarchy())?,
        operator_s: time_operator(device, element, &mesh)?,
    })
}

/// Seconds of the operator of a mesh by the device's clock.
fn time_operator(device: &dyn Device, element: Element, mesh: &DeformedMesh) -> Result<f64, MeasureError> {
    let operator = LevelOperator::on(device, element, mesh)?;
    let x = buffer_of(device, &vec![1.0; operator.size()])?;
    let y = device.allocate(8 * operator.size() as u64)?;
    let mut queue = Queue::new();
    operator.apply(&x, &y, &mut queue);
    Ok(queue.run(device).map_err(MultigridError::from)?)
}

/// The table of solves.
#[must_use]
pub fn table(solves: &[DeformedSolve]) -> String {
    let mut text = String::from(
        "| d | k | cells a side | nodes | moved by | coefficient | smoother | cycle | iterations | L2 error | setup, s | solve, s | operator, ms | cycle, ms |\n|--:|--:|--:|--:|--:|--:|--|--|--:|--:|--:|--:|--:|--:|\n",
    );
    for solve in solves {
        let Case { element, cells, amplitude, jump, precision, relaxation } = solve.case;
        let mut walls = solve.wall_s.clone();
        walls.sort_by(f64::total_cmp);
        let _ = writeln!(
            text,
            "| {} | {} | {cells} | {:.2e} | {amplitude} | {} | {} | {} | {} | {} | {:.2} | {} | {:.2} | {:.2} |",
            element.dimension.axes(),
            element.degree,
            solve.nodes as f64,
            if jump == 1.0 { "1".to_owned() } else { format!("1, {jump}") },
            match relaxation {
                Relaxation::Multiplicative => "colour by colour".to_owned(),
                Relaxation::Additive { degree } => format!("polynomial of degree {degree}"),
            },
            match precision {
                Precision::Double => "double",
                Precision::Single => "single",
            },
            solve.iterations(),
            solve.error.map_or("–".into(), |error| format!("{error:.2e}")),
            solve.setup_s,
            walls.get(walls.len() / 2).map_or("–".into(), |s| format!("{s:.3}")),
            solve.operator_s * 1e3,
            solve.cycle_s * 1e3,
        );
    }
    text
}

/// Iterations over degree, a row for each mesh, amplitude and coefficient.
#[must_use]
pub fn iterations_table(solves: &[DeformedSolve]) -> String {
    type Row = (usize, usize, f64, f64, Relaxation);
    let row = |s: &DeformedSolve| -> Row {
        let Case { element, cells, amplitude, jump, relaxation, .. } = s.case;
        (element.dimension.axes(), cells, amplitude, jump, relaxation)
    };
    let mut degrees: Vec<usize> = solves.iter().map(|s| s.case.element.degree).collect();
    degrees.sort_unstable();
    degrees.dedup();
    let mut rows: Vec<Row> = Vec::new();
    for solve in solves {
        if !rows.contains(&row(solve)) {
            rows.push(row(solve));
        }
    }
    let heads: String = degrees.iter().map(|k| format!(" Q{k} |")).collect();
    let mut text = format!(
        "| d | cells a side | moved by | coefficient | smoother |{heads}\n|--:|--:|--:|--:|--|{}\n",
        "--:|".repeat(degrees.len())
    );
    for of_row in rows {
        let (axes, cells, amplitude, jump, relaxation) = of_row;
        let coefficient = if jump == 1.0 { "1".to_owned() } else { format!("1, {jump}") };
        let smoother = match relaxation {
            Relaxation::Multiplicative => "colours".to_owned(),
            Relaxation::Additive { degree } => format!("polynomial, {degree}"),
        };
        let _ = write!(text, "| {axes} | {cells} | {amplitude} | {coefficient} | {smoother} |");
        for degree in &degrees {
            let found = solves.iter().find(|s| row(s) == of_row && s.case.element.degree == *degree);
            let _ = write!(text, " {} |", found.map_or("–".into(), |s| s.iterations().to_string()));
        }
        text.push('\n');
    }
    text
}
