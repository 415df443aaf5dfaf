//! The words of the language: terminals, tensor algebra, differential operators, functions.

use super::arithmetic::binary;
use super::condition::{conditional, ge, gt, le, lt};
use super::error::FormError;
use super::expr::{Binary, Coefficient, Constant, Expr, Kind, MathFunction, Size, Unary, fresh_label};
use super::role::Role;
use super::shape::Shape;
use super::space::FunctionSpace;
use kingpost_fem::element::CellShape;
use std::sync::Arc;

fn value_shape(space: &FunctionSpace) -> Shape {
    if space.is_vector() { Shape::Vector(space.components()) } else { Shape::Scalar }
}

/// The test function of a space.
pub fn test(space: &FunctionSpace) -> Expr {
    Expr::terminal(Kind::Argument(Role::Test, space.clone()), value_shape(space), Some(space.cell()))
}

/// The trial function of a space.
pub fn trial(space: &FunctionSpace) -> Expr {
    Expr::terminal(Kind::Argument(Role::Trial, space.clone()), value_shape(space), Some(space.cell()))
}

/// A function in a space that is given at run time under this name.
pub fn coefficient(name: impl Into<String>, space: &FunctionSpace) -> Expr {
    let coefficient = Coefficient { name: name.into(), space: space.clone() };
    Expr::terminal(Kind::Coefficient(Arc::new(coefficient)), value_shape(space), Some(space.cell()))
}

/// The functions that a function of a [mixed space](FunctionSpace::mixed) is made of; of another
/// space, or of an expression that is no function, itself.
///
/// ```
/// use kingpost_fem::element::{CellShape, ElementFamily};
/// use kingpost_forms::form::*;
///
/// let cell = CellShape::Triangle;
/// let flux = FunctionSpace::of(cell, ElementFamily::RaviartThomas, 1);
/// let space = FunctionSpace::mixed(cell, [flux, FunctionSpace::discontinuous(cell, 0)]);
/// let [sigma, u] = &split(&coefficient("w", &space))[..] else { unreachable!() };
/// assert_eq!(div(sigma).to_string(), "div(as_vector([w[0], w[1]]))");
/// assert_eq!(u.to_string(), "w[2]");
/// ```
pub fn split(function: &Expr) -> Vec<Expr> {
    let space = match function.kind() {
        Kind::Coefficient(c) => &c.space,
        Kind::Argument(_, space) => space,
        _ => return vec![function.clone()],
    };
    if space.parts() == std::slice::from_ref(space) {
        return vec![function.clone()];
    }
    let mut first = 0;
    let mut functions = Vec::new();
    for part in space.parts() {
        let end = first + part.components();
        functions.push(match part.is_vector() {
            true => as_vector((first..end).map(|c| function[c].clone())),
            false => function[first].clone(),
        });
        first = end;
    }
    functions
}

/// A number that is given at run time under this name.
pub fn constant(name: impl Into<String>) -> Expr {
    constant_of(name.into(), Shape::Scalar, None)
}

/// A number that is given at run time under this name, or else is `default`.
pub fn constant_with_default(name: impl Into<String>, default: f64) -> Expr {
    constant_of(name.into(), Shape::Scalar, Some(vec![default]))
}

/// Largest extent of what is made from a number alone; forms have one node per component.
const MAX_EXTENT: usize = 64;

/// A vector of `n` numbers that is given at run time under this name.
///
/// # Errors
/// `n` of 0 or above 64.
pub fn vector_constant(name: impl Into<String>, n: usize) -> Expr {
    if !(1..=MAX_EXTENT).contains(&n) {
        let (operation, found, needed) = ("vector_constant", Shape::Vector(n), "1 to 64 components");
        return Expr::poison(FormError::Operand { operation, found, needed });
    }
    constant_of(name.into(), Shape::Vector(n), None)
}

fn constant_of(name: String, shape: Shape, default: Option<Vec<f64>>) -> Expr {
    Expr::terminal(Kind::Constant(Arc::new(Constant { name, shape, default })), shape, None)
}

