//! A boundary value problem on several devices, each of which owns a part of the unknowns.

use crate::BoundaryValueSetupError;
use crate::boundary_value::{check_cells, compiled, prescribed, programs};
use purlin_forms::form::{FormError, Inputs};
use purlin_forms::import::CsrPattern;
use purlin_forms::lowering::{LoweredKernel, LoweredRole, LoweringOptions, MatrixResult, MeshForm};
use purlin_forms::mesh::{FacetSide, Mesh};
use purlin_forms::numbering::Numbering;
use purlin_forms::tabulated::IntegralType;
use purlin_interp::{Memory, Value};
use purlin_kernels::BoundaryValueProblem;
use purlin_runtime::{Backend, Buffer, Device, Traffic, buffer_of, download_values};
use purlin_solve::{
    Arrays, AssemblyStrategy, Communicator, Constraints, DeviceForm, FormPrograms, HostCommunicator,
    LinearMethod, MatrixAssembly, NcclCommunicator, NewtonOptions, NewtonReport, NewtonStep, PartEnergy,
    PartEquations, PartLayout, PartMesh, PartNewton, Partition, PreconditionerKind, PrescribedValues,
    SolveError, SystemSize, layouts,
};
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

/// How the devices of a system exchange numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// From card to card by NCCL.
    Nccl,
    /// Through the memory of the host.
    Host,
}

/// A name that no exchange has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no exchange `{0}`; use nccl or host")]
pub struct UnknownExchange(String);

impl Exchange {
    /// What suits these devices: NCCL between different cards.
    #[must_use]
    pub fn between(devices: &[&dyn Device]) -> Self {
        let mut indices: Vec<usize> = devices.iter().map(|device| device.info().index).collect();
        indices.sort_unstable();
        indices.dedup();
        let are_cards = devices.iter().all(|device| device.info().backend == Backend::Cuda);
        match are_cards && indices.len() == devices.len() && devices.len() > 1 {
            true => Self::Nccl,
            false => Self::Host,
        }
    }

    /// The communicators of some devices, in their order.
    ///
    /// # Errors
    /// As [`NcclCommunicator::of_devices`].
    pub fn communicators<'d>(
        self,
        devices: &[&'d dyn Device],
    ) -> Result<Vec<Box<dyn Communicator + 'd>>, SolveError> {
        fn boxed<'d, C: Communicator + 'd>(all: Vec<C>) -> Vec<Box<dyn Communicator + 'd>> {
            all.into_iter().map(|one| Box::new(one) as Box<dyn Communicator + 'd>).collect()
        }
        Ok(match self {
            Self::Nccl => boxed(NcclCommunicator::of_devices(devices)?),
            Self::Host => boxed(HostCommunicator::of_devices(devices)),
        })
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nccl => "nccl",
            Self::Host => "host",
        })
    }
}

impl FromStr for Exchange {
    type Err = UnknownExchange;

    fn from_str(name: &str) -> Result<Self, UnknownExchange> {
        let found = [Self::Nccl, Self::Host].into_iter().find(|one| one.to_string() == name);
        found.ok_or_else(|| UnknownExchange(name.into()))
    }
}

/// A part of a system with everything it needs on its device.
struct Part<'d> {
    device: &'d dyn Device,
    mappings: Vec<String>,
    /// The unknowns of the whole system that it owns, and which those of its mesh are.
    owned: Vec<usize>,
    on_mesh: Vec<i32>,
    n_ghosts: usize,
    newton: PartNewton<'d>,
    /// The unknown on its mesh, at ghosts as their owners have it.
    unknown: Buffer,
}

/// What a solve did.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionedReport {
    /// The iterations, which all parts did together; seconds by the wall clock.
    pub newton: NewtonReport,
    /// What was copied between the host and all devices.
    pub traffic: Traffic,
}

