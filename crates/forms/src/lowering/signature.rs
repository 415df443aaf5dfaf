//! The signature of the kernel: what the form needs becomes parameters, arguments and temporaries.

use super::arguments::{Argument, ArgumentRole};
use super::names::Names;
use super::pointwise::Uses;
use super::pull::PulledForm;
use super::shapes::{extents, local_shape, n_dofs};
use crate::form::{Field, FormError, FunctionSpace, Jet, Scalar};
use purlin_ir::{Affine, Direction, KernelBuilder, ScalarType, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// A function that is evaluated.
pub(super) struct FieldVars {
    pub(super) name: String,
    pub(super) space: FunctionSpace,
    pub(super) argument: VarId,
    /// Its degrees of freedom on the cell, [dofs] or [dofs, components].
    pub(super) local: VarId,
    pub(super) jets: Vec<Jet>,
}

pub(super) struct Vars {
    pub(super) n_cells: VarId,
    pub(super) coordinates: VarId,
    pub(super) cell_vertices: VarId,
    /// Degree-of-freedom maps by polynomial degree.
    pub(super) maps: BTreeMap<usize, VarId>,
    pub(super) output: VarId,
    pub(super) local_output: VarId,
    /// Coordinates of the cell's vertices, [vertices, dim].
    pub(super) vertices: VarId,
    pub(super) abs_det: VarId,
    pub(super) constants: BTreeMap<(usize, usize), VarId>,
}

/// The jets and constants that the kernel needs.
pub(super) struct Used {
    pub(super) coefficients: BTreeMap<usize, Vec<Jet>>,
    pub(super) constants: BTreeSet<(usize, usize)>,
}

impl Used {
    /// Polynomial degrees of the spaces, with what stands behind names that are one per degree.
    fn degrees(&self, form: &PulledForm) -> BTreeMap<usize, String> {
        let coefficients = self.coefficients.keys().map(|k| form.graph.coefficients()[*k].space.degree());
        let degrees: BTreeSet<usize> = coefficients.chain([form.test.degree()]).collect();
        // One space needs no degree in its names.
        let several = degrees.len() > 1;
        degrees.into_iter().map(|p| (p, if several { format!("_p{p}") } else { String::new() })).collect()
    }
}

/// Shape of a function's degrees of freedom on the mesh: [dofs] or [dofs, components].
fn global_shape(space: &FunctionSpace, counts: &BTreeMap<usize, VarId>) -> Vec<Affine> {
    let width = space.is_vector().then(|| Affine::constant(space.dim() as i64));
    std::iter::once(Affine::var(counts[&space.degree()])).chain(width).collect()
}

/// The coefficients, derivatives and constants below the roots.
pub(super) fn used_functions(form: &PulledForm, uses: &Uses) -> Used {
    let mut used = Used { coefficients: BTreeMap::new(), constants: BTreeSet::new() };
    for k in uses.needed() {
        match form.graph.nodes()[k] {
            Scalar::Jet(jet) => {
                if let Field::Coefficient(place) = jet.field {
                    used.coefficients.entry(place).or_default().push(jet);
                }
            }
            Scalar::Constant(place, component) => {
                used.constants.insert((place, component));
            }
            Scalar::Literal(_)
            | Scalar::Coordinate(_)
            | Scalar::Symbol(_)
            | Scalar::Variable(..)
            | Scalar::Negate(_)
            | Scalar::Add(..)
            | Scalar::Subtract(..)
            | Scalar::Multiply(..)
            | Scalar::Divide(..)
            | Scalar::Power(..)
            | Scalar::Math(..)
            | Scalar::Conditional(..) => {}
        }
    }
    used.coefficients.values_mut().for_each(|jets| jets.sort_by_key(|j| (j.component, j.order(), j.axis())));
    used
}

/// Declares the parameters and arguments, in order.
pub(super) struct Signature<'b> {
    pub(super) b: &'b mut KernelBuilder,
    pub(super) names: &'b mut Names,
    pub(super) arguments: Vec<Argument>,
}

