//! Forms on any spaces as kernels with the arrays of a mesh.

use super::tabulate::Tabulated;
use super::{
    LoweredKernel, LoweredRole, LoweringOptions, MatrixResult, SparseCount, SparseList, TabulatedOptions,
    lower_tabulated, tabulated_of,
};
use crate::array::Array;
use crate::form::{Coefficient, Constant, Form, FormError, FunctionSpace, Inputs};
use crate::grid::Grid;
use crate::tabulated::{IntegralType, TabulatedForm};
use purlin_capacity::check_memory;
use purlin_fem::mesh::Mesh;
use purlin_fem::numbering::{ComposedNumbering, NumberingOrder};
use purlin_fem::sparse::{CsrPart, CsrPattern, EntryOrder, OwnedRows, RowTerms, SlotPacking};
use purlin_interp::{Memory, Value};
use rayon::prelude::*;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// A form on any spaces, lowered, with what its arguments are on a mesh: a kernel for the integrals
/// over all cells, over the boundary, over the facets between cells, and over each part of them.
///
/// ```
/// use purlin_fem::element::{CellShape, ElementFamily};
/// use purlin_forms::form::*;
/// use purlin_forms::lowering::{LoweringOptions, MeshForm};
/// use purlin_fem::mesh::Mesh;
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
///
/// A bilinear form becomes what [`LoweringOptions::with_matrix`] says: the entries of a sparse
/// matrix, whose rows and columns [`MeshForm::patterns`] gives, a matrix of each entity, or the
/// diagonal.
///
/// ```
/// use purlin_fem::element::CellShape;
/// use purlin_forms::form::*;
/// use purlin_forms::lowering::{LoweringOptions, MatrixResult, MeshForm};
/// use purlin_fem::mesh::Mesh;
/// use purlin_interp::interpret;
///
/// let space = FunctionSpace::scalar(CellShape::Triangle, 1);
/// let stiffness = inner(grad(trial(&space)), grad(test(&space))) * dx();
/// let options = LoweringOptions::new("stiffness").with_matrix(MatrixResult::Cells);
/// let form = MeshForm::new(&stiffness, &options)?;
/// let mut memory = form.bind(0, &Mesh::unit_square(1)?, &Inputs::new())?;
/// interpret(&form.kernels()[0].kernel, &mut memory)?;
/// let first = &memory.f64s("y").unwrap_or_default()[..9]; // of the first triangle
/// assert!(first.iter().sum::<f64>().abs() < 1e-15 && (first[0] - 0.5).abs() < 1e-15);
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
    order: NumberingOrder,
}

impl MeshForm {
    /// Lowers a functional, a linear or a bilinear form.
    ///
    /// # Errors
    /// As [`tabulate`](super::tabulate) and [`lower_tabulated`].
    pub fn new(form: &Form, options: &LoweringOptions) -> Result<Self, FormError> {
        let (form, pulled, Tabulated { form: tabulated, spaces }) = tabulated_of(form, options)?;
        let kernels = lower_tabulated(
            &tabulated,
            &TabulatedOptions {
                matrix: options.matrix,
                vector: options.vector,
                cell_values: options.cell_values.clone(),
                ..TabulatedOptions::default()
            },
        )?;
        let coefficients = pulled.graph.coefficients().iter().map(|c| Coefficient::clone(c)).collect();
        let constants = pulled.graph.constants().iter().map(|c| Constant::clone(c)).collect();
        let order = NumberingOrder::FirstTouch;
        Ok(Self { form, tabulated, kernels, spaces, coefficients, constants, order })
    }

