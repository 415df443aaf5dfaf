//! A boundary value problem on a mesh, set up on one device or several and solved there.

mod division;
mod error;
mod numbered;
mod prescribed;

pub use error::BoundaryValueSetupError;

use crate::{
    Amg, Arrays, AssemblyStrategy, Communicator, Constraints, CsrOperator, DeviceForm, Exchange,
    FormPatterns, FormPrograms, HierarchySize, HierarchyTimes, LinearChoice, LinearSolver, MatrixAssembly,
    Newton, NewtonOptions, NewtonReport, NewtonStep, NewtonSystem, PartRows, PreconditionerKind,
    PrescribedValues, SolveError, SystemMatrix, SystemSize, Unknowns,
};
use division::Division;
use error::each_part;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;
use kingpost_fem::sparse::CsrPattern;
use kingpost_forms::form::{Form, FormError, Inputs};
use kingpost_forms::lowering::{
    LoweredKernel, LoweringOptions, MatrixResult, MeshForm, OwnerCells, RowOwners,
};
use kingpost_kernels::BoundaryValueProblem;
use kingpost_runtime::{Backend, Buffer, Device, Traffic, download_values, stage};
use kingpost_strategies::Mapping;
use kingpost_strategies::OwnedRows;
use numbered::Numbered;
use prescribed::{check_cells, prescribed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Work-items of a group that own rows: two sub-groups of a card.
const OWNERS: u64 = RowOwners::GROUP as u64;

/// Seconds of the parts of a setup.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SetupTimes {
    /// Lowering, transformations, compilers.
    pub compile_s: f64,
    /// Numbering, and the pattern with its lookup table.
    pub pattern_s: f64,
    /// Arrays to the device.
    pub arrays_s: f64,
}

impl SetupTimes {
    /// The longer ones of both.
    fn or(self, other: Self) -> Self {
        Self {
            compile_s: self.compile_s.max(other.compile_s),
            pattern_s: self.pattern_s.max(other.pattern_s),
            arrays_s: self.arrays_s.max(other.arrays_s),
        }
    }
}

/// The mappings to try for a kernel of cells of a dimension on a device, the best first.
pub type ChooseMappings<'m> = dyn Fn(&LoweredKernel, usize, &dyn Device) -> Vec<Mapping> + Sync + 'm;

/// What a system is of, and how it is assembled and solved.
#[derive(Clone, Copy)]
pub struct BoundaryValueSetup<'s> {
    /// The problem.
    pub problem: BoundaryValueProblem,
    /// The cells that it is on.
    pub mesh: &'s Mesh,
    /// Polynomial degree.
    pub degree: usize,
    /// How the matrix is assembled.
    pub assembly: AssemblyStrategy,
    /// How the system is solved.
    pub options: NewtonOptions,
    /// What its kernels are mapped by.
    pub mappings: &'s ChooseMappings<'s>,
}

/// A boundary value problem on a mesh with everything it needs on a device, or on several, among which
/// its unknowns are divided.
///
/// Of several parts, each assembles its rows from all cells that have an unknown of its own, so that nothing
/// is exchanged for that. Products and updates exchange ghosts, and sums go over all parts.
///
/// ```
/// use kingpost_kernels::BoundaryValueProblem;
/// use kingpost_fem::mesh::Mesh;
/// use kingpost_solve::{AssemblyStrategy, BoundaryValueSetup, BoundaryValueSystem, Exchange, NewtonOptions};
/// use kingpost_strategies::Mapping;
///
/// let mesh = Mesh::unit_square(16)?;
/// let setup = BoundaryValueSetup {
///     problem: BoundaryValueProblem::Poisson,
///     mesh: &mesh,
///     degree: 1,
///     assembly: AssemblyStrategy::LookupTable,
///     options: NewtonOptions { linear: true, ..NewtonOptions::default() },
///     mappings: &|_, _, _| vec![Mapping::single_cell()],
/// };
/// let devices = [kingpost_runtime::open("c")?, kingpost_runtime::open("c")?];
/// let [one, other] = [&*devices[0], &*devices[1]];
/// for devices in [&[one][..], &[one, other]] {
///     let exchange = Exchange::between(devices);
///     let mut system = BoundaryValueSystem::on(devices, exchange, &setup)?;
///     let before = one.traffic();
///     let report = system.solve(&mut |_, _| ())?;
///     assert!(report.converged());
///     // one device reads norms, and is told nothing
///     assert!(devices.len() > 1 || one.traffic().since(before).to_device == 0);
///     let largest = system.solution()?.into_iter().fold(0.0, f64::max);
///     assert!((largest - 0.0737).abs() < 1e-3); // of -Δu = 1 on the unit square
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BoundaryValueSystem<'d> {
    /// Unknowns.
    pub unknowns: usize,
    /// Unknowns with prescribed values.
    pub fixed: usize,
    /// Seconds of the setup, of several parts of that which took the longest.
    pub times: SetupTimes,
    /// What the setup copied.
    pub traffic: Traffic,
    numbering: Numbering,
    parts: Vec<Part<'d>>,
    communicators: Vec<Box<dyn Communicator + 'd>>,
}

