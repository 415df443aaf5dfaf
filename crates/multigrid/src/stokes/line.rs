//! One dimension of Raviart–Thomas elements: matrices of their modes, and those of patches.

use crate::line::{eigenpairs, of_patch};
use crate::matrix::Matrix;
use crate::{Dimension, MultigridError};
use kingpost_fem::quadrature::gauss_jacobi;
use nalgebra::{DMatrix, SymmetricEigen};

/// Matrices of lines of cells of length 1, of which the operator of Stokes' equations is a sum of
/// tensor products.
///
/// Along its own axis a component of the velocity is continuous and of degree k + 1: it has the
/// integrals of Legendre polynomials as its basis, between the two linear functions of a cell.
/// Along the others it is of degree k on each cell, as the pressure is along all: these have the
/// orthonormal Legendre polynomials, whose mass matrix is one. So the divergence, the derivative of
/// the former in the latter, has one or two entries a row.
///
/// # Source
/// Cui & Kanschat 2024; Schwab 1998 for the basis.
#[derive(Clone, Debug, PartialEq)]
pub struct StokesLine {
    /// Unknowns of a cell along an axis, m = k + 1.
    pub unknowns: usize,
    /// Rows of a cell in the matrix of the interior penalty method, of the first cell of a line, of
    /// one between others, and of the last; columns are those of the cell before, the cell and the
    /// one after, [3 m, 3 m].
    pub across: Matrix,
    /// Rows of a cell of the stiffness matrix of continuous functions; columns are those of the
    /// cell before, of the cell and the first of the one after, [m, 2 m + 1].
    pub stiffness: Matrix,
    /// Likewise of their mass matrix.
    pub mass: Matrix,
    /// Integrals of the derivatives of continuous functions times those of the cell before and of
    /// the cell, [m, 2 m].
    pub gradient: Matrix,
    /// Integrals of the functions of a cell times the derivatives of continuous ones, [m, m + 1].
    pub divergence: Matrix,
    /// Functions of a cell in those of its halves, [2 m, m].
    pub prolongation: Matrix,
    /// The same of continuous functions, without the last one of the second half, [2 m, m + 1].
    pub continuous_prolongation: Matrix,
    /// Eigenvectors of continuous functions on two cells that are zero at both ends, as columns,
    /// [2 m - 1, 2 m - 1].
    pub normal_modes: Matrix,
    /// Their eigenvalues.
    pub normal_values: Vec<f64>,
    /// Eigenvectors of the interior penalty method on two cells with values of zero at both ends,
    /// as columns: m that are even, then m that are odd, [2 m, 2 m].
    pub modes: Matrix,
    /// Their eigenvalues.
    pub values: Vec<f64>,
    /// Derivatives of normal modes in modes, [2 m, 2 m - 1].
    pub derivatives: Matrix,
}

