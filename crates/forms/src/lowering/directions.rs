//! Along which directions a reference cell differentiates functions.

use crate::form::{ExpandedForm, FormError, Measure, Region, Scalar, ScalarGraph, ScalarId, tensor};
use kingpost_fem::element::CellShape;
use serde::{Deserialize, Serialize};

/// The directions of the derivatives that a kernel evaluates.
///
/// A gradient on the cell is the same for any that are independent; tables and geometry differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// Along the axes of the reference cell: `v1 - v0`, `v2 - v0`, `v3 - v0` of its vertices.
    #[default]
    Axes,
    /// Directions that a group of permutations of the vertices multiplies by 1 or -1. On
    /// tetrahedra the double transpositions (01)(23), (02)(13), (03)(12), and `v0 + v1 - v2 - v3`,
    /// `v0 + v2 - v1 - v3`, `v0 + v3 - v1 - v2`. On triangles (01), and `v1 - v0`,
    /// `2*v2 - v0 - v1`.
    Symmetric,
}

impl Directions {
    /// Signs of vertices in the directions: [directions, vertices].
    ///
    /// The derivative along one is a sum of those along the axes, with the signs of the vertices
    /// from the second one on.
    pub(super) fn vertices(self, cell: CellShape) -> &'static [&'static [i8]] {
        match (self, cell) {
            (Self::Axes, CellShape::Triangle) => &[&[-1, 1, 0], &[-1, 0, 1]],
            (Self::Axes, CellShape::Tetrahedron) => &[&[-1, 1, 0, 0], &[-1, 0, 1, 0], &[-1, 0, 0, 1]],
            (Self::Symmetric, CellShape::Triangle) => &[&[-1, 1, 0], &[-1, -1, 2]],
            (Self::Symmetric, CellShape::Tetrahedron) => &[&[1, 1, -1, -1], &[1, -1, 1, -1], &[1, -1, -1, 1]],
            (_, CellShape::Interval) => &[&[-1, 1]],
            (_, CellShape::Quadrilateral | CellShape::Hexahedron | CellShape::Prism | CellShape::Pyramid) => {
                &[]
            }
        }
    }

    /// The volume that they span, with those along the axes as 1.
    pub(super) fn volume(self, cell: CellShape) -> f64 {
        match (self, cell) {
            (Self::Symmetric, CellShape::Triangle) => 2.0,
            (Self::Symmetric, CellShape::Tetrahedron) => 4.0,
            (
                Self::Symmetric,
                CellShape::Interval
                | CellShape::Quadrilateral
                | CellShape::Hexahedron
                | CellShape::Prism
                | CellShape::Pyramid,
            )
            | (Self::Axes, _) => 1.0,
        }
    }

    /// What stands before the number of a direction in the names of tables and derivatives.
    pub(super) fn letter(self) -> char {
        match self {
            Self::Axes => 'd',
            Self::Symmetric => 's',
        }
    }

    /// The directions of a form: along the axes where nothing is differentiated.
    ///
    /// # Errors
    /// What is differentiated along the axes only.
    pub(super) fn of(self, form: &ExpandedForm) -> Result<Self, FormError> {
        let roots: Vec<ScalarId> = form.integrals.iter().map(|(_, root)| *root).collect();
        let order = |id: &ScalarId| if let Scalar::Jet(jet) = form.graph.node(*id) { jet.order() } else { 0 };
        let order = form.graph.below(&roots, |_| false).iter().map(order).max().unwrap_or(0);
        if self == Self::Axes || order == 0 {
            return Ok(Self::Axes);
        }
        let refuse = |found: &str| {
            Err(FormError::Discretisation(format!(
                "found {found}, needed integrals over straight triangles or tetrahedra with first derivatives of \
                 Lagrange elements; differentiate along the axes"
            )))
        };
        if !matches!(form.cell, CellShape::Triangle | CellShape::Tetrahedron) || !form.is_affine() {
            return refuse("symmetric directions on other cells");
        }
        let over_cells = |m: &Measure| m.region() == Region::Cells;
        if !form.integrals.iter().all(|(measure, _)| over_cells(measure)) {
            return refuse("symmetric directions in an integral over facets");
        }
        let coefficients = form.graph.coefficients().iter().map(|c| &c.space);
        if !coefficients.chain(&form.test).chain(&form.trial).all(|s| s.lagrange_degree().is_some()) {
            return refuse("symmetric directions and another element");
        }
        if order > 1 {
            return refuse("symmetric directions and a second derivative");
        }
        Ok(self)
    }

    /// A component of the direction `k` of a cell, from that component of its vertices.
    pub(super) fn along(
        self,
        graph: &mut ScalarGraph,
        cell: CellShape,
        k: usize,
        vertex: &dyn Fn(usize) -> Scalar,
    ) -> ScalarId {
        let signs = self.vertices(cell).get(k).copied().unwrap_or_default();
        let mut sum = |sign: i8| {
            let mut terms = Vec::new();
            for (v, s) in signs.iter().enumerate().filter(|(_, s)| **s * sign > 0) {
                let end = graph.insert(vertex(v));
                terms.extend(std::iter::repeat_n(end, usize::from(s.unsigned_abs())));
            }
            tensor::sum(graph, terms)
        };
        let (plus, minus) = (sum(1), sum(-1));
        graph.subtract(plus, minus)
    }
}
