//! Poisson's equation by GMRES in double precision around a V-cycle in double or single.

use crate::arguments::taken;
use crate::hierarchy::{bytes, fits, scale};
use crate::kernels::{Blocks, Operation};
use crate::mesh::DeformedMesh;
use crate::on_mesh::MeshArrays;
use crate::options::HierarchyOptions;
use crate::schedules::{Structure, program};
use crate::slabs::Slab;
use crate::texts::compiled;
use crate::{Element, Hierarchy, Line, MultigridError, Order, Precision, VCycle};
use kingpost_codegen::Program;
use kingpost_runtime::{Arg, Buffer, Device, Executable, buffer_of, download_values, upload_values};
use kingpost_solve::{Call, Gmres, GmresOptions, LinearReport, Operator, Queue, run};
use std::f64::consts::PI;

/// The operator of a mesh without its matrix, in double precision: inner nodes among each other.
pub struct LevelOperator {
    element: Element,
    slab: Slab,
    arrays: OperatorArrays,
    clear: Executable,
    residual: Executable,
}

/// What the kernel of an operator takes.
enum OperatorArrays {
    Cells { mass: Buffer, stiffness: Buffer },
    Mesh(MeshArrays),
}

impl LevelOperator {
    /// The operator on `cells` cells a side.
    ///
    /// # Errors
    /// A device that refuses its kernels.
    pub fn new(device: &dyn Device, element: Element, cells: usize) -> Result<Self, MultigridError> {
        let residual = executable(device, Operation::Residual, element)?;
        Self::of_slab(device, element, Slab::of((cells, cells), 0, 1), residual)
    }

    /// The operator of a slab. What it makes is right at all nodes but those of the outermost
    /// planes next to the slab, which nothing reads.
    pub(crate) fn of_slab(
        device: &dyn Device,
        element: Element,
        slab: Slab,
        residual: Executable,
    ) -> Result<Self, MultigridError> {
        let line = Line::new(element.degree)?;
        Ok(Self {
            element,
            slab,
            arrays: OperatorArrays::Cells {
                mass: buffer_of(device, &line.cell_mass.entries)?,
                stiffness: buffer_of(device, &line.cell_stiffness.entries)?,
            },
            clear: compiled(device, include_str!("../kernels/clear.kingpost"), &["v"], Precision::Double)?,
            residual,
        })
    }

    /// The operator -div(κ grad) on a mesh, with its coefficient.
    ///
    /// # Errors
    /// A mesh of another dimension, no memory, a device that refuses its kernels.
    pub fn on(device: &dyn Device, element: Element, mesh: &DeformedMesh) -> Result<Self, MultigridError> {
        let (found, needed) = (mesh.dimension().axes(), element.dimension.axes());
        if found != needed {
            return Err(MultigridError::MeshDimension { found, needed });
        }
        let line = Line::new(element.degree)?;
        let arrays = MeshArrays::new(device, mesh, &line, Precision::Double, false)?;
        Ok(Self {
            element,
            slab: Slab::of((mesh.cells(), mesh.cells()), 0, 1),
            arrays: OperatorArrays::Mesh(arrays),
            clear: compiled(device, include_str!("../kernels/clear.kingpost"), &["v"], Precision::Double)?,
            residual: executable(device, Operation::MeshResidual, element)?,
        })
    }
}

impl Operator for LevelOperator {
    fn size(&self) -> usize {
        self.slab.nodes(self.element)
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        queue.push(Call::of(&self.clear, &[("n", self.size())], &[("v", y)]));
        let layers = Arg::Param(self.slab.layers() as i64);
        let sizes = [("n", Arg::Param(self.slab.cells as i64)), ("nz", layers), ("nl", layers)];
        let mut args = [&sizes[..], &[("x", Arg::Buffer(x)), ("r", Arg::Buffer(y))]].concat();
        // the kernels subtract the product
        match &self.arrays {
            OperatorArrays::Cells { mass, stiffness } => args.extend([
                ("scale", Arg::F64(-scale(self.element, self.slab.cells))),
                ("A", Arg::Buffer(stiffness)),
                ("M", Arg::Buffer(mass)),
            ]),
            OperatorArrays::Mesh(arrays) => {
                args.push(("scale", Arg::F64(-1.0)));
                args.extend(arrays.args());
            }
        }
        queue.push(Call::new(&self.residual, taken(&self.residual, args)));
    }
}

