//! The polynomial spaces of the families, as coefficients of the orthonormal polynomials.

use super::family::bubble_degree;
use super::orthonormal::{exponents, orthonormal_derivatives, space_dimension};
use super::{CellShape, ElementError};
use crate::quadrature::{QuadratureScheme, rule};
use nalgebra::DMatrix;

/// A space of functions with `value_size` components: rows are an orthonormal basis of it, columns
/// are [components, polynomials of the degree].
pub(super) struct Span {
    pub(super) rows: DMatrix<f64>,
}

/// A vector is dependent on others if what remains of it without them is at most this long: those of
/// a basis have length about 1/2, rounding leaves 1e-14.
const DEPENDENT: f64 = 1e-8;

/// Orthonormal polynomials times weights at the points of an exact rule.
struct Sampled {
    points: Vec<f64>,
    weights: Vec<f64>,
    /// [points][polynomials]
    values: Vec<Vec<f64>>,
}

impl Sampled {
    fn new(shape: CellShape, degree: usize) -> Result<Self, ElementError> {
        let rule = rule(shape, 2 * degree, QuadratureScheme::Default)
            .map_err(|e| ElementError::Rule(e.to_string()))?;
        let table = orthonormal_derivatives(shape, degree, &rule.points, 0).swap_remove(0);
        let values = table.chunks_exact(space_dimension(shape, degree)).map(<[f64]>::to_vec).collect();
        Ok(Self { points: rule.points, weights: rule.weights, values })
    }

    /// The coefficients of a function of one point and the polynomials there.
    fn project(&self, dim: usize, function: impl Fn(&[f64], &[f64]) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.values.first().map_or(0, Vec::len)];
        for ((point, weight), values) in self.points.chunks_exact(dim).zip(&self.weights).zip(&self.values) {
            let factor = weight * function(point, values);
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
        }
        sums
    }
}

/// The orthonormal rows that `rows` span, those that depend on earlier ones dropped.
fn orthonormalise(rows: Vec<Vec<f64>>, columns: usize) -> DMatrix<f64> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for mut row in rows {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        // twice: the second pass removes what the first left by rounding
        for _ in 0..2 {
            for other in &basis {
                let part = dot(&row, other);
                row.iter_mut().zip(other).for_each(|(x, y)| *x -= part * y);
            }
        }
        let length = dot(&row, &row).sqrt();
        if length > DEPENDENT {
            row.iter_mut().for_each(|x| *x /= length);
            basis.push(row);
        }
    }
    DMatrix::from_row_iterator(basis.len(), columns, basis.into_iter().flatten())
}

impl Span {
    /// Vectors of polynomials of at most `degree - 1`, and the position times scalar ones of
    /// `degree - 1`.
    ///
    /// # Source
    /// Raviart & Thomas 1977.
    pub(super) fn raviart_thomas(shape: CellShape, degree: usize) -> Result<Self, ElementError> {
        let samples = Sampled::new(shape, degree)?;
        let dim = shape.dim();
        let extra = |i: usize| {
            let component = |j: usize| samples.project(dim, |point, values| point[j] * values[i]);
            (0..dim).map(component).collect()
        };
        Ok(Self::enriched_vectors(shape, degree, extra))
    }

    /// Vectors of polynomials of at most `degree - 1`, and the cross products of the position with
    /// those of `degree - 1`.
    ///
    /// # Source
    /// Nédélec 1980.
    pub(super) fn nedelec_first(shape: CellShape, degree: usize) -> Result<Self, ElementError> {
        let samples = Sampled::new(shape, degree)?;
        let dim = shape.dim();
        // x cross (f e): -f x_b along a and f x_a along b, for each pair of axes
        let pairs: &[(usize, usize)] = if dim == 2 { &[(0, 1)] } else { &[(0, 1), (0, 2), (1, 2)] };
        let mut rows = Self::vectors(shape, degree);
        for i in top(shape, degree) {
            for (a, b) in pairs {
                let part = |axis: usize, sign: f64| {
                    samples.project(dim, |point, values| sign * point[axis] * values[i])
                };
                let component = |j: usize| match j {
                    j if j == *a => part(*b, -1.0),
                    j if j == *b => part(*a, 1.0),
                    _ => vec![0.0; space_dimension(shape, degree)],
                };
                rows.push((0..dim).flat_map(component).collect());
            }
        }
        Ok(Self { rows: orthonormalise(rows, dim * space_dimension(shape, degree)) })
    }

    /// The bubble of the cell times polynomials of the degree that is left.
    pub(super) fn bubble(shape: CellShape, degree: usize) -> Result<Self, ElementError> {
        let samples = Sampled::new(shape, degree)?;
        let dim = shape.dim();
        let bubble = |x: &[f64]| match shape.is_simplex() {
            true => x.iter().product::<f64>() * (1.0 - x.iter().sum::<f64>()),
            false => x.iter().map(|x| x * (1.0 - x)).product(),
        };
        let left = degree - bubble_degree(shape);
        let within = |e: &[usize; 3]| match shape.is_simplex() {
            true => e.iter().sum::<usize>() <= left,
            false => e.iter().all(|n| *n <= left),
        };
        let functions = exponents(shape, degree).into_iter().enumerate().filter(|(_, e)| within(e));
        let rows = functions.map(|(i, _)| samples.project(dim, |x, values| bubble(x) * values[i])).collect();
        Ok(Self { rows: orthonormalise(rows, space_dimension(shape, degree)) })
    }

    fn enriched_vectors(shape: CellShape, degree: usize, extra: impl Fn(usize) -> Vec<Vec<f64>>) -> Self {
        let mut rows = Self::vectors(shape, degree);
        rows.extend(top(shape, degree).map(|i| extra(i).concat()));
        Self { rows: orthonormalise(rows, shape.dim() * space_dimension(shape, degree)) }
    }

    /// Vectors of polynomials of at most `degree - 1` among those of `degree`.
    fn vectors(shape: CellShape, degree: usize) -> Vec<Vec<f64>> {
        let (dim, n) = (shape.dim(), space_dimension(shape, degree));
        let low = exponents(shape, degree).into_iter().enumerate();
        let low: Vec<usize> = low.filter(|(_, e)| e.iter().sum::<usize>() < degree).map(|(i, _)| i).collect();
        let unit = |at: usize| (0..dim * n).map(|i| f64::from(u8::from(i == at))).collect();
        (0..dim).flat_map(|j| low.iter().map(move |i| j * n + i)).map(unit).collect()
    }
}

/// The polynomials of total degree `degree - 1` among those of `degree`.
fn top(shape: CellShape, degree: usize) -> impl Iterator<Item = usize> {
    let all = exponents(shape, degree).into_iter().enumerate();
    all.filter(move |(_, e)| e.iter().sum::<usize>() + 1 == degree).map(|(i, _)| i)
}