/// A boundary value problem whose unknowns are divided among devices.
///
/// Each part assembles its rows from all cells that have an unknown of its own, so that nothing is
/// exchanged for that. Products and updates exchange ghosts, and sums go over all parts
/// ([`PartNewton::solve`]).
///
/// ```
/// use purlin::kernels::BoundaryValueProblem;
/// use purlin::forms::mesh::Mesh;
/// use purlin::solve::{AssemblyStrategy, NewtonOptions};
/// use purlin::{Exchange, PartitionedSystem};
///
/// let devices = [purlin::runtime::open("c")?, purlin::runtime::open("c")?];
/// let devices = [&*devices[0], &*devices[1]];
/// let mesh = Mesh::unit_square(16)?;
/// let options = NewtonOptions { linear: true, ..NewtonOptions::default() };
/// let mut system = PartitionedSystem::new(
///     &devices,
///     BoundaryValueProblem::Poisson,
///     &mesh,
///     1,
///     AssemblyStrategy::LookupTable,
///     options,
///     Exchange::between(&devices),
/// )?;
/// assert!(system.solve(&mut |_, _| ())?.newton.converged());
/// let largest = system.solution()?.into_iter().fold(0.0, f64::max);
/// assert!((largest - 0.0737).abs() < 1e-3); // of -Δu = 1 on the unit square
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PartitionedSystem<'d> {
    /// Unknowns.
    pub unknowns: usize,
    /// Unknowns with prescribed values.
    pub fixed: usize,
    /// Wall time of the setup, in seconds.
    pub setup_s: f64,
    /// Whether products with owned columns run while ghosts are under way.
    pub overlaps: bool,
    numbering: Numbering,
    parts: Vec<Part<'d>>,
    communicators: Vec<Box<dyn Communicator + 'd>>,
}

/// What all parts are made from.
struct Question<'q> {
    problem: BoundaryValueProblem,
    degree: usize,
    assembly: AssemblyStrategy,
    options: NewtonOptions,
    /// The prescribed value of each unknown of the whole system, if it has one.
    prescribed: &'q [Option<f64>],
    by_jacobi: bool,
    /// The facets of the mesh's boundary, ascending, if an energy is integrated.
    boundary: &'q [FacetSide],
    mesh: &'q Mesh,
    numbering: &'q Numbering,
    partition: &'q Partition,
}

impl<'d> PartitionedSystem<'d> {
    /// Divides the unknowns by where they are, and sets each part up on its device, all at once. The
    /// unknown starts at zero.
    ///
    /// # Errors
    /// A solver other than conjugate gradients with Jacobi's preconditioner or none, the half of a matrix,
    /// fewer unknowns than devices; as [`crate::BoundaryValueSystem::new`].
    pub fn new(
        devices: &[&'d dyn Device],
        problem: BoundaryValueProblem,
        mesh: &Mesh,
        degree: usize,
        assembly: AssemblyStrategy,
        options: NewtonOptions,
        exchange: Exchange,
    ) -> Result<Self, BoundaryValueSetupError> {
        check_cells(problem, mesh)?;
        let by_jacobi = check_options(assembly, options)?;
        let communicators = exchange.communicators(devices)?;
        let start = Instant::now();
        let components = problem.space(mesh.shape(), degree).components();
        let numbering = Numbering::new(mesh, degree)?;
        let dim = mesh.shape().dim();
        let partition = Partition::bisect(&numbering.dof_points(mesh), dim, devices.len())?;
        let values = prescribed(problem, mesh, &numbering, components);
        let mut all = vec![None; numbering.n_dofs() * components];
        for (unknown, value) in values.unknowns.iter().zip(&values.values) {
            all[*unknown as usize] = Some(*value);
        }
        let meshes = each(devices, |part, _| PartMesh::new(mesh, &numbering, &partition, part))?;
        let layouts = layouts(&partition, &meshes, components);
        let boundary = if problem.is_linear() { Vec::new() } else { mesh.boundary() };
        let question = Question {
            problem,
            degree,
            assembly,
            options,
            prescribed: &all,
            by_jacobi,
            boundary: &boundary,
            mesh,
            numbering: &numbering,
            partition: &partition,
        };
        let parts = each(devices, |part, device| {
            question.part(part, device, &meshes[part], &layouts[part], components)
        })?;
        Ok(Self {
            unknowns: all.len(),
            fixed: values.unknowns.len(),
            setup_s: start.elapsed().as_secs_f64(),
            overlaps: true,
            numbering,
            parts,
            communicators,
        })
    }

    /// Sets the unknown to zero, for another solve.
    ///
    /// # Errors
    /// A failing driver.
    pub fn restart(&mut self) -> Result<(), BoundaryValueSetupError> {
        for part in &self.parts {
            part.device.fill(&part.unknown, 0).map_err(SolveError::from)?;
        }
        Ok(())
    }

    /// Solves from what the unknown holds, each part in a thread of its own; `progress` is told of each
    /// iteration.
    ///
    /// # Errors
    /// A failing driver. That it does not converge is in the report.
    pub fn solve(
        &mut self,
        progress: &mut dyn FnMut(usize, &NewtonStep),
    ) -> Result<PartitionedReport, BoundaryValueSetupError> {
        let before = self.traffic();
        for part in &mut self.parts {
            part.newton.overlaps = self.overlaps;
        }
        let mut parts = self.parts.iter_mut().zip(&mut self.communicators);
        let results: Vec<Result<NewtonReport, SolveError>> = std::thread::scope(|scope| {
            let first = parts.next();
            let threads: Vec<_> = parts
                .map(|(part, communicator)| scope.spawn(move || part.solve(&**communicator, &mut |_, _| ())))
                .collect();
            // the caller's thread is that of the first part, and tells of its iterations
            let first = first.map(|(part, communicator)| part.solve(&**communicator, progress));
            let others = threads.into_iter().enumerate().map(|(k, thread)| joined(k + 1, thread));
            first.into_iter().chain(others).collect()
        });
        let newton = first_of(results)?;
        let traffic = self.traffic().since(before);
        Ok(PartitionedReport { newton, traffic })
    }

    /// The unknown, `[dofs, components]` row-major, copied from the devices.
    ///
    /// # Errors
    /// A failing driver.
    pub fn solution(&self) -> Result<Vec<f64>, BoundaryValueSetupError> {
        let mut all = vec![f64::NAN; self.unknowns];
        for part in &self.parts {
            let values: Vec<f64> = download_values(part.device, &part.unknown).map_err(SolveError::from)?;
            for (unknown, place) in part.owned.iter().zip(&part.on_mesh) {
                all[*unknown] = values[*place as usize];
            }
        }
        Ok(all)
    }

    /// The numbering of the degrees of freedom, each of which has all components.
    #[must_use]
    pub const fn numbering(&self) -> &Numbering {
        &self.numbering
    }

    /// Stored entries of the matrix.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.parts.iter().map(|part| part.newton.matrix().n_entries()).sum()
    }

