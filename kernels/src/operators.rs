//! The five operators of Kulkarni & Klöckner 2025, Appendix A, written in the form language.
//!
//! ```
//! use kingpost_kernels::Operator;
//!
//! let laplace: Operator = "laplace".parse()?;
//! assert_eq!(laplace.form(3, 4)?.to_string(), "inner(grad(u), grad(test)) * dx");
//! # Ok::<(), kingpost_kernels::OperatorError>(())
//! ```

use kingpost_fem::element::CellShape;
use kingpost_forms::form::{
    Expr, Form, FunctionSpace, action, coefficient, constant_with_default, derivative, diff, dx, grad,
    identity, inner, sym, test, tr, transpose, trial, variable,
};
use std::fmt;
use std::str::FromStr;

/// An operator of Kulkarni & Klöckner 2025, Appendix A; its form is the action on a coefficient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// `u v` (A.1), acting on the scalar field `u`.
    Mass,
    /// `grad u . grad v + u v` (A.2), acting on the scalar field `u`.
    Helmholtz,
    /// `grad u . grad v` (A.3), acting on the scalar field `u`.
    Laplace,
    /// `sym grad u : sym grad v` (A.4), acting on the vector field `u`.
    Elasticity,
    /// The linearised neo-Hookean-like model (A.5–A.8) at the vector field
    /// `u`, acting on the vector field `du`.
    Hyperelasticity,
}

/// Why there is no such operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// No operator has the name.
    #[error(
        "no operator `{name}`; there are `mass`, `helmholtz`, `laplace`, `elasticity`, `hyperelasticity`"
    )]
    Name {
        /// The name asked for.
        name: String,
    },
    /// There are no cells of the dimension.
    #[error("dimension {dim}: the operators are on triangles (2) and tetrahedra (3)")]
    Dimension {
        /// The dimension asked for.
        dim: usize,
    },
}

/// Young's modulus behind the default Lamé parameters; Kulkarni & Klöckner 2025 gives none.
const YOUNG: f64 = 1.0;
/// Poisson's ratio behind the default Lamé parameters.
const POISSON: f64 = 0.3;

impl Operator {
    /// All operators, in the order of the source.
    pub const ALL: [Self; 5] =
        [Self::Mass, Self::Helmholtz, Self::Laplace, Self::Elasticity, Self::Hyperelasticity];

    /// The name that [`FromStr`] takes, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mass => "mass",
            Self::Helmholtz => "helmholtz",
            Self::Laplace => "laplace",
            Self::Elasticity => "elasticity",
            Self::Hyperelasticity => "hyperelasticity",
        }
    }

    /// Whether its functions are vectors.
    pub fn is_vector(self) -> bool {
        match self {
            Self::Mass | Self::Helmholtz | Self::Laplace => false,
            Self::Elasticity | Self::Hyperelasticity => true,
        }
    }

    /// Name of the coefficient that the operator acts on.
    pub fn acts_on(self) -> &'static str {
        match self {
            Self::Mass | Self::Helmholtz | Self::Laplace | Self::Elasticity => "u",
            Self::Hyperelasticity => "du",
        }
    }

    /// The space of its functions on triangles or tetrahedra.
    ///
    /// # Errors
    /// [`OperatorError::Dimension`] unless `dim` is 2 or 3.
    pub fn space(self, dim: usize, degree: usize) -> Result<FunctionSpace, OperatorError> {
        match dim {
            2 => Ok(self.space_on(CellShape::Triangle, degree)),
            3 => Ok(self.space_on(CellShape::Tetrahedron, degree)),
            _ => Err(OperatorError::Dimension { dim }),
        }
    }

    /// The space of its functions on cells of a shape.
    #[must_use]
    pub fn space_on(self, cell: CellShape, degree: usize) -> FunctionSpace {
        let space = if self.is_vector() { FunctionSpace::vector } else { FunctionSpace::scalar };
        space(cell, degree)
    }

    /// The action of the operator on Lagrange elements of a degree, as a linear form.
    ///
    /// # Errors
    /// [`OperatorError::Dimension`] unless `dim` is 2 or 3.
    pub fn form(self, dim: usize, degree: usize) -> Result<Form, OperatorError> {
        Ok(self.action_on(&self.space(dim, degree)?))
    }

    /// The action of the operator on functions of a space, as a linear form.
    #[must_use]
    pub fn action_on(self, space: &FunctionSpace) -> Form {
        action(self.bilinear_on(space), coefficient(self.acts_on(), space))
    }

    /// The name of an action in tables and records: `laplace.3D.P4`.
    #[must_use]
    pub fn action_name(self, dim: usize, degree: usize) -> String {
        format!("{self}.{dim}D.P{degree}")
    }

    /// The name of the kernel of an action: `laplace_3d_p4`.
    #[must_use]
    pub fn kernel_name(self, dim: usize, degree: usize) -> String {
        format!("{self}_{dim}d_p{degree}")
    }

    /// The operator as a bilinear form on functions of a space; of hyperelasticity the tangent at a
    /// displacement `u`.
    #[must_use]
    pub fn bilinear_on(self, space: &FunctionSpace) -> Form {
        let (u, v) = (trial(space), test(space));
        match self {
            Self::Mass => inner(u, v) * dx(),
            Self::Helmholtz => (inner(grad(&u), grad(&v)) + inner(u, v)) * dx(),
            Self::Laplace => inner(grad(u), grad(v)) * dx(),
            Self::Elasticity => inner(sym(grad(u)), sym(grad(v))) * dx(),
            Self::Hyperelasticity => hyperelasticity(space, &u, &v),
        }
    }
}

