//! Newton's method with a line search.

use crate::{
    Call, Constraints, CsrOperator, DeviceForm, LinearChoice, LinearOptions, LinearReason, LinearReport,
    LinearSolver, MatrixAssembly, NewtonReason, NewtonReport, NewtonStep, SolveError, Vectors, run,
};
use purlin_runtime::{Buffer, Device};
use std::time::Instant;

/// When Newton's method stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewtonOptions {
    /// Euclidean norm of an update that is small enough.
    pub update: f64,
    /// Iterations that are allowed.
    pub max_iterations: usize,
    /// Halvings of a step that are allowed.
    pub max_halvings: usize,
    /// Whether the equations are linear, so that one iteration solves them.
    pub linear: bool,
    /// Whether other unknowns follow prescribed ones in the same update, or else in the next: DOLFINx's
    /// demonstration of hyperelasticity leaves out what prescribed updates add to the right-hand side.
    pub lifts: bool,
    /// What solves the linear systems.
    pub solver: LinearChoice,
    /// When it stops.
    pub systems: LinearOptions,
}

impl Default for NewtonOptions {
    /// The tolerances of Trotter et al. 2023, §4.5.
    fn default() -> Self {
        Self {
            update: 1e-12,
            max_iterations: 50,
            max_halvings: 12,
            linear: false,
            lifts: true,
            solver: LinearChoice::default(),
            systems: LinearOptions::default(),
        }
    }
}

/// A part of the reduction that the linear model promises which a step has to achieve (Armijo's
/// condition; Nocedal & Wright 2006, §3.1).
const SUFFICIENT: f64 = 1e-4;
/// Residuals below this part of the largest one are roundings.
const ROUNDING: f64 = 1e-12;

/// Equations on a device.
pub struct NewtonSystem<'s> {
    /// The residual, of one given array, the unknown.
    pub residual: &'s DeviceForm,
    /// Its derivative, likewise.
    pub tangent: &'s MatrixAssembly,
    /// The matrix that the derivative is assembled to.
    pub matrix: &'s CsrOperator,
    /// Prescribed values.
    pub constraints: &'s Constraints,
    /// What the residual is the derivative of, a functional of one given array, if there is such.
    pub energy: Option<&'s DeviceForm>,
}

/// Where a step starts: the norm of the residual, and of energies their value and slope.
struct Place {
    norm: f64,
    energy: Option<(f64, f64)>,
}

/// Newton's method for equations whose derivative is symmetric.
///
/// An update brings prescribed unknowns to their values. Until a whole update was added, residuals
/// say nothing about progress, as the residual of the start knows nothing of the values: such a step
/// is halved only where its residual is no number. Later ones are halved until the energy falls as
/// Armijo's condition asks, or without an energy the norm of the residual.
///
/// Where the derivative is not positive definite, the solver of the linear systems stops at a
/// direction in which the energy falls; without an energy, Newton's method ends there.
///
/// # Source
/// Nocedal & Wright 2006, §3.1 and algorithm 7.1.
pub struct Newton<'d> {
    device: &'d dyn Device,
    options: NewtonOptions,
    vectors: Vectors<'d>,
    solver: LinearSolver<'d>,
    residual: Buffer,
    right: Buffer,
    update: Buffer,
}

impl Place {
    /// Whether a step of a length may end at `found`: the energy falls, or it is all rounding and the
    /// residual falls; without an energy, the residual of a system that was solved falls.
    fn allows(&self, length: f64, found: &Self, solved: bool) -> bool {
        let residual = solved && found.norm <= (1.0 - SUFFICIENT * length) * self.norm;
        match (self.energy, found.energy) {
            (Some((before, slope)), Some((behind, _))) => {
                let falls = behind <= before + SUFFICIENT * length * slope;
                let rounding = length * slope.abs() <= ROUNDING * before.abs();
                (slope < 0.0 && falls) || (rounding && residual)
            }
            (Some(_), None) | (None, Some(_) | None) => residual,
        }
    }
}

