//! The functionals that a function's degrees of freedom are, by dimension of the entity that holds
//! them.

use super::lattice::{Lattice, interior_points, place};
use super::orthonormal::{basix_order, orthonormal_derivatives, space_dimension};
use super::{CellShape, ElementError};
use crate::cell::{axes, normal};
use crate::quadrature::{QuadratureScheme, Rule, rule};

/// What a functional takes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// The value itself, a scalar.
    Scalar,
    /// The components along the axes of the entity: `v . (end - origin)`.
    Tangential,
    /// The component along the facet's normal, as long as the facet's measure.
    Normal,
}

/// The functionals of one entity of each dimension; those of the others are the same in their own
/// vertices.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Functionals {
    /// Where functions are evaluated; see [`place`].
    places: Vec<Vec<f64>>,
    /// [functionals][components][places], the weights of the sums; none for the values at the
    /// places.
    weights: Option<Vec<Vec<Vec<f64>>>>,
    direction: Direction,
}

/// Functionals of one entity: sums of values at points.
pub(super) struct Evaluations {
    /// [points, dim] row-major.
    pub(super) points: Vec<f64>,
    /// [functionals][value components][points]; none for the values at the points.
    pub(super) weights: Option<Vec<Vec<Vec<f64>>>>,
}

/// The places of the points of a rule.
fn places(rule: &Rule) -> Vec<Vec<f64>> {
    let coordinates = |point: &[f64]| match rule.shape.is_simplex() {
        true => std::iter::once(1.0 - point.iter().sum::<f64>()).chain(point.iter().copied()).collect(),
        false => point.to_vec(),
    };
    rule.points.chunks_exact(rule.shape.dim()).map(coordinates).collect()
}

/// The orthonormal polynomials in basix's order times the weights of a rule: [polynomials][points].
fn legendre_weights(rule: &Rule, degree: usize) -> Vec<Vec<f64>> {
    let n = space_dimension(rule.shape, degree);
    let values = orthonormal_derivatives(rule.shape, degree, &rule.points, 0).swap_remove(0);
    let row = |i: usize| values.chunks_exact(n).zip(&rule.weights).map(|(row, w)| row[i] * w).collect();
    basix_order(rule.shape, degree).into_iter().map(row).collect()
}

pub(super) fn exact(shape: CellShape, degree: usize) -> Result<Rule, ElementError> {
    rule(shape, degree, QuadratureScheme::Default).map_err(|e| ElementError::Rule(e.to_string()))
}

impl Functionals {
    /// Values at the interior points of a Lagrange element.
    pub(super) fn at_points(shape: Option<CellShape>, degree: usize, lattice: Lattice) -> Self {
        let places = interior_points(shape, degree, lattice);
        Self { places, weights: None, direction: Direction::Scalar }
    }

    /// The value at the centroid.
    pub(super) fn at_centroid(shape: CellShape) -> Self {
        let centroid = match shape.is_simplex() {
            true => vec![1.0 / shape.n_vertices() as f64; shape.n_vertices()],
            false => shape.centre(),
        };
        Self { places: vec![centroid], weights: None, direction: Direction::Scalar }
    }

    /// Integrals against the orthonormal polynomials of `degree`, of functions of at most that.
    pub(super) fn against_legendre(shape: CellShape, degree: usize) -> Result<Self, ElementError> {
        let rule = exact(shape, 2 * degree)?;
        let weights = legendre_weights(&rule, degree).into_iter().map(|row| vec![row]).collect();
        Ok(Self { places: places(&rule), weights: Some(weights), direction: Direction::Scalar })
    }

    /// Integrals of the normal component against the orthonormal polynomials of `degree` on a
    /// facet, of functions of at most `of`.
    pub(super) fn normal(shape: CellShape, degree: usize, of: usize) -> Result<Self, ElementError> {
        let rule = exact(shape, degree + of)?;
        let weights = legendre_weights(&rule, degree).into_iter().map(|row| vec![row]).collect();
        Ok(Self { places: places(&rule), weights: Some(weights), direction: Direction::Normal })
    }

    /// Integrals of each tangential component against the orthonormal polynomials of `degree`, of
    /// functions of at most `of`: the component runs fastest.
    pub(super) fn tangential(shape: CellShape, degree: usize, of: usize) -> Result<Self, ElementError> {
        let rule = exact(shape, degree + of)?;
        let along = |row: &Vec<f64>, axis: usize| {
            let zero = vec![0.0; row.len()];
            (0..shape.dim()).map(|d| if d == axis { row.clone() } else { zero.clone() }).collect()
        };
        let rows = legendre_weights(&rule, degree);
        let weights = rows.iter().flat_map(|row| (0..shape.dim()).map(move |axis| along(row, axis)));
        let weights = Some(weights.collect());
        Ok(Self { places: places(&rule), weights, direction: Direction::Tangential })
    }

    /// Sums of the tangential part at the points of a rule with these weights.
    pub(super) fn tangential_at(rule: &Rule, weights: Option<Vec<Vec<Vec<f64>>>>) -> Self {
        Self { places: places(rule), weights, direction: Direction::Tangential }
    }

    /// The number of functionals.
    pub(super) fn len(&self) -> usize {
        self.weights.as_ref().map_or(self.places.len(), Vec::len)
    }

    /// Whether they are values at points.
    pub(super) const fn are_points(&self) -> bool {
        self.weights.is_none()
    }

    /// The functionals on an entity of `cell` with these vertices, in the order that the
    /// functionals refer to.
    pub(super) fn on(&self, cell: CellShape, vertices: &[usize]) -> Evaluations {
        let points = self.places.iter().flat_map(|p| place(cell, vertices, p)).collect();
        let axes = match self.direction {
            Direction::Scalar => return Evaluations { points, weights: self.weights.clone() },
            Direction::Tangential => axes(cell, vertices),
            Direction::Normal => vec![normal(&axes(cell, vertices))],
        };
        let functional = |parts: &Vec<Vec<f64>>| {
            let component = |j: usize| {
                let mut sum = vec![0.0; self.places.len()];
                for (part, axis) in parts.iter().zip(&axes) {
                    sum.iter_mut().zip(part).for_each(|(sum, w)| *sum += w * axis[j]);
                }
                sum
            };
            (0..cell.dim()).map(component).collect()
        };
        let weights = self.weights.as_ref().map(|rows| rows.iter().map(functional).collect());
        Evaluations { points, weights }
    }
}