/// The position in space, a vector.
pub fn coordinate(cell: CellShape) -> Expr {
    Expr::terminal(Kind::Coordinate, Shape::Vector(cell.dim()), Some(cell))
}

/// The unit normal of the facets of integrals over [`ds`](super::ds) and [`dS`](super::dS), a vector
/// out of the cell.
///
/// Facets are flat where it is differentiated: of straight simplices its derivatives are 0, of
/// other cells they are refused.
///
/// # Errors
/// The form carries [`FormError::Facet`] if an integral over cells holds it.
pub fn facet_normal(cell: CellShape) -> Expr {
    Expr::terminal(Kind::FacetNormal, Shape::Vector(cell.dim()), Some(cell))
}

/// The length, area or volume of the cell, a straight simplex.
///
/// # Errors
/// The form is refused on other cells.
pub fn cell_volume(cell: CellShape) -> Expr {
    Expr::terminal(Kind::Size(Size::CellVolume), Shape::Scalar, Some(cell))
}

/// The largest distance of two vertices of the cell, a straight simplex.
///
/// # Errors
/// As [`cell_volume`].
pub fn cell_diameter(cell: CellShape) -> Expr {
    Expr::terminal(Kind::Size(Size::CellDiameter), Shape::Scalar, Some(cell))
}

/// The area of the facets of integrals over [`ds`](super::ds) and [`dS`](super::dS), of a straight
/// simplex: lengths in the plane, 1 on a line.
///
/// # Errors
/// As [`cell_volume`]; the form carries [`FormError::Facet`] if an integral over cells holds it.
pub fn facet_area(cell: CellShape) -> Expr {
    Expr::terminal(Kind::Size(Size::FacetArea), Shape::Scalar, Some(cell))
}

/// The identity matrix with `n` rows.
///
/// # Errors
/// `n` of 0 or above 64.
pub fn identity(n: usize) -> Expr {
    if !(1..=MAX_EXTENT).contains(&n) {
        let (operation, found, needed) = ("identity", Shape::Matrix(n, n), "1 to 64 rows");
        return Expr::poison(FormError::Operand { operation, found, needed });
    }
    Expr::terminal(Kind::Identity(n), Shape::Matrix(n, n), None)
}

/// A vector of scalars.
///
/// # Errors
/// A component that is no scalar, or no component at all.
pub fn as_vector<T: Into<Expr>>(components: impl IntoIterator<Item = T>) -> Expr {
    let components: Vec<Expr> = components.into_iter().map(Into::into).collect();
    let n = components.len();
    put_together("as_vector", components, Shape::Vector(n))
}

/// A matrix with `rows` rows of scalars, given row by row.
///
/// # Errors
/// A component that is no scalar, or a number of components that `rows` does not divide.
pub fn as_matrix<T: Into<Expr>>(rows: usize, components: impl IntoIterator<Item = T>) -> Expr {
    let components: Vec<Expr> = components.into_iter().map(Into::into).collect();
    let columns = components.len().checked_div(rows).unwrap_or(0);
    if columns * rows != components.len() {
        let found = Shape::Vector(components.len());
        let needed = "a number of components that the number of rows divides";
        return Expr::poison(FormError::Operand { operation: "as_matrix", found, needed });
    }
    put_together("as_matrix", components, Shape::Matrix(rows, columns))
}

fn put_together(operation: &'static str, components: Vec<Expr>, shape: Shape) -> Expr {
    let wrong = components.iter().map(Expr::shape).find(|s| *s != Shape::Scalar);
    let shape = match wrong {
        Some(found) => Err(FormError::Operand { operation, found, needed: "scalar components" }),
        None if components.is_empty() => {
            Err(FormError::Operand { operation, found: shape, needed: "at least one component" })
        }
        None => Ok(shape),
    };
    let operands: Vec<&Expr> = components.iter().collect();
    Expr::build(&operands, shape, Kind::Components(components.clone()))
}

fn unary(name: &'static str, operation: Unary, a: Expr, needed: &'static str, shape: Option<Shape>) -> Expr {
    let shape = shape.ok_or(FormError::Operand { operation: name, found: a.shape(), needed });
    Expr::build(&[&a], shape, Kind::Unary(operation, a.clone()))
}

