//! Estimation of the polynomial degree of integrands.

use super::error::FormError;
use super::expand::{ExpandedForm, expand};
use super::integral::{Form, Region};
use super::scalar::{Field, Scalar, ScalarGraph, ScalarId};

impl Form {
    /// The quadrature degree of each integral: as given with its measure, else estimated.
    ///
    /// The estimate follows UFL: sums take the larger degree, products add, derivatives take one
    /// off, quotients add, integer powers multiply, other powers and functions add two,
    /// conditionals take the larger branch. On squares and cubes, degrees are those in each
    /// coordinate: derivatives leave them, and the determinant adds one less than the dimension.
    ///
    /// # Errors
    /// Any mistake in the form.
    pub fn quadrature_degrees(&self) -> Result<Vec<usize>, FormError> {
        Ok(expand(self)?.quadrature_degrees())
    }
}

impl ExpandedForm {
    /// As [`Form::quadrature_degrees`].
    pub fn quadrature_degrees(&self) -> Vec<usize> {
        let degrees = node_degrees(self);
        let degree = |(measure, root): &(super::Measure, ScalarId)| {
            let estimate = || degrees[root.index()].saturating_add(self.scale_degree(measure.region()));
            measure.degree().unwrap_or_else(estimate)
        };
        self.integrals.iter().map(degree).collect()
    }
}

impl ExpandedForm {
    /// Whether the map of a cell is affine.
    pub(crate) fn is_affine(&self) -> bool {
        self.cell.is_simplex() && self.geometry_degree == 1
    }

    /// Degree of the factor between a piece of the reference cell or facet and its image: products
    /// of as many derivatives of the position as it has dimensions.
    fn scale_degree(&self, region: Region) -> usize {
        let dim = match region {
            Region::Cells => self.cell.dim(),
            Region::BoundaryFacets | Region::InteriorFacets => self.cell.dim() - 1,
        };
        match self.cell.is_simplex() {
            true => dim * (self.geometry_degree - 1),
            false => (dim * self.geometry_degree).saturating_sub(1),
        }
    }
}

impl ExpandedForm {
    /// The first integral that a rule of its degree need not integrate exactly, by its place, with the
    /// reason: an integrand that is no polynomial, or a lower degree than the integrand has.
    pub(crate) fn inexact(&self) -> Option<(usize, &'static str)> {
        let degrees = node_degrees(self);
        let mut polynomial: Vec<bool> = Vec::with_capacity(degrees.len());
        for node in self.graph.nodes() {
            let is = self.is_polynomial(node, &|id| polynomial[id.index()], &|id| degrees[id.index()] == 0);
            polynomial.push(is);
        }
        self.integrals.iter().enumerate().find_map(|(place, (measure, root))| {
            if !polynomial[root.index()] {
                return Some((place, "its integrand is no polynomial on a cell"));
            }
            let needed = degrees[root.index()].saturating_add(self.scale_degree(measure.region()));
            let lower = measure.degree().is_some_and(|degree| degree < needed);
            lower.then_some((place, "its quadrature degree is lower than that of its integrand"))
        })
    }

    /// Whether a node is a polynomial on each cell, of at most its degree, if its operands are as `of`
    /// says; a polynomial of degree 0 does not change on a cell.
    fn is_polynomial(
        &self,
        node: &Scalar,
        of: &dyn Fn(ScalarId) -> bool,
        has_degree_0: &dyn Fn(ScalarId) -> bool,
    ) -> bool {
        let constant = |id: ScalarId| of(id) && has_degree_0(id);
        match *node {
            Scalar::Literal(_) | Scalar::Constant(..) | Scalar::Size(..) | Scalar::Coordinate(_) => true,
            Scalar::FacetNormal(..) => self.is_affine(),
            Scalar::Jet(jet) => self.is_affine() || jet.order() == 0,
            Scalar::Symbol(_) => false,
            Scalar::Variable(_, _, a) | Scalar::Negate(a) => of(a),
            Scalar::Add(a, b) | Scalar::Subtract(a, b) | Scalar::Multiply(a, b) => of(a) && of(b),
            Scalar::Divide(a, b) => of(a) && constant(b),
            Scalar::Power(a, b) => of(a) && whole(&self.graph, b).is_some() || constant(a) && constant(b),
            Scalar::Math(_, a) => constant(a),
            Scalar::Atan2(a, b) => constant(a) && constant(b),
            Scalar::Conditional(_, [a, b, then, other]) => {
                constant(a) && constant(b) && of(then) && of(other)
            }
        }
    }
}

/// Degree of every node.
fn node_degrees(form: &ExpandedForm) -> Vec<usize> {
    let mut degrees: Vec<usize> = Vec::with_capacity(form.graph.nodes().len());
    for node in form.graph.nodes() {
        let degree = node_degree(form, node, &|id: ScalarId| degrees[id.index()]);
        degrees.push(degree);
    }
    degrees
}

fn node_degree(form: &ExpandedForm, node: &Scalar, of: &dyn Fn(ScalarId) -> usize) -> usize {
    match *node {
        Scalar::Literal(_) | Scalar::Constant(..) | Scalar::Size(..) | Scalar::Symbol(_) => 0,
        Scalar::Coordinate(_) => form.geometry_degree, // in each coordinate, on squares and cubes
        Scalar::FacetNormal(..) => {
            if form.is_affine() {
                0
            } else {
                form.geometry_degree
            }
        }
        Scalar::Jet(jet) => {
            let space = match jet.field {
                Field::Coefficient(k) => Some(&form.graph.coefficients()[k].space),
                Field::Trial => form.trial.as_ref(),
                Field::Test => form.test.as_ref(),
            };
            // the degree of Q is that in each coordinate, which a derivative lowers in one alone; on
            // curved cells a derivative is no polynomial
            let lowered = if form.is_affine() { jet.order() } else { 0 };
            space.map_or(0, |s| s.component_degree(jet.component).saturating_sub(lowered))
        }
        Scalar::Variable(_, _, a) | Scalar::Negate(a) => of(a),
        Scalar::Add(a, b) | Scalar::Subtract(a, b) => of(a).max(of(b)),
        Scalar::Multiply(a, b) | Scalar::Divide(a, b) => of(a).saturating_add(of(b)),
        Scalar::Power(a, b) => match whole(&form.graph, b) {
            Some(exponent) => of(a).saturating_mul(exponent),
            None => of(a).saturating_add(2),
        },
        Scalar::Math(_, a) => match of(a) {
            0 => 0,
            degree => degree.saturating_add(2),
        },
        Scalar::Atan2(a, b) => match of(a).saturating_add(of(b)) {
            0 => 0,
            degree => degree.saturating_add(2),
        },
        Scalar::Conditional(_, list) => of(list[2]).max(of(list[3])),
    }
}

/// The number, if it is whole and not negative.
fn whole(graph: &ScalarGraph, id: ScalarId) -> Option<usize> {
    let value = graph.literal_value(id)?;
    // Degrees beyond 1000 are refused by the quadrature anyway.
    ((0.0..=1000.0).contains(&value) && value.fract() == 0.0).then_some(value as usize)
}
