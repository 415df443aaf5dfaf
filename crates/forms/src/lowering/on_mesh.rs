//! Forms on any spaces as kernels with the arrays of a mesh.

use super::tabulate::Tabulated;
use super::{LoweredKernel, LoweredRole, LoweringOptions, TabulatedOptions, lower_tabulated, tabulated_of};
use crate::form::{Coefficient, Constant, Form, FormError, FunctionSpace, Inputs};
use crate::import::{Array, entities_of};
use crate::mesh::Mesh;
use crate::numbering::ComposedNumbering;
use crate::tabulated::TabulatedForm;
use purlin_interp::{Memory, Value};
use std::collections::BTreeMap;

/// A linear form on any spaces, lowered, with what its arguments are on a mesh: a kernel for the
/// integrals over all cells, over the boundary, and over each part of either.
///
/// ```
/// use purlin_forms::element::{CellShape, ElementFamily};
/// use purlin_forms::form::*;
/// use purlin_forms::lowering::{LoweringOptions, MeshForm};
/// use purlin_forms::mesh::Mesh;
/// use purlin_interp::interpret;
///
/// // the flux through the boundary of each cell
/// let cell = CellShape::Triangle;
/// let flux = coefficient("flux", &FunctionSpace::of(cell, ElementFamily::RaviartThomas, 1));
/// let form = div(flux) * test(&FunctionSpace::discontinuous(cell, 0)) * dx();
/// let form = MeshForm::new(&form, &LoweringOptions::new("outflow"))?;
///
/// let mesh = Mesh::unit_square(1)?; // two triangles, which share the edge of number 1
/// let through_one = Inputs::new().field("flux", vec![0.0, 1.0, 0.0, 0.0, 0.0]);
/// let mut memory = form.bind(0, &mesh, &through_one)?;
/// interpret(&form.kernels()[0].kernel, &mut memory)?;
/// let y = memory.f64s("y").unwrap_or_default();
/// assert!((y[0].abs() - 1.0).abs() < 1e-14 && (y[0] + y[1]).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MeshForm {
    form: Form,
    tabulated: TabulatedForm,
    kernels: Vec<LoweredKernel>,
    /// Of the tabulated form; that of the position is the first.
    spaces: Vec<FunctionSpace>,
    /// Of the tabulated form, which has the position before them.
    coefficients: Vec<Coefficient>,
    constants: Vec<Constant>,
}

impl MeshForm {
    /// Lowers a linear form.
    ///
    /// # Errors
    /// As [`tabulate`](super::tabulate) and [`lower_tabulated`].
    pub fn new(form: &Form, options: &LoweringOptions) -> Result<Self, FormError> {
        let (form, pulled, Tabulated { form: tabulated, spaces }) = tabulated_of(form, options)?;
        let kernels = lower_tabulated(&tabulated, &TabulatedOptions::default())?;
        let coefficients = pulled.graph.coefficients().iter().map(|c| Coefficient::clone(c)).collect();
        let constants = pulled.graph.constants().iter().map(|c| Constant::clone(c)).collect();
        Ok(Self { form, tabulated, kernels, spaces, coefficients, constants })
    }

    /// The form with the measures that were used.
    #[must_use]
    pub const fn form(&self) -> &Form {
        &self.form
    }

    /// The form as tables and a scalar graph.
    #[must_use]
    pub const fn tabulated(&self) -> &TabulatedForm {
        &self.tabulated
    }

    /// The kernels, one for the integrals over the same part of the mesh, in the order in which
    /// the form has the parts first. Each adds to the result.
    #[must_use]
    pub fn kernels(&self) -> &[LoweredKernel] {
        &self.kernels
    }

    /// Name of the argument of a kernel that takes the result.
    #[must_use]
    pub fn output(&self, kernel: usize) -> &str {
        let is_output = |role: LoweredRole| matches!(role, LoweredRole::Output { .. });
        let arguments = self.kernels.get(kernel).map_or(&[][..], |k| &k.arguments);
        arguments.iter().find(|a| is_output(a.role)).map_or("y", |a| a.name.as_str())
    }

    /// The values of all parameters and arguments of a kernel on a mesh; the output is zero.
    ///
    /// # Shapes and units
    /// A coefficient has one number for each degree of freedom of a [`ComposedNumbering`] of the
    /// [base](FunctionSpace::base) of its space, or a row of as many as the base is repeated.
    ///
    /// # Errors
    /// Missing or misshapen inputs, values of names that the form does not have, nodes
    /// ([`Inputs::nodes`]), which belong to [`lower`](super::lower), cells that are not those of
    /// the form or curved otherwise, no entity with the tag of a measure, numbers beyond 32 bits.
    pub fn bind(&self, kernel: usize, mesh: &Mesh, inputs: &Inputs) -> Result<Memory, FormError> {
        let cell = self.tabulated.cell;
        if mesh.shape() != cell {
            return Err(FormError::MixedCells { first: cell, second: mesh.shape() });
        }
        self.check_geometry(mesh)?;
        let lowered = self.kernels.get(kernel).ok_or_else(|| {
            let n = self.kernels.len();
            FormError::Discretisation(format!(
                "kernel {kernel} of the form: found {n} kernels, needed a place below"
            ))
        })?;
        inputs.check_names(&self.form)?;
        let degrees = self.spaces.iter().skip(1).filter_map(FunctionSpace::lagrange_degree).collect();
        inputs.check_nodes(cell, &degrees)?;
        let numberings = self.spaces.iter().map(|space| numbering(mesh, space));
        let numberings: Vec<ComposedNumbering> = numberings.collect::<Result<_, _>>()?;
        let entities = entities_of(mesh, lowered).map_err(|e| FormError::Discretisation(e.to_string()))?;
        let given = OnMesh { mesh, inputs, numberings, entities };
        let mut memory = Memory::new();
        for argument in &lowered.arguments {
            self.bind_one(&mut memory, &argument.name, argument.role, &given)?;
        }
        Ok(memory)
    }

