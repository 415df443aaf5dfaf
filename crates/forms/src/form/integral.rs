//! Measures, integrals and forms.

use super::error::FormError;
use super::expr::{Expr, Kind, Size, Unary};
use super::replace::replace_trial;
use super::role::Role;
use super::shape::Shape;
use super::walk::{for_each_node, has_argument, operands};
use kingpost_fem::element::CellShape;
use kingpost_fem::quadrature::QuadratureScheme;
use std::collections::{BTreeMap, HashSet};
use std::ops::{Add, Mul, Neg, Sub};

/// What an integral is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Region {
    /// Cells.
    #[default]
    Cells,
    /// Facets on the boundary of the mesh.
    BoundaryFacets,
    /// Facets between two cells.
    InteriorFacets,
}

/// The measure of an integral: what it is over, and by which rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    region: Region,
    tag: Option<i32>,
    degree: Option<usize>,
    scheme: Option<QuadratureScheme>,
}

/// Integration over all cells, with the estimated quadrature degree and the default scheme.
pub fn dx() -> Measure {
    Measure::default()
}

/// Integration over the boundary of the mesh, as [`dx`] over cells.
///
/// ```
/// use kingpost_fem::element::CellShape;
/// use kingpost_forms::form::*;
/// use kingpost_forms::lowering::{LoweringOptions, MeshForm};
/// use kingpost_fem::mesh::Mesh;
/// use kingpost_interp::interpret;
///
/// // what flows out of the square by the divergence theorem
/// let cell = CellShape::Triangle;
/// let (x, n) = (coordinate(cell), facet_normal(cell));
/// let outflow = inner(x, n) * test(&FunctionSpace::scalar(cell, 1)) * ds();
/// assert_eq!(outflow.to_string(), "inner(x, n)*test * ds");
///
/// let form = MeshForm::new(&outflow, &LoweringOptions::new("outflow"))?;
/// let mut memory = form.bind(0, &Mesh::unit_square(4)?, &Inputs::new())?;
/// interpret(&form.kernels()[0].kernel, &mut memory)?;
/// let total: f64 = memory.f64s("y").unwrap_or_default().iter().sum();
/// assert!((total - 2.0).abs() < 1e-14); // div(x) is 2
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ds() -> Measure {
    Measure { region: Region::BoundaryFacets, ..Measure::default() }
}

/// Integration over the facets between cells, as [`dx`] over cells. Functions have a value on each
/// side of them: [`plus`](super::plus), [`minus`](super::minus), [`avg`](super::avg) and
/// [`jump`](super::jump) say which.
///
/// ```
/// use kingpost_fem::element::CellShape;
/// use kingpost_forms::form::*;
/// use kingpost_forms::lowering::{LoweringOptions, MeshForm};
/// use kingpost_fem::mesh::Mesh;
/// use kingpost_interp::interpret;
///
/// // by how much a function of two triangles jumps along the diagonal between them
/// let space = FunctionSpace::discontinuous(CellShape::Triangle, 0);
/// let (u, v) = (coefficient("u", &space), test(&space));
/// let jumps = jump(u) * jump(v) * dS();
/// assert_eq!(jumps.to_string(), "(plus(u) - minus(u))*(plus(test) - minus(test)) * dS");
///
/// let form = MeshForm::new(&jumps, &LoweringOptions::new("jumps"))?;
/// let given = Inputs::new().field("u", vec![3.0, 1.0]);
/// let mut memory = form.bind(0, &Mesh::unit_square(1)?, &given)?;
/// interpret(&form.kernels()[0].kernel, &mut memory)?;
/// let y = memory.f64s("y").unwrap_or_default();
/// let length = 2.0_f64.sqrt();
/// assert!((y[0] - 2.0 * length).abs() < 1e-14 && (y[1] + 2.0 * length).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[expect(non_snake_case, reason = "the word of UFL; `ds` is the boundary")]
pub fn dS() -> Measure {
    Measure { region: Region::InteriorFacets, ..Measure::default() }
}

impl Measure {
    /// Over the cells or facets of this tag alone, a physical group of a Gmsh file.
    #[must_use]
    pub fn with_tag(self, tag: i32) -> Self {
        Self { tag: Some(tag), ..self }
    }

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

    /// What the integral is over.
    pub fn region(&self) -> Region {
        self.region
    }