/// A part of a system with everything it needs on its device.
struct Part<'d> {
    device: &'d dyn Device,
    mappings: Vec<String>,
    times: SetupTimes,
    /// The unknowns of the whole system that it owns, with those of its mesh that they are, if other
    /// parts own some, and how many of its mesh others own.
    owned: Option<(Vec<(usize, usize)>, usize)>,
    equations: NewtonSystem,
    newton: Newton<'d>,
    /// The unknown on its mesh, at ghosts as their owners have it.
    unknown: Buffer,
}

/// What all parts are made from.
struct Question<'q> {
    setup: &'q BoundaryValueSetup<'q>,
    numbering: &'q Numbering,
    /// Where the degrees of freedom are, if anything asks for that.
    points: Vec<f64>,
    values: &'q PrescribedValues,
    /// None of one part.
    division: Option<Division<'q>>,
    /// What the device of one part has.
    arrays: Mutex<Arrays<'q>>,
}

impl<'d> BoundaryValueSystem<'d> {
    /// Lowers and compiles residual and derivative, numbers the mesh, finds the pattern and what the
    /// assembly reads, and uploads all of it. The unknown starts at zero.
    ///
    /// # Errors
    /// Cells that the problem is not for; [`SolveError::Memory`] before anything is allocated; what
    /// the device refuses.
    pub fn new(
        device: &'d dyn Device,
        setup: &BoundaryValueSetup<'_>,
    ) -> Result<Self, BoundaryValueSetupError> {
        Self::on(&[device], Exchange::Host, setup)
    }

