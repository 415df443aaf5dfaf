//! Rules on an interval and their products on squares, cubes and prisms.

use super::{Rule, gauss_jacobi};
use crate::cell::CellShape;

/// The Gauss–Lobatto–Legendre rule with `n` ≥ 2 points on (0, 1), its ends included: points
/// ascending, and weights.
///
/// Exact for polynomials of degree `2n - 3`; with fewer than 2 points, the midpoint alone.
///
/// # Source
/// Newton's method on `(1 - x^2) P'(x)` from the Chebyshev–Gauss–Lobatto points: Karniadakis &
/// Sherwin, *Spectral/hp Element Methods*, appendix B.
#[must_use]
pub fn gauss_lobatto(n: usize) -> (Vec<f64>, Vec<f64>) {
    if n < 2 {
        return (vec![0.5], vec![1.0]);
    }
    let degree = n - 1;
    let point = |k: usize| match k {
        0 => -1.0,
        k if k == degree => 1.0,
        // exact symmetry, so that both sides of a shared edge have the same points
        k if 2 * k == degree => 0.0,
        k if 2 * k > degree => -newton(degree, degree - k),
        k => newton(degree, k),
    };
    let points: Vec<f64> = (0..n).map(point).collect();
    let weight = |x: &f64| {
        let (value, _) = legendre(degree, *x);
        // 2 / (n (n-1) P^2) on (-1, 1); the map to (0, 1) halves it
        1.0 / ((n * degree) as f64 * value * value)
    };
    let weights = points.iter().map(weight).collect();
    (points.iter().map(|x| 0.5 * (1.0 + x)).collect(), weights)
}

/// The `k`-th root from the left of the derivative of the Legendre polynomial of `degree`.
fn newton(degree: usize, k: usize) -> f64 {
    let n = degree as f64;
    let mut x = -(k as f64 * std::f64::consts::PI / n).cos();
    // Quadratic convergence takes about 5 steps; 64 bounds the loop if rounding makes the last step
    // flicker.
    for _ in 0..64 {
        let (value, before) = legendre(degree, x);
        // (x P[n] - P[n-1]) / ((n + 1) P[n]) is (1 - x^2) P'[n] over its derivative
        let step = (x * value - before) / ((n + 1.0) * value);
        x -= step;
        if step.abs() < 1e-16 {
            break;
        }
    }
    x
}

/// The Legendre polynomials of `degree` and of one less at `x` in (-1, 1).
fn legendre(degree: usize, x: f64) -> (f64, f64) {
    let (mut value, mut before) = (1.0, 0.0);
    for k in 0..degree {
        let n = k as f64;
        (value, before) = (((2.0 * n + 1.0) * x * value - n * before) / (n + 1.0), value);
    }
    (value, before)
}

impl Rule {
    /// The Gauss–Legendre rule with `n` ≥ 1 points along each axis of an interval, square or cube,
    /// the first axis slowest; none on other shapes.
    ///
    /// Exact for polynomials of degree `2n - 1` in each coordinate.
    #[must_use]
    pub fn gauss_legendre(shape: CellShape, n: usize) -> Option<Self> {
        let n = n.max(1);
        let name = format!("Gauss–Legendre {n}^{}", shape.dim());
        Self::product(shape, &gauss_jacobi(n, 0), 2 * n - 1, name)
    }

    /// The Gauss–Lobatto–Legendre rule with `n` ≥ 2 points along each axis of an interval, square
    /// or cube, the first axis slowest; none on other shapes.
    ///
    /// Exact for polynomials of degree `2n - 3` in each coordinate: with the nodes of the Lagrange
    /// element of degree `n - 1` it makes mass matrices diagonal.
    #[must_use]
    pub fn gauss_lobatto(shape: CellShape, n: usize) -> Option<Self> {
        let n = n.max(2);
        let name = format!("Gauss–Lobatto–Legendre {n}^{}", shape.dim());
        Self::product(shape, &gauss_lobatto(n), 2 * n - 3, name)
    }

    fn product(shape: CellShape, line: &(Vec<f64>, Vec<f64>), degree: usize, name: String) -> Option<Self> {
        if !shape.is_product() {
            return None;
        }
        let mut rule = Self { shape, points: Vec::new(), weights: Vec::new(), degree, name };
        let n = line.0.len();
        for index in 0..n.pow(shape.dim() as u32) {
            let places = (0..shape.dim()).rev().map(|axis| index / n.pow(axis as u32) % n);
            rule.points.extend(places.clone().map(|i| line.0[i]));
            rule.weights.push(places.map(|i| line.1[i]).product());
        }
        Some(rule)
    }

    /// A rule on triangles times one on intervals, which runs faster.
    pub(super) fn prism(triangle: &Self, interval: &Self) -> Self {
        let name = format!("{} × {}", triangle.name, interval.name);
        let degree = triangle.degree.min(interval.degree);
        let mut rule =
            Self { shape: CellShape::Prism, points: Vec::new(), weights: Vec::new(), degree, name };
        for (point, weight) in triangle.points.chunks_exact(2).zip(&triangle.weights) {
            for (z, along) in interval.points.iter().zip(&interval.weights) {
                rule.points.extend([point[0], point[1], *z]);
                rule.weights.push(weight * along);
            }
        }
        rule
    }
}
