//! Sums of tensor products, found in the values of a cell's matrix.

use crate::line::Matrix;
use crate::{Element, MultigridError};

/// Largest difference of an entry from the sum of products, relative to the largest entry.
const TOLERANCE: f64 = 1e-13;

/// Matrices M and A of one dimension of which the matrix of a cell is the sum of tensor products, with
/// the entries of M adding up to 1.
///
/// # Source
/// Cui et al. 2024, equations (2.11) and (2.12).
#[derive(Clone, Debug, PartialEq)]
pub struct TensorFactors {
    /// M, [k + 1, k + 1].
    pub mass: Matrix,
    /// A, [k + 1, k + 1].
    pub stiffness: Matrix,
}

impl TensorFactors {
    /// Finds the factors of a cell's matrix and certifies every entry to 1e-13 of the largest.
    ///
    /// Rows and columns of A add up to zero, so that the sums of the matrix over all axes but one are A.
    /// At the first node of one more axis the matrix is `A m + M a`, with the first entries of both,
    /// from which M follows.
    ///
    /// # Shapes and units
    /// `matrix[(k + 1)^d, (k + 1)^d]`, nodes in lexicographic order.
    ///
    /// # Errors
    /// Another number of entries; a matrix that is no such sum, with an entry that differs.
    pub fn of(matrix: &[f64], element: Element) -> Result<Self, MultigridError> {
        let (n, axes) = (element.degree + 1, element.dimension.axes());
        let nodes = n.pow(axes as u32);
        if matrix.len() != nodes * nodes {
            return Err(MultigridError::Length { found: matrix.len(), needed: nodes * nodes });
        }
        let along = |node: usize, axis: usize| node / n.pow(axis as u32) % n;
        let (mut stiffness, mut first) = (vec![0.0; n * n], vec![0.0; n * n]);
        for (at, entry) in matrix.iter().enumerate() {
            let (row, column) = (at / nodes, at % nodes);
            let place = along(row, 0) * n + along(column, 0);
            stiffness[place] += entry;
            if along(row, 1) == 0 && along(column, 1) == 0 {
                first[place] += entry;
            }
        }
        let a = stiffness[0];
        let m = first[0] / (2.0 * a);
        let mass = first.iter().zip(&stiffness).map(|(first, stiffness)| (first - m * stiffness) / a);
        let of = |entries| Matrix { rows: n, columns: n, entries };
        let found = Self { mass: of(mass.collect()), stiffness: of(stiffness) };
        found.certify(matrix, element)?;
        Ok(found)
    }

    /// An entry of the sum of products.
    fn entry(&self, row: usize, column: usize, axes: usize) -> f64 {
        let n = self.mass.rows;
        let along = |node: usize, axis: usize| node / n.pow(axis as u32) % n;
        let factor = |axis: usize, derived: usize| {
            let of = if axis == derived { &self.stiffness } else { &self.mass };
            of.at(along(row, axis), along(column, axis))
        };
        (0..axes).map(|derived| (0..axes).map(|axis| factor(axis, derived)).product::<f64>()).sum()
    }

    fn certify(&self, matrix: &[f64], element: Element) -> Result<(), MultigridError> {
        let axes = element.dimension.axes();
        let nodes = self.mass.rows.pow(axes as u32);
        let largest = matrix.iter().fold(0.0_f64, |most, entry| most.max(entry.abs()));
        for (at, found) in matrix.iter().enumerate() {
            let (row, column) = (at / nodes, at % nodes);
            let needed = self.entry(row, column, axes);
            let off = (found - needed).abs();
            if off.is_nan() || off > TOLERANCE * largest {
                return Err(MultigridError::NoTensorSum { row, column, found: *found, needed });
            }
        }
        Ok(())
    }
}
