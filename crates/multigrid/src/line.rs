//! The matrices of one dimension, of which those of patches are sums of tensor products.

use crate::matrix::{Matrix, lagrange, lagrange_slopes};
use crate::{Dimension, MultigridError, TensorTables};
use kingpost_fem::quadrature::{gauss_jacobi, gauss_lobatto};
use nalgebra::{Cholesky, DMatrix, SymmetricEigen};

/// Matrices of a cell of length 1 and of a patch of two such cells, in the Lagrange basis of the
/// Gauss–Lobatto–Legendre nodes.
///
/// On cells of length h a mass matrix is h times as large, and a stiffness matrix 1/h times. So the
/// sum of products (2.11) or (2.12) is h^(d - 2) times as large in d dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Polynomial degree k.
    pub degree: usize,
    /// Mass matrix of a cell, [k + 1, k + 1].
    pub cell_mass: Matrix,
    /// Stiffness matrix of a cell, [k + 1, k + 1].
    pub cell_stiffness: Matrix,
    /// Mass matrix of a patch with its ends, [2k + 1, 2k + 1].
    pub mass: Matrix,
    /// Stiffness matrix of a patch with its ends, [2k + 1, 2k + 1].
    pub stiffness: Matrix,
    /// Eigenvectors S of the inner nodes of a patch as columns, [2k - 1, 2k - 1]: `A S = M S Λ`,
    /// with `S^T M S = I`.
    pub eigenvectors: Matrix,
    /// Their eigenvalues Λ, ascending.
    pub eigenvalues: Vec<f64>,
    /// Values at the inner nodes of a patch of the functions that are 1 at one end, 0 at the other,
    /// and orthogonal in the mass matrix to those that are 0 at both, [2k - 1, 2].
    pub blend: Matrix,
    /// Their products with the stiffness matrix, [2k - 1, 2].
    pub flux: Matrix,
    /// Values of the basis of a cell at the nodes of its two halves except for the last, [2k, k + 1].
    pub prolongation: Matrix,
    /// Integrals of the basis of a cell, [k + 1].
    pub integrals: Vec<f64>,
}

/// A quadrature rule on a cell of length 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its points.
    pub points: Vec<f64>,
    /// Their weights, whose sum is 1.
    pub weights: Vec<f64>,
    /// Values of the basis of a cell, [points, k + 1].
    pub values: Matrix,
}

/// What integrals over cells whose vertices lie anywhere take: the Gauss rule with k + 1 points.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Weights, whose sum is 1.
    pub weights: Vec<f64>,
    /// Values of the basis of a cell at the points, [k + 1, k + 1].
    pub values: Matrix,
    /// Derivatives at the points of the polynomials that are 1 at one of the points and 0 at the
    /// others, [k + 1, k + 1].
    pub slopes: Matrix,
    /// Values of the two linear functions of a cell at the points, [k + 1, 2].
    pub linear: Matrix,
}

impl Line {
    /// Of this degree, at least 1. Mass and stiffness matrices are integrals over the tables of one
    /// dimension that those of the form are shown to be products of.
    ///
    /// # Errors
    /// A mass matrix that is not positive definite, tables that are no products: bugs.
    ///
    /// # Source
    /// Cui et al. 2024, equations (2.11) to (2.15).
    pub fn new(degree: usize) -> Result<Self, MultigridError> {
        let k = degree;
        let TensorTables { nodes, weights, values, slopes } = TensorTables::of_degree(k)?;
        let integral = |f: &dyn Fn(usize) -> f64| weights.iter().enumerate().map(|(q, w)| w * f(q)).sum();
        let of_products = |table: &Matrix| {
            Matrix::from_fn(k + 1, k + 1, |i, j| integral(&|q| table.at(q, i) * table.at(q, j)))
        };
        let [cell_mass, cell_stiffness] = [&values, &slopes].map(of_products);
        let [mass, stiffness] = [&cell_mass, &cell_stiffness].map(|cell| of_patch(k, cell));
        let (eigenvectors, eigenvalues) = eigenpairs(k, &mass, &stiffness)?;
        let [blend, flux] = blending(k, &mass, &stiffness)?;
        let half = |at: usize| 0.5 * ((at / k) as f64 + nodes[at % k]);
        let prolongation = Matrix::from_fn(2 * k, k + 1, |i, j| lagrange(&nodes, half(i))[j]);
        let integrals = (0..=k).map(|i| integral(&|q| values.at(q, i))).collect();
        Ok(Self {
            degree,
            cell_mass,
            cell_stiffness,
            mass,
            stiffness,
            eigenvectors,
            eigenvalues,
            blend,
            flux,
            prolongation,
            integrals,
        })
    }

