//! The form language: variational forms as Rust expressions.
//!
//! ```
//! use kingpost_fem::element::CellShape;
//! use kingpost_forms::form::*;
//!
//! let space = FunctionSpace::scalar(CellShape::Triangle, 2);
//! let (u, v) = (trial(&space), test(&space));
//! let laplace = inner(grad(&u), grad(&v)) * dx();
//! let applied = action(laplace, coefficient("u", &space));
//! assert_eq!(applied.to_string(), "inner(grad(u), grad(test)) * dx");
//!
//! let wrong = (grad(&u) + &v) * dx();
//! assert_eq!(
//!     wrong.check().unwrap_err().to_string(),
//!     "`+`: found vector(2) and scalar, needed equal shapes"
//! );
//! ```
//!
//! Its words are those of UFL. Differentiation ([`diff`], [`derivative`], [`grad`] of anything) is
//! written down and carried out later: symbolically for lowering, by nilpotent numbers in the
//! reference.

mod arithmetic;
mod condition;
mod degree;
mod differentiate;
mod display;
mod error;
mod expand;
mod expr;
mod functions;
mod inputs;
mod integral;
mod linear;
mod replace;
mod restriction;
mod role;
mod scalar;
mod shape;
mod sides;
pub(crate) mod space;
pub(crate) mod tensor;
pub(crate) mod walk;

pub use condition::{Condition, conditional, eq, ge, gt, le, lt, ne};
pub use error::FormError;
pub use expand::{ExpandedForm, expand};
pub use expr::{Binary, Coefficient, Compared, Comparison, Constant, Expr, Kind, MathFunction, Size, Unary};
pub use functions::{
    abs, acos, as_matrix, as_vector, asin, atan, atan2, bessel_j, bessel_y, cell_diameter, cell_volume,
    coefficient, cofac, constant, constant_with_default, coordinate, cos, cosh, cross, curl, det, dev, diff,
    div, dot, erf, exp, facet_area, facet_normal, grad, identity, inner, inv, ln, maximum, minimum, outer,
    sign, sin, sinh, skew, split, sqrt, sym, tan, tanh, test, tr, transpose, trial, variable,
    vector_constant,
};
pub use inputs::Inputs;
pub use integral::{Form, Integral, Measure, Region, action, dS, derivative, ds, dx, gateaux};
pub use linear::{linear_terms, terms_in};
pub use restriction::{avg, jump, jump_along, minus, plus};
pub use role::Role;
pub use scalar::{Bits, Field, Jet, Scalar, ScalarGraph, ScalarId};
pub use shape::Shape;
pub use space::FunctionSpace;

#[cfg(test)]
mod tests;