    /// The same on several devices: the unknowns are divided by where they are, and each part is set up
    /// on its device, all at once.
    ///
    /// # Errors
    /// As [`BoundaryValueSystem::new`]. Of several devices what [`LinearSolver::of_part`] refuses,
    /// the half of a matrix, fewer unknowns than devices.
    pub fn on(
        devices: &[&'d dyn Device],
        exchange: Exchange,
        setup: &BoundaryValueSetup<'_>,
    ) -> Result<Self, BoundaryValueSetupError> {
        let BoundaryValueSetup { problem, mesh, degree, assembly, options, .. } = *setup;
        check_cells(problem, mesh)?;
        let components = problem.space(mesh.shape(), degree).components();
        if devices.len() == 1 {
            let size = SystemSize::of(mesh, degree, components, assembly);
            size.with_solver(options.solver, components).check("the system", devices[0].info())?;
        } else {
            check_options(assembly, options)?;
        }
        let unknowns = Unknowns { components, points: Vec::new(), dim: mesh.shape().dim() };
        std::thread::scope(|scope| {
            let (kind, unknowns) = (options.solver.preconditioner, &unknowns);
            if kind.is_multilevel() {
                // what it refuses is refused again where a hierarchy needs it
                scope.spawn(move || Amg::prepare(devices[0], unknowns, kind.cycle_numbers()));
            }
            Self::set_up(devices, exchange, setup, unknowns)
        })
    }

    /// The same of what was checked.
    fn set_up(
        devices: &[&'d dyn Device],
        exchange: Exchange,
        setup: &BoundaryValueSetup<'_>,
        unknowns: &Unknowns,
    ) -> Result<Self, BoundaryValueSetupError> {
        let BoundaryValueSetup { problem, mesh, degree, assembly, options, .. } = *setup;
        let components = unknowns.components;
        let communicators = exchange.communicators(devices)?;
        let before = copied(devices);
        let start = Instant::now();
        let Numbered { numbering, sides, arrays } = Numbered::new(devices, mesh, degree, assembly)?;
        let values = prescribed(problem, mesh, &numbering, components, &sides);
        let has_energy = !problem.is_linear();
        let is_multilevel = options.solver.preconditioner.is_multilevel();
        let needs_points = devices.len() > 1 || (is_multilevel && unknowns.are_displacements());
        let points = if needs_points { numbering.dof_points(mesh) } else { Vec::new() };
        let division = match devices.len() {
            1 => None,
            parts => {
                stage("dividing the mesh");
                let sides = if has_energy { sides } else { Vec::new() };
                Some(Division::new(mesh, (&numbering, &points), (&values, components), parts, sides)?)
            }
        };
        let pattern_s = start.elapsed().as_secs_f64();
        let arrays = Mutex::new(arrays);
        let question = Question { setup, numbering: &numbering, points, values: &values, division, arrays };
        let of_part = |(part, device)| question.part(part, device);
        let parts = each_part(devices.iter().copied().enumerate(), of_part, of_part)?;
        let mut times = parts.iter().fold(SetupTimes::default(), |times, part| times.or(part.times));
        times.pattern_s += pattern_s;
        Ok(Self {
            unknowns: numbering.n_dofs() * components,
            fixed: values.unknowns.len(),
            times,
            traffic: copied(devices).since(before),
            parts,
            communicators,
            numbering,
        })
    }

    /// Says whether products with owned columns run while ghosts are under way, as they do at first.
    pub fn set_overlaps(&mut self, overlaps: bool) {
        self.parts.iter_mut().for_each(|part| part.newton.set_overlaps(overlaps));
    }

    /// Sets the unknown to zero, for another solve under other options, except for the choice of the solver.
    ///
    /// # Errors
    /// No memory, a failing driver.
    pub fn restart(&mut self, options: NewtonOptions) -> Result<(), BoundaryValueSetupError> {
        for part in &mut self.parts {
            part.newton.set_options(options)?;
            part.device.fill(&part.unknown, 0).map_err(SolveError::from)?;
        }
        Ok(())
    }

    /// Solves from what the unknown holds, each part but the first in a thread of its own; `progress` is
    /// told of each iteration. Seconds of several parts are by the wall clock.
    ///
    /// # Errors
    /// A failing driver. That it does not converge is in the report.
    pub fn solve(
        &mut self,
        progress: &mut dyn FnMut(usize, &NewtonStep),
    ) -> Result<NewtonReport, BoundaryValueSetupError> {
        type OfPart<'p, 'd> = (&'p mut Part<'d>, &'p mut Box<dyn Communicator + 'd>);
        let first = |(part, communicator): OfPart<'_, '_>| part.solve(&**communicator, progress);
        let others = |(part, communicator): OfPart<'_, '_>| part.solve(&**communicator, &mut |_, _| ());
        let parts = self.parts.iter_mut().zip(&mut self.communicators);
        // all parts have the same report, except for the time
        let mut reports = each_part(parts, first, others)?;
        Ok(reports.swap_remove(0))
    }

    /// The unknown, `[dofs, components]` row-major, copied from the devices.
    ///
    /// # Errors
    /// A failing driver.
    pub fn solution(&self) -> Result<Vec<f64>, BoundaryValueSetupError> {
        let mut all = vec![f64::NAN; self.unknowns];
        for part in &self.parts {
            let values: Vec<f64> = download_values(part.device, &part.unknown).map_err(SolveError::from)?;
            match &part.owned {
                None => all = values,
                Some((owned, _)) => owned.iter().for_each(|(unknown, place)| all[*unknown] = values[*place]),
            }
        }
        Ok(all)
    }

    /// The numbering of the degrees of freedom, each of which has all components.
    #[must_use]
    pub const fn numbering(&self) -> &Numbering {
        &self.numbering
    }

    /// How the kernels of residual and derivative are mapped on each device.
    pub fn mappings(&self) -> impl Iterator<Item = &[String]> {
        self.parts.iter().map(|part| &part.mappings[..])
    }

    /// What solves linear systems.
    #[must_use]
    pub fn solver(&self) -> LinearChoice {
        self.parts[0].newton.solver().choice()
    }

    /// What the hierarchy of the preconditioner consists of, if it has one.
    #[must_use]
    pub fn hierarchy(&self) -> Option<&HierarchySize> {
        self.parts[0].newton.solver().hierarchy()
    }

    /// How long hierarchies of its last matrix take, made again some `times`; none of several parts,
    /// or where no hierarchy preconditions.
    ///
    /// # Errors
    /// As [`LinearSolver::time_hierarchies`].
    pub fn time_hierarchies(&mut self, times: usize) -> Result<Option<HierarchyTimes>, SolveError> {
        self.parts[0].newton.time_hierarchies(times)
    }

    /// Stored entries of the matrix.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.parts.iter().map(|part| part.newton.matrix().n_entries()).sum()
    }

    /// The unknowns that each part owns, and its ghosts.
    #[must_use]
    pub fn parts(&self) -> Vec<[usize; 2]> {
        let of = |part: &Part<'_>| match &part.owned {
            None => [self.unknowns, 0],
            Some((owned, ghosts)) => [owned.len(), *ghosts],
        };
        self.parts.iter().map(of).collect()
    }