    /// The same kernels with degrees of freedom, rows and columns in another order than that of first
    /// touch; [`Inputs::in_order`] has to say the same.
    #[must_use]
    pub fn in_order(self, order: NumberingOrder) -> Self {
        Self { order, ..self }
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
    /// the form has the parts first. Each adds to the result; matrices of entities are those of each
    /// kernel.
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
    /// the form or curved otherwise, inputs in [another order](MeshForm::in_order), no entity with the
    /// tag of a measure, numbers beyond 32 bits.
    pub fn bind(&self, kernel: usize, mesh: &Mesh, inputs: &Inputs) -> Result<Memory, FormError> {
        let patterns = if self.is_sparse() { self.patterns(mesh)? } else { Vec::new() };
        self.bind_to(kernel, mesh, inputs, &patterns)
    }

    /// Whether the result is the entries of a sparse matrix.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.tabulated.rank == 2 && self.kernels.iter().all(|k| k.matrix.is_sparse())
    }

    /// The pattern of the matrix of a bilinear form on a mesh, with the places of the matrices of
    /// each kernel's entities: the same rows and columns for all of them.
    ///
    /// # Errors
    /// As [`MeshForm::bind`]; a form that is not bilinear.
    pub fn patterns(&self, mesh: &Mesh) -> Result<Vec<CsrPattern>, FormError> {
        let refused = |e: &dyn std::fmt::Display| FormError::Discretisation(e.to_string());
        let Some([test, trial]) = self.tabulated.outputs.first().map(|o| &o.spaces[..]) else {
            let found = match self.tabulated.rank {
                0 => "a functional",
                _ => "a linear form",
            };
            return Err(refused(&format!("the pattern of a matrix: found {found}, needed a bilinear form")));
        };
        let (test, trial) = (*test, *trial);
        let of_test = numbering(mesh, &self.spaces[test], self.order)?;
        let of_trial = match self.spaces[test] == self.spaces[trial] {
            true => None,
            false => Some(numbering(mesh, &self.spaces[trial], self.order)?),
        };
        let numberings = [&of_test, of_trial.as_ref().unwrap_or(&of_test)];
        let components = [test, trial].map(|space| self.tabulated.spaces[space].block);
        let mut maps = Vec::new();
        for kernel in &self.kernels {
            let entities =
                Grid::mesh(mesh).entities(kernel.over, &kernel.subdomains).map_err(|e| refused(&e))?;
            let cells = cells_of(&entities, mesh.n_cells());
            let numbers = |numbering: &ComposedNumbering| -> Vec<i32> {
                cells.par_iter().flat_map_iter(|cell| numbering.cell(*cell)).copied().collect()
            };
            let extents = numberings.map(|numbering| sides(kernel) * numbering.dofs_per_cell());
            maps.push((extents, numbers(&of_test), of_trial.as_ref().map(numbers)));
        }
        let parts: Vec<CsrPart<'_>> = maps
            .iter()
            .map(|(extents, rows, columns)| {
                let columns = columns.as_ref().unwrap_or(rows);
                CsrPart { extents: *extents, rows, columns }
            })
            .collect();
        let sizes = numberings.map(ComposedNumbering::n_dofs);
        let patterns = CsrPattern::of_components(sizes, components, &parts).map_err(|e| refused(&e))?;
        let is_half = self.kernels.iter().any(|kernel| kernel.matrix == MatrixResult::SymmetricHalf);
        let upper = |pattern: CsrPattern| match is_half {
            true => pattern.upper().map_err(|e| refused(&e)),
            false => Ok(pattern),
        };
        patterns.into_iter().map(upper).collect()
    }

    /// The map of the test function's degrees of freedom, `[cells, columns]`, and their number: where the
    /// vectors of entities are added.
    ///
    /// # Errors
    /// A mesh that the test function's space has no numbering on; a functional.
    pub fn result_map(&self, mesh: &Mesh) -> Result<(Vec<i32>, usize), FormError> {
        let test = self.tabulated.outputs.first().and_then(|o| o.spaces.first().copied());
        let test = test.ok_or_else(|| FormError::Discretisation("a functional has no map".into()))?;
        let numbering = numbering(mesh, &self.spaces[test], self.order)?;
        Ok((numbering.dofs().to_vec(), numbering.n_dofs()))
    }

