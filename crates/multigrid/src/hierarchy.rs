//! The levels of a mesh on a device.

use crate::arguments::taken;
use crate::kernels::{Blocks, Operation, Variant};
use crate::level::{At, Level, levels};
use crate::line::Line;
use crate::matrix::Matrix;
use crate::mesh::DeformedMesh;
use crate::on_mesh::{MeshArrays, upload};
use crate::options::{HierarchyOptions, Relaxation, launched};
use crate::schedules::{Structure, program};
use crate::slabs::{Neighbours, Slab};
use crate::texts::{Vectors, narrow_and_widen};
use crate::{Element, MultigridError, Precision};
use kingpost_codegen::Program;
use kingpost_runtime::{Arg, Buffer, Device, Executable, RuntimeError, download_values, upload_values};
use kingpost_solve::{Call, Queue, run};

/// Matrices of the reference element on the device.
pub(crate) struct Matrices {
    pub(crate) mass: Buffer,
    pub(crate) stiffness: Buffer,
    pub(crate) cell_mass: Buffer,
    pub(crate) cell_stiffness: Buffer,
    pub(crate) eigenvectors: Buffer,
    pub(crate) eigenvalues: Buffer,
    pub(crate) prolongation: Buffer,
    /// What takes nodes to eigenvectors, blending functions, their products with the stiffness
    /// matrix, and inverses of sums of eigenvalues, where the smoother takes them.
    pub(crate) blending: Option<[Buffer; 4]>,
    /// Of a patch of the first length, where the smoother takes it.
    pub(crate) inverse: Option<Buffer>,
}

/// Nested meshes of the unit square or cube on a device, from two cells a side to the finest one,
/// with the kernels of their levels.
pub struct Hierarchy<'d> {
    device: &'d dyn Device,
    element: Element,
    precision: Precision,
    relaxation: Relaxation,
    steps: [u32; 2],
    line: Line,
    pub(crate) matrices: Matrices,
    /// What is launched for a colour, in sequence.
    pub(crate) smooth: Vec<(Blocks, Executable)>,
    /// What solves on the coarsest level, if the smoother does not.
    pub(crate) coarse: Vec<(Blocks, Executable)>,
    residual: Executable,
    prolongate: Executable,
    restrict: Executable,
    vectors: Vectors,
    /// From double precision and to it, where the vectors are others.
    narrow_and_widen: Option<[Executable; 2]>,
    pub(crate) levels: Vec<Level>,
    /// What the other parts of a mesh in slabs are to this one.
    pub(crate) neighbours: Option<Neighbours>,
}

/// The kernels of a hierarchy between its levels, with the smoother of a colour and, if it is another, that
/// of the coarsest level.
pub(crate) struct LevelKernels {
    pub(crate) smooth: Vec<(Blocks, Executable)>,
    pub(crate) coarse: Vec<(Blocks, Executable)>,
    pub(crate) residual: Executable,
    pub(crate) prolongate: Executable,
    pub(crate) restrict: Executable,
}

impl<'d> Hierarchy<'d> {
    /// Compiles the kernels and allocates the vectors of all levels up to `cells` cells a side.
    ///
    /// # Errors
    /// Cells that are no power of two from 2 on; vectors that do not fit, before one is allocated;
    /// a device that refuses.
    pub fn new(device: &'d dyn Device, element: Element, cells: usize) -> Result<Self, MultigridError> {
        Self::with(device, element, cells, HierarchyOptions::default())
    }

    /// The same in another precision, or with another smoother.
    ///
    /// # Errors
    /// As [`Hierarchy::new`].
    pub fn with(
        device: &'d dyn Device,
        element: Element,
        cells: usize,
        options: HierarchyOptions,
    ) -> Result<Self, MultigridError> {
        Self::on_meshes(device, element, cells, None, options)
    }

    /// The same on a mesh whose vertices lie elsewhere, and on those with half as many cells a
    /// side. Whole residuals of a level come before the patches of a colour (*Global*) in each
    /// case, and the patch of the coarsest level is solved by Chebyshev's iteration.
    ///
    /// # Errors
    /// As [`Hierarchy::with`], and a smoother other than patches by fast diagonalisation.
    pub fn on(
        device: &'d dyn Device,
        element: Element,
        mesh: &DeformedMesh,
        options: HierarchyOptions,
    ) -> Result<Self, MultigridError> {
        let (found, needed) = (mesh.dimension().axes(), element.dimension.axes());
        if found != needed {
            return Err(MultigridError::MeshDimension { found, needed });
        }
        Self::on_meshes(device, element, mesh.cells(), Some(mesh), options)
    }

