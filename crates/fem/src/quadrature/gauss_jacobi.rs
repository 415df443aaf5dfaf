//! Gauss–Jacobi rules of any size and their collapsed products on simplices.

use super::Rule;
use crate::cell::CellShape;

/// The Gauss rule with `n` points on (0, 1) for the weight `(1 - t)^alpha`: points ascending, and
/// weights.
///
/// Exact for polynomials of degree `2n - 1`.
///
/// # Source
/// Newton's method with deflation from Chebyshev points: Karniadakis & Sherwin, *Spectral/hp
/// Element Methods*, appendix B.
#[must_use]
pub fn gauss_jacobi(n: usize, alpha: usize) -> (Vec<f64>, Vec<f64>) {
    let mut roots: Vec<f64> = Vec::with_capacity(n);
    for k in 0..n {
        let chebyshev = -((2 * k + 1) as f64 * std::f64::consts::PI / (2 * n) as f64).cos();
        let start = roots.last().map_or(chebyshev, |last| 0.5 * (chebyshev + last));
        let root = newton(n, alpha, &roots, start);
        roots.push(root);
    }
    let weight = |x: &f64| {
        let (_, slope) = jacobi(n, alpha, *x);
        // 2^(alpha+1) / ((1 - x^2) P'(x)^2) on (-1, 1), where beta = 0 cancels the gamma functions;
        // the map to (0, 1) divides by 2^(alpha+1).
        1.0 / ((1.0 - x * x) * slope * slope)
    };
    let weights = roots.iter().map(weight).collect();
    (roots.iter().map(|x| 0.5 * (1.0 + x)).collect(), weights)
}

/// The root of the Jacobi polynomial that is reached from `x` when the `known` roots are divided
/// out.
fn newton(n: usize, alpha: usize, known: &[f64], mut x: f64) -> f64 {
    // Quadratic convergence takes about 6 steps; 64 bounds the loop if rounding makes the last step
    // flicker.
    for _ in 0..64 {
        let (value, slope) = jacobi(n, alpha, x);
        let deflation: f64 = known.iter().map(|root| 1.0 / (x - root)).sum();
        let step = value / (slope - deflation * value);
        x -= step;
        if step.abs() < 1e-16 {
            break;
        }
    }
    x
}

/// The Jacobi polynomial of degree `n` for weights `(alpha, 0)` and its derivative at `x` in (-1,
/// 1).
fn jacobi(n: usize, alpha: usize, x: f64) -> (f64, f64) {
    let a = alpha as f64;
    let (mut value, mut slope) = (1.0, 0.0);
    let (mut last, mut last_slope) = (0.0, 0.0);
    for k in 0..n {
        let k = k as f64;
        let scale = 2.0 * (k + 1.0) * (k + 1.0 + a);
        let linear = (2.0 * k + 1.0 + a) * (2.0 * k + 2.0 + a) / scale;
        // Both are 0/0 for k + alpha = 0, where the recurrence has no such terms.
        let middle = 2.0 * k + a;
        let (shift, back) = if middle == 0.0 {
            (0.0, 0.0)
        } else {
            (
                a * a * (2.0 * k + 1.0 + a) / (scale * middle),
                2.0 * (k + a) * k * (middle + 2.0) / (scale * middle),
            )
        };
        let next = (linear * x + shift) * value - back * last;
        let next_slope = (linear * x + shift) * slope + linear * value - back * last_slope;
        (last, last_slope) = (value, slope);
        (value, slope) = (next, next_slope);
    }
    (value, slope)
}

/// The collapsed product rule of a triangle, tetrahedron or pyramid for total degree `degree`:
/// `floor(degree/2) + 1` points along each direction.
///
/// The simplex is the cube collapsed axis by axis: `x = s (1-t) (1-u)`, `y = t (1-u)`, `z = u`,
/// whose Jacobian is the weight of the Gauss–Jacobi rules in `t` and `u`. The pyramid is the cube
/// collapsed once: `x = s (1-u)`, `y = t (1-u)`, `z = u`. The first direction runs slowest.
pub(super) fn collapsed(shape: CellShape, degree: usize) -> Rule {
    let n = degree / 2 + 1;
    let name = format!("collapsed Gauss–Jacobi {n}^{}", shape.dim());
    let mut rule = Rule { shape, points: Vec::new(), weights: Vec::new(), degree: 2 * n - 1, name };
    let lines = [0, 1, 2].map(|alpha| gauss_jacobi(n, alpha));
    for i in 0..n {
        for j in 0..n {
            let is_pyramid = shape == CellShape::Pyramid;
            let across = &lines[usize::from(!is_pyramid)];
            let (s, t) = (lines[0].0[i], across.0[j]);
            let weight = lines[0].1[i] * across.1[j];
            let width = if is_pyramid { 1.0 } else { 1.0 - t };
            if shape.dim() == 2 {
                rule.points.extend([s * (1.0 - t), t]);
                rule.weights.push(weight);
                continue;
            }
            for (u, w) in lines[2].0.iter().zip(&lines[2].1) {
                rule.points.extend([s * width * (1.0 - u), t * (1.0 - u), *u]);
                rule.weights.push(weight * w);
            }
        }
    }
    rule
}
