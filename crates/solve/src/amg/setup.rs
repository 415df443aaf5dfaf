//! The levels of a hierarchy, on the host.

use super::aggregates::Strength;
use super::near_kernel::NearKernel;
use crate::conjugate_gradients::Sums;
use crate::{SolveError, Spectrum};
use nalgebra::DMatrix;
use rayon::prelude::*;
use sprs::{CsMatI, CsMatViewI};

/// A matrix by rows, with the numbers that devices take.
pub(super) type Csr = CsMatI<f64, i32>;

/// Unknowns of the level that is solved by its inverse, at most.
const COARSEST: usize = 256;
/// Levels, at most.
const LEVELS: usize = 20;
/// Strength of connections on the finest level; half of it on each next one.
const STRENGTH: f64 = 0.08;
/// Iterations that find the largest eigenvalue of a level.
const ITERATIONS: usize = 12;
/// Columns of a basis that are this much shorter than the first are not independent.
const DEPENDENT: f64 = 1e-8;
/// Entries of an interpolation this much smaller than the largest of the row are roundings.
const ROUNDING: f64 = 1e-13;
/// Rows that a thread multiplies at a time.
const ROWS: usize = 2048;

/// A level with a coarser one.
pub(super) struct Level {
    /// The matrix; none on the finest level, where the device has it.
    pub matrix: Option<Csr>,
    /// Of the matrix times the inverse of its diagonal.
    pub spectrum: Spectrum,
    /// From the coarser level.
    pub interpolation: Csr,
    /// To it: the transpose.
    pub restriction: Csr,
}

/// The levels of a matrix.
pub(super) struct Levels {
    /// From the finest on.
    pub levels: Vec<Level>,
    /// The inverse of the matrix of the coarsest level.
    pub inverse: DMatrix<f64>,
}

/// The matrix of a pattern with these values.
pub(super) fn csr(row_starts: &[i32], columns: &[i32], values: Vec<f64>) -> Csr {
    let n = row_starts.len().saturating_sub(1);
    CsMatI::new((n, n), row_starts.to_vec(), columns.to_vec(), values)
}

impl Levels {
    /// The levels of a symmetric positive definite matrix whose degrees of freedom have so many
    /// components, and whose near kernel is given. Smoothers reduce the eigenvalues of a matrix times the
    /// inverse of its diagonal down to a `ratio`-th of the largest.
    ///
    /// # Errors
    /// [`SolveError::Spectrum`] of a matrix that is not positive.
    ///
    /// # Source
    /// Vaněk et al. 1996; Vaněk et al. 2001.
    pub fn new(
        matrix: Csr,
        components: usize,
        near_kernel: NearKernel,
        ratio: f64,
    ) -> Result<Self, SolveError> {
        let mut nodes: Vec<usize> = (0..=matrix.rows()).step_by(components.max(1)).collect();
        let (mut matrix, mut near_kernel) = (matrix, near_kernel);
        let (mut levels, mut threshold): (Vec<Level>, f64) = (Vec::new(), STRENGTH);
        while matrix.rows() > COARSEST && levels.len() + 1 < LEVELS {
            let (aggregates, count) = Strength::new(&matrix, &nodes, threshold).aggregates();
            let tentative = Tentative::new(&nodes, &aggregates, count, &near_kernel);
            if tentative.matrix.cols() == 0 || 5 * tentative.matrix.cols() > 4 * matrix.rows() {
                break; // it no longer coarsens
            }
            let inverse = inverse_diagonal(&matrix);
            let values = eigenvalues(&matrix, &inverse);
            let largest = Spectrum::of_upper(&values, 1.0)?.largest;
            let interpolation = smoothed(&matrix, &inverse, 4.0 / (3.0 * largest), &tentative.matrix);
            let restriction: Csr = interpolation.transpose_view().to_csr();
            let coarse = product(&restriction, &product(&matrix, &interpolation));
            let finest = levels.is_empty();
            levels.push(Level {
                spectrum: Spectrum::of_upper(&values, ratio)?,
                interpolation,
                restriction,
                matrix: (!finest).then_some(matrix),
            });
            (matrix, nodes, near_kernel) = (coarse, tentative.nodes, tentative.near_kernel);
            threshold /= 2.0;
        }
        Ok(Self { levels, inverse: inverted(&matrix) })
    }
}

/// An interpolation that is not smooth: an orthonormal basis of the near kernel on each aggregate.
struct Tentative {
    matrix: Csr,
    /// The rows of each coarse node.
    nodes: Vec<usize>,
    near_kernel: NearKernel,
}

impl Tentative {
    fn new(nodes: &[usize], aggregates: &[Option<usize>], count: usize, near_kernel: &NearKernel) -> Self {
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (node, aggregate) in aggregates.iter().enumerate() {
            if let Some(rows) = aggregate.and_then(|aggregate| rows.get_mut(aggregate)) {
                rows.extend(nodes[node]..nodes[node + 1]);
            }
        }
        let bases: Vec<(DMatrix<f64>, DMatrix<f64>)> =
            rows.par_iter().map(|rows| basis(&near_kernel.select_rows(rows))).collect();
        let mut coarse = vec![0];
        coarse.extend(bases.iter().scan(0, |end, (basis, _)| {
            *end += basis.ncols();
            Some(*end)
        }));
        let n_coarse = coarse.last().copied().unwrap_or(0);
        let mut of_row = vec![None; near_kernel.nrows()];
        for (aggregate, rows) in rows.iter().enumerate() {
            rows.iter().enumerate().for_each(|(k, row)| of_row[*row] = Some((aggregate, k)));
        }
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for place in of_row {
            if let Some((aggregate, k)) = place {
                columns.extend((coarse[aggregate]..coarse[aggregate + 1]).map(|column| column as i32));
                values.extend(bases[aggregate].0.row(k).iter());
            }
            starts.push(columns.len() as i32);
        }
        let mut of_coarse = DMatrix::zeros(n_coarse, near_kernel.ncols());
        for (aggregate, (_, rest)) in bases.iter().enumerate() {
            of_coarse.rows_mut(coarse[aggregate], rest.nrows()).copy_from(rest);
        }
        let matrix = CsMatI::new((near_kernel.nrows(), n_coarse), starts, columns, values);
        Self { matrix, nodes: coarse, near_kernel: of_coarse }
    }
}

