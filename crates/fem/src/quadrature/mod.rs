//! Quadrature rules on the reference cells.
//!
//! ```
//! use purlin_fem::element::CellShape;
//! use purlin_fem::quadrature::{QuadratureScheme, rule};
//!
//! let rule = rule(CellShape::Tetrahedron, 6, QuadratureScheme::Default)?;
//! assert_eq!(rule.n_points(), 23); // collapsed Gauss–Jacobi takes 4³ = 64
//! let volume: f64 = rule.weights.iter().sum();
//! assert!((volume - 1.0 / 6.0).abs() < 1e-15);
//! # Ok::<(), purlin_fem::quadrature::QuadratureError>(())
//! ```

mod gauss_jacobi;
mod lobatto;
mod tables;

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cell::{CellShape, orbits_of_points};
pub use gauss_jacobi::gauss_jacobi;
pub use lobatto::gauss_lobatto;
use tables::{JASKOWIEC_SUKUMAR, Table, XIAO_GIMBUTAS_TETRAHEDRON, XIAO_GIMBUTAS_TRIANGLE};

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
    #[error("bug of purlin: the table of {family} rules is broken at degree {degree}")]
    Table {
        /// The family of rules.
        family: &'static str,
        /// The degree looked for.
        degree: usize,
    },
}

/// The highest degree for which [`rule`] answers: collapsed rules are tested up to it.
pub const MAX_DEGREE: usize = 60;

/// The rule that integrates every polynomial of total degree `degree` on the reference cell; on
/// squares and cubes, of that degree in each coordinate.
///
/// Degrees 0 and 1 share the one-point rule at the centroid. All schemes but `GaussLobatto` are the
/// Gauss–Legendre rule on intervals, and its products on squares and cubes.
///
/// # Errors
/// [`QuadratureError::Degree`] above [`MAX_DEGREE`]; [`QuadratureError::Scheme`] for `GaussLobatto` on
/// triangles and tetrahedra.
///
/// # Source
/// Xiao & Gimbutas 2010; Jaśkowiec & Sukumar 2020. For the scheme `XiaoGimbutas`, the numbers of
/// points that the data archived with Kulkarni & Klöckner 2025 (section 6.4) imply.
pub fn rule(shape: CellShape, degree: usize, scheme: QuadratureScheme) -> Result<Rule, QuadratureError> {
    if degree > MAX_DEGREE {
        return Err(QuadratureError::Degree { shape, degree });
    }
    let wanted = degree.max(1);
    let table = match scheme {
        QuadratureScheme::Default => smallest(shape, wanted),
        QuadratureScheme::XiaoGimbutas => exact_degree(shape, wanted),
        QuadratureScheme::CollapsedGaussJacobi => None,
        QuadratureScheme::GaussLobatto => {
            let rule = Rule::gauss_lobatto(shape, (degree + 3).div_ceil(2));
            return rule.ok_or(QuadratureError::Scheme { shape, scheme });
        }
    };
    match table {
        Some((table, degree)) => table.rule(shape, degree),
        None => Ok(Rule::gauss_legendre(shape, degree / 2 + 1)
            .unwrap_or_else(|| gauss_jacobi::collapsed(shape, degree))),
    }
}

/// The table and degree with the fewest points among those of at least `degree`; on a tie the lower
/// degree, then the earlier table.
fn smallest(shape: CellShape, degree: usize) -> Option<(&'static Table, usize)> {
    let tables: &[&'static Table] = match shape {
        CellShape::Interval | CellShape::Quadrilateral | CellShape::Hexahedron => &[],
        CellShape::Triangle => &[&XIAO_GIMBUTAS_TRIANGLE],
        CellShape::Tetrahedron => &[&XIAO_GIMBUTAS_TETRAHEDRON, &JASKOWIEC_SUKUMAR],
    };
    let entries = tables.iter().flat_map(|table| table.entries().map(move |(d, points)| (points, d, *table)));
    let best = entries.filter(|(_, d, _)| *d >= degree).min_by_key(|(points, d, _)| (*points, *d))?;
    Some((best.2, best.1))
}

fn exact_degree(shape: CellShape, degree: usize) -> Option<(&'static Table, usize)> {
    let table = match shape {
        CellShape::Interval | CellShape::Quadrilateral | CellShape::Hexahedron => return None,
        CellShape::Triangle => &XIAO_GIMBUTAS_TRIANGLE,
        CellShape::Tetrahedron => &XIAO_GIMBUTAS_TETRAHEDRON,
    };
    table.entries().any(|(d, _)| d == degree).then_some((table, degree))
}
