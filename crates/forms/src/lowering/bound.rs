//! What the arguments of a kernel are on a mesh.

use super::numbered::{NumberedMesh, NumberedSpace, numbered_space};
use super::on_mesh::{MeshForm, cells_of, sides};
use super::{LoweredKernel, LoweredRole, MatrixResult, OwnerCells, RowOwners, SparseCount, SparseList};
use crate::array::Array;
use crate::form::{FormError, FunctionSpace, Inputs};
use crate::grid::Grid;
use kingpost_capacity::check_memory;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::ComposedNumbering;
use kingpost_fem::sparse::{CsrPattern, EntryOrder, OwnedRows, RowTerms, Strips};
use kingpost_interp::{Memory, Value};
use rayon::prelude::*;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// An array that all forms on a mesh share.
#[derive(Clone, Debug, PartialEq)]
pub enum MeshArray {
    /// The nodes of each cell.
    Cells,
    /// The coordinates of the nodes.
    Nodes,
    /// The degrees of freedom of each cell.
    Map(NumberedSpace),
    /// The states of each cell.
    States(NumberedSpace),
}

/// What an argument of a kernel gets.
#[derive(Clone, Debug)]
pub enum Bound<'a> {
    /// A parameter.
    Param(i64),
    /// A scalar.
    Number(f64),
    /// An array of integers.
    Integers(Cow<'a, [i32]>),
    /// An array of real numbers.
    Reals(Cow<'a, [f64]>),
    /// The result, of a number of entries that start at zero.
    Result(usize),
}

impl MeshForm {
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
        let on = NumberedMesh::new(mesh);
        let patterns = if self.is_sparse() { self.patterns_on(&on)? } else { Vec::new() };
        self.bound(kernel, &on, inputs, &patterns)?.memory()
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
        self.bound(kernel, &NumberedMesh::new(mesh), inputs, patterns)?.memory()
    }

    /// Whether a mesh has entities that a kernel is over: a part of a mesh may lack those of a tag.
    #[must_use]
    pub fn has_entities(&self, kernel: &LoweredKernel, mesh: &Mesh) -> bool {
        Grid::mesh(mesh).entities(kernel.over, &kernel.subdomains).is_ok()
    }

    /// As [`MeshForm::bind_to`], each argument when it is asked for, with the numberings that the mesh
    /// has.
    ///
    /// # Errors
    /// As [`MeshForm::bind`].
    pub fn bound<'a>(
        &'a self,
        kernel: usize,
        on: &'a NumberedMesh<'a>,
        inputs: &'a Inputs,
        patterns: &'a [CsrPattern],
    ) -> Result<BoundKernel<'a>, FormError> {
        let (cell, mesh) = (self.spaces[0].cell(), on.mesh());
        if mesh.shape() != cell {
            return Err(FormError::MixedCells { first: cell, second: mesh.shape() });
        }
        self.check_geometry(mesh)?;
        let lowered = self.kernels().get(kernel).ok_or_else(|| {
            let n = self.kernels().len();
            FormError::Discretisation(format!(
                "kernel {kernel} of the form: found {n} kernels, needed a place below"
            ))
        })?;
        inputs.check_names(self.form())?;
        let degrees = self.spaces.iter().skip(1).filter_map(FunctionSpace::lagrange_degree).collect();
        inputs.check_nodes(cell, &degrees)?;
        if inputs.order() != self.order {
            let (found, needed) = (inputs.order(), self.order);
            let message = format!("the inputs are numbered {found}, and the form {needed}; needed one order");
            return Err(FormError::Discretisation(message));
        }
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
        let by_rows_alone = lowered.matrix == MatrixResult::Searched || lowered.matrix.is_owned();
        if by_rows_alone && pattern.is_some_and(|pattern| pattern.order() == EntryOrder::Blocks) {
            let message =
                "an assembly that goes by rows of scalars: found entries by blocks; use a lookup table";
            return Err(FormError::Discretisation(message.into()));
        }
        self.check_longest(on, lowered.matrix, pattern)?;
        Ok(BoundKernel {
            form: self,
            on,
            inputs,
            numberings: self.spaces.iter().map(|_| OnceCell::new()).collect(),
            entities,
            lowered,
            pattern,
            terms: OnceCell::new(),
            owned: OnceCell::new(),
            strips: OnceCell::new(),
            owners: OnceCell::new(),
        })
    }

    /// Refuses rows that are longer than those for which a kernel has room.
    fn check_longest(
        &self,
        on: &NumberedMesh<'_>,
        matrix: MatrixResult,
        pattern: Option<&CsrPattern>,
    ) -> Result<(), FormError> {
        let (MatrixResult::OwnedRows(owners), Some(pattern)) = (matrix, pattern) else { return Ok(()) };
        let (found, room) = match owners.cells {
            OwnerCells::Turned => (self.longest_rows(on, pattern)?.to_vec(), &owners.longest[..]),
            OwnerCells::Mapped | OwnerCells::Strips => (vec![pattern.longest_row()], &owners.longest[..1]),
        };
        if found.iter().zip(room).any(|(found, room)| *found > (*room).max(1)) {
            let message = format!(
                "rows of at most {found:?} entries, and the form was lowered for rows of at most {room:?}; lower \
                 it for as many: `RowOwners::longest`"
            );
            return Err(FormError::Discretisation(message));
        }
        Ok(())
    }
}

