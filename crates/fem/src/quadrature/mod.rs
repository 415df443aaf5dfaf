//! Quadrature rules on the reference cells.
//!
//! ```
//! use kingpost_fem::element::CellShape;
//! use kingpost_fem::quadrature::{QuadratureScheme, rule};
//!
//! let rule = rule(CellShape::Tetrahedron, 6, QuadratureScheme::Default)?;
//! assert_eq!(rule.n_points(), 23); // collapsed Gauss–Jacobi takes 4³ = 64
//! let volume: f64 = rule.weights.iter().sum();
//! assert!((volume - 1.0 / 6.0).abs() < 1e-15);
//! # Ok::<(), kingpost_fem::quadrature::QuadratureError>(())
//! ```

mod gauss_jacobi;
mod lobatto;
mod points;
mod tables;

pub use gauss_jacobi::gauss_jacobi;
pub use lobatto::gauss_lobatto;
pub use points::{MAX_DEGREE, QuadratureError, QuadratureScheme, Rule};

use crate::cell::CellShape;
use tables::{JASKOWIEC_SUKUMAR, Table, XIAO_GIMBUTAS_TETRAHEDRON, XIAO_GIMBUTAS_TRIANGLE};

/// The rule that integrates every polynomial of total degree `degree` on the reference cell; on
/// squares and cubes, of that degree in each coordinate. Rules on prisms are products of those of
/// the triangle and the interval, those on pyramids collapsed Gauss–Jacobi.
///
/// Degrees 0 and 1 share the one-point rule at the centroid. All schemes but `GaussLobatto` are the
/// Gauss–Legendre rule on intervals, and its products on squares and cubes.
///
/// # Errors
/// [`QuadratureError::Degree`] above [`MAX_DEGREE`]; [`QuadratureError::Scheme`] for `GaussLobatto` on
/// cells that are no products of intervals.
///
/// # Source
/// Xiao & Gimbutas 2010; Jaśkowiec & Sukumar 2020. For the scheme `XiaoGimbutas`, the numbers of
/// points that the data archived with Kulkarni & Klöckner 2025 (section 6.4) imply.
pub fn rule(shape: CellShape, degree: usize, scheme: QuadratureScheme) -> Result<Rule, QuadratureError> {
    if degree > MAX_DEGREE {
        return Err(QuadratureError::Degree { shape, degree });
    }
    if shape == CellShape::Prism && scheme != QuadratureScheme::GaussLobatto {
        let of = |shape| rule(shape, degree, scheme);
        return Ok(Rule::prism(&of(CellShape::Triangle)?, &of(CellShape::Interval)?));
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
        CellShape::Interval
        | CellShape::Quadrilateral
        | CellShape::Hexahedron
        | CellShape::Prism
        | CellShape::Pyramid => &[],
        CellShape::Triangle => &[&XIAO_GIMBUTAS_TRIANGLE],
        CellShape::Tetrahedron => &[&XIAO_GIMBUTAS_TETRAHEDRON, &JASKOWIEC_SUKUMAR],
    };
    let entries = tables.iter().flat_map(|table| table.entries().map(move |(d, points)| (points, d, *table)));
    let best = entries.filter(|(_, d, _)| *d >= degree).min_by_key(|(points, d, _)| (*points, *d))?;
    Some((best.2, best.1))
}

fn exact_degree(shape: CellShape, degree: usize) -> Option<(&'static Table, usize)> {
    let table = match shape {
        CellShape::Interval
        | CellShape::Quadrilateral
        | CellShape::Hexahedron
        | CellShape::Prism
        | CellShape::Pyramid => return None,
        CellShape::Triangle => &XIAO_GIMBUTAS_TRIANGLE,
        CellShape::Tetrahedron => &XIAO_GIMBUTAS_TETRAHEDRON,
    };
    table.entries().any(|(d, _)| d == degree).then_some((table, degree))
}
