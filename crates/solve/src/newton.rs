//! Newton's method with a line search.

use crate::iteration::{Load, NewtonEquations, NewtonOptions};
use crate::load::follow;
use crate::parts::{Guard, number};
use crate::{
    Communicator, Constraints, DeviceForm, Energy, HierarchyTimes, LinearReport, LinearSolver,
    MatrixAssembly, NewtonReport, NewtonStep, Operator, Queue, SolveError, SystemMatrix, Vectors,
};
use kingpost_runtime::{Buffer, Device};

/// Equations on a device: those of a part on its mesh, all of whose cells have an unknown that it owns.
pub struct NewtonSystem {
    /// The residual, of one given array, the unknown.
    pub residual: DeviceForm,
    /// Its derivative, likewise.
    pub tangent: MatrixAssembly,
    /// Prescribed values, those of ghosts among them.
    pub constraints: Constraints,
    /// What the residual is the derivative of, if there is such.
    pub energy: Option<Energy>,
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
    solver: LinearSolver<'d>,
    matrix: SystemMatrix,
    /// Vectors of all unknowns of the mesh.
    on_mesh: NewtonVectors<'d>,
    /// Vectors of owned unknowns, if other parts own some.
    owned: Option<NewtonVectors<'d>>,
    /// The unknown where a load step starts, if equations are not linear.
    kept: Option<Buffer>,
    sum: Buffer,
}

/// Vectors of one length.
struct NewtonVectors<'d> {
    kernels: Vectors<'d>,
    residual: Buffer,
    right: Buffer,
    update: Buffer,
    /// The residual of the start, if equations are not linear.
    loads: Option<Buffer>,
}

impl<'d> NewtonVectors<'d> {
    fn new(device: &'d dyn Device, n: usize, options: NewtonOptions) -> Result<Self, SolveError> {
        let kernels = Vectors::new(device, n)?;
        Ok(Self {
            residual: kernels.allocate()?,
            right: kernels.allocate()?,
            update: kernels.allocate()?,
            loads: (!options.linear).then(|| kernels.allocate()).transpose()?,
            kernels,
        })
    }
}

