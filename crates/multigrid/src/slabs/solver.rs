//! Poisson's equation on several devices by GMRES around V-cycles.

use super::Exchanges;
use super::cycle::Programs;
use super::level::{Slab, SlabMesh};
use crate::hierarchy::fits;
use crate::kernels::Operation;
use crate::{Element, Hierarchy, LevelOperator, Line, MultigridError, Order, Precision, VCycle};
use kingpost_runtime::{Arg, Buffer, Device, Executable, buffer_of, download_values};
use kingpost_solve::{
    Call, Communicator, Gmres, GmresOptions, LinearReport, Operator, PreconditionerSide, Queue, SolveError,
    in_parts, run,
};
use std::time::Instant;

/// How slabs are solved on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlabOptions {
    /// The numbers of the V-cycles.
    pub precision: Precision,
    /// The fewest layers of cells that a slab of a level below the finest one has, at least 2.
    /// Levels of fewer are on every device as a whole.
    pub least_layers: usize,
    /// When GMRES ends; its preconditioner stands on the right in any case.
    pub gmres: GmresOptions,
    /// Unit squares or cubes after each other along the slowest axis, at least 1: the domain is so
    /// many times as long along it.
    pub height: usize,
}

impl Default for SlabOptions {
    fn default() -> Self {
        Self { precision: Precision::Double, least_layers: 4, gmres: GmresOptions::default(), height: 1 }
    }
}

/// A slab with everything it needs on its device.
struct Part<'d> {
    device: &'d dyn Device,
    slab: Slab,
    hierarchy: Hierarchy<'d>,
    operator: LevelOperator,
    gmres: Gmres<'d>,
    load: Executable,
    squared_error: Executable,
    x: Buffer,
    b: Buffer,
}

/// GMRES in double precision around V-cycles for Poisson's equation on the unit square or cube, or
/// on several after each other, each device with a slab of the mesh. Iterations are those of
/// [`PreconditionedSolver`](crate::PreconditionedSolver) up to the order in which numbers are
/// added.
///
/// # Source
/// Cui et al. 2024, §4.2.
pub struct SlabSolver<'d> {
    element: Element,
    mesh: SlabMesh,
    line: Line,
    parts: Vec<Part<'d>>,
    communicators: Vec<Box<dyn Communicator + 'd>>,
}