/// A kernel of a form with what its arguments are on a mesh, each made when it is asked for.
pub struct BoundKernel<'a> {
    form: &'a MeshForm,
    on: &'a NumberedMesh<'a>,
    inputs: &'a Inputs,
    /// By space, those that were asked for.
    numberings: Vec<OnceCell<Arc<ComposedNumbering>>>,
    /// The arrays of the entities of the kernel.
    entities: BTreeMap<String, Array>,
    lowered: &'a LoweredKernel,
    /// Of a sparse matrix.
    pattern: Option<&'a CsrPattern>,
    /// Of one that is assembled row by row.
    terms: OnceCell<RowTerms>,
    /// Of one whose rows are owned.
    owned: OnceCell<OwnedRows>,
    /// Of one whose cells are strips.
    strips: OnceCell<Strips>,
    /// Of one whose cells are turned: owners by dimension.
    owners: OnceCell<[Range<usize>; 4]>,
}

impl BoundKernel<'_> {
    /// The values of all parameters and arguments; the result is zero.
    ///
    /// # Errors
    /// As [`BoundKernel::argument`].
    pub fn memory(&self) -> Result<Memory, FormError> {
        let mut memory = Memory::new();
        for argument in &self.lowered.arguments {
            let name = argument.name.as_str();
            match self.argument(name)? {
                Bound::Param(value) => memory.set_param(name, value),
                Bound::Number(value) => memory.set(name, value),
                Bound::Integers(values) => memory.set(name, values.into_owned()),
                Bound::Reals(values) => memory.set(name, values.into_owned()),
                Bound::Result(size) => {
                    check_memory("the result", 8 * size as u64, "use fewer cells or a lower degree")?;
                    memory.set(name, Value::F64(vec![0.0; size]));
                }
            }
        }
        Ok(memory)
    }

    /// What an argument stands for, if the kernel has it.
    #[must_use]
    pub fn role(&self, name: &str) -> Option<LoweredRole> {
        self.lowered.arguments.iter().find(|argument| argument.name == name).map(|argument| argument.role)
    }

    /// Which array of the mesh an argument is, if it is one.
    ///
    /// # Errors
    /// A space without an element.
    pub fn mesh_array(&self, name: &str) -> Result<Option<MeshArray>, FormError> {
        let numbered = |space: usize| numbered_space(&self.form.spaces[space], self.form.order);
        Ok(match self.role(name) {
            Some(LoweredRole::Map { space: 0 }) => Some(MeshArray::Cells),
            Some(LoweredRole::Function { function: 0 }) => Some(MeshArray::Nodes),
            Some(LoweredRole::Map { space }) => Some(MeshArray::Map(numbered(space)?)),
            Some(LoweredRole::States { space }) => Some(MeshArray::States(numbered(space)?)),
            Some(_) | None => None,
        })
    }

    /// Whether an argument belongs to the pattern of the kernel's matrix, so that no other form has it.
    #[must_use]
    pub fn is_of_matrix(&self, name: &str) -> bool {
        match self.role(name) {
            Some(LoweredRole::Positions { .. } | LoweredRole::SparseList { .. }) => true,
            Some(LoweredRole::EntityCells) => self.goes_by_rows(),
            Some(_) | None => false,
        }
    }

    /// Whether entities are pairs of a row and a cell.
    fn goes_by_rows(&self) -> bool {
        let matrix = self.lowered.matrix;
        (matrix == MatrixResult::Rowwise || matrix.is_owned()) && self.pattern.is_some()
    }

    /// What an argument gets.
    ///
    /// # Errors
    /// As [`MeshForm::bind`].
    pub fn argument(&self, name: &str) -> Result<Bound<'_>, FormError> {
        let mesh = self.on.mesh();
        let coefficients = &self.form.coefficients;
        let role = self.role(name).ok_or_else(|| unknown(name))?;
        Ok(match role {
            LoweredRole::EntityCount | LoweredRole::EntityCells if self.goes_by_rows() => {
                self.pairs(name, role)?
            }
            LoweredRole::CellCount => Bound::Param(mesh.n_cells() as i64),
            LoweredRole::DofCount { space: 0 } => Bound::Param(self.n_nodes() as i64),
            LoweredRole::DofCount { space } => Bound::Param(self.numbering(space)?.n_dofs() as i64),
            LoweredRole::Map { space: 0 } => Bound::Integers(self.cell_nodes()?.into()),
            LoweredRole::Map { space } => Bound::Integers(self.numbering(space)?.dofs().into()),
            LoweredRole::States { space } => Bound::Integers(self.numbering(space)?.states().into()),
            LoweredRole::Function { function: 0 } => Bound::Reals(mesh.nodes().into()),
            LoweredRole::VertexPoints => Bound::Reals(self.vertex_points(name)?.into()),
            LoweredRole::Function { function } => {
                let n_dofs = self.numbering(self.form.tabulated.functions[function].space)?.n_dofs();
                Bound::Reals(self.inputs.checked_field(&coefficients[function - 1], n_dofs)?.into())
            }
            LoweredRole::CellValues { function } => {
                let numbering = self.numbering(self.form.tabulated.functions[function].space)?;
                let sizes = [mesh.n_cells(), numbering.dofs_per_cell()];
                Bound::Reals(self.inputs.checked_cell_values(&coefficients[function - 1], sizes)?.into())
            }
            LoweredRole::Constant { constant, component } => {
                Bound::Number(self.inputs.get_constant(&self.form.constants[constant])?[component])
            }
            LoweredRole::Output { output } => Bound::Result(self.result_size(output)?),
            LoweredRole::EntityCount => {
                Bound::Param(n_cells_of(&self.entities, 0) as i64 / sides(self.lowered) as i64)
            }
            LoweredRole::EntityCells => self.of_entities(name, &["listed_cells", "facet_cells"])?,
            LoweredRole::LocalFacets => self.of_entities(name, &["local_facets"])?,
            LoweredRole::FacetStates => self.of_entities(name, &["facet_states"])?,
            LoweredRole::NonzeroCount { .. }
            | LoweredRole::Positions { .. }
            | LoweredRole::SparseList { .. }
            | LoweredRole::SparseCount { .. } => self.sparse(name, role)?,
        })
    }

    /// An array of the entities.
    fn of_entities(&self, name: &str, known_as: &[&str]) -> Result<Bound<'_>, FormError> {
        match known_as.iter().find_map(|known| self.entities.get(*known)).map(|array| &array.values) {
            Some(Value::I32(list)) => Ok(Bound::Integers(list.into())),
            Some(_) | None => Err(unknown(name)),
        }
    }

    /// The nodes of each cell.
    fn cell_nodes(&self) -> Result<Vec<i32>, FormError> {
        i32::try_from(self.n_nodes()).map_err(|_| super::arguments::too_many(self.n_nodes()))?;
        Ok(self.on.mesh().all_cell_nodes().par_iter().map(|node| *node as i32).collect())
    }

    /// The pairs of a row and a cell: their number, or their cells.
    fn pairs(&self, name: &str, role: LoweredRole) -> Result<Bound<'_>, FormError> {
        let entities = match self.lowered.matrix {
            // as many as there are numbers; cells are not read
            MatrixResult::OwnedRows(RowOwners { cells: OwnerCells::Strips, .. }) => {
                &self.strips(name)?.rounds
            }
            matrix if matrix.is_owned() => &self.owned(name)?.entities,
            _ => &self.terms(name)?.entities,
        };
        if role == LoweredRole::EntityCount {
            return Ok(Bound::Param(entities.len() as i64));
        }
        Ok(Bound::Integers(match cells_of(&self.entities) {
            None => entities.into(),
            Some(cells) => {
                entities.par_iter().map(|entity| cells[*entity as usize]).collect::<Vec<_>>().into()
            }
        }))
    }

    /// What a kernel needs of a sparse matrix.
    fn sparse(&self, name: &str, role: LoweredRole) -> Result<Bound<'_>, FormError> {
        let pattern = self.pattern.ok_or_else(|| unknown(name))?;
        let list = |list: Vec<i32>| Bound::Integers(list.into());
        Ok(match role {
            LoweredRole::NonzeroCount { .. } => Bound::Param(pattern.n_entries() as i64),
            LoweredRole::Positions { .. } if self.lowered.matrix == MatrixResult::Rowwise => {
                Bound::Integers((&self.terms(name)?.positions).into())
            }
            LoweredRole::Positions { .. } => Bound::Integers(pattern.positions()),
            LoweredRole::SparseList { list: which, .. } => match which {
                SparseList::RowStarts => Bound::Integers((&pattern.row_starts).into()),
                SparseList::Columns => Bound::Integers((&pattern.columns).into()),
                SparseList::EntityRows => list(pattern.entity_rows()),
                SparseList::EntityColumns => list(pattern.entity_columns()),
                SparseList::PairRows => match self.lowered.matrix.is_owned() {
                    true => Bound::Integers((&self.owned(name)?.rows).into()),
                    false => Bound::Integers((&self.terms(name)?.rows).into()),
                },
                SparseList::PairFirsts => Bound::Integers(self.of_owners(name)?[0].into()),
                SparseList::PairCounts => Bound::Integers(self.of_owners(name)?[1].into()),
                SparseList::Slots => Bound::Integers(self.of_owners(name)?[2].into()),
            },
            LoweredRole::SparseCount { count, .. } => Bound::Param(match count {
                SparseCount::Rows => pattern.row_starts.len().saturating_sub(1),
                SparseCount::SearchSteps => pattern.search_steps(),
                SparseCount::Owners => pattern.row_starts.len().saturating_sub(1) / self.components(name)?[0],
                SparseCount::FirstOf { dim } => self.owners(name, dim)?.start,
                SparseCount::OwnersOf { dim } => self.owners(name, dim)?.len(),
            } as i64),
            _ => return Err(unknown(name)),
        })
    }

    /// Number of entries of a result.
    fn result_size(&self, output: usize) -> Result<usize, FormError> {
        let tabulated = &self.form.tabulated;
        let block = |space: usize| tabulated.spaces[space].block;
        if let Some(space) = self.lowered.result_space(tabulated, output) {
            return Ok(self.numbering(space)?.n_dofs() * block(space));
        }
        if let Some(pattern) = self.pattern {
            return Ok(pattern.n_entries());
        }
        let spaces = &tabulated.outputs[output].spaces;
        if spaces.is_empty() {
            return Ok(1); // a functional
        }
        let sides = sides(self.lowered);
        let entities = n_cells_of(&self.entities, self.on.mesh().n_cells()) / sides;
        let extent = |space: &usize| sides * tabulated.spaces[*space].columns * block(*space);
        Ok(spaces.iter().map(extent).fold(entities, usize::saturating_mul))
    }

    fn terms(&self, name: &str) -> Result<&RowTerms, FormError> {
        let pattern = self.pattern.ok_or_else(|| unknown(name))?;
        Ok(self.terms.get_or_init(|| pattern.row_terms()))
    }

    /// The pairs of degrees of freedom and cells.
    fn owned(&self, name: &str) -> Result<&OwnedRows, FormError> {
        if let Some(known) = self.owned.get() {
            return Ok(known);
        }
        let pattern = self.pattern.ok_or_else(|| unknown(name))?;
        let packing = self.lowered.matrix.packing().ok_or_else(|| unknown(name))?;
        let turns = match self.lowered.matrix {
            MatrixResult::OwnedRows(RowOwners { cells: OwnerCells::Turned, .. }) => {
                Some(self.form.turns()?.columns)
            }
            _ => None,
        };
        let owned = pattern.owned_rows(self.components(name)?, packing, turns.as_deref());
        let owned = owned.map_err(|e| FormError::Discretisation(e.to_string()))?;
        Ok(self.owned.get_or_init(|| owned))
    }

    /// The strips of cells around the degrees of freedom.
    fn strips(&self, name: &str) -> Result<&Strips, FormError> {
        if let Some(known) = self.strips.get() {
            return Ok(known);
        }
        let pattern = self.pattern.ok_or_else(|| unknown(name))?;
        let strips = pattern.strips(self.components(name)?);
        let strips = strips.map_err(|e| FormError::Discretisation(e.to_string()))?;
        Ok(self.strips.get_or_init(|| strips))
    }

    /// What owners read: where their numbers begin, how many they are, and these.
    fn of_owners(&self, name: &str) -> Result<[&[i32]; 3], FormError> {
        Ok(match self.lowered.matrix {
            MatrixResult::OwnedRows(RowOwners { cells: OwnerCells::Strips, .. }) => {
                let Strips { firsts, counts, rounds } = self.strips(name)?;
                [firsts, counts, rounds]
            }
            _ => {
                let OwnedRows { firsts, counts, slots, .. } = self.owned(name)?;
                [firsts, counts, slots]
            }
        })
    }

    fn components(&self, name: &str) -> Result<[usize; 2], FormError> {
        self.form.components().ok_or_else(|| unknown(name))
    }

    /// The degrees of freedom of entities of a dimension.
    fn owners(&self, name: &str, dim: usize) -> Result<Range<usize>, FormError> {
        let owners = match self.owners.get() {
            Some(known) => known,
            None => {
                let found = self.form.owners(self.on)?;
                self.owners.get_or_init(|| found)
            }
        };
        owners.get(dim).cloned().ok_or_else(|| unknown(name))
    }

    /// The positions of vertices in the order of their degrees of freedom; zero of vertices that no
    /// cell has.
    fn vertex_points(&self, name: &str) -> Result<Vec<f64>, FormError> {
        let (mesh, vertices) = (self.on.mesh(), self.owners(name, 0)?);
        let numbering = self.form.result_numbering(self.on)?;
        let (dim, n) = (mesh.shape().dim(), mesh.shape().n_vertices());
        let mut points = vec![0.0; mesh.nodes().len()];
        for (cell, nodes) in mesh.all_cell_nodes().chunks_exact(n).enumerate() {
            for (dof, node) in numbering.cell(cell).iter().zip(nodes) {
                let (to, from) = (dim * (*dof as usize - vertices.start), dim * *node as usize);
                points[to..to + dim].copy_from_slice(&mesh.nodes()[from..from + dim]);
            }
        }
        Ok(points)
    }

    fn numbering(&self, space: usize) -> Result<&ComposedNumbering, FormError> {
        let cell = &self.numberings[space];
        if let Some(known) = cell.get() {
            return Ok(known);
        }
        let numbering = self.on.numbering(&self.form.spaces[space], self.form.order)?;
        Ok(cell.get_or_init(|| numbering))
    }

    fn n_nodes(&self) -> usize {
        self.on.mesh().nodes().len() / self.on.mesh().shape().dim()
    }
}

fn unknown(name: &str) -> FormError {
    FormError::Bug(format!("`{name}` stands for nothing on the entities of its kernel"))
}

/// How many cells the entities have, if they are not all cells.
fn n_cells_of(entities: &BTreeMap<String, Array>, all: usize) -> usize {
    cells_of(entities).map_or(all, <[i32]>::len)
}
