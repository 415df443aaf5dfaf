//! The Newton solve of the hyperelastic problem.

use crate::record::Solved;
use purlin::forms::mesh::{Mesh, MeshError};
use purlin::kernels::BoundaryValueProblem;
use purlin::runtime::Device;
use purlin::solve::{AssemblyStrategy, NewtonOptions, NewtonStep};
use purlin::{BoundaryValueSetupError, BoundaryValueSystem};
use std::time::Instant;

/// Why there is no solve.
#[derive(Debug, thiserror::Error)]
pub enum NewtonError {
    /// No mesh.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The system is refused.
    #[error(transparent)]
    Setup(#[from] BoundaryValueSetupError),
}

/// Solves the problem on a uniform mesh. That it does not converge is in the record.
///
/// # Errors
/// No memory, what the device refuses.
///
/// # Source
/// Trotter et al. 2023, §4.5.
pub fn solve(
    device: &dyn Device,
    divisions: usize,
    degree: usize,
    strategy: AssemblyStrategy,
    progress: &mut dyn FnMut(usize, &NewtonStep),
) -> Result<Solved, NewtonError> {
    let mesh = Mesh::unit_cube(divisions)?;
    let problem = BoundaryValueProblem::Hyperelasticity;
    let start = Instant::now();
    let system =
        BoundaryValueSystem::new(device, problem, &mesh, degree, strategy, NewtonOptions::default())?;
    let setup_s = start.elapsed().as_secs_f64();
    let before = device.traffic();
    let report = system.solve(progress)?;
    let traffic = device.traffic().since(before);
    Ok(Solved {
        divisions,
        degree,
        unknowns: system.unknowns,
        entries: system.entries(),
        strategy: strategy.to_string(),
        mappings: system.mappings.clone(),
        device: device.info().into(),
        reason: report.reason.to_string(),
        converged: report.converged(),
        residual: report.residual,
        updates: report.steps.iter().map(|step| step.update).collect(),
        linear_iterations: report.steps.iter().map(|step| step.linear.iterations()).collect(),
        assembly_s: report.steps.iter().map(|step| step.assembly_s).sum(),
        linear_s: report.steps.iter().map(|step| step.linear.seconds).sum(),
        wall_s: report.seconds,
        setup_s,
        to_device: traffic.to_device,
        to_host: traffic.to_host,
    })
}