impl Signature<'_> {
    /// Declares everything: parameters, the output, the mesh, the maps, the form's functions and
    /// constants, then what a cell holds of them.
    pub(super) fn declare(
        &mut self,
        form: &PulledForm,
        used: &Used,
    ) -> Result<(Vars, Vec<FieldVars>), FormError> {
        let (dim, test) = (form.cell.dim(), form.test);
        let constant_names = self.constant_names(form, used)?;
        let degrees = used.degrees(form);
        let n_cells = self.param("n_cells", ArgumentRole::CellCount);
        let n_vertices = self.param("n_vertices", ArgumentRole::VertexCount);
        let mut counts = BTreeMap::new();
        for (degree, suffix) in &degrees {
            let role = ArgumentRole::DofCount { degree: *degree };
            counts.insert(*degree, self.param(&format!("n_dofs{suffix}"), role));
        }
        let output = self.array("y", global_shape(&test, &counts), ArgumentRole::Output(test));
        let shape = vec![Affine::var(n_vertices), Affine::constant(dim as i64)];
        let coordinates = self.array("coords", shape, ArgumentRole::Coordinates);
        let shape = vec![Affine::var(n_cells), Affine::constant(dim as i64 + 1)];
        let cell_vertices = self.array("cell_vertices", shape, ArgumentRole::CellVertices);
        let mut maps = BTreeMap::new();
        for (degree, suffix) in &degrees {
            let n = n_dofs(&FunctionSpace::scalar(form.cell, *degree));
            let shape = vec![Affine::var(n_cells), Affine::constant(n as i64)];
            let role = ArgumentRole::DofMap { degree: *degree };
            maps.insert(*degree, self.array(&format!("dofs{suffix}"), shape, role));
        }
        let given = self.coefficients(form, used, &counts);
        let constants = self.constants(form, constant_names);
        let vertices = self.temporary("x_cell", extents([dim + 1, dim]));
        let fields = given.into_iter().map(|(place, var)| self.field(form, used, place, var)).collect();
        let local_output = self.temporary("y_cell", local_shape(&test));
        let abs_det = self.temporary("abs_det", Vec::new());
        let vars = Vars {
            n_cells,
            coordinates,
            cell_vertices,
            maps,
            output,
            local_output,
            vertices,
            abs_det,
            constants,
        };
        Ok((vars, fields))
    }

    fn coefficients(
        &mut self,
        form: &PulledForm,
        used: &Used,
        counts: &BTreeMap<usize, VarId>,
    ) -> Vec<(usize, VarId)> {
        let mut given = Vec::new();
        for place in used.coefficients.keys() {
            let coefficient = form.graph.coefficients()[*place].clone();
            let shape = global_shape(&coefficient.space, counts);
            let var = self.b.argument(&coefficient.name, ScalarType::F64, shape, Direction::In);
            let name = coefficient.name.clone();
            self.arguments.push(Argument { name, role: ArgumentRole::Coefficient(coefficient) });
            given.push((*place, var));
        }
        given
    }

    fn constants(
        &mut self,
        form: &PulledForm,
        names: BTreeMap<(usize, usize), String>,
    ) -> BTreeMap<(usize, usize), VarId> {
        let mut constants = BTreeMap::new();
        for ((place, component), name) in names {
            let role = ArgumentRole::Constant(form.graph.constants()[place].clone(), component);
            let var = self.b.argument(&name, ScalarType::F64, [], Direction::In);
            self.arguments.push(Argument { name, role });
            constants.insert((place, component), var);
        }
        constants
    }

    fn field(&mut self, form: &PulledForm, used: &Used, place: usize, argument: VarId) -> FieldVars {
        let coefficient = &form.graph.coefficients()[place];
        let (name, space) = (coefficient.name.clone(), coefficient.space);
        let local = self.temporary(&format!("{name}_cell"), local_shape(&space));
        FieldVars { name, space, argument, local, jets: used.coefficients[&place].clone() }
    }

    fn constant_names(
        &mut self,
        form: &PulledForm,
        used: &Used,
    ) -> Result<BTreeMap<(usize, usize), String>, FormError> {
        let mut names = BTreeMap::new();
        for (place, component) in &used.constants {
            let constant = &form.graph.constants()[*place];
            let name = match constant.shape.rank() {
                0 => constant.name.clone(),
                _ => format!("{}_{component}", constant.name),
            };
            names.insert((*place, *component), self.names.reserve(&name)?);
        }
        Ok(names)
    }

    fn param(&mut self, stem: &str, role: ArgumentRole) -> VarId {
        let name = self.names.fresh(stem);
        self.arguments.push(Argument { name: name.clone(), role });
        self.b.param(name, ScalarType::I32)
    }

    fn array(&mut self, stem: &str, shape: Vec<Affine>, role: ArgumentRole) -> VarId {
        let (ty, direction) = match role {
            ArgumentRole::Output(_) => (ScalarType::F64, Direction::InOut),
            ArgumentRole::CellVertices | ArgumentRole::DofMap { .. } => (ScalarType::I32, Direction::In),
            ArgumentRole::CellCount
            | ArgumentRole::VertexCount
            | ArgumentRole::DofCount { .. }
            | ArgumentRole::Coordinates
            | ArgumentRole::Coefficient(_)
            | ArgumentRole::Constant(..) => (ScalarType::F64, Direction::In),
        };
        let name = self.names.fresh(stem);
        self.arguments.push(Argument { name: name.clone(), role });
        self.b.argument(name, ty, shape, direction)
    }

    fn temporary(&mut self, stem: &str, shape: Vec<Affine>) -> VarId {
        let name = self.names.fresh(stem);
        self.b.temporary(name, ScalarType::F64, shape)
    }
}
