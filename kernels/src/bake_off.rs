//! The bake-off problems of the Center for Efficient Exascale Discretizations (Fischer et al. 2020).
//!
//! ```
//! use kingpost_fem::element::CellShape;
//! use kingpost_kernels::BakeOff;
//!
//! let bp5: BakeOff = "bp5".parse()?;
//! let form = bp5.action_on(CellShape::Hexahedron, 7);
//! let rule = "dx(degree = 13)(scheme = gauss_lobatto)";
//! assert_eq!(form.to_string(), format!("inner(grad(u), grad(test)) * {rule}"));
//! # Ok::<(), kingpost_kernels::BakeOffError>(())
//! ```

use kingpost_fem::element::{CellShape, ElementFamily, LagrangeVariant};
use kingpost_fem::quadrature::QuadratureScheme;
use kingpost_forms::form::{Form, FunctionSpace, Measure, action, coefficient, dx, grad, inner, test, trial};
use std::fmt;
use std::str::FromStr;

/// A bake-off problem (Fischer et al. 2020, §2): the action of an operator on functions of Lagrange
/// elements with Gauss–Lobatto–Legendre nodes, `p + 1` along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BakeOff {
    /// Mass, with `p + 2` Gauss points along an axis.
    Bp1,
    /// The same of vectors with three components.
    Bp2,
    /// Stiffness, with `p + 2` Gauss points along an axis.
    Bp3,
    /// The same of vectors with three components.
    Bp4,
    /// Stiffness, with the nodes as points.
    Bp5,
    /// The same of vectors with three components.
    Bp6,
}

/// There is no such problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no bake-off problem `{name}`; there are `bp1` to `bp6`")]
pub struct BakeOffError {
    /// The name asked for.
    pub name: String,
}

impl BakeOff {
    /// All problems, in their order.
    pub const ALL: [Self; 6] = [Self::Bp1, Self::Bp2, Self::Bp3, Self::Bp4, Self::Bp5, Self::Bp6];

    /// The name that [`FromStr`] takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bp1 => "bp1",
            Self::Bp2 => "bp2",
            Self::Bp3 => "bp3",
            Self::Bp4 => "bp4",
            Self::Bp5 => "bp5",
            Self::Bp6 => "bp6",
        }
    }

    /// Whether its functions are vectors.
    pub fn is_vector(self) -> bool {
        matches!(self, Self::Bp2 | Self::Bp4 | Self::Bp6)
    }

    /// The integral over all cells with the points of the problem.
    pub(crate) fn measure(self, degree: usize) -> Measure {
        match self {
            // p + 2 Gauss points are exact to degree 2p + 3, p + 1 Gauss–Lobatto points to 2p - 1
            Self::Bp1 | Self::Bp2 | Self::Bp3 | Self::Bp4 => {
                dx().with_degree(degree.saturating_mul(2).saturating_add(3))
            }
            Self::Bp5 | Self::Bp6 => {
                let exact_to = degree.saturating_mul(2).saturating_sub(1);
                dx().with_degree(exact_to).with_scheme(QuadratureScheme::GaussLobatto)
            }
        }
    }

    /// Its functions on squares or cubes of a degree.
    pub(crate) fn space_on(self, cell: CellShape, degree: usize) -> FunctionSpace {
        let family = ElementFamily::Lagrange(LagrangeVariant::GllWarped);
        let scalar = FunctionSpace::of(cell, family, degree);
        if self.is_vector() { FunctionSpace::blocked(&scalar, 3) } else { scalar }
    }

    /// The action as a linear form, on squares or cubes of a degree.
    #[must_use]
    pub fn action_on(self, cell: CellShape, degree: usize) -> Form {
        let space = self.space_on(cell, degree);
        let (u, v, dx) = (trial(&space), test(&space), self.measure(degree));
        let form = match self {
            Self::Bp1 | Self::Bp2 => inner(u, v) * dx,
            Self::Bp3 | Self::Bp4 | Self::Bp5 | Self::Bp6 => inner(grad(u), grad(v)) * dx,
        };
        action(form, coefficient("u", &space))
    }
}

impl fmt::Display for BakeOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BakeOff {
    type Err = BakeOffError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|p| p.name() == name).ok_or_else(|| BakeOffError { name: name.to_owned() })
    }
}
