//! Algebraic multigrid by smoothed aggregation, set up and cycled on the device.

mod aggregates;
mod coarsest;
mod level;
mod measured;
mod multiply;
mod near_kernel;
mod places;
mod sliced;
mod structure;

pub use near_kernel::Unknowns;

use crate::{BlockCsrOperator, BlockRows, CycleNumbers, Operator, Queue, SolveError, Spectrum, run};
use coarsest::Coarsest;
use kingpost_runtime::{Backend, Buffer, Device, available_memory, download_values};
use level::{Finder, Level, NumberKernels, prepare_cycles};
use near_kernel::NearKernel;
use rayon::{ThreadPoolBuilder, join};
use structure::StructureKernels;

/// Unknowns from which on a level is coarsened.
const COARSEST: usize = 256;
/// Levels, at most.
const LEVELS: usize = 20;
/// Strength of connections on the finest level; half of it on each next one.
const STRENGTH: f64 = 0.08;
/// The ratio of the eigenvalues that they reduce.
const RATIO: f64 = 10.0;

/// What a hierarchy consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct HierarchySize {
    /// Unknowns of each level, from the finest on.
    pub unknowns: Vec<usize>,
    /// Entries of the matrices of all levels, relative to those of the finest.
    pub operator_complexity: f64,
    /// Bytes on the device, with a copy of the matrix of the finest level.
    pub bytes: u64,
}

/// A level of an [`Amg`] with a coarser one. A cycle smooths by two steps of Chebyshev's iteration
/// before and after the coarser level, whose right-hand side is the residual times the transpose of
/// the interpolation.
pub struct AmgLevel<'a> {
    /// The inverse of the diagonal of its matrix.
    pub inverse_diagonal: &'a Buffer,
    /// What is smoothed: eigenvalues of the matrix times the inverse of its diagonal.
    pub spectrum: Spectrum,
    /// From the coarser level.
    pub interpolation: &'a BlockCsrOperator,
    /// The matrix of the coarser level.
    pub coarse: &'a BlockCsrOperator,
}

/// A hierarchy of coarser and coarser matrices on a device.
///
/// Nodes are aggregated with their neighbours; the near kernel of the operator on an aggregate is the
/// basis of its coarse node, and a step of Jacobi's method smooths the interpolation. Matrices of coarse
/// levels are Galerkin's. All this is found on the device, in blocks of a node by a node. A basis
/// vector that others of its aggregate span is zero, so that all nodes of a level have as many unknowns. Another
/// matrix of the pattern [renews](Self::renew) the numbers alone.
///
/// Cycles multiply by copies of all matrices in slices of rows, whose diagonal is one, and update
/// vectors in the same kernels: two steps of Chebyshev's iteration from zero are one product, a
/// residual is another.
///
/// # Source
/// Vaněk et al. 1996; Vaněk et al. 2001; smoothers Adams et al. 2003.
pub struct Amg {
    n: usize,
    side: usize,
    size: HierarchySize,
    near_kernel: NearKernel,
    structures: StructureKernels,
    /// Of the finest level, and of all others.
    numbers: [NumberKernels; 2],
    /// Of its cycles.
    of_cycles: CycleNumbers,
    levels: Vec<Level>,
    coarsest: Coarsest,
}

impl HierarchySize {
    /// Refuses a hierarchy that is larger than what is `available` at a place, in bytes, with those that it does
    /// not keep.
    fn fits(&self, passing: u64, (available, place): (u64, &str)) -> Result<(), SolveError> {
        let needed = self.bytes.saturating_add(passing);
        if needed <= available {
            return Ok(());
        }
        let what = format!("the hierarchy of {} unknowns", self.unknowns.first().unwrap_or(&0));
        Err(SolveError::Memory { what, needed, available, place: place.into() })
    }
}

/// Bytes that a device may have.
fn available(device: &dyn Device) -> u64 {
    match device.info().backend {
        Backend::C | Backend::OpenCl => available_memory().unwrap_or(u64::MAX),
        Backend::Cuda => device.info().global_mem_bytes,
    }
}

