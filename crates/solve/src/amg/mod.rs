//! Algebraic multigrid by smoothed aggregation: set up on the host, cycled on the device.

mod aggregates;
mod blocks;
mod near_kernel;
mod setup;

pub use near_kernel::Unknowns;

use crate::sparse::SparseMatrix;
use crate::texts::{compiled, text};
use crate::{Call, Chebyshev, Operator, Queue, Smoothing, SolveError, Spectrum};
use blocks::{BlockMatrix, Nodes, Pattern};
use kingpost_runtime::{Backend, Buffer, Device, Executable, available_memory, buffer_of, upload_values};
use setup::{Coarsest, Levels, SmoothedLevel, Structure};
use std::sync::Arc;

/// Steps of Chebyshev's iteration before and after the coarser level.
const STEPS: usize = 2;
/// Steps where there is none.
const STEPS_ALONE: usize = 4;
/// The ratio of the eigenvalues that they reduce.
const RATIO: f64 = 10.0;

/// A level on the device with a coarser one.
struct DeviceLevel {
    /// None on the finest level, whose matrix is the solver's.
    matrix: Option<SparseMatrix>,
    inverse: Buffer,
    spectrum: Spectrum,
    smoother: Chebyshev,
    interpolation: SparseMatrix,
    restriction: SparseMatrix,
    q: Buffer,
    r: Buffer,
    /// Right-hand side and solution of the coarser level.
    coarse_b: Buffer,
    coarse_x: Buffer,
}

/// The coarsest level on the device.
enum DeviceCoarsest {
    /// Its unknowns, and the inverse of its matrix.
    Inverse(usize, Buffer),
    /// Chebyshev's iteration.
    Smoothed(Box<DeviceSmoother>),
}

/// What a level without a coarser one is smoothed with.
struct DeviceSmoother {
    /// None on the finest level, whose matrix is the solver's.
    matrix: Option<SparseMatrix>,
    inverse: Buffer,
    spectrum: Spectrum,
    smoother: Chebyshev,
}

/// What a hierarchy consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct HierarchySize {
    /// Unknowns of each level, from the finest on.
    pub unknowns: Vec<usize>,
    /// Entries of the matrices of all levels, relative to those of the finest.
    pub operator_complexity: f64,
    /// Bytes on the device, without the matrix of the finest level.
    pub bytes: u64,
}

/// A hierarchy of coarser and coarser matrices on a device.
///
/// Nodes are aggregated with their neighbours; the near kernel of the operator on an aggregate is the
/// basis of its coarse node, and a step of Jacobi's method smooths the interpolation. Matrices of coarse
/// levels are Galerkin's. All this is done on the host, on blocks of a node by a node, by all threads;
/// the cycle runs on the device. Another matrix of the pattern [renews](Self::renew) the numbers alone.
///
/// # Source
/// Vaněk et al. 1996; smoothers Adams et al. 2003.
pub struct Amg {
    n: usize,
    size: HierarchySize,
    levels: Vec<DeviceLevel>,
    subtract: Executable,
    dense: Executable,
    coarsest: DeviceCoarsest,
    /// What is kept for other matrices.
    structures: Vec<Arc<Structure>>,
    finest: Arc<Pattern>,
}

/// Bytes of a matrix by rows.
fn bytes_of(pattern: &Pattern) -> u64 {
    4 * (pattern.rows().unknowns() as u64 + 1) + 12 * pattern.numbers() as u64
}

