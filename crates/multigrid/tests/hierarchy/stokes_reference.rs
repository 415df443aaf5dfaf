//! Stokes' equations by quadrature over cells and faces, with basis functions of their own code.

#![allow(clippy::unwrap_used)] // what a failed test does

use kingpost_fem::quadrature::gauss_jacobi;
use kingpost_multigrid::Matrix;
use nalgebra::{DMatrix, DVector, SymmetricEigen};
use std::collections::BTreeMap;

/// A matrix, the columns and entries of each row.
pub struct Sparse(Vec<BTreeMap<usize, f64>>);

impl Sparse {
    pub fn zeros(rows: usize) -> Self {
        Self(vec![BTreeMap::new(); rows])
    }

    pub fn add(&mut self, row: usize, column: usize, value: f64) {
        *self.0[row].entry(column).or_default() += value;
    }

    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        self.0.iter().map(|row| row.iter().map(|(column, value)| value * x[*column]).sum()).collect()
    }

    pub fn transposed_times(&self, y: &[f64], columns: usize) -> Vec<f64> {
        let mut x = vec![0.0; columns];
        for (row, y) in self.0.iter().zip(y) {
            row.iter().for_each(|(column, value)| x[*column] += value * y);
        }
        x
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.0[row].get(&column).copied().unwrap_or(0.0) // what is not stored is zero
    }
}

/// A mesh with elements RT_(m - 1).
#[derive(Clone, Copy)]
pub struct Mesh {
    pub axes: usize,
    pub m: usize,
    pub cells: usize,
}

/// A point of a cell, by its place there.
type Place<'a> = (&'a [usize], &'a [f64]);