fn executable(
    device: &dyn Device,
    operation: Operation,
    element: Element,
) -> Result<Executable, MultigridError> {
    let (info, precision) = (device.info(), Precision::Double);
    let structure = Structure::of((info.backend, &info.arch), operation, element, precision);
    Ok(device.compile(&program(operation, element, structure, precision, info.backend)?)?)
}

/// What GMRES starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Zero.
    #[default]
    Zero,
    /// The solution on the mesh of half as many cells a side, found in the same way from the coarsest
    /// level on (nested iteration). Right-hand sides of coarser meshes are restricted: spaces are
    /// nested, so that these are exact.
    Nested,
}

/// The system of a level in double precision.
struct System<'d> {
    operator: LevelOperator,
    gmres: Gmres<'d>,
    x: Buffer,
    b: Buffer,
}

/// Between levels in double precision.
struct Transfer {
    clear: Executable,
    restrict: Executable,
    prolongate: Executable,
    prolongation: Buffer,
}

/// GMRES in double precision, preconditioned by a V-cycle in a precision of its own, with the
/// vectors of the problem.
///
/// # Source
/// Cui et al. 2024, §4.2.
pub struct PreconditionedSolver<'d> {
    device: &'d dyn Device,
    hierarchy: Hierarchy<'d>,
    /// Of the finest level alone, or of all levels from the coarsest on.
    systems: Vec<System<'d>>,
    transfer: Option<Transfer>,
    load: Executable,
    squared_error: Executable,
    /// Integrals of functions of the nodes, on a deformed mesh.
    mesh_load: Option<Executable>,
}

impl<'d> PreconditionedSolver<'d> {
    /// Compiles all kernels and allocates the vectors of all levels, the cycle's in `precision`.
    ///
    /// # Errors
    /// As [`Hierarchy::new`].
    pub fn new(
        device: &'d dyn Device,
        element: Element,
        cells: usize,
        precision: Precision,
        options: GmresOptions,
    ) -> Result<Self, MultigridError> {
        let of_cycle = HierarchyOptions { precision, ..HierarchyOptions::default() };
        Self::with(device, element, cells, of_cycle, Start::Zero, options)
    }

    /// The same with another cycle, from another start.
    ///
    /// # Errors
    /// As [`Hierarchy::with`].
    pub fn with(
        device: &'d dyn Device,
        element: Element,
        cells: usize,
        of_cycle: HierarchyOptions,
        start: Start,
        options: GmresOptions,
    ) -> Result<Self, MultigridError> {
        check_memory(device, element, cells, false, of_cycle, start)?;
        let hierarchy = Hierarchy::with(device, element, cells, of_cycle)?;
        Self::around(device, hierarchy, None, start, options)
    }

    /// The same on a mesh whose vertices lie elsewhere, with its coefficient.
    ///
    /// # Errors
    /// As [`Hierarchy::on`].
    pub fn on(
        device: &'d dyn Device,
        element: Element,
        mesh: &DeformedMesh,
        of_cycle: HierarchyOptions,
        start: Start,
        options: GmresOptions,
    ) -> Result<Self, MultigridError> {
        check_memory(device, element, mesh.cells(), true, of_cycle, start)?;
        let hierarchy = Hierarchy::on(device, element, mesh, of_cycle)?;
        Self::around(device, hierarchy, Some(mesh), start, options)
    }

    /// The same with other kernels for a colour of patches, as [`Hierarchy::with_smoother`] takes them.
    ///
    /// # Errors
    /// A device that refuses a kernel.
    pub fn with_smoother(mut self, kernels: &[(Blocks, Program)]) -> Result<Self, MultigridError> {
        self.hierarchy = self.hierarchy.with_smoother(kernels)?;
        Ok(self)
    }