    /// The degrees of freedom of a coefficient in each cell, of those on the mesh: what kernels take of
    /// [`with_cell_values`](LoweringOptions::with_cell_values).
    ///
    /// # Shapes and units
    /// `values` as in [`MeshForm::bind`]; the result is `[cells, columns, components]`.
    ///
    /// # Errors
    /// [`FormError::Missing`] for a name that no coefficient has, [`FormError::Length`], a mesh that the
    /// space has no numbering on.
    pub fn cell_values(&self, name: &str, mesh: &Mesh, values: &[f64]) -> Result<Vec<f64>, FormError> {
        let coefficient = self.coefficients.iter().find(|c| c.name == name).ok_or_else(|| {
            let known: Vec<String> = self.coefficients.iter().map(|c| format!("`{}`", c.name)).collect();
            FormError::Missing { name: name.into(), needed: format!("a coefficient: {}", known.join(", ")) }
        })?;
        let numbering = numbering(mesh, &coefficient.space, self.order)?;
        let inputs = Inputs::new().field(name, values.to_vec());
        let values = inputs.checked_field(coefficient, numbering.n_dofs())?;
        let components = values.len().checked_div(numbering.n_dofs()).unwrap_or(1);
        let of_dof = |dof: &i32| &values[*dof as usize * components..][..components];
        Ok(numbering.dofs().iter().flat_map(of_dof).copied().collect())
    }

    /// Number of columns of the matrix of a bilinear form on a mesh; 0 of other forms.
    ///
    /// # Errors
    /// A mesh that the trial function's space has no numbering on.
    pub fn n_columns(&self, mesh: &Mesh) -> Result<usize, FormError> {
        match self.tabulated.outputs.first().map(|o| &o.spaces[..]) {
            Some([_, trial]) => Ok(numbering(mesh, &self.spaces[*trial], self.order)?.n_dofs()
                * self.tabulated.spaces[*trial].block),
            Some(_) | None => Ok(0),
        }
    }

    /// As [`MeshForm::bind`], with the [patterns](MeshForm::patterns) of the matrix on the mesh, which
    /// need not be computed again; without any for other results.
    ///
    /// # Errors
    /// As [`MeshForm::bind`].
    pub fn bind_to(
        &self,
        kernel: usize,
        mesh: &Mesh,
        inputs: &Inputs,
        patterns: &[CsrPattern],
    ) -> Result<Memory, FormError> {
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
        if inputs.order() != self.order {
            let (found, needed) = (inputs.order(), self.order);
            let message = format!("the inputs are numbered {found}, and the form {needed}; needed one order");
            return Err(FormError::Discretisation(message));
        }
        let numberings = Numberings::new(mesh, &self.spaces, self.order);
        let entities = Grid::mesh(mesh)
            .entities(lowered.over, &lowered.subdomains)
            .map_err(|e| FormError::Discretisation(e.to_string()))?;
        let pattern = patterns.get(kernel);
        if let Some(pattern) = pattern
            && (pattern.order() == EntryOrder::UpperRows) != (lowered.matrix == MatrixResult::SymmetricHalf)
        {
            let message = "the half of a symmetric matrix: found a pattern of another order than the kernel's; make \
                           it by `CsrPattern::upper`, and lower the form with `MatrixResult::SymmetricHalf`";
            return Err(FormError::Discretisation(message.into()));
        }
        let by_rows_alone = matches!(lowered.matrix, MatrixResult::Searched | MatrixResult::OwnedRows { .. });
        if by_rows_alone && pattern.is_some_and(|pattern| pattern.order() == EntryOrder::Blocks) {
            let message =
                "an assembly that goes by rows of scalars: found entries by blocks; use a lookup table";
            return Err(FormError::Discretisation(message.into()));
        }
        let by_rows = pattern.filter(|_| lowered.matrix == MatrixResult::Rowwise);
        let terms = by_rows.map(CsrPattern::row_terms);
        let owned = self.owned_rows(lowered, pattern)?;
        let given = OnMesh { mesh, inputs, numberings, entities, lowered, pattern, terms, owned };
        let mut memory = Memory::new();
        for argument in &lowered.arguments {
            self.bind_one(&mut memory, &argument.name, argument.role, &given)?;
        }
        Ok(memory)
    }