/// Like [`unary`] for differential operators, which need to know the dimension of space.
fn differential(
    name: &'static str,
    operation: Unary,
    a: Expr,
    needed: &'static str,
    shape: impl Fn(Shape, usize) -> Option<Shape>,
) -> Expr {
    if a.error().is_some() {
        return a;
    }
    let Some(cell) = a.cell() else { return Expr::poison(FormError::NoFunction) };
    let shape = shape(a.shape(), cell.dim());
    unary(name, operation, a, needed, shape)
}

/// Gradient, derivatives last: `grad(u)[(i, j)]` is the derivative of `u[i]` by coordinate `j`.
///
/// # Errors
/// Gradients of matrices, and of what does not live on cells.
pub fn grad(a: impl Into<Expr>) -> Expr {
    differential("grad", Unary::Gradient, a.into(), "a scalar or a vector", |s, d| s.join(Shape::Vector(d)))
}

/// Divergence of a vector, or of each row of a matrix.
///
/// # Errors
/// Scalars, or as many components (columns) as space does not have dimensions.
pub fn div(a: impl Into<Expr>) -> Expr {
    let needed = "a vector or matrix with as many components (columns) as dimensions";
    differential("div", Unary::Divergence, a.into(), needed, |s, d| match s {
        Shape::Vector(n) if n == d => Some(Shape::Scalar),
        Shape::Matrix(m, n) if n == d => Some(Shape::Vector(m)),
        Shape::Scalar | Shape::Vector(_) | Shape::Matrix(..) => None,
    })
}

/// Rotation: of a vector in space; in the plane, of a vector (`∂_0 u_1 - ∂_1 u_0`) or of a scalar
/// (`(∂_1 u, -∂_0 u)`).
///
/// # Errors
/// Other shapes.
pub fn curl(a: impl Into<Expr>) -> Expr {
    let needed = "a vector with as many components as dimensions, or a scalar in the plane";
    differential("curl", Unary::Curl, a.into(), needed, |s, d| match (s, d) {
        (Shape::Vector(3), 3) => Some(Shape::Vector(3)),
        (Shape::Vector(2), 2) => Some(Shape::Scalar),
        (Shape::Scalar, 2) => Some(Shape::Vector(2)),
        (Shape::Scalar | Shape::Vector(_) | Shape::Matrix(..), _) => None,
    })
}

/// Sum of the products of all components.
///
/// # Errors
/// Different shapes.
pub fn inner(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    binary(Binary::Inner, &a.into(), &b.into())
}

/// Sum over the last index of `a` and the first of `b`.
///
/// # Errors
/// Extents that differ.
pub fn dot(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    binary(Binary::Dot, &a.into(), &b.into())
}

/// All products of components, the indices of `a` first.
///
/// # Errors
/// More than two indices in all.
pub fn outer(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    binary(Binary::Outer, &a.into(), &b.into())
}

/// Trace of a square matrix.
///
/// # Errors
/// Other shapes.
pub fn tr(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    let shape = a.shape().square().map(|_| Shape::Scalar);
    unary("tr", Unary::Trace, a, "a square matrix", shape)
}

/// Determinant of a square matrix with at most 3 rows.
///
/// # Errors
/// Other shapes.
pub fn det(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    let shape = a.shape().square().filter(|n| (1..=3).contains(n)).map(|_| Shape::Scalar);
    unary("det", Unary::Determinant, a, "a square matrix with 1 to 3 rows", shape)
}

/// Inverse of a square matrix with at most 3 rows.
///
/// # Errors
/// Other shapes.
pub fn inv(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    let shape = a.shape().square().filter(|n| (1..=3).contains(n)).map(|_| a.shape());
    unary("inv", Unary::Inverse, a, "a square matrix with 1 to 3 rows", shape)
}

/// Symmetric part of a square matrix.
///
/// # Errors
/// Other shapes.
pub fn sym(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    let shape = a.shape().square().map(|_| a.shape());
    unary("sym", Unary::Symmetric, a, "a square matrix", shape)
}