impl<'d> Newton<'d> {
    /// Compiles the kernels and allocates three vectors of `n` numbers. The linear systems are solved
    /// by `solver`, whose choice and options are those of `options`, as a rule.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(
        device: &'d dyn Device,
        n: usize,
        options: NewtonOptions,
        solver: LinearSolver<'d>,
    ) -> Result<Self, SolveError> {
        let vectors = Vectors::new(device, n)?;
        let [residual, right, update] = [vectors.allocate()?, vectors.allocate()?, vectors.allocate()?];
        Ok(Self { device, options, vectors, solver, residual, right, update })
    }

    /// What solves the linear systems.
    #[must_use]
    pub const fn solver(&self) -> &LinearSolver<'d> {
        &self.solver
    }

    /// Takes other options, but for the choice of the solver.
    ///
    /// # Errors
    /// No memory, a failing driver.
    pub fn set_options(&mut self, options: NewtonOptions) -> Result<(), SolveError> {
        self.options = options;
        self.solver.set_options(options.systems)
    }

    /// Solves from what `u` holds. `progress` is told of each iteration.
    ///
    /// # Errors
    /// A failing driver. That it does not converge is in the report.
    pub fn solve(
        &mut self,
        system: &NewtonSystem<'_>,
        u: &Buffer,
        progress: &mut dyn FnMut(usize, &NewtonStep),
    ) -> Result<NewtonReport, SolveError> {
        let options = self.options;
        iterate(options, &mut OnDevice { newton: self, system, u }, progress)
    }

    /// The norm of the residual, which is left in its vector, zero at prescribed unknowns.
    fn evaluate(&self, system: &NewtonSystem<'_>, u: &Buffer) -> Result<f64, SolveError> {
        self.device.fill(&self.residual, 0)?;
        let mut calls = Vec::new();
        system.residual.add_to(&[u], &self.residual, &mut calls);
        calls.push(system.constraints.clear(&self.residual));
        run(self.device, &calls)?;
        self.vectors.norm(&self.residual)
    }

    /// The energy, if there is one.
    fn energy(&self, system: &NewtonSystem<'_>, u: &Buffer) -> Result<Option<f64>, SolveError> {
        let of = |form: &DeviceForm| {
            self.vectors.number(|sum| {
                let mut calls = Vec::new();
                form.add_to(&[u], sum, &mut calls);
                calls
            })
        };
        system.energy.map(of).transpose()
    }

    /// Assembles and solves the system of the next update; seconds of the assembly and of the
    /// preconditioner.
    fn linearise(
        &mut self,
        system: &NewtonSystem<'_>,
        u: &Buffer,
    ) -> Result<(f64, f64, LinearReport), SolveError> {
        let NewtonSystem { tangent, matrix, constraints, .. } = system;
        let values = matrix.values();
        let mut calls = Vec::new();
        tangent.assemble(&[u], values, &mut calls);
        let assembly_s = run(self.device, &calls)?;
        self.device.copy(&self.residual, &self.right)?;
        let mut calls: Vec<Call<'_>> = Vec::new();
        calls.push(self.vectors.scale(-1.0, &self.right));
        calls.push(constraints.measure_gap(u));
        match self.options.lifts {
            true => calls.extend(constraints.lift(values, &self.right)),
            false => calls.push(constraints.set_gap(&self.right)),
        }
        calls.extend(constraints.eliminate(values));
        run(self.device, &calls)?;
        drop(calls);
        let preconditioner_s = self.solver.prepare(matrix, Some(u))?;
        let linear = self.solver.solve(matrix, &self.right, &self.update)?;
        Ok((assembly_s, preconditioner_s, linear))
    }
}

/// Newton's method on one device.
struct OnDevice<'o, 'd> {
    newton: &'o mut Newton<'d>,
    system: &'o NewtonSystem<'o>,
    u: &'o Buffer,
}

impl NewtonEquations for OnDevice<'_, '_> {
    fn evaluate(&mut self) -> Result<f64, SolveError> {
        self.newton.evaluate(self.system, self.u)
    }

    fn energy(&mut self) -> Result<Option<f64>, SolveError> {
        self.newton.energy(self.system, self.u)
    }

    fn has_energy(&self) -> bool {
        self.system.energy.is_some()
    }

    fn linearise(&mut self) -> Result<(f64, f64, LinearReport), SolveError> {
        self.newton.linearise(self.system, self.u)
    }

    fn update_norm(&mut self) -> Result<f64, SolveError> {
        self.newton.vectors.norm(&self.newton.update)
    }