    /// The inverse of the matrix of the inner nodes of a patch whose sum of products of reference
    /// matrices is multiplied with 1, lexicographically: that of fast diagonalisation, written out.
    ///
    /// # Shapes and units
    /// [(2k - 1)^d, (2k - 1)^d].
    ///
    /// # Source
    /// Cui et al. 2024, equations (2.13) and (2.14).
    #[must_use]
    pub fn inverse(&self, dimension: Dimension) -> Matrix {
        let n = self.eigenvalues.len();
        let s = DMatrix::from_row_slice(n, n, &self.eigenvectors.entries);
        let (vectors, axes) = match dimension {
            Dimension::Two => (s.kronecker(&s), 2),
            Dimension::Three => (s.kronecker(&s).kronecker(&s), 3),
        };
        let mode = |mode: usize| (0..axes).map(|axis| self.eigenvalues[mode / n.pow(axis) % n]).sum::<f64>();
        let scaled = DMatrix::from_fn(vectors.nrows(), vectors.ncols(), |i, j| vectors[(i, j)] / mode(j));
        let inverse = scaled * vectors.transpose();
        Matrix::from_fn(inverse.nrows(), inverse.ncols(), |i, j| inverse[(i, j)])
    }

    /// Inverses of the sums of eigenvalues along all axes, lexicographically.
    ///
    /// # Shapes and units
    /// `[(2k - 1)^d]`.
    #[must_use]
    pub fn inverses(&self, dimension: Dimension) -> Vec<f64> {
        inverses(&self.eigenvalues, dimension)
    }

    /// What takes nodes of a patch, its ends among them, to multiples of eigenvectors and blending
    /// functions: of eigenvectors, which are orthogonal to the latter in the mass matrix, [2k - 1,
    /// 2k + 1].
    #[must_use]
    pub fn to_modes(&self) -> Matrix {
        to_modes(&self.eigenvectors, &self.mass)
    }

    /// Eigenvectors with their eigenvalues, the even ones first, and [`Self::to_modes`] of these.
    #[must_use]
    pub(crate) fn sorted_modes(&self) -> (Matrix, Vec<f64>, Matrix) {
        let n = self.eigenvalues.len();
        // there is one even mode more
        let (vectors, mut values) = self.modes_by_parity(self.degree);
        values.truncate(n);
        let vectors = Matrix::from_fn(n, n, |i, mode| vectors.at(i, mode));
        let to_modes = to_modes(&vectors, &self.mass);
        (vectors, values, to_modes)
    }