/// `(A - A^T)/2` of a square matrix.
///
/// # Errors
/// Other shapes.
pub fn skew(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    match square("skew", &a) {
        Ok(_) => (&a - transpose(&a)) / 2.0,
        Err(error) => Expr::poison(error),
    }
}

/// Deviatoric part of a square matrix with `n` rows: `A - tr(A)/n I`.
///
/// # Errors
/// Other shapes.
pub fn dev(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    match square("dev", &a) {
        Ok(n) => &a - tr(&a) / n as f64 * identity(n),
        Err(error) => Expr::poison(error),
    }
}

/// Cofactors of a square matrix with 2 or 3 rows: `det(A) inv(A)^T`, also where `A` is singular.
///
/// # Errors
/// Other shapes.
pub fn cofac(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    let entry = |i: usize, j: usize| a.component(i, j);
    match square("cofac", &a) {
        Ok(2) => as_matrix(2, [entry(1, 1), -entry(1, 0), -entry(0, 1), entry(0, 0)]),
        Ok(3) => as_matrix(
            3,
            (0..9).map(|k| {
                let ([i, p], [j, q]) = ([k / 3 + 1, k / 3 + 2], [k % 3 + 1, k % 3 + 2]);
                let (i, p, j, q) = (i % 3, p % 3, j % 3, q % 3);
                entry(i, j) * entry(p, q) - entry(i, q) * entry(p, j)
            }),
        ),
        Ok(_) => {
            let needed = "a square matrix with 2 or 3 rows";
            Expr::poison(FormError::Operand { operation: "cofac", found: a.shape(), needed })
        }
        Err(error) => Expr::poison(error),
    }
}

/// The number of rows of a square matrix.
fn square(operation: &'static str, a: &Expr) -> Result<usize, FormError> {
    if let Some(error) = a.error() {
        return Err(error.clone());
    }
    let found = a.shape();
    found.square().ok_or(FormError::Operand { operation, found, needed: "a square matrix" })
}

/// Cross product of two vectors in space.
///
/// # Errors
/// Other shapes.
pub fn cross(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    let (a, b) = (a.into(), b.into());
    if let Some(wrong) = [&a, &b].into_iter().find(|e| e.error().is_some()) {
        return wrong.clone();
    }
    let (left, right) = (a.shape(), b.shape());
    if (left, right) != (Shape::Vector(3), Shape::Vector(3)) {
        let needed = "two vectors of three components";
        return Expr::poison(FormError::Shapes { operation: "cross", left, right, needed });
    }
    as_vector([(1, 2), (2, 0), (0, 1)].map(|(i, j)| &a[i] * &b[j] - &a[j] * &b[i]))
}

/// Transposed matrix.
///
/// # Errors
/// Other shapes.
pub fn transpose(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    let shape = match a.shape() {
        Shape::Matrix(m, n) => Some(Shape::Matrix(n, m)),
        Shape::Scalar | Shape::Vector(_) => None,
    };
    unary("transpose", Unary::Transpose, a, "a matrix", shape)
}

/// An expression that [`diff`] can differentiate by: the result, not `a`, is the variable.
pub fn variable(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    Expr::build(&[&a], Ok(a.shape()), Kind::Variable(fresh_label(), a.clone()))
}

/// Derivative of `f` by a variable, the indices of the variable last; its components count as
/// independent of one another.
///
/// # Errors
/// Something that [`variable`] did not make, or more than two indices in all.
pub fn diff(f: impl Into<Expr>, by: impl Into<Expr>) -> Expr {
    let (f, by) = (f.into(), by.into());
    if by.error().is_none() && !matches!(by.kind(), Kind::Variable(..)) {
        return Expr::poison(FormError::NotAVariable { found: by.to_string() });
    }
    let (left, right, needed) = (f.shape(), by.shape(), "at most two indices in all");
    let shape = left.join(right).ok_or(FormError::Shapes { operation: "diff", left, right, needed });
    Expr::build(&[&f, &by], shape, Kind::Diff(f.clone(), by.clone()))
}

