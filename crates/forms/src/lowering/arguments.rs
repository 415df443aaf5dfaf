//! A lowered form: what its arguments stand for, and their values on a mesh.

use crate::form::{Coefficient, Constant, Form, FormError, FunctionSpace, Inputs};
use crate::program::CellProgram;
use kingpost_fem::element::{CellShape, LagrangeElement, Nodes};
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;
use kingpost_interp::{Memory, Value};
use kingpost_ir::Kernel;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An argument of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its name in the kernel.
    pub name: String,
    /// What it stands for.
    pub role: ArgumentRole,
}

/// What an argument stands for.
///
/// The tables of a kernel are for the nodes in [`LoweredForm::nodes`]: arrays of degrees of freedom
/// and maps from another code must be for the same ones, in the same order.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentRole {
    /// Parameter: number of cells.
    CellCount,
    /// Parameter: number of vertices.
    VertexCount,
    /// Parameter: number of scalar degrees of freedom of the space of a polynomial degree.
    DofCount {
        /// The polynomial degree.
        degree: usize,
    },
    /// Coordinates of the vertices, f64 [vertices, dim].
    Coordinates,
    /// Vertices of the cells, i32 [cells, dim + 1].
    CellVertices,
    /// Degrees of freedom of the cells, i32 [cells, dofs per cell].
    DofMap {
        /// The polynomial degree.
        degree: usize,
    },
    /// A given function, f64 `[dofs]` or `[dofs, components]`.
    Coefficient(Arc<Coefficient>),
    /// A component of a constant, an f64 passed by value.
    Constant(Arc<Constant>, usize),
    /// The result, f64 `[dofs]` or `[dofs, components]`, added to.
    Output(FunctionSpace),
}

impl ArgumentRole {
    /// The polynomial degree of a map.
    pub(super) fn dof_map_degree(&self) -> Option<usize> {
        match self {
            Self::DofMap { degree } => Some(*degree),
            _ => None,
        }
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

impl LoweredForm {
    /// The degrees of freedom of a component on the vertices, edges, faces and in the interior of a
    /// cell, as far as there are any: what mappings transfer by
    /// parts. None where functions of several degrees are
    /// gathered, or cells are no simplices.
    #[must_use]
    pub fn entity_parts(&self) -> Option<Vec<u64>> {
        let is_simplex =
            matches!(self.cell, CellShape::Interval | CellShape::Triangle | CellShape::Tetrahedron);
        let count = self.program.count().filter(|_| is_simplex)?;
        let mut elements = (1..).map_while(|degree| LagrangeElement::new(self.cell, degree).ok());
        let element = elements.find(|element| element.as_element().n_dofs() as i64 >= count)?;
        let element = Some(element.as_element()).filter(|element| element.n_dofs() as i64 == count)?;
        let dims = 0..=self.cell.dim();
        let of_dim = |dim| (self.cell.entities(dim).len() * element.dofs_per_entity(dim)) as u64;
        Some(dims.map(of_dim).filter(|part| *part > 0).collect())
    }

    /// The values of all parameters and arguments on a mesh; the output is zero. Degrees of freedom are
    /// numbered in the [order](Inputs::order) of the inputs.
    ///
    /// # Errors
    /// Missing or misshapen inputs, values of names that the form does not have, nodes
    /// ([`Inputs::nodes`]) other than those of the tables, cells that are not those of the form,
    /// numbers beyond 32 bits.
    pub fn bind(&self, mesh: &Mesh, inputs: &Inputs) -> Result<Memory, FormError> {
        if mesh.shape() != self.cell {
            return Err(FormError::MixedCells { first: self.cell, second: mesh.shape() });
        }
        if !mesh.is_affine() {
            return Err(FormError::Cells { place: "the mesh" });
        }
        inputs.check_names(&self.form)?;
        inputs.check_nodes(self.cell, &self.nodes.iter().map(|n| n.degree).collect())?;
        let mut memory = Memory::new();
        let mut numberings: BTreeMap<usize, Numbering> = BTreeMap::new();
        for argument in &self.arguments {
            let degree = match &argument.role {
                ArgumentRole::DofCount { degree } => *degree,
                _ => continue,
            };
            let numbering = Numbering::new_in_order(mesh, degree, inputs.order());
            numberings.insert(degree, numbering.map_err(|e| FormError::Discretisation(e.to_string()))?);
        }
        for argument in &self.arguments {
            bind_one(&mut memory, argument, mesh, inputs, &numberings)?;
        }
        Ok(memory)
    }
}

fn bind_one(
    memory: &mut Memory,
    argument: &Argument,
    mesh: &Mesh,
    inputs: &Inputs,
    numberings: &BTreeMap<usize, Numbering>,
) -> Result<(), FormError> {
    let name = &argument.name;
    let dofs = |degree: &usize| numberings.get(degree).map_or(0, Numbering::n_dofs);
    match &argument.role {
        ArgumentRole::CellCount => memory.set_param(name, mesh.n_cells() as i64),
        ArgumentRole::VertexCount => memory.set_param(name, mesh.n_vertices() as i64),
        ArgumentRole::DofCount { degree } => memory.set_param(name, dofs(degree) as i64),
        ArgumentRole::Coordinates => memory.set(name, mesh.coordinates().to_vec()),
        ArgumentRole::CellVertices => {
            let narrow = |v: &u32| i32::try_from(*v).map_err(|_| too_many(mesh.n_vertices()));
            memory.set(name, mesh.cells().iter().map(narrow).collect::<Result<Vec<i32>, _>>()?);
        }
        ArgumentRole::DofMap { degree } => {
            memory.set(name, numberings.get(degree).map_or(&[][..], Numbering::dofs).to_vec());
        }
        ArgumentRole::Coefficient(coefficient) => {
            let nodes = dofs(&coefficient.space.degree());
            memory.set(name, inputs.checked_field(coefficient, nodes)?.to_vec());
        }
        ArgumentRole::Constant(constant, component) => {
            memory.set(name, inputs.get_constant(constant)?[*component])
        }
        ArgumentRole::Output(space) => {
            let zeros = vec![0.0; dofs(&space.degree()) * space.components()];
            memory.set(name, Value::F64(zeros));
        }
    }
    Ok(())
}

pub(super) fn too_many(vertices: usize) -> FormError {
    FormError::Discretisation(format!("{vertices} vertices, needed at most {} for 32-bit maps", i32::MAX))
}
