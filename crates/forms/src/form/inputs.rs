//! Values of what a form leaves open.

use super::error::FormError;
use super::expr::{Coefficient, Constant, Kind};
use super::integral::Form;
use super::walk::for_each_node;
use kingpost_fem::element::{CellShape, NodeMismatch, Nodes};
use kingpost_fem::numbering::NumberingOrder;
use kingpost_ir::text::suggestion;
use std::collections::{BTreeMap, BTreeSet};

/// Values of coefficients and constants, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    fields: BTreeMap<String, Vec<f64>>,
    constants: BTreeMap<String, Vec<f64>>,
    /// By polynomial degree.
    nodes: BTreeMap<usize, Vec<f64>>,
    order: NumberingOrder,
}

/// The names of a form.
#[derive(Default)]
struct Names {
    coefficients: BTreeSet<String>,
    constants: BTreeSet<String>,
}

impl Names {
    fn of(form: &Form) -> Self {
        let mut names = Self::default();
        for integral in form.integrals() {
            for_each_node(&integral.integrand, &mut |node| match node.kind() {
                Kind::Coefficient(c) => {
                    names.coefficients.insert(c.name.clone());
                }
                Kind::Constant(c) => {
                    names.constants.insert(c.name.clone());
                }
                _ => {}
            });
        }
        names
    }

    /// A value of this name was given, and is not `needed`.
    fn refuse(&self, name: &str, other: &BTreeSet<String>, as_other: &'static str) -> FormError {
        let found = if other.contains(name) { as_other } else { "a name that the form does not have" };
        let all = self.coefficients.iter().chain(&self.constants).map(String::as_str);
        let hint = suggestion(name, all).map(|s| format!("{s} "));
        let list = |names: &BTreeSet<String>| match names.is_empty() {
            true => "none".to_owned(),
            false => names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "),
        };
        let known =
            format!("coefficients {} and constants {}", list(&self.coefficients), list(&self.constants));
        FormError::Unknown { name: name.into(), found, hint, known }
    }
}

impl Inputs {
    /// No values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the degrees of freedom of a coefficient, `[dofs]` or `[dofs, components]` row-major.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, values: Vec<f64>) -> Self {
        self.fields.insert(name.into(), values);
        self
    }

    /// Adds a constant, one number per component.
    #[must_use]
    pub fn constant(mut self, name: impl Into<String>, values: impl Into<Vec<f64>>) -> Self {
        self.constants.insert(name.into(), values.into());
        self
    }

    /// Adds the reference coordinates, [dofs, dim] row-major, of the nodes that degrees of freedom
    /// of a polynomial degree are for, as the code that made them has them: what they are bound to
    /// compares them with its own.
    #[must_use]
    pub fn nodes(mut self, degree: usize, points: Vec<f64>) -> Self {
        self.nodes.insert(degree, points);
        self
    }

    /// Says in which order the degrees of freedom of a mesh are numbered, of fields and of results;
    /// by first touch unless this is called.
    #[must_use]
    pub fn in_order(mut self, order: NumberingOrder) -> Self {
        self.order = order;
        self
    }

    /// The order of the numbers of degrees of freedom.
    #[must_use]
    pub const fn order(&self) -> NumberingOrder {
        self.order
    }

    /// The values that `form` takes, where several forms share one set.
    #[must_use]
    pub fn of(&self, form: &Form) -> Self {
        let names = Names::of(form);
        let mut inputs = self.clone();
        inputs.fields.retain(|name, _| names.coefficients.contains(name));
        inputs.constants.retain(|name, _| names.constants.contains(name));
        inputs
    }

    /// Refuses a value that no function or constant of `form` takes, which a misspelt name is.
    ///
    /// # Errors
    /// [`FormError::Unknown`] with the nearest name and all of them; [`Inputs::of`] leaves others
    /// out.
    pub fn check_names(&self, form: &Form) -> Result<(), FormError> {
        let names = Names::of(form);
        if let Some(name) = self.fields.keys().find(|n| !names.coefficients.contains(*n)) {
            return Err(names.refuse(name, &names.constants, "as a field, and it is a constant"));
        }
        if let Some(name) = self.constants.keys().find(|n| !names.constants.contains(*n)) {
            return Err(names.refuse(name, &names.coefficients, "as a constant, and it is a field"));
        }
        Ok(())
    }

    /// Compares the nodes that were given with those of the elements of `degrees` on `cell`.
    ///
    /// # Errors
    /// [`FormError::Nodes`] with the first node that differs.
    pub fn check_nodes(&self, cell: CellShape, degrees: &BTreeSet<usize>) -> Result<(), FormError> {
        for (degree, points) in &self.nodes {
            if !degrees.contains(degree) {
                let known = degrees.iter().copied().collect();
                return Err(NodeMismatch::Degree { degree: *degree, known }.into());
            }
            let nodes = Nodes::new(cell, *degree).map_err(|e| FormError::Discretisation(e.to_string()))?;
            nodes.check(points)?;
        }
        Ok(())
    }

    /// The degrees of freedom of a coefficient.
    pub fn get_field(&self, name: &str) -> Option<&[f64]> {
        self.fields.get(name).map(Vec::as_slice)
    }

    /// The value of a constant: as given, else its default.
    ///
    /// # Errors
    /// [`FormError::Missing`] and [`FormError::Length`].
    pub fn get_constant(&self, constant: &Constant) -> Result<Vec<f64>, FormError> {
        let (name, size) = (constant.name.clone(), constant.shape.size());
        match self.constants.get(&name).or(constant.default.as_ref()) {
            None => Err(FormError::Missing { name, needed: format!("{size} numbers") }),
            Some(values) if values.len() != size => {
                Err(FormError::Length { name, found: values.len(), needed: size.to_string() })
            }
            Some(values) => Ok(values.clone()),
        }
    }

    /// The degrees of freedom of a coefficient, held against the number of degrees of
    /// freedom that one component of its space has.
    ///
    /// # Errors
    /// [`FormError::Missing`] and [`FormError::Length`].
    pub fn checked_field(&self, coefficient: &Coefficient, dofs: usize) -> Result<&[f64], FormError> {
        let (name, components) = (coefficient.name.clone(), coefficient.space.base().1);
        let needed = match components {
            1 => format!("{dofs} degrees of freedom"),
            n => format!("{} numbers: {dofs} degrees of freedom of {n} components each", dofs * n),
        };
        self.of_length(name, dofs * components, needed)
    }

    /// The degrees of freedom of a coefficient in each cell, held against the numbers of cells and of
    /// degrees of freedom that one component has in a cell.
    ///
    /// # Errors
    /// [`FormError::Missing`] and [`FormError::Length`].
    pub fn checked_cell_values(
        &self,
        coefficient: &Coefficient,
        [cells, dofs]: [usize; 2],
    ) -> Result<&[f64], FormError> {
        let (name, components) = (coefficient.name.clone(), coefficient.space.base().1);
        let length = cells * dofs * components;
        let of_each = match components {
            1 => String::new(),
            n => format!(" of {n} components"),
        };
        let needed = format!("{length} numbers: {dofs} degrees of freedom{of_each} in each of {cells} cells");
        self.of_length(name, length, needed)
    }

    fn of_length(&self, name: String, length: usize, needed: String) -> Result<&[f64], FormError> {
        match self.get_field(&name) {
            None => Err(FormError::Missing { name, needed }),
            Some(values) if values.len() != length => {
                Err(FormError::Length { name, found: values.len(), needed })
            }
            Some(values) => Ok(values),
        }
    }
}
