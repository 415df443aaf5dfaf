//! Lagrange elements of any degree on triangles and tetrahedra.

use nalgebra::{DMatrix, Dyn, LU};
use thiserror::Error;

use super::CellShape;
use super::lattice::equispaced_nodes;
use super::orthonormal::{orthonormal, space_dimension};

/// Why an element or a tabulation was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ElementError {
    /// The degree is outside the range that the shape supports.
    #[error("Lagrange degree {degree} on a {shape}: supported are 1 to {max}")]
    Degree {
        /// The shape asked for.
        shape: CellShape,
        /// The degree asked for.
        degree: usize,
        /// The highest degree on that shape.
        max: usize,
    },
    /// The list of coordinates does not hold whole points.
    #[error("{length} coordinates are not whole points of dimension {dim}: give them as [points, {dim}]")]
    Points {
        /// The number of coordinates given.
        length: usize,
        /// The number of coordinates of a point.
        dim: usize,
    },
    /// A bug of this crate: the nodes do not determine the polynomials.
    #[error("bug of purlin: the nodes of P{degree} on a {shape} do not determine its polynomials")]
    Singular {
        /// The shape asked for.
        shape: CellShape,
        /// The degree asked for.
        degree: usize,
    },
}

/// Basis functions and their first derivatives at some points.
#[derive(Clone, Debug, PartialEq)]
pub struct Tabulation {
    /// The number of points.
    pub n_points: usize,
    /// The number of basis functions.
    pub n_dofs: usize,
    /// [points, dofs] row-major.
    pub values: Vec<f64>,
    /// For each reference axis, [points, dofs] row-major.
    pub gradients: Vec<Vec<f64>>,
}

/// A scalar Lagrange element on equispaced nodes.
///
/// Nodes are ordered vertices, edges, faces, interior; within an entity the lattice point whose
/// count of the entity's second vertex grows runs fastest (an edge runs from its lower to its
/// higher vertex). Equispaced nodes, because every table then has rational entries that can be
/// checked by hand, and to degree 8 their Lebesgue constant costs no accuracy that a double would
/// miss. A vector element is a scalar one with its components innermost.
#[derive(Clone, Debug, PartialEq)]
pub struct LagrangeElement {
    shape: CellShape,
    degree: usize,
    nodes: Vec<f64>,
    /// Inverse of the Vandermonde matrix, [orthonormal functions, dofs].
    coefficients: DMatrix<f64>,
}

/// Entries of a table whose size is below this part of the table's largest are rounding noise and
/// become 0; entries as near to 1 or -1 become exactly that. Against exact values the noise is at
/// most 5e-15 of the largest entry (triangle P7; 200 random points and the nodes); a true entry is
/// this small only within about 1e-14 of a zero of its function.
const NOISE: f64 = 1e-14;

impl LagrangeElement {
    /// The highest degree on `shape`: 8 on triangles, 6 on tetrahedra.
    #[must_use]
    pub const fn max_degree(shape: CellShape) -> usize {
        match shape {
            CellShape::Triangle => 8,
            CellShape::Tetrahedron => 6,
        }
    }

    /// The element of a degree.
    ///
    /// # Errors
    /// [`ElementError::Degree`] outside `1..=max_degree(shape)`.
    pub fn new(shape: CellShape, degree: usize) -> Result<Self, ElementError> {
        let max = Self::max_degree(shape);
        if degree == 0 || degree > max {
            return Err(ElementError::Degree { shape, degree, max });
        }
        let nodes = equispaced_nodes(shape, degree);
        let n = space_dimension(shape, degree);
        let vandermonde = DMatrix::from_row_slice(n, n, &orthonormal(shape, degree, &nodes).values);
        let coefficients = refined_inverse(&vandermonde).ok_or(ElementError::Singular { shape, degree })?;
        Ok(Self { shape, degree, nodes, coefficients })
    }

    /// The reference cell.
    #[must_use]
    pub const fn shape(&self) -> CellShape {
        self.shape
    }

    /// The polynomial degree.
    #[must_use]
    pub const fn degree(&self) -> usize {
        self.degree
    }

    /// The number of basis functions.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.coefficients.ncols()
    }

    /// The nodes, [dofs, dim] row-major: basis function `i` is 1 at node `i` and 0 at the others.
    #[must_use]
    pub fn points(&self) -> &[f64] {
        &self.nodes
    }

    /// How many nodes lie in the interior of each entity of dimension `dim`.
    #[must_use]
    pub fn dofs_per_entity(&self, dim: usize) -> usize {
        // The binomial of (degree - 1, dim), 0 above the cell's dimension.
        match dim {
            0 => 1,
            d if d > self.shape.dim() => 0,
            d => (0..d).fold(1, |product, i| product * (self.degree - 1).saturating_sub(i) / (i + 1)),
        }
    }

    /// The basis functions whose nodes lie in the interior of entity `entity` of dimension `dim`;
    /// empty if there is no such entity.
    #[must_use]
    pub fn entity_dofs(&self, dim: usize, entity: usize) -> std::ops::Range<usize> {
        if entity >= self.shape.entities(dim).len() {
            return 0..0;
        }
        let lower: usize = (0..dim).map(|d| self.dofs_per_entity(d) * self.shape.entities(d).len()).sum();
        let start = lower + entity * self.dofs_per_entity(dim);
        start..start + self.dofs_per_entity(dim)
    }

    /// Values and gradients of all basis functions.
    ///
    /// Noise is removed: entries below 1e-14 of their table's largest become 0, entries as near to
    /// ±1 become ±1.
    ///
    /// # Shapes and units
    /// `points` is [points, dim] row-major in reference coordinates; they may lie outside the cell.
    ///
    /// # Errors
    /// [`ElementError::Points`] if the length of `points` is not a multiple of the dimension.
    pub fn tabulate(&self, points: &[f64]) -> Result<Tabulation, ElementError> {
        let dim = self.shape.dim();
        if !points.len().is_multiple_of(dim) {
            return Err(ElementError::Points { length: points.len(), dim });
        }
        let basis = orthonormal(self.shape, self.degree, points);
        let n_points = points.len() / dim;
        let expand = |table: &[f64]| self.expand(n_points, table);
        Ok(Tabulation {
            n_points,
            n_dofs: self.dim(),
            values: expand(&basis.values),
            gradients: basis.gradients.iter().map(|table| expand(table)).collect(),
        })
    }

    /// From orthonormal functions to nodal ones, both [points, functions] row-major.
    fn expand(&self, n_points: usize, table: &[f64]) -> Vec<f64> {
        let basis = DMatrix::from_row_slice(n_points, self.dim(), table);
        // nalgebra stores by column, so the transpose's storage is the row-major table.
        let mut nodal = (basis * &self.coefficients).transpose().as_slice().to_vec();
        snap(&mut nodal);
        nodal
    }
}

/// The inverse of a well-conditioned matrix, with one step of iterative refinement; none if it is
/// singular.
fn refined_inverse(matrix: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    let lu: LU<f64, Dyn, Dyn> = matrix.clone().lu();
    let inverse = lu.try_inverse()?;
    let identity = DMatrix::identity(matrix.nrows(), matrix.ncols());
    Some(&inverse + &inverse * (identity - matrix * &inverse))
}

fn snap(table: &mut [f64]) {
    let noise = NOISE * table.iter().fold(0.0_f64, |largest, v| largest.max(v.abs()));
    for value in table {
        for exact in [0.0, 1.0, -1.0] {
            if (*value - exact).abs() <= noise {
                *value = exact;
            }
        }
    }
}
