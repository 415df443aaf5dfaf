//! The orthonormal (Proriol–Koornwinder–Dubiner) polynomials of the unit simplex and their
//! gradients.
//!
//! The recurrences are those of Kirby, *Singularity-free evaluation of collapsed-coordinate
//! orthogonal polynomials* (ACM TOMS 37, 2010): polynomial in the Cartesian coordinates, so there
//! is no special case at the collapsed vertex. They are written once, over [`Jet`]s, which carry a
//! value and its gradient.

use std::ops::{Add, Mul, Sub};

use super::CellShape;

/// A value and its gradient along up to three reference axes.
#[derive(Clone, Copy, Debug, Default)]
struct Jet {
    value: f64,
    gradient: [f64; 3],
}

impl Jet {
    fn constant(value: f64) -> Self {
        Self { value, gradient: [0.0; 3] }
    }

    /// The coordinate of (-1, 1) that belongs to `x` in (0, 1) on `axis`.
    fn coordinate(x: f64, axis: usize) -> Self {
        let mut gradient = [0.0; 3];
        gradient[axis] = 2.0;
        Self { value: 2.0 * x - 1.0, gradient }
    }
}

impl Add for Jet {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let gradient = std::array::from_fn(|a| self.gradient[a] + other.gradient[a]);
        Self { value: self.value + other.value, gradient }
    }
}

impl Sub for Jet {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + other * -1.0
    }
}

impl Add<f64> for Jet {
    type Output = Self;
    fn add(self, other: f64) -> Self {
        Self { value: self.value + other, ..self }
    }
}

impl Mul<f64> for Jet {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self { value: self.value * factor, gradient: self.gradient.map(|g| g * factor) }
    }
}

impl Mul for Jet {
    type Output = Self;
    #[expect(clippy::suspicious_arithmetic_impl, reason = "the product rule adds")]
    fn mul(self, other: Self) -> Self {
        let gradient =
            std::array::from_fn(|a| self.gradient[a] * other.value + self.value * other.gradient[a]);
        Self { value: self.value * other.value, gradient }
    }
}

/// The orthonormal polynomials of a degree at some points.
#[derive(Clone, Debug, PartialEq)]
pub struct OrthonormalTable {
    /// The number of polynomials, the dimension of the complete space of the degree.
    pub n_functions: usize,
    /// [points, functions] row-major.
    pub values: Vec<f64>,
    /// For each reference axis, [points, functions] row-major.
    pub gradients: Vec<Vec<f64>>,
}

/// Values and gradients of the polynomials of at most `degree` that are orthonormal on the unit
/// simplex.
///
/// # Shapes and units
/// `points` is [points, dim] row-major, in reference coordinates; a trailing incomplete point is
/// ignored.
///
/// # Source
/// Kirby 2010, figures 2 and 3.
#[must_use]
pub fn orthonormal(shape: CellShape, degree: usize, points: &[f64]) -> OrthonormalTable {
    let dim = shape.dim();
    let n_functions = space_dimension(shape, degree);
    let mut table = OrthonormalTable { n_functions, values: Vec::new(), gradients: vec![Vec::new(); dim] };
    for point in points.chunks_exact(dim) {
        let jets = match shape {
            CellShape::Triangle => triangle(degree, point),
            CellShape::Tetrahedron => tetrahedron(degree, point),
        };
        table.values.extend(jets.iter().map(|j| j.value));
        for (axis, gradient) in table.gradients.iter_mut().enumerate() {
            gradient.extend(jets.iter().map(|j| j.gradient[axis]));
        }
    }
    table
}

/// The dimension of the complete polynomial space, binomial(degree + dim, dim).
pub(super) fn space_dimension(shape: CellShape, degree: usize) -> usize {
    match shape {
        CellShape::Triangle => (degree + 1) * (degree + 2) / 2,
        CellShape::Tetrahedron => (degree + 1) * (degree + 2) * (degree + 3) / 6,
    }
}

