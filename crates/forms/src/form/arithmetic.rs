//! The operators `+ - * /`, powers and indices on expressions, owned or borrowed, and numbers.

use super::error::FormError;
use super::expr::{Binary, Expr, Kind, Unary};
use super::shape::Shape;
use std::ops::{Add, Div, Index, Mul, Neg, Sub};

/// A node with two operands, or the mistake in it.
pub(crate) fn binary(operation: Binary, left: &Expr, right: &Expr) -> Expr {
    let shape = result_shape(operation, left.shape(), right.shape());
    Expr::build(&[left, right], shape, Kind::Binary(operation, left.clone(), right.clone()))
}

/// The shape of the result, or which shapes the operation takes.
fn result_shape(operation: Binary, left: Shape, right: Shape) -> Result<Shape, FormError> {
    use Shape::{Matrix, Scalar, Vector};
    let (name, needed, shape) = match operation {
        Binary::Add => ("+", "equal shapes", (left == right).then_some(left)),
        Binary::Subtract => ("-", "equal shapes", (left == right).then_some(left)),
        Binary::Multiply => (
            "*",
            "a scalar factor, or a matrix and as many rows as it has columns (for vectors: `inner`, `dot`, `outer`)",
            match (left, right) {
                (Scalar, shape) | (shape, Scalar) => Some(shape),
                (Matrix(..), Vector(_) | Matrix(..)) => contracted(left, right),
                (Vector(_), Vector(_) | Matrix(..)) => None,
            },
        ),
        Binary::Divide => ("/", "a scalar divisor", (right == Scalar).then_some(left)),
        Binary::Power => ("pow", "two scalars", (left == Scalar && right == Scalar).then_some(Scalar)),
        Binary::Atan2 => ("atan2", "two scalars", (left == Scalar && right == Scalar).then_some(Scalar)),
        Binary::Inner => ("inner", "equal shapes", (left == right).then_some(Scalar)),
        Binary::Dot => (
            "dot",
            "as many columns (components) on the left as rows (components) on the right",
            if left == Scalar && right == Scalar { Some(Scalar) } else { contracted(left, right) },
        ),
        Binary::Outer => ("outer", "at most two indices in all", left.join(right)),
    };
    shape.ok_or(FormError::Shapes { operation: name, left, right, needed })
}

/// Shape after summing over the last index of `left` and the first of `right`.
fn contracted(left: Shape, right: Shape) -> Option<Shape> {
    use Shape::{Matrix, Scalar, Vector};
    let (shape, inner, outer) = match (left, right) {
        (Vector(m), Vector(n)) => (Scalar, m, n),
        (Matrix(i, m), Vector(n)) => (Vector(i), m, n),
        (Vector(m), Matrix(n, j)) => (Vector(j), m, n),
        (Matrix(i, m), Matrix(n, j)) => (Matrix(i, j), m, n),
        (Scalar, _) | (_, Scalar) => return None,
    };
    (inner == outer).then_some(shape)
}

impl Expr {
    /// A scalar to a scalar power; integer exponents are multiplications.
    pub fn pow(&self, exponent: impl Into<Expr>) -> Expr {
        binary(Binary::Power, self, &exponent.into())
    }
}

macro_rules! operator {
    (number $number:ty, $trait:ident, $method:ident, $operation:expr) => {
        impl $trait<Expr> for $number {
            type Output = Expr;
            fn $method(self, right: Expr) -> Expr {
                binary($operation, &self.into(), &right)
            }
        }
        impl $trait<&Expr> for $number {
            type Output = Expr;
            fn $method(self, right: &Expr) -> Expr {
                binary($operation, &self.into(), right)
            }
        }
    };
    ($trait:ident, $method:ident, $operation:expr) => {
        impl<T: Into<Expr>> $trait<T> for Expr {
            type Output = Expr;
            fn $method(self, right: T) -> Expr {
                binary($operation, &self, &right.into())
            }
        }
        impl<T: Into<Expr>> $trait<T> for &Expr {
            type Output = Expr;
            fn $method(self, right: T) -> Expr {
                binary($operation, self, &right.into())
            }
        }
        operator!(number f64, $trait, $method, $operation);
        operator!(number i32, $trait, $method, $operation);
    };
}

operator!(Add, add, Binary::Add);
operator!(Sub, sub, Binary::Subtract);
operator!(Div, div, Binary::Divide);

macro_rules! multiply {
    ($left:ty) => {
        impl Mul<Expr> for $left {
            type Output = Expr;
            fn mul(self, right: Expr) -> Expr {
                binary(Binary::Multiply, &self.into(), &right)
            }
        }
        impl Mul<&Expr> for $left {
            type Output = Expr;
            fn mul(self, right: &Expr) -> Expr {
                binary(Binary::Multiply, &self.into(), right)
            }
        }
    };
    ($left:ty, $number:ty) => {
        impl Mul<$number> for $left {
            type Output = Expr;
            fn mul(self, right: $number) -> Expr {
                binary(Binary::Multiply, &self.into(), &right.into())
            }
        }
    };
}

// Not generic over the right factor as the others are: `expr * dx()` is a form.
multiply!(Expr);
multiply!(&Expr);
multiply!(f64);
multiply!(i32);
multiply!(Expr, f64);
multiply!(&Expr, f64);
multiply!(Expr, i32);
multiply!(&Expr, i32);

impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        -&self
    }
}

impl Neg for &Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        Expr::build(&[self], Ok(self.shape()), Kind::Unary(Unary::Negate, self.clone()))
    }
}

/// Component of a vector, counted from 0.
impl Index<usize> for Expr {
    type Output = Expr;
    fn index(&self, index: usize) -> &Expr {
        self.lend(1, index, 0)
    }
}

/// Component of a matrix: row and column, counted from 0.
impl Index<(usize, usize)> for Expr {
    type Output = Expr;
    fn index(&self, (row, column): (usize, usize)) -> &Expr {
        self.lend(2, row, column)
    }
}
