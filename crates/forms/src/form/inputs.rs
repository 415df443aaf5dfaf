//! Values of what a form leaves open.

use super::error::FormError;
use super::expr::{Coefficient, Constant};
use std::collections::BTreeMap;

/// Values of coefficients and constants, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    fields: BTreeMap<String, Vec<f64>>,
    constants: BTreeMap<String, Vec<f64>>,
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

    /// The degrees of freedom of a coefficient, held against the number of nodes of its space.
    ///
    /// # Errors
    /// [`FormError::Missing`] and [`FormError::Length`].
    pub fn checked_field(&self, coefficient: &Coefficient, nodes: usize) -> Result<&[f64], FormError> {
        let (name, components) = (coefficient.name.clone(), coefficient.space.components());
        let needed = format!("{nodes} nodes times {components} components");
        match self.get_field(&name) {
            None => Err(FormError::Missing { name, needed }),
            Some(values) if values.len() != nodes * components => {
                Err(FormError::Length { name, found: values.len(), needed })
            }
            Some(values) => Ok(values),
        }
    }
}