/// The coefficients `(a, b, c)` of the Jacobi recurrence `P[n+1] = (a x + b) P[n] - c P[n-1]` for
/// weights `(alpha, 0)`.
fn jacobi(alpha: usize, n: usize) -> (f64, f64, f64) {
    let (alpha, n) = (alpha as f64, n as f64);
    let scale = 2.0 * (n + 1.0) * (n + 1.0 + alpha);
    let a = (2.0 * n + 1.0 + alpha) * (2.0 * n + 2.0 + alpha) / scale;
    let b = alpha * alpha * (2.0 * n + 1.0 + alpha) / (scale * (2.0 * n + alpha));
    let c = 2.0 * (n + alpha) * n * (2.0 * n + 2.0 + alpha) / (scale * (2.0 * n + alpha));
    (a, b, c)
}

/// `P[0..=degree]` along the first direction: `P[p+1] = (2p+1)/(p+1) linear P[p] - p/(p+1) square
/// P[p-1]`.
fn first_direction(degree: usize, linear: Jet, square: Jet) -> Vec<Jet> {
    let mut line = vec![Jet::constant(1.0)];
    for p in 0..degree {
        let n = p as f64;
        let mut next = linear * line[p] * ((2.0 * n + 1.0) / (n + 1.0));
        if p > 0 {
            next = next - square * line[p - 1] * (n / (n + 1.0));
        }
        line.push(next);
    }
    line
}

/// `Q[0..=top]` from `Q[0] = start`: `Q[q+1] = (a linear + b scale) Q[q] - c square
/// Q[q-1]` with the Jacobi coefficients of weight `alpha`.
fn next_direction(start: Jet, top: usize, alpha: usize, forms: [Jet; 3]) -> Vec<Jet> {
    let [linear, scale, square] = forms;
    let mut line = vec![start];
    for q in 0..top {
        let (a, b, c) = jacobi(alpha, q);
        let mut next = (linear * a + scale * b) * line[q];
        if q > 0 {
            next = next - square * line[q - 1] * c;
        }
        line.push(next);
    }
    line
}

fn triangle(degree: usize, point: &[f64]) -> Vec<Jet> {
    let (x, y) = (Jet::coordinate(point[0], 0), Jet::coordinate(point[1], 1));
    let one = Jet::constant(1.0);
    let half = (one - y) * 0.5;
    let mut jets = Vec::with_capacity(space_dimension(CellShape::Triangle, degree));
    for (p, start) in first_direction(degree, x + (y + 1.0) * 0.5, half * half).into_iter().enumerate() {
        let line = next_direction(start, degree - p, 2 * p + 1, [y, one, one]);
        for (q, jet) in line.into_iter().enumerate() {
            // 4: the unit triangle has a quarter of the area of the biunit one.
            jets.push(jet * (4.0 * (p as f64 + 0.5) * (p + q + 1) as f64).sqrt());
        }
    }
    jets
}

fn tetrahedron(degree: usize, point: &[f64]) -> Vec<Jet> {
    let [x, y, z] = std::array::from_fn(|axis| Jet::coordinate(point[axis], axis));
    let one = Jet::constant(1.0);
    let yz = (y + z) * 0.5;
    let half = (one - z) * 0.5;
    let across = [y + (z + 1.0) * 0.5, half, half * half];
    let mut jets = Vec::with_capacity(space_dimension(CellShape::Tetrahedron, degree));
    for (p, start) in first_direction(degree, x + yz + 1.0, yz * yz).into_iter().enumerate() {
        let line = next_direction(start, degree - p, 2 * p + 1, across);
        for (q, start) in line.into_iter().enumerate() {
            let column = next_direction(start, degree - p - q, 2 * (p + q) + 2, [z, one, one]);
            for (r, jet) in column.into_iter().enumerate() {
                // 8: the unit tetrahedron has an eighth of the volume of the biunit one.
                let norm = 8.0 * (p as f64 + 0.5) * (p + q + 1) as f64 * ((p + q + r) as f64 + 1.5);
                jets.push(jet * norm.sqrt());
            }
        }
    }
    jets
}