    fn on_meshes(
        device: &'d dyn Device,
        element: Element,
        cells: usize,
        mesh: Option<&DeformedMesh>,
        options: HierarchyOptions,
    ) -> Result<Self, MultigridError> {
        let info = device.info();
        let (backend, on) = (info.backend, (info.backend, info.arch.as_str()));
        let HierarchyOptions { precision, relaxation, smoother, steps, .. } = options;
        let variant = options.variant_on(on, element, mesh.is_some());
        let options = HierarchyOptions { variant: Some(variant), ..options };
        relaxation.check(variant)?;
        if steps == [0, 0] {
            return Err(MultigridError::NoSteps);
        }
        if mesh.is_some() && matches!(variant, Variant::Blended | Variant::Inverse | Variant::Point) {
            return Err(MultigridError::DeformedSmoother(variant));
        }
        if cells < 2 || !cells.is_power_of_two() {
            let nearest = cells.max(2).checked_next_power_of_two().unwrap_or(2);
            return Err(MultigridError::Cells { cells, nearest });
        }
        fits(device, bytes(element, cells, mesh.is_some(), options))?;
        let line = Line::new(element.degree)?;
        let made = |operation, structure| -> Result<Executable, MultigridError> {
            Ok(device.compile(&program(operation, element, structure, precision, backend)?)?)
        };
        let fastest = |operation| Structure::of(on, operation, element, precision).for_cells(element, cells);
        let best = |operation| made(operation, fastest(operation));
        let of_colour = |operation: &Operation| {
            let structure = match smoother {
                Some(smoother) => smoother.of_smoother(on, *operation, element, precision),
                None => fastest(*operation),
            };
            Ok((operation.blocks(), made(*operation, structure)?))
        };
        let all = |operations: &[Operation]| -> Result<Vec<_>, MultigridError> {
            operations.iter().map(of_colour).collect()
        };
        let levels = levels(device, element, cells, mesh, &line, options)?;
        let is_deformed = mesh.is_some();
        let kernels = LevelKernels {
            smooth: all(launched(variant, relaxation, is_deformed))?,
            coarse: match relaxation {
                _ if is_deformed => all(&[Operation::MeshSolve])?,
                Relaxation::Multiplicative if variant != Variant::Point => Vec::new(),
                Relaxation::Multiplicative | Relaxation::Additive { .. } => all(Variant::Fused.operations())?,
            },
            residual: best(if is_deformed { Operation::MeshResidual } else { Operation::Residual })?,
            prolongate: best(Operation::Prolongate)?,
            restrict: best(Operation::Restrict)?,
        };
        Self::of_levels(device, element, options, kernels, levels)
    }

    /// A hierarchy of these levels, without neighbours.
    pub(crate) fn of_levels(
        device: &'d dyn Device,
        element: Element,
        options: HierarchyOptions,
        kernels: LevelKernels,
        levels: Vec<Level>,
    ) -> Result<Self, MultigridError> {
        let HierarchyOptions { precision, relaxation, steps, .. } = options;
        let line = Line::new(element.degree)?;
        let LevelKernels { smooth, coarse, residual, prolongate, restrict } = kernels;
        Ok(Self {
            device,
            element,
            precision,
            relaxation,
            steps,
            matrices: Matrices::new(device, element, &line, options)?,
            smooth,
            coarse,
            residual,
            prolongate,
            restrict,
            vectors: Vectors::new(device, precision)?,
            narrow_and_widen: match precision {
                Precision::Double => None,
                Precision::Single => Some(narrow_and_widen(device)?),
            },
            line,
            levels,
            neighbours: None,
        })
    }

    /// The same with other kernels for a colour of patches, in sequence: each takes what it has of
    /// the arguments of those of [`Operation`] by their names. They have to be one of the same
    /// results as those that they replace, or the cycles of the hierarchy are others.
    ///
    /// # Errors
    /// A device that refuses a kernel.
    pub fn with_smoother(mut self, kernels: &[(Blocks, Program)]) -> Result<Self, MultigridError> {
        let compiled = |(blocks, program): &(Blocks, Program)| Ok((*blocks, self.device.compile(program)?));
        self.smooth = kernels.iter().map(compiled).collect::<Result<_, MultigridError>>()?;
        Ok(self)
    }

    /// The discretisation.
    #[must_use]
    pub const fn element(&self) -> Element {
        self.element
    }