impl HierarchySize {
    fn of(n: usize, entries: usize, levels: &Levels) -> Self {
        let mut unknowns = vec![n];
        let (mut all, mut bytes) = (entries as u64, 0);
        for level in &levels.levels {
            let [interpolation, restriction] =
                [&level.interpolation, &level.restriction].map(|matrix| matrix.pattern());
            let (fine, below) = (interpolation.rows().unknowns(), interpolation.columns().unknowns());
            unknowns.push(below);
            all += level.matrix.as_ref().map_or(0, |matrix| matrix.pattern().numbers() as u64);
            bytes += level.matrix.as_ref().map_or(0, |matrix| bytes_of(matrix.pattern()));
            bytes += bytes_of(interpolation) + bytes_of(restriction);
            bytes += 8 * (6 * fine as u64 + 2 * below as u64);
        }
        match &levels.coarsest {
            Coarsest::Inverse(inverse) => {
                let square = (inverse.nrows() as u64).pow(2);
                all += if levels.levels.is_empty() { 0 } else { square };
                bytes += 8 * square;
            }
            Coarsest::Smoothed(SmoothedLevel { matrix, inverse, .. }) => {
                all += matrix.as_ref().map_or(0, |matrix| matrix.pattern().numbers() as u64);
                bytes += matrix.as_ref().map_or(0, |matrix| bytes_of(matrix.pattern()));
                bytes += 8 * 4 * inverse.len() as u64;
            }
        }
        Self { unknowns, operator_complexity: all as f64 / (entries as f64).max(1.0), bytes }
    }

    /// Refuses a hierarchy that is larger than what is `available` at a place, in bytes.
    fn fits(&self, available: u64, place: &str) -> Result<(), SolveError> {
        if self.bytes <= available {
            return Ok(());
        }
        let what = format!("the hierarchy of {} unknowns", self.unknowns.first().unwrap_or(&0));
        Err(SolveError::Memory { what, needed: self.bytes, available, place: place.into() })
    }
}

/// A matrix by rows on the host.
#[derive(Clone, Copy, Debug)]
pub struct HostMatrix<'m> {
    /// First entry of each row, and the end of the last.
    pub row_starts: &'m [i32],
    /// Column of each entry.
    pub columns: &'m [i32],
    /// The entries.
    pub values: &'m [f64],
}

impl HostMatrix<'_> {
    fn rows(&self) -> usize {
        self.row_starts.len().saturating_sub(1)
    }

    fn near_kernel(&self, unknowns: &Unknowns, u: &[f64]) -> near_kernel::NearKernel {
        unknowns.near_kernel(self.rows(), if unknowns.are_displacements() { u } else { &[] })
    }

    fn blocks(&self, pattern: Arc<Pattern>) -> BlockMatrix {
        BlockMatrix::of_scalars(pattern, self.row_starts, self.columns, self.values)
    }
}

impl Amg {
    /// The hierarchy of a symmetric positive definite matrix, whose `unknowns` are moved by `u` (empty
    /// where nothing moves).
    ///
    /// # Errors
    /// [`SolveError::Memory`] with the bytes of the hierarchy, before any of it is on the device;
    /// [`SolveError::Spectrum`] of a matrix that is not positive; what the device refuses.
    pub fn new(
        device: &dyn Device,
        matrix: &HostMatrix<'_>,
        unknowns: &Unknowns,
        u: &[f64],
    ) -> Result<Self, SolveError> {
        let n = matrix.rows();
        let nodes = Nodes::uniform(n, unknowns.components);
        let finest = Arc::new(Pattern::of_scalars(&nodes, matrix.row_starts, matrix.columns));
        let levels = Levels::new(matrix.blocks(finest.clone()), matrix.near_kernel(unknowns, u), RATIO)?;
        let size = HierarchySize::of(n, matrix.values.len(), &levels);
        let available = match device.info().backend {
            Backend::C | Backend::OpenCl => available_memory().unwrap_or(u64::MAX),
            Backend::Cuda => device.info().global_mem_bytes,
        };
        size.fits(available, &device.info().name)?;
        let on_device = levels.levels.iter().map(|level| DeviceLevel::new(device, level));
        Ok(Self {
            n,
            size,
            levels: on_device.collect::<Result<_, _>>()?,
            subtract: compiled(device, text!("subtract"))?,
            dense: compiled(device, text!("dense_product"))?,
            coarsest: DeviceCoarsest::new(device, &levels.coarsest)?,
            structures: levels.levels.into_iter().map(|level| level.structure).collect(),
            finest,
        })
    }

