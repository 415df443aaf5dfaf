//! The three benchmark problems: plain kernels, inputs, and the sizes of Table 1.

use kingpost::Random;
use kingpost::forms::quadrature::{gauss_jacobi, gauss_lobatto};
use kingpost::interp::{Memory, Value};
use kingpost::ir::text::{self, ParseErrors};
use kingpost::ir::{Kernel, ScalarType};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of all real numbers of a kernel.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
pub enum Precision {
    /// IEEE binary64, as in the publication.
    #[default]
    #[serde(rename = "f64")]
    #[value(name = "f64")]
    Double,
    /// IEEE binary32.
    #[serde(rename = "f32")]
    #[value(name = "f32")]
    Single,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scalar())
    }
}

impl Precision {
    /// The type of the text format.
    #[must_use]
    pub const fn scalar(self) -> ScalarType {
        match self {
            Self::Double => ScalarType::F64,
            Self::Single => ScalarType::F32,
        }
    }

    /// Largest difference from the dense operator, in units of its largest value, that roundings
    /// explain: sums of at most 200 terms, matrix entries up to 100, with 1e-16 and 6e-8 a rounding.
    #[must_use]
    pub const fn tolerance(self) -> f64 {
        match self {
            Self::Double => 1e-12,
            Self::Single => 5e-4,
        }
    }

    /// The nearest numbers of this precision.
    #[must_use]
    pub fn rounded(self, values: Vec<f64>) -> Vec<f64> {
        self.value(values).to_f64()
    }

    /// An argument with these elements.
    #[must_use]
    pub fn value(self, values: Vec<f64>) -> Value {
        match self {
            Self::Double => Value::F64(values),
            Self::Single => Value::F32(values.into_iter().map(|x| x as f32).collect()),
        }
    }
}

/// A benchmark problem of the publication.
///
/// # Source
/// Świrydowicz et al. 2019, §4.1 to §4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Problem {
    /// The mass matrix with Gauss–Legendre quadrature.
    Bp10,
    /// The screened Poisson operator, collocated at the Gauss–Lobatto–Legendre nodes.
    Bp35,
    /// The screened Poisson operator with Gauss–Legendre quadrature.
    Bp30,
    /// [`Self::Bp35`] of trilinear elements, with factors computed from their vertices.
    Bp35Vertices,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bp10 => "bp10",
            Self::Bp35 => "bp35",
            Self::Bp30 => "bp30",
            Self::Bp35Vertices => "bp35v",
        })
    }
}

/// The highest degree of the publication's figures.
pub const MAX_DEGREE: usize = 15;

/// A problem at a polynomial degree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sizes {
    /// The problem.
    pub problem: Problem,
    /// Polynomial degree N, at least 1.
    pub degree: usize,
    /// The type of all real numbers.
    pub precision: Precision,
}

impl Sizes {
    /// In double precision, as published.
    #[must_use]
    pub const fn double(problem: Problem, degree: usize) -> Self {
        Self { problem, degree, precision: Precision::Double }
    }

    /// Nodes a direction, `Nq` = N + 1.
    #[must_use]
    pub const fn nodes(self) -> usize {
        self.degree + 1
    }

    /// Quadrature points a direction: `glNq` = N + 2, or the nodes where quadrature is collocated.
    #[must_use]
    pub const fn points(self) -> usize {
        match self.problem {
            Problem::Bp10 | Problem::Bp30 => self.degree + 2,
            Problem::Bp35 | Problem::Bp35Vertices => self.degree + 1,
        }
    }

    /// The plain kernel of any degree; parameters are `ne`, `n` and, if it differs, `m`.
    ///
    /// # Errors
    /// A bug of the study: a text that is no kernel.
    pub fn plain(self) -> Result<Kernel, ParseErrors> {
        self.parsed(match self.problem {
            Problem::Bp10 => include_str!("../kernels/bp10.kingpost"),
            Problem::Bp35 => include_str!("../kernels/bp35.kingpost"),
            Problem::Bp30 => include_str!("../kernels/bp30.kingpost"),
            Problem::Bp35Vertices => include_str!("../kernels/bp35v.kingpost"),
        })
    }

