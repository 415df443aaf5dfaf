//! Where an integral is sampled: on the reference cell, or on each of its facets.

use crate::form::{FormError, Measure, Region};
use kingpost_fem::element::{CellShape, n_orientations, oriented_point};
use kingpost_fem::quadrature::rule;

/// Points and weights of a rule.
pub(super) struct Samples {
    /// On the reference cell or facet.
    pub(super) points: Vec<Vec<f64>>,
    pub(super) weights: Vec<f64>,
    /// The points of the cell, or of each of its facets, on the reference cell.
    pub(super) places: Vec<f64>,
    /// Number of facets, if the rule is one of facets.
    facets: Option<usize>,
    /// Number of orientations of a facet, if it lies between two cells.
    permutations: Option<usize>,
}

impl Samples {
    /// The points of a rule of a degree, in orbits if so asked.
    ///
    /// # Errors
    /// A rule that does not exist, or has no orbits.
    pub(super) fn new(
        cell: CellShape,
        measure: &Measure,
        degree: usize,
        in_orbits: bool,
    ) -> Result<Self, FormError> {
        let scheme = measure.scheme().unwrap_or_default();
        let of = |shape: CellShape| -> Result<(Vec<Vec<f64>>, Vec<f64>), FormError> {
            let mut rule =
                rule(shape, degree, scheme).map_err(|e| FormError::Discretisation(e.to_string()))?;
            if in_orbits {
                rule = rule.in_orbits().ok_or_else(|| {
                    FormError::Discretisation(format!(
                        "the rule {} has no point where a permutation of the vertices moves one of its points, needed \
                         orbits of points; take another scheme or the points as they are",
                        rule.name
                    ))
                })?;
            }
            let points = rule.points.chunks_exact(shape.dim()).map(<[f64]>::to_vec).collect();
            Ok((points, rule.weights))
        };
        match measure.region() {
            Region::Cells => {
                let (points, weights) = of(cell)?;
                Ok(Self { places: points.concat(), points, weights, facets: None, permutations: None })
            }
            region @ (Region::BoundaryFacets | Region::InteriorFacets) => {
                if !cell.has_one_facet_shape() {
                    return Err(FormError::Discretisation(format!(
                        "an integral over facets of a {cell}, which have two shapes: needed cells with facets of one; \
                         export the form from UFL, which has them"
                    )));
                }
                let shape = cell.entity_shape(cell.dim() - 1);
                let (points, weights) = match shape {
                    Some(shape) => of(shape)?,
                    None => (vec![Vec::new()], vec![1.0]), // a vertex
                };
                let permutations = (region == Region::InteriorFacets).then(|| n_orientations(shape));
                let facets = cell.facets().len();
                let mut places = Vec::new();
                for state in 0..permutations.unwrap_or(1) {
                    for facet in 0..facets {
                        places.extend(
                            points
                                .iter()
                                .flat_map(|p| on_facet(cell, facet, &oriented_point(shape, state, p))),
                        );
                    }
                }
                Ok(Self { places, points, weights, facets: Some(facets), permutations })
            }
        }
    }

    pub(super) fn n_points(&self) -> usize {
        self.weights.len()
    }

    /// Number of points on the cell, or on all facets in all orientations together.
    pub(super) fn n_places(&self) -> usize {
        self.n_points() * self.facets.unwrap_or(1) * self.permutations.unwrap_or(1)
    }

    /// Number of orientations of a facet, if tables have an axis for them.
    pub(super) const fn permutations(&self) -> Option<usize> {
        self.permutations
    }

    /// Shape of a table: `[points, dofs]`, over facets `[facets, points, dofs]`, over interior
    /// facets `[orientations, facets, points, dofs]`.
    pub(super) fn table_shape(&self, n_dofs: usize) -> Vec<usize> {
        let leading = self.permutations.into_iter().chain(self.facets);
        leading.chain([self.n_points(), n_dofs]).collect()
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
