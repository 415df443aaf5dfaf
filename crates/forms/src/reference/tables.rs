//! What is the same for all cells: rules, tabulations, numberings, checked inputs.

use crate::form::walk::for_each_node;
use crate::form::{Coefficient, Constant, Expr, Form, FormError, FunctionSpace, Inputs, Kind, Role};
use kingpost_fem::element::LagrangeElement;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;
use kingpost_fem::quadrature::rule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Basis functions at the points of a rule, [points, dofs]; gradients one table per reference axis.
pub(super) struct FieldTable {
    pub(super) values: Vec<f64>,
    pub(super) gradients: Vec<Vec<f64>>,
}

/// One integral with its rule.
pub(super) struct RuleTables<'a> {
    pub(super) integrand: &'a Expr,
    pub(super) points: Vec<f64>,
    pub(super) weights: Vec<f64>,
    /// By polynomial degree.
    pub(super) elements: BTreeMap<usize, FieldTable>,
}

/// A given function.
pub(super) struct FieldInput<'a> {
    pub(super) degree: usize,
    pub(super) components: usize,
    pub(super) values: &'a [f64],
    pub(super) numbering: Arc<Numbering>,
}

/// Everything that does not depend on the cell.
pub(super) struct Tables<'a> {
    pub(super) mesh: &'a Mesh,
    pub(super) rules: Vec<RuleTables<'a>>,
    pub(super) fields: BTreeMap<String, FieldInput<'a>>,
    pub(super) constants: BTreeMap<String, Vec<f64>>,
    /// Degree of the test function.
    pub(super) degree: usize,
    /// Components of the test function.
    pub(super) components: usize,
    pub(super) numbering: Arc<Numbering>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(form: &'a Form, mesh: &'a Mesh, inputs: &'a Inputs) -> Result<Self, FormError> {
        form.check()?;
        let cell = form.cell()?;
        if cell != mesh.shape() {
            return Err(FormError::MixedCells { first: cell, second: mesh.shape() });
        }
        if !mesh.is_affine() {
            return Err(FormError::Cells { place: "the mesh" });
        }
        let terminals = Terminals::of(form)?;
        let coefficients = terminals.coefficients.iter().map(|c| &c.space);
        coefficients.chain([&terminals.test]).try_for_each(FunctionSpace::check_lagrange)?;
        form.check_all_cells("the reference")?;
        inputs.check_names(form)?;
        inputs.check_nodes(cell, &terminals.degrees().into_iter().collect())?;
        let mut numberings: BTreeMap<usize, Arc<Numbering>> = BTreeMap::new();
        for degree in terminals.degrees() {
            let numbering = Numbering::new_in_order(mesh, degree, inputs.order()).map_err(discretisation)?;
            numberings.insert(degree, Arc::new(numbering));
        }
        let mut fields = BTreeMap::new();
        for coefficient in &terminals.coefficients {
            let numbering = &numberings[&coefficient.space.degree()];
            fields.extend(field(coefficient, numbering, inputs)?);
        }
        let constant = |c: &Arc<Constant>| Ok((c.name.clone(), inputs.get_constant(c)?));
        let constants = terminals.constants.iter().map(constant).collect::<Result<_, FormError>>()?;
        let mut rules = Vec::new();
        for (integral, degree) in form.integrals().iter().zip(form.quadrature_degrees()?) {
            let scheme = integral.measure.scheme().unwrap_or_default();
            let points = rule(cell, degree, scheme).map_err(discretisation)?;
            let mut elements = BTreeMap::new();
            for degree in numberings.keys() {
                let element = LagrangeElement::new(cell, *degree).map_err(discretisation)?;
                let table = element.tabulate(&points.points).map_err(discretisation)?;
                elements.insert(*degree, FieldTable { values: table.values, gradients: table.gradients });
            }
            let (points, weights) = (points.points, points.weights);
            rules.push(RuleTables { integrand: &integral.integrand, points, weights, elements });
        }
        let (degree, components) = (terminals.test.degree(), terminals.test.components());
        let numbering = numberings[&degree].clone();
        Ok(Self { mesh, rules, fields, constants, degree, components, numbering })
    }

    pub(super) fn test_dofs(&self, cell: usize) -> &[i32] {
        self.numbering.cell(cell)
    }
}

fn discretisation(error: impl std::fmt::Display) -> FormError {
    FormError::Discretisation(error.to_string())
}

/// The functions and constants of a form.
struct Terminals {
    test: FunctionSpace,
    coefficients: Vec<Arc<Coefficient>>,
    constants: Vec<Arc<Constant>>,
}

impl Terminals {
    fn of(form: &Form) -> Result<Self, FormError> {
        let (mut coefficients, mut constants, mut tests) = (Vec::new(), Vec::new(), Vec::new());
        let mut trial = false;
        for integral in form.integrals() {
            for_each_node(&integral.integrand, &mut |node| match node.kind() {
                Kind::Coefficient(c) if !coefficients.contains(c) => coefficients.push(c.clone()),
                Kind::Constant(c) if !constants.contains(c) => constants.push(c.clone()),
                Kind::Argument(Role::Test, space) if !tests.contains(space) => tests.push(space.clone()),
                Kind::Argument(Role::Trial, _) => trial = true,
                _ => {}
            });
        }
        match tests.as_slice() {
            _ if trial => Err(FormError::TrialLeft),
            [] => Err(FormError::NoTest { term: "the form".into() }),
            [test] => Ok(Self { test: test.clone(), coefficients, constants }),
            [_, ..] => Err(FormError::Name { name: "test".into() }),
        }
    }

    fn degrees(&self) -> Vec<usize> {
        std::iter::once(self.test.degree())
            .chain(self.coefficients.iter().map(|c| c.space.degree()))
            .collect()
    }
}

/// The values of a coefficient; none if they were not given (which is an error only where they are
/// used).
fn field<'a>(
    coefficient: &Coefficient,
    numbering: &Arc<Numbering>,
    inputs: &'a Inputs,
) -> Result<Option<(String, FieldInput<'a>)>, FormError> {
    let name = coefficient.name.clone();
    if inputs.get_field(&name).is_none() {
        return Ok(None);
    }
    let values = inputs.checked_field(coefficient, numbering.n_dofs())?;
    let (degree, components) = (coefficient.space.degree(), coefficient.space.components());
    Ok(Some((name, FieldInput { degree, components, values, numbering: numbering.clone() })))
}