    /// Makes it that of another matrix of the same pattern: sets of nodes and the places of all entries are
    /// kept, numbers are found again and overwrite those on the device. False, with nothing done, if they
    /// do not fit the matrix, which takes a [new](Self::new) hierarchy then.
    ///
    /// # Errors
    /// [`SolveError::Length`] of a matrix of another size; as [`Amg::new`].
    pub fn renew(
        &mut self,
        device: &dyn Device,
        matrix: &HostMatrix<'_>,
        unknowns: &Unknowns,
        u: &[f64],
    ) -> Result<bool, SolveError> {
        if matrix.rows() != self.n {
            return Err(SolveError::Length { what: "matrix", found: matrix.rows(), needed: self.n });
        }
        let near_kernel = matrix.near_kernel(unknowns, u);
        let blocks = matrix.blocks(self.finest.clone());
        let Some(levels) = Levels::of_structures(&self.structures, blocks, near_kernel, RATIO)? else {
            return Ok(false);
        };
        for (own, level) in self.levels.iter_mut().zip(&levels.levels) {
            own.renew(device, level)?;
        }
        self.coarsest.renew(device, &levels.coarsest)?;
        Ok(true)
    }

    /// What it consists of.
    #[must_use]
    pub const fn size(&self) -> &HierarchySize {
        &self.size
    }

    /// The launches of a V-cycle on a level from zero.
    fn cycle<'a>(
        &'a self,
        level: usize,
        operator: &'a dyn Operator,
        b: &'a Buffer,
        x: &'a Buffer,
        queue: &mut Queue<'a>,
    ) {
        let Some(own) = self.levels.get(level) else {
            return self.cycle_on_coarsest(operator, b, x, queue);
        };
        let operator: &dyn Operator = match &own.matrix {
            Some(matrix) => matrix,
            None => operator,
        };
        let smoothing = Smoothing { operator, inverse: &own.inverse, spectrum: own.spectrum, steps: STEPS };
        own.smoother.smooth(&smoothing, true, b, x, queue);
        operator.apply(x, &own.q, queue);
        let n = [("n", own.interpolation.rows)];
        queue.push(Call::of(&self.subtract, &n, &[("b", b), ("q", &own.q), ("r", &own.r)]));
        queue.push(own.restriction.times(&own.r, &own.coarse_b));
        self.cycle(level + 1, operator, &own.coarse_b, &own.coarse_x, queue);
        queue.push(own.interpolation.add_times(&own.coarse_x, x));
        own.smoother.smooth(&smoothing, false, b, x, queue);
    }
}

impl Amg {
    /// The launches on the coarsest level from zero.
    fn cycle_on_coarsest<'a>(
        &'a self,
        operator: &'a dyn Operator,
        b: &'a Buffer,
        x: &'a Buffer,
        queue: &mut Queue<'a>,
    ) {
        match &self.coarsest {
            DeviceCoarsest::Inverse(n, inverse) => {
                queue.push(Call::of(&self.dense, &[("n", *n)], &[("a", inverse), ("x", b), ("y", x)]));
            }
            DeviceCoarsest::Smoothed(own) => {
                let operator = own.matrix.as_ref().map_or(operator, |matrix| matrix as &dyn Operator);
                let (inverse, spectrum) = (&own.inverse, own.spectrum);
                let smoothing = Smoothing { operator, inverse, spectrum, steps: STEPS_ALONE };
                own.smoother.smooth(&smoothing, true, b, x, queue);
            }
        }
    }
}

