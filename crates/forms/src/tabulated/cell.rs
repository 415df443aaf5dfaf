//! The reference cells of tabulated forms, in the numbering of UFL and basix.

use super::IntegralType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A reference cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReferenceCell {
    /// The unit interval.
    Interval,
    /// The unit triangle.
    Triangle,
    /// The unit tetrahedron.
    Tetrahedron,
    /// The unit square.
    Quadrilateral,
    /// The unit cube.
    Hexahedron,
}

impl ReferenceCell {
    /// Its dimension.
    #[must_use]
    pub const fn dim(self) -> usize {
        match self {
            Self::Interval => 1,
            Self::Triangle | Self::Quadrilateral => 2,
            Self::Tetrahedron | Self::Hexahedron => 3,
        }
    }

    /// Number of vertices.
    #[must_use]
    pub const fn vertices(self) -> usize {
        match self {
            Self::Interval => 2,
            Self::Triangle => 3,
            Self::Tetrahedron | Self::Quadrilateral => 4,
            Self::Hexahedron => 8,
        }
    }

    /// Whether it is a simplex.
    #[must_use]
    pub const fn is_simplex(self) -> bool {
        match self {
            Self::Interval | Self::Triangle | Self::Tetrahedron => true,
            Self::Quadrilateral | Self::Hexahedron => false,
        }
    }

    /// Number of facets.
    #[must_use]
    pub const fn facets(self) -> usize {
        match self {
            Self::Interval => 2,
            Self::Triangle => 3,
            Self::Tetrahedron | Self::Quadrilateral => 4,
            Self::Hexahedron => 6,
        }
    }

    /// Dimension of the points of a rule over its entities of a kind.
    #[must_use]
    pub const fn point_dim(self, over: IntegralType) -> usize {
        match over {
            IntegralType::Cell => self.dim(),
            IntegralType::ExteriorFacet | IntegralType::InteriorFacet => self.dim() - 1,
        }
    }
}

impl fmt::Display for ReferenceCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interval => "interval",
            Self::Triangle => "triangle",
            Self::Tetrahedron => "tetrahedron",
            Self::Quadrilateral => "quadrilateral",
            Self::Hexahedron => "hexahedron",
        })
    }
}