/// The orthonormal Legendre polynomial on [0, 1], by the sum over powers of Rodrigues' formula.
fn polynomial(n: usize, x: f64) -> f64 {
    let binomial = |n: usize, k: usize| (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
    let sign = |k: usize| if (n + k).is_multiple_of(2) { 1.0 } else { -1.0 };
    let sum: f64 = (0..=n).map(|k| sign(k) * binomial(n, k) * binomial(n + k, k) * x.powi(k as i32)).sum();
    (2.0 * n as f64 + 1.0).sqrt() * sum
}

/// Its derivative likewise.
fn slope(n: usize, x: f64) -> f64 {
    let binomial = |n: usize, k: usize| (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
    let sign = |k: usize| if (n + k).is_multiple_of(2) { 1.0 } else { -1.0 };
    let power = |k: usize| k as f64 * x.powi(k as i32 - 1);
    (2.0 * n as f64 + 1.0).sqrt()
        * (1..=n).map(|k| sign(k) * binomial(n, k) * binomial(n + k, k) * power(k)).sum::<f64>()
}

/// The integral of the polynomial from 0 to `x`, by quadrature.
fn integral(n: usize, x: f64) -> f64 {
    let (points, weights) = gauss_jacobi(n + 2, 0);
    points.iter().zip(weights).map(|(y, w)| w * x * polynomial(n, x * y)).sum()
}

impl Mesh {
    pub const fn side(self) -> usize {
        self.m * (self.cells + 2)
    }

    pub const fn of_component(self) -> usize {
        self.side().pow(self.axes as u32)
    }

    pub const fn numbers(self) -> usize {
        (self.axes + 1) * self.of_component()
    }

    const fn h(self) -> f64 {
        1.0 / self.cells as f64
    }

    /// Value and derivative, with respect to the place in a cell, of a function of one coordinate.
    fn line(self, at: usize, is_normal: bool, cell: usize, x: f64) -> (f64, f64) {
        let (of, i) = (at / self.m, at % self.m); // cells from 1 on, as there is a layer around them
        match (is_normal, of == cell + 1, i) {
            (true, true, 0) => (1.0 - x, -1.0),
            (true, false, 0) if of == cell + 2 => (x, 1.0),
            (true, true, i) => (integral(i, x), polynomial(i, x)),
            (false, true, i) => (polynomial(i, x), slope(i, x)),
            _ => (0.0, 0.0),
        }
    }

    /// The component of a function, and its places along each axis.
    fn places(self, number: usize) -> (usize, Vec<usize>) {
        let at = number % self.of_component();
        let along = |axis: usize| at / self.side().pow(axis as u32) % self.side();
        (number / self.of_component(), (0..self.axes).map(along).collect())
    }

    /// Whether a number of a vector is an unknown.
    pub fn is_unknown(self, number: usize) -> bool {
        let (component, places) = self.places(number);
        places.iter().enumerate().all(|(axis, at)| {
            let first = self.m + usize::from(axis == component);
            (first..self.m * (self.cells + 1)).contains(at)
        })
    }

    pub fn unknowns(self) -> Vec<usize> {
        (0..self.numbers()).filter(|number| self.is_unknown(*number)).collect()
    }

    /// Value and gradient of a scalar function.
    fn function(self, number: usize, (cell, x): Place<'_>) -> (f64, Vec<f64>) {
        let (component, places) = self.places(number);
        let along: Vec<(f64, f64)> =
            (0..self.axes).map(|a| self.line(places[a], a == component, cell[a], x[a])).collect();
        let product = |derived: Option<usize>| -> f64 {
            let factor = |axis: usize| {
                if derived == Some(axis) { along[axis].1 / self.h() } else { along[axis].0 }
            };
            (0..self.axes).map(factor).product()
        };
        (product(None), (0..self.axes).map(|axis| product(Some(axis))).collect())
    }

    /// Values of all components of a vector at a place, the pressure's last.
    pub fn values(self, vector: &[f64], place: Place<'_>) -> Vec<f64> {
        let mut values = vec![0.0; self.axes + 1];
        for number in self.near(place.0) {
            values[number / self.of_component()] += vector[number] * self.function(number, place).0;
        }
        values[self.axes] /= self.h(); // its unknowns are multiplied with the length of a cell
        values
    }

    /// Unknowns whose functions may not be zero on a cell.
    fn near(self, cell: &[usize]) -> Vec<usize> {
        let of_component = |component: usize| {
            let mut near = vec![component * self.of_component()];
            for (axis, cell) in cell.iter().enumerate() {
                let first = self.m * (cell + 1);
                let places = first..first + self.m + usize::from(axis == component);
                let stride = self.side().pow(axis as u32);
                near = places.flat_map(|at| near.iter().map(move |n| n + at * stride)).collect();
            }
            near.retain(|number| self.is_unknown(*number));
            near
        };
        (0..=self.axes).flat_map(of_component).collect()
    }

    pub fn all_cells(self) -> Vec<Vec<usize>> {
        let cells = (0..self.cells.pow(self.axes as u32)).collect::<Vec<_>>();
        let at = |cell: usize| (0..self.axes).map(|a| cell / self.cells.pow(a as u32) % self.cells).collect();
        cells.into_iter().map(at).collect()
    }

    /// Points of a rule that is exact for products of functions, with their weights.
    pub fn rule(self, axes: usize, points: usize) -> Vec<(Vec<f64>, f64)> {
        let (x, w) = gauss_jacobi(points, 0);
        let mut all = vec![(Vec::new(), 1.0)];
        for _ in 0..axes {
            let longer = |(point, weight): &(Vec<f64>, f64)| {
                let extended = |(x, w): (&f64, &f64)| ([&point[..], &[*x]].concat(), weight * w);
                x.iter().zip(&w).map(extended).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    }

    /// The matrix of Stokes' equations over h^(d - 2), the pressure times h.
    pub fn matrix(self) -> Sparse {
        let mut a = Sparse::zeros(self.numbers());
        for cell in self.all_cells() {
            self.add_cell(&cell, &mut a);
            for axis in 0..self.axes {
                // the face before the cell, and the one after the last cell
                self.add_face(&cell, axis, false, &mut a);
                if cell[axis] + 1 == self.cells {
                    self.add_face(&cell, axis, true, &mut a);
                }
            }
        }
        a
    }

    fn add_cell(self, cell: &[usize], a: &mut Sparse) {
        let near = self.near(cell);
        let component = |number: usize| number / self.of_component();
        for (x, weight) in self.rule(self.axes, self.m + 1) {
            let weight = weight * self.h().powi(2); // h^d over h^(d - 2)
            let at: Vec<_> = near.iter().map(|number| self.function(*number, (cell, &x))).collect();
            for (i, of_i) in near.iter().zip(&at) {
                for (j, of_j) in near.iter().zip(&at) {
                    let (ci, cj) = (component(*i), component(*j));
                    let value = if ci == cj && ci < self.axes {
                        of_i.1.iter().zip(&of_j.1).map(|(a, b)| a * b).sum()
                    } else if ci == self.axes && cj < self.axes {
                        -of_i.0 * of_j.1[cj] / self.h()
                    } else if cj == self.axes && ci < self.axes {
                        -of_j.0 * of_i.1[ci] / self.h()
                    } else {
                        0.0
                    };
                    a.add(*i, *j, weight * value);
                }
            }
        }
    }

    /// Adds the terms of the face of a cell that is before it along an axis, or after it.
    fn add_face(self, cell: &[usize], axis: usize, is_after: bool, a: &mut Sparse) {
        let penalty = (self.m * self.m) as f64 / self.h();
        let at_boundary = is_after || cell[axis] == 0;
        let (factor, mean) = if at_boundary { (2.0, 1.0) } else { (1.0, 0.5) };
        // cells on either side with the sign of the normal that leaves them
        let mut sides = vec![(cell.to_vec(), if is_after { 1.0 } else { -1.0 })];
        if !at_boundary {
            let mut before = cell.to_vec();
            before[axis] -= 1;
            sides.push((before, 1.0));
        }
        let mut near: Vec<usize> = sides.iter().flat_map(|(cell, _)| self.near(cell)).collect();
        near.sort_unstable();
        near.dedup();
        near.retain(|number| number / self.of_component() < self.axes);
        for (point, weight) in self.rule(self.axes - 1, self.m + 1) {
            let weight = weight * self.h(); // h^(d - 1) over h^(d - 2)
            let traces: Vec<(f64, f64)> = near
                .iter()
                .map(|number| {
                    sides.iter().fold((0.0, 0.0), |(jump, flux), (cell, sign)| {
                        let mut x = point.clone();
                        x.insert(axis, if *sign > 0.0 { 1.0 } else { 0.0 });
                        let (value, gradient) = self.function(*number, (cell, &x));
                        (jump + sign * value, flux + mean * gradient[axis])
                    })
                })
                .collect();
            for (i, (jump_i, flux_i)) in near.iter().zip(&traces) {
                for (j, (jump_j, flux_j)) in near.iter().zip(&traces) {
                    if i / self.of_component() == j / self.of_component() {
                        let terms = factor * penalty * jump_i * jump_j - flux_i * jump_j - flux_j * jump_i;
                        a.add(*i, *j, weight * terms);
                    }
                }
            }
        }
    }

    /// Unknowns of a patch of two cells a side, by those of a mesh with two cells a side.
    pub fn patch(self, first: &[usize]) -> Vec<usize> {
        let alone = Self { cells: 2, ..self };
        let shifted = |number: usize| {
            let (component, places) = alone.places(number);
            let place = |axis: usize| (places[axis] + self.m * first[axis]) * self.side().pow(axis as u32);
            component * self.of_component() + (0..self.axes).map(place).sum::<usize>()
        };
        alone.unknowns().into_iter().map(shifted).collect()
    }

    /// The generalised inverse of the matrix of a patch.
    pub fn patch_inverse(self) -> DMatrix<f64> {
        let alone = Self { cells: 2, ..self };
        let (a, unknowns) = (alone.matrix(), alone.unknowns());
        let n = unknowns.len();
        let pairs = SymmetricEigen::new(DMatrix::from_fn(n, n, |i, j| a.at(unknowns[i], unknowns[j])));
        let inverses = pairs.eigenvalues.map(|value| if value.abs() > 1e-9 { 1.0 / value } else { 0.0 });
        &pairs.eigenvectors * DMatrix::from_diagonal(&inverses) * pairs.eigenvectors.transpose()
    }

    /// One step of the smoother.
    pub fn smooth(self, a: &Sparse, inverse: &DMatrix<f64>, x: &mut [f64], b: &[f64]) {
        for colour in 0..1_usize << self.axes {
            let residual: Vec<f64> = b.iter().zip(a.times(x)).map(|(b, y)| b - y).collect();
            let is_of_colour = |cell: &&Vec<usize>| {
                (0..self.axes).all(|a| cell[a] % 2 == colour >> a & 1 && cell[a] + 1 < self.cells)
            };
            for first in self.all_cells().iter().filter(is_of_colour) {
                let patch = self.patch(first);
                let correction = inverse * DVector::from_fn(patch.len(), |i, _| residual[patch[i]]);
                patch.iter().zip(correction.iter()).for_each(|(at, c)| x[*at] += c);
            }
        }
    }

    /// What takes its vectors to those of a mesh of twice as many cells a side, by the tables of
    /// functions of one coordinate.
    pub fn prolongation(self, continuous: &Matrix, other: &Matrix) -> Sparse {
        let fine = Self { cells: 2 * self.cells, ..self };
        let mut all = Sparse::zeros(fine.numbers());
        // rows and columns along an axis, with their entries
        let along = |is_normal: bool| -> Vec<(usize, usize, f64)> {
            let table = if is_normal { continuous } else { other };
            let of_cell = |cell: usize| {
                let entry = move |at: usize| {
                    let (i, j) = (at / table.columns, at % table.columns);
                    (self.m * (1 + 2 * cell) + i, self.m * (1 + cell) + j, table.at(i, j))
                };
                (0..table.rows * table.columns).map(entry)
            };
            (0..self.cells).flat_map(of_cell).collect()
        };
        for component in 0..=self.axes {
            let factor = if component == self.axes { 0.5 } else { 1.0 };
            let start = (component * fine.of_component(), component * self.of_component(), factor);
            let mut products = vec![start];
            for axis in 0..self.axes {
                let [of_fine, of_coarse] = [fine, self].map(|mesh| mesh.side().pow(axis as u32));
                let longer = |(row, column, value): &(usize, usize, f64)| {
                    let with = |(i, j, entry): &(usize, usize, f64)| {
                        (row + i * of_fine, column + j * of_coarse, value * entry)
                    };
                    along(axis == component).iter().map(with).collect::<Vec<_>>()
                };
                products = products.iter().flat_map(longer).collect();
            }
            products.into_iter().for_each(|(row, column, value)| all.add(row, column, value));
        }
        all
    }
}