    /// Eigenvectors with their eigenvalues, those that are even first, `half` of either parity:
    /// zeros, with eigenvalues of 1, fill both up. What is left of the other parity is rounding,
    /// and left out.
    ///
    /// # Shapes and units
    /// `[2k - 1, 2 half]` and `[2 half]`; `half` is at least k.
    #[must_use]
    pub(crate) fn modes_by_parity(&self, half: usize) -> (Matrix, Vec<f64>) {
        let n = self.eigenvalues.len();
        let part = |mode: usize, i: usize, sign: f64| {
            0.5 * (self.eigenvectors.at(i, mode) + sign * self.eigenvectors.at(n - 1 - i, mode))
        };
        let size = |mode: usize, sign: f64| (0..n).map(|i| part(mode, i, sign).powi(2)).sum::<f64>();
        let (even, odd): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|mode| size(*mode, 1.0) > size(*mode, -1.0));
        let mode_at = |at: usize| {
            let (modes, sign) = if at < half { (&even, 1.0) } else { (&odd, -1.0) };
            modes.get(at % half).map(|mode| (*mode, sign))
        };
        let vectors =
            Matrix::from_fn(n, 2 * half, |i, at| mode_at(at).map_or(0.0, |(mode, sign)| part(mode, i, sign)));
        let values =
            (0..2 * half).map(|at| mode_at(at).map_or(1.0, |(mode, _)| self.eigenvalues[mode])).collect();
        (vectors, values)
    }

    /// A Gauss rule on a cell of length 1, with the values of the basis at its points.
    #[must_use]
    pub fn rule(&self, points: usize) -> Rule {
        let nodes = gauss_lobatto(self.degree + 1).0;
        let (points, weights) = gauss_jacobi(points, 0);
        let values: Vec<Vec<f64>> = points.iter().map(|x| lagrange(&nodes, *x)).collect();
        let values = Matrix::from_fn(points.len(), self.degree + 1, |q, i| values[q][i]);
        Rule { points, weights, values }
    }

    /// The Gauss rule with k + 1 points, which is exact for the products of squares and
    /// parallelepipeds.
    #[must_use]
    pub fn points(&self) -> Points {
        let Rule { points, weights, values } = self.rule(self.degree + 1);
        let slopes: Vec<Vec<f64>> = points.iter().map(|x| lagrange_slopes(&points, *x)).collect();
        let m = points.len();
        Points {
            weights,
            values,
            slopes: Matrix::from_fn(m, m, |q, i| slopes[q][i]),
            linear: Matrix::from_fn(m, 2, |q, i| if i == 0 { 1.0 - points[q] } else { points[q] }),
        }
    }

    /// The integrals of a function times those of the nodes on a side of `cells` cells, by a Gauss
    /// rule that is exact for polynomials of degree 2k + 15; zero at both ends.
    ///
    /// # Shapes and units
    /// `[k cells + 1]`; cells have length 1 / `cells`.
    #[must_use]
    pub fn load_of(&self, cells: usize, function: impl Fn(f64) -> f64) -> Vec<f64> {
        self.load_over(cells, 1.0 / cells as f64, function)
    }

    /// The same on cells of length `h`, from 0 on.
    #[must_use]
    pub fn load_over(&self, cells: usize, h: f64, function: impl Fn(f64) -> f64) -> Vec<f64> {
        let k = self.degree;
        let rule = self.rule(k + 8);
        let mut load = vec![0.0; k * cells + 1];
        for cell in 0..cells {
            for (q, (x, w)) in rule.points.iter().zip(&rule.weights).enumerate() {
                let value = w * h * function((cell as f64 + x) * h);
                (0..=k).for_each(|i| load[k * cell + i] += value * rule.values.at(q, i));
            }
        }
        load[0] = 0.0;
        load[k * cells] = 0.0;
        load
    }

    /// The right-hand side of a constant source of 1 on a side of `cells` cells: the integrals of
    /// the nodes' functions, zero at both ends.
    ///
    /// # Shapes and units
    /// `[k cells + 1]`; cells have length 1 / `cells`.
    #[must_use]
    pub fn load(&self, cells: usize) -> Vec<f64> {
        let k = self.degree;
        let mut load = vec![0.0; k * cells + 1];
        for cell in 0..cells {
            for (i, integral) in self.integrals.iter().enumerate() {
                load[k * cell + i] += integral / cells as f64;
            }
        }
        load[0] = 0.0;
        load[k * cells] = 0.0;
        load
    }
}

