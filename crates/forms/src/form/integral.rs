//! Measures, integrals and forms.

use super::error::FormError;
use super::expr::{Expr, Kind, Role};
use super::replace::replace_trial;
use super::shape::Shape;
use super::walk::{for_each_node, has_argument};
use crate::element::CellShape;
use crate::quadrature::QuadratureScheme;
use std::collections::BTreeMap;
use std::ops::{Add, Mul, Neg, Sub};

/// The measure of an integral over all cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    degree: Option<usize>,
    scheme: Option<QuadratureScheme>,
}

/// Integration over all cells, with the estimated quadrature degree and the default scheme.
pub fn dx() -> Measure {
    Measure::default()
}

impl Measure {
    /// With a rule that is exact to this total degree instead of the estimated one.
    #[must_use]
    pub fn with_degree(self, degree: usize) -> Self {
        Self { degree: Some(degree), ..self }
    }

    /// With rules from this scheme.
    #[must_use]
    pub fn with_scheme(self, scheme: QuadratureScheme) -> Self {
        Self { scheme: Some(scheme), ..self }
    }

    /// The quadrature degree, if it was given.
    pub fn degree(&self) -> Option<usize> {
        self.degree
    }

    /// The scheme, if it was given.
    pub fn scheme(&self) -> Option<QuadratureScheme> {
        self.scheme
    }
}

/// A scalar expression integrated over all cells.
#[derive(Clone)]
pub struct Integral {
    /// The integrand, a scalar.
    pub integrand: Expr,
    /// The measure.
    pub measure: Measure,
}

/// A sum of integrals, one per measure: a variational form as it was written.
#[derive(Clone, Default)]
pub struct Form {
    integrals: Vec<Integral>,
}

impl Form {
    /// The integrals, no two with the same measure, in the order in which they were written.
    pub fn integrals(&self) -> &[Integral] {
        &self.integrals
    }

    /// The first mistake in the form.
    ///
    /// # Errors
    /// Whatever operation did not fit; no integral; mixed cell shapes; one name for two things.
    pub fn check(&self) -> Result<(), FormError> {
        for integral in &self.integrals {
            if let Some(error) = integral.integrand.error() {
                return Err(error.clone());
            }
        }
        self.cell()?;
        self.check_names()
    }

    /// The cells the form is on.
    ///
    /// # Errors
    /// No integral, no function, or several shapes of cells.
    pub fn cell(&self) -> Result<CellShape, FormError> {
        let mut cells = self.integrals.iter().filter_map(|i| i.integrand.cell());
        let missing = if self.integrals.is_empty() { FormError::Empty } else { FormError::NoFunction };
        let first = cells.next().ok_or(missing)?;
        match cells.find(|c| *c != first) {
            Some(second) => Err(FormError::MixedCells { first, second }),
            None => Ok(first),
        }
    }

    /// The form with every integral at this quadrature degree, whatever its measure says.
    #[must_use]
    pub fn with_degree(&self, degree: usize) -> Self {
        self.measured(|m| m.with_degree(degree))
    }

    /// The form with every integral by rules of this scheme, whatever its measure says.
    #[must_use]
    pub fn with_scheme(&self, scheme: QuadratureScheme) -> Self {
        self.measured(|m| m.with_scheme(scheme))
    }

    fn measured(&self, change: impl Fn(Measure) -> Measure) -> Self {
        let integrals = self.integrals.iter().map(|i| Integral { measure: change(i.measure), ..i.clone() });
        // Measures that have become equal are one again.
        integrals.fold(Self::default(), |form, i| form.plus(Self { integrals: vec![i] }))
    }

    fn check_names(&self) -> Result<(), FormError> {
        let mut named: BTreeMap<String, Expr> = BTreeMap::new();
        let mut clash = None;
        for integral in &self.integrals {
            for_each_node(&integral.integrand, &mut |node| {
                let Some(name) = name_of(node) else { return };
                let first = named.entry(name.to_owned()).or_insert_with(|| node.clone());
                if !same_terminal(first, node) {
                    clash.get_or_insert_with(|| name.to_owned());
                }
            });
        }
        clash.map_or(Ok(()), |name| Err(FormError::Name { name }))
    }

    fn map(&self, change: impl Fn(&Expr) -> Expr) -> Self {
        let change = |i: &Integral| Integral { integrand: change(&i.integrand), measure: i.measure };
        Self { integrals: self.integrals.iter().map(change).collect() }
    }

    fn plus(mut self, other: Self) -> Self {
        for term in other.integrals {
            match self.integrals.iter_mut().find(|i| i.measure == term.measure) {
                Some(same) => same.integrand = &same.integrand + &term.integrand,
                None => self.integrals.push(term),
            }
        }
        self
    }
}