impl StokesLine {
    /// Of elements of this degree k, at least 1.
    ///
    /// # Errors
    /// A mass matrix that is not positive definite: a bug.
    pub fn new(degree: usize) -> Result<Self, MultigridError> {
        let m = degree + 1;
        let (points, weights) = gauss_jacobi(m + 1, 0); // exact for degree 2k + 3
        let of_points = |columns: usize, basis: &dyn Fn(f64) -> Vec<f64>| {
            let rows: Vec<Vec<f64>> = points.iter().map(|x| basis(*x)).collect();
            Matrix::from_fn(points.len(), columns, |q, i| rows[q][i])
        };
        let product = |a: &Matrix, b: &Matrix| {
            let entry = |i, j| weights.iter().enumerate().map(|(q, w)| w * a.at(q, i) * b.at(q, j)).sum();
            Matrix::from_fn(a.columns, b.columns, entry)
        };
        let values = of_points(m, &|x| legendre(m, x).0);
        let continuous = of_points(m + 1, &|x| integrals(m, x).0);
        let slopes = of_points(m + 1, &|x| integrals(m, x).1);
        let [cell_mass, cell_stiffness] = [&continuous, &slopes].map(|table| product(table, table));
        let divergence = product(&values, &slopes);
        let half = |half: usize| product(&values, &of_points(m, &|x| legendre(m, 0.5 * (x + half as f64)).0));
        let halves = [half(0), half(1)];
        let [mass, stiffness] = [&cell_mass, &cell_stiffness].map(|cell| of_patch(m, cell));
        let (normal_modes, normal_values) = eigenpairs(m, &mass, &stiffness)?;
        let two = interior_penalty(m, 2);
        let (modes, values) = modes_by_parity(m, &two);
        Ok(Self {
            unknowns: m,
            across: rows_of_cells(m, &two, &interior_penalty(m, 3)),
            stiffness: Matrix::from_fn(m, 2 * m + 1, |i, j| stiffness.at(m + i, j)),
            mass: Matrix::from_fn(m, 2 * m + 1, |i, j| mass.at(m + i, j)),
            gradient: Matrix::from_fn(m, 2 * m, |i, j| of_two_cells(m, &divergence, j, m + i)),
            prolongation: Matrix::from_fn(2 * m, m, |i, j| halves[i / m].at(i % m, j)),
            continuous_prolongation: continuous_prolongation(m, &halves, &divergence),
            derivatives: derivatives(m, &divergence, &modes, &normal_modes),
            divergence,
            normal_modes,
            normal_values,
            modes,
            values,
        })
    }

    /// Inverses of the sums of eigenvalues of a component: along the axes across, modes, along its
    /// own, normal modes.
    ///
    /// # Shapes and units
    /// `[2 m, …, 2 m - 1]`.
    #[must_use]
    pub fn inverses(&self, dimension: Dimension) -> Vec<f64> {
        let across = &self.values;
        let sums: Vec<f64> = match dimension {
            Dimension::Two => across.clone(),
            Dimension::Three => across.iter().flat_map(|a| across.iter().map(move |b| a + b)).collect(),
        };
        sums.iter().flat_map(|sum| self.normal_values.iter().map(move |own| 1.0 / (sum + own))).collect()
    }

    /// The negative of the generalised inverse of the Schur complement of a patch, in modes of the
    /// pressure along all axes.
    ///
    /// The complement couples modes of the same parities alone, as patches are symmetric: it has a
    /// block for each. The constant pressure is its kernel, and is left out.
    ///
    /// # Shapes and units
    /// `[m, …, 2 m, …]`: the place of a column among the modes of its parities, then its row.
    #[must_use]
    pub fn complement(&self, dimension: Dimension) -> Vec<f64> {
        let (m, axes) = (self.unknowns, dimension.axes());
        let (block, modes) = (m.pow(axes as u32), (2 * m).pow(axes as u32));
        let inverses = self.inverses(dimension);
        let mut entries = vec![0.0; block * modes];
        for parities in 0..1_usize << axes {
            let mode =
                |place: usize, axis: usize| place / m.pow(axis as u32) % m + m * (parities >> axis & 1);
            let inverse = generalised_inverse(&DMatrix::from_fn(block, block, |row, column| {
                let [row, column] = [row, column].map(|place| (0..axes).map(|a| mode(place, a)).collect());
                self.complement_entry(&inverses, row, column)
            }));
            for row in 0..block {
                let at: usize = (0..axes).map(|axis| mode(row, axis) * (2 * m).pow(axis as u32)).sum();
                (0..block).for_each(|column| entries[column * modes + at] = -inverse[(row, column)]);
            }
        }
        entries
    }

    /// An entry of the Schur complement, of modes by their places along each axis.
    fn complement_entry(&self, inverses: &[f64], row: Vec<usize>, column: Vec<usize>) -> f64 {
        let (axes, q) = (row.len(), self.normal_values.len());
        let along = |axis: usize| {
            let is_other = |other: &usize| *other != axis;
            if (0..axes).filter(is_other).any(|other| row[other] != column[other]) {
                return 0.0;
            }
            let across = (0..axes).filter(is_other).fold(0, |at, other| at * 2 * self.unknowns + row[other]);
            let term = |mode: usize| {
                let [a, b] = [&row, &column].map(|places| self.derivatives.at(places[axis], mode));
                a * inverses[across * q + mode] * b
            };
            (0..q).map(term).sum()
        };
        (0..axes).map(along).sum()
    }
}

