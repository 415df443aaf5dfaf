//! The orthonormal polynomials of the reference cells with derivatives of any order:
//! Proriol–Koornwinder–Dubiner on simplices, products of Legendre polynomials on squares and cubes,
//! of both on prisms, and rational functions on pyramids.
//!
//! The recurrences are those of Kirby, *Singularity-free evaluation of collapsed-coordinate
//! orthogonal polynomials* (ACM TOMS 37, 2010): polynomial in the Cartesian coordinates, so there
//! is no special case at the collapsed vertex. They are written once, over [`Jets`], which carry
//! values and derivatives.

use super::CellShape;
use super::jets::{Jets, Ring};

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

/// Values and gradients of the polynomials of at most `degree` that are orthonormal on the
/// reference cell; on squares and cubes, of at most `degree` in each coordinate.
///
/// # Shapes and units
/// `points` is [points, dim] row-major, in reference coordinates; a trailing incomplete point is
/// ignored.
///
/// # Source
/// Kirby 2010, figures 2 and 3.
#[must_use]
pub fn orthonormal(shape: CellShape, degree: usize, points: &[f64]) -> OrthonormalTable {
    let mut tables = orthonormal_derivatives(shape, degree, points, 1);
    let gradients = tables.split_off(1);
    OrthonormalTable {
        n_functions: space_dimension(shape, degree),
        values: tables.pop().unwrap_or_default(),
        gradients,
    }
}

/// All derivatives of at most `order`: [derivatives], each [points, functions] row-major.
pub(super) fn orthonormal_derivatives(
    shape: CellShape,
    degree: usize,
    points: &[f64],
    order: usize,
) -> Vec<Vec<f64>> {
    let whole = points.len() - points.len() % shape.dim();
    let ring = Ring::new(shape.dim(), order, &points[..whole]);
    let functions = match shape {
        CellShape::Interval => interval(&ring, degree, 0),
        CellShape::Triangle => triangle(&ring, degree),
        CellShape::Tetrahedron => tetrahedron(&ring, degree),
        CellShape::Quadrilateral | CellShape::Hexahedron => tensor(&ring, degree, shape.dim()),
        CellShape::Prism => products(&ring, &triangle(&ring, degree), &interval(&ring, degree, 2)),
        CellShape::Pyramid => pyramid(&ring, degree),
    };
    let n_functions = functions.len();
    let by_function: Vec<_> = functions.into_iter().map(|jets| ring.derivatives_of(jets)).collect();
    let n_derivatives = by_function.first().map_or(0, Vec::len);
    let table = |d: usize| {
        let mut table = vec![0.0; ring.n_points() * n_functions];
        for (i, rows) in by_function.iter().enumerate() {
            let places = table.iter_mut().skip(i).step_by(n_functions);
            places.zip(&rows[d]).for_each(|(place, value)| *place = *value);
        }
        table
    };
    (0..n_derivatives).map(table).collect()
}

/// The dimension of the complete polynomial space: binomial(degree + dim, dim) on simplices,
/// `(degree + 1)^dim` on squares and cubes.
pub(super) fn space_dimension(shape: CellShape, degree: usize) -> usize {
    match shape {
        CellShape::Interval => degree + 1,
        CellShape::Triangle => (degree + 1) * (degree + 2) / 2,
        CellShape::Tetrahedron => (degree + 1) * (degree + 2) * (degree + 3) / 6,
        CellShape::Quadrilateral => (degree + 1).pow(2),
        CellShape::Hexahedron => (degree + 1).pow(3),
        CellShape::Prism => (degree + 1).pow(2) * (degree + 2) / 2,
        CellShape::Pyramid => (degree + 1) * (degree + 2) * (2 * degree + 3) / 6,
    }
}

/// The degree of each orthonormal polynomial along each direction of the recurrence, in the order
/// of [`orthonormal`]; its total degree is their sum.
pub(super) fn exponents(shape: CellShape, degree: usize) -> Vec<[usize; 3]> {
    let top = |used: usize| if shape.is_simplex() { degree - used } else { degree };
    let mut list = Vec::with_capacity(space_dimension(shape, degree));
    for p in 0..=degree {
        for q in 0..=if shape.dim() > 1 { top(p) } else { 0 } {
            list.extend((0..=if shape.dim() > 2 { top(p + q) } else { 0 }).map(|r| [p, q, r]));
        }
    }
    list
}

