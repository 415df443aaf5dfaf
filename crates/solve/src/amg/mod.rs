//! Algebraic multigrid by smoothed aggregation: set up on the host, cycled on the device.

mod aggregates;
mod near_kernel;
mod setup;

pub use near_kernel::Unknowns;

use crate::sparse::SparseMatrix;
use crate::texts::{compiled, text};
use crate::{Call, Chebyshev, Operator, Smoothing, SolveError, Spectrum};
use purlin_runtime::{Backend, Buffer, Device, Executable, available_memory, buffer_of};
use setup::{Csr, Levels, csr, inverse_diagonal};

/// Steps of Chebyshev's iteration before and behind the coarser level.
const STEPS: usize = 2;
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
/// levels are Galerkin's. All this is done on the host, by all threads; the cycle runs on the device.
///
/// # Source
/// Vaněk et al. 1996; smoothers Adams et al. 2003.
pub struct Amg {
    n: usize,
    size: HierarchySize,
    levels: Vec<DeviceLevel>,
    subtract: Executable,
    dense: Executable,
    coarsest: usize,
    coarsest_inverse: Buffer,
}

/// Bytes of a matrix by rows.
fn bytes_of(matrix: &Csr) -> u64 {
    4 * (matrix.rows() as u64 + 1) + 12 * matrix.nnz() as u64
}

impl HierarchySize {
    fn of(n: usize, entries: usize, levels: &Levels) -> Self {
        let coarse = levels.inverse.nrows();
        let mut unknowns = vec![n];
        let (mut all, mut bytes) = (entries as u64, 8 * (coarse as u64).pow(2));
        for level in &levels.levels {
            let (fine, below) = (level.interpolation.rows() as u64, level.interpolation.cols() as u64);
            unknowns.push(level.interpolation.cols());
            all += level.matrix.as_ref().map_or(0, |matrix| matrix.nnz() as u64);
            bytes += level.matrix.as_ref().map_or(0, bytes_of);
            bytes += bytes_of(&level.interpolation) + bytes_of(&level.restriction);
            bytes += 8 * (6 * fine + 2 * below);
        }
        all += if levels.levels.is_empty() { 0 } else { (coarse as u64).pow(2) };
        Self { unknowns, operator_complexity: all as f64 / (entries as f64).max(1.0), bytes }
    }
}

impl Amg {
    /// The hierarchy of a symmetric positive definite matrix by rows, whose values are given, and whose
    /// `unknowns` are moved by `u` (empty where nothing moves).
    ///
    /// # Errors
    /// [`SolveError::Memory`] with the bytes of the hierarchy, before any of it is on the device;
    /// [`SolveError::Spectrum`] of a matrix that is not positive; what the device refuses.
    pub fn new(
        device: &dyn Device,
        [row_starts, columns]: [&[i32]; 2],
        values: Vec<f64>,
        unknowns: &Unknowns,
        u: &[f64],
    ) -> Result<Self, SolveError> {
        let n = row_starts.len().saturating_sub(1);
        let entries = values.len();
        let matrix = csr(row_starts, columns, values);
        let near_kernel = unknowns.near_kernel(n, if unknowns.are_displacements() { u } else { &[] });
        let diagonal = inverse_diagonal(&matrix);
        let levels = Levels::new(matrix, unknowns.components, near_kernel, RATIO)?;
        let size = HierarchySize::of(n, entries, &levels);
        let available = match device.info().backend {
            Backend::C | Backend::OpenCl => available_memory().unwrap_or(u64::MAX),
            Backend::Cuda => device.info().global_mem_bytes,
        };
        if size.bytes > available {
            let what = format!("the hierarchy of {n} unknowns");
            let place = device.info().name.clone();
            return Err(SolveError::Memory { what, needed: size.bytes, available, place });
        }
        let coarsest = levels.inverse.nrows();
        let on_device = levels.levels.iter().map(|level| DeviceLevel::new(device, level, &diagonal));
        Ok(Self {
            n,
            size,
            levels: on_device.collect::<Result<_, _>>()?,
            subtract: compiled(device, text!("subtract"))?,
            dense: compiled(device, text!("dense_product"))?,
            coarsest,
            coarsest_inverse: buffer_of(device, levels.inverse.as_slice())?,
        })
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
        calls: &mut Vec<Call<'a>>,
    ) {
        let Some(own) = self.levels.get(level) else {
            let arrays = [("a", &self.coarsest_inverse), ("x", b), ("y", x)];
            calls.push(Call::of(&self.dense, &[("n", self.coarsest)], &arrays));
            return;
        };
        let operator: &dyn Operator = match &own.matrix {
            Some(matrix) => matrix,
            None => operator,
        };
        let smoothing = Smoothing { operator, inverse: &own.inverse, spectrum: own.spectrum, steps: STEPS };
        own.smoother.smooth(&smoothing, true, b, x, calls);
        operator.apply(x, &own.q, calls);
        let n = [("n", own.interpolation.rows)];
        calls.push(Call::of(&self.subtract, &n, &[("b", b), ("q", &own.q), ("r", &own.r)]));
        calls.push(own.restriction.times(&own.r, &own.coarse_b));
        self.cycle(level + 1, operator, &own.coarse_b, &own.coarse_x, calls);
        calls.push(own.interpolation.add_times(&own.coarse_x, x));
        own.smoother.smooth(&smoothing, false, b, x, calls);
    }
}

