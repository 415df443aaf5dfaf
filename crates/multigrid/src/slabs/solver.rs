//! Poisson's equation on several devices by GMRES around V-cycles.

use super::Exchanges;
use super::cycle::{Programs, SlabCycle, SlabOperator, is_in_slabs};
use super::level::Slab;
use crate::hierarchy::{bytes, fits};
use crate::kernels::Operation;
use crate::{Element, HierarchyOptions, MultigridError, Precision};
use purlin_runtime::{Arg, Buffer, Device, Executable, buffer_of, download_values};
use purlin_solve::{
    Call, Communicator, GmresOptions, LinearReport, PartGmres, PartOperator, SolveError, run,
};
use std::time::Instant;

/// How slabs are solved on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlabOptions {
    /// The numbers of the V-cycles.
    pub precision: Precision,
    /// The fewest layers of cells that a slab of a level below the finest one has, at least 2. Levels
    /// of fewer are on every device as a whole.
    pub least_layers: usize,
    /// When GMRES ends; its preconditioner stands on the right in any case.
    pub gmres: GmresOptions,
}

impl Default for SlabOptions {
    fn default() -> Self {
        Self { precision: Precision::Double, least_layers: 4, gmres: GmresOptions::default() }
    }
}

/// A slab with everything it needs on its device.
struct Part<'d> {
    device: &'d dyn Device,
    slab: Slab,
    cycle: SlabCycle<'d>,
    operator: SlabOperator,
    gmres: PartGmres<'d>,
    load: Executable,
    squared_error: Executable,
    x: Buffer,
    b: Buffer,
}

/// GMRES in double precision around V-cycles for Poisson's equation on the unit square or cube, each
/// device with a slab of the mesh. Iterations are those of
/// [`PreconditionedSolver`](crate::PreconditionedSolver) up to the order in which numbers are added.
///
/// # Source
/// Cui et al. 2024, §4.2.
pub struct SlabSolver<'d> {
    element: Element,
    cells: usize,
    parts: Vec<Part<'d>>,
    communicators: Vec<Box<dyn Communicator + 'd>>,
}

