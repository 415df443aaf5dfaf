//! Where an integral is sampled: on the reference cell, or on each of its facets.

use crate::element::CellShape;
use crate::form::{FormError, Measure, Region};
use crate::quadrature::rule;

/// Points and weights of a rule.
pub(super) struct Samples {
    /// On the reference cell or facet.
    pub(super) points: Vec<Vec<f64>>,
    pub(super) weights: Vec<f64>,
    /// The points of the cell, or of each of its facets, on the reference cell.
    pub(super) places: Vec<f64>,
    /// Number of facets, if the rule is one of facets.
    facets: Option<usize>,
}

impl Samples {
    /// The points of a rule of a degree.
    ///
    /// # Errors
    /// A rule that does not exist.
    pub(super) fn new(cell: CellShape, measure: &Measure, degree: usize) -> Result<Self, FormError> {
        let scheme = measure.scheme().unwrap_or_default();
        let of = |shape: CellShape| -> Result<(Vec<Vec<f64>>, Vec<f64>), FormError> {
            let rule = rule(shape, degree, scheme).map_err(|e| FormError::Discretisation(e.to_string()))?;
            let points = rule.points.chunks_exact(shape.dim()).map(<[f64]>::to_vec).collect();
            Ok((points, rule.weights))
        };
        match measure.region() {
            Region::Cells => {
                let (points, weights) = of(cell)?;
                Ok(Self { places: points.concat(), points, weights, facets: None })
            }
            Region::BoundaryFacets => {
                let (points, weights) = match cell.entity_shape(cell.dim() - 1) {
                    Some(shape) => of(shape)?,
                    None => (vec![Vec::new()], vec![1.0]), // a vertex
                };
                let facets = 0..cell.facets().len();
                let places =
                    facets.clone().flat_map(|f| points.iter().flat_map(move |p| on_facet(cell, f, p)));
                Ok(Self { places: places.collect(), points, weights, facets: Some(facets.len()) })
            }
        }
    }

    pub(super) fn n_points(&self) -> usize {
        self.weights.len()
    }

    /// Number of points on the cell, or on all facets together.
    pub(super) fn n_places(&self) -> usize {
        self.n_points() * self.facets.unwrap_or(1)
    }

    /// Shape of a table: `[points, dofs]`, over facets `[facets, points, dofs]`.
    pub(super) fn table_shape(&self, n_dofs: usize) -> Vec<usize> {
        self.facets.into_iter().chain([self.n_points(), n_dofs]).collect()
    }
}

/// The place on a reference cell of a point on the reference facet: the first vertex of the facet
/// is its origin, its axes end in the next ones.
fn on_facet(cell: CellShape, facet: usize, point: &[f64]) -> Vec<f64> {
    let dim = cell.dim();
    let vertices = cell.facets()[facet];
    let corner = |k: usize| &cell.vertices()[vertices[k] * dim..(vertices[k] + 1) * dim];
    let origin = corner(0);
    let mut place = origin.to_vec();
    for (axis, x) in point.iter().enumerate() {
        // axes of simplices and of squares end in the vertices 1 and 2
        for ((p, end), start) in place.iter_mut().zip(corner(axis + 1)).zip(origin) {
            *p += x * (end - start);
        }
    }
    place
}