    /// As [`Self::plain`], of BP3.0 with projections along t first, and for factors from vertices by
    /// polynomials that the nodes of a column share.
    ///
    /// # Errors
    /// As [`Self::plain`].
    pub fn plain_by_columns(self) -> Result<Kernel, ParseErrors> {
        match self.problem {
            Problem::Bp30 => self.parsed(include_str!("../kernels/bp30_columns.kingpost")),
            Problem::Bp35Vertices => self.parsed(include_str!("../kernels/bp35v_columns.kingpost")),
            Problem::Bp10 | Problem::Bp35 => self.plain(),
        }
    }

    fn parsed(self, double: &str) -> Result<Kernel, ParseErrors> {
        match self.precision {
            Precision::Double => text::parse(double),
            // literals take the type of what they are multiplied with
            Precision::Single => text::parse(&double.replace(": f64", ": f32")),
        }
    }

    /// The parameters that the degree fixes, with their values.
    #[must_use]
    pub fn fixed(self) -> Vec<(&'static str, i64)> {
        let n = ("n", self.nodes() as i64);
        match self.problem {
            Problem::Bp35 | Problem::Bp35Vertices => vec![n],
            Problem::Bp10 | Problem::Bp30 => vec![n, ("m", self.points() as i64)],
        }
    }

    /// Values of the Lagrange polynomials of the nodes at the quadrature points, [points, nodes].
    #[must_use]
    pub fn interpolation(self) -> Vec<f64> {
        interpolation(&lobatto_nodes(self.nodes()), &legendre_nodes(self.points()))
    }

    /// Random data on `elements` elements, with the matrices of the degree.
    ///
    /// # Shapes and units
    /// Those of the plain kernel's arguments; field and factors are numbers in [-1, 1).
    #[must_use]
    pub fn inputs(self, elements: usize, seed: u64) -> Memory {
        let mut random = Random::new(seed);
        let (nodes, points) = (self.nodes().pow(3), self.points().pow(3));
        let real = |values: Vec<f64>| self.precision.value(values);
        let mut memory =
            Memory::new().param("ne", elements as i64).value("u", real(random.numbers(elements * nodes)));
        for (name, value) in self.fixed() {
            memory = memory.param(name, value);
        }
        match self.problem {
            Problem::Bp10 => memory
                .value("w", real(random.numbers(elements * points)))
                .value("I", real(self.interpolation())),
            Problem::Bp35 => memory
                .value("g", real(random.numbers(elements * 7 * points)))
                .value("D", real(differentiation(&lobatto_nodes(self.nodes()))))
                .value("lambda", real(vec![random.number()])),
            Problem::Bp30 => memory
                .value("g", real(random.numbers(elements * 7 * points)))
                .value("I", real(self.interpolation()))
                .value("D", real(differentiation(&legendre_nodes(self.points()))))
                .value("lambda", real(vec![random.number()])),
            Problem::Bp35Vertices => memory
                .value("X", real(vertices(elements, &mut random)))
                .value("x", real(lobatto_nodes(self.nodes())))
                .value("w", real(lobatto_weights(self.nodes())))
                .value("D", real(differentiation(&lobatto_nodes(self.nodes()))))
                .value("lambda", real(vec![random.number()])),
        }
    }
}

/// `n` Gauss–Lobatto–Legendre nodes on (-1, 1), ascending and exactly symmetric.
#[must_use]
pub fn lobatto_nodes(n: usize) -> Vec<f64> {
    symmetric(gauss_lobatto(n).0)
}

/// The weights of those nodes, which add up to 2.
#[must_use]
pub fn lobatto_weights(n: usize) -> Vec<f64> {
    gauss_lobatto(n).1.into_iter().map(|w| 2.0 * w).collect()
}

/// Vertices of cubes of side 2 that are moved by at most a fifth along each axis, so that no
/// Jacobian is near zero.
///
/// # Shapes and units
/// [elements, 3, 8], the bits of the last index being r, s and t from the lowest one on.
fn vertices(elements: usize, random: &mut Random) -> Vec<f64> {
    let ends = (0..3_u32).flat_map(|axis| (0..8_u32).map(move |v| f64::from(2 * (v >> axis & 1)) - 1.0));
    let all = (0..elements).flat_map(|_| ends.clone());
    all.map(|end| end + 0.2 * random.number()).collect()
}

/// `n` Gauss–Legendre nodes on (-1, 1), ascending and exactly symmetric.
#[must_use]
pub fn legendre_nodes(n: usize) -> Vec<f64> {
    symmetric(gauss_jacobi(n, 0).0)
}