impl Operator for SparseMatrix {
    fn size(&self) -> usize {
        self.rows
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, calls: &mut Vec<Call<'a>>) {
        calls.push(self.times(x, y));
    }
}

fn upload(device: &dyn Device, matrix: &Csr) -> Result<SparseMatrix, SolveError> {
    let starts = matrix.proper_indptr();
    SparseMatrix::new(device, [matrix.rows(), matrix.cols()], &starts, matrix.indices(), matrix.data())
}

impl DeviceLevel {
    fn new(device: &dyn Device, level: &setup::Level, finest: &[f64]) -> Result<Self, SolveError> {
        let (n, below) = (level.interpolation.rows(), level.interpolation.cols());
        let vector = |n: usize| device.allocate(8 * n as u64);
        let inverse = match &level.matrix {
            Some(matrix) => buffer_of(device, &inverse_diagonal(matrix))?,
            None => buffer_of(device, finest)?,
        };
        Ok(Self {
            matrix: level.matrix.as_ref().map(|matrix| upload(device, matrix)).transpose()?,
            inverse,
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

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, calls: &mut Vec<Call<'a>>) {
        self.hierarchy.cycle(0, self.operator, x, y, calls);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::run;
    use nalgebra::{DMatrix, DVector};
    use purlin_runtime::{download_values, open};
    use purlin_sample::seed;

    /// The second difference on a square of `side` inner points a side, with two prescribed unknowns,
    /// whose rows and columns are those of the identity.
    fn difference(side: usize) -> (Csr, [usize; 2]) {
        let (n, fixed) = (side * side, [3, side + 7]);
        let mut triplets = sprs::TriMatI::new((n, n));
        for (i, j) in (0..n).map(|row| (row / side, row % side)) {
            let row = i * side + j;
            triplets.add_triplet(row, row, if fixed.contains(&row) { 1.0 } else { 4.0 });
            let beside = [(i.wrapping_sub(1), j), (i + 1, j), (i, j.wrapping_sub(1)), (i, j + 1)];
            for (k, l) in beside.into_iter().filter(|(k, l)| *k < side && *l < side) {
                let column = k * side + l;
                let is_fixed = fixed.contains(&row) || fixed.contains(&column);
                triplets.add_triplet(row, column, if is_fixed { 0.0 } else { -1.0 });
            }
        }
        (triplets.to_csr(), fixed)
    }

    fn dense(matrix: &Csr) -> DMatrix<f64> {
        let mut dense = DMatrix::zeros(matrix.rows(), matrix.cols());
        matrix.iter().for_each(|(value, (row, column))| dense[(row as usize, column as usize)] = *value);
        dense
    }

    fn random(n: usize, seed: u64) -> DVector<f64> {
        let mut state = seed | 1;
        DVector::from_fn(n, |_, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        })
    }

    /// Steps by the roots of the Chebyshev polynomial of degree two on the interval, in place of its
    /// recurrence.
    fn smoothed(a: &DMatrix<f64>, spectrum: Spectrum, b: &DVector<f64>, mut x: DVector<f64>) -> DVector<f64> {
        let (middle, half) =
            ((spectrum.largest + spectrum.least) / 2.0, (spectrum.largest - spectrum.least) / 2.0);
        for k in 0..STEPS {
            let angle = (2 * k + 1) as f64 * std::f64::consts::PI / (2 * STEPS) as f64;
            let root = middle + half * angle.cos();
            let r = b - a * &x;
            x += DVector::from_fn(x.len(), |i, _| r[i] / (root * a[(i, i)]));
        }
        x
    }

    #[test]
    fn a_cycle_of_two_levels_is_the_dense_one() {
        let seed = seed();
        let side = 27;
        let (matrix, fixed) = difference(side);
        let n = matrix.rows();
        let scalar = Unknowns::of_components(1);
        let levels = Levels::new(matrix.clone(), 1, scalar.near_kernel(n, &[]), RATIO).unwrap();
        let [level] = &levels.levels[..] else { unreachable!("{} levels", levels.levels.len()) };
        let (a, p) = (dense(&matrix), dense(&level.interpolation));
        assert_eq!(dense(&level.restriction), p.transpose());
        assert!(p.ncols() < n / 4 && p.ncols() > n / 20, "{} of {n}", p.ncols());
        // rows without a prescribed neighbour or a boundary keep constants
        let ones = p.transpose() * DVector::from_element(n, 1.0);
        let kept = &p * (p.transpose() * &p).cholesky().unwrap().solve(&ones);
        assert!((kept[13 * side + 13] - 1.0).abs() < 1e-2, "{}", kept[13 * side + 13]);
        for row in fixed {
            assert!(p.row(row).iter().all(|entry| *entry == 0.0));
        }
        let coarse = p.transpose() * &a * &p;
        let identity = &coarse * &levels.inverse;
        assert!((identity - DMatrix::identity(p.ncols(), p.ncols())).amax() < 1e-10);

        let cycle = |b: &DVector<f64>| {
            let x = smoothed(&a, level.spectrum, b, DVector::zeros(n));
            let right = p.transpose() * (b - &a * &x);
            let x = &x + &p * coarse.clone().lu().solve(&right).unwrap();
            smoothed(&a, level.spectrum, b, x)
        };
        let (b, c) = (random(n, seed), random(n, seed.wrapping_add(7)));
        let expected = cycle(&b);
        let (starts, values) = (matrix.proper_indptr().into_owned(), matrix.data().to_vec());
        for name in ["c", "opencl"] {
            let device = open(name).unwrap();
            let pattern = [&starts[..], matrix.indices()];
            let hierarchy = Amg::new(&*device, pattern, values.clone(), &scalar, &[]).unwrap();
            assert_eq!(hierarchy.size().unknowns, [n, p.ncols()]);
            let operator = upload(&*device, &matrix).unwrap();
            let cycle = AmgPreconditioner { hierarchy: &hierarchy, operator: &operator };
            let applied = |v: &DVector<f64>| {
                let from = buffer_of(&*device, v.as_slice()).unwrap();
                let to = device.allocate(8 * n as u64).unwrap();
                let mut calls = Vec::new();
                cycle.apply(&from, &to, &mut calls);
                run(&*device, &calls).unwrap();
                DVector::from_vec(download_values::<f64>(&*device, &to).unwrap())
            };
            let found = applied(&b);
            // sums of some hundred terms
            let far = (&found - &expected).amax();
            assert!(far <= 1e-11 * expected.amax(), "{name}, seed {seed}: {far:e}");
            let (left, right) = (found.dot(&c), b.dot(&applied(&c)));
            assert!((left - right).abs() <= 1e-11 * found.norm() * c.norm(), "{name}, seed {seed}");
            assert!(found.dot(&b) > 0.0);
        }
    }

    #[test]
    fn products_by_all_threads_are_the_dense_ones() {
        let (matrix, _) = difference(70); // more rows than a thread takes at a time
        let square = setup::product(&matrix, &matrix);
        let x = random(matrix.rows(), seed());
        let times = |matrix: &Csr, x: &DVector<f64>| {
            let mut y = DVector::zeros(matrix.rows());
            matrix.iter().for_each(|(value, (row, column))| y[row as usize] += value * x[column as usize]);
            y
        };
        let far = (times(&square, &x) - times(&matrix, &times(&matrix, &x))).amax();
        assert!(far < 1e-12 * 64.0, "{far:e}"); // rows of at most 13 entries up to 20
    }

    #[test]
    fn rigid_motions_are_those_of_moved_points() {
        let points = vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.5];
        let space = Unknowns { components: 3, points: points.clone(), dim: 3 };
        let moved: Vec<f64> = (0..9).map(|k| 0.1 * k as f64).collect();
        let motions = space.near_kernel(9, &moved);
        assert_eq!(motions.ncols(), 6);
        // to first order a rigid motion changes no distance
        let at = |point: usize, axis: usize| points[3 * point + axis] + moved[3 * point + axis];
        for motion in motions.column_iter() {
            for (a, b) in [(0, 1), (1, 2), (0, 2)] {
                let change: f64 = (0..3)
                    .map(|axis| (at(a, axis) - at(b, axis)) * (motion[3 * a + axis] - motion[3 * b + axis]))
                    .sum();
                assert!(change.abs() < 1e-14, "{change:e}");
            }
        }
        let plane = Unknowns { components: 2, points: vec![0.0, 1.0, 2.0, 0.5], dim: 2 };
        assert_eq!(plane.near_kernel(4, &[]).ncols(), 3);
        assert_eq!(Unknowns::of_components(2).near_kernel(4, &[]).ncols(), 2);
        let temperature = Unknowns { components: 1, points: vec![0.0; 6], dim: 3 };
        assert_eq!(temperature.near_kernel(2, &[1.0; 2]).ncols(), 1);
    }
}