    /// The matrices of one dimension.
    #[must_use]
    pub const fn line(&self) -> &Line {
        &self.line
    }

    /// The number of levels; the finest is the last.
    #[must_use]
    pub const fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Cells a side of a level, from 0 on.
    #[must_use]
    pub fn cells(&self, level: usize) -> usize {
        self.levels[level].slab.cells
    }

    /// Smoothing steps before the coarser level and after it.
    pub(crate) const fn steps(&self) -> [u32; 2] {
        self.steps
    }

    /// How patches are put together.
    pub(crate) const fn relaxation(&self) -> Relaxation {
        self.relaxation
    }

    /// The vectors of a level.
    pub(crate) fn at(&self, level: usize) -> At<'_> {
        self.levels[level].at()
    }

    /// The solution of a level: all nodes in lexicographic order, the last axis of the mesh
    /// slowest.
    ///
    /// # Errors
    /// A failing driver.
    pub fn solution(&self, level: usize) -> Result<Vec<f64>, MultigridError> {
        Ok(download(self.device, &self.levels[level].x, self.precision)?)
    }

    /// The right-hand side of a level: what was set, or the residual of the level above.
    ///
    /// # Errors
    /// A failing driver.
    pub fn right_hand_side(&self, level: usize) -> Result<Vec<f64>, MultigridError> {
        Ok(download(self.device, &self.levels[level].b, self.precision)?)
    }

    /// Sets the right-hand side of a level, or its solution to start from.
    ///
    /// # Errors
    /// A vector of another length, a failing driver.
    pub fn set(&self, level: usize, what: Which, values: &[f64]) -> Result<(), MultigridError> {
        let at = &self.levels[level];
        let needed = at.slab.nodes(self.element);
        if values.len() != needed {
            return Err(MultigridError::Length { found: values.len(), needed });
        }
        let buffer = match what {
            Which::Solution => &at.x,
            Which::RightHandSide => &at.b,
        };
        match self.precision {
            Precision::Double => upload_values(self.device, buffer, values)?,
            Precision::Single => {
                let values: Vec<f32> = values.iter().map(|x| *x as f32).collect();
                upload_values(self.device, buffer, &values)?;
            }
        }
        Ok(())
    }

    /// `r = b - A x` on a level.
    ///
    /// # Errors
    /// A failing driver.
    pub fn compute_residual(&self, level: usize) -> Result<(), MultigridError> {
        let mut queue = Queue::new();
        self.residual_in(self.at(level), &mut queue);
        self.run(&queue)?;
        Ok(())
    }

    pub(crate) fn residual_in<'a>(&'a self, at: At<'a>, queue: &mut Queue<'a>) {
        let mut args = vec![
            ("n", Arg::Param(at.slab.cells as i64)),
            // what a restriction reads: no plane above that of the cut
            ("nz", Arg::Param((at.slab.below + at.slab.own) as i64)),
            ("nl", Arg::Param(at.slab.layers() as i64)),
            ("scale", self.scale(at)),
            ("x", Arg::Buffer(at.x)),
            ("A", Arg::Buffer(&self.matrices.cell_stiffness)),
            ("M", Arg::Buffer(&self.matrices.cell_mass)),
            ("r", Arg::Buffer(at.r)),
        ];
        args.extend(at.mesh.into_iter().flat_map(MeshArrays::args));
        queue.push(self.vectors.copied(at.slab.nodes(self.element), at.b, at.r));
        queue.push(Call::new(&self.residual, taken(&self.residual, args)));
    }

    /// The residual that was computed last.
    ///
    /// # Errors
    /// A failing driver.
    pub fn residual(&self, level: usize) -> Result<Vec<f64>, MultigridError> {
        Ok(download(self.device, &self.levels[level].r, self.precision)?)
    }

    /// The Euclidean norm of the residual of a level, computed on the device: 8 bytes are copied.
    ///
    /// # Errors
    /// A failing driver.
    pub fn residual_norm(&self, level: usize) -> Result<f64, MultigridError> {
        self.compute_residual(level)?;
        self.vectors.norm(self.device, self.element.nodes(self.cells(level)), &self.levels[level].r)
    }

    /// The Euclidean norm of the right-hand side of a level, likewise.
    ///
    /// # Errors
    /// A failing driver.
    pub fn right_hand_side_norm(&self, level: usize) -> Result<f64, MultigridError> {
        self.vectors.norm(self.device, self.element.nodes(self.cells(level)), &self.levels[level].b)
    }

    /// The residual of `level` becomes the right-hand side of the level below it, whose solution
    /// starts at zero.
    ///
    /// # Errors
    /// A failing driver.
    pub fn restrict(&self, level: usize) -> Result<(), MultigridError> {
        let mut queue = Queue::new();
        self.restrict_in(self.at(level), self.at(level - 1), &mut queue);
        self.run(&queue)?;
        Ok(())
    }

    pub(crate) fn restrict_in<'a>(&'a self, fine: At<'a>, coarse: At<'a>, queue: &mut Queue<'a>) {
        queue.extend([self.cleared(coarse, coarse.b), self.cleared(coarse, coarse.x)]);
        let mut args = self.between(coarse.slab, fine.slab, fine.slab.own / 2);
        args.extend([
            ("r", Arg::Buffer(fine.r)),
            ("P", Arg::Buffer(&self.matrices.prolongation)),
            ("rc", Arg::Buffer(coarse.b)),
        ]);
        queue.push(Call::new(&self.restrict, taken(&self.restrict, args)));
    }

    /// Sizes of a transfer of some layers of the coarser level: its cells a side, its first layer that
    /// counts and all its layers, and of the finer one likewise. A whole mesh takes the first alone.
    fn between<'a>(&self, coarse: Slab, fine: Slab, layers: usize) -> Vec<(&'a str, Arg<'a>)> {
        let first = self.neighbours.as_ref().map_or(coarse.below, |all| all.first_layer(coarse, fine));
        let sizes = [
            ("n", coarse.cells),
            ("z", first),
            ("nz", layers),
            ("nl", coarse.layers()),
            ("zf", fine.below),
            ("nf", fine.layers()),
        ];
        sizes.into_iter().map(|(name, size)| (name, Arg::Param(size as i64))).collect()
    }

    /// The solution of the level below is added to that of `level`.
    ///
    /// # Errors
    /// A failing driver.
    pub fn prolongate(&self, level: usize) -> Result<(), MultigridError> {
        run(self.device, &[self.prolongated(self.at(level - 1), self.at(level))])?;
        Ok(())
    }

    pub(crate) fn prolongated<'a>(&'a self, coarse: At<'a>, fine: At<'a>) -> Call<'a> {
        // the plane of the cut above belongs to the layer after it
        let mut args = self.between(coarse.slab, fine.slab, fine.slab.own / 2 + fine.slab.above);
        args.extend([
            ("xc", Arg::Buffer(coarse.x)),
            ("P", Arg::Buffer(&self.matrices.prolongation)),
            ("x", Arg::Buffer(fine.x)),
        ]);
        Call::new(&self.prolongate, taken(&self.prolongate, args))
    }

    /// Runs kernels of the hierarchy; seconds by the device's clock.
    pub(crate) fn run(&self, queue: &Queue<'_>) -> Result<f64, MultigridError> {
        Ok(queue.run(self.device)?)
    }

    /// What rounds to the precision of the hierarchy and what goes back, unless it is double.
    pub(crate) const fn narrow_and_widen(&self) -> Option<&[Executable; 2]> {
        self.narrow_and_widen.as_ref()
    }

    /// The executables of the smoother, in the order in which a colour runs them.
    pub fn smoother(&self) -> impl Iterator<Item = &Executable> {
        self.smooth.iter().map(|(_, executable)| executable)
    }

    /// Sets the solution of a level to zero.
    ///
    /// # Errors
    /// A failing driver.
    pub fn clear(&self, level: usize) -> Result<(), MultigridError> {
        Ok(self.device.fill(&self.levels[level].x, 0)?)
    }

    /// A vector of a level is set to zero.
    pub(crate) fn cleared<'a>(&'a self, at: At<'_>, v: &'a Buffer) -> Call<'a> {
        self.vectors.cleared(at.slab.nodes(self.element), v)
    }

    /// `d = old d + new z` and `x += d`.
    pub(crate) fn advanced<'a>(
        &'a self,
        at: At<'_>,
        [d, z, x]: [&'a Buffer; 3],
        [old, new]: [f64; 2],
    ) -> Call<'a> {
        let number = |x: f64| match self.precision {
            Precision::Double => Arg::F64(x),
            Precision::Single => Arg::F32(x as f32),
        };
        let args = vec![
            ("n", Arg::Param(at.slab.nodes(self.element) as i64)),
            ("old", number(old)),
            ("new", number(new)),
            ("z", Arg::Buffer(z)),
            ("d", Arg::Buffer(d)),
            ("x", Arg::Buffer(x)),
        ];
        Call::new(self.vectors.direction(), args)
    }

    /// What the sum of products of reference matrices is multiplied with; of a deformed mesh all
    /// that is in the matrices.
    pub(crate) fn scale(&self, at: At<'_>) -> Arg<'static> {
        let scale = if at.mesh.is_some() { 1.0 } else { scale(self.element, at.slab.cells) };
        match self.precision {
            Precision::Double => Arg::F64(scale),
            Precision::Single => Arg::F32(scale as f32),
        }
    }
}