    /// The unknowns that each part owns, and its ghosts.
    #[must_use]
    pub fn parts(&self) -> Vec<[usize; 2]> {
        self.parts.iter().map(|part| [part.owned.len(), part.n_ghosts]).collect()
    }

    /// Bytes that the parts send to each other in a product.
    #[must_use]
    pub fn halo_bytes(&self) -> u64 {
        self.parts.iter().map(|part| 8 * part.newton.halo().n_sent() as u64).sum()
    }

    /// How the kernels of residual and derivative are mapped on each device.
    pub fn mappings(&self) -> impl Iterator<Item = &[String]> {
        self.parts.iter().map(|part| &part.mappings[..])
    }

    fn traffic(&self) -> Traffic {
        // devices that are given twice count once
        let mut all = Traffic::default();
        for (place, part) in self.parts.iter().enumerate() {
            let same = |other: &Part<'_>| std::ptr::addr_eq(other.device, part.device);
            if !self.parts[..place].iter().any(same) {
                let traffic = part.device.traffic();
                all.to_device += traffic.to_device;
                all.to_host += traffic.to_host;
            }
        }
        all
    }
}

/// Whether Jacobi preconditions; refuses what several devices do not solve.
fn check_options(
    assembly: AssemblyStrategy,
    options: NewtonOptions,
) -> Result<bool, BoundaryValueSetupError> {
    if assembly == AssemblyStrategy::SymmetricHalf {
        let what = format!("assembly {assembly}");
        return Err(BoundaryValueSetupError::Parts { what, needed: "rows that are whole; use lookup-table" });
    }
    match (options.solver.method, options.solver.preconditioner) {
        (LinearMethod::ConjugateGradients, PreconditionerKind::Jacobi) => Ok(true),
        (LinearMethod::ConjugateGradients, PreconditionerKind::None) => Ok(false),
        (
            LinearMethod::ConjugateGradients
            | LinearMethod::Gmres
            | LinearMethod::BiCgStab
            | LinearMethod::Chebyshev,
            _,
        ) => Err(BoundaryValueSetupError::Parts {
            what: options.solver.to_string(),
            needed: "conjugate gradients and at most Jacobi's preconditioner",
        }),
    }
}

