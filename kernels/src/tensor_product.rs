//! The benchmark problems of Świrydowicz et al. 2019 as forms on L-vectors.
//!
//! ```
//! use kingpost_fem::element::CellShape;
//! use kingpost_kernels::TensorProduct;
//!
//! let bp35: TensorProduct = "bp3.5".parse()?;
//! let form = bp35.action_on(CellShape::Hexahedron, 7);
//! let rule = "dx(degree = 13)(scheme = gauss_lobatto)";
//! let terms = "(inner(grad(u), grad(test)) + lambda*inner(u, test))";
//! assert_eq!(form.to_string(), format!("{terms} * {rule}"));
//! # Ok::<(), kingpost_kernels::TensorProductError>(())
//! ```

use crate::bake_off::BakeOff;
use kingpost_fem::element::CellShape;
use kingpost_forms::form::{Form, action, coefficient, constant, grad, inner, test, trial};
use std::fmt;
use std::str::FromStr;

/// A benchmark problem (Świrydowicz et al. 2019, §2): the action of an operator on functions of
/// Lagrange elements with `N + 1` Gauss–Lobatto–Legendre nodes along an axis.
///
/// The publication has them on E-vectors, with stored factors; these are the forms, on L-vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorProduct {
    /// Mass, with `N + 2` Gauss points along an axis: [`BakeOff::Bp1`].
    Bp10,
    /// Screened Poisson, with `N + 2` Gauss points along an axis.
    Bp30,
    /// Screened Poisson, with the nodes as points.
    Bp35,
}

/// There is no such problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no benchmark problem `{name}`; there are `bp10`, `bp30` and `bp35`, or `bp1.0`, `bp3.0` and `bp3.5`"
)]
pub struct TensorProductError {
    /// The name asked for.
    pub name: String,
}

impl TensorProduct {
    /// All problems, in the order of their names.
    pub const ALL: [Self; 3] = [Self::Bp10, Self::Bp30, Self::Bp35];

    /// The name, as files and kernels are called; [`FromStr`] takes that of the publication, too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bp10 => "bp10",
            Self::Bp30 => "bp30",
            Self::Bp35 => "bp35",
        }
    }

    /// The name in the publication.
    pub fn published_name(self) -> &'static str {
        match self {
            Self::Bp10 => "bp1.0",
            Self::Bp30 => "bp3.0",
            Self::Bp35 => "bp3.5",
        }
    }

    /// The action as a linear form, on squares or cubes of a degree; `lambda` is a constant.
    #[must_use]
    pub fn action_on(self, cell: CellShape, degree: usize) -> Form {
        let points = match self {
            Self::Bp10 => return BakeOff::Bp1.action_on(cell, degree),
            Self::Bp30 => BakeOff::Bp3,
            Self::Bp35 => BakeOff::Bp5,
        };
        let space = points.space_on(cell, degree);
        let (u, v) = (trial(&space), test(&space));
        let integrand = inner(grad(u.clone()), grad(v.clone())) + constant("lambda") * inner(u, v);
        action(integrand * points.measure(degree), coefficient("u", &space))
    }
}

impl fmt::Display for TensorProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TensorProduct {
    type Err = TensorProductError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let is_called = |p: &Self| [p.name(), p.published_name()].contains(&name);
        Self::ALL.into_iter().find(is_called).ok_or_else(|| TensorProductError { name: name.to_owned() })
    }
}