impl Matrices {
    pub(crate) fn new(
        device: &dyn Device,
        element: Element,
        line: &Line,
        HierarchyOptions { precision, variant, .. }: HierarchyOptions,
    ) -> Result<Self, RuntimeError> {
        let of = |values: &[f64]| upload(device, values, precision);
        let on_device = |matrix: &Matrix| of(&matrix.entries);
        Ok(Self {
            mass: on_device(&line.mass)?,
            stiffness: on_device(&line.stiffness)?,
            cell_mass: on_device(&line.cell_mass)?,
            cell_stiffness: on_device(&line.cell_stiffness)?,
            eigenvectors: on_device(&line.eigenvectors)?,
            eigenvalues: of(&line.eigenvalues)?,
            prolongation: on_device(&line.prolongation)?,
            blending: match variant {
                Some(Variant::Blended) => Some([
                    on_device(&line.to_modes())?,
                    on_device(&line.blend)?,
                    on_device(&line.flux)?,
                    of(&line.inverses(element.dimension))?,
                ]),
                Some(
                    Variant::Global | Variant::Separate | Variant::Fused | Variant::Inverse | Variant::Point,
                )
                | None => None,
            },
            inverse: match variant {
                Some(Variant::Inverse) => Some(on_device(&line.inverse(element.dimension))?),
                Some(
                    Variant::Global | Variant::Separate | Variant::Fused | Variant::Blended | Variant::Point,
                )
                | None => None,
            },
        })
    }
}

