//! Poisson's equation by GMRES in double precision around a V-cycle in double or single.

use crate::hierarchy::{HierarchyOptions, bytes, fits, scale, taken};
use crate::kernels::Operation;
use crate::schedules::{Structure, program};
use crate::texts::compiled;
use crate::{Element, Hierarchy, Line, MultigridError, Order, Precision, VCycle};
use purlin_runtime::{Arg, Buffer, Device, Executable, buffer_of, download_values, upload_values};
use purlin_solve::{Call, Gmres, GmresOptions, LinearReport, Operator, run};
use std::f64::consts::PI;

/// The operator of a mesh without its matrix, in double precision: inner nodes among each other.
pub struct LevelOperator {
    element: Element,
    cells: usize,
    mass: Buffer,
    stiffness: Buffer,
    clear: Executable,
    residual: Executable,
}

impl LevelOperator {
    /// The operator on `cells` cells a side.
    ///
    /// # Errors
    /// A device that refuses its kernels.
    pub fn new(device: &dyn Device, element: Element, cells: usize) -> Result<Self, MultigridError> {
        let line = Line::new(element.degree)?;
        Ok(Self {
            element,
            cells,
            mass: buffer_of(device, &line.cell_mass.entries)?,
            stiffness: buffer_of(device, &line.cell_stiffness.entries)?,
            clear: compiled(device, include_str!("../kernels/clear.purlin"), Precision::Double)?,
            residual: executable(device, Operation::Residual, element)?,
        })
    }
}

impl Operator for LevelOperator {
    fn size(&self) -> usize {
        self.element.nodes(self.cells)
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, calls: &mut Vec<Call<'a>>) {
        calls.push(Call::of(&self.clear, &[("n", self.size())], &[("v", y)]));
        let args = vec![
            ("n", Arg::Param(self.cells as i64)),
            // the kernel subtracts the product
            ("scale", Arg::F64(-scale(self.element, self.cells))),
            ("x", Arg::Buffer(x)),
            ("A", Arg::Buffer(&self.stiffness)),
            ("M", Arg::Buffer(&self.mass)),
            ("r", Arg::Buffer(y)),
        ];
        calls.push(Call::new(&self.residual, taken(&self.residual, args)));
    }
}

fn executable(
    device: &dyn Device,
    operation: Operation,
    element: Element,
) -> Result<Executable, MultigridError> {
    let backend = device.info().backend;
    let structure = Structure::of(backend, operation, element);
    Ok(device.compile(&program(operation, element, structure, Precision::Double, backend)?)?)
}

/// GMRES in double precision, preconditioned by a V-cycle in a precision of its own, with the
/// vectors of the problem.
///
/// # Source
/// Cui et al. 2024, §4.2.
pub struct PreconditionedSolver<'d> {
    device: &'d dyn Device,
    operator: LevelOperator,
    hierarchy: Hierarchy<'d>,
    gmres: Gmres<'d>,
    load: Executable,
    squared_error: Executable,
    x: Buffer,
    b: Buffer,
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
        Self::with(device, element, cells, of_cycle, options)
    }

    /// The same with another cycle.
    ///
    /// # Errors
    /// As [`Hierarchy::with`].
    pub fn with(
        device: &'d dyn Device,
        element: Element,
        cells: usize,
        of_cycle: HierarchyOptions,
        options: GmresOptions,
    ) -> Result<Self, MultigridError> {
        check_memory(device, element, cells, of_cycle)?;
        let hierarchy = Hierarchy::with(device, element, cells, of_cycle)?;
        let n = element.nodes(cells);
        Ok(Self {
            device,
            operator: LevelOperator::new(device, element, cells)?,
            hierarchy,
            gmres: Gmres::new(device, n, options)?,
            load: executable(device, Operation::Load, element)?,
            squared_error: executable(device, Operation::SquaredError, element)?,
            x: device.allocate(8 * n as u64)?,
            b: device.allocate(8 * n as u64)?,
        })
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
        let LevelOperator { element, cells, .. } = self.operator;
        let needed = element.nodes_of_side(cells);
        if line.len() != needed {
            return Err(MultigridError::Length { found: line.len(), needed });
        }
        let line = buffer_of(self.device, line)?;
        let args = [
            ("n", Arg::Param(cells as i64)),
            ("factor", Arg::F64(factor)),
            ("line", Arg::Buffer(&line)),
            ("b", Arg::Buffer(&self.b)),
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
        let needed = self.operator.size();
        if values.len() != needed {
            return Err(MultigridError::Length { found: values.len(), needed });
        }
        Ok(upload_values(self.device, &self.b, values)?)
    }

    /// Solves from a start of zero.
    ///
    /// # Errors
    /// No memory for another vector, a failing driver. That it does not converge is in the report.
    pub fn solve(&mut self) -> Result<LinearReport, MultigridError> {
        let cycle = VCycle::new(&self.hierarchy, Order::Forward);
        Ok(self.gmres.solve(&self.operator, Some(&cycle), &self.b, &self.x)?)
    }

    /// Seconds of a V-cycle on the finest level by the device's clock, on what its vectors hold.
    ///
    /// # Errors
    /// A failing driver.
    pub fn time_cycle(&self) -> Result<f64, MultigridError> {
        self.hierarchy.v_cycle(self.hierarchy.levels() - 1, Order::Forward)
    }

    /// The solution: all nodes in lexicographic order.
    ///
    /// # Errors
    /// A failing driver.
    pub fn solution(&self) -> Result<Vec<f64>, MultigridError> {
        Ok(download_values(self.device, &self.x)?)
    }

    /// The L2 norm of the difference between the solution and the product of a function of each
    /// coordinate, by a Gauss rule with k + 2 points a cell and axis.
    ///
    /// # Errors
    /// A failing driver.
    pub fn error(&self, function: impl Fn(f64) -> f64) -> Result<f64, MultigridError> {
        let LevelOperator { element, cells, .. } = self.operator;
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
        let of = [("x", &self.x), ("B", values), ("w", weights), ("exact", exact), ("squares", &squares)];
        run(self.device, &[Call::of(&self.squared_error, &[("n", cells)], &of)])?;
        let squares: Vec<f64> = download_values(self.device, &squares)?;
        Ok(squares.iter().sum::<f64>().sqrt())
    }
}

/// What is there in any case beside the hierarchy: solution, right-hand side, and the vectors of a
/// first iteration, two of the basis and a direction.
fn check_memory(
    device: &dyn Device,
    element: Element,
    cells: usize,
    of_cycle: HierarchyOptions,
) -> Result<(), MultigridError> {
    let vector = (element.nodes_of_side(cells) as u64).checked_pow(element.dimension.axes() as u32);
    let own = vector.and_then(|nodes| nodes.checked_mul(5 * 8)).unwrap_or(u64::MAX);
    fits(device, bytes(element, cells, of_cycle).saturating_add(own))
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
