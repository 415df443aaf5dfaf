//! Matrices on the host, and Lagrange polynomials, whose values they hold.

/// A matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
    /// Its entries, [rows, columns].
    pub entries: Vec<f64>,
}

impl Matrix {
    /// The matrix with entries by row and column.
    pub(crate) fn from_fn(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let entries = (0..rows * columns).map(|at| entry(at / columns, at % columns)).collect();
        Self { rows, columns, entries }
    }

    /// An entry.
    #[must_use]
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.entries[row * self.columns + column]
    }
}

/// Values at `x` of the Lagrange polynomials of some nodes.
pub(crate) fn lagrange(nodes: &[f64], x: f64) -> Vec<f64> {
    let factor = |i: usize, j: usize| (x - nodes[j]) / (nodes[i] - nodes[j]);
    let others = |i: usize| (0..nodes.len()).filter(move |j| *j != i);
    (0..nodes.len()).map(|i| others(i).map(|j| factor(i, j)).product()).collect()
}

/// Derivatives at `x` of the Lagrange polynomials of some nodes.
pub(crate) fn lagrange_slopes(nodes: &[f64], x: f64) -> Vec<f64> {
    let all = 0..nodes.len();
    let without = |i: usize, j: usize| -> f64 {
        let rest = all.clone().filter(|l| *l != i && *l != j);
        rest.map(|l| (x - nodes[l]) / (nodes[i] - nodes[l])).product()
    };
    let slope =
        |i: usize| all.clone().filter(|j| *j != i).map(|j| without(i, j) / (nodes[i] - nodes[j])).sum();
    all.clone().map(slope).collect()
}