impl<'d> SlabSolver<'d> {
    /// Divides the mesh with `cells` cells a side into as many slabs as there are devices, and sets
    /// each up, all at once. The communicators are those of the devices, in their order.
    ///
    /// # Errors
    /// Cells that are no power of two from 4 on; a number of devices that does not leave each with
    /// an even number of layers of cells; vectors that do not fit, before one is allocated; a
    /// device that refuses.
    pub fn new(
        devices: &[&'d dyn Device],
        communicators: Vec<Box<dyn Communicator + 'd>>,
        element: Element,
        cells: usize,
        options: SlabOptions,
    ) -> Result<Self, MultigridError> {
        let mesh = SlabMesh { cells, height: options.height };
        check(mesh, devices.len())?;
        for device in devices {
            let asked = devices.iter().filter(|other| std::ptr::addr_eq(**other, *device)).count() as u64;
            fits(*device, asked.saturating_mul(bytes_of_part(element, mesh, devices.len(), options)))?;
        }
        let programs = Programs::new(devices, element, options.precision)?;
        let programs = &programs;
        let (made, communicators): (Vec<_>, Vec<_>) =
            each(devices.iter().copied().zip(communicators), |(device, communicator)| {
                let made = Part::new(device, &*communicator, element, mesh, options, programs)?;
                Ok((made, communicator))
            })?
            .into_iter()
            .unzip();
        Ok(Self { element, mesh, line: Line::new(element.degree)?, parts: made, communicators })
    }

    /// What devices do while numbers are under way.
    pub fn set_exchanges(&mut self, exchanges: Exchanges) {
        for neighbours in self.parts.iter_mut().filter_map(|part| part.hierarchy.neighbours.as_mut()) {
            neighbours.exchanges = exchanges;
        }
    }

    /// Sets the right-hand side to the integrals of `factor` times the product of a function of
    /// each coordinate.
    ///
    /// # Errors
    /// A failing driver.
    pub fn set_product(&self, factor: f64, function: impl Fn(f64) -> f64) -> Result<(), MultigridError> {
        let (cells, layers) = self.mesh.at(self.mesh.cells);
        let line = self.line.load_over(cells, 1.0 / cells as f64, &function);
        let whole = self.line.load_over(layers, 1.0 / cells as f64, &function);
        for Part { device, slab, load, b, .. } in &self.parts {
            let first = slab.first_plane(self.element);
            let column = &whole[first..first + self.element.nodes_of_side(slab.layers())];
            let (line, column) = (buffer_of(*device, &line)?, buffer_of(*device, column)?);
            let args = [
                ("n", Arg::Param(cells as i64)),
                ("nl", Arg::Param(slab.layers() as i64)),
                ("factor", Arg::F64(factor)),
                ("line", Arg::Buffer(&line)),
                ("column", Arg::Buffer(&column)),
                ("b", Arg::Buffer(b)),
            ];
            device.launch(load, &args)?;
        }
        Ok(())
    }

    /// Solves, each part in a thread of its own. Seconds are by the wall clock.
    ///
    /// # Errors
    /// No memory for another vector, a failing driver. That it does not converge is in the report.
    pub fn solve(&mut self) -> Result<LinearReport, MultigridError> {
        let parts = self.parts.iter_mut().zip(&mut self.communicators);
        let mut reports = each(parts, |(part, communicator)| {
            let Part { hierarchy, operator, gmres, x, b, .. } = part;
            let cycle = VCycle::new(hierarchy, Order::Forward);
            Ok(gmres.solve_over(&**communicator, operator, Some(&cycle), b, x)?)
        })?;
        Ok(reports.swap_remove(0))
    }

    /// Seconds of V-cycles for the right-hand side, each by the wall clock of the slowest device;
    /// the solution is lost.
    ///
    /// # Errors
    /// A failing driver.
    pub fn time_cycles(&mut self, runs: usize) -> Result<Vec<f64>, MultigridError> {
        let parts = self.parts.iter_mut().zip(&mut self.communicators);
        let all = each(parts, |(Part { device, hierarchy, x, b, .. }, communicator)| {
            let cycle = VCycle::new(hierarchy, Order::Forward);
            let communicator = &**communicator;
            let sum = device.allocate(8)?;
            let mut seconds = Vec::new();
            for _ in 0..runs {
                device.fill(&sum, 0)?;
                let mut queue = Queue::new();
                queue.sum(&sum, 0); // all start at once
                communicator.perform(&queue)?;
                communicator.wait()?;
                let begin = Instant::now();
                let mut queue = Queue::new();
                cycle.apply(b, x, &mut queue);
                communicator.perform(&queue)?;
                communicator.wait()?;
                seconds.push(begin.elapsed().as_secs_f64());
            }
            Ok(seconds)
        })?;
        Ok((0..runs).map(|at| all.iter().map(|s| s[at]).fold(0.0, f64::max)).collect())
    }

    /// The solution: all nodes in lexicographic order, copied from the devices.
    ///
    /// # Errors
    /// A failing driver.
    pub fn solution(&self) -> Result<Vec<f64>, MultigridError> {
        let mut all = Vec::with_capacity(self.mesh.nodes(self.element, self.mesh.cells));
        for Part { device, slab, x, .. } in &self.parts {
            let values: Vec<f64> = download_values(*device, x)?;
            all.extend_from_slice(&values[slab.owned(self.element)]);
        }
        Ok(all)
    }

    /// The L2 norm of the difference between the solution and the product of a function of each
    /// coordinate, by a Gauss rule with k + 2 points a cell and axis.
    ///
    /// # Errors
    /// A failing driver.
    pub fn error(&self, function: impl Fn(f64) -> f64) -> Result<f64, MultigridError> {
        let rule = self.line.rule(self.element.degree + 2);
        let (cells, layers) = self.mesh.at(self.mesh.cells);
        let h = 1.0 / cells as f64;
        let at = |cell: usize| rule.points.iter().map(move |x| (cell as f64 + x) * h);
        let whole: Vec<f64> = (0..layers).flat_map(at).map(function).collect();
        let exact = &whole[..cells * rule.points.len()];
        let weights: Vec<f64> = rule.weights.iter().map(|w| w * h).collect();
        let mut sum = 0.0;
        for Part { device, slab, squared_error, x, .. } in &self.parts {
            let per_layer = rule.points.len();
            let column = &whole[slab.first * per_layer..(slab.first + slab.own) * per_layer];
            let rows = slab.own * cells.pow(self.element.dimension.axes() as u32 - 2);
            let squares = buffer_of(*device, &vec![0.0; rows])?;
            let arrays = [
                buffer_of(*device, &rule.values.entries)?,
                buffer_of(*device, &weights)?,
                buffer_of(*device, exact)?,
                buffer_of(*device, column)?,
            ];
            let [values, weights, exact, column] = &arrays;
            let sizes = [("n", cells), ("z", slab.below), ("nz", slab.own), ("nl", slab.layers())];
            let of = [
                ("x", x),
                ("B", values),
                ("w", weights),
                ("exact", exact),
                ("column", column),
                ("squares", &squares),
            ];
            run(*device, &[Call::of(squared_error, &sizes, &of)])?;
            sum += download_values::<f64>(*device, &squares)?.iter().sum::<f64>();
        }
        Ok(sum.sqrt())
    }

    /// The matrices of one dimension.
    #[must_use]
    pub const fn line(&self) -> &Line {
        &self.line
    }

    /// Nodes of the mesh, those at the boundary among them.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.mesh.nodes(self.element, self.mesh.cells)
    }