impl DeviceCoarsest {
    fn new(device: &dyn Device, coarsest: &Coarsest) -> Result<Self, SolveError> {
        Ok(match coarsest {
            Coarsest::Inverse(inverse) => {
                Self::Inverse(inverse.nrows(), buffer_of(device, inverse.as_slice())?)
            }
            Coarsest::Smoothed(SmoothedLevel { matrix, inverse, spectrum }) => {
                Self::Smoothed(Box::new(DeviceSmoother {
                    matrix: matrix.as_ref().map(|matrix| upload(device, matrix)).transpose()?,
                    inverse: buffer_of(device, inverse)?,
                    spectrum: *spectrum,
                    smoother: Chebyshev::new(device, inverse.len())?,
                }))
            }
        })
    }

    /// Takes the numbers of another matrix, if they fit where the own ones are.
    fn renew(&mut self, device: &dyn Device, coarsest: &Coarsest) -> Result<(), SolveError> {
        match (&mut *self, coarsest) {
            (Self::Inverse(n, own), Coarsest::Inverse(inverse)) if *n == inverse.nrows() => {
                Ok(upload_values(device, own, inverse.as_slice())?)
            }
            (Self::Smoothed(own), Coarsest::Smoothed(SmoothedLevel { matrix, inverse, spectrum })) => {
                own.spectrum = *spectrum;
                upload_values(device, &own.inverse, inverse)?;
                match (&own.matrix, matrix) {
                    (Some(own), Some(matrix)) => own.set_values(device, matrix.values()),
                    (Some(_) | None, _) => Ok(()),
                }
            }
            (Self::Inverse(..) | Self::Smoothed(_), _) => {
                *self = Self::new(device, coarsest)?;
                Ok(())
            }
        }
    }
}

impl Operator for SparseMatrix {
    fn size(&self) -> usize {
        self.rows
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        queue.push(self.times(x, y));
    }
}

fn upload(device: &dyn Device, matrix: &BlockMatrix) -> Result<SparseMatrix, SolveError> {
    let pattern = matrix.pattern();
    let entries = pattern.numbers() as u64;
    if i32::try_from(entries).is_err() {
        let what = format!("a level of a hierarchy of {entries} entries");
        let place = "rows with starts of 32 bits".into();
        let available = 12 * i32::MAX as u64;
        return Err(SolveError::Memory { what, needed: 12 * entries, available, place });
    }
    let [starts, columns] = pattern.scalars();
    let sizes = [pattern.rows().unknowns(), pattern.columns().unknowns()];
    SparseMatrix::new(device, sizes, &starts, &columns, matrix.values())
}

impl DeviceLevel {
    fn new(device: &dyn Device, level: &setup::Level) -> Result<Self, SolveError> {
        let pattern = level.interpolation.pattern();
        let (n, below) = (pattern.rows().unknowns(), pattern.columns().unknowns());
        let vector = |n: usize| device.allocate(8 * n as u64);
        Ok(Self {
            matrix: level.matrix.as_ref().map(|matrix| upload(device, matrix)).transpose()?,
            inverse: buffer_of(device, &level.inverse)?,
            spectrum: level.spectrum,
            smoother: Chebyshev::new(device, n)?,
            interpolation: upload(device, &level.interpolation)?,
            restriction: upload(device, &level.restriction)?,
            q: vector(n)?,
            r: vector(n)?,
            coarse_b: vector(below)?,
            coarse_x: vector(below)?,
        })
    }

    /// Takes the numbers of a level of the same structure.
    fn renew(&mut self, device: &dyn Device, level: &setup::Level) -> Result<(), SolveError> {
        self.spectrum = level.spectrum;
        upload_values(device, &self.inverse, &level.inverse)?;
        if let (Some(own), Some(matrix)) = (&self.matrix, &level.matrix) {
            own.set_values(device, matrix.values())?;
        }
        self.interpolation.set_values(device, level.interpolation.values())?;
        self.restriction.set_values(device, level.restriction.values())
    }
}

/// A V-cycle from zero as an operator: symmetric and positive definite if the matrix is.
pub struct AmgPreconditioner<'a> {
    /// The hierarchy.
    pub hierarchy: &'a Amg,
    /// The operator of the finest level, that of the matrix of the hierarchy or one near it.
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