impl Amg {
    /// Compiles the kernels of hierarchies of such unknowns, wherever their points are, in threads of its own.
    /// Programs stay known, so that a hierarchy is found sooner if this runs concurrently with something else before.
    ///
    /// # Errors
    /// A device that refuses them.
    pub fn prepare(
        device: &dyn Device,
        unknowns: &Unknowns,
        numbers: CycleNumbers,
    ) -> Result<(), SolveError> {
        let (_, width) = NearKernel::compiled(device, unknowns)?;
        let sides = [unknowns.components.max(1), width];
        let compile = || Self::compile(device, sides, numbers).map(drop);
        // shared threads would keep a mesh that is numbered meanwhile waiting for whole proofs
        match ThreadPoolBuilder::new().build() {
            Ok(own) => own.install(compile),
            Err(_) => compile(),
        }
    }

    /// The kernels that find hierarchies whose finest matrix has blocks of `side` by `side`, and
    /// others of `width` by `width`; those of their cycles are compiled, too.
    fn compile(
        device: &dyn Device,
        [side, width]: [usize; 2],
        of_cycles: CycleNumbers,
    ) -> Result<(StructureKernels, [NumberKernels; 2]), SolveError> {
        let of = |side| {
            let numbers = || NumberKernels::new(device, side, width);
            let cycles = || {
                Coarsest::prepare(device, side)?;
                prepare_cycles(device, [side, width], of_cycles)
            };
            let (numbers, cycles) = join(numbers, cycles);
            cycles.and(numbers)
        };
        let numbers = || match side == width {
            // the second time all are known
            true => (of(side), NumberKernels::new(device, side, width)),
            false => join(|| of(side), || of(width)),
        };
        let (structures, (finest, coarse)) = join(|| StructureKernels::new(device), numbers);
        Ok((structures?, [finest?, coarse?]))
    }

    /// The hierarchy of a symmetric positive definite matrix, whose `unknowns` are moved by `u` (nothing where
    /// nothing moves).
    ///
    /// # Errors
    /// [`SolveError::Memory`] with the bytes of the hierarchy, before the numbers of a level are on the device;
    /// [`SolveError::Spectrum`] of a matrix that is not positive; [`SolveError::Length`] of unknowns that are not
    /// those of the matrix; what the device refuses.
    pub fn new(
        device: &dyn Device,
        matrix: &BlockRows<'_>,
        unknowns: &Unknowns,
        u: Option<&Buffer>,
    ) -> Result<Self, SolveError> {
        Self::of_numbers(device, (matrix, u), unknowns, CycleNumbers::F64)
    }