    /// Bytes that the parts send to each other in a product.
    #[must_use]
    pub fn halo_bytes(&self) -> u64 {
        let sent = |part: &Part<'_>| match part.newton.matrix() {
            SystemMatrix::Whole(_) => 0,
            SystemMatrix::Part(rows) => 8 * rows.halo.n_sent() as u64,
        };
        self.parts.iter().map(sent).sum()
    }

    /// What was copied between the host and all devices so far.
    #[must_use]
    pub fn copied(&self) -> Traffic {
        copied(&self.parts.iter().map(|part| part.device).collect::<Vec<_>>())
    }
}

impl Part<'_> {
    fn solve(
        &mut self,
        communicator: &dyn Communicator,
        progress: &mut dyn FnMut(usize, &NewtonStep),
    ) -> Result<NewtonReport, BoundaryValueSetupError> {
        Ok(self.newton.solve(communicator, &self.equations, &self.unknown, progress)?)
    }
}

/// A vector of zeros on a device.
fn zeros(device: &dyn Device, n: usize) -> Result<Buffer, SolveError> {
    let vector = device.allocate(8 * n as u64)?;
    device.fill(&vector, 0)?;
    Ok(vector)
}

/// What was copied between the host and some devices; those that are given twice count once.
fn copied(devices: &[&dyn Device]) -> Traffic {
    let mut all = Traffic::default();
    for (place, device) in devices.iter().enumerate() {
        if !devices[..place].iter().any(|other| std::ptr::addr_eq(*other, *device)) {
            let traffic = device.traffic();
            all.to_device += traffic.to_device;
            all.to_host += traffic.to_host;
        }
    }
    all
}

/// Refuses what several devices do not solve.
fn check_options(assembly: AssemblyStrategy, options: NewtonOptions) -> Result<(), BoundaryValueSetupError> {
    if assembly == AssemblyStrategy::SymmetricHalf {
        let what = format!("assembly {assembly}");
        return Err(BoundaryValueSetupError::Parts { what, needed: "rows that are whole; use lookup-table" });
    }
    options.solver.for_parts()?;
    Ok(())
}