impl<'d> Newton<'d> {
    /// Compiles the kernels and allocates three vectors for the unknowns of a matrix, or five for
    /// equations that are not linear; of a part, as many for those that it owns. The linear systems are
    /// solved by `solver`, whose choice and options are those of `options`, as a rule.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(
        device: &'d dyn Device,
        matrix: SystemMatrix,
        options: NewtonOptions,
        solver: LinearSolver<'d>,
    ) -> Result<Self, SolveError> {
        let on_mesh = NewtonVectors::new(device, matrix.n_mesh(), options)?;
        let owned = match &matrix {
            SystemMatrix::Whole(_) => None,
            SystemMatrix::Part(rows) => Some(NewtonVectors::new(device, rows.size(), options)?),
        };
        let kept = (!options.linear).then(|| on_mesh.kernels.allocate()).transpose()?;
        Ok(Self { device, options, solver, matrix, on_mesh, owned, kept, sum: device.allocate(8)? })
    }

    /// What solves the linear systems.
    #[must_use]
    pub const fn solver(&self) -> &LinearSolver<'d> {
        &self.solver
    }

    /// How long hierarchies of the matrix take, made again some `times`; none where no hierarchy of
    /// the whole matrix preconditions.
    ///
    /// # Errors
    /// As [`LinearSolver::time_hierarchies`].
    pub fn time_hierarchies(&mut self, times: usize) -> Result<Option<HierarchyTimes>, SolveError> {
        match &self.matrix {
            SystemMatrix::Whole(matrix) => self.solver.time_hierarchies(matrix, times),
            SystemMatrix::Part(_) => Ok(None),
        }
    }

    /// The matrix of the linear systems.
    #[must_use]
    pub const fn matrix(&self) -> &SystemMatrix {
        &self.matrix
    }

    /// Says whether products with owned columns run while ghosts are under way, as they do at first.
    pub fn set_overlaps(&mut self, overlaps: bool) {
        match &mut self.matrix {
            SystemMatrix::Whole(_) => {}
            SystemMatrix::Part(rows) => rows.overlaps = overlaps,
        }
    }

    /// Takes other options, except for the choice of the solver and whether the equations are linear.
    ///
    /// # Errors
    /// No memory, a failing driver.
    pub fn set_options(&mut self, options: NewtonOptions) -> Result<(), SolveError> {
        self.options = NewtonOptions { linear: self.options.linear, ..options };
        self.solver.set_options(options.systems)
    }

    /// Solves from what `u` holds on the mesh, together with the threads of the other parts, if there
    /// are any: each calls this with its own part, and all take the same steps. `progress` is told of
    /// each iteration.
    ///
    /// # Errors
    /// A failing driver, a part that ended; the other parts end likewise. That it does not converge is in
    /// the report.
    pub fn solve(
        &mut self,
        communicator: &dyn Communicator,
        system: &NewtonSystem,
        u: &Buffer,
        progress: &mut dyn FnMut(usize, &NewtonStep),
    ) -> Result<NewtonReport, SolveError> {
        let mut guard = Guard::new(communicator);
        let options = self.options;
        let mut at = OfPart { newton: self, communicator, system, u, load: Load::WHOLE };
        let report = follow(options, &mut at, progress)?;
        guard.is_done = true;
        Ok(report)
    }

    /// The vectors of owned unknowns.
    fn own(&self) -> &NewtonVectors<'d> {
        self.owned.as_ref().unwrap_or(&self.on_mesh)
    }

    /// Takes owned unknowns of a vector on the mesh, unless all are.
    fn restrict<'a>(&'a self, on_mesh: &'a Buffer, owned: &'a Buffer, queue: &mut Queue<'a>) {
        match &self.matrix {
            SystemMatrix::Whole(_) => {}
            SystemMatrix::Part(rows) => queue.push(rows.halo.restrict(on_mesh, owned)),
        }
    }
}

/// Newton's method of a part, which may be the whole.
struct OfPart<'o, 'd> {
    newton: &'o mut Newton<'d>,
    communicator: &'o dyn Communicator,
    system: &'o NewtonSystem,
    u: &'o Buffer,
    load: Load,
}

impl OfPart<'_, '_> {
    /// The number that the kernels of all parts add up to.
    fn number<'a>(&'a self, calls: impl FnOnce(&'a Buffer, &mut Queue<'a>)) -> Result<f64, SolveError> {
        number(self.communicator, self.newton.device, &self.newton.sum, calls)
    }
}

impl NewtonEquations for OfPart<'_, '_> {
    fn evaluate(&mut self) -> Result<f64, SolveError> {
        let (Self { newton, system, u, load, .. }, own) = (&*self, self.newton.own());
        let NewtonVectors { kernels, residual, loads, .. } = &newton.on_mesh;
        newton.device.fill(residual, 0)?;
        let square = self.number(|sum, queue| {
            system.residual.add_to(&[u], residual, queue);
            queue.push(system.constraints.clear(residual));
            if let (Some(loads), true) = (loads, load.is_part()) {
                queue.push(kernels.axpy(-load.missing(), loads, residual));
            }
            newton.restrict(residual, &own.residual, queue);
            queue.push(own.kernels.square_to(&own.residual, sum));
        })?;
        Ok(square.sqrt())
    }

    fn energy(&mut self) -> Result<Option<f64>, SolveError> {
        let (Self { newton, u, load, .. }, own) = (&*self, self.newton.own());
        let Some(energy) = &self.system.energy else {
            return Ok(None);
        };
        let of_all = self.number(|sum, queue| energy.add_to(u, sum, queue))?;
        let Some(loads) = own.loads.as_ref().filter(|_| load.is_part()) else {
            return Ok(Some(of_all));
        };
        let at = match &newton.owned {
            None => u,
            // the right-hand side is free between systems
            Some(owned) => &owned.right,
        };
        let work = self.number(|sum, queue| {
            newton.restrict(u, at, queue);
            queue.push(own.kernels.dot_to(loads, at, sum));
        })?;
        Ok(Some(of_all - load.missing() * work))
    }

