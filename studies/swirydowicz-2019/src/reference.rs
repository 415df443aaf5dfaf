//! The operators without sum factorisation: an independent evaluation of what a kernel must give.

use crate::problem::{Problem, Sizes, legendre_nodes, lobatto_nodes};
use kingpost::interp::{Memory, Value};

/// Values and derivatives of one-dimensional basis functions at points, [points, nodes].
struct Line {
    values: Vec<Vec<f64>>,
    slopes: Vec<Vec<f64>>,
}

/// Lagrange polynomials by their products and the derivatives by the sums of those.
fn line(nodes: &[f64], points: &[f64]) -> Line {
    let factor = |x: f64, i: usize, j: usize| (x - nodes[j]) / (nodes[i] - nodes[j]);
    let value = |x: f64, i: usize| (0..nodes.len()).filter(|j| *j != i).map(|j| factor(x, i, j)).product();
    let slope = |x: f64, i: usize| -> f64 {
        let term = |j: usize| -> f64 {
            let rest = (0..nodes.len()).filter(|k| *k != i && *k != j).map(|k| factor(x, i, k));
            rest.product::<f64>() / (nodes[i] - nodes[j])
        };
        (0..nodes.len()).filter(|j| *j != i).map(term).sum()
    };
    let table = |f: &dyn Fn(f64, usize) -> f64| -> Vec<Vec<f64>> {
        points.iter().map(|x| (0..nodes.len()).map(|i| f(*x, i)).collect()).collect()
    };
    Line { values: table(&value), slopes: table(&slope) }
}

/// What the operator makes of the inputs that [`Sizes::inputs`] gives: a dense sum over all
/// pairs of quadrature points and nodes, for each element.
///
/// # Shapes and units
/// [elements, nodes, nodes, nodes], as `y` of the plain kernels; none if an input is missing.
///
/// # Source
/// Świrydowicz et al. 2019, equations (6), (8) and (11).
#[must_use]
pub fn reference(sizes: Sizes, memory: &Memory) -> Option<Vec<f64>> {
    let nodes = lobatto_nodes(sizes.nodes());
    let points = match sizes.problem {
        Problem::Bp10 | Problem::Bp30 => legendre_nodes(sizes.points()),
        Problem::Bp35 | Problem::Bp35Vertices => nodes.clone(),
    };
    let (line, np) = (line(&nodes, &points), points.len().pow(3));
    let [u, w, g, vertices, lambda] =
        ["u", "w", "g", "X", "lambda"].map(|name| memory.get(name).map(Value::to_f64));
    let u = u?;
    let mut result = Vec::with_capacity(u.len());
    for (e, field) in u.chunks(nodes.len().pow(3)).enumerate() {
        let mut y = vec![0.0; field.len()];
        match sizes.problem {
            Problem::Bp10 => mass(&line, &w.as_deref()?[e * np..][..np], field, &mut y),
            Problem::Bp35 | Problem::Bp30 => {
                let lambda = *lambda.as_deref()?.first()?;
                poisson(&line, &g.as_deref()?[7 * e * np..][..7 * np], lambda, field, &mut y);
            }
            Problem::Bp35Vertices => {
                let lambda = *lambda.as_deref()?.first()?;
                let factors = trilinear(&points, w.as_deref()?, &vertices.as_deref()?[24 * e..][..24]);
                poisson(&line, &factors, lambda, field, &mut y);
            }
        }
        result.extend(y);
    }
    Some(result)
}