    /// The pairs of degrees of freedom and cells, if rows are owned.
    fn owned_rows(
        &self,
        lowered: &LoweredKernel,
        pattern: Option<&CsrPattern>,
    ) -> Result<Option<OwnedRows>, FormError> {
        let (MatrixResult::OwnedRows { longest }, Some(pattern)) = (lowered.matrix, pattern) else {
            return Ok(None);
        };
        let refused = |e: &dyn std::fmt::Display| FormError::Discretisation(e.to_string());
        if pattern.longest_row() > longest.max(1) {
            let found = pattern.longest_row();
            return Err(refused(&format!(
                "a row of {found} entries, and the form was lowered for rows of at most {longest}; lower it with \
                 `MatrixResult::OwnedRows {{ longest: {found} }}`"
            )));
        }
        let Some([test, trial]) = self.tabulated.outputs.first().map(|o| &o.spaces[..]) else {
            return Ok(None);
        };
        let components = [test, trial].map(|space| self.tabulated.spaces[*space].block);
        let packing = SlotPacking::of(longest.max(1));
        Ok(Some(pattern.owned_rows(components, packing).map_err(|e| refused(&e))?))
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
        let OnMesh { mesh, inputs, numberings, entities, .. } = given;
        let by_rows = given.terms.is_some() || given.owned.is_some();
        match role {
            LoweredRole::EntityCount | LoweredRole::EntityCells if by_rows => {
                return Self::bind_pairs(memory, name, role, given);
            }
            LoweredRole::CellCount => memory.set_param(name, mesh.n_cells() as i64),
            LoweredRole::DofCount { space: 0 } => memory.set_param(name, given.n_nodes() as i64),
            LoweredRole::DofCount { space } => memory.set_param(name, numberings.of(space)?.n_dofs() as i64),
            LoweredRole::Map { space: 0 } => {
                let narrow =
                    |v: &u32| i32::try_from(*v).map_err(|_| super::arguments::too_many(given.n_nodes()));
                let nodes = (0..mesh.n_cells()).flat_map(|cell| mesh.cell_nodes(cell));
                memory.set(name, nodes.map(narrow).collect::<Result<Vec<i32>, _>>()?);
            }
            LoweredRole::Map { space } => {
                memory.set(name, numberings.of(space)?.dofs().to_vec());
            }
            LoweredRole::States { space } => memory.set(name, numberings.of(space)?.states().to_vec()),
            LoweredRole::Function { function: 0 } => memory.set(name, mesh.nodes().to_vec()),
            LoweredRole::Function { function } => {
                let n_dofs = numberings.of(self.tabulated.functions[function].space)?.n_dofs();
                let values = inputs.checked_field(&self.coefficients[function - 1], n_dofs)?;
                memory.set(name, values.to_vec());
            }
            LoweredRole::CellValues { function } => {
                let numbering = numberings.of(self.tabulated.functions[function].space)?;
                let sizes = [mesh.n_cells(), numbering.dofs_per_cell()];
                let values = inputs.checked_cell_values(&self.coefficients[function - 1], sizes)?;
                memory.set(name, values.to_vec());
            }
            LoweredRole::Constant { constant, component } => {
                memory.set(name, inputs.get_constant(&self.constants[constant])?[component]);
            }
            LoweredRole::Output { output } => {
                let size = self.result_size(output, given)?;
                check_memory("the result", 8 * size as u64, "use fewer cells or a lower degree")?;
                memory.set(name, Value::F64(vec![0.0; size]));
            }
            LoweredRole::EntityCount => {
                memory.set_param(name, cells_of(entities, 0).len() as i64 / sides(given.lowered) as i64);
            }
            LoweredRole::EntityCells => {
                let cells = entities.get("listed_cells").or(entities.get("facet_cells"));
                memory.set(name, cells.ok_or_else(|| unknown(name))?.values.clone());
            }
            LoweredRole::LocalFacets => {
                memory.set(name, entities.get("local_facets").ok_or_else(|| unknown(name))?.values.clone());
            }
            LoweredRole::FacetStates => {
                memory.set(name, entities.get("facet_states").ok_or_else(|| unknown(name))?.values.clone());
            }
            LoweredRole::NonzeroCount { .. }
            | LoweredRole::Positions { .. }
            | LoweredRole::SparseList { .. }
            | LoweredRole::SparseCount { .. } => return Self::bind_sparse(memory, name, role, given),
        }
        Ok(())
    }