fn download(device: &dyn Device, buffer: &Buffer, precision: Precision) -> Result<Vec<f64>, RuntimeError> {
    match precision {
        Precision::Double => download_values(device, buffer),
        Precision::Single => {
            let values: Vec<f32> = download_values(device, buffer)?;
            Ok(values.into_iter().map(f64::from).collect())
        }
    }
}

/// h^(d - 2): what the sum of products of reference matrices is multiplied with.
pub(crate) fn scale(element: Element, cells: usize) -> f64 {
    let h = 1.0 / cells as f64;
    h.powi(element.dimension.axes() as i32 - 2)
}

/// A vector of a level that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The solution to start from; zero at the boundary.
    Solution,
    /// The right-hand side; zero at the boundary.
    RightHandSide,
}

/// Bytes of three vectors a level and of what the smoother has besides.
pub(crate) fn bytes(
    element: Element,
    cells: usize,
    is_deformed: bool,
    HierarchyOptions { precision, variant, relaxation, .. }: HierarchyOptions,
) -> u64 {
    let levels = std::iter::successors(Some(cells), |n| (*n > 2).then_some(n / 2));
    let axes = element.dimension.axes() as u32;
    let a_node = precision.bytes() * (3 + relaxation.vectors());
    let of_level = |n: usize| {
        let vectors = (element.nodes_of_side(n) as u64).checked_pow(axes)?.checked_mul(a_node)?;
        let mesh = if is_deformed { MeshArrays::bytes(axes, n, precision)? } else { 0 };
        vectors.checked_add(mesh)
    };
    let inverse = match variant {
        Some(Variant::Inverse) => (2 * element.degree as u64 - 1).checked_pow(2 * axes),
        Some(Variant::Global | Variant::Separate | Variant::Fused | Variant::Blended | Variant::Point)
        | None => Some(0),
    };
    inverse
        .and_then(|entries| entries.checked_mul(precision.bytes()))
        .and_then(|start| levels.map(of_level).try_fold(start, |sum, level| sum.checked_add(level?)))
        .unwrap_or(u64::MAX)
}

/// Whether this many bytes fit, before any is allocated.
pub(crate) fn fits(device: &dyn Device, needed: u64) -> Result<(), MultigridError> {
    let info = device.info();
    match info.available_bytes() {
        Some(available) if needed > available => {
            Err(MultigridError::Memory { needed, available, device: info.name.clone() })
        }
        Some(_) | None => Ok(()),
    }
}
