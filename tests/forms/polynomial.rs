//! Polynomials in up to three variables and their exact integrals over a mesh, without elements or
//! quadrature.

#![allow(clippy::unwrap_used)] // what a failed test does

use kingpost::Random;
use kingpost::forms::mesh::Mesh;
use std::collections::BTreeMap;
use std::ops::{Add, Mul};

/// Exponents of a monomial; those beyond the dimension are zero.
type Exponents = [usize; 3];

/// Coordinates `(x - origin) / size`, in which a mesh lies in [-1, 1]^d, so that powers neither
/// grow nor vanish.
#[derive(Clone, Debug)]
pub struct Frame {
    origin: Vec<f64>,
    size: f64,
}

impl Frame {
    /// Of the box around a mesh.
    pub fn around(mesh: &Mesh) -> Self {
        let dim = mesh.shape().dim();
        let along = |axis: usize| mesh.coordinates().iter().skip(axis).step_by(dim).copied();
        let bounds: Vec<(f64, f64)> = (0..dim)
            .map(|k| along(k).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x))))
            .collect();
        let size = bounds.iter().map(|(a, b)| (b - a) / 2.0).fold(0.0, f64::max);
        Self { origin: bounds.iter().map(|(a, b)| (a + b) / 2.0).collect(), size }
    }

    fn local(&self, x: &[f64]) -> Vec<f64> {
        x.iter().zip(&self.origin).map(|(x, o)| (x - o) / self.size).collect()
    }
}

/// A polynomial in the coordinates of a frame.
#[derive(Clone, Debug, Default)]
pub struct Polynomial(BTreeMap<Exponents, f64>);

impl Polynomial {
    pub fn constant(value: f64) -> Self {
        Self(BTreeMap::from([([0; 3], value)]))
    }

    /// Every monomial up to `degree` with a coefficient in [-1, 1).
    pub fn random(dim: usize, degree: usize, random: &mut Random) -> Self {
        Self(monomials(dim, degree).into_iter().map(|e| (e, random.number())).collect())
    }

    /// Derivatives by the physical coordinates.
    pub fn gradient(&self, frame: &Frame) -> Vec<Self> {
        (0..frame.origin.len()).map(|axis| self.derivative(axis).scaled(1.0 / frame.size)).collect()
    }

    fn derivative(&self, axis: usize) -> Self {
        let term = |(e, c): (&Exponents, &f64)| {
            let mut lower = *e;
            lower[axis] = e[axis].checked_sub(1)?;
            Some((lower, c * e[axis] as f64))
        };
        Self(self.0.iter().filter_map(term).collect())
    }

    pub fn scaled(&self, factor: f64) -> Self {
        Self(self.0.iter().map(|(e, c)| (*e, c * factor)).collect())
    }
}

/// The values of all monomials up to a degree at points, so that polynomials are evaluated fast.
pub struct Samples(BTreeMap<Exponents, Vec<f64>>);

impl Samples {
    /// At points of shape `[points, dim]`.
    pub fn new(frame: &Frame, points: &[f64], degree: usize) -> Self {
        let dim = frame.origin.len();
        let coordinate = |axis: usize| -> Vec<f64> {
            let (origin, size) = (frame.origin[axis], frame.size);
            points.iter().skip(axis).step_by(dim).map(|x| (x - origin) / size).collect()
        };
        let coordinates: Vec<_> = (0..dim).map(coordinate).collect();
        let mut values = BTreeMap::from([([0; 3], vec![1.0; points.len() / dim])]);
        for e in monomials(dim, degree) {
            if let Some(axis) = e.iter().position(|n| *n > 0) {
                let mut lower = e;
                lower[axis] -= 1;
                let product = values[&lower].iter().zip(&coordinates[axis]).map(|(v, z)| v * z).collect();
                values.insert(e, product);
            }
        }
        Self(values)
    }

    /// Of a polynomial of at most the degree.
    pub fn values(&self, polynomial: &Polynomial) -> Vec<f64> {
        let mut sum = vec![0.0; self.0[&[0; 3]].len()];
        for (e, c) in &polynomial.0 {
            sum.iter_mut().zip(&self.0[e]).for_each(|(s, v)| *s += c * v);
        }
        sum
    }
}

impl Add for &Polynomial {
    type Output = Polynomial;

    fn add(self, other: Self) -> Polynomial {
        let mut sum = self.clone();
        for (e, c) in &other.0 {
            *sum.0.entry(*e).or_default() += c;
        }
        sum
    }
}

impl Mul for &Polynomial {
    type Output = Polynomial;

    fn mul(self, other: Self) -> Polynomial {
        let mut product = Polynomial::default();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                *product.0.entry(std::array::from_fn(|k| a[k] + b[k])).or_default() += x * y;
            }
        }
        product
    }
}

/// Exponents up to a degree, lower degrees first.
fn monomials(dim: usize, degree: usize) -> Vec<Exponents> {
    let last = |k: usize| if k < dim { degree } else { 0 };
    let mut all = Vec::new();
    for a in 0..=last(0) {
        for b in 0..=last(1) {
            all.extend((0..=last(2)).map(|c| [a, b, c]));
        }
    }
    all.retain(|e| e.iter().sum::<usize>() <= degree);
    all.sort_by_key(|e| e.iter().sum::<usize>());
    all
}

fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

/// A sum with the rounding errors of its additions carried along (Neumaier 1974).
#[derive(Clone, Copy, Default)]
pub struct Sum {
    value: f64,
    lost: f64,
}