/// What a thread of a part returns; a panic goes on.
fn joined<T>(
    part: usize,
    thread: std::thread::ScopedJoinHandle<'_, Result<T, SolveError>>,
) -> Result<T, SolveError> {
    thread.join().unwrap_or(Err(SolveError::PartEnded { part }))
}

/// The first of all results; of errors the first that has a cause of its own.
fn first_of<T>(results: Vec<Result<T, SolveError>>) -> Result<T, SolveError> {
    let (mut first, mut ended) = (None, None);
    for (part, result) in results.into_iter().enumerate() {
        match result {
            Ok(value) if part == 0 => first = Some(value),
            Ok(_) => {}
            Err(error @ SolveError::PartEnded { .. }) => ended = Some(error),
            Err(error) => return Err(error),
        }
    }
    match (ended, first) {
        (None, Some(first)) => Ok(first),
        (ended, _) => Err(ended.unwrap_or(SolveError::PartEnded { part: 0 })),
    }
}

/// Does something for each device in a thread of its own.
fn each<'d, T: Send, E: Send + From<SolveError>>(
    devices: &[&'d dyn Device],
    work: impl Fn(usize, &'d dyn Device) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = devices
            .iter()
            .enumerate()
            .map(|(part, device)| scope.spawn(move || work(part, *device)))
            .collect();
        let joined = threads.into_iter().enumerate();
        joined
            .map(|(part, thread)| thread.join().unwrap_or(Err(SolveError::PartEnded { part }.into())))
            .collect()
    })
}

