//! Tables of one dimension, of which those of the form are products.

use crate::MultigridError;
use crate::matrix::{Matrix, lagrange, lagrange_slopes};
use kingpost_fem::element::{CellShape, ElementFamily, FiniteElement, LagrangeVariant};
use kingpost_fem::quadrature::{QuadratureScheme, Rule, gauss_jacobi, gauss_lobatto, rule};

/// Largest difference of an entry from a product, relative to the largest entry of its table.
/// Elements have their functions by the inverse of a Vandermonde matrix, whose roundings grow with
/// the degree.
const TOLERANCE: f64 = 1e-11;

/// What the form of Poisson's equation evaluates on squares or cubes as products over the axes:
/// weights, values and slopes of one dimension.
///
/// With them the matrix of a cell is a sum of tensor products of the matrices of
/// [`Line`](crate::Line): a weight times the gradients of two functions is one product over the
/// axes for each part of the gradient.
///
/// # Source
/// Cui et al. 2024, equations (2.10) to (2.12).
#[derive(Clone, Debug, PartialEq)]
pub struct TensorTables {
    /// Places of the nodes on a line, ascending, [k + 1].
    pub nodes: Vec<f64>,
    /// Weights of the points, ascending by their place, whose sum is 1.
    pub weights: Vec<f64>,
    /// Values of the basis, [points, k + 1].
    pub values: Matrix,
    /// Their derivatives, [points, k + 1].
    pub slopes: Matrix,
}

impl TensorTables {
    /// The tables of the element of degree k in the nodes of Gauss, Lobatto and Legendre, at k + 1
    /// points, shown to be the factors of the tables of the form.
    ///
    /// They are evaluated as products over the nodes. Read off the tables of the form, roundings of
    /// solutions are twice as large (7.8e-14 and 1.4e-13 at degree 7 on 16 cells a side).
    ///
    /// # Errors
    /// As [`TensorTables::certify`]: a bug.
    pub fn of_degree(degree: usize) -> Result<Self, MultigridError> {
        let shape = CellShape::Quadrilateral;
        let element = FiniteElement::new(shape, ElementFamily::Lagrange(LagrangeVariant::GllWarped), degree)?;
        let found = Self::evaluated(degree);
        found.certify(&element, &rule(shape, 2 * degree, QuadratureScheme::Default)?)?;
        Ok(found)
    }

    fn evaluated(degree: usize) -> Self {
        let nodes = gauss_lobatto(degree + 1).0;
        let (points, weights) = gauss_jacobi(degree + 1, 0); // exact for degree 2k + 1
        let at_points = |of: fn(&[f64], f64) -> Vec<f64>| Matrix {
            rows: points.len(),
            columns: nodes.len(),
            entries: points.iter().flat_map(|x| of(&nodes, *x)).collect(),
        };
        let [values, slopes] = [at_points(lagrange), at_points(lagrange_slopes)];
        Self { nodes, weights, values, slopes }
    }

    /// Shows that the tables of an element at the points of a rule, and its weights, are products
    /// of these, each entry to 1e-11 of the largest.
    ///
    /// # Errors
    /// Nodes or points that do not lie in as many rows, columns and layers; an entry that is no
    /// product.
    pub fn certify(&self, element: &FiniteElement, rule: &Rule) -> Result<(), MultigridError> {
        let axes = element.shape().dim();
        let lie =
            |of: &str| MultigridError::NoRows { of: of.to_owned(), element: element.family().to_string() };
        let points = element.points().ok_or_else(|| lie("nodes"))?;
        let of_dofs = rows(&points, axes, self.nodes.len()).ok_or_else(|| lie("nodes"))?;
        let of_points = rows(&rule.points, axes, self.weights.len()).ok_or_else(|| lie("points"))?;
        let table = element.tabulate(&rule.points, 1)?;
        let product = |derived: Option<usize>, place: &[usize], node: &[usize]| -> f64 {
            let factor = |a: usize| if derived == Some(a) { &self.slopes } else { &self.values };
            (0..axes).map(|a| factor(a).at(place[a], node[a])).product()
        };
        for derived in std::iter::once(None).chain((0..axes).map(Some)) {
            let component = derived.map_or(0, |axis| 1 + axis);
            let largest = table.component(component, 0).iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            for (point, place) in of_points.iter().enumerate() {
                for (function, node) in of_dofs.iter().enumerate() {
                    let (entry, needed) =
                        (table.value(component, point, function, 0), product(derived, place, node));
                    certify((point, Some(function)), (entry, needed), largest)?;
                }
            }
        }
        let largest = rule.weights.iter().copied().fold(0.0, f64::max);
        for (point, (place, weight)) in of_points.iter().zip(&rule.weights).enumerate() {
            let needed = place.iter().map(|at| self.weights[*at]).product();
            certify((point, None), (*weight, needed), largest)?;
        }
        Ok(())
    }
}

/// Shows that an entry is the product that it should be.
fn certify(
    (point, function): (usize, Option<usize>),
    (found, needed): (f64, f64),
    largest: f64,
) -> Result<(), MultigridError> {
    let off = (found - needed).abs();
    if off.is_nan() || off > TOLERANCE * largest {
        return Err(MultigridError::NoProduct { point, function, found, needed });
    }
    Ok(())
}

/// The place of each point along each axis, in rows, columns and layers of given lengths. None if there
/// is not one point at each place.
fn rows(points: &[f64], axes: usize, n: usize) -> Option<Vec<Vec<usize>>> {
    let mut line: Vec<f64> = points.iter().step_by(axes).copied().collect();
    line.sort_by(f64::total_cmp);
    line.dedup_by(|b, a| *b - *a < 1e-12);
    let at = |x: &f64| line.iter().position(|place| (place - x).abs() < 1e-12);
    let places: Vec<Vec<usize>> =
        points.chunks(axes).map(|point| point.iter().map(at).collect()).collect::<Option<_>>()?;
    let mut sorted = places.clone();
    sorted.sort();
    sorted.dedup();
    let is_full = sorted.len() == places.len() && places.len() == n.pow(axes as u32);
    (is_full && line.len() == n).then_some(places)
}
