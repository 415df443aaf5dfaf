//! Matrices of lines of a patch, of which residuals on its own unknowns are sums of tensor products.

use super::StokesLine;
use crate::matrix::Matrix;

/// Matrices of a line of two cells: rows are unknowns of a patch, columns those that the operator
/// reads. What is zero up to roundings is zero.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PatchLine {
    /// The stiffness matrix of continuous functions: rows of inner ones, [2 m - 1, 2 m + 1].
    pub(super) stiffness: Matrix,
    /// Likewise of their mass matrix.
    pub(super) mass: Matrix,
    /// Rows of the interior penalty method, as of two cells between others, in the unknowns of both,
    /// [2 m, 2 m].
    pub(super) own: Matrix,
    /// The same in those of the cell before the first, and of the one after the second, [2 m, m].
    pub(super) neighbours: Matrix,
    /// What is added to the block of a cell that is the first of a line, then of one that is the
    /// last, [2 m, m].
    pub(super) ends: Matrix,
    /// The gradient of a pressure: rows of inner functions, [2 m - 1, 2 m].
    pub(super) gradient: Matrix,
    /// The divergence, [2 m, 2 m + 1].
    pub(super) divergence: Matrix,
}

impl PatchLine {
    pub(super) fn new(line: &StokesLine) -> Self {
        let m = line.unknowns;
        let inner = |of_cell: &Matrix, columns: usize| {
            of_largest(Matrix::from_fn(2 * m - 1, columns, |row, column| {
                let (cell, i) = ((row + 1) / m, (row + 1) % m);
                entry(of_cell, i, column + m, m * cell)
            }))
        };
        let across = |place: usize, row: usize, column: usize| line.across.at(m * place + row % m, column);
        let own = |row: usize, column: usize| match row / m {
            0 => across(1, row, m + column),
            _ => across(1, row, column),
        };
        Self {
            stiffness: inner(&line.stiffness, 2 * m + 1),
            mass: inner(&line.mass, 2 * m + 1),
            own: of_largest(Matrix::from_fn(2 * m, 2 * m, own)),
            neighbours: of_largest(Matrix::from_fn(2 * m, m, |row, column| {
                across(1, row, if row < m { column } else { 2 * m + column })
            })),
            ends: of_largest(Matrix::from_fn(2 * m, m, |row, column| {
                let place = if row < m { 0 } else { 2 };
                across(place, row, m + column) - across(1, row, m + column)
            })),
            gradient: inner(&line.gradient, 2 * m),
            divergence: of_largest(Matrix::from_fn(2 * m, 2 * m + 1, |row, column| {
                entry(&line.divergence, row % m, column, row / m * m)
            })),
        }
    }

    /// By their names in the kernel.
    pub(super) const fn by_name(&self) -> [(&'static str, &Matrix); 7] {
        [
            ("A", &self.stiffness),
            ("M", &self.mass),
            ("N", &self.own),
            ("H", &self.neighbours),
            ("B", &self.ends),
            ("G", &self.gradient),
            ("D", &self.divergence),
        ]
    }
}

/// An entry of a matrix whose columns begin with one of the patch; zero outside.
fn entry(matrix: &Matrix, row: usize, column: usize, first: usize) -> f64 {
    let at = column.checked_sub(first).filter(|at| *at < matrix.columns);
    at.map_or(0.0, |at| matrix.at(row, at))
}

/// Zeros for entries that are roundings of the largest.
fn of_largest(mut matrix: Matrix) -> Matrix {
    let largest = matrix.entries.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    // 1e-13: integrals by sums of some ten terms
    matrix.entries.iter_mut().filter(|x| x.abs() < 1e-13 * largest).for_each(|x| *x = 0.0);
    matrix
}
