//! A boundary value problem on a mesh, set up on a device and solved there.

use crate::tuning::known::{Sought, for_device, trials, without_setup};
use purlin_autotune::DatabaseError;
use purlin_forms::Mapping;
use purlin_forms::form::{FormError, Inputs};
use purlin_forms::import::CsrPattern;
use purlin_forms::lowering::{LoweredKernel, LoweringOptions, MatrixResult, MeshForm};
use purlin_forms::mesh::Mesh;
use purlin_forms::numbering::{Numbering, NumberingError};
use purlin_forms::strategies::OwnedRows;
use purlin_kernels::{BoundaryValueProblem, Prescribed};
use purlin_runtime::{Backend, Buffer, Device, Traffic, buffer_of, download_values};
use purlin_solve::{
    Arrays, AssemblyStrategy, Constraints, CsrOperator, DeviceForm, FormPrograms, HierarchySize,
    LinearChoice, LinearSolver, MatrixAssembly, Newton, NewtonOptions, NewtonReport, NewtonStep,
    NewtonSystem, PrescribedValues, Side, SolveError, SystemSize, Unknowns, bounds, facet_dofs,
};
use std::time::Instant;

/// Work-items of a group that own rows: two sub-groups of a card.
const OWNERS: u64 = 64;

/// Why a boundary value problem cannot be set up or solved.
#[derive(Debug, thiserror::Error)]
pub enum BoundaryValueSetupError {
    /// The degrees of freedom cannot be numbered.
    #[error(transparent)]
    Numbering(#[from] NumberingError),
    /// The solver refuses.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The trials of `purlin tune` could not be read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A solver or an assembly that is not for several devices.
    #[error("{what} on several devices: needed {needed}")]
    Parts {
        /// What was asked for.
        what: String,
        /// What would do.
        needed: &'static str,
    },
    /// A problem that is not for such cells.
    #[error("`{problem}` on {found}: needed {needed}")]
    Cells {
        /// The problem.
        problem: BoundaryValueProblem,
        /// The cells of the mesh.
        found: String,
        /// What would do.
        needed: &'static str,
    },
}

impl From<FormError> for BoundaryValueSetupError {
    fn from(error: FormError) -> Self {
        Self::Solve(error.into())
    }
}

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

/// A boundary value problem on a mesh with everything it needs on a device.
///
/// ```
/// use purlin::kernels::BoundaryValueProblem;
/// use purlin::forms::mesh::Mesh;
/// use purlin::solve::{AssemblyStrategy, NewtonOptions};
/// use purlin::BoundaryValueSystem;
///
/// let device = purlin::runtime::open("c")?;
/// let mesh = Mesh::unit_square(16)?;
/// let options = NewtonOptions { linear: true, ..NewtonOptions::default() };
/// let mut system = BoundaryValueSystem::new(
///     &*device,
///     BoundaryValueProblem::Poisson,
///     &mesh,
///     1,
///     AssemblyStrategy::LookupTable,
///     options,
/// )?;
/// let before = device.traffic();
/// let report = system.solve(&mut |_, _| ())?;
/// assert!(report.converged());
/// assert_eq!(device.traffic().since(before).to_device, 0);
/// let largest = system.solution()?.into_iter().fold(0.0, f64::max);
/// assert!((largest - 0.0737).abs() < 1e-3); // of -Δu = 1 on the unit square
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BoundaryValueSystem<'d> {
    device: &'d dyn Device,
    /// About how large it is, from counts.
    pub size: SystemSize,
    /// Unknowns.
    pub unknowns: usize,
    /// Unknowns with prescribed values.
    pub fixed: usize,
    /// How the kernels of residual and derivative are mapped.
    pub mappings: Vec<String>,
    /// Seconds of the setup.
    pub times: SetupTimes,
    /// What the setup copied.
    pub traffic: Traffic,
    numbering: Numbering,
    residual: DeviceForm,
    tangent: MatrixAssembly,
    energy: Option<DeviceForm>,
    matrix: CsrOperator,
    constraints: Constraints,
    newton: Newton<'d>,
    unknown: Buffer,
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
        problem: BoundaryValueProblem,
        mesh: &Mesh,
        degree: usize,
        assembly: AssemblyStrategy,
        options: NewtonOptions,
    ) -> Result<Self, BoundaryValueSetupError> {
        check_cells(problem, mesh)?;
        let space = problem.space(mesh.shape(), degree);
        let components = space.components();
        let size = SystemSize::of(mesh, degree, components, assembly).with_solver(options.solver, components);
        size.check("the system", device.info())?;
        let before = device.traffic();
        let mut times = SetupTimes::default();
        let start = Instant::now();
        let of = |part: &str| {
            LoweringOptions::new(format!("{problem}_{part}")).with_geometry_degree(mesh.geometry_degree())
        };
        let residual = programs(device, &problem.residual(&space), &of("residual"), mesh)?;
        let energy = match problem.is_linear() {
            true => None,
            false => Some(programs(device, &problem.energy(&space), &of("energy"), mesh)?),
        };
        times.compile_s = start.elapsed().as_secs_f64();

        let start = Instant::now();
        let numbering = Numbering::new(mesh, degree)?;
        let unknowns = numbering.n_dofs() * components;
        let lowered = |matrix| MeshForm::new(&problem.tangent(&space), &of("tangent").with_matrix(matrix));
        let patterns = lowered(assembly.pattern())?.patterns(mesh)?;
        times.pattern_s = start.elapsed().as_secs_f64();

        let start = Instant::now();
        let longest = patterns.iter().map(CsrPattern::longest_row).max().unwrap_or(0);
        let tangent = compiled(device, lowered(assembly.matrix(longest))?, mesh)?;
        times.compile_s += start.elapsed().as_secs_f64();

        let start = Instant::now();
        let inputs = Inputs::new().field("u", vec![0.0; unknowns]);
        let mut arrays = Arrays::default();
        let of_tangent = inputs.of(tangent.form().form());
        let on_tangent =
            MatrixAssembly::new(device, &tangent, mesh, &of_tangent, &patterns, &["u"], &mut arrays)?;
        let mut load = |programs: &FormPrograms| {
            let inputs = inputs.of(programs.form().form());
            DeviceForm::new(device, programs, mesh, &inputs, &[], &["u"], &mut arrays)
        };
        let on_residual = load(&residual)?;
        let on_energy = energy.as_ref().map(load).transpose()?;
        let values = prescribed(problem, mesh, &numbering, components);
        let [pattern, ..] = &patterns[..] else {
            return Err(FormError::Bug("a bilinear form without a pattern".into()).into());
        };
        let dim = mesh.shape().dim();
        let unknowns_of = Unknowns { components, points: numbering.dof_points(mesh), dim };
        let solver = LinearSolver::new(device, pattern, &unknowns_of, options.solver, options.systems)?;
        let system = Self {
            device,
            size,
            unknowns,
            fixed: values.unknowns.len(),
            mappings: [&residual, &tangent]
                .iter()
                .flat_map(|p| p.mappings())
                .map(ToString::to_string)
                .collect(),
            matrix: CsrOperator::new(device, pattern)?,
            constraints: Constraints::new(device, pattern, &values)?,
            newton: Newton::new(device, unknowns, options, solver)?,
            unknown: buffer_of(device, &vec![0.0; unknowns]).map_err(SolveError::from)?,
            numbering,
            residual: on_residual,
            tangent: on_tangent,
            energy: on_energy,
            times: SetupTimes { arrays_s: start.elapsed().as_secs_f64(), ..times },
            traffic: device.traffic().since(before),
        };
        Ok(system)
    }

    /// Sets the unknown to zero, for another solve under other options, but for the choice of the solver.
    ///
    /// # Errors
    /// No memory, a failing driver.
    pub fn restart(&mut self, options: NewtonOptions) -> Result<(), BoundaryValueSetupError> {
        self.newton.set_options(options)?;
        Ok(self.device.fill(&self.unknown, 0).map_err(SolveError::from)?)
    }

    /// Solves from what the unknown holds; `progress` is told of each iteration.
    ///
    /// # Errors
    /// A failing driver. That it does not converge is in the report.
    pub fn solve(
        &mut self,
        progress: &mut dyn FnMut(usize, &NewtonStep),
    ) -> Result<NewtonReport, BoundaryValueSetupError> {
        let system = NewtonSystem {
            residual: &self.residual,
            tangent: &self.tangent,
            matrix: &self.matrix,
            constraints: &self.constraints,
            energy: self.energy.as_ref(),
        };
        Ok(self.newton.solve(&system, &self.unknown, progress)?)
    }

    /// The unknown, `[dofs, components]` row-major, copied from the device.
    ///
    /// # Errors
    /// A failing driver.
    pub fn solution(&self) -> Result<Vec<f64>, BoundaryValueSetupError> {
        Ok(download_values(self.device, &self.unknown).map_err(SolveError::from)?)
    }

    /// The numbering of the degrees of freedom, each of which has all components.
    #[must_use]
    pub const fn numbering(&self) -> &Numbering {
        &self.numbering
    }

    /// What solves linear systems.
    #[must_use]
    pub const fn solver(&self) -> LinearChoice {
        self.newton.solver().choice()
    }

    /// What the hierarchy of the preconditioner consists of, if it has one.
    #[must_use]
    pub fn hierarchy(&self) -> Option<&HierarchySize> {
        self.newton.solver().hierarchy()
    }

    /// Stored entries of the matrix.
    #[must_use]
    pub const fn entries(&self) -> usize {
        self.matrix.n_entries()
    }
}

