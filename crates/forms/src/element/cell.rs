//! Reference cells: their vertices, edges and faces in one fixed order.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A reference cell: the unit simplex with one vertex at the origin and one at the end of each
/// axis.
///
/// Sub-entities are lists of vertices in ascending order; entity `i` of the highest proper
/// dimension is the one that does not hold vertex `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellShape {
    /// Vertices (0,0), (1,0), (0,1).
    Triangle,
    /// Vertices (0,0,0), (1,0,0), (0,1,0), (0,0,1).
    Tetrahedron,
}

const TRIANGLE_VERTICES: &[&[usize]] = &[&[0], &[1], &[2]];
const TRIANGLE_EDGES: &[&[usize]] = &[&[1, 2], &[0, 2], &[0, 1]];
const TRIANGLE_CELL: &[&[usize]] = &[&[0, 1, 2]];
const TETRAHEDRON_VERTICES: &[&[usize]] = &[&[0], &[1], &[2], &[3]];
const TETRAHEDRON_EDGES: &[&[usize]] = &[&[2, 3], &[1, 3], &[1, 2], &[0, 3], &[0, 2], &[0, 1]];
const TETRAHEDRON_FACES: &[&[usize]] = &[&[1, 2, 3], &[0, 2, 3], &[0, 1, 3], &[0, 1, 2]];
const TETRAHEDRON_CELL: &[&[usize]] = &[&[0, 1, 2, 3]];

impl CellShape {
    /// The dimension of the cell, and of the space it lies in.
    #[must_use]
    pub const fn dim(self) -> usize {
        match self {
            Self::Triangle => 2,
            Self::Tetrahedron => 3,
        }
    }

    /// The number of vertices, `dim + 1`.
    #[must_use]
    pub const fn n_vertices(self) -> usize {
        self.dim() + 1
    }

    /// The reference vertices, [vertices, dim] row-major.
    #[must_use]
    pub const fn vertices(self) -> &'static [f64] {
        match self {
            Self::Triangle => &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0],
            Self::Tetrahedron => &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        }
    }

    /// The edges as pairs of vertices: (1,2), (0,2), (0,1) of a triangle;
    /// (2,3), (1,3), (1,2), (0,3), (0,2), (0,1) of a tetrahedron.
    #[must_use]
    pub const fn edges(self) -> &'static [&'static [usize]] {
        match self {
            Self::Triangle => TRIANGLE_EDGES,
            Self::Tetrahedron => TETRAHEDRON_EDGES,
        }
    }

    /// The triangular faces as triples of vertices: the triangle itself;
    /// (1,2,3), (0,2,3), (0,1,3), (0,1,2) of a tetrahedron.
    #[must_use]
    pub const fn faces(self) -> &'static [&'static [usize]] {
        match self {
            Self::Triangle => TRIANGLE_CELL,
            Self::Tetrahedron => TETRAHEDRON_FACES,
        }
    }

    /// The entities of dimension `dim`, each as its vertices in ascending order; none above the
    /// cell's dimension.
    #[must_use]
    pub const fn entities(self, dim: usize) -> &'static [&'static [usize]] {
        match (self, dim) {
            (Self::Triangle, 0) => TRIANGLE_VERTICES,
            (Self::Tetrahedron, 0) => TETRAHEDRON_VERTICES,
            (_, 1) => self.edges(),
            (_, 2) => self.faces(),
            (Self::Tetrahedron, 3) => TETRAHEDRON_CELL,
            (Self::Triangle | Self::Tetrahedron, _) => &[],
        }
    }

    /// The area or volume of the reference cell: 1/2 or 1/6.
    #[must_use]
    pub const fn volume(self) -> f64 {
        match self {
            Self::Triangle => 0.5,
            Self::Tetrahedron => 1.0 / 6.0,
        }
    }

    /// The name used in messages and files, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Triangle => "triangle",
            Self::Tetrahedron => "tetrahedron",
        }
    }
}

impl fmt::Display for CellShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