    fn check_geometry(&self, mesh: &Mesh) -> Result<(), FormError> {
        let (found, needed) = (mesh.geometry_degree(), self.spaces[0].degree());
        if found != needed {
            return Err(FormError::Discretisation(format!(
                "the maps of the mesh's cells are of degree {found}, needed {needed}, for which the form was \
                 lowered; set `with_geometry_degree({found})` in its options"
            )));
        }
        let own = self.spaces[0].base().0.element().map_err(|e| FormError::Discretisation(e.to_string()))?;
        let theirs = mesh.geometry_element().map_err(|e| FormError::Discretisation(e.to_string()))?;
        if own != theirs.into() {
            let message = "the nodes of the mesh's cells are no equispaced Lagrange nodes, as Gmsh's are; \
                           interpolate them";
            return Err(FormError::Discretisation(message.into()));
        }
        Ok(())
    }

    fn bind_one(
        &self,
        memory: &mut Memory,
        name: &str,
        role: LoweredRole,
        given: &OnMesh<'_>,
    ) -> Result<(), FormError> {
        let OnMesh { mesh, inputs, numberings, entities } = given;
        match role {
            LoweredRole::CellCount => memory.set_param(name, mesh.n_cells() as i64),
            LoweredRole::DofCount { space: 0 } => memory.set_param(name, given.n_nodes() as i64),
            LoweredRole::DofCount { space } => memory.set_param(name, numberings[space].n_dofs() as i64),
            LoweredRole::Map { space: 0 } => {
                let narrow =
                    |v: &u32| i32::try_from(*v).map_err(|_| super::arguments::too_many(given.n_nodes()));
                let nodes = (0..mesh.n_cells()).flat_map(|cell| mesh.cell_nodes(cell));
                memory.set(name, nodes.map(narrow).collect::<Result<Vec<i32>, _>>()?);
            }
            LoweredRole::Map { space } => {
                memory.set(name, numberings[space].dofs().to_vec());
            }
            LoweredRole::States { space } => memory.set(name, numberings[space].states().to_vec()),
            LoweredRole::Function { function: 0 } => memory.set(name, mesh.nodes().to_vec()),
            LoweredRole::Function { function } => {
                let n_dofs = numberings[self.tabulated.functions[function].space].n_dofs();
                let values = inputs.checked_field(&self.coefficients[function - 1], n_dofs)?;
                memory.set(name, values.to_vec());
            }
            LoweredRole::Constant { constant, component } => {
                memory.set(name, inputs.get_constant(&self.constants[constant])?[component]);
            }
            LoweredRole::Output { output } => {
                let space = self.tabulated.outputs[output].spaces[0];
                let n = numberings[space].n_dofs() * self.tabulated.spaces[space].block;
                memory.set(name, Value::F64(vec![0.0; n]));
            }
            LoweredRole::EntityCount => {
                let n = entities.values().next().map_or(0, |array| array.shape[0]);
                memory.set_param(name, n as i64);
            }
            LoweredRole::EntityCells => {
                let cells = entities.get("listed_cells").or(entities.get("facet_cells"));
                memory.set(name, cells.ok_or_else(|| unknown(name))?.values.clone());
            }
            LoweredRole::LocalFacets => {
                memory.set(name, entities.get("local_facets").ok_or_else(|| unknown(name))?.values.clone());
            }
            LoweredRole::NonzeroCount { .. } | LoweredRole::FacetStates | LoweredRole::Positions { .. } => {
                return Err(unknown(name));
            }
        }
        Ok(())
    }
}

/// What the arguments of a kernel are taken from.
struct OnMesh<'a> {
    mesh: &'a Mesh,
    inputs: &'a Inputs,
    /// Of each space.
    numberings: Vec<ComposedNumbering>,
    /// The arrays of the entities of the kernel.
    entities: BTreeMap<String, Array>,
}

impl OnMesh<'_> {
    fn n_nodes(&self) -> usize {
        self.mesh.nodes().len() / self.mesh.shape().dim()
    }
}

fn unknown(name: &str) -> FormError {
    FormError::Bug(format!("`{name}` stands for nothing of a linear form over cells or boundary facets"))
}

fn numbering(mesh: &Mesh, space: &FunctionSpace) -> Result<ComposedNumbering, FormError> {
    let wrong = |e: &dyn std::fmt::Display| FormError::Discretisation(e.to_string());
    let element = space.base().0.element().map_err(|e| wrong(&e))?;
    ComposedNumbering::of(mesh, &element).map_err(|e| wrong(&e))
}