pub(crate) fn check_cells(problem: BoundaryValueProblem, mesh: &Mesh) -> Result<(), BoundaryValueSetupError> {
    let refuse = |needed| {
        Err(BoundaryValueSetupError::Cells {
            problem,
            found: format!("cells of the shape `{}`", mesh.shape()),
            needed,
        })
    };
    let dim = mesh.shape().dim();
    if !mesh.shape().is_simplex() {
        return refuse("triangles or tetrahedra");
    }
    match problem {
        BoundaryValueProblem::Hyperelasticity | BoundaryValueProblem::Twist if dim != 3 => {
            refuse("tetrahedra")
        }
        BoundaryValueProblem::Poisson
        | BoundaryValueProblem::Hyperelasticity
        | BoundaryValueProblem::Twist => Ok(()),
    }
}

/// The kernels of a form, by the best mappings that are known.
pub(crate) fn programs(
    device: &dyn Device,
    form: &purlin_forms::form::Form,
    options: &LoweringOptions,
    mesh: &Mesh,
) -> Result<FormPrograms, BoundaryValueSetupError> {
    compiled(device, MeshForm::new(form, options)?, mesh)
}

pub(crate) fn compiled(
    device: &dyn Device,
    form: MeshForm,
    mesh: &Mesh,
) -> Result<FormPrograms, BoundaryValueSetupError> {
    let (trials, dim) = (trials(None)?, mesh.shape().dim());
    let mappings = |lowered: &LoweredKernel| {
        let known = for_device(lowered, Sought { case: None, dim }, device, &trials);
        // what owners of rows look up belongs in local memory
        let owned = match (lowered.matrix, device.info().backend) {
            (MatrixResult::OwnedRows { .. }, Backend::Cuda) => {
                Some(Mapping::from(OwnedRows { owners: OWNERS }))
            }
            (_, Backend::C | Backend::OpenCl | Backend::Cuda) => None,
        };
        owned.into_iter().chain(without_setup(known).into_iter().map(|known| known.mapping)).collect()
    };
    Ok(FormPrograms::compile(device, form, &mappings)?)
}