fn math(name: &'static str, function: MathFunction, a: Expr) -> Expr {
    let shape = match a.shape() {
        Shape::Scalar => Ok(Shape::Scalar),
        found @ (Shape::Vector(_) | Shape::Matrix(..)) => {
            Err(FormError::Operand { operation: name, found, needed: "a scalar" })
        }
    };
    Expr::build(&[&a], shape, Kind::Math(function, a.clone()))
}

/// Exponential of a scalar.
pub fn exp(a: impl Into<Expr>) -> Expr {
    math("exp", MathFunction::Exp, a.into())
}

/// Natural logarithm of a scalar.
pub fn ln(a: impl Into<Expr>) -> Expr {
    math("ln", MathFunction::Ln, a.into())
}

/// Square root of a scalar.
pub fn sqrt(a: impl Into<Expr>) -> Expr {
    math("sqrt", MathFunction::Sqrt, a.into())
}

/// Sine of a scalar.
pub fn sin(a: impl Into<Expr>) -> Expr {
    math("sin", MathFunction::Sin, a.into())
}

/// Cosine of a scalar.
pub fn cos(a: impl Into<Expr>) -> Expr {
    math("cos", MathFunction::Cos, a.into())
}

/// Tangent of a scalar.
pub fn tan(a: impl Into<Expr>) -> Expr {
    math("tan", MathFunction::Tan, a.into())
}

/// Inverse sine of a scalar.
pub fn asin(a: impl Into<Expr>) -> Expr {
    math("asin", MathFunction::Asin, a.into())
}

/// Inverse cosine of a scalar.
pub fn acos(a: impl Into<Expr>) -> Expr {
    math("acos", MathFunction::Acos, a.into())
}

/// Inverse tangent of a scalar.
pub fn atan(a: impl Into<Expr>) -> Expr {
    math("atan", MathFunction::Atan, a.into())
}

/// Hyperbolic sine of a scalar.
pub fn sinh(a: impl Into<Expr>) -> Expr {
    math("sinh", MathFunction::Sinh, a.into())
}

/// Hyperbolic cosine of a scalar.
pub fn cosh(a: impl Into<Expr>) -> Expr {
    math("cosh", MathFunction::Cosh, a.into())
}

/// Hyperbolic tangent of a scalar.
pub fn tanh(a: impl Into<Expr>) -> Expr {
    math("tanh", MathFunction::Tanh, a.into())
}

/// Error function of a scalar, `2/√π` times the integral of `exp(-t²)` from 0.
pub fn erf(a: impl Into<Expr>) -> Expr {
    math("erf", MathFunction::Erf, a.into())
}

/// The angle of the point `(x, y)` from the first axis, in radians between -π and π.
///
/// # Errors
/// Other shapes than scalars.
pub fn atan2(y: impl Into<Expr>, x: impl Into<Expr>) -> Expr {
    binary(Binary::Atan2, &y.into(), &x.into())
}

/// Bessel function of the first kind of a scalar.
pub fn bessel_j(order: u16, a: impl Into<Expr>) -> Expr {
    math("bessel_j", MathFunction::BesselJ(order), a.into())
}

/// Bessel function of the second kind of a positive scalar.
pub fn bessel_y(order: u16, a: impl Into<Expr>) -> Expr {
    math("bessel_y", MathFunction::BesselY(order), a.into())
}

/// Absolute value of a scalar; its slope at 0 is 1.
pub fn abs(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    conditional(ge(&a, 0.0), &a, -&a)
}

/// -1, 0 or 1, as a scalar is negative, 0 or positive.
pub fn sign(a: impl Into<Expr>) -> Expr {
    let a = a.into();
    conditional(gt(&a, 0.0), 1.0, conditional(lt(&a, 0.0), -1.0, 0.0))
}

/// The smaller of two scalars; where they are equal, with the slope of the first.
pub fn minimum(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    let (a, b) = (a.into(), b.into());
    conditional(le(&a, &b), &a, &b)
}

/// The larger of two scalars; where they are equal, with the slope of the first.
pub fn maximum(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    let (a, b) = (a.into(), b.into());
    conditional(ge(&a, &b), &a, &b)
}
