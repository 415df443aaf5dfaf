//! Linear systems solved on a device.

use crate::failure::{self, Failure};
use crate::program::device;
use kingpost::forms::sparse::CsrPattern;
use kingpost::runtime::{buffer_of, download_values, upload_values};
use kingpost::solve::{
    CsrOperator, LinearChoice, LinearOptions, LinearReason, LinearSolver, PowerOfTwo, SolveError, Unknowns,
};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// A matrix by rows: where rows start and the columns, as `i32`, and the entries, as `f64`, all of this
/// machine.
type Rows = (Vec<u8>, Vec<u8>, Vec<u8>);
/// A method and a preconditioner by name.
type Names = (String, String);
/// Residuals that are small enough, relative to the right-hand side and in any case, and the
/// iterations that are allowed.
type Limits = (f64, f64, usize);
/// Components of a degree of freedom, the dimension of the points, and these, `f64` of this machine.
type Freedoms = (usize, usize, Vec<u8>);
/// Why a solve stopped, whether that is convergence, norms of residuals, seconds.
type Report = (String, bool, Vec<f64>, f64);

impl From<SolveError> for Failure {
    fn from(error: SolveError) -> Self {
        match error {
            SolveError::Runtime(error) => error.into(),
            SolveError::Text(_)
            | SolveError::Schedule(_)
            | SolveError::Code(_)
            | SolveError::NotInPart { .. }
            | SolveError::Unprepared => Self::new("InternalError", error.to_string()),
            SolveError::Memory { .. } | SolveError::PartEnded { .. } | SolveError::Messages { .. } => {
                Self::new("DeviceError", error.to_string())
            }
            SolveError::Form(_)
            | SolveError::Mapping(_)
            | SolveError::Unmapped { .. }
            | SolveError::Missing { .. }
            | SolveError::Assembly
            | SolveError::Length { .. }
            | SolveError::NoDiagonal { .. }
            | SolveError::NoBlock { .. }
            | SolveError::Spectrum { .. }
            | SolveError::Choice { .. }
            | SolveError::Parts { .. }
            | SolveError::NoSuchPart { .. }
            | SolveError::PartsForm { .. }
            | SolveError::NoNeighbour { .. }
            | SolveError::PartsChoice { .. }
            | SolveError::NoCoarse { .. }
            | SolveError::Element { .. }
            | SolveError::HalfOfRows { .. }
            | SolveError::Norm { .. }
            | SolveError::Option { .. }
            | SolveError::Prescribed { .. } => Self::new("ArgumentError", error.to_string()),
        }
    }
}

/// Solves with one matrix for several right-hand sides, one after the other: the solutions, a report
/// each, and the seconds that the preconditioner took to make.
#[pyfunction]
pub(crate) fn solve_rows<'py>(
    py: Python<'py>,
    device_name: &str,
    matrix: Rows,
    right: Vec<u8>,
    names: Names,
    limits: Limits,
    freedoms: Freedoms,
) -> PyResult<(Bound<'py, PyByteArray>, Vec<Report>, f64)> {
    let (solutions, reports, setup) = failure::run(py, || {
        let device = device(device_name)?;
        let argument = |message: String| Failure::new("ArgumentError", message);
        let method = names.0.parse().map_err(|e| argument(format!("{e}")))?;
        let preconditioner = names.1.parse().map_err(|e| argument(format!("{e}")))?;
        let (pattern, values) = rows(&matrix)?;
        let n = pattern.row_starts.len() - 1;
        let unknowns = Unknowns { components: freedoms.0, points: reals(&freedoms.2), dim: freedoms.1 };
        let options = LinearOptions {
            relative: limits.0,
            absolute: limits.1,
            max_iterations: limits.2,
            ..LinearOptions::default()
        };
        let operator = CsrOperator::new(&*device, &pattern)?;
        // products of tiny numbers vanish: the system is solved for a multiple of the matrix
        let scale = PowerOfTwo::if_needed(&values);
        let mut values = values;
        scale.scale(&mut values);
        upload_values(&*device, operator.values(), &values)?;
        let choice = LinearChoice { method, preconditioner };
        let mut solver = LinearSolver::new(&*device, &pattern, &unknowns, choice, options)?;
        let setup = solver.prepare(&operator, None)?;
        let x = device.allocate(8 * n as u64)?;
        let (mut solutions, mut reports) = (Vec::new(), Vec::new());
        for right in reals(&right).chunks(n.max(1)) {
            let b = buffer_of(&*device, right)?;
            let report = solver.solve(&operator, &b, &x)?;
            let mut solution = download_values::<f64>(&*device, &x)?;
            scale.scale(&mut solution);
            let is_finite = solution.iter().all(|x| x.is_finite());
            // one of numbers that there are not, of a tiny matrix and a huge right-hand side
            let reason = if is_finite { report.reason } else { LinearReason::NotFinite };
            let has_converged = reason == LinearReason::Converged;
            reports.push((reason.to_string(), has_converged, report.residuals, report.seconds));
            solutions.append(&mut solution);
        }
        Ok((solutions, reports, setup))
    })?;
    let bytes: Vec<u8> = solutions.iter().flat_map(|x: &f64| x.to_ne_bytes()).collect();
    Ok((PyByteArray::new(py, &bytes), reports, setup))
}

/// The pattern of a square matrix by rows, whose entries may stand in any order and several times in
/// its rows, and its values.
fn rows((starts, columns, entries): &Rows) -> Result<(CsrPattern, Vec<f64>), Failure> {
    let (starts, columns, entries) = (integers(starts), integers(columns), reals(entries));
    let n = starts.len().saturating_sub(1);
    let mut of_row = Vec::with_capacity(columns.len());
    for (row, bounds) in starts.windows(2).enumerate() {
        of_row.extend((bounds[0]..bounds[1]).map(|_| row as i32));
    }
    let pattern = CsrPattern::of_rows(n, n, 1, 1, &of_row, &columns)
        .map_err(|e| Failure::new("ArgumentError", format!("the matrix: {e}")))?;
    let mut values = vec![0.0; pattern.columns.len()];
    for (place, entry) in pattern.positions().iter().zip(&entries) {
        values[*place as usize] += entry;
    }
    Ok((pattern, values))
}

fn integers(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks::<4>().0.iter().map(|b| i32::from_ne_bytes(*b)).collect()
}

fn reals(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
}
