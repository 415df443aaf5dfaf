//! Shapes of expressions.

use std::fmt;

/// The shape of an expression; extents are small (at most 3 for fields on simplices).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// A number.
    Scalar,
    /// A vector with this many components.
    Vector(usize),
    /// A matrix with this many rows and columns.
    Matrix(usize, usize),
}

impl Shape {
    /// Number of components.
    pub fn size(self) -> usize {
        match self {
            Self::Scalar => 1,
            Self::Vector(n) => n,
            Self::Matrix(m, n) => m * n,
        }
    }

    /// Number of indices: 0, 1 or 2.
    pub fn rank(self) -> usize {
        match self {
            Self::Scalar => 0,
            Self::Vector(_) => 1,
            Self::Matrix(_, _) => 2,
        }
    }

    /// Number of rows, if the shape is a square matrix.
    pub fn square(self) -> Option<usize> {
        match self {
            Self::Matrix(m, n) if m == n => Some(n),
            Self::Scalar | Self::Vector(_) | Self::Matrix(_, _) => None,
        }
    }

    /// The indices of `self` followed by those of `other`; `None` beyond two indices.
    pub fn join(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Scalar, s) | (s, Self::Scalar) => Some(s),
            (Self::Vector(m), Self::Vector(n)) => Some(Self::Matrix(m, n)),
            (Self::Vector(_) | Self::Matrix(_, _), Self::Vector(_) | Self::Matrix(_, _)) => None,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar => write!(f, "scalar"),
            Self::Vector(n) => write!(f, "vector({n})"),
            Self::Matrix(m, n) => write!(f, "matrix({m}, {n})"),
        }
    }
}