/// An orthonormal basis of columns, and the columns in it.
fn basis(columns: &DMatrix<f64>) -> (DMatrix<f64>, DMatrix<f64>) {
    let factors = columns.clone().col_piv_qr();
    let (q, mut r) = (factors.q(), factors.r());
    let first = r.get((0, 0)).map_or(0.0, |entry| entry.abs());
    let independent = |k: &usize| r[(*k, *k)].abs() > DEPENDENT * first;
    let rank = (0..r.nrows().min(r.ncols())).take_while(independent).count();
    factors.p().inv_permute_columns(&mut r);
    (q.columns(0, rank).into_owned(), r.rows(0, rank).into_owned())
}

pub(super) fn inverse_diagonal(matrix: &Csr) -> Vec<f64> {
    (0..matrix.rows()).map(|row| 1.0 / matrix.get(row, row).copied().unwrap_or(1.0)).collect()
}

/// `T - ω D⁻¹ A T`
fn smoothed(matrix: &Csr, inverse: &[f64], omega: f64, tentative: &Csr) -> Csr {
    let image = product(matrix, tentative);
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for (row, inverse) in inverse.iter().enumerate() {
        let mut entries: Vec<(usize, f64)> = match image.outer_view(row) {
            Some(view) => view.iter().map(|(column, value)| (column, -omega * inverse * value)).collect(),
            None => Vec::new(),
        };
        // the image has all entries of the row, as the diagonal of the matrix is not zero
        for (column, value) in tentative.outer_view(row).iter().flat_map(|view| view.iter()) {
            match entries.binary_search_by_key(&column, |entry| entry.0) {
                Ok(place) => entries[place].1 += value,
                Err(place) => entries.insert(place, (column, *value)),
            }
        }
        let largest = entries.iter().fold(0.0_f64, |most, entry| most.max(entry.1.abs()));
        entries.retain(|entry| entry.1.abs() > ROUNDING * largest);
        columns.extend(entries.iter().map(|entry| entry.0 as i32));
        values.extend(entries.iter().map(|entry| entry.1));
        starts.push(columns.len() as i32);
    }
    CsMatI::new((tentative.rows(), tentative.cols()), starts, columns, values)
}

/// A product of matrices, by all threads.
pub(super) fn product(a: &Csr, b: &Csr) -> Csr {
    let blocks = a.rows().div_ceil(ROWS).max(1);
    let part = |k: usize| {
        let own = a.slice_outer(k * ROWS..a.rows().min((k + 1) * ROWS)).to_owned();
        &own * b
    };
    let parts: Vec<Csr> = (0..blocks).into_par_iter().map(part).collect();
    let views: Vec<CsMatViewI<'_, f64, i32>> = parts.iter().map(Csr::view).collect();
    sprs::vstack(&views)
}

/// Values among the eigenvalues of a matrix times a diagonal, near the largest: by conjugate gradients,
/// as [`ConjugateGradients::ritz_values`](crate::ConjugateGradients::ritz_values).
fn eigenvalues(matrix: &Csr, inverse: &[f64]) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let scaled = |r: &[f64]| -> Vec<f64> { r.iter().zip(inverse).map(|(r, d)| r * d).collect() };
    let mut r = crate::chebyshev::pseudo_random(matrix.rows());
    let mut p = scaled(&r);
    let mut sums = Sums { rr: Vec::new(), rz: vec![dot(&r, &p)], pq: Vec::new() };
    for k in 0..ITERATIONS {
        let q = times(matrix, &p);
        let curvature = dot(&p, &q);
        sums.pq.push(curvature);
        if curvature <= 0.0 {
            sums.rz.push(0.0);
            break;
        }
        let length = sums.rz[k] / curvature;
        r.iter_mut().zip(&q).for_each(|(r, q)| *r -= length * q);
        let z = scaled(&r);
        sums.rz.push(dot(&r, &z));
        let turn = sums.rz[k + 1] / sums.rz[k];
        p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + turn * *p);
    }
    sums.eigenvalues()
}

fn times(matrix: &Csr, x: &[f64]) -> Vec<f64> {
    let row = |row: usize| {
        let entries = matrix.outer_view(row);
        entries.map_or(0.0, |view| view.iter().map(|(column, value)| value * x[column]).sum())
    };
    (0..matrix.rows()).into_par_iter().map(row).collect()
}

/// The inverse of a small matrix; of one that is not positive definite, that of the sizes of its
/// eigenvalues, so that it preconditions at all.
fn inverted(matrix: &Csr) -> DMatrix<f64> {
    let n = matrix.rows();
    let mut dense = DMatrix::zeros(n, n);
    for (value, (row, column)) in matrix.iter() {
        dense[(row as usize, column as usize)] = *value;
    }
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