impl<'d> SlabSolver<'d> {
    /// Divides the mesh with `cells` cells a side into as many slabs as there are devices, and sets each
    /// up, all at once. The communicators are those of the devices, in their order.
    ///
    /// # Errors
    /// Cells that are no power of two from 4 on; a number of devices that is none, or that leaves a slab
    /// with one layer of cells; vectors that do not fit, before one is allocated; a device that refuses.
    pub fn new(
        devices: &[&'d dyn Device],
        communicators: Vec<Box<dyn Communicator + 'd>>,
        element: Element,
        cells: usize,
        options: SlabOptions,
    ) -> Result<Self, MultigridError> {
        check(cells, devices.len())?;
        for device in devices {
            let asked = devices.iter().filter(|other| std::ptr::addr_eq(**other, *device)).count() as u64;
            fits(*device, asked * bytes_of_part(element, cells, devices.len(), options))?;
        }
        let programs = Programs::new(devices, element, options.precision)?;
        let programs = &programs;
        let (made, communicators): (Vec<_>, Vec<_>) =
            each(devices.iter().copied().zip(communicators), |(device, communicator)| {
                let made = Part::new(device, &*communicator, element, cells, options, programs)?;
                Ok((made, communicator))
            })?
            .into_iter()
            .unzip();
        Ok(Self { element, cells, parts: made, communicators })
    }

    /// What devices do while numbers are under way.
    pub fn set_exchanges(&mut self, exchanges: Exchanges) {
        self.parts.iter_mut().for_each(|part| part.cycle.exchanges = exchanges);
    }

    /// Sets the right-hand side to `factor` times the products of a line's entries along each axis.
    ///
    /// # Shapes and units
    /// `line`: [nodes of a side], zero at both ends.
    ///
    /// # Errors
    /// A line of another length, a failing driver.
    pub fn set_product(&self, factor: f64, line: &[f64]) -> Result<(), MultigridError> {
        let needed = self.element.nodes_of_side(self.cells);
        if line.len() != needed {
            return Err(MultigridError::Length { found: line.len(), needed });
        }
        for Part { device, slab, load, b, .. } in &self.parts {
            let first = slab.first_plane(self.element);
            let column = &line[first..first + self.element.nodes_of_side(slab.layers())];
            let (line, column) = (buffer_of(*device, line)?, buffer_of(*device, column)?);
            let args = [
                ("n", Arg::Param(self.cells as i64)),
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
            let Part { cycle, operator, gmres, x, b, .. } = part;
            Ok(gmres.solve(&**communicator, operator, cycle, b, x)?)
        })?;
        Ok(reports.swap_remove(0))
    }

    /// Seconds of V-cycles for the right-hand side, each by the wall clock of the slowest device; the
    /// solution is lost.
    ///
    /// # Errors
    /// A failing driver.
    pub fn time_cycles(&mut self, runs: usize) -> Result<Vec<f64>, MultigridError> {
        let parts = self.parts.iter_mut().zip(&mut self.communicators);
        let all = each(parts, |(Part { device, cycle, x, b, .. }, communicator)| {
            let communicator = &**communicator;
            let sum = device.allocate(8)?;
            let mut seconds = Vec::new();
            for _ in 0..runs {
                device.fill(&sum, 0)?;
                communicator.sum(&[&sum], 0)?; // all start at once
                communicator.wait()?;
                let begin = Instant::now();
                cycle.apply(communicator, b, x)?;
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
        let mut all = Vec::with_capacity(self.element.nodes(self.cells));
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
        let rule = self.line().rule(self.element.degree + 2);
        let h = 1.0 / self.cells as f64;
        let at = |cell: usize| rule.points.iter().map(move |x| (cell as f64 + x) * h);
        let exact: Vec<f64> = (0..self.cells).flat_map(at).map(function).collect();
        let weights: Vec<f64> = rule.weights.iter().map(|w| w * h).collect();
        let mut sum = 0.0;
        for Part { device, slab, squared_error, x, .. } in &self.parts {
            let per_layer = rule.points.len();
            let column = &exact[slab.first * per_layer..(slab.first + slab.own) * per_layer];
            let rows = slab.own * self.cells.pow(self.element.dimension.axes() as u32 - 2);
            let squares = buffer_of(*device, &vec![0.0; rows])?;
            let arrays = [
                buffer_of(*device, &rule.values.entries)?,
                buffer_of(*device, &weights)?,
                buffer_of(*device, &exact)?,
                buffer_of(*device, column)?,
            ];
            let [values, weights, exact, column] = &arrays;
            let sizes = [("n", self.cells), ("z", slab.below), ("nz", slab.own), ("nl", slab.layers())];
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
    pub fn line(&self) -> &crate::Line {
        self.parts[0].cycle.coarse.line()
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
        let cycle = &self.parts[0].cycle;
        [cycle.n_levels(), cycle.coarse.levels()]
    }

    /// Bytes that all parts send to each other in a V-cycle.
    #[must_use]
    pub fn bytes_of_cycle(&self) -> u64 {
        self.parts.iter().map(|part| 8 * part.cycle.sent() as u64).sum()
    }
}

impl<'d> Part<'d> {
    fn new(
        device: &'d dyn Device,
        communicator: &dyn Communicator,
        element: Element,
        cells: usize,
        SlabOptions { precision, least_layers, gmres }: SlabOptions,
        programs: &Programs,
    ) -> Result<Self, MultigridError> {
        let levels = (cells, precision, least_layers.max(2));
        let cycle = SlabCycle::new(device, element, levels, communicator, programs)?;
        let slab = cycle.finest().slab;
        let vector = || device.allocate(8 * slab.nodes(element) as u64);
        Ok(Self {
            device,
            slab,
            operator: SlabOperator::new(device, element, slab, programs)?,
            gmres: PartGmres::new(device, slab.nodes(element), slab.owned(element), gmres)?,
            load: programs.compile(device, Operation::Load, Precision::Double)?,
            squared_error: programs.compile(device, Operation::SquaredError, Precision::Double)?,
            x: vector()?,
            b: vector()?,
            cycle,
        })
    }
}

/// Whether slabs have an even number of layers each, with a level below them.
fn check(cells: usize, parts: usize) -> Result<(), MultigridError> {
    if cells < 4 || !cells.is_power_of_two() {
        let nearest = cells.max(4).checked_next_power_of_two().unwrap_or(4);
        return Err(MultigridError::Cells { cells, nearest });
    }
    if parts == 0 || !parts.is_power_of_two() || 2 * parts > cells {
        let nearest = 1 << parts.clamp(1, cells / 2).ilog2();
        return Err(MultigridError::Slabs { cells, parts, nearest });
    }
    Ok(())
}

/// Bytes of the vectors of a part: three of each level, five of the solver, and the levels below.
fn bytes_of_part(element: Element, cells: usize, parts: usize, options: SlabOptions) -> u64 {
    let numbers = options.precision.bytes();
    let of_level = |cells: usize| {
        let layer = (element.nodes_of_side(cells) as u64).checked_pow(element.dimension.axes() as u32 - 1);
        layer.and_then(|plane| plane.checked_mul(element.nodes_of_side(cells / parts + 2) as u64))
    };
    let mut in_slabs = std::iter::successors(Some(cells), |n| Some(n / 2))
        .take_while(|n| is_in_slabs(*n, cells, parts, options.least_layers.max(2)));
    let below = in_slabs.clone().last().map_or(2, |n| n / 2);
    let of_slabs = in_slabs.try_fold(0_u64, |sum, n| sum.checked_add(of_level(n)?.checked_mul(3 * numbers)?));
    let of_solver = of_level(cells).and_then(|nodes| nodes.checked_mul(5 * 8));
    let hierarchy = HierarchyOptions { precision: options.precision, ..HierarchyOptions::default() };
    let of_hierarchy = bytes(element, below, false, hierarchy);
    of_slabs.zip(of_solver).and_then(|(a, b)| a.checked_add(b)?.checked_add(of_hierarchy)).unwrap_or(u64::MAX)
}

/// Does something for each part in a thread of its own. Of errors, the first that has a cause of its own.
fn each<I: Send, T: Send>(
    parts: impl Iterator<Item = I>,
    work: impl Fn(I) -> Result<T, MultigridError> + Sync,
) -> Result<Vec<T>, MultigridError> {
    let work = &work;
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        let joined = threads.into_iter().enumerate();
        let ended = |part| Err(MultigridError::Solve(SolveError::PartEnded { part }));
        joined.map(|(part, thread)| thread.join().unwrap_or_else(|_| ended(part))).collect()
    });
    let is_other =
        |error: &MultigridError| matches!(error, MultigridError::Solve(SolveError::PartEnded { .. }));
    let (mut done, mut ended) = (Vec::new(), None);
    for result in results {
        match result {
            Ok(value) => done.push(value),
            Err(error) if is_other(&error) => ended = Some(error),
            Err(error) => return Err(error),
        }
    }
    ended.map_or(Ok(done), Err)
}