impl Question<'_> {
    /// A part on its device: the matrix and the right-hand side of its mesh, of which it takes its rows.
    fn part<'d>(
        &self,
        part: usize,
        device: &'d dyn Device,
        of_part: &PartMesh,
        layout: &PartLayout,
        components: usize,
    ) -> Result<Part<'d>, BoundaryValueSetupError> {
        let Self { problem, degree, assembly, options, prescribed, .. } = self;
        let mesh = &of_part.mesh;
        let space = problem.space(mesh.shape(), *degree);
        let size =
            SystemSize::of(mesh, *degree, components, *assembly).with_solver(options.solver, components);
        // the rows are kept beside the matrix of the part's mesh while they are taken
        let device_bytes = size.device_bytes.saturating_add(20 * size.entries);
        SystemSize { device_bytes, ..size }.check("a part of the system", device.info())?;
        let of = |part: &str| {
            LoweringOptions::new(format!("{problem}_{part}")).with_geometry_degree(mesh.geometry_degree())
        };
        let residual = programs(device, &problem.residual(&space), &of("residual"), mesh)?;
        let lowered = |matrix| MeshForm::new(&problem.tangent(&space), &of("tangent").with_matrix(matrix));
        let patterns = lowered(MatrixResult::Sparse)?.patterns(mesh)?;
        let [pattern, ..] = &patterns[..] else {
            return Err(FormError::Bug("a bilinear form without a pattern".into()).into());
        };
        let tangent = compiled(device, lowered(assembly.matrix(CsrPattern::longest_row(pattern)))?, mesh)?;
        let n = of_part.dofs.len() * components;
        let inputs = Inputs::new().field("u", vec![0.0; n]);
        let arrays = &mut Arrays::default();
        let mut load = |programs: &FormPrograms| {
            let inputs = inputs.of(programs.form().form());
            DeviceForm::new(device, programs, mesh, &inputs, &[], &["u"], arrays)
        };
        let equations = PartEquations {
            residual: load(&residual)?,
            energy: match problem.is_linear() {
                true => None,
                false => {
                    let energy = programs(device, &problem.energy(&space), &of("energy"), mesh)?;
                    Some(self.energy(part, device, of_part, components, &energy)?)
                }
            },
            constraints: Constraints::new(device, pattern, &on_mesh(of_part, prescribed, components))?,
            tangent: {
                let inputs = inputs.of(tangent.form().form());
                MatrixAssembly::new(device, &tangent, mesh, &inputs, &patterns, &["u"], arrays)?
            },
        };
        let mut mappings: Vec<String> =
            [&residual, &tangent].iter().flat_map(|p| p.mappings()).map(ToString::to_string).collect();
        mappings.dedup();
        Ok(Part {
            device,
            mappings,
            owned: owned(of_part, layout, components),
            on_mesh: layout.owned.clone(),
            n_ghosts: layout.ghosts.len(),
            newton: PartNewton::new(device, pattern, layout, equations, *options, self.by_jacobi)?,
            unknown: buffer_of(device, &vec![0.0; n]).map_err(SolveError::from)?,
        })
    }

    /// The energy of the cells whose first degree of freedom a part owns: each cell counts once.
    fn energy(
        &self,
        part: usize,
        device: &dyn Device,
        of_part: &PartMesh,
        components: usize,
        programs: &FormPrograms,
    ) -> Result<PartEnergy, BoundaryValueSetupError> {
        let first = |cell: &usize| self.numbering.cell(*cell).first().map(|dof| self.partition.owner(*dof));
        let own: Vec<usize> =
            of_part.cells.iter().copied().filter(|cell| first(cell) == Some(part)).collect();
        if own.is_empty() {
            return Ok(PartEnergy::new(device, DeviceForm::default(), &[], of_part, components)?);
        }
        let cells = PartMesh::of_cells(self.mesh, self.numbering, own)?;
        let inputs = Inputs::new().field("u", vec![0.0; cells.dofs.len() * components]);
        let (inputs, arrays) = (inputs.of(programs.form().form()), &mut Arrays::default());
        let mut form = DeviceForm::default();
        for (place, executable) in programs.executables().enumerate() {
            let mut memory = programs.form().bind_to(place, &cells.mesh, &inputs, &[])?;
            let kernel = &programs.form().kernels()[place];
            if kernel.over == IntegralType::ExteriorFacet {
                let kept = self.on_boundary(kernel, &memory, &cells);
                if kept.is_empty() {
                    continue;
                }
                memory = kernel.on_entities(&memory, &kept);
            }
            let given = (programs.form().output(place), &["u"][..]);
            form.add_kernel(device, executable, &memory, given, None, arrays)?;
        }
        Ok(PartEnergy::new(device, form, &cells.dofs, of_part, components)?)
    }

    /// Which of a kernel's facets are on the boundary of the whole mesh; the others are where cells of other
    /// parts were cut off.
    fn on_boundary(&self, kernel: &LoweredKernel, memory: &Memory, cells: &PartMesh) -> Vec<u32> {
        let list = |role: LoweredRole| {
            let argument = kernel.arguments.iter().find(|argument| argument.role == role);
            match argument.and_then(|argument| memory.get(&argument.name)) {
                Some(Value::I32(list)) => &list[..],
                Some(Value::F64(_) | Value::F32(_) | Value::I16(_) | Value::I64(_)) | None => &[],
            }
        };
        let sides = list(LoweredRole::EntityCells).iter().zip(list(LoweredRole::LocalFacets));
        let whole = sides
            .map(|(cell, facet)| FacetSide { cell: cells.cells[*cell as usize] as u32, facet: *facet as u8 });
        let kept = whole.zip(0..).filter(|(side, _)| self.boundary.binary_search(side).is_ok());
        kept.map(|(_, place)| place).collect()
    }
}

/// The prescribed values on the mesh of a part.
fn on_mesh(of_part: &PartMesh, prescribed: &[Option<f64>], components: usize) -> PrescribedValues {
    let mut values = PrescribedValues::default();
    for (place, dof) in of_part.dofs.iter().enumerate() {
        for component in 0..components {
            if let Some(value) = prescribed[*dof as usize * components + component] {
                values.unknowns.push((place * components + component) as i32);
                values.values.push(value);
            }
        }
    }
    values
}

/// The unknowns of the whole system that a part owns, in its order.
fn owned(of_part: &PartMesh, layout: &PartLayout, components: usize) -> Vec<usize> {
    let whole = |unknown: &i32| {
        let (place, component) = (*unknown as usize / components, *unknown as usize % components);
        of_part.dofs[place] as usize * components + component
    };
    layout.owned.iter().map(whole).collect()
}

impl Part<'_> {
    fn solve(
        &mut self,
        communicator: &dyn Communicator,
        progress: &mut dyn FnMut(usize, &NewtonStep),
    ) -> Result<NewtonReport, SolveError> {
        self.newton.solve(communicator, &self.unknown, progress)
    }
}