    /// Binds the pairs of a row and a cell: their number, or their cells.
    fn bind_pairs(
        memory: &mut Memory,
        name: &str,
        role: LoweredRole,
        given: &OnMesh<'_>,
    ) -> Result<(), FormError> {
        let entities = match &given.owned {
            Some(owned) => &owned.entities,
            None => &given.terms(name)?.entities,
        };
        if role == LoweredRole::EntityCount {
            memory.set_param(name, entities.len() as i64);
            return Ok(());
        }
        let cells = cells_of(&given.entities, given.mesh.n_cells());
        let of_pairs: Vec<i32> = entities.iter().map(|entity| cells[*entity as usize] as i32).collect();
        memory.set(name, of_pairs);
        Ok(())
    }

    /// Binds what a kernel needs of a sparse matrix.
    fn bind_sparse(
        memory: &mut Memory,
        name: &str,
        role: LoweredRole,
        given: &OnMesh<'_>,
    ) -> Result<(), FormError> {
        let pattern = given.pattern.ok_or_else(|| unknown(name))?;
        match role {
            LoweredRole::NonzeroCount { .. } => memory.set_param(name, pattern.n_entries() as i64),
            LoweredRole::Positions { .. } => {
                let of_rows = given.terms.as_ref().map(|terms| &terms.positions);
                memory.set(name, of_rows.cloned().unwrap_or_else(|| pattern.positions().into_owned()));
            }
            LoweredRole::SparseList { list, .. } => {
                let values = match list {
                    SparseList::RowStarts => pattern.row_starts.clone(),
                    SparseList::Columns => pattern.columns.clone(),
                    SparseList::EntityRows => pattern.entity_rows(),
                    SparseList::EntityColumns => pattern.entity_columns(),
                    SparseList::PairRows => match &given.owned {
                        Some(owned) => owned.rows.clone(),
                        None => given.terms(name)?.rows.clone(),
                    },
                    SparseList::PairFirsts => given.owned(name)?.firsts.clone(),
                    SparseList::PairCounts => given.owned(name)?.counts.clone(),
                    SparseList::Slots => given.owned(name)?.slots.clone(),
                };
                memory.set(name, values);
            }
            LoweredRole::SparseCount { count, .. } => {
                let value = match count {
                    SparseCount::Rows => pattern.row_starts.len().saturating_sub(1),
                    SparseCount::SearchSteps => pattern.search_steps(),
                    SparseCount::Owners => given.owned(name)?.firsts.len(),
                };
                memory.set_param(name, value as i64);
            }
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// Number of entries of a result.
    fn result_size(&self, output: usize, given: &OnMesh<'_>) -> Result<usize, FormError> {
        let block = |space: usize| self.tabulated.spaces[space].block;
        if let Some(space) = given.lowered.result_space(&self.tabulated, output) {
            return Ok(given.numberings.of(space)?.n_dofs() * block(space));
        }
        if let Some(pattern) = given.pattern {
            return Ok(pattern.n_entries());
        }
        let spaces = &self.tabulated.outputs[output].spaces;
        if spaces.is_empty() {
            return Ok(1); // a functional
        }
        let sides = sides(given.lowered);
        let entities = cells_of(&given.entities, given.mesh.n_cells()).len() / sides;
        let extent = |space: &usize| sides * self.tabulated.spaces[*space].columns * block(*space);
        let size = spaces.iter().map(extent).fold(entities, usize::saturating_mul);
        Ok(size)
    }
}

/// What the arguments of a kernel are taken from.
struct OnMesh<'a> {
    mesh: &'a Mesh,
    inputs: &'a Inputs,
    numberings: Numberings<'a>,
    /// The arrays of the entities of the kernel.
    entities: BTreeMap<String, Array>,
    lowered: &'a LoweredKernel,
    /// Of a sparse matrix.
    pattern: Option<&'a CsrPattern>,
    /// Of one that is assembled row by row.
    terms: Option<RowTerms>,
    /// Of one whose rows are owned.
    owned: Option<OwnedRows>,
}

impl OnMesh<'_> {
    fn terms(&self, name: &str) -> Result<&RowTerms, FormError> {
        self.terms.as_ref().ok_or_else(|| unknown(name))
    }

