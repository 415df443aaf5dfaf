//! Poisson's equation on one device and on several.

use crate::newton::NewtonError;
use crate::record::{Card, Scaled};
use kingpost::forms::mesh::Mesh;
use kingpost::kernels::BoundaryValueProblem;
use kingpost::runtime::Device;
use kingpost::solve::{AssemblyStrategy, LinearOptions, NewtonOptions};
use kingpost::solve::{BoundaryValueSetup, BoundaryValueSystem, Exchange};
use kingpost::tuning::known::of_any_mesh;

const PROBLEM: BoundaryValueProblem = BoundaryValueProblem::Poisson;
const ASSEMBLY: AssemblyStrategy = AssemblyStrategy::OWNED_ROWS;
/// Solves that are timed, after one that is not: NCCL connects cards in the first one.
const RUNS: usize = 3;
/// Largest difference from the solution of one device, relative to its largest number, for residuals of
/// [`RELATIVE`] of the right-hand side.
pub const TOLERANCE: f64 = 1e-10;
/// Residual of the systems.
pub const RELATIVE: f64 = 1e-12;

fn options() -> NewtonOptions {
    let systems = LinearOptions { relative: RELATIVE, ..LinearOptions::default() };
    NewtonOptions { linear: true, systems, ..NewtonOptions::default() }
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// The solution of a mesh on one device.
pub struct Alone {
    mesh: Mesh,
    divisions: usize,
    degree: usize,
    iterations: usize,
    solution: Vec<f64>,
}

impl Alone {
    /// Solves on one device with its own iterations of conjugate gradients, timed by its clock.
    ///
    /// # Errors
    /// No memory, what the device refuses; a solve that does not converge.
    pub fn solve(
        device: &dyn Device,
        divisions: usize,
        degree: usize,
    ) -> Result<(Self, Scaled), NewtonError> {
        let mesh = Mesh::unit_cube(divisions)?;
        let start = std::time::Instant::now();
        let mut system = BoundaryValueSystem::new(
            device,
            &BoundaryValueSetup {
                problem: PROBLEM,
                mesh: &mesh,
                degree,
                assembly: ASSEMBLY,
                options: options(),
                mappings: &of_any_mesh()?,
            },
        )?;
        let setup_s = start.elapsed().as_secs_f64();
        let (mut seconds, mut iterations, mut traffic) = (Vec::new(), 0, Default::default());
        for run in 0..=RUNS {
            system.restart(options())?;
            let before = device.traffic();
            let report = system.solve(&mut |_, _| ())?;
            traffic = device.traffic().since(before);
            if !report.converged() {
                return Err(NewtonError::Unconverged { devices: 1, reason: report.reason.to_string() });
            }
            iterations = report.linear_iterations();
            if run > 0 {
                seconds.push(report.steps.iter().map(|step| step.linear.seconds).sum());
            }
        }
        let record = Scaled {
            divisions,
            degree,
            unknowns: system.unknowns,
            entries: system.entries(),
            devices: 1,
            device: device.info().into(),
            exchange: None,
            overlaps: false,
            parts: Vec::new(),
            halo_bytes: 0,
            iterations,
            solve_s: median(seconds),
            setup_s,
            to_device: traffic.to_device,
            to_host: traffic.to_host,
            error: 0.0,
        };
        Ok((Self { mesh, divisions, degree, iterations, solution: system.solution()? }, record))
    }

    /// Solves the same on several devices, with overlap and without, timed by the wall clock.
    ///
    /// # Errors
    /// As [`Alone::solve`]; a solution or a number of iterations that differs.
    pub fn beside(&self, devices: &[&dyn Device], exchange: Exchange) -> Result<Vec<Scaled>, NewtonError> {
        let Self { mesh, divisions, degree, iterations, solution } = self;
        let start = std::time::Instant::now();
        let mut system = BoundaryValueSystem::on(
            devices,
            exchange,
            &BoundaryValueSetup {
                problem: PROBLEM,
                mesh,
                degree: *degree,
                assembly: ASSEMBLY,
                options: options(),
                mappings: &of_any_mesh()?,
            },
        )?;
        let setup_s = start.elapsed().as_secs_f64();
        let mut records = Vec::new();
        for overlaps in [true, false] {
            system.set_overlaps(overlaps);
            system.restart(options())?;
            let mut report = system.solve(&mut |_, _| ())?;
            let (mut seconds, mut traffic) = (Vec::new(), Default::default());
            for _ in 0..RUNS {
                system.restart(options())?;
                let before = system.copied();
                report = system.solve(&mut |_, _| ())?;
                traffic = system.copied().since(before);
                seconds.push(report.steps.iter().map(|step| step.linear.seconds).sum());
            }
            let iterations_here = report.linear_iterations();
            if !report.converged() {
                let reason = report.reason.to_string();
                return Err(NewtonError::Unconverged { devices: devices.len(), reason });
            }
            let found = system.solution()?;
            let largest = solution.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
            let far = found.iter().zip(solution).fold(0.0_f64, |far, (a, b)| far.max((a - b).abs()));
            let error = far / largest;
            let same = iterations_here.abs_diff(*iterations) <= 1;
            if error.is_nan() || error > TOLERANCE || !same {
                return Err(NewtonError::Differs { error, found: iterations_here, needed: *iterations });
            }
            records.push(Scaled {
                divisions: *divisions,
                degree: *degree,
                unknowns: system.unknowns,
                entries: system.entries(),
                devices: devices.len(),
                device: Card::from(devices[0].info()),
                exchange: Some(exchange.to_string()),
                overlaps,
                parts: system.parts(),
                halo_bytes: system.halo_bytes(),
                iterations: iterations_here,
                solve_s: median(seconds),
                setup_s,
                to_device: traffic.to_device,
                to_host: traffic.to_host,
                error,
            });
        }
        Ok(records)
    }
}