    fn has_energy(&self) -> bool {
        self.system.energy.is_some()
    }

    fn linearise(&mut self) -> Result<(f64, f64, LinearReport), SolveError> {
        let Self { newton, communicator, system, u, load } = self;
        let Newton { device, options, solver, matrix, on_mesh, owned, .. } = &mut **newton;
        let NewtonSystem { tangent, constraints, .. } = system;
        let NewtonVectors { kernels, residual, right, update, .. } = &*on_mesh;
        let values = matrix.values();
        let before = communicator.seconds();
        let mut queue = Queue::new();
        tangent.assemble(&[u], values, &mut queue);
        communicator.perform(&queue)?;
        communicator.wait()?;
        let assembly_s = communicator.seconds() - before;
        device.copy(residual, right)?;
        let mut queue = Queue::new();
        queue.extend([kernels.scale(-1.0, right), constraints.measure_gap(u, load.gap())]);
        match options.lifts {
            true => queue.extend(constraints.lift(values, right)),
            false => queue.push(constraints.set_gap(right)),
        }
        queue.extend(constraints.eliminate(values));
        let own = owned.as_ref().unwrap_or(on_mesh);
        if let SystemMatrix::Part(rows) = &*matrix {
            queue.extend(rows.gather());
            queue.push(rows.halo.restrict(right, &own.right));
        }
        communicator.perform(&queue)?;
        let preconditioner_s = solver.prepare_over(*communicator, matrix.own(), Some(u))?;
        let linear = solver.solve_over(*communicator, matrix, &own.right, &own.update)?;
        if let SystemMatrix::Part(rows) = &*matrix {
            let halo = &rows.halo;
            // what other parts own of the update
            let mut queue = Queue::new();
            queue.push(halo.pack(&own.update));
            queue.start(halo.wire());
            queue.finish(halo.wire());
            queue.extend(halo.prolong(&own.update, update));
            communicator.perform(&queue)?;
        }
        Ok((assembly_s, preconditioner_s, linear))
    }

    fn update_norm(&mut self) -> Result<f64, SolveError> {
        let NewtonVectors { kernels, update, .. } = self.newton.own();
        Ok(self.number(|sum, queue| queue.push(kernels.square_to(update, sum)))?.sqrt())
    }

    fn slope(&mut self) -> Result<f64, SolveError> {
        let NewtonVectors { kernels, residual, update, .. } = self.newton.own();
        self.number(|sum, queue| queue.push(kernels.dot_to(residual, update, sum)))
    }

    fn advance(&mut self, length: f64) -> Result<(), SolveError> {
        let NewtonVectors { kernels, update, .. } = &self.newton.on_mesh;
        self.communicator.perform(&[kernels.axpy(length, update, self.u)].into_iter().collect())
    }

    fn set_load(&mut self, load: Load) {
        self.load = load;
    }

    fn keep_loads(&mut self) -> Result<(), SolveError> {
        let Newton { device, on_mesh, owned, .. } = &*self.newton;
        let keep = |of: &NewtonVectors<'_>| match &of.loads {
            Some(loads) => device.copy(&of.residual, loads),
            None => Ok(()),
        };
        Ok([Some(on_mesh), owned.as_ref()].into_iter().flatten().try_for_each(keep)?)
    }

    fn keep(&mut self) -> Result<(), SolveError> {
        let Newton { device, kept, .. } = &*self.newton;
        kept.as_ref().map_or(Ok(()), |kept| Ok(device.copy(self.u, kept)?))
    }

    fn take_back(&mut self) -> Result<(), SolveError> {
        let Newton { device, kept, .. } = &*self.newton;
        kept.as_ref().map_or(Ok(()), |kept| Ok(device.copy(kept, self.u)?))
    }
}