/// Values and derivatives at `x` of the orthonormal Legendre polynomials of degrees 0 to `degree`
/// on a cell of length 1.
pub(super) fn legendre(degree: usize, x: f64) -> (Vec<f64>, Vec<f64>) {
    let t = 2.0 * x - 1.0;
    let (mut values, mut slopes) = (vec![1.0, t], vec![0.0, 2.0]);
    for n in 1..degree {
        let order = n as f64;
        values.push(((2.0 * order + 1.0) * t * values[n] - order * values[n - 1]) / (order + 1.0));
        slopes.push(slopes[n - 1] + 2.0 * (2.0 * order + 1.0) * values[n]);
    }
    let scaled = |of: Vec<f64>| -> Vec<f64> {
        of.into_iter().enumerate().map(|(n, y)| (2.0 * n as f64 + 1.0).sqrt() * y).collect()
    };
    (scaled(values), scaled(slopes))
}

/// Values and derivatives at `x` of the continuous functions of degree `m` of a cell: one that is 1
/// at its left end, the integrals of Legendre polynomials of degrees 1 to m - 1, and one that is 1
/// at its right end.
pub(super) fn integrals(m: usize, x: f64) -> (Vec<f64>, Vec<f64>) {
    let (polynomials, _) = legendre(m, x);
    let unscaled = |n: usize| polynomials[n] / (2.0 * n as f64 + 1.0).sqrt();
    let integral = |n: usize| (unscaled(n + 1) - unscaled(n - 1)) / (2.0 * (2.0 * n as f64 + 1.0).sqrt());
    let values = [1.0 - x].into_iter().chain((1..m).map(integral)).chain([x]).collect();
    let slopes = [-1.0].into_iter().chain((1..m).map(|n| polynomials[n])).chain([1.0]).collect();
    (values, slopes)
}

/// The matrix of the symmetric interior penalty method on a line of cells, with values of zero at
/// its ends: a penalty of m² in units of the length of a cell, at the ends twice that.
///
/// # Source
/// Arnold et al. 2002; the penalty is the constant of the trace inequality of Warburton & Hesthaven
/// 2003 on a line. Twice that takes 12 iterations for 8 in two dimensions at degree 1.
pub(super) fn interior_penalty(m: usize, cells: usize) -> Matrix {
    let penalty = (m * m) as f64;
    let (points, weights) = gauss_jacobi(m, 0);
    let slopes: Vec<Vec<f64>> = points.iter().map(|x| legendre(m, *x).1).collect();
    let (left, right) = (legendre(m, 0.0), legendre(m, 1.0));
    // jump and mean derivative of each function at each face
    let face = |face: usize, at: usize| {
        let (cell, i) = (at / m, at % m);
        if cell + 1 == face {
            (right.0[i], 0.5 * right.1[i])
        } else if cell == face {
            (-left.0[i], 0.5 * left.1[i])
        } else {
            (0.0, 0.0)
        }
    };
    Matrix::from_fn(cells * m, cells * m, |row, column| {
        let inside: f64 = match row / m == column / m {
            true => (0..points.len()).map(|q| weights[q] * slopes[q][row % m] * slopes[q][column % m]).sum(),
            false => 0.0,
        };
        let of_face = |at: usize| {
            let ((a, da), (b, db)) = (face(at, row), face(at, column));
            let factor = if at == 0 || at == cells { 2.0 } else { 1.0 };
            factor * (penalty * a * b - da * b - a * db)
        };
        inside + (0..=cells).map(of_face).sum::<f64>()
    })
}

