//! The boundary value problems of Trotter et al. 2023.
//!
//! ```
//! use kingpost_kernels::BoundaryValueProblem;
//! use kingpost_fem::element::CellShape;
//!
//! let problem: BoundaryValueProblem = "poisson".parse()?;
//! let space = problem.space(CellShape::Tetrahedron, 1);
//! let (energy, tangent) = (problem.energy(&space), problem.tangent(&space));
//! // all terms over cells are one integral
//! assert_eq!((energy.integrals().len(), tangent.integrals().len()), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use kingpost_fem::element::CellShape;
use kingpost_forms::form::{
    Expr, Form, FunctionSpace, as_vector, coefficient, constant_with_default, derivative, det, ds, dx, grad,
    identity, inner, ln, test, tr, transpose, trial,
};
use std::f64::consts::PI;
use std::fmt;
use std::str::FromStr;

/// A boundary value problem: equations for the field `u`, and its values on parts of the boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundaryValueProblem {
    /// `-div(kappa grad u) = f`, zero on the boundary (Trotter et al. 2023, equations 1
    /// and 2).
    Poisson,
    /// A neo-Hookean body under a body force and a traction, clamped at one end and twisted at the
    /// other (Trotter et al. 2023, §4.5, equations 4 to 7; Ølgaard & Wells 2012).
    Hyperelasticity,
    /// The same body without forces, under a hundredth of that motion: the demonstration of DOLFINx,
    /// which calls for as many iterations of Newton's method as Trotter et al. 2023, Table 5.
    Twist,
}

/// There is no such problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no boundary value problem `{name}`; there are `poisson`, `hyperelasticity`, `twist`")]
pub struct BoundaryValueError {
    /// The name asked for.
    pub name: String,
}

/// Young's modulus; of the problem of Ølgaard & Wells 2012, like all figures here.
const YOUNG: f64 = 10.0;
/// Poisson's ratio.
const POISSON: f64 = 0.3;
/// Force a unit volume.
const BODY_FORCE: [f64; 3] = [0.0, -0.5, 0.0];
/// Force a unit area.
const TRACTION: [f64; 3] = [0.1, 0.0, 0.0];
/// By how much the far end is turned about the first axis, and which part of that motion it makes.
const TURN: f64 = PI / 3.0;
const PART: f64 = 0.5;
/// The part in the demonstration of DOLFINx.
const SLIGHT_PART: f64 = 0.005;

/// A part of the boundary on which values are prescribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prescribed {
    /// The whole boundary.
    Everywhere,
    /// Where the first coordinate is least.
    Near,
    /// Where the first coordinate is greatest.
    Far,
}

