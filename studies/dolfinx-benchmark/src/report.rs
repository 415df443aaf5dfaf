//! What a run says, with the names of the benchmark.

use crate::error::BenchmarkError;
use crate::matrix::AssembledMatrix;
use crate::part::{How, Part};
use crate::problem::Problem;
use crate::solve::{System, Timed};
use kingpost::Mapping;
use kingpost::runtime::Device;
use serde::{Deserialize, Serialize};

/// What was asked for and what came out, as the benchmark writes it; what it does not have is in a part of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// What was asked for.
    pub input: Input,
    /// What came out.
    pub output: Output,
    /// What was run.
    pub kingpost: Run,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Polynomial degree.
    pub p: usize,
    /// Devices, of which each has a process in the benchmark.
    pub mpi_size: usize,
    /// Degrees of freedom of a device that were asked for.
    pub ndofs_local_requested: usize,
    /// Actions, or iterations.
    pub nreps: usize,
    /// Bits of a number.
    pub scalar_size: usize,
    /// Whether quadrature is Gauss's.
    pub use_gauss: bool,
    /// Whether the result is compared with that of the assembled matrix.
    pub mat_comp: bool,
    /// Points along an axis beyond those of the nodes.
    pub qmode: usize,
    /// Whether conjugate gradients are timed instead of the action.
    pub cg: bool,
}

impl Input {
    /// Largest difference from the result of the assembled matrix, in units of its norm. Sums have some hundred terms;
    /// iterations raise differences by the condition of the matrix.
    fn tolerance(&self) -> f64 {
        match (self.scalar_size, self.cg) {
            (32, false) => 1e-5,
            (32, true) => 1e-2,
            (_, false) => 1e-13,
            (_, true) => 1e-10,
        }
    }
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Cells.
    pub ncells_global: usize,
    /// Degrees of freedom, prescribed ones included.
    pub ndofs_global: usize,
    /// Seconds of all repetitions by the wall clock.
    pub mat_free_time: f64,
    /// Norm of the right-hand side, which the operator is applied to.
    pub u_norm: f64,
    /// Norm of the result.
    pub y_norm: f64,
    /// Norm of the result of the assembled matrix; zero where there is none.
    pub z_norm: f64,
    /// Billions of degrees of freedom a second.
    pub gdof_per_second: f64,
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The device, as it calls itself.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// How the kernel of the operator is mapped.
    pub mapping: Mapping,
    /// Registers, spills and local memory, where the compiler tells.
    pub resources: Option<String>,
    /// What each device has.
    pub parts: Vec<Share>,
    /// Seconds of two repetitions before those that are timed, in conjugate gradients of ten iterations each: cards
    /// connect in the first one, and record the second one.
    pub turns_s: [f64; 2],
    /// Whether repetitions are recorded, on cards as graphs.
    pub is_recorded: bool,
    /// Difference from the result of the assembled matrix, in units of its norm; none where there is none.
    pub matrix_error: Option<f64>,
}

/// What a device has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Cells that share degrees of freedom with other devices.
    pub outer_cells: usize,
    /// The other cells.
    pub inner_cells: usize,
    /// Degrees of freedom of these cells, prescribed ones included.
    pub dofs: usize,
    /// Numbers that are sent in each action.
    pub sent: usize,
}

impl Share {
    fn of(part: &Part<'_>) -> Self {
        let [outer_cells, inner_cells] = part.n_cells();
        Self { outer_cells, inner_cells, dofs: part.dofs().len(), sent: part.n_sent() }
    }
}

impl Report {
    /// Refuses a result that is not that of the assembled matrix, if it was compared with it.
    ///
    /// # Errors
    /// [`BenchmarkError::Wrong`].
    pub fn judge(&self) -> Result<(), BenchmarkError> {
        let needed = self.input.tolerance();
        match self.kingpost.matrix_error {
            Some(error) if error.is_nan() || error > needed => Err(BenchmarkError::Wrong { error, needed }),
            Some(_) | None => Ok(()),
        }
    }
}

/// Runs the benchmark on devices and on what `input` asks for, set up as `how` says.
///
/// # Errors
/// As [`System::new`] and [`System::solve`]. A result that is not that of the matrix is in the report.
pub fn measure(
    devices: &[&dyn Device],
    problem: &Problem,
    input: Input,
    how: &How<'_>,
) -> Result<Report, BenchmarkError> {
    let mut system = System::new(devices, problem, how)?;
    let b = system.load(problem)?;
    let Timed { result, seconds, turns } = match input.cg {
        true => system.solve(&b, input.nreps)?,
        false => system.apply(&b, input.nreps)?,
    };
    let expected = match input.mat_comp {
        true => {
            let matrix = AssembledMatrix::new(problem)?;
            Some(if input.cg { matrix.solve(&b, input.nreps) } else { matrix.multiply(&b) })
        }
        false => None,
    };
    let apart = |z: &Vec<f64>| norm(&result.iter().zip(z).map(|(y, z)| y - z).collect::<Vec<_>>());
    let n_dofs = problem.n_dofs();
    let output = Output {
        ncells_global: problem.mesh.n_cells(),
        ndofs_global: n_dofs,
        mat_free_time: seconds,
        u_norm: norm(&b),
        y_norm: norm(&result),
        z_norm: expected.as_deref().map_or(0.0, norm),
        gdof_per_second: n_dofs as f64 * input.nreps as f64 / (1e9 * seconds),
    };
    // parts are mapped alike, and cards of a host are alike as a rule
    let (device, operator) = (devices[0].info(), &system.parts[0].operator);
    let run = Run {
        device: device.name.clone(),
        driver: device.driver.clone(),
        mapping: operator.mapping.clone(),
        resources: operator.resources.clone(),
        parts: system.parts.iter().map(Share::of).collect(),
        turns_s: turns,
        is_recorded: how.is_recorded,
        matrix_error: expected.as_ref().map(|z| apart(z) / norm(z)),
    };
    Ok(Report { input, output, kingpost: run })
}

/// The length of a vector.
#[must_use]
pub fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}