/// An entry of the cells 0 and 1 in a matrix whose rows are those of the cell, and whose columns
/// are shared with the next one.
fn of_two_cells(m: usize, cell: &Matrix, row: usize, column: usize) -> f64 {
    let first = row / m * m;
    match column.checked_sub(first).filter(|at| *at <= m) {
        Some(at) => cell.at(row % m, at),
        None => 0.0,
    }
}

/// [`StokesLine::across`], from the matrices of two and three cells.
fn rows_of_cells(m: usize, two: &Matrix, three: &Matrix) -> Matrix {
    Matrix::from_fn(3 * m, 3 * m, |row, column| {
        let (place, i) = (row / m, row % m);
        match (place, column.checked_sub(m)) {
            (0, None) => 0.0,
            (0, Some(at)) => two.at(i, at),
            (1, _) => three.at(m + i, column),
            _ if column < 2 * m => two.at(m + i, column),
            _ => 0.0,
        }
    })
}

/// [`StokesLine::continuous_prolongation`]: derivatives are prolongated, and integrated.
fn continuous_prolongation(m: usize, halves: &[Matrix; 2], divergence: &Matrix) -> Matrix {
    // lengths are halved: so are derivatives
    let derivative = |half: usize, i: usize, j: usize| -> f64 {
        (0..m).map(|l| 0.5 * halves[half].at(i, l) * divergence.at(l, j)).sum()
    };
    let left = |j: usize| if j == 0 { 1.0 } else { 0.0 };
    Matrix::from_fn(2 * m, m + 1, |i, j| match (i / m, i % m) {
        (0, 0) => left(j),
        (_, 0) => left(j) + derivative(0, 0, j),
        (half, i) => derivative(half, i, j),
    })
}

/// [`StokesLine::derivatives`].
fn derivatives(m: usize, divergence: &Matrix, modes: &Matrix, normal: &Matrix) -> Matrix {
    Matrix::from_fn(2 * m, 2 * m - 1, |mode, of| {
        let product =
            |i: usize, j: usize| modes.at(i, mode) * of_two_cells(m, divergence, i, j + 1) * normal.at(j, of);
        (0..2 * m).flat_map(|i| (0..2 * m - 1).map(move |j| (i, j))).map(|(i, j)| product(i, j)).sum()
    })
}

/// Eigenvectors of a matrix of two cells that is symmetric about their face, m even ones and m odd
/// ones, with their eigenvalues.
fn modes_by_parity(m: usize, matrix: &Matrix) -> (Matrix, Vec<f64>) {
    // the mirror image of polynomial i of a cell is that of the other one times (-1)^i
    let mirrored = |i: usize, parity: f64| if i.is_multiple_of(2) { parity } else { -parity };
    let of = |parity: f64| {
        let reduced =
            DMatrix::from_fn(m, m, |i, j| matrix.at(i, j) + mirrored(j, parity) * matrix.at(i, m + j));
        SymmetricEigen::new(0.5 * (&reduced + reduced.transpose()))
    };
    let pairs = [(1.0, of(1.0)), (-1.0, of(-1.0))];
    let vectors = Matrix::from_fn(2 * m, 2 * m, |at, mode| {
        let ((parity, pairs), i) = (&pairs[mode / m], at % m);
        let entry = pairs.eigenvectors[(i, mode % m)] * 0.5_f64.sqrt();
        if at < m { entry } else { mirrored(i, *parity) * entry }
    });
    let values = pairs.iter().flat_map(|(_, pairs)| pairs.eigenvalues.iter().copied()).collect();
    (vectors, values)
}

/// The inverse on what is not mapped to zero.
fn generalised_inverse(matrix: &DMatrix<f64>) -> DMatrix<f64> {
    let pairs = SymmetricEigen::new(matrix.clone());
    let largest = pairs.eigenvalues.amax();
    // 1e-10: kernels are rounding, and other eigenvalues are at least 1e-2 of the largest
    let inverses = pairs.eigenvalues.map(|value| if value > 1e-10 * largest { 1.0 / value } else { 0.0 });
    &pairs.eigenvectors * DMatrix::from_diagonal(&inverses) * pairs.eigenvectors.transpose()
}
