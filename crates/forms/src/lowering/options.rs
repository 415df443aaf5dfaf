//! How a form is lowered.

use super::{Directions, MatrixResult, VectorResult};
use kingpost_fem::quadrature::QuadratureScheme;
use std::collections::BTreeSet;

/// How a form is lowered.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweringOptions {
    /// Name of the kernel.
    pub name: String,
    /// Quadrature scheme of all integrals, instead of what their measures say.
    pub scheme: Option<QuadratureScheme>,
    /// Quadrature degree of all integrals, instead of what their measures say or the estimate.
    pub degree: Option<usize>,
    /// Polynomial degree of the maps of cells: 1 of straight ones.
    pub geometry_degree: usize,
    /// What a bilinear form becomes.
    pub matrix: MatrixResult,
    /// What a linear form becomes.
    pub vector: VectorResult,
    /// Names of coefficients that are given by the values in each cell.
    pub cell_values: BTreeSet<String>,
    /// Along what functions are differentiated on the reference cell, if they are.
    pub directions: Directions,
    /// Whether the points of each rule stand in orbits, one after the other ([`Rule::in_orbits`]).
    ///
    /// [`Rule::in_orbits`]: kingpost_fem::quadrature::Rule::in_orbits
    pub point_orbits: bool,
}

impl LoweringOptions {
    /// Options that leave the measures as they are; bilinear forms become sparse matrices.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            scheme: None,
            degree: None,
            geometry_degree: 1,
            matrix: MatrixResult::Sparse,
            vector: VectorResult::Assembled,
            cell_values: BTreeSet::new(),
            directions: Directions::Axes,
            point_orbits: false,
        }
    }

    /// With rules of a scheme.
    #[must_use]
    pub fn with_scheme(self, scheme: QuadratureScheme) -> Self {
        Self { scheme: Some(scheme), ..self }
    }

    /// With rules of a degree.
    #[must_use]
    pub fn with_degree(self, degree: usize) -> Self {
        Self { degree: Some(degree), ..self }
    }

    /// For cells whose maps have a polynomial degree, that of
    /// [`Mesh::geometry_degree`](kingpost_fem::mesh::Mesh::geometry_degree); [`lower`] takes straight ones.
    #[must_use]
    pub fn with_geometry_degree(self, geometry_degree: usize) -> Self {
        Self { geometry_degree, ..self }
    }

    /// With derivatives along other directions: symmetric ones take integrals over straight triangles
    /// or tetrahedra with first derivatives of Lagrange elements.
    #[must_use]
    pub fn with_directions(self, directions: Directions) -> Self {
        Self { directions, ..self }
    }

    /// With the points of each rule in orbits.
    #[must_use]
    pub fn with_point_orbits(self) -> Self {
        Self { point_orbits: true, ..self }
    }

    /// For what a bilinear form becomes; [`lower`] takes linear ones.
    #[must_use]
    pub fn with_matrix(self, matrix: MatrixResult) -> Self {
        Self { matrix, ..self }
    }

    /// For what a linear form becomes on any spaces ([`MeshForm`]); [`lower`] takes assembled ones.
    #[must_use]
    pub fn with_vector(self, vector: VectorResult) -> Self {
        Self { vector, ..self }
    }

    /// For coefficients that are given by their degrees of freedom in each cell, E-vectors, instead of
    /// those of the mesh, on any spaces ([`MeshForm`]); [`lower`] takes those of the mesh. With
    /// [`VectorResult::Entities`] a kernel neither gathers nor scatters.
    ///
    /// # Shapes and units
    /// `[cells, columns]` or `[cells, columns, components]`, in the order of the map of the space:
    /// [`MeshForm::cell_values`] makes one of the degrees of freedom of the mesh.
    #[must_use]
    pub fn with_cell_values(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { cell_values: names.into_iter().map(Into::into).collect(), ..self }
    }
}
