//! What solves on the coarsest level, or nearly so.

use super::level::Smoother;
use crate::texts::{compiled, text};
use crate::{BlockRows, Call, Operator, Queue, Smoothing, SolveError, put};
use kingpost_runtime::{Backend, Buffer, Device, Executable, buffer_of, download_values};
use nalgebra::DMatrix;

/// Unknowns of a matrix that is inverted, at most: beyond it the inverse takes longer than a solve.
const INVERTED: usize = 512;
/// Steps of Chebyshev's iteration where there is no coarser level.
const STEPS_ALONE: usize = 4;

/// The coarsest level on the device.
pub(super) enum Coarsest {
    /// The inverse of its matrix, and what multiplies by it.
    Inverse(Buffer, Executable),
    /// Chebyshev's iteration, where nothing coarsens a large matrix: of one without couplings, its
    /// first step is exact up to a factor.
    Smoothed(Box<Smoother>),
}

impl Coarsest {
    /// Of a matrix.
    ///
    /// # Errors
    /// [`SolveError::Spectrum`] of a matrix that is not positive; what the device refuses.
    pub fn new(
        device: &dyn Device,
        matrix: &BlockRows<'_>,
        is_finest: bool,
        ratio: f64,
    ) -> Result<Self, SolveError> {
        if matrix.unknowns() > INVERTED {
            return Ok(Self::Smoothed(Box::new(Smoother::new(device, matrix, is_finest, ratio)?)));
        }
        let multiply = compiled(device, text!("dense_product"))?;
        if let Some(inverse) = inverse_on(device, matrix, is_finest)? {
            return Ok(Self::Inverse(inverse, multiply));
        }
        let mut dense = matrix.dense(device)?;
        if !is_finest {
            complete(&mut dense);
        }
        Ok(Self::Inverse(buffer_of(device, inverted(dense).as_slice())?, multiply))
    }

    /// Compiles what inverts matrices of blocks of `side` rows.
    ///
    /// # Errors
    /// A device that refuses a kernel.
    pub fn prepare(device: &dyn Device, side: usize) -> Result<[Executable; 2], SolveError> {
        // work-items, by 32
        let group = match device.info().backend {
            Backend::Cuda => "32",
            Backend::C | Backend::OpenCl => "8",
        };
        let dense = text!("dense_matrix").replace("SIDE", &side.to_string());
        let invert = text!("inverse_matrix").replace("GROUP", group);
        Ok([compiled(device, &dense)?, compiled(device, &invert)?])
    }

    /// Bytes on the device, for a number of unknowns.
    pub const fn bytes(&self, unknowns: usize) -> u64 {
        match self {
            Self::Inverse(..) => 8 * (unknowns * unknowns) as u64,
            Self::Smoothed(_) => 8 * 4 * unknowns as u64,
        }
    }

    /// Appends what solves for a right-hand side.
    pub fn solve<'a>(
        &'a self,
        operator: &'a dyn Operator,
        b: &'a Buffer,
        x: &'a Buffer,
        queue: &mut Queue<'a>,
    ) {
        match self {
            Self::Inverse(inverse, multiply) => {
                let arrays = [("a", inverse), ("x", b), ("y", x)];
                queue.push(Call::of(multiply, &[("n", operator.size())], &arrays));
            }
            Self::Smoothed(own) => {
                let (inverse, spectrum) = (&own.inverse, own.spectrum);
                let smoothing = Smoothing { operator, inverse, spectrum, steps: STEPS_ALONE };
                own.steps.smooth(&smoothing, true, b, x, queue);
            }
        }
    }
}

/// The inverse of a small matrix, found on the device; none of one that is not positive definite.
fn inverse_on(
    device: &dyn Device,
    matrix: &BlockRows<'_>,
    is_finest: bool,
) -> Result<Option<Buffer>, SolveError> {
    let n = matrix.unknowns();
    if n == 0 {
        return Ok(None);
    }
    let [dense, invert] = Coarsest::prepare(device, matrix.side)?;
    let (inverse, least) = (device.allocate_unset(8 * (n * n) as u64)?, device.allocate_unset(8)?);
    let sizes = [&matrix.sizes()[..], &[("is_completed", usize::from(!is_finest))]].concat();
    let arrays = [&matrix.lists()[..], &[("values", matrix.values), ("dense", &inverse)]].concat();
    let dense = Call::of(&dense, &sizes, &arrays);
    let invert = Call::of(&invert, &[("n", n)], &[("a", &inverse), ("least", &least)]);
    put(device, &[dense, invert])?;
    let least: Vec<f64> = download_values(device, &least)?;
    Ok(least.iter().all(|pivot| *pivot > 0.0).then_some(inverse))
}

/// Makes entries of zero on the diagonal one, which are those of basis vectors of zeros.
fn complete(matrix: &mut DMatrix<f64>) {
    for k in 0..matrix.nrows() {
        if matrix[(k, k)] == 0.0 {
            matrix[(k, k)] = 1.0;
        }
    }
}

/// The inverse of a small matrix; of one that is not positive definite, that of the sizes of its
/// eigenvalues, so that it preconditions at all.
fn inverted(dense: DMatrix<f64>) -> DMatrix<f64> {
    let n = dense.nrows();
    let symmetric = (&dense + dense.transpose()) * 0.5;
    match symmetric.clone().cholesky() {
        Some(factors) => factors.inverse(),
        None if n == 0 => dense,
        None => {
            let eigen = symmetric.symmetric_eigen();
            let largest = eigen.eigenvalues.amax();
            let inverse =
                eigen.eigenvalues.map(|value| match value.abs() > f64::EPSILON * n as f64 * largest {
                    true => 1.0 / value.abs(),
                    false => 0.0,
                });
            &eigen.eigenvectors * DMatrix::from_diagonal(&inverse) * eigen.eigenvectors.transpose()
        }
    }
}
