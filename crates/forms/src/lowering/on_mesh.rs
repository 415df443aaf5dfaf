//! Forms on any spaces as kernels with the arrays of a mesh.

use super::tabulate::Tabulated;
use super::{LoweredKernel, LoweredRole, LoweringOptions, TabulatedOptions, lower_tabulated, tabulated_of};
use crate::form::{Coefficient, Constant, Form, FormError, FunctionSpace, Inputs};
use crate::mesh::Mesh;
use crate::numbering::ComposedNumbering;
use crate::tabulated::TabulatedForm;
use purlin_interp::{Memory, Value};

/// A linear form on any spaces, lowered, with what its arguments are on a mesh.
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
/// let mut memory = form.bind(&mesh, &through_one)?;
/// interpret(&form.kernel().kernel, &mut memory)?;
/// let y = memory.f64s("y").unwrap_or_default();
/// assert!((y[0].abs() - 1.0).abs() < 1e-14 && (y[0] + y[1]).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MeshForm {
    form: Form,
    tabulated: TabulatedForm,
    kernel: LoweredKernel,
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
        // all integrals are over all cells
        let [kernel] = <[_; 1]>::try_from(lower_tabulated(&tabulated, &TabulatedOptions::default())?)
            .map_err(|all| FormError::Bug(format!("{} kernels of integrals over cells", all.len())))?;
        let coefficients = pulled.graph.coefficients().iter().map(|c| Coefficient::clone(c)).collect();
        let constants = pulled.graph.constants().iter().map(|c| Constant::clone(c)).collect();
        Ok(Self { form, tabulated, kernel, spaces, coefficients, constants })
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

    /// The kernel over cells.
    #[must_use]
    pub const fn kernel(&self) -> &LoweredKernel {
        &self.kernel
    }

    /// Name of the kernel's argument that takes the result.
    #[must_use]
    pub fn output(&self) -> &str {
        let is_output = |role: LoweredRole| matches!(role, LoweredRole::Output { .. });
        let found = self.kernel.arguments.iter().find(|a| is_output(a.role));
        found.map_or("y", |a| a.name.as_str())
    }

    /// The values of all parameters and arguments on a mesh; the output is zero.
    ///
    /// # Shapes and units
    /// A coefficient has one number for each degree of freedom of a [`ComposedNumbering`] of the
    /// [base](FunctionSpace::base) of its space, or a row of as many as the base is repeated.
    ///
    /// # Errors
    /// Missing or misshapen inputs, values of names that the form does not have, nodes
    /// ([`Inputs::nodes`]), which belong to [`lower`](super::lower), cells that are not those of
    /// the form or not straight, numbers beyond 32 bits.
    pub fn bind(&self, mesh: &Mesh, inputs: &Inputs) -> Result<Memory, FormError> {
        let cell = self.tabulated.cell;
        if mesh.shape() != cell {
            return Err(FormError::MixedCells { first: cell, second: mesh.shape() });
        }
        if mesh.geometry_degree() > 1 {
            return Err(FormError::Discretisation(format!(
                "the cells of the mesh are curved, of degree {}, needed straight ones",
                mesh.geometry_degree()
            )));
        }
        inputs.check_names(&self.form)?;
        let degrees = self.spaces.iter().skip(1).filter_map(FunctionSpace::lagrange_degree).collect();
        inputs.check_nodes(cell, &degrees)?;
        let numberings = self.spaces.iter().map(|space| numbering(mesh, space));
        let numberings: Vec<ComposedNumbering> = numberings.collect::<Result<_, _>>()?;
        let mut memory = Memory::new();
        for argument in &self.kernel.arguments {
            self.bind_one(&mut memory, &argument.name, argument.role, mesh, inputs, &numberings)?;
        }
        Ok(memory)
    }

    fn bind_one(
        &self,
        memory: &mut Memory,
        name: &str,
        role: LoweredRole,
        mesh: &Mesh,
        inputs: &Inputs,
        numberings: &[ComposedNumbering],
    ) -> Result<(), FormError> {
        match role {
            LoweredRole::CellCount => memory.set_param(name, mesh.n_cells() as i64),
            LoweredRole::DofCount { space: 0 } => memory.set_param(name, mesh.n_vertices() as i64),
            LoweredRole::DofCount { space } => memory.set_param(name, numberings[space].n_dofs() as i64),
            LoweredRole::Map { space: 0 } => {
                let narrow =
                    |v: &u32| i32::try_from(*v).map_err(|_| super::arguments::too_many(mesh.n_vertices()));
                memory.set(name, mesh.cells().iter().map(narrow).collect::<Result<Vec<i32>, _>>()?);
            }
            LoweredRole::Map { space } => {
                memory.set(name, numberings[space].dofs().to_vec());
            }
            LoweredRole::States { space } => memory.set(name, numberings[space].states().to_vec()),
            LoweredRole::Function { function: 0 } => memory.set(name, mesh.coordinates().to_vec()),
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
            LoweredRole::EntityCount
            | LoweredRole::NonzeroCount { .. }
            | LoweredRole::EntityCells
            | LoweredRole::LocalFacets
            | LoweredRole::FacetStates
            | LoweredRole::Positions { .. } => {
                return Err(FormError::Bug(format!(
                    "`{name}` stands for nothing of a linear form over cells"
                )));
            }
        }
        Ok(())
    }
}

fn numbering(mesh: &Mesh, space: &FunctionSpace) -> Result<ComposedNumbering, FormError> {
    let wrong = |e: &dyn std::fmt::Display| FormError::Discretisation(e.to_string());
    let element = space.base().0.element().map_err(|e| wrong(&e))?;
    ComposedNumbering::of(mesh, &element).map_err(|e| wrong(&e))
}
