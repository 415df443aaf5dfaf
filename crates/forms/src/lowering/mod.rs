//! Lowering: from a linear form to the kernel of Algorithm 2 of Kulkarni & Klöckner 2025.
//!
//! ```
//! use kingpost_fem::element::CellShape;
//! use kingpost_forms::{form::*, lowering::{LoweringOptions, lower}};
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
mod bound;
mod build;
mod builder;
mod directions;
mod entity;
mod error;
mod geometry;
mod graph;
mod kernel;
mod known_rows;
mod locals;
mod names;
mod needed;
mod numbered;
mod on_mesh;
mod options;
mod origin;
mod owned;
mod pairs;
mod parameters;
mod pointwise;
mod pull;
mod result;
mod samples;
mod signature;
mod sink;
mod states;
mod strip_cell;
mod strips;
mod symbol;
mod symmetric;
mod tables;
mod tabulate;
mod tensor_order;
mod turns;

pub use arguments::{Argument, ArgumentRole, LoweredForm};
pub use bound::{Bound, BoundKernel, MeshArray};
pub use build::lower_tabulated;
pub use directions::Directions;
pub use error::{NoSymmetry, OtherRules};
pub use kernel::{
    LoweredArgument, LoweredKernel, LoweredRole, MatrixResult, Orbits, OwnerCells, RowOwners, SparseCount,
    SparseList, TabulatedOptions, VectorResult,
};
pub use numbered::{NumberedMesh, NumberedSpace};
pub use on_mesh::{MatrixMap, MatrixMaps, MeshForm};
pub use options::LoweringOptions;
pub use turns::Turns;

use crate::form::{Form, FormError, FunctionSpace, expand};
use crate::tabulated::{Integral, TabulatedForm};
use kingpost_fem::element::Nodes;
use kingpost_fem::quadrature::QuadratureScheme;
use pull::PulledForm;
use tabulate::Tabulated;

impl LoweredForm {
    pub(crate) fn with_scheme(&self, scheme: QuadratureScheme) -> Result<Self, OtherRules> {
        if let Some((place, reason)) = expand(&self.form)?.inexact() {
            return Err(OtherRules::Inexact { integral: place, reason });
        }
        Ok(lower(&self.form, &LoweringOptions::new(&self.kernel.name).with_scheme(scheme))?)
    }

    pub(crate) fn symmetric(&self) -> Result<(Self, Vec<Orbits>), NoSymmetry> {
        let orbits: Option<Vec<Orbits>> = self.nodes.iter().map(Nodes::orbits).collect();
        let orbits = orbits.ok_or_else(|| NoSymmetry::Nodes { kernel: self.kernel.name.clone() })?;
        let options = LoweringOptions::new(&self.kernel.name).with_directions(Directions::Symmetric);
        Ok((lower(&self.form, &options)?, orbits))
    }

    pub(crate) fn in_point_orbits(&self) -> Result<(Self, Vec<Orbits>), NoSymmetry> {
        let orbits: Option<Vec<Orbits>> = self.nodes.iter().map(Nodes::orbits).collect();
        let orbits = orbits.ok_or_else(|| NoSymmetry::Nodes { kernel: self.kernel.name.clone() })?;
        let options = LoweringOptions::new(&self.kernel.name).with_directions(Directions::Symmetric);
        Ok((lower(&self.form, &options.with_point_orbits())?, orbits))
    }
}