    fn owned(&self, name: &str) -> Result<&OwnedRows, FormError> {
        self.owned.as_ref().ok_or_else(|| unknown(name))
    }

    fn n_nodes(&self) -> usize {
        self.mesh.nodes().len() / self.mesh.shape().dim()
    }
}

/// The numberings of spaces, each made when it is asked for: a kernel reads the maps of few.
struct Numberings<'a> {
    mesh: &'a Mesh,
    spaces: &'a [FunctionSpace],
    known: Vec<OnceCell<ComposedNumbering>>,
    order: NumberingOrder,
}

impl<'a> Numberings<'a> {
    fn new(mesh: &'a Mesh, spaces: &'a [FunctionSpace], order: NumberingOrder) -> Self {
        Self { mesh, spaces, known: spaces.iter().map(|_| OnceCell::new()).collect(), order }
    }

    fn of(&self, space: usize) -> Result<&ComposedNumbering, FormError> {
        let known = &self.known[space];
        if known.get().is_none() {
            let numbering = numbering(self.mesh, &self.spaces[space], self.order)?;
            return Ok(known.get_or_init(|| numbering));
        }
        known.get().ok_or_else(|| FormError::Bug("a numbering was lost".into()))
    }
}

fn unknown(name: &str) -> FormError {
    FormError::Bug(format!("`{name}` stands for nothing on the entities of its kernel"))
}

/// How many cells an entity of a kernel has.
fn sides(kernel: &LoweredKernel) -> usize {
    match kernel.over {
        IntegralType::Cell | IntegralType::ExteriorFacet => 1,
        IntegralType::InteriorFacet => 2,
    }
}

/// The cells of the entities, both of an interior facet; without a list all of them.
fn cells_of(entities: &BTreeMap<String, Array>, n_cells: usize) -> Vec<usize> {
    match entities.get("listed_cells").or(entities.get("facet_cells")).map(|a| &a.values) {
        Some(Value::I32(list)) => list.iter().map(|cell| *cell as usize).collect(),
        Some(_) | None => (0..n_cells).collect(),
    }
}

fn numbering(
    mesh: &Mesh,
    space: &FunctionSpace,
    order: NumberingOrder,
) -> Result<ComposedNumbering, FormError> {
    let wrong = |e: &dyn std::fmt::Display| FormError::Discretisation(e.to_string());
    let element = space.base().0.element().map_err(|e| wrong(&e))?;
    ComposedNumbering::of_in_order(mesh, &element, order).map_err(|e| wrong(&e))
}