    /// The same, whose cycles multiply by matrices of given numbers.
    ///
    /// # Errors
    /// As [`Amg::new`].
    pub fn of_numbers(
        device: &dyn Device,
        (matrix, u): (&BlockRows<'_>, Option<&Buffer>),
        unknowns: &Unknowns,
        of_cycles: CycleNumbers,
    ) -> Result<Self, SolveError> {
        let (n, entries) = (matrix.unknowns(), matrix.entries() as f64);
        let near_kernel = NearKernel::new(device, unknowns, n)?;
        let width = near_kernel.vectors;
        let (structures, numbers) = Self::compile(device, [matrix.side, width], of_cycles)?;
        let mut size = HierarchySize { unknowns: vec![n], operator_complexity: 1.0, bytes: 0 };
        let near = near_kernel.of(device, u)?;
        let (mut levels, mut threshold): (Vec<Level>, f64) = (Vec::new(), STRENGTH);
        loop {
            let (own, near) = finer(&levels, matrix, &near)?;
            if own.unknowns() <= COARSEST || levels.len() + 1 >= LEVELS {
                break;
            }
            let numbers = &numbers[usize::from(!levels.is_empty())];
            let finder = Finder { device, structures: &structures, numbers, ratio: RATIO, of_cycles };
            let is_finest = levels.is_empty();
            let Some((structure, rows)) = finder.structure((&own, is_finest), threshold)? else { break };
            let [bytes, passing] = structure.bytes(numbers);
            size.bytes += bytes;
            size.fits(passing, (available(device), &device.info().name))?;
            size.unknowns.push(structure.sets.count * width);
            size.operator_complexity +=
                (structure.coarse.pattern.n_blocks * width * width) as f64 / entries.max(1.0);
            levels.push(finder.level(structure, is_finest, (&own, rows), near)?);
            threshold /= 2.0;
        }
        let (own, _) = finer(&levels, matrix, &near)?;
        let coarsest = Coarsest::new(device, &own, levels.is_empty(), RATIO)?;
        size.bytes += coarsest.bytes(own.unknowns());
        let side = matrix.side;
        Ok(Self { n, side, size, near_kernel, structures, numbers, of_cycles, levels, coarsest })
    }

    /// The hierarchy of another matrix of the same pattern: sets of nodes and the places of all blocks are kept,
    /// numbers are found again and overwrite those on the device, and largest eigenvalues are taken as the same part of what
    /// sums of rows bound them by. None if the matrix connects nodes that were not connected, which takes a
    /// [new](Self::new) hierarchy.
    ///
    /// # Errors
    /// [`SolveError::Length`] of a matrix of another size; as [`Amg::new`].
    pub fn renew(
        mut self,
        device: &dyn Device,
        matrix: &BlockRows<'_>,
        u: Option<&Buffer>,
    ) -> Result<Option<Self>, SolveError> {
        for (what, found, needed) in
            [("matrix", matrix.unknowns(), self.n), ("row of a block", matrix.side, self.side)]
        {
            if found != needed {
                return Err(SolveError::Length { what, found, needed });
            }
        }
        let near = self.near_kernel.of(device, u)?;
        let missing = device.allocate_unset(4)?;
        device.fill(&missing, 0)?;
        for level in 0..self.levels.len() {
            let numbers = &self.numbers[usize::from(level > 0)];
            let of_cycles = self.of_cycles;
            let finder = Finder { device, structures: &self.structures, numbers, ratio: RATIO, of_cycles };
            let (done, rest) = self.levels.split_at_mut(level);
            let (own, near) = finer(done, matrix, &near)?;
            finder.renew(&mut rest[0], &own, near, &missing)?;
        }
        let (own, _) = finer(&self.levels, matrix, &near)?;
        self.coarsest = Coarsest::new(device, &own, self.levels.is_empty(), RATIO)?;
        self.levels.iter_mut().try_for_each(|level| level.take_bound(device, RATIO))?;
        let is_same = download_values::<i32>(device, &missing)?.iter().all(|missing| *missing == 0);
        Ok(is_same.then_some(self))
    }

    /// Takes a matrix of the pattern, near that of the hierarchy, as what the finest level smooths.
    ///
    /// # Errors
    /// A failing driver.
    pub(crate) fn take(&self, device: &dyn Device, matrix: &BlockRows<'_>) -> Result<(), SolveError> {
        let calls: Vec<_> = self.levels.first().map(|level| level.take(matrix.values)).into_iter().collect();
        run(device, &calls)?;
        Ok(())
    }

    /// Its levels with a coarser one, from the finest on.
    pub fn levels(&self) -> impl Iterator<Item = AmgLevel<'_>> {
        self.levels.iter().map(|level| AmgLevel {
            inverse_diagonal: &level.matrices.inverse,
            spectrum: level.matrices.spectrum,
            interpolation: &level.matrices.interpolation,
            coarse: &level.matrices.coarse,
        })
    }

    /// What it consists of.
    #[must_use]
    pub const fn size(&self) -> &HierarchySize {
        &self.size
    }

    /// The launches of a V-cycle on a level from zero.
    pub(crate) fn cycle<'a>(
        &'a self,
        level: usize,
        operator: &'a dyn Operator,
        b: &'a Buffer,
        x: &'a Buffer,
        queue: &mut Queue<'a>,
    ) {
        let Some(own) = self.levels.get(level) else {
            return self.coarsest.solve(operator, b, x, queue);
        };
        own.descend(b, x, queue);
        self.cycle(level + 1, &own.matrices.coarse, &own.coarse_b, &own.coarse_x, queue);
        own.ascend(b, x, queue);
    }
}

/// The matrix below some levels and its near kernel: those that are given where there are none.
fn finer<'m>(
    levels: &'m [Level],
    matrix: &BlockRows<'m>,
    near: &'m Buffer,
) -> Result<(BlockRows<'m>, &'m Buffer), SolveError> {
    match levels.last() {
        None => Ok((*matrix, near)),
        Some(level) => Ok((level.matrices.coarse.block_rows()?, &level.matrices.near)),
    }
}

/// A V-cycle from zero as an operator: symmetric and positive definite if the matrix is.
pub struct AmgPreconditioner<'a> {
    /// The hierarchy.
    pub hierarchy: &'a Amg,
    /// The operator of the finest level, which is smoothed where nothing coarsens it.
    pub operator: &'a dyn Operator,
}

impl Operator for AmgPreconditioner<'_> {
    fn size(&self) -> usize {
        self.hierarchy.n
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        self.hierarchy.cycle(0, self.operator, x, y, queue);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
