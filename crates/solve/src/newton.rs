//! Newton's method with a line search.

use crate::load::{Load, follow};
use crate::{
    Call, Constraints, CsrOperator, DeviceForm, LinearChoice, LinearOptions, LinearReason, LinearReport,
    LinearSolver, MatrixAssembly, NewtonReason, NewtonReport, NewtonStep, SolveError, Vectors, run,
};
use purlin_runtime::{Buffer, Device};

/// When Newton's method stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewtonOptions {
    /// Euclidean norm of an update that is small enough.
    pub update: f64,
    /// Iterations that are allowed, in each load step.
    pub max_iterations: usize,
    /// Halvings of a step that are allowed.
    pub max_halvings: usize,
    /// Load steps: prescribed values and forces are applied in this many equal parts, at least one.
    pub load_steps: usize,
    /// Halvings of a load step that are allowed where Newton's method fails.
    pub max_cutbacks: u32,
    /// Whether the equations are linear, so that one iteration solves them.
    pub linear: bool,
    /// Whether other unknowns follow prescribed ones in the same update, or else in the next:
    /// DOLFINx's demonstration of hyperelasticity leaves out what prescribed updates add to the
    /// right-hand side.
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
            load_steps: 1,
            max_cutbacks: 5,
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
/// A step of part of the load ends at an update below this part of its first one: the next load
/// step starts there, and is solved for next.
const NEAR: f64 = 1e-3;

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
/// The first update of a load step brings prescribed unknowns to their values. Residuals say
/// nothing about its progress, as the one before knows nothing of the values. It is halved only
/// where the residual is no number, as that of a cell turned inside out, and the load step ends at
/// that part of the load. Later updates are halved until the energy falls as Armijo's condition
/// asks, or without an energy the norm of the residual.
///
/// Where the derivative is not positive definite, the solver of the linear systems stops at a
/// direction in which the energy falls; without an energy, Newton's method ends there. A load step
/// that fails is tried again from its start, half as long.
///
/// # Source
/// Nocedal & Wright 2006, §3.1 and algorithm 7.1; Borst et al. 2012, chapter 4, on load steps.
pub struct Newton<'d> {
    device: &'d dyn Device,
    options: NewtonOptions,
    vectors: Vectors<'d>,
    solver: LinearSolver<'d>,
    residual: Buffer,
    right: Buffer,
    update: Buffer,
    path: Option<LoadVectors>,
}

/// What load steps need of equations that are not linear.
struct LoadVectors {
    /// The residual of the start.
    loads: Buffer,
    /// The unknown where a load step starts.
    kept: Buffer,
}

impl Place {
    /// Whether a step of a length may end at `found`: the energy falls, or it is all rounding and
    /// the residual falls; without an energy, the residual of a system that was solved falls.
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
    /// Compiles the kernels and allocates three vectors of `n` numbers, or five for equations that
    /// are not linear. The linear systems are solved by `solver`, whose choice and options are
    /// those of `options`, as a rule.
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
        let path = match options.linear {
            true => None,
            false => Some(LoadVectors { loads: vectors.allocate()?, kept: vectors.allocate()? }),
        };
        Ok(Self { device, options, vectors, solver, residual, right, update, path })
    }

    /// What solves the linear systems.
    #[must_use]
    pub const fn solver(&self) -> &LinearSolver<'d> {
        &self.solver
    }

    /// Takes other options, but for the choice of the solver and whether the equations are linear.
    ///
    /// # Errors
    /// No memory, a failing driver.
    pub fn set_options(&mut self, options: NewtonOptions) -> Result<(), SolveError> {
        self.options = NewtonOptions { linear: self.options.linear, ..options };
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
        follow(options, &mut OnDevice { newton: self, system, u, load: Load::WHOLE }, progress)
    }
}

/// Newton's method on one device.
struct OnDevice<'o, 'd> {
    newton: &'o mut Newton<'d>,
    system: &'o NewtonSystem<'o>,
    u: &'o Buffer,
    load: Load,
}

impl NewtonEquations for OnDevice<'_, '_> {
    fn evaluate(&mut self) -> Result<f64, SolveError> {
        let (Newton { device, vectors, residual, path, .. }, system) = (&*self.newton, self.system);
        device.fill(residual, 0)?;
        let mut calls = Vec::new();
        system.residual.add_to(&[self.u], residual, &mut calls);
        calls.push(system.constraints.clear(residual));
        if let (Some(path), true) = (path, self.load.is_part()) {
            calls.push(vectors.axpy(-self.load.missing(), &path.loads, residual));
        }
        run(*device, &calls)?;
        vectors.norm(residual)
    }

    fn energy(&mut self) -> Result<Option<f64>, SolveError> {
        let (Newton { vectors, path, .. }, u) = (&*self.newton, self.u);
        let Some(form) = self.system.energy else {
            return Ok(None);
        };
        let of_all = vectors.number(|sum| {
            let mut calls = Vec::new();
            form.add_to(&[u], sum, &mut calls);
            calls
        })?;
        Ok(Some(match path {
            Some(path) if self.load.is_part() => {
                of_all - self.load.missing() * vectors.dot(&path.loads, u)?
            }
            Some(_) | None => of_all,
        }))
    }

    fn has_energy(&self) -> bool {
        self.system.energy.is_some()
    }