impl Sum {
    pub fn add(&mut self, x: f64) {
        let sum = self.value + x;
        self.lost +=
            if self.value.abs() >= x.abs() { (self.value - sum) + x } else { (x - sum) + self.value };
        self.value = sum;
    }

    pub fn total(self) -> f64 {
        self.value + self.lost
    }
}

/// Integrals of the monomials of a frame over a mesh.
pub struct Moments {
    pub frame: Frame,
    values: BTreeMap<Exponents, f64>,
}

impl Moments {
    /// Up to a degree, cell by cell, over a simplex `T` with vertices `v_0 .. v_d`:
    ///
    /// ```text
    /// integral over T of z^e = d! |T| e! / (|e| + d)! * [s^e] of the product over i of 1 / (1 - s . v_i)
    /// ```
    ///
    /// which is the integral of a power of the linear function `s . z`, read off by powers of `s`
    /// (Baldoni et al. 2011).
    pub fn new(mesh: &Mesh, degree: usize) -> Self {
        let (frame, dim) = (Frame::around(mesh), mesh.shape().dim());
        let all = monomials(dim, degree);
        let position: BTreeMap<Exponents, usize> = all.iter().enumerate().map(|(k, e)| (*e, k)).collect();
        // For each monomial the axes along which it can be lowered, and where that leads.
        let lower = |e: &Exponents| -> Vec<(usize, usize)> {
            let step = |axis: usize| {
                let mut lower = *e;
                lower[axis] = e[axis].checked_sub(1)?;
                Some((axis, position[&lower]))
            };
            (0..dim).filter_map(step).collect()
        };
        let lowered: Vec<_> = all.iter().map(lower).collect();
        let mut sums = vec![Sum::default(); all.len()];
        let mut series = vec![0.0; all.len()];
        for cell in 0..mesh.n_cells() {
            let vertices: Vec<_> = mesh.cell(cell).iter().map(|v| frame.local(mesh.vertex(*v))).collect();
            series.fill(0.0);
            series[0] = determinant(&vertices).abs();
            for vertex in &vertices {
                // h = g / (1 - s . v) means h = g + (s . v) h, lower degrees first.
                for (k, steps) in lowered.iter().enumerate() {
                    series[k] += steps.iter().map(|(axis, from)| vertex[*axis] * series[*from]).sum::<f64>();
                }
            }
            sums.iter_mut().zip(&series).for_each(|(sum, x)| sum.add(*x));
        }
        let volume = frame.size.powi(dim as i32);
        let weight = |e: &Exponents| {
            volume * e.iter().map(|k| factorial(*k)).product::<f64>()
                / factorial(e.iter().sum::<usize>() + dim)
        };
        let values = all.iter().zip(&sums).map(|(e, s)| (*e, weight(e) * s.total())).collect();
        Self { frame, values }
    }

    /// The integral of a polynomial of at most the degree of the moments.
    pub fn integral(&self, polynomial: &Polynomial) -> f64 {
        let mut sum = Sum::default();
        polynomial.0.iter().for_each(|(e, c)| sum.add(c * self.values[e]));
        sum.total()
    }
}

/// `d!` times the signed volume of a simplex.
fn determinant(vertices: &[Vec<f64>]) -> f64 {
    let edge = |i: usize, k: usize| vertices[i + 1][k] - vertices[0][k];
    let minor = |a: usize, b: usize| edge(1, a) * edge(2, b) - edge(1, b) * edge(2, a);
    match vertices.len() {
        3 => edge(0, 0) * edge(1, 1) - edge(0, 1) * edge(1, 0),
        _ => edge(0, 0) * minor(1, 2) + edge(0, 1) * minor(2, 0) + edge(0, 2) * minor(0, 1),
    }
}

#[test]
fn moments_of_the_reference_simplex_are_those_of_dirichlet() {
    let corners = vec![0., 0., 0., 1., 0., 0., 0., 1., 0., 0., 0., 1.];
    let shape = Mesh::unit_cube(1).unwrap().shape();
    let moments = Moments::new(&Mesh::new(shape, corners, vec![0, 1, 2, 3], None).unwrap(), 8);
    // x = (1 + z) / 2 in the frame of the box [0, 1]^3.
    let barycentric = |k: usize| {
        let mut e = [0; 3];
        e[k] = 1;
        &Polynomial::constant(0.5) + &Polynomial(BTreeMap::from([(e, 0.5)]))
    };
    for [a, b, c] in monomials(3, 8) {
        let mut power = Polynomial::constant(1.0);
        for (k, n) in [a, b, c].into_iter().enumerate() {
            (0..n).for_each(|_| power = &power * &barycentric(k));
        }
        let exact = factorial(a) * factorial(b) * factorial(c) / factorial(a + b + c + 3);
        let found = moments.integral(&power);
        // 1e-15: up to 100 terms of at most 1/6 whose rounding errors are 2e-17 each.
        assert!((found - exact).abs() < 1e-15, "{a} {b} {c}: {found} {exact}");
    }
}

#[test]
fn moments_of_a_square_are_products() {
    let moments = Moments::new(&Mesh::unit_square(3).unwrap(), 6);
    for e in monomials(2, 6) {
        // The frame is (x - 1/2) / (1/2): odd powers vanish, even ones give 1 / (k + 1).
        let exact: f64 = e.iter().map(|k| if k % 2 == 0 { 1.0 / (k + 1) as f64 } else { 0.0 }).product();
        // 1e-15: 18 cells, each right to a few roundings of 1e-17.
        assert!((moments.values[&e] - exact).abs() < 1e-15, "{e:?}: {} {exact}", moments.values[&e]);
    }
}
