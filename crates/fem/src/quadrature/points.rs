//! Points with weights, and why there are none.

use crate::cell::{CellShape, orbits_of_points};
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// Points and weights on a reference cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The reference cell.
    pub shape: CellShape,
    /// The points, [points, dim] row-major, in reference coordinates, inside the cell.
    pub points: Vec<f64>,
    /// The weights, positive; their sum is the cell's volume.
    pub weights: Vec<f64>,
    /// The highest total degree that the rule integrates exactly; on squares and cubes, the highest
    /// degree in each coordinate.
    pub degree: usize,
    /// Family and size, as in `Xiao–Gimbutas degree 6`.
    pub name: String,
}

impl Rule {
    /// The number of points.
    #[must_use]
    pub fn n_points(&self) -> usize {
        self.weights.len()
    }

    /// The rule with its points in orbits, one orbit after the other, of the permutations of
    /// [`Nodes::orbits`](crate::element::Nodes::orbits). It has the same value of any function, and the
    /// same degree. A point that some permutations leave where it is stands in its orbit several times,
    /// with its weight divided among its places.
    ///
    /// # Shapes and units
    /// Two points an orbit on triangles, four on tetrahedra. None for other cells, and where the image of
    /// a point is none. All rules of Xiao & Gimbutas 2010 on triangles have orbits; of those on
    /// tetrahedra that are here, only few do.
    #[must_use]
    pub fn in_orbits(&self) -> Option<Self> {
        let orbits = orbits_of_points(self.shape, &self.points)?;
        let dim = self.shape.dim();
        let (mut points, mut weights) = (Vec::new(), Vec::new());
        for orbit in &orbits {
            for at in orbit {
                let times = orbit.iter().filter(|other| *other == at).count();
                let at = *at as usize;
                points.extend_from_slice(self.points.get(at * dim..(at + 1) * dim)?);
                weights.push(self.weights.get(at)? / times as f64);
            }
        }
        Some(Self { points, weights, ..self.clone() })
    }
}

/// Which rule serves a degree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuadratureScheme {
    /// The rule of at least the degree with the fewest points: Xiao–Gimbutas, Jaśkowiec–Sukumar on
    /// tetrahedra, collapsed Gauss–Jacobi above degree 30 on triangles and 20 on tetrahedra.
    #[default]
    Default,
    /// Xiao–Gimbutas to degree 30 on triangles and 15 on tetrahedra, collapsed Gauss–Jacobi above:
    /// the rules of Kulkarni & Klöckner 2025, point for point.
    XiaoGimbutas,
    /// Collapsed Gauss–Jacobi at every degree: `floor(degree/2) + 1` points along each direction.
    CollapsedGaussJacobi,
    /// Gauss–Lobatto–Legendre on intervals, squares and cubes: `ceil((degree + 3)/2)` points along
    /// each axis, its ends among them. With degree `2p - 1` they are the nodes of Lagrange elements
    /// of degree `p`.
    GaussLobatto,
}

impl fmt::Display for QuadratureScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::XiaoGimbutas => "xiao_gimbutas",
            Self::CollapsedGaussJacobi => "collapsed_gauss_jacobi",
            Self::GaussLobatto => "gauss_lobatto",
        })
    }
}

/// Why there is no rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum QuadratureError {
    /// The degree is above the highest supported.
    #[error(
        "quadrature degree {degree} on a {shape}: the highest is {MAX_DEGREE}; lower the degree of the measure"
    )]
    Degree {
        /// The shape asked for.
        shape: CellShape,
        /// The degree asked for.
        degree: usize,
    },
    /// The cells have no rule of the scheme.
    #[error("no {scheme} rule on a {shape}: those are on intervals, squares and cubes; take another scheme")]
    Scheme {
        /// The shape asked for.
        shape: CellShape,
        /// The scheme asked for.
        scheme: QuadratureScheme,
    },
    /// A bug of this crate: an embedded table cannot be read.
    #[error("bug of kingpost: the table of {family} rules is broken at degree {degree}")]
    Table {
        /// The family of rules.
        family: &'static str,
        /// The degree looked for.
        degree: usize,
    },
}

/// The highest degree for which [`rule`](super::rule) answers: collapsed rules are tested up to it.
pub const MAX_DEGREE: usize = 60;