/// The polynomials of [`orthonormal`] in basix's order: on simplices by total degree, then by the
/// earlier directions ascending.
pub(super) fn basix_order(shape: CellShape, degree: usize) -> Vec<usize> {
    let exponents = exponents(shape, degree);
    let mut order: Vec<usize> = (0..exponents.len()).collect();
    if shape.is_simplex() {
        order.sort_by_key(|i| {
            let [p, q, r] = exponents[*i];
            (p + q + r, p + q, p)
        });
    }
    order
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
fn first_direction(ring: &Ring, degree: usize, linear: &Jets, square: &Jets) -> Vec<Jets> {
    let mut line = vec![ring.constant(1.0)];
    for p in 0..degree {
        let n = p as f64;
        let mut next = ring.product(linear, &line[p]).times((2.0 * n + 1.0) / (n + 1.0));
        if p > 0 {
            next = next.minus(&ring.product(square, &line[p - 1]).times(n / (n + 1.0)));
        }
        line.push(next);
    }
    line
}

/// `Q[0..=top]` from `Q[0] = start`: `Q[q+1] = (a linear + b scale) Q[q] - c square
/// Q[q-1]` with the Jacobi coefficients of weight `alpha`.
fn next_direction(ring: &Ring, start: Jets, top: usize, alpha: usize, forms: [&Jets; 3]) -> Vec<Jets> {
    let [linear, scale, square] = forms;
    let mut line = vec![start];
    for q in 0..top {
        let (a, b, c) = jacobi(alpha, q);
        let factor = linear.clone().times(a).plus(&scale.clone().times(b));
        let mut next = ring.product(&factor, &line[q]);
        if q > 0 {
            next = next.minus(&ring.product(square, &line[q - 1]).times(c));
        }
        line.push(next);
    }
    line
}

/// Legendre polynomials along one axis.
fn interval(ring: &Ring, degree: usize, axis: usize) -> Vec<Jets> {
    let line = first_direction(ring, degree, &ring.coordinate(axis), &ring.constant(1.0));
    // 2: the unit interval has half the length of the biunit one.
    line.into_iter().enumerate().map(|(p, jets)| jets.times((2.0 * (p as f64 + 0.5)).sqrt())).collect()
}

fn tensor(ring: &Ring, degree: usize, dim: usize) -> Vec<Jets> {
    let mut functions = interval(ring, degree, 0);
    for axis in 1..dim {
        functions = products(ring, &functions, &interval(ring, degree, axis));
    }
    functions
}

/// Each function of one list times each of another.
fn products(ring: &Ring, functions: &[Jets], others: &[Jets]) -> Vec<Jets> {
    functions.iter().flat_map(|f| others.iter().map(|g| ring.product(f, g))).collect()
}

/// `P_p(x') P_q(y') (1 - z)^max(p, q) R_r(z)`, where `x'` and `y'` are the coordinates of the square
/// that the section at `z` is, and `R_r` are Jacobi polynomials of weight `2 max(p, q) + 2`. Where both
/// `p` and `q` are above 0 they are rational; at the apex they have the limit along the axis.
fn pyramid(ring: &Ring, degree: usize) -> Vec<Jets> {
    let [x, y, z] = std::array::from_fn(|axis| ring.coordinate(axis));
    let one = ring.constant(1.0);
    let half = one.minus(&z).times(0.5);
    let square = ring.product(&half, &half);
    let inverse = ring.inverse_of_height(2);
    // homogeneous of degree p and q in the coordinates and the width of the section
    let along = |axis: &Jets| {
        let linear = axis.plus(&z.clone().plus_constant(1.0).times(0.5));
        first_direction(ring, degree, &linear, &square)
    };
    let (lines, others) = (along(&x), along(&y));
    let mut functions = Vec::with_capacity(space_dimension(CellShape::Pyramid, degree));
    for (p, left) in lines.iter().enumerate() {
        for (q, right) in others.iter().enumerate() {
            let (low, high) = (p.min(q), p.max(q));
            let start = (0..low).fold(ring.product(left, right), |f, _| ring.product(&f, &inverse));
            let column = next_direction(ring, start, degree - high, 2 * high + 2, [&z, &one, &one]);
            for (r, jets) in column.into_iter().enumerate() {
                // 8: the unit pyramid has an eighth of the volume of that of the biunit cube
                let norm = 8.0 * (p as f64 + 0.5) * (q as f64 + 0.5) * ((high + r) as f64 + 1.5);
                functions.push(jets.times(norm.sqrt()));
            }
        }
    }
    functions
}

fn triangle(ring: &Ring, degree: usize) -> Vec<Jets> {
    let (x, y) = (ring.coordinate(0), ring.coordinate(1));
    let one = ring.constant(1.0);
    let half = one.minus(&y).times(0.5);
    let linear = x.plus(&y.clone().plus_constant(1.0).times(0.5));
    let mut functions = Vec::with_capacity(space_dimension(CellShape::Triangle, degree));
    for (p, start) in
        first_direction(ring, degree, &linear, &ring.product(&half, &half)).into_iter().enumerate()
    {
        let line = next_direction(ring, start, degree - p, 2 * p + 1, [&y, &one, &one]);
        for (q, jets) in line.into_iter().enumerate() {
            // 4: the unit triangle has a quarter of the area of the biunit one.
            functions.push(jets.times((4.0 * (p as f64 + 0.5) * (p + q + 1) as f64).sqrt()));
        }
    }
    functions
}

fn tetrahedron(ring: &Ring, degree: usize) -> Vec<Jets> {
    let [x, y, z] = std::array::from_fn(|axis| ring.coordinate(axis));
    let one = ring.constant(1.0);
    let yz = y.plus(&z).times(0.5);
    let half = one.minus(&z).times(0.5);
    let across = y.plus(&z.clone().plus_constant(1.0).times(0.5));
    let square = ring.product(&half, &half);
    let linear = x.plus(&yz).plus_constant(1.0);
    let mut functions = Vec::with_capacity(space_dimension(CellShape::Tetrahedron, degree));
    for (p, start) in first_direction(ring, degree, &linear, &ring.product(&yz, &yz)).into_iter().enumerate()
    {
        let line = next_direction(ring, start, degree - p, 2 * p + 1, [&across, &half, &square]);
        for (q, start) in line.into_iter().enumerate() {
            let column = next_direction(ring, start, degree - p - q, 2 * (p + q) + 2, [&z, &one, &one]);
            for (r, jets) in column.into_iter().enumerate() {
                // 8: the unit tetrahedron has an eighth of the volume of the biunit one.
                let norm = 8.0 * (p as f64 + 0.5) * (p + q + 1) as f64 * ((p + q + r) as f64 + 1.5);
                functions.push(jets.times(norm.sqrt()));
            }
        }
    }
    functions
}
