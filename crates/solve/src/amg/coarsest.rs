//! What solves on the coarsest level, or nearly so.

use super::level::Smoother;
use crate::texts::{compiled, text};
use crate::{BlockRows, Call, Operator, Queue, Smoothing, SolveError, put};
use kingpost_runtime::{Backend, Buffer, Device, Executable, buffer_of, download_values};
use nalgebra::DMatrix;

/// Unknowns of a matrix that is inverted, at most: beyond it the inverse takes longer than a solve.
const INVERTED: usize = 512;
/// Unknowns of one that a card inverts in registers, at most.
const IN_REGISTERS: usize = 128;
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

    /// Compiles what inverts matrices of blocks of `side` rows: what makes them dense, and what inverts those of any
    /// unknowns and of few.
    ///
    /// # Errors
    /// A device that refuses a kernel.
    pub fn prepare(device: &dyn Device, side: usize) -> Result<[Executable; 3], SolveError> {
        let of = |text: &str| compiled(device, text);
        let (dense, invert) = (text!("dense_matrix"), text!("inverse_matrix"));
        let dense = of(&dense.replace("SIDE", &side.to_string()))?;
        // work-items, by 32
        match device.info().backend {
            Backend::Cuda => Ok([dense, of(&invert.replace("GROUP", "32"))?, of(text!("inverse_of_few"))?]),
            Backend::C | Backend::OpenCl => {
                let invert = invert.replace("GROUP", "8");
                Ok([dense, of(&invert)?, of(&invert)?])
            }
        }
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
    let [dense, invert, of_few] = Coarsest::prepare(device, matrix.side)?;
    let (inverse, least) = (device.allocate_unset(8 * (n * n) as u64)?, device.allocate_unset(8)?);
    let sizes = [&matrix.sizes()[..], &[("is_completed", usize::from(!is_finest))]].concat();
    let arrays = [&matrix.lists()[..], &[("values", matrix.values), ("dense", &inverse)]].concat();
    let dense = Call::of(&dense, &sizes, &arrays);
    let invert = if n > IN_REGISTERS { &invert } else { &of_few };
    let invert = Call::of(invert, &[("n", n)], &[("a", &inverse), ("least", &least)]);
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::run;
    use kingpost_runtime::open;
    use kingpost_sample::Random;

    /// What cards run, on processors: of one row, of as many as registers hold, and of a matrix that is not
    /// positive definite.
    #[test]
    fn few_rows_are_inverted_in_registers() {
        let mut random = Random::new();
        for (name, n) in [("c", 1), ("c", 33), ("c", IN_REGISTERS), ("opencl", 117)] {
            let device = &*open(name).unwrap();
            let invert = compiled(device, text!("inverse_of_few")).unwrap();
            let inverse_of = |matrix: &DMatrix<f64>| {
                let (a, least) = (buffer_of(device, matrix.as_slice()).unwrap(), device.allocate(8).unwrap());
                run(device, &[Call::of(&invert, &[("n", n)], &[("a", &a), ("least", &least)])]).unwrap();
                let of = |buffer: &Buffer| download_values::<f64>(device, buffer).unwrap();
                (DMatrix::from_vec(n, n, of(&a)), of(&least)[0])
            };
            let half = DMatrix::from_vec(n, n, random.reals(n * n));
            let mut matrix = &half + half.transpose() + DMatrix::identity(n, n) * (4 * n) as f64;
            let (inverse, least) = inverse_of(&matrix);
            // sums of at most 128 terms of a matrix whose condition is below 3
            let far = (&inverse * &matrix - DMatrix::identity(n, n)).amax();
            assert!(far <= 1e-13 && least > 0.0, "{name}, {n}, seed {}: {far:e} {least}", random.seed);
            matrix[(n - 1, n - 1)] = -1.0;
            assert_eq!(inverse_of(&matrix).1, -1.0, "{name}, {n}, seed {}", random.seed);
        }
    }
}