    /// The tag of the part of the mesh, if it is not all of it.
    pub fn tag(&self) -> Option<i32> {
        self.tag
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

/// A scalar expression integrated over cells or facets.
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
    /// Whatever operation did not fit; no integral; mixed cell shapes; one name for two things; the
    /// normal of a facet in an integral over cells; a side of a facet that is missing in an integral
    /// over interior facets, or is there in another one.
    pub fn check(&self) -> Result<(), FormError> {
        for integral in &self.integrals {
            if let Some(error) = integral.integrand.error() {
                return Err(error.clone());
            }
            check_sides(integral)?;
            if let (Region::Cells, Some(name)) = (integral.measure.region, of_facet(&integral.integrand)) {
                let (found, needed) = ("an integral over cells, by `dx`", "one over facets, by `ds` or `dS`");
                return Err(FormError::Facet { name, found, needed });
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

    /// Refuses an integral over a part of the mesh.
    ///
    /// # Errors
    /// [`FormError::Region`] with the measure and the `place` that does not serve it.
    pub(crate) fn check_all_cells(&self, place: &'static str) -> Result<(), FormError> {
        let is_part = |m: &&Measure| m.region != Region::Cells || m.tag.is_some();
        match self.integrals.iter().map(|i| &i.measure).find(is_part) {
            Some(measure) => Err(FormError::Region { measure: measure.to_string(), place }),
            None => Ok(()),
        }
    }

    /// Whether the normal of a facet is differentiated by position.
    pub(crate) fn differentiates_normal(&self) -> bool {
        let mut found = false;
        for integral in self.integrals.iter().filter(|i| holds_normal(&i.integrand)) {
            for_each_node(&integral.integrand, &mut |node| {
                // what takes the place of a function is differentiated as the function is
                let (Kind::Unary(Unary::Gradient | Unary::Divergence | Unary::Curl, moved)
                | Kind::Gateaux(_, _, moved)) = node.kind()
                else {
                    return;
                };
                found |= holds_normal(moved);
            });
        }
        found
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

fn holds_normal(expr: &Expr) -> bool {
    let mut found = false;
    for_each_node(expr, &mut |node| found |= matches!(node.kind(), Kind::FacetNormal));
    found
}

/// What of an integrand only facets have.
fn of_facet(expr: &Expr) -> Option<&'static str> {
    let mut found = None;
    for_each_node(expr, &mut |node| {
        if let Kind::FacetNormal = node.kind() {
            found = Some("facet_normal");
        }
        if let Kind::Size(size @ Size::FacetArea) = node.kind() {
            found = Some(size.word());
        }
    });
    found
}

fn name_of(node: &Expr) -> Option<&str> {
    if let Kind::Coefficient(c) = node.kind() {
        return Some(&c.name);
    }
    if let Kind::Constant(c) = node.kind() { Some(&c.name) } else { None }
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

/// Refuses what has two values where one is needed, and a side where there is none.
fn check_sides(integral: &Integral) -> Result<(), FormError> {
    let over_two = integral.measure.region() == Region::InteriorFacets;
    let mut seen = HashSet::new();
    // With each node, whether it has a side already: that of an operation around it.
    let mut open = vec![(&integral.integrand, false)];
    while let Some((node, has_side)) = open.pop() {
        if !seen.insert((node.address(), has_side)) {
            continue;
        }
        let refuse = |found, needed| {
            let (expr, measure) = (node.to_string(), integral.measure.to_string());
            Err(FormError::Restriction { expr, found, measure, needed })
        };
        match node.kind() {
            Kind::Restricted(..) if !over_two => {
                return refuse("a side of a facet", "`dS`; over other measures functions have one value");
            }
            Kind::Restricted(..) if has_side => {
                return refuse("a side of what has one already", "one of them");
            }
            Kind::Restricted(_, a) => open.push((a, true)),
            Kind::Coefficient(_) | Kind::Argument(..) | Kind::FacetNormal | Kind::Size(_)
                if over_two && !has_side =>
            {
                return refuse("no side, and a value on each", "`plus`, `minus`, `avg` or `jump` around it");
            }
            // what it is differentiated by stands in `of`, with its side; the direction takes that
            Kind::Gateaux(of, _, direction) => {
                open.push((of, has_side));
                open.push((direction, over_two));
            }
            Kind::Diff(of, _) => open.push((of, has_side)),
            Kind::Literal(_)
            | Kind::Identity(_)
            | Kind::Constant(_)
            | Kind::Coefficient(_)
            | Kind::Argument(..)
            | Kind::Coordinate
            | Kind::FacetNormal
            | Kind::Size(_)
            | Kind::Components(_)
            | Kind::Unary(..)
            | Kind::Binary(..)
            | Kind::Math(..)
            | Kind::Index(..)
            | Kind::Conditional(..)
            | Kind::Variable(..)
            | Kind::Error(_) => open.extend(operands(node).into_iter().map(|o| (o, has_side))),
        }
    }
    Ok(())
}