/// Lowers a linear form.
///
/// # Shapes and units
/// See [`ArgumentRole`]; dimensions and table sizes are constants of the kernel.
///
/// # Errors
/// A mistake in the form, a trial function left, a form that is not linear in its test function,
/// derivatives of order above two, an element or a rule that does not exist, names that cannot
/// stand in a kernel.
///
/// # Source
/// Kulkarni & Klöckner 2025, Algorithm 2; derivatives are pulled back to the reference cell as in
/// equation (12).
pub fn lower(form: &Form, options: &LoweringOptions) -> Result<LoweredForm, FormError> {
    let expanded = expand(form)?;
    let coefficients = expanded.graph.coefficients().iter().map(|c| &c.space);
    coefficients.chain(&expanded.test).chain(&expanded.trial).try_for_each(FunctionSpace::check_lagrange)?;
    form.check_all_cells("`lower`")?;
    if expanded.trial.is_some() {
        return Err(FormError::TrialLeft);
    }
    let test = expanded.test.ok_or_else(|| FormError::NoTest { term: "the form".into() })?;
    if options.geometry_degree != 1 {
        return Err(FormError::Cells { place: "the geometry of the options" });
    }
    let (form, pulled, tabulated) = tabulated_of(form, options)?;
    let integrals: Vec<&Integral> = tabulated.form.integrals.iter().collect();
    let lowered =
        build::build(&tabulated.form, &options.name, &integrals, &TabulatedOptions::default(), &[], true)?;
    let program = lowered.program.map_err(|e| FormError::Bug(e.to_string()))?;
    let coefficients = pulled.graph.coefficients();
    let role = |role: &LoweredRole| {
        Some(match role {
            LoweredRole::CellCount => ArgumentRole::CellCount,
            LoweredRole::DofCount { space: 0 } => ArgumentRole::VertexCount,
            LoweredRole::DofCount { space } => {
                ArgumentRole::DofCount { degree: tabulated.spaces[*space].degree() }
            }
            LoweredRole::Map { space: 0 } => ArgumentRole::CellVertices,
            LoweredRole::Map { space } => ArgumentRole::DofMap { degree: tabulated.spaces[*space].degree() },
            LoweredRole::Function { function: 0 } => ArgumentRole::Coordinates,
            LoweredRole::Function { function } => {
                ArgumentRole::Coefficient(coefficients[function - 1].clone())
            }
            LoweredRole::Constant { constant, component } => {
                ArgumentRole::Constant(pulled.graph.constants()[*constant].clone(), *component)
            }
            LoweredRole::Output { .. } => ArgumentRole::Output(test.clone()),
            _ => return None,
        })
    };
    let argument = |a: &LoweredArgument| {
        let none = || FormError::Bug(format!("`{}` stands for nothing of a linear form over cells", a.name));
        Ok(Argument { name: a.name.clone(), role: role(&a.role).ok_or_else(none)? })
    };
    let arguments: Vec<Argument> =
        lowered.arguments.iter().map(argument).collect::<Result<_, FormError>>()?;
    let degrees = arguments.iter().filter_map(|a| a.role.dof_map_degree());
    let nodes = degrees.map(|degree| Nodes::new(pulled.cell, degree));
    let nodes = nodes.collect::<Result<_, _>>().map_err(|e| FormError::Bug(e.to_string()))?;
    Ok(LoweredForm {
        kernel: lowered.kernel,
        program,
        arguments,
        cell: pulled.cell,
        test,
        form,
        points: lowered.points,
        nodes,
    })
}

/// The tabulated form of a functional, a linear or a bilinear form, on any space and cells of any
/// shape: what [`lower_tabulated`] lowers, and [`lower`] of linear forms with Lagrange elements on
/// straight simplices.
///
/// # Errors
/// A mistake in the form, a form that is not linear in its arguments, derivatives of order above
/// two or, on other cells than straight simplices, above one, an element or a rule that does not
/// exist.
///
/// # Source
/// Rognes et al. 2009 for the Piola maps of forms.
pub fn tabulate(form: &Form, options: &LoweringOptions) -> Result<TabulatedForm, FormError> {
    Ok(tabulated_of(form, options)?.2.form)
}

/// The form with the measures of the options, pulled back, and tabulated.
fn tabulated_of(form: &Form, options: &LoweringOptions) -> Result<(Form, PulledForm, Tabulated), FormError> {
    let mut form = form.clone();
    if let Some(degree) = options.degree {
        form = form.with_degree(degree);
    }
    if let Some(scheme) = options.scheme {
        form = form.with_scheme(scheme);
    }
    let mut expanded = expand(&form)?;
    if options.geometry_degree == 0 {
        let message = "the maps of cells are of degree 0, needed at least 1, which straight cells have";
        return Err(FormError::Discretisation(message.into()));
    }
    expanded.geometry_degree = options.geometry_degree;
    if !expanded.is_affine() && form.differentiates_normal() {
        let (found, needed) = ("its derivative on cells whose facets may be curved", "straight simplices");
        return Err(FormError::Facet { name: "facet_normal", found, needed });
    }
    let coefficients = expanded.graph.coefficients().iter().map(|c| &c.space);
    for space in coefficients.chain(&expanded.test).chain(&expanded.trial) {
        // an element that does not exist, before its sizes are computed
        space.element().map_err(|e| FormError::Discretisation(e.to_string()))?;
    }
    let pulled = pull::pull(expanded, options.directions)?;
    let tabulated = tabulate::tabulate(&pulled, options)?;
    Ok((form, pulled, tabulated))
}

#[cfg(test)]
mod tests;
