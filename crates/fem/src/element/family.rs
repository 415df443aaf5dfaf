//! Families of elements, their degrees, and how their values map to cells.

use super::CellShape;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the degrees of freedom of a Lagrange element are. From degree 3 on variants differ, and so
/// do the degrees of freedom of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LagrangeVariant {
    /// Values at equal distances along edges, faces and interiors.
    Equispaced,
    /// Values at Gauss–Lobatto–Legendre points, warped inwards on simplices (Hesthaven & Warburton
    /// 2008, section 6.1): the default of basix.
    GllWarped,
    /// Values at Gauss–Lobatto–Legendre points, on simplices by recursive means (Isaac 2020).
    GllIsaac,
    /// Integrals against orthonormal polynomials: of discontinuous elements only.
    Legendre,
}

impl LagrangeVariant {
    /// The name that basix gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equispaced => "equispaced",
            Self::GllWarped => "gll_warped",
            Self::GllIsaac => "gll_isaac",
            Self::Legendre => "legendre",
        }
    }
}

impl fmt::Display for LagrangeVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How reference values become values on a cell, with `J` the derivative of position by reference
/// coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pullback {
    /// The values themselves.
    Identity,
    /// `J v / det J`, which keeps normal components; the determinant has its sign.
    ContravariantPiola,
    /// `J^-T v`, which keeps tangential components.
    CovariantPiola,
}

/// A family of elements.
///
/// Degrees are those of basix: the highest degree of a polynomial in the space, so that the lowest
/// Raviart–Thomas and Nédélec elements have degree 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElementFamily {
    /// Scalar polynomials of a degree: P on simplices, Q (the degree in each coordinate) on squares
    /// and cubes.
    Lagrange(LagrangeVariant),
    /// Scalar polynomials that are 0 on the boundary, by values at equispaced points.
    Bubble,
    /// Vectors with continuous normal component (Raviart & Thomas 1977; Nédélec 1980 in 3-D).
    RaviartThomas,
    /// Vectors of complete polynomials with continuous normal component (Brezzi et al. 1985;
    /// Nédélec 1986 in 3-D).
    BrezziDouglasMarini,
    /// Vectors with continuous tangential components (Nédélec 1980).
    NedelecFirst,
    /// Vectors of complete polynomials with continuous tangential components (Nédélec 1986).
    NedelecSecond,
}

impl ElementFamily {
    /// The degrees that are supported on a shape; none if the family does not exist on it.
    ///
    /// Degree 0 is that of the discontinuous Lagrange element alone.
    #[must_use]
    pub const fn degrees(self, shape: CellShape) -> Option<(usize, usize)> {
        // each highest degree is the one to which tests compare with basix or check spans
        match (self, shape) {
            (Self::Lagrange(_), CellShape::Triangle | CellShape::Tetrahedron) => Some((0, 8)),
            (Self::Lagrange(_), CellShape::Interval | CellShape::Quadrilateral | CellShape::Hexahedron) => {
                Some((0, 15))
            }
            // higher ones have degrees of freedom on faces of both shapes
            (
                Self::Lagrange(
                    LagrangeVariant::Equispaced | LagrangeVariant::GllWarped | LagrangeVariant::GllIsaac,
                ),
                CellShape::Prism | CellShape::Pyramid,
            ) => Some((0, 2)),
            (
                Self::Lagrange(LagrangeVariant::Legendre) | Self::Bubble,
                CellShape::Prism | CellShape::Pyramid,
            ) => None,
            (
                Self::Bubble,
                CellShape::Interval
                | CellShape::Triangle
                | CellShape::Tetrahedron
                | CellShape::Quadrilateral
                | CellShape::Hexahedron,
            ) => Some((bubble_degree(shape), 8)),
            (
                Self::RaviartThomas | Self::BrezziDouglasMarini | Self::NedelecFirst | Self::NedelecSecond,
                CellShape::Triangle,
            ) => Some((1, 6)),
            (
                Self::RaviartThomas | Self::BrezziDouglasMarini | Self::NedelecFirst | Self::NedelecSecond,
                CellShape::Tetrahedron,
            ) => Some((1, 5)),
            (
                Self::RaviartThomas | Self::BrezziDouglasMarini | Self::NedelecFirst | Self::NedelecSecond,
                CellShape::Interval
                | CellShape::Quadrilateral
                | CellShape::Hexahedron
                | CellShape::Prism
                | CellShape::Pyramid,
            ) => None,
        }
    }

    /// How values map to cells.
    #[must_use]
    pub const fn pullback(self) -> Pullback {
        match self {
            Self::Lagrange(_) | Self::Bubble => Pullback::Identity,
            Self::RaviartThomas | Self::BrezziDouglasMarini => Pullback::ContravariantPiola,
            Self::NedelecFirst | Self::NedelecSecond => Pullback::CovariantPiola,
        }
    }
}

impl fmt::Display for ElementFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lagrange(variant) => write!(f, "Lagrange ({variant})"),
            Self::Bubble => f.write_str("bubble"),
            Self::RaviartThomas => f.write_str("Raviart–Thomas"),
            Self::BrezziDouglasMarini => f.write_str("Brezzi–Douglas–Marini"),
            Self::NedelecFirst => f.write_str("Nédélec (first kind)"),
            Self::NedelecSecond => f.write_str("Nédélec (second kind)"),
        }
    }
}

/// The degree of the bubble of a cell, in each coordinate of a square or cube.
pub(super) const fn bubble_degree(shape: CellShape) -> usize {
    if shape.is_simplex() { shape.dim() + 1 } else { 2 }
}