impl Question<'_> {
    /// A part on its device: the matrix and the right-hand side of its mesh, of which it takes its rows.
    fn part<'d>(&self, part: usize, device: &'d dyn Device) -> Result<Part<'d>, BoundaryValueSetupError> {
        let Self { setup, division, .. } = self;
        let BoundaryValueSetup { problem, degree, assembly, options, .. } = setup;
        let of_part = division.as_ref().map(|all| (all, &all.meshes[part], &all.layouts[part]));
        let mesh = of_part.map_or(setup.mesh, |(_, of_part, _)| &of_part.mesh);
        let space = problem.space(mesh.shape(), *degree);
        let components = space.components();
        self.check_part(mesh, components, device)?;
        let mut times = SetupTimes::default();
        let start = Instant::now();
        stage("compiling kernels");
        let of = |part: &str| {
            LoweringOptions::new(format!("{problem}_{part}")).with_geometry_degree(mesh.geometry_degree())
        };
        let residual = self.programs(device, &problem.residual(&space), &of("residual"), mesh)?;
        let energy = match problem.is_linear() {
            true => None,
            false => Some(self.programs(device, &problem.energy(&space), &of("energy"), mesh)?),
        };
        times.compile_s = start.elapsed().as_secs_f64();

        let start = Instant::now();
        let lowered = |matrix| self.lowered(&problem.tangent(&space), &of("tangent").with_matrix(matrix));
        stage("finding the pattern of the matrix");
        let arrays = &mut self.take_arrays();
        let form = lowered(assembly.pattern())?;
        let assembly = assembly.decided(&form, &arrays.numbered(mesh))?;
        let patterns = self.patterns(device, (&form, assembly.matrix(0)), mesh, arrays)?;
        let [pattern, ..] = patterns.all().rows else {
            return Err(FormError::Bug("a bilinear form without a pattern".into()).into());
        };
        times.pattern_s = start.elapsed().as_secs_f64();

        let start = Instant::now();
        stage("compiling the kernels of the matrix");
        let matrix = assembly.matrix_of(&form, &arrays.numbered(mesh), pattern)?;
        let tangent = self.compiled(device, lowered(matrix)?, mesh)?;
        times.compile_s += start.elapsed().as_secs_f64();

        let start = Instant::now();
        stage("uploading arrays");
        let n = of_part.map_or(self.numbering.n_dofs(), |(_, of_part, _)| of_part.dofs.len()) * components;
        let inputs = Inputs::new().field("u", vec![0.0; n]).in_order(self.numbering.order());
        let of_tangent = inputs.of(tangent.form().form());
        let tangent_on_device =
            MatrixAssembly::new(device, &tangent, mesh, &of_tangent, patterns.all(), &["u"], arrays)?;
        let mut load = |programs: &FormPrograms| {
            let inputs = inputs.of(programs.form().form());
            DeviceForm::new(device, programs, mesh, &inputs, &[], &["u"], arrays)
        };
        let residual_on_device = load(&residual)?;
        let energy = match (energy, of_part) {
            (None, _) => None,
            (Some(energy), None) => Some(load(&energy)?.into()),
            (Some(energy), Some((all, ..))) => Some(all.energy(part, device, &energy)?),
        };
        let values = of_part.map(|(all, ..)| all.prescribed(part));
        stage("prescribing values");
        let equations = NewtonSystem {
            residual: residual_on_device,
            tangent: tangent_on_device,
            constraints: Constraints::of(device, &patterns, values.as_ref().unwrap_or(self.values))?,
            energy,
        };
        stage("preparing the solver");
        let (matrix, solver) = self.matrix_and_solver(device, (pattern, &patterns), part, components)?;
        Ok(Part {
            device,
            mappings: [residual, tangent]
                .iter()
                .flat_map(FormPrograms::mappings)
                .map(ToString::to_string)
                .collect(),
            owned: of_part.map(|(all, _, layout)| (all.owned(part), layout.ghosts.len())),
            equations,
            newton: Newton::new(device, matrix, *options, solver)?,
            unknown: zeros(device, n)?,
            times: SetupTimes { arrays_s: start.elapsed().as_secs_f64(), ..times },
        })
    }

    /// What the device has of the mesh of one part.
    fn take_arrays(&self) -> Arrays<'_> {
        match self.division {
            None => std::mem::take(&mut *self.arrays.lock().unwrap_or_else(PoisonError::into_inner)),
            Some(_) => Arrays::default(),
        }
    }

    /// The pattern of the matrix.
    fn patterns<'m>(
        &self,
        device: &dyn Device,
        (form, matrix): (&MeshForm, MatrixResult),
        mesh: &'m Mesh,
        arrays: &mut Arrays<'m>,
    ) -> Result<FormPatterns, SolveError> {
        let options = &self.setup.options;
        let mut patterns = FormPatterns::new(device, form, mesh, matrix, arrays)?;
        // the host divides rows, and lists the entries of blocks
        if self.division.is_some() || options.solver.preconditioner == PreconditionerKind::BlockJacobi {
            patterns.read_columns(device)?;
        }
        Ok(patterns)
    }

    /// Whether a part fits its device.
    fn check_part(&self, mesh: &Mesh, components: usize, device: &dyn Device) -> Result<(), SolveError> {
        let BoundaryValueSetup { degree, assembly, options, .. } = self.setup;
        if self.division.is_none() {
            return Ok(()); // the whole system does
        }
        let size = SystemSize::of(mesh, *degree, components, *assembly);
        let size = size.with_solver(options.solver, components);
        // the rows are kept with the matrix of the part's mesh while they are taken
        let device_bytes = size.device_bytes.saturating_add(20 * size.entries);
        SystemSize { device_bytes, ..size }.check("a part of the system", device.info())
    }

    /// The matrix, or the rows that a part owns, and what solves with it.
    fn matrix_and_solver<'d>(
        &self,
        device: &'d dyn Device,
        (pattern, patterns): (&CsrPattern, &FormPatterns),
        part: usize,
        components: usize,
    ) -> Result<(SystemMatrix, LinearSolver<'d>), BoundaryValueSetupError> {
        let (choice, systems) = (self.setup.options.solver, self.setup.options.systems);
        Ok(match &self.division {
            None => {
                let (points, dim) = (self.points.clone(), self.setup.mesh.shape().dim());
                let unknowns = Unknowns { components, points, dim };
                let matrix = match patterns.found() {
                    Some(found) => CsrOperator::of_found(device, found)?,
                    None => CsrOperator::new(device, pattern)?,
                };
                (
                    SystemMatrix::Whole(Box::new(matrix)),
                    LinearSolver::new(device, pattern, &unknowns, choice, systems)?,
                )
            }
            Some(division) => {
                let layout = &division.layouts[part];
                let rows = PartRows::new(device, pattern, layout)?;
                let points = division.points(part, &self.points, self.setup.mesh.shape().dim());
                let unknowns = Unknowns { components, points, dim: self.setup.mesh.shape().dim() };
                let solver = LinearSolver::of_part(device, (pattern, layout), &unknowns, choice, systems)?;
                (SystemMatrix::Part(Box::new(rows)), solver)
            }
        })
    }

    /// The kernels of a form.
    fn programs(
        &self,
        device: &dyn Device,
        form: &Form,
        options: &LoweringOptions,
        mesh: &Mesh,
    ) -> Result<FormPrograms, BoundaryValueSetupError> {
        self.compiled(device, self.lowered(form, options)?, mesh)
    }

    fn lowered(&self, form: &Form, options: &LoweringOptions) -> Result<MeshForm, FormError> {
        Ok(MeshForm::new(form, options)?.in_order(self.numbering.order()))
    }

    fn compiled(
        &self,
        device: &dyn Device,
        form: MeshForm,
        mesh: &Mesh,
    ) -> Result<FormPrograms, BoundaryValueSetupError> {
        let dim = mesh.shape().dim();
        let mappings = |lowered: &LoweredKernel| {
            // what owners of rows look up belongs in local memory
            let owned = match (lowered.matrix, device.info().backend) {
                // no other mapping takes several loops over owners
                (MatrixResult::OwnedRows(owners), backend)
                    if backend == Backend::Cuda || owners.cells != OwnerCells::Mapped || owners.packed =>
                {
                    Some(Mapping::from(OwnedRows { owners: OWNERS }))
                }
                (_, Backend::C | Backend::OpenCl | Backend::Cuda) => None,
            };
            owned.into_iter().chain((self.setup.mappings)(lowered, dim, device)).collect()
        };
        Ok(FormPrograms::compile(device, form, &mappings)?)
    }
}