    fn around(
        device: &'d dyn Device,
        hierarchy: Hierarchy<'d>,
        mesh: Option<&DeformedMesh>,
        start: Start,
        options: GmresOptions,
    ) -> Result<Self, MultigridError> {
        let element = hierarchy.element();
        let coarsest = match start {
            Start::Zero => hierarchy.levels() - 1,
            Start::Nested => 0,
        };
        let mut meshes: Vec<DeformedMesh> = mesh.into_iter().cloned().collect();
        while let Some(finer) = meshes.last().filter(|mesh| mesh.cells() > hierarchy.cells(coarsest)) {
            meshes.push(finer.coarser()?);
        }
        let system = |level: usize| -> Result<_, MultigridError> {
            let cells = hierarchy.cells(level);
            let n = element.nodes(cells);
            let mesh = meshes.iter().find(|mesh| mesh.cells() == cells);
            Ok(System {
                operator: match mesh {
                    Some(mesh) => LevelOperator::on(device, element, mesh)?,
                    None => LevelOperator::new(device, element, cells)?,
                },
                gmres: Gmres::new(device, n, options)?,
                x: device.allocate(8 * n as u64)?,
                b: device.allocate(8 * n as u64)?,
            })
        };
        let systems = (coarsest..hierarchy.levels()).map(system).collect::<Result<_, _>>()?;
        let transfer = match start {
            Start::Zero => None,
            Start::Nested => Some(Transfer {
                clear: compiled(
                    device,
                    include_str!("../kernels/clear.kingpost"),
                    &["v"],
                    Precision::Double,
                )?,
                restrict: executable(device, Operation::Restrict, element)?,
                prolongate: executable(device, Operation::Prolongate, element)?,
                prolongation: buffer_of(device, &hierarchy.line().prolongation.entries)?,
            }),
        };
        Ok(Self {
            device,
            hierarchy,
            systems,
            transfer,
            load: executable(device, Operation::Load, element)?,
            squared_error: executable(device, Operation::SquaredError, element)?,
            mesh_load: match mesh {
                Some(_) => Some(executable(device, Operation::MeshLoad, element)?),
                None => None,
            },
        })
    }