/// Nodes on (0, 1) as ones on (-1, 1) of which opposite ones differ by their sign alone.
fn symmetric(nodes: Vec<f64>) -> Vec<f64> {
    let last = nodes.len() - 1;
    (0..=last).map(|k| nodes[k] - nodes[last - k]).collect()
}

/// Barycentric weights of nodes.
fn barycentric(nodes: &[f64]) -> Vec<f64> {
    let others = |i: usize| nodes.iter().enumerate().filter(move |(j, _)| *j != i);
    nodes.iter().enumerate().map(|(i, x)| others(i).map(|(_, y)| x - y).product::<f64>().recip()).collect()
}

/// Values at `points` of the Lagrange polynomials of `nodes`, [points, nodes], row-major; entries
/// that mirror each other are equal to the last bit, if nodes and points are symmetric.
///
/// # Source
/// Świrydowicz et al. 2019, equation (7), by the barycentric formula of the second kind.
#[must_use]
pub fn interpolation(nodes: &[f64], points: &[f64]) -> Vec<f64> {
    let weights = barycentric(nodes);
    let row = |x: f64| -> Vec<f64> {
        if let Some(at) = nodes.iter().position(|node| *node == x) {
            return (0..nodes.len()).map(|k| if k == at { 1.0 } else { 0.0 }).collect();
        }
        let terms: Vec<f64> = nodes.iter().zip(&weights).map(|(node, w)| w / (x - node)).collect();
        let sum: f64 = terms.iter().sum();
        terms.iter().map(|t| t / sum).collect()
    };
    mirrored(points.iter().flat_map(|x| row(*x)).collect(), 1.0)
}

/// Derivatives at `nodes` of their Lagrange polynomials, [nodes, nodes], row-major; entries that
/// mirror each other differ by their sign alone, if the nodes are symmetric.
///
/// # Source
/// Świrydowicz et al. 2019, §4.2, by barycentric weights; a row sums to zero.
#[must_use]
pub fn differentiation(nodes: &[f64]) -> Vec<f64> {
    let weights = barycentric(nodes);
    let n = nodes.len();
    let mut matrix = vec![0.0; n * n];
    for i in 0..n {
        for j in (0..n).filter(|j| *j != i) {
            matrix[i * n + j] = weights[j] / weights[i] / (nodes[i] - nodes[j]);
            matrix[i * n + i] -= matrix[i * n + j];
        }
    }
    mirrored(matrix, -1.0)
}

/// Makes the second half of a matrix the first one read backward, times `sign`.
fn mirrored(mut matrix: Vec<f64>, sign: f64) -> Vec<f64> {
    let last = matrix.len() - 1;
    for k in 0..matrix.len() / 2 {
        matrix[last - k] = sign * matrix[k];
    }
    if sign < 0.0 && matrix.len() % 2 == 1 {
        matrix[last / 2] = 0.0; // its own mirror image
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_exact_on_polynomials_and_symmetric() {
        for degree in 1..=MAX_DEGREE {
            let (nodes, points) = (lobatto_nodes(degree + 1), legendre_nodes(degree + 2));
            let power = |x: f64| x.powi(degree as i32);
            let field: Vec<f64> = nodes.iter().map(|x| power(*x)).collect();
            let times = |matrix: &[f64], v: &[f64]| -> Vec<f64> {
                matrix.chunks(v.len()).map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum()).collect()
            };
            let matrix = interpolation(&nodes, &points);
            for (found, x) in times(&matrix, &field).iter().zip(&points) {
                assert!((found - power(*x)).abs() < 1e-14, "degree {degree}: {found} at {x}");
            }
            let slopes = differentiation(&nodes);
            for (found, x) in times(&slopes, &field).iter().zip(&nodes) {
                // entries reach N^2, so 256 roundings of 1e-16
                let exact = degree as f64 * x.powi(degree as i32 - 1);
                assert!((found - exact).abs() < 2e-13, "degree {degree}: {found}, not {exact}");
            }
            for (matrix, sign) in [(&matrix, 1.0), (&slopes, -1.0)] {
                let mirror = matrix.iter().rev().map(|x| sign * x);
                assert!(matrix.iter().copied().eq(mirror), "degree {degree}");
            }
        }
    }
}