/// The unknowns with prescribed values.
pub(crate) fn prescribed(
    problem: BoundaryValueProblem,
    mesh: &Mesh,
    numbering: &Numbering,
    components: usize,
) -> PrescribedValues {
    let (dim, bounds) = (mesh.shape().dim(), bounds(mesh));
    let points = numbering.dof_points(mesh);
    let mut all = PrescribedValues::default();
    for part in problem.prescribed() {
        let on_part = |point: &[f64]| match part {
            Prescribed::Everywhere => true,
            Prescribed::Near => Side { axis: 0, high: false }.holds(point, &bounds),
            Prescribed::Far => Side { axis: 0, high: true }.holds(point, &bounds),
        };
        let dofs = facet_dofs(mesh, numbering, &on_part);
        let at = |dof: i32| &points[dof as usize * dim..(dof as usize + 1) * dim];
        let middle = |axis: usize| {
            let along = dofs.iter().map(|dof| at(*dof)[axis]);
            let (low, high) =
                along.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
            (low + high) / 2.0
        };
        let center: Vec<f64> = (0..dim).map(middle).collect();
        for dof in &dofs {
            for (component, value) in problem.value(*part, at(*dof), &center).into_iter().enumerate() {
                all.unknowns.push(dof * components as i32 + component as i32);
                all.values.push(value);
            }
        }
    }
    all
}
