//! Lagrange elements of any degree on equispaced nodes: those of the form language.

use super::{CellShape, ElementError, ElementFamily, FiniteElement, LagrangeVariant};

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
    element: FiniteElement,
    nodes: Vec<f64>,
}

impl LagrangeElement {
    /// The highest degree on `shape`: 8 in one and two dimensions, 2 on prisms and pyramids, else 6.
    #[must_use]
    pub const fn max_degree(shape: CellShape) -> usize {
        match shape {
            CellShape::Interval | CellShape::Triangle | CellShape::Quadrilateral => 8,
            CellShape::Tetrahedron | CellShape::Hexahedron => 6,
            CellShape::Prism | CellShape::Pyramid => 2,
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
        let family = ElementFamily::Lagrange(LagrangeVariant::Equispaced);
        let element = FiniteElement::new(shape, family, degree)?;
        let nodes = element.points().unwrap_or_default();
        Ok(Self { element, nodes })
    }

    /// The same as an element of any family.
    #[must_use]
    pub const fn as_element(&self) -> &FiniteElement {
        &self.element
    }

    /// The reference cell.
    #[must_use]
    pub const fn shape(&self) -> CellShape {
        self.element.shape()
    }

    /// The polynomial degree.
    #[must_use]
    pub const fn degree(&self) -> usize {
        self.element.degree()
    }

    /// The number of basis functions.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.element.n_dofs()
    }

    /// The nodes, [dofs, dim] row-major: basis function `i` is 1 at node `i` and 0 at the others.
    #[must_use]
    pub fn points(&self) -> &[f64] {
        &self.nodes
    }

    /// How many nodes lie in the interior of each entity of dimension `dim`.
    #[must_use]
    pub fn dofs_per_entity(&self, dim: usize) -> usize {
        self.element.dofs_per_entity(dim)
    }

    /// The basis functions whose nodes lie in the interior of entity `entity` of dimension `dim`;
    /// empty if there is no such entity.
    #[must_use]
    pub fn entity_dofs(&self, dim: usize, entity: usize) -> std::ops::Range<usize> {
        self.element.entity_dofs(dim, entity)
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
        let table = self.element.tabulate(points, 1)?;
        let (n_points, n_dofs) = (table.n_points, table.n_dofs);
        let gradients = (1..=self.shape().dim()).map(|axis| table.component(axis, 0)).collect();
        Ok(Tabulation { n_points, n_dofs, values: table.component(0, 0), gradients })
    }
}