/// The matrix of two cells side by side.
pub(crate) fn of_patch(k: usize, cell: &Matrix) -> Matrix {
    let of = |first: usize, i: usize, j: usize| {
        let inside = |at: usize| at.checked_sub(first).filter(|at| *at <= k);
        inside(i).zip(inside(j)).map_or(0.0, |(i, j)| cell.at(i, j))
    };
    Matrix::from_fn(2 * k + 1, 2 * k + 1, |i, j| of(0, i, j) + of(k, i, j))
}

/// Of eigenvectors as of [`Line::to_modes`].
fn to_modes(vectors: &Matrix, mass: &Matrix) -> Matrix {
    let n = vectors.rows;
    Matrix::from_fn(n, n + 2, |mode, i| (0..n).map(|j| vectors.at(j, mode) * mass.at(j + 1, i)).sum())
}

/// Of eigenvalues as of [`Line::inverses`].
pub(crate) fn inverses(eigenvalues: &[f64], dimension: Dimension) -> Vec<f64> {
    let (n, axes) = (eigenvalues.len(), dimension.axes() as u32);
    let sum = |mode: usize| (0..axes).map(|axis| eigenvalues[mode / n.pow(axis) % n]).sum::<f64>();
    (0..n.pow(axes)).map(|mode| 1.0 / sum(mode)).collect()
}

/// [`Line::blend`] and [`Line::flux`].
fn blending(k: usize, mass: &Matrix, stiffness: &Matrix) -> Result<[Matrix; 2], MultigridError> {
    let n = 2 * k - 1;
    let at_ends = |matrix: &Matrix| DMatrix::from_fn(n, 2, |i, end| matrix.at(i + 1, 2 * k * end));
    let inner = |matrix: &Matrix| DMatrix::from_fn(n, n, |i, j| matrix.at(i + 1, j + 1));
    let factors = Cholesky::new(inner(mass)).ok_or(MultigridError::NotPositive(k))?;
    let blend = -factors.solve(&at_ends(mass));
    let flux = at_ends(stiffness) + inner(stiffness) * &blend;
    Ok([blend, flux].map(|found| Matrix::from_fn(n, 2, |i, end| found[(i, end)])))
}