/// The residual (A.7) linearised by the displacement (A.8).
fn hyperelasticity(space: &FunctionSpace, du: &Expr, v: &Expr) -> Form {
    let (u, b) = (coefficient("u", space), coefficient("b", space));
    let lambda = constant_with_default("lambda", YOUNG * POISSON / ((1.0 + POISSON) * (1.0 - 2.0 * POISSON)));
    let mu = constant_with_default("mu", YOUNG / (2.0 * (1.0 + POISSON)));
    let unit = identity(space.dim());
    let f = &unit + grad(&u);
    let c = transpose(&f) * &f;
    let e = variable((c - unit) / 2.0);
    let psi = lambda / 2.0 * tr(&e).pow(2) + mu * tr(&e * &e);
    let s = diff(psi, &e);
    let p = f * s;
    let residual = (inner(p, grad(v)) - inner(b, v)) * dx();
    derivative(residual, &u, du)
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Operator {
    type Err = OperatorError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let lower = name.to_lowercase();
        let found = Self::ALL.into_iter().find(|o| o.name() == lower);
        found.ok_or_else(|| OperatorError::Name { name: name.into() })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_fem::quadrature::{QuadratureScheme, rule};

    /// Quadrature degree per operator as implied by the published table bytes (Kulkarni & Klöckner
    /// 2025, equations 23–26).
    fn degree(operator: Operator, p: usize) -> usize {
        match operator {
            Operator::Mass | Operator::Helmholtz => 2 * p,
            Operator::Laplace | Operator::Elasticity => 2 * (p - 1),
            Operator::Hyperelasticity => 4 * (p - 1),
        }
    }

    /// Distinct tables of basis functions and derivatives.
    fn tables(operator: Operator, dim: usize) -> usize {
        match operator {
            Operator::Mass => 1,
            Operator::Helmholtz => dim + 1,
            Operator::Laplace | Operator::Elasticity => dim,
            Operator::Hyperelasticity => dim,
        }
    }

    #[test]
    fn degrees_are_those_of_ufl() {
        for operator in Operator::ALL {
            for (dim, last) in [(2, 8), (3, 6)] {
                for p in 1..=last {
                    let degrees = operator.form(dim, p).unwrap().quadrature_degrees().unwrap();
                    assert_eq!(degrees, [degree(operator, p)], "{operator} {dim} P{p}");
                }
            }
        }
    }

    /// `local_bytes_per_cell` of the published figures: bytes of the tables read per cell, 8 for
    /// each of points × nodes × tables, once for each function (trial functions and test function).
    const LOCAL_BYTES: [(Operator, usize, usize, usize); 22] = [
        (Operator::Elasticity, 2, 2, 576),
        (Operator::Elasticity, 2, 8, 60480),
        (Operator::Elasticity, 3, 2, 1920),
        (Operator::Elasticity, 3, 6, 298368),
        (Operator::Helmholtz, 2, 2, 1728),
        (Operator::Helmholtz, 2, 8, 118800),
        (Operator::Helmholtz, 3, 2, 7040),
        (Operator::Helmholtz, 3, 6, 655872),
        (Operator::Hyperelasticity, 2, 2, 1152),
        (Operator::Hyperelasticity, 2, 5, 36960),
        (Operator::Hyperelasticity, 2, 8, 216000),
        (Operator::Hyperelasticity, 3, 2, 5280),
        (Operator::Hyperelasticity, 3, 4, 204960),
        (Operator::Hyperelasticity, 3, 5, 1959552),
        (Operator::Hyperelasticity, 3, 6, 5366592),
        (Operator::Laplace, 2, 2, 576),
        (Operator::Laplace, 2, 8, 60480),
        (Operator::Laplace, 3, 4, 38640),
        (Operator::Laplace, 3, 6, 298368),
        (Operator::Mass, 2, 8, 39600),
        (Operator::Mass, 3, 1, 256),
        (Operator::Mass, 3, 6, 163968),
    ];

    #[test]
    fn point_counts_give_published_table_bytes() {
        for (operator, dim, p, bytes) in LOCAL_BYTES {
            let form = operator.form(dim, p).unwrap();
            let degree = form.quadrature_degrees().unwrap()[0];
            let points =
                rule(form.cell().unwrap(), degree, QuadratureScheme::XiaoGimbutas).unwrap().n_points();
            let nodes = (1..=dim).fold(1, |n, k| n * (p + k) / k);
            let found = 8 * points * nodes * tables(operator, dim) * 2;
            assert_eq!(found, bytes, "{operator} {dim} P{p}: degree {degree}, {points} points");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_names() {
        let error = "laplacian".parse::<Operator>().unwrap_err();
        assert!(error.to_string().starts_with("no operator `laplacian`; there are `mass`"));
        assert!(Operator::Mass.form(4, 1).is_err());
    }
}