    /// The system of the finest level, which is always there.
    fn finest(&self) -> &System<'d> {
        &self.systems[self.systems.len() - 1]
    }

    /// The hierarchy of the cycle.
    #[must_use]
    pub const fn hierarchy(&self) -> &Hierarchy<'d> {
        &self.hierarchy
    }

    /// Sets the right-hand side to `factor` times the products of a line's entries along each axis.
    ///
    /// # Shapes and units
    /// `line`: [nodes of a side], zero at both ends.
    ///
    /// # Errors
    /// A line of another length, a failing driver.
    pub fn set_product(&self, factor: f64, line: &[f64]) -> Result<(), MultigridError> {
        let LevelOperator { element, slab: Slab { cells, .. }, .. } = self.finest().operator;
        let needed = element.nodes_of_side(cells);
        if line.len() != needed {
            return Err(MultigridError::Length { found: line.len(), needed });
        }
        let line = buffer_of(self.device, line)?;
        let args = [
            ("n", Arg::Param(cells as i64)),
            ("factor", Arg::F64(factor)),
            ("line", Arg::Buffer(&line)),
            ("column", Arg::Buffer(&line)),
            ("b", Arg::Buffer(&self.finest().b)),
        ];
        Ok(self.device.launch(&self.load, &args)?)
    }

    /// Sets the right-hand side.
    ///
    /// # Shapes and units
    /// [nodes], zero at the boundary.
    ///
    /// # Errors
    /// A vector of another length, a failing driver.
    pub fn set(&self, values: &[f64]) -> Result<(), MultigridError> {
        let needed = self.finest().operator.size();
        if values.len() != needed {
            return Err(MultigridError::Length { found: values.len(), needed });
        }
        Ok(upload_values(self.device, &self.finest().b, values)?)
    }

    /// Sets the right-hand side to the integrals of a source that is given at the nodes, on a deformed
    /// mesh.
    ///
    /// # Shapes and units
    /// [nodes].
    ///
    /// # Errors
    /// A vector of another length, a solver that is not [on](Self::on) such a mesh, a failing driver.
    pub fn set_source(&self, source: &[f64]) -> Result<(), MultigridError> {
        let source = self.integrals(source, &self.finest().b)?;
        run(self.device, &source.calls())?;
        Ok(())
    }

    /// The L2 norm of the difference between the solution and a function that is zero at the boundary,
    /// both by their values at the nodes, on a deformed mesh.
    ///
    /// # Errors
    /// As [`PreconditionedSolver::set_source`].
    pub fn distance(&self, values: &[f64]) -> Result<f64, MultigridError> {
        let mut difference = self.solution()?;
        if values.len() != difference.len() {
            return Err(MultigridError::Length { found: values.len(), needed: difference.len() });
        }
        difference.iter_mut().zip(values).for_each(|(found, exact)| *found -= exact);
        let weighted = self.device.allocate(8 * difference.len() as u64)?;
        let integrals = self.integrals(&difference, &weighted)?;
        run(self.device, &integrals.calls())?;
        let weighted: Vec<f64> = download_values(self.device, &weighted)?;
        Ok(difference.iter().zip(&weighted).map(|(e, m)| e * m).sum::<f64>().sqrt())
    }

    /// The integrals of a function times those of the basis.
    fn integrals<'a>(&'a self, values: &[f64], into: &'a Buffer) -> Result<Integrals<'a>, MultigridError> {
        let operator = &self.finest().operator;
        let needed = operator.size();
        if values.len() != needed {
            return Err(MultigridError::Length { found: values.len(), needed });
        }
        match (&operator.arrays, &self.mesh_load) {
            (OperatorArrays::Mesh(arrays), Some(load)) => {
                Ok(Integrals { operator, arrays, load, values: buffer_of(self.device, values)?, into })
            }
            _ => Err(MultigridError::NoMesh),
        }
    }

    /// Solves. The report is that of the finest level; its seconds are those of all levels.
    ///
    /// # Errors
    /// No memory for another vector, a failing driver. That it does not converge is in the report.
    pub fn solve(&mut self) -> Result<LinearReport, MultigridError> {
        let mut seconds = self.restrict_loads()?;
        let coarsest = self.hierarchy.levels() - self.systems.len();
        let cycle = VCycle::on(&self.hierarchy, coarsest, Order::Forward);
        let System { operator, gmres, x, b } = &mut self.systems[0];
        let mut report = gmres.solve(operator, Some(&cycle), b, x)?;
        seconds += report.seconds;
        for at in 1..self.systems.len() {
            seconds += self.start_from_below(at)?;
            let cycle = VCycle::on(&self.hierarchy, coarsest + at, Order::Forward);
            let System { operator, gmres, x, b } = &mut self.systems[at];
            report = gmres.improve(operator, Some(&cycle), b, x)?;
            seconds += report.seconds;
        }
        Ok(LinearReport { seconds, ..report })
    }

    /// Right-hand sides of the levels below the finest one, if they have systems.
    fn restrict_loads(&self) -> Result<f64, MultigridError> {
        let Some(Transfer { clear, restrict, prolongation, .. }) = &self.transfer else { return Ok(0.0) };
        let mut calls = Vec::new();
        for pair in self.systems.windows(2).rev() {
            let [coarse, fine] = pair else { continue };
            calls.push(Call::of(clear, &[("n", coarse.operator.size())], &[("v", &coarse.b)]));
            let arrays = [("r", &fine.b), ("P", prolongation), ("rc", &coarse.b)];
            calls.push(Call::of(restrict, &[("n", coarse.operator.slab.cells)], &arrays));
        }
        Ok(run(self.device, &calls)?)
    }

    /// The solution of the system below becomes the start of this one.
    fn start_from_below(&self, at: usize) -> Result<f64, MultigridError> {
        let Some(Transfer { clear, prolongate, prolongation, .. }) = &self.transfer else { return Ok(0.0) };
        let (coarse, fine) = (&self.systems[at - 1], &self.systems[at]);
        let arrays = [("xc", &coarse.x), ("P", prolongation), ("x", &fine.x)];
        let calls = [
            Call::of(clear, &[("n", fine.operator.size())], &[("v", &fine.x)]),
            Call::of(prolongate, &[("n", coarse.operator.slab.cells)], &arrays),
        ];
        Ok(run(self.device, &calls)?)
    }

    /// The solution: all nodes in lexicographic order.
    ///
    /// # Errors
    /// A failing driver.
    pub fn solution(&self) -> Result<Vec<f64>, MultigridError> {
        Ok(download_values(self.device, &self.finest().x)?)
    }

    /// The L2 norm of the difference between the solution and the product of a function of each
    /// coordinate, by a Gauss rule with k + 2 points a cell and axis.
    ///
    /// # Errors
    /// A failing driver.
    pub fn error(&self, function: impl Fn(f64) -> f64) -> Result<f64, MultigridError> {
        let LevelOperator { element, slab: Slab { cells, .. }, .. } = self.finest().operator;
        let rule = self.hierarchy.line().rule(element.degree + 2);
        let h = 1.0 / cells as f64;
        let at = |cell: usize| rule.points.iter().map(move |x| (cell as f64 + x) * h);
        let exact: Vec<f64> = (0..cells).flat_map(at).map(function).collect();
        let weights: Vec<f64> = rule.weights.iter().map(|w| w * h).collect();
        let squares = buffer_of(self.device, &vec![0.0; cells.pow(element.dimension.axes() as u32 - 1)])?;
        let arrays = [
            buffer_of(self.device, &rule.values.entries)?,
            buffer_of(self.device, &weights)?,
            buffer_of(self.device, &exact)?,
        ];
        let [values, weights, exact] = &arrays;
        let of = [
            ("x", &self.finest().x),
            ("B", values),
            ("w", weights),
            ("exact", exact),
            ("column", exact),
            ("squares", &squares),
        ];
        run(self.device, &[Call::of(&self.squared_error, &[("n", cells)], &of)])?;
        let squares: Vec<f64> = download_values(self.device, &squares)?;
        Ok(squares.iter().sum::<f64>().sqrt())
    }
}