fn name_of(node: &Expr) -> Option<&str> {
    match node.kind() {
        Kind::Coefficient(c) => Some(&c.name),
        Kind::Constant(c) => Some(&c.name),
        Kind::Literal(_)
        | Kind::Identity(_)
        | Kind::Argument(..)
        | Kind::Coordinate
        | Kind::Components(_)
        | Kind::Unary(..)
        | Kind::Binary(..)
        | Kind::Math(..)
        | Kind::Index(..)
        | Kind::Conditional(..)
        | Kind::Variable(..)
        | Kind::Diff(..)
        | Kind::Gateaux(..)
        | Kind::Error(_) => None,
    }
}

fn same_terminal(a: &Expr, b: &Expr) -> bool {
    match (a.kind(), b.kind()) {
        (Kind::Coefficient(a), Kind::Coefficient(b)) => a == b,
        (Kind::Constant(a), Kind::Constant(b)) => a == b,
        _ => false,
    }
}

/// Gateaux derivative of a form by a coefficient, in the direction of another function.
///
/// # Errors
/// The form carries [`FormError::NotACoefficient`] or [`FormError::Shapes`].
///
/// # Source
/// Kulkarni & Klöckner 2025, equation (A.8).
pub fn derivative(form: impl Into<Form>, by: impl Into<Expr>, direction: impl Into<Expr>) -> Form {
    let (by, direction) = (by.into(), direction.into());
    form.into().map(|integrand| gateaux(integrand, &by, &direction))
}

/// Gateaux derivative of an expression by a coefficient, in the direction of another function.
///
/// # Errors
/// As for [`derivative`].
pub fn gateaux(of: &Expr, by: &Expr, direction: &Expr) -> Expr {
    if by.error().is_none() && !matches!(by.kind(), Kind::Coefficient(_)) {
        return Expr::poison(FormError::NotACoefficient { found: by.to_string() });
    }
    let (left, right) = (by.shape(), direction.shape());
    let needed = "a direction of the shape of the coefficient";
    let shape = if left == right {
        Ok(of.shape())
    } else {
        Err(FormError::Shapes { operation: "derivative", left, right, needed })
    };
    let kind = Kind::Gateaux(of.clone(), by.clone(), direction.clone());
    Expr::build(&[of, by, direction], shape, kind)
}

/// The linear form that a bilinear form becomes when its trial function is `replaced` by a
/// coefficient.
///
/// # Errors
/// The form carries [`FormError::NoTrial`], or [`FormError::Shapes`] if the shapes differ.
pub fn action(form: impl Into<Form>, replaced: impl Into<Expr>) -> Form {
    let (form, replaced) = (form.into(), replaced.into());
    let found = form
        .integrals
        .iter()
        .any(|i| i.integrand.error().is_some() || has_argument(&i.integrand, Role::Trial));
    if !found {
        return form.map(|e| e.error().map_or_else(|| Expr::poison(FormError::NoTrial), |_| e.clone()));
    }
    form.map(|integrand| replace_trial(integrand, &replaced))
}

impl From<&Form> for Form {
    fn from(form: &Form) -> Self {
        form.clone()
    }
}

impl Mul<Measure> for Expr {
    type Output = Form;
    fn mul(self, measure: Measure) -> Form {
        &self * measure
    }
}

impl Mul<Measure> for &Expr {
    type Output = Form;
    fn mul(self, measure: Measure) -> Form {
        let integrand = match self.shape() {
            Shape::Scalar => self.clone(),
            found @ (Shape::Vector(_) | Shape::Matrix(..)) => {
                Expr::poison(FormError::Operand { operation: "dx", found, needed: "a scalar integrand" })
            }
        };
        Form { integrals: vec![Integral { integrand, measure }] }
    }
}

impl Add for Form {
    type Output = Form;
    fn add(self, other: Form) -> Form {
        self.plus(other)
    }
}

impl Sub for Form {
    type Output = Form;
    fn sub(self, other: Form) -> Form {
        self.plus(-other)
    }
}

impl Neg for Form {
    type Output = Form;
    fn neg(self) -> Form {
        self.map(|e| -e)
    }
}

/// A number times a form.
macro_rules! scale {
    ($number:ty) => {
        impl Mul<Form> for $number {
            type Output = Form;
            fn mul(self, form: Form) -> Form {
                self * &form
            }
        }
        impl Mul<&Form> for $number {
            type Output = Form;
            fn mul(self, form: &Form) -> Form {
                form.map(|e| self * e)
            }
        }
    };
}

scale!(f64);
scale!(i32);

impl Mul<Form> for &Expr {
    type Output = Form;
    fn mul(self, form: Form) -> Form {
        form.map(|e| self * e)
    }
}

impl Mul<Form> for Expr {
    type Output = Form;
    fn mul(self, form: Form) -> Form {
        &self * form
    }
}
