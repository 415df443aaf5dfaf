//! Newton's iteration under one part of the load.

use crate::{LinearChoice, LinearOptions, LinearReason, LinearReport, NewtonReason, NewtonStep, SolveError};

/// A part of the reduction that the linear model promises which a step has to achieve (Armijo's
/// condition; Nocedal & Wright 2006, §3.1).
const SUFFICIENT: f64 = 1e-4;
/// Residuals below this part of the largest one are roundings.
const ROUNDING: f64 = 1e-12;
/// A step of part of the load ends at an update below this part of its first one: the next load
/// step starts there, and is solved for next.
const NEAR: f64 = 1e-3;

/// A part of the load, and how far prescribed unknowns have gone.
///
/// Under the part `t` the residual is `R(u) - (1 - t) R(u_0)` with the start `u_0`, whose residual
/// is what forces make of it. An energy loses `(1 - t) R(u_0) u`. Prescribed unknowns go the part
/// `t` of the way from the start to their values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) target: f64,
    pub(crate) moved: f64,
}

impl Load {
    /// All of it, where prescribed unknowns are those of the start.
    pub const WHOLE: Self = Self { target: 1.0, moved: 0.0 };

    /// The part.
    pub const fn target(self) -> f64 {
        self.target
    }

    /// Whether some of the load is missing.
    pub fn is_part(self) -> bool {
        self.target < 1.0
    }

    /// The part that is missing.
    pub fn missing(self) -> f64 {
        1.0 - self.target
    }

    /// The part that an update closes of the gap between prescribed unknowns and their values.
    pub fn gap(self) -> f64 {
        match self.is_part() {
            true => (self.target - self.moved) / (1.0 - self.moved),
            false => 1.0,
        }
    }

    /// After a step of such a length, which ends the load if it is no whole one.
    pub fn moved(self, length: f64) -> Self {
        let moved = match length < 1.0 {
            true => self.moved + length * (self.target - self.moved),
            false => self.target,
        };
        Self { target: moved, moved }
    }

    /// The whole load after a step that moved prescribed unknowns some way.
    pub const fn lost(self) -> Self {
        Self { moved: self.target, ..self }
    }
}

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

/// Equations where Newton's method stands. The parts of a system take the same steps, as norms and
/// energies are those of the whole.
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

/// Where a step starts: the norm of the residual, and of energies their value and slope.
struct Place {
    norm: f64,
    energy: Option<(f64, f64)>,
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