    fn linearise(&mut self) -> Result<(f64, f64, LinearReport), SolveError> {
        let (newton, u) = (&mut *self.newton, self.u);
        let NewtonSystem { tangent, matrix, constraints, .. } = self.system;
        let values = matrix.values();
        let mut calls = Vec::new();
        tangent.assemble(&[u], values, &mut calls);
        let assembly_s = run(newton.device, &calls)?;
        newton.device.copy(&newton.residual, &newton.right)?;
        let mut calls: Vec<Call<'_>> = Vec::new();
        calls.push(newton.vectors.scale(-1.0, &newton.right));
        calls.push(constraints.measure_gap(u, self.load.gap()));
        match newton.options.lifts {
            true => calls.extend(constraints.lift(values, &newton.right)),
            false => calls.push(constraints.set_gap(&newton.right)),
        }
        calls.extend(constraints.eliminate(values));
        run(newton.device, &calls)?;
        drop(calls);
        let preconditioner_s = newton.solver.prepare(matrix, Some(u))?;
        let linear = newton.solver.solve(matrix, &newton.right, &newton.update)?;
        Ok((assembly_s, preconditioner_s, linear))
    }

    fn update_norm(&mut self) -> Result<f64, SolveError> {
        self.newton.vectors.norm(&self.newton.update)
    }

    fn slope(&mut self) -> Result<f64, SolveError> {
        self.newton.vectors.dot(&self.newton.residual, &self.newton.update)
    }

    fn advance(&mut self, length: f64) -> Result<(), SolveError> {
        let Newton { device, vectors, update, .. } = &*self.newton;
        run(*device, &[vectors.axpy(length, update, self.u)]).map(drop)
    }

    fn set_load(&mut self, load: Load) {
        self.load = load;
    }

    fn keep_loads(&mut self) -> Result<(), SolveError> {
        let Newton { device, path, residual, .. } = &*self.newton;
        path.as_ref().map_or(Ok(()), |path| Ok(device.copy(residual, &path.loads)?))
    }

    fn keep(&mut self) -> Result<(), SolveError> {
        let Newton { device, path, .. } = &*self.newton;
        path.as_ref().map_or(Ok(()), |path| Ok(device.copy(self.u, &path.kept)?))
    }

    fn take_back(&mut self) -> Result<(), SolveError> {
        let Newton { device, path, .. } = &*self.newton;
        path.as_ref().map_or(Ok(()), |path| Ok(device.copy(&path.kept, self.u)?))
    }
}

/// Equations where Newton's method stands: on one device, or in a part of a system, whose parts
/// take the same steps as norms and energies are those of the whole.
pub(crate) trait NewtonEquations {
    /// The norm of the residual under the load, without prescribed unknowns.
    fn evaluate(&mut self) -> Result<f64, SolveError>;

    /// The energy under the load, if there is one.
    fn energy(&mut self) -> Result<Option<f64>, SolveError>;

    /// Whether there is one.
    fn has_energy(&self) -> bool;

    /// Assembles and solves the system of the next update; seconds of the assembly and of the
    /// preconditioner.
    fn linearise(&mut self) -> Result<(f64, f64, LinearReport), SolveError>;

    /// The norm of the update.
    fn update_norm(&mut self) -> Result<f64, SolveError>;

    /// The product of the residual and the update.
    fn slope(&mut self) -> Result<f64, SolveError>;

    /// Adds a multiple of the update to the unknown.
    fn advance(&mut self, length: f64) -> Result<(), SolveError>;

    /// The load from here on, the whole one at first.
    fn set_load(&mut self, load: Load);

    /// Keeps the residual, that of the start under the whole load, as what loads make of it.
    fn keep_loads(&mut self) -> Result<(), SolveError>;

    /// Keeps the unknown.
    fn keep(&mut self) -> Result<(), SolveError>;

    /// Makes the unknown what was kept.
    fn take_back(&mut self) -> Result<(), SolveError>;
}

/// How a load step ended.
pub(crate) struct LoadStep {
    /// Why.
    pub reason: NewtonReason,
    /// The norm of the residual.
    pub residual: f64,
    /// The part of the load at its end, where it converged.
    pub load: f64,
}

/// The iterations of Newton's method under a load; the step ends at a smaller one if the first
/// update is too long.
pub(crate) fn iterate(
    options: NewtonOptions,
    mut load: Load,
    at: &mut dyn NewtonEquations,
    steps: &mut Vec<NewtonStep>,
    progress: &mut dyn FnMut(usize, &NewtonStep),
) -> Result<LoadStep, SolveError> {
    at.set_load(load);
    let mut norm = at.evaluate()?;
    let (mut largest, mut held, mut first) = (norm, false, None);
    let mut reason = NewtonReason::TooMany;
    for _ in 0..options.max_iterations {
        let (assembly_s, preconditioner_s, linear) = at.linearise()?;
        let (solved, found) = (linear.converged(), linear.reason);
        let mut step = NewtonStep {
            residual: norm,
            load: load.target(),
            linear,
            length: 0.0,
            update: 0.0,
            assembly_s,
            preconditioner_s,
        };
        let descends = found == LinearReason::Indefinite && at.has_energy() && (held || !load.is_part());
        if !(solved || descends) {
            reason = NewtonReason::Linear(found);
            steps.push(step);
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
        if !held && length > 0.0 {
            held = solved && (length >= 1.0 || !options.linear);
            load = if held { load.moved(length) } else { load.lost() };
            at.set_load(load);
            if load.target() < step.load {
                norm = at.evaluate()?;
                step.load = load.target();
            }
        }
        largest = largest.max(norm);
        let small = match load.is_part() {
            true => step.update <= options.update.max(NEAR * *first.get_or_insert(step.update)),
            false => step.update <= options.update,
        };
        let ends = (small && solved && length >= 1.0) || (options.linear && held);
        progress(steps.len() + 1, &step);
        steps.push(step);
        if length == 0.0 {
            reason = NewtonReason::LineSearch;
            break;
        }
        if ends {
            reason = NewtonReason::Converged;
            break;
        }
    }
    Ok(LoadStep { reason, residual: norm, load: load.target() })
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