    /// Nodes that each part owns, and those of its neighbours that it has.
    #[must_use]
    pub fn parts(&self) -> Vec<[usize; 2]> {
        let of = |slab: Slab| {
            let owned = slab.owned(self.element).len();
            [owned, slab.nodes(self.element) - owned]
        };
        self.parts.iter().map(|part| of(part.slab)).collect()
    }

    /// Levels in slabs, and levels that every device has as a whole.
    #[must_use]
    pub fn levels(&self) -> [usize; 2] {
        self.parts[0].hierarchy.n_levels()
    }

    /// Bytes that all parts send to each other in a V-cycle.
    #[must_use]
    pub fn bytes_of_cycle(&self) -> u64 {
        self.parts.iter().map(|part| 8 * part.hierarchy.sent() as u64).sum()
    }
}

impl<'d> Part<'d> {
    fn new(
        device: &'d dyn Device,
        communicator: &dyn Communicator,
        element: Element,
        mesh: SlabMesh,
        SlabOptions { precision, least_layers, gmres, .. }: SlabOptions,
        programs: &Programs,
    ) -> Result<Self, MultigridError> {
        let levels = (mesh, precision, least_layers.max(2));
        let hierarchy = Hierarchy::of_part(device, element, levels, communicator, programs)?;
        let slab = hierarchy.at(hierarchy.levels() - 1).slab;
        let residual = programs.compile(device, Operation::Residual, Precision::Double)?;
        let vector = || device.allocate(8 * slab.nodes(element) as u64);
        Ok(Self {
            device,
            slab,
            operator: LevelOperator::of_slab(device, element, slab, residual)?,
            gmres: Gmres::of_part(
                device,
                slab.nodes(element),
                slab.owned(element),
                GmresOptions { side: PreconditionerSide::Right, ..gmres },
            )?,
            load: programs.compile(device, Operation::Load, Precision::Double)?,
            squared_error: programs.compile(device, Operation::SquaredError, Precision::Double)?,
            x: vector()?,
            b: vector()?,
            hierarchy,
        })
    }
}

/// Whether slabs have an even number of layers each, with a level below them.
fn check(SlabMesh { cells, height }: SlabMesh, parts: usize) -> Result<(), MultigridError> {
    if cells < 4 || !cells.is_power_of_two() {
        let nearest = cells.max(4).checked_next_power_of_two().unwrap_or(4);
        return Err(MultigridError::Cells { cells, nearest });
    }
    let layers = cells.checked_mul(height).unwrap_or(0);
    if parts == 0 || layers == 0 || !layers.is_multiple_of(2 * parts) {
        let nearest = 1 << parts.clamp(1, cells / 2).ilog2();
        return Err(MultigridError::Slabs { cells, layers, parts, nearest });
    }
    Ok(())
}

/// Bytes of the vectors of a part: three of each level, five of the solver.
fn bytes_of_part(element: Element, mesh: SlabMesh, parts: usize, options: SlabOptions) -> u64 {
    let numbers = 3 * options.precision.bytes();
    let of_layers = |cells: usize, layers: usize| {
        let plane = (element.nodes_of_side(cells) as u64).checked_pow(element.dimension.axes() as u32 - 1);
        plane.and_then(|plane| plane.checked_mul(element.nodes_of_side(layers) as u64))
    };
    let of_slab = |cells: usize| of_layers(cells, mesh.height * cells / parts + 2);
    let (in_slabs, whole) = mesh.levels(parts, options.least_layers.max(2));
    let of_slabs = in_slabs.iter().map(|cells| of_slab(*cells)?.checked_mul(numbers));
    let of_whole = whole.iter().map(|cells| of_layers(*cells, mesh.height * cells)?.checked_mul(numbers));
    let of_solver = of_slab(mesh.cells).and_then(|nodes| nodes.checked_mul(5 * 8));
    let all = of_slabs.chain(of_whole).chain([of_solver]);
    all.sum::<Option<u64>>().unwrap_or(u64::MAX)
}

/// Does something for each part in a thread of its own.
fn each<I: Send, T: Send>(
    parts: impl Iterator<Item = I>,
    work: impl Fn(I) -> Result<T, MultigridError> + Sync,
) -> Result<Vec<T>, MultigridError> {
    let has_ended = |error: &_| matches!(error, MultigridError::Solve(SolveError::PartEnded { .. }));
    in_parts(parts, &work, &work, has_ended)
}