/// The value at a point of the basis function of each node, or its derivative along an axis (0 is
/// the last index).
fn basis(line: &Line, point: usize, axis: Option<usize>) -> Vec<f64> {
    let m = line.values.len();
    let at = [point % m, point / m % m, point / m / m];
    let factor = |a: usize| if axis == Some(a) { &line.slopes[at[a]] } else { &line.values[at[a]] };
    let (x, y, z) = (factor(0), factor(1), factor(2));
    z.iter().flat_map(|c| y.iter().flat_map(move |b| x.iter().map(move |a| a * b * c))).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn add(y: &mut [f64], factor: f64, x: &[f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += factor * x);
}

fn mass(line: &Line, weights: &[f64], field: &[f64], y: &mut [f64]) {
    for (point, weight) in weights.iter().enumerate() {
        let phi = basis(line, point, None);
        add(y, weight * dot(&phi, field), &phi);
    }
}

/// The factors of an element with these vertices, as [`Problem::Bp35`] stores them: the inverse of
/// the Jacobian matrix by Cramer's rule.
fn trilinear(points: &[f64], weights: &[f64], vertices: &[f64]) -> Vec<f64> {
    let (m, np) = (points.len(), points.len().pow(3));
    let mut factors = vec![0.0; 7 * np];
    for point in 0..np {
        let at = [point % m, point / m % m, point / m / m];
        // basis function of a vertex, or its derivative along an axis
        let shape = |vertex: usize, slope: usize| -> f64 {
            let factor = |axis: usize| {
                let sign = if vertex >> axis & 1 == 1 { 1.0 } else { -1.0 };
                if axis == slope { 0.5 * sign } else { 0.5 * (1.0 + sign * points[at[axis]]) }
            };
            (0..3).map(factor).product()
        };
        let entry =
            |d: usize, slope: usize| -> f64 { (0..8).map(|v| vertices[8 * d + v] * shape(v, slope)).sum() };
        let jacobian = [0, 1, 2].map(|d| [0, 1, 2].map(|slope| entry(d, slope)));
        let minor = |d: usize, slope: usize| {
            let [d1, d2, s1, s2] = [(d + 1) % 3, (d + 2) % 3, (slope + 1) % 3, (slope + 2) % 3];
            jacobian[d1][s1] * jacobian[d2][s2] - jacobian[d1][s2] * jacobian[d2][s1]
        };
        let det: f64 = (0..3).map(|d| jacobian[d][0] * minor(d, 0)).sum();
        let weight: f64 = at.iter().map(|k| weights[*k]).product();
        let pairs = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)];
        for (k, (a, b)) in pairs.into_iter().enumerate() {
            let product: f64 = (0..3).map(|d| minor(d, a) * minor(d, b)).sum();
            factors[k * np + point] = weight * product / det;
        }
        factors[6 * np + point] = weight * det;
    }
    factors
}

fn poisson(line: &Line, factors: &[f64], lambda: f64, field: &[f64], y: &mut [f64]) {
    let np = factors.len() / 7;
    // G00, G01, G02, G11, G12, G22
    let place = [[0, 1, 2], [1, 3, 4], [2, 4, 5]];
    for point in 0..np {
        let phi = basis(line, point, None);
        add(y, lambda * factors[6 * np + point] * dot(&phi, field), &phi);
        let gradients = [0, 1, 2].map(|axis| basis(line, point, Some(axis)));
        let slopes = [0, 1, 2].map(|axis: usize| dot(&gradients[axis], field));
        for (row, gradient) in place.iter().zip(&gradients) {
            let flux: f64 = row.iter().zip(slopes).map(|(k, s)| factors[k * np + point] * s).sum();
            add(y, flux, gradient);
        }
    }
}

/// The larger of two errors; NaN if one of them is.
#[must_use]
pub fn worse(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// The largest difference of two results, in units of the largest number of the first.
#[must_use]
pub fn relative_error(expected: &[f64], found: &[f64]) -> f64 {
    let largest = expected.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let differences = expected.iter().zip(found).map(|(a, b)| (a - b).abs());
    let worst = differences.fold(0.0, worse);
    if expected.len() == found.len() { worst / largest } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_to_the_largest_value_and_nan_is_one() {
        assert_eq!(relative_error(&[1.0, -4.0], &[1.5, -4.0]), 0.125);
        assert_eq!(relative_error(&[1.0], &[1.0, 2.0]), f64::INFINITY);
        for nan in 0..3 {
            let mut found = [1.0, 2.0, 3.0];
            found[nan] = f64::NAN;
            assert!(relative_error(&[1.0, 2.0, 4.0], &found).is_nan());
        }
    }
}