/// The integrals of a function of the nodes times those of the basis.
struct Integrals<'a> {
    operator: &'a LevelOperator,
    arrays: &'a MeshArrays,
    load: &'a Executable,
    values: Buffer,
    into: &'a Buffer,
}

impl Integrals<'_> {
    fn calls(&self) -> [Call<'_>; 2] {
        let mut args = vec![
            ("n", Arg::Param(self.operator.slab.cells as i64)),
            ("scale", Arg::F64(1.0)),
            ("x", Arg::Buffer(&self.values)),
            ("r", Arg::Buffer(self.into)),
        ];
        args.extend(self.arrays.args());
        [
            Call::of(&self.operator.clear, &[("n", self.operator.size())], &[("v", self.into)]),
            Call::new(self.load, taken(self.load, args)),
        ]
    }
}

/// What is there in any case besides the hierarchy, on each level with a system: solution, right-hand
/// side, and the vectors of a first iteration, two of the basis and a direction.
fn check_memory(
    device: &dyn Device,
    element: Element,
    cells: usize,
    is_deformed: bool,
    of_cycle: HierarchyOptions,
    start: Start,
) -> Result<(), MultigridError> {
    let levels = std::iter::successors(Some(cells), |n| (start == Start::Nested && *n > 2).then_some(n / 2));
    let own = levels.fold(0_u64, |sum, cells| {
        let vector = (element.nodes_of_side(cells) as u64).checked_pow(element.dimension.axes() as u32);
        let five = vector.and_then(|nodes| nodes.checked_mul(5 * 8)).unwrap_or(u64::MAX);
        sum.saturating_add(five)
    });
    let arrays = MeshArrays::bytes(element.dimension.axes() as u32, cells, Precision::Double);
    let mesh = if is_deformed { arrays.unwrap_or(u64::MAX) } else { 0 };
    fits(device, bytes(element, cells, is_deformed, of_cycle).saturating_add(own).saturating_add(mesh))
}

/// The right-hand side whose solution is the product of sin(π x) along each axis: a factor, and what
/// a line has along each axis.
///
/// # Source
/// Cui et al. 2024, §4.2.
#[must_use]
pub fn sine_load(line: &Line, element: Element, cells: usize) -> (f64, Vec<f64>) {
    (element.dimension.axes() as f64 * PI * PI, line.load_of(cells, |x| (PI * x).sin()))
}
