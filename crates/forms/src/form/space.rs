//! Function spaces.

use crate::element::CellShape;
use std::fmt;

/// A space of continuous piecewise polynomials on affine simplices.
///
/// # Source
/// Kulkarni & Klöckner 2025, section 2.1 (equation 8), restricted to Lagrange elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionSpace {
    cell: CellShape,
    degree: usize,
    is_vector: bool,
}

impl FunctionSpace {
    /// Scalar Lagrange elements of a degree.
    pub fn scalar(cell: CellShape, degree: usize) -> Self {
        Self { cell, degree, is_vector: false }
    }

    /// Vector Lagrange elements: as many components as the cell has dimensions.
    pub fn vector(cell: CellShape, degree: usize) -> Self {
        Self { cell, degree, is_vector: true }
    }

    /// The cells the space lives on.
    pub fn cell(&self) -> CellShape {
        self.cell
    }

    /// Polynomial degree.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Dimension of the cells.
    pub fn dim(&self) -> usize {
        self.cell.dim()
    }

    /// Whether its functions are vectors.
    pub fn is_vector(&self) -> bool {
        self.is_vector
    }

    /// Values of a function at a point: 1, or the dimension for vectors.
    pub fn components(&self) -> usize {
        if self.is_vector { self.dim() } else { 1 }
    }
}

impl fmt::Display for FunctionSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_vector { "vector P" } else { "P" };
        write!(f, "{kind}{} on a {}", self.degree, self.cell)
    }
}