impl BoundaryValueProblem {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Poisson, Self::Hyperelasticity, Self::Twist];

    /// The name that [`FromStr`] takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Hyperelasticity => "hyperelasticity",
            Self::Twist => "twist",
        }
    }

    /// The space of `u` on Lagrange elements of a degree.
    #[must_use]
    pub fn space(self, cell: CellShape, degree: usize) -> FunctionSpace {
        match self {
            Self::Poisson => FunctionSpace::scalar(cell, degree),
            Self::Hyperelasticity | Self::Twist => FunctionSpace::vector(cell, degree),
        }
    }

    /// Whether the equations are linear.
    #[must_use]
    pub const fn is_linear(self) -> bool {
        match self {
            Self::Poisson => true,
            Self::Hyperelasticity | Self::Twist => false,
        }
    }

    /// What a solution makes least, a functional of the coefficient `u`.
    #[must_use]
    pub fn energy(self, space: &FunctionSpace) -> Form {
        match self.work(space) {
            Some(work) => self.quadratic(space) - work,
            None => self.quadratic(space),
        }
    }

    /// The energy of the field itself: what is quadratic in `u`, or of a higher degree.
    fn quadratic(self, space: &FunctionSpace) -> Form {
        let u = coefficient("u", space);
        match self {
            Self::Poisson => constant_with_default("kappa", 1.0) / 2.0 * inner(grad(&u), grad(&u)) * dx(),
            Self::Hyperelasticity | Self::Twist => {
                // of polynomials of St. Venant and Kirchhoff's degree; UFL estimates 17 for P2
                let degree = 4 * space.degree().saturating_sub(1);
                stored_energy(&u, space.dim()) * dx().with_degree(degree)
            }
        }
    }

    /// The work of the forces, which is linear in `u`, if there are any.
    fn work(self, space: &FunctionSpace) -> Option<Form> {
        let u = coefficient("u", space);
        match self {
            Self::Poisson => Some((constant_with_default("f", 1.0) * u) * dx()),
            Self::Twist => None,
            Self::Hyperelasticity => {
                let vector = |name: &str, value: [f64; 3]| {
                    let of = |axis: usize| constant_with_default(component(name, axis), value[axis]);
                    as_vector((0..space.dim().min(3)).map(of))
                };
                let body = inner(vector("body_force", BODY_FORCE), &u) * dx();
                Some(body + inner(vector("traction", TRACTION), &u) * ds())
            }
        }
    }

    /// The residual at the coefficient `u`, a linear form: the derivative of the energy.
    #[must_use]
    pub fn residual(self, space: &FunctionSpace) -> Form {
        derivative(self.energy(space), coefficient("u", space), test(space))
    }

    /// The derivative of the residual, a bilinear form.
    #[must_use]
    pub fn tangent(self, space: &FunctionSpace) -> Form {
        let u = coefficient("u", space);
        derivative(derivative(self.quadratic(space), &u, test(space)), &u, trial(space))
    }

    /// Where values are prescribed.
    #[must_use]
    pub const fn prescribed(self) -> &'static [Prescribed] {
        match self {
            Self::Poisson => &[Prescribed::Everywhere],
            Self::Hyperelasticity | Self::Twist => &[Prescribed::Near, Prescribed::Far],
        }
    }

    /// The value at a point of a part of the boundary, one number a component. `center` is the
    /// centre of the box that holds the part, about which the far end turns.
    #[must_use]
    pub fn value(self, part: Prescribed, point: &[f64], center: &[f64]) -> Vec<f64> {
        match (self, part) {
            (Self::Poisson, Prescribed::Everywhere | Prescribed::Near | Prescribed::Far) => vec![0.0],
            (Self::Hyperelasticity | Self::Twist, Prescribed::Everywhere | Prescribed::Near) => {
                vec![0.0; point.len()]
            }
            (Self::Hyperelasticity, Prescribed::Far) => turned(point, center, PART),
            (Self::Twist, Prescribed::Far) => turned(point, center, SLIGHT_PART),
        }
    }
}

/// A part of the motion that turns a point about the first axis through the centre.
fn turned(point: &[f64], center: &[f64], part: f64) -> Vec<f64> {
    let from = |axis: usize| match (point.get(axis), center.get(axis)) {
        (Some(x), Some(c)) => x - c,
        _ => 0.0,
    };
    let (y, z, (sine, cosine)) = (from(1), from(2), TURN.sin_cos());
    let turned = [0.0, y * cosine - z * sine - y, y * sine + z * cosine - z];
    turned.iter().take(point.len()).map(|x| part * x).collect()
}

fn component(name: &str, axis: usize) -> String {
    format!("{name}_{}", ["x", "y", "z"].get(axis).unwrap_or(&"w"))
}

/// `mu/2 (I_c - 3) - mu ln(J) + lambda/2 ln(J)^2` (equation 5); in two dimensions, of plane strain.
fn stored_energy(u: &Expr, n: usize) -> Expr {
    let lambda = constant_with_default("lambda", YOUNG * POISSON / ((1.0 + POISSON) * (1.0 - 2.0 * POISSON)));
    let mu = constant_with_default("mu", YOUNG / (2.0 * (1.0 + POISSON)));
    let f = identity(n) + grad(u);
    let (volume, invariant) = (det(&f), tr(transpose(&f) * &f));
    // the stretch that plane strain leaves alone adds 1 to the invariant
    let stretch = invariant - n as f64;
    &mu / 2.0 * stretch - &mu * ln(&volume) + lambda / 2.0 * ln(volume).pow(2)
}

impl fmt::Display for BoundaryValueProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BoundaryValueProblem {
    type Err = BoundaryValueError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let lower = name.to_lowercase();
        let found = Self::ALL.into_iter().find(|p| p.name() == lower);
        found.ok_or_else(|| BoundaryValueError { name: name.into() })
    }
}