    fn slope(&mut self) -> Result<f64, SolveError> {
        self.newton.vectors.dot(&self.newton.residual, &self.newton.update)
    }

    fn advance(&mut self, length: f64) -> Result<(), SolveError> {
        let Newton { device, vectors, update, .. } = self.newton;
        run(*device, &[vectors.axpy(length, update, self.u)]).map(drop)
    }
}

/// Equations where Newton's method stands: on one device, or in a part of a system, whose parts take the
/// same steps as norms and energies are those of the whole.
pub(crate) trait NewtonEquations {
    /// The norm of the residual at the unknown, without prescribed unknowns.
    fn evaluate(&mut self) -> Result<f64, SolveError>;

    /// The energy, if there is one.
    fn energy(&mut self) -> Result<Option<f64>, SolveError>;

    /// Whether there is one.
    fn has_energy(&self) -> bool;

    /// Assembles and solves the system of the next update; seconds of the assembly and of the preconditioner.
    fn linearise(&mut self) -> Result<(f64, f64, LinearReport), SolveError>;

    /// The norm of the update.
    fn update_norm(&mut self) -> Result<f64, SolveError>;

    /// The product of the residual and the update.
    fn slope(&mut self) -> Result<f64, SolveError>;

    /// Adds so many times the update to the unknown.
    fn advance(&mut self, length: f64) -> Result<(), SolveError>;
}

/// The iterations of Newton's method.
pub(crate) fn iterate(
    options: NewtonOptions,
    at: &mut dyn NewtonEquations,
    progress: &mut dyn FnMut(usize, &NewtonStep),
) -> Result<NewtonReport, SolveError> {
    let started = Instant::now();
    let mut norm = at.evaluate()?;
    let mut report =
        NewtonReport { reason: NewtonReason::TooMany, steps: Vec::new(), residual: norm, seconds: 0.0 };
    if !norm.is_finite() {
        report.reason = NewtonReason::NotFinite;
        return Ok(report);
    }
    let (mut largest, mut held) = (norm, false);
    for iteration in 0..options.max_iterations {
        let (assembly_s, preconditioner_s, linear) = at.linearise()?;
        let (solved, reason) = (linear.converged(), linear.reason);
        let mut step =
            NewtonStep { residual: norm, linear, length: 0.0, update: 0.0, assembly_s, preconditioner_s };
        let descends = reason == LinearReason::Indefinite && at.has_energy();
        if !(solved || descends) {
            report.reason = NewtonReason::Linear(reason);
            report.steps.push(step);
            break;
        }
        let whole = at.update_norm()?;
        let energy = match (held, at.energy()?) {
            (true, Some(energy)) => Some((energy, at.slope()?)),
            (true | false, _) => None,
        };
        let place = Place { norm, energy };
        let enough = |length: f64, found: &Place| {
            let small = length * whole <= options.update;
            let still = small || found.norm <= ROUNDING * largest;
            found.norm.is_finite() && (!held || still || place.allows(length, found, solved))
        };
        let (length, found) = search(options, at, &enough)?;
        (step.length, step.update, norm) = (length, length * whole, found);
        (held, largest) = (held || (solved && length >= 1.0), largest.max(norm));
        progress(iteration + 1, &step);
        let small = solved && step.length >= 1.0 && step.update <= options.update;
        report.steps.push(step);
        if length == 0.0 {
            report.reason = NewtonReason::LineSearch;
            break;
        }
        if small || (options.linear && held) {
            report.reason = NewtonReason::Converged;
            break;
        }
    }
    report.residual = norm;
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

/// Adds the part of the update that is long enough and good enough, with the norm of the residual
/// there; a length of zero if there is none, and the unknown as it was, up to roundings.
fn search(
    options: NewtonOptions,
    at: &mut dyn NewtonEquations,
    enough: &dyn Fn(f64, &Place) -> bool,
) -> Result<(f64, f64), SolveError> {
    let (mut added, mut length) = (0.0, 1.0);
    for _ in 0..=options.max_halvings {
        at.advance(length - added)?;
        added = length;
        let norm = at.evaluate()?;
        let energy = at.energy()?.map(|energy| (energy, 0.0));
        if enough(length, &Place { norm, energy }) {
            return Ok((length, norm));
        }
        length /= 2.0;
    }
    at.advance(-added)?;
    Ok((0.0, at.evaluate()?))
}