/// The generalised eigenproblem of the inner nodes, by Cholesky factors of the mass matrix.
pub(crate) fn eigenpairs(
    k: usize,
    mass: &Matrix,
    stiffness: &Matrix,
) -> Result<(Matrix, Vec<f64>), MultigridError> {
    let n = 2 * k - 1;
    let inner = |matrix: &Matrix| DMatrix::from_fn(n, n, |i, j| matrix.at(i + 1, j + 1));
    let factors = Cholesky::new(inner(mass)).ok_or(MultigridError::NotPositive(k))?;
    let inverse = factors.l().try_inverse().ok_or(MultigridError::NotPositive(k))?;
    let reduced = &inverse * inner(stiffness) * inverse.transpose();
    let pairs = SymmetricEigen::new(0.5 * (&reduced + reduced.transpose()));
    let vectors = inverse.transpose() * pairs.eigenvectors;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| pairs.eigenvalues[*a].total_cmp(&pairs.eigenvalues[*b]));
    let sorted = Matrix::from_fn(n, n, |i, j| vectors[(i, order[j])]);
    Ok((sorted, order.iter().map(|j| pairs.eigenvalues[*j]).collect()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_diagonalise_both_matrices() {
        for degree in 1..=8 {
            let line = Line::new(degree).unwrap();
            let n = 2 * degree - 1;
            let form = |matrix: &Matrix, a: usize, b: usize| -> f64 {
                let term = |i: usize, j: usize| {
                    line.eigenvectors.at(i, a) * matrix.at(i + 1, j + 1) * line.eigenvectors.at(j, b)
                };
                (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| term(i, j)).sum()
            };
            for a in 0..n {
                for b in 0..n {
                    let one = if a == b { 1.0 } else { 0.0 };
                    assert!((form(&line.mass, a, b) - one).abs() < 1e-12, "degree {degree}");
                    // eigenvalues grow like k^4: relative to the largest
                    let off = form(&line.stiffness, a, b) - one * line.eigenvalues[a];
                    assert!(off.abs() < 1e-12 * line.eigenvalues[n - 1], "degree {degree}: {off}");
                }
            }
        }
    }

    /// Blending functions are orthogonal to inner ones in the mass matrix, and so are what takes
    /// nodes to modes and they; the latter takes eigenvectors to unit vectors.
    #[test]
    fn blending_functions_are_orthogonal_to_modes() {
        for degree in 1..=8 {
            let line = Line::new(degree).unwrap();
            let n = 2 * degree - 1;
            let blend = |i: usize, end: usize| match i {
                0 => 1.0 - end as f64,
                _ if i == n + 1 => end as f64,
                _ => line.blend.at(i - 1, end),
            };
            let (sorted, _, sorted_to_modes) = line.sorted_modes();
            let of_line = (&line.eigenvectors, line.to_modes());
            for (vectors, to_modes) in [of_line, (&sorted, sorted_to_modes)] {
                for (mode, end) in (0..n).flat_map(|mode| [(mode, 0), (mode, 1)]) {
                    let product: f64 = (0..n + 2).map(|i| to_modes.at(mode, i) * blend(i, end)).sum();
                    assert!(product.abs() < 1e-13, "Q{degree}, mode {mode}: {product}");
                }
                for (mode, other) in (0..n).flat_map(|mode| (0..n).map(move |other| (mode, other))) {
                    let product: f64 = (0..n).map(|i| to_modes.at(mode, i + 1) * vectors.at(i, other)).sum();
                    let one = if mode == other { 1.0 } else { 0.0 };
                    assert!((product - one).abs() < 1e-12, "Q{degree}, modes {mode}, {other}: {product}");
                }
            }
            for (i, end) in (0..n).flat_map(|i| [(i, 0), (i, 1)]) {
                let product: f64 = (0..n + 2).map(|j| line.stiffness.at(i + 1, j) * blend(j, end)).sum();
                assert!((product - line.flux.at(i, end)).abs() < 1e-10, "Q{degree}, node {i}: {product}");
            }
        }
    }

    #[test]
    fn modes_by_parity_are_those_of_the_line() {
        for degree in 2..=8 {
            let line = Line::new(degree).unwrap();
            let (n, half) = (2 * degree - 1, degree + 1);
            let (vectors, values) = line.modes_by_parity(half);
            for (at, value) in values.iter().enumerate() {
                let sign = if at < half { 1.0 } else { -1.0 };
                assert!((0..n).all(|i| vectors.at(i, at) == sign * vectors.at(n - 1 - i, at)), "Q{degree}");
                let known = (0..n).find(|m| line.eigenvalues[*m] == *value);
                let same =
                    |m: usize| (0..n).all(|i| (vectors.at(i, at) - line.eigenvectors.at(i, m)).abs() < 1e-11);
                // what fills up has no entries
                let zero = *value == 1.0 && (0..n).all(|i| vectors.at(i, at) == 0.0);
                assert!(known.map_or(zero, same), "Q{degree}, mode {at}");
            }
            let found = values.iter().filter(|value| line.eigenvalues.contains(value)).count();
            assert_eq!(found, n, "Q{degree}");
        }
    }

    #[test]
    fn prolongation_and_loads_are_exact_on_polynomials() {
        for degree in 1..=8 {
            let line = Line::new(degree).unwrap();
            let nodes = gauss_lobatto(degree + 1).0;
            let power = |x: f64| x.powi(degree as i32);
            for i in 0..2 * degree {
                let x = 0.5 * ((i / degree) as f64 + nodes[i % degree]);
                let value: f64 = (0..=degree).map(|j| line.prolongation.at(i, j) * power(nodes[j])).sum();
                assert!((value - power(x)).abs() < 1e-14, "degree {degree}");
            }
            let integral: f64 = line.integrals.iter().zip(&nodes).map(|(w, x)| w * power(*x)).sum();
            assert!((integral - 1.0 / (degree + 1) as f64).abs() < 1e-14, "degree {degree}");
        }
    }
}
