//! Lowering: from a linear form to the kernel of Algorithm 2 of Kulkarni & Klöckner 2025.
//!
//! ```
//! use purlin_forms::{element::CellShape, form::*, lowering::{LoweringOptions, lower}};
//!
//! let space = FunctionSpace::scalar(CellShape::Triangle, 2);
//! let laplace = inner(grad(coefficient("u", &space)), grad(test(&space))) * dx();
//! let lowered = lower(&laplace, &LoweringOptions::new("laplace"))?;
//! assert_eq!(lowered.points, [3]);
//! assert!(lowered.kernel.to_string().contains("y[dofs[cell, i_scatter]] += y_cell[i_scatter]"));
//! # Ok::<(), FormError>(())
//! ```
//!
//! With the kernel comes its [cell program](CellProgram). Instructions are tagged with their
//! [stage](crate::program::stage), those that belong to one function also `of_<name>`, so that
//! texts have it, too.

mod arguments;
mod builder;
mod names;
mod pointwise;
mod pull;
mod shapes;
mod signature;
mod tables;

pub use arguments::{Argument, ArgumentRole};

use crate::element::{CellShape, LagrangeElement, Nodes};
use crate::form::{Form, FormError, FunctionSpace, expand};
use crate::program::{CellKernel, CellLoop, CellProgram, NotAnAction};
use crate::quadrature::QuadratureScheme;
use purlin_ir::Kernel;
use std::borrow::Cow;

/// How a form is lowered.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweringOptions {
    /// Name of the kernel.
    pub name: String,
    /// Quadrature scheme of all integrals, instead of what their measures say.
    pub scheme: Option<QuadratureScheme>,
    /// Quadrature degree of all integrals, instead of what their measures say or the estimate.
    pub degree: Option<usize>,
}

impl LoweringOptions {
    /// Options that leave the measures as they are.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), scheme: None, degree: None }
    }

    /// With rules of a scheme.
    #[must_use]
    pub fn with_scheme(self, scheme: QuadratureScheme) -> Self {
        Self { scheme: Some(scheme), ..self }
    }

    /// With rules of a degree.
    #[must_use]
    pub fn with_degree(self, degree: usize) -> Self {
        Self { degree: Some(degree), ..self }
    }
}

/// A kernel and what it computes.
#[derive(Clone, Debug)]
pub struct LoweredForm {
    /// The kernel.
    pub kernel: Kernel,
    /// The roles of its parts.
    pub program: CellProgram,
    /// Its parameters and arguments, in the order of its signature.
    pub arguments: Vec<Argument>,
    /// The cells it is for.
    pub cell: CellShape,
    /// Space of the result.
    pub test: FunctionSpace,
    /// The form it came from, with the measures that were used.
    pub form: Form,
    /// Quadrature points per cell, by integral.
    pub points: Vec<usize>,
    /// The nodes of the kernel's tables, maps and arrays of degrees of freedom, by ascending
    /// degree.
    pub nodes: Vec<Nodes>,
}

impl CellKernel for LoweredForm {
    fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    fn cell_loop(&self) -> Result<Cow<'_, CellLoop>, NotAnAction> {
        Ok(Cow::Borrowed(&self.program.cells))
    }

    fn program(&self) -> Result<Cow<'_, CellProgram>, NotAnAction> {
        Ok(Cow::Borrowed(&self.program))
    }
}

/// Lowers a linear form.
///
/// # Shapes and units
/// See [`ArgumentRole`]; dimensions and table sizes are constants of the kernel.
///
/// # Errors
/// A mistake in the form, a trial function left, a form that is not linear in its test function,
/// derivatives of order above one, an element or a rule that does not exist, names that cannot
/// stand in a kernel.
///
/// # Source
/// Kulkarni & Klöckner 2025, Algorithm 2; derivatives are pulled back to the reference cell as in
/// equation (12).
pub fn lower(form: &Form, options: &LoweringOptions) -> Result<LoweredForm, FormError> {
    let mut form = form.clone();
    if let Some(degree) = options.degree {
        form = form.with_degree(degree);
    }
    if let Some(scheme) = options.scheme {
        form = form.with_scheme(scheme);
    }
    let expanded = expand(&form)?;
    let coefficients = expanded.graph.coefficients().iter().map(|c| c.space);
    for space in coefficients.chain(expanded.test).chain(expanded.trial) {
        match space.cell() {
            CellShape::Triangle | CellShape::Tetrahedron => {}
            CellShape::Interval | CellShape::Quadrilateral | CellShape::Hexahedron => {
                return Err(FormError::Cells { place: "the form" });
            }
        }
        // Before sizes are computed from the degree.
        let max = LagrangeElement::max_degree(space.cell());
        if !(1..=max).contains(&space.degree()) {
            let message = format!("`{space}` is not supported, needed degree 1 to {max}");
            return Err(FormError::Discretisation(message));
        }
    }
    builder::build(pull::pull(expanded)?, &options.name, form)
}

#[cfg(test)]
mod random_forms;
#[cfg(test)]
mod tests;
