//! Newton solves of hyperelastic problems.

use crate::record::{Question, Solved};
use kingpost::forms::mesh::{Mesh, MeshError};
use kingpost::kernels::BoundaryValueProblem;
use kingpost::runtime::Device;
use kingpost::solve::{
    AssemblyStrategy, LinearChoice, LinearOptions, NewtonOptions, NewtonStep, PreconditionerKind,
    ResidualNorm,
};
use kingpost::solve::{BoundaryValueSetup, BoundaryValueSetupError, BoundaryValueSystem};
use kingpost::tuning::known::of_any_mesh;
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
    /// The shipped trials are not read.
    #[error(transparent)]
    Trials(#[from] kingpost::autotune::DatabaseError),
    /// A solve that does not converge.
    #[error("on {devices} devices: {reason}")]
    Unconverged {
        /// Devices.
        devices: usize,
        /// Why it stopped.
        reason: String,
    },
    /// Several devices that solve otherwise than one.
    #[error(
        "several devices differ by {error:.1e} of the largest number, {found} iterations, needed {needed}"
    )]
    Differs {
        /// The difference of the solutions.
        error: f64,
        /// Iterations.
        found: usize,
        /// Iterations of one device.
        needed: usize,
    },
}

/// Solves a problem on a uniform mesh once for each question, and tells of each record. That one
/// does not converge is in its record. The setup is shared, as all questions are of one problem.
///
/// # Errors
/// No memory, what the device refuses.
///
/// # Source
/// Trotter et al. 2023, §4.5.
pub fn solve(
    device: &dyn Device,
    problem: BoundaryValueProblem,
    (divisions, degree): (usize, usize),
    strategy: AssemblyStrategy,
    (solver, norm): (LinearChoice, ResidualNorm),
    questions: &[Question],
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<(), NewtonError> {
    let mesh = Mesh::unit_cube(divisions)?;
    let start = Instant::now();
    let options = NewtonOptions { solver, ..NewtonOptions::default() };
    let mut system = BoundaryValueSystem::new(
        device,
        &BoundaryValueSetup {
            problem,
            mesh: &mesh,
            degree,
            assembly: strategy,
            options,
            mappings: &of_any_mesh()?,
        },
    )?;
    let setup_s = start.elapsed().as_secs_f64();
    for question in questions {
        let systems = LinearOptions { norm, relative: question.relative, ..LinearOptions::default() };
        system.restart(NewtonOptions { lifts: question.lifts, systems, ..options })?;
        let before = device.traffic();
        let report = system.solve(&mut |k, step| tell(Told::Step(k, step)))?;
        let traffic = device.traffic().since(before);
        let linear_iterations: Vec<usize> =
            report.steps.iter().map(|step| step.linear.iterations()).collect();
        tell(Told::Solved(&Solved {
            question: question.clone(),
            divisions,
            degree,
            unknowns: system.unknowns,
            entries: system.entries(),
            strategy: strategy.to_string(),
            mappings: system.mappings().flatten().cloned().collect(),
            device: device.info().into(),
            reason: report.reason.to_string(),
            converged: report.converged(),
            residual: report.residual,
            updates: report.steps.iter().map(|step| step.update).collect(),
            lengths: report.steps.iter().map(|step| step.length).collect(),
            loads: report.steps.iter().map(|step| step.load).collect(),
            linear_iterations,
            assembly_s: report.steps.iter().map(|step| step.assembly_s).sum(),
            preconditioner_s: (solver.preconditioner != PreconditionerKind::Jacobi)
                .then(|| report.steps.iter().map(|step| step.preconditioner_s).sum()),
            levels: system.hierarchy().map(|size| size.unknowns.clone()).unwrap_or_default(),
            linear_s: report.steps.iter().map(|step| step.linear.seconds).sum(),
            wall_s: report.seconds,
            setup_s,
            to_device: traffic.to_device,
            to_host: traffic.to_host,
        }));
    }
    Ok(())
}

/// What happens in a solve.
pub enum Told<'t> {
    /// An iteration of Newton's method, counted from one.
    Step(usize, &'t NewtonStep),
    /// The end of a solve.
    Solved(&'t Solved),
}
