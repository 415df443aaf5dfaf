//! Tables of one dimension, found in those of the form.

use crate::MultigridError;
use crate::line::Matrix;
use purlin_forms::element::{CellShape, ElementFamily, FiniteElement, LagrangeVariant};
use purlin_forms::quadrature::{QuadratureScheme, Rule, rule};

/// Largest difference of an entry from a product, relative to the largest entry of its table.
const TOLERANCE: f64 = 1e-13;

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
    /// Those of the element of degree k in the nodes of Gauss, Lobatto and Legendre, by the rule
    /// that is exact for the products of two of its functions.
    ///
    /// # Errors
    /// As [`TensorTables::of`]: a bug.
    pub fn of_degree(degree: usize) -> Result<Self, MultigridError> {
        let shape = CellShape::Quadrilateral;
        let element = FiniteElement::new(shape, ElementFamily::Lagrange(LagrangeVariant::GllWarped), degree)?;
        let rule = rule(shape, 2 * degree, QuadratureScheme::Default)?;
        Self::of(&element, &rule)
    }

    /// Finds the factors of an element's tables at the points of a rule, and certifies each entry
    /// to 1e-13 of the largest.
    ///
    /// Functions along one axis add up to 1. So the sum of the values of those that differ along
    /// the other axes alone is the factor along this one.
    ///
    /// # Errors
    /// Nodes or points that do not lie in rows, columns and layers; an entry that is no product.
    pub fn of(element: &FiniteElement, rule: &Rule) -> Result<Self, MultigridError> {
        let axes = element.shape().dim();
        let lie =
            |of: &str| MultigridError::NoRows { of: of.to_owned(), element: element.family().to_string() };
        let points = element.points().ok_or_else(|| lie("nodes"))?;
        let (nodes, of_dofs) = rows(&points, axes).ok_or_else(|| lie("nodes"))?;
        let (line, of_points) = rows(&rule.points, axes).ok_or_else(|| lie("points"))?;
        let table = element.tabulate(&rule.points, 1)?;
        let n = nodes.len();
        let mut weights = vec![0.0; line.len()];
        for (place, weight) in of_points.iter().zip(&rule.weights) {
            weights[place[0]] += weight;
        }
        let [mut values, mut slopes] = [(); 2].map(|()| vec![0.0; line.len() * n]);
        let first = |place: &[usize]| place[1..].iter().all(|at| *at == 0);
        for (point, place) in of_points.iter().enumerate().filter(|(_, place)| first(place)) {
            for (dof, node) in of_dofs.iter().enumerate() {
                values[place[0] * n + node[0]] += table.value(0, point, dof, 0);
                slopes[place[0] * n + node[0]] += table.value(1, point, dof, 0);
            }
        }
        let of = |entries| Matrix { rows: line.len(), columns: n, entries };
        let found = Self { nodes, weights, values: of(values), slopes: of(slopes) };
        let product = |derived: Option<usize>, place: &[usize], node: &[usize]| -> f64 {
            let factor = |a: usize| if derived == Some(a) { &found.slopes } else { &found.values };
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
            let needed = place.iter().map(|at| found.weights[*at]).product();
            certify((point, None), (*weight, needed), largest)?;
        }
        Ok(found)
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

/// Points in rows, columns and layers: their places on a line, ascending, and the place of each
/// along each axis. None if there is not one point at each place.
fn rows(points: &[f64], axes: usize) -> Option<(Vec<f64>, Vec<Vec<usize>>)> {
    let mut line: Vec<f64> = points.iter().step_by(axes).copied().collect();
    line.sort_by(f64::total_cmp);
    line.dedup_by(|b, a| *b - *a < 1e-12);
    let at = |x: &f64| line.iter().position(|place| (place - x).abs() < 1e-12);
    let places: Vec<Vec<usize>> =
        points.chunks(axes).map(|point| point.iter().map(at).collect()).collect::<Option<_>>()?;
    let mut sorted = places.clone();
    sorted.sort();
    sorted.dedup();
    (sorted.len() == places.len() && places.len() == line.len().pow(axes as u32)).then_some((line, places))
}
