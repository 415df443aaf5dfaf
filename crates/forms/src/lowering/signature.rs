//! The signature of the kernel: what the form needs becomes parameters, arguments and temporaries.

use super::entity::EntityVars;
use super::locals::{Local, LocalVar, local_shape};
use super::needed::{Needed, matrix_extents};
use super::owned::OwnedRows;
use super::parameters::Signature;
use super::{LoweredArgument, LoweredRole, MatrixResult, SparseCount, SparseList, VectorResult};
use crate::form::FormError;
use crate::tabulated::{Role, TabulatedForm};
use kingpost_ir::{Affine, Assumption, Direction, ScalarType, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// Where the entries of an entity's matrix stand in a sparse matrix.
#[derive(Clone, Copy)]
pub(super) enum Places {
    /// `[entities, rows, columns]`.
    Table(VarId),
    /// The same, of entries on and above the diagonal of the entity's matrix.
    Upper(VarId),
    /// `[pairs, columns]`, of the row of the entity's matrix that `row` has, `[pairs]`.
    OfRow { row: VarId, positions: VarId },
    /// To be found.
    Searched { rows: VarId, columns_of: VarId, row_starts: VarId, columns: VarId, steps: VarId },
}

/// The variables that a kernel starts with.
pub(super) struct Vars {
    pub(super) entities: EntityVars,
    /// By place of the space.
    pub(super) maps: BTreeMap<usize, VarId>,
    pub(super) states: BTreeMap<usize, VarId>,
    /// By place of the function.
    pub(super) functions: BTreeMap<usize, VarId>,
    /// By place of the output.
    pub(super) outputs: BTreeMap<usize, VarId>,
    /// Of sparse matrices.
    pub(super) places: BTreeMap<usize, Places>,
    /// Of rows that are owned.
    pub(super) owned: Option<OwnedRows>,
    pub(super) constants: BTreeMap<(usize, usize), VarId>,
    pub(super) inputs: Vec<LocalVar>,
    pub(super) results: Vec<LocalVar>,
}

impl Signature<'_> {
    /// Declares everything: parameters, the results, the mesh, the maps, the form's functions and
    /// constants, then what a cell holds of them.
    pub(super) fn declare(&mut self, form: &TabulatedForm, needed: &Needed) -> Result<Vars, FormError> {
        let functions: BTreeSet<usize> = needed.inputs.iter().map(|l| l.of).collect();
        let is_position = |k: &usize| form.functions[*k].role == Role::Coordinates;
        for k in functions.iter().filter(|k| !is_position(k)) {
            self.names.reserve(form.functions[*k].argument_name())?;
        }
        let mut constant_names = BTreeMap::new();
        for (place, component) in &needed.constants {
            let name = form.constants[*place].component_name(*component);
            constant_names.insert((*place, *component), self.names.reserve(&name)?);
        }
        let entity_params = EntityVars::params(self, needed.entities);
        let spaces = used_spaces(form, needed, &functions);
        let counts = self.dof_counts(form, &spaces);
        let (outputs, places) = self.outputs(form, needed, &counts, entity_params);
        let (positions_of_mesh, others): (Vec<usize>, Vec<usize>) =
            functions.iter().copied().partition(is_position);
        let mut arrays = BTreeMap::new();
        for k in positions_of_mesh {
            let width = needed.position_width.filter(|w| *w > 1);
            let shape = global_shape(form, form.functions[k].space, &counts, width);
            let role = match needed.entities.turned {
                true => LoweredRole::VertexPoints,
                false => LoweredRole::Function { function: k },
            };
            arrays.insert(k, self.function(form, k, shape, role));
        }
        // the columns of rows stand for the maps of cells that are turned
        let mapped = if needed.entities.turned { BTreeSet::new() } else { spaces };
        let (maps, states) = self.maps(form, needed, &mapped, entity_params.0);
        let entities = EntityVars::declare(self, needed.entities, entity_params, needed.oriented);
        for k in others {
            let space = form.functions[k].space;
            let (shape, role) = match needed.cell_values.contains(&k) {
                true => (cell_shape(form, space, entity_params.0), LoweredRole::CellValues { function: k }),
                false => (global_shape(form, space, &counts, None), LoweredRole::Function { function: k }),
            };
            arrays.insert(k, self.function(form, k, shape, role));
        }
        let mut constants = BTreeMap::new();
        for ((place, component), name) in constant_names {
            let role = LoweredRole::Constant { constant: place, component };
            let var = self.b.argument(&name, self.ty, [], Direction::In);
            self.arguments.push(LoweredArgument { name, role });
            constants.insert((place, component), var);
        }
        let input =
            |l: &Local| self.local(form, l, if is_position(&l.of) { self.ty.part() } else { self.ty });
        let inputs = needed.inputs.iter().map(input).collect();
        let results = needed.results.iter().map(|l| self.local(form, l, self.ty)).collect();
        let entries = outputs.values().next().map(|output| self.b.so_far().vars[*output].shape.clone());
        let owned = OwnedRows::declare(self, form, needed, (entries.as_deref(), entity_params.1))?;
        if let Some(owned) = &owned {
            owned.assume_vertices(self.b, arrays.values());
        }
        Ok(Vars {
            entities,
            maps,
            states,
            functions: arrays,
            outputs,
            places,
            owned,
            constants,
            inputs,
            results,
        })
    }

    /// The number of degrees of freedom of each space; spaces of one name share it.
    fn dof_counts(&mut self, form: &TabulatedForm, spaces: &BTreeSet<usize>) -> BTreeMap<usize, VarId> {
        let mut counts = BTreeMap::new();
        for space in spaces {
            let name = form.spaces[*space].count_name();
            let same = spaces.range(..space).find(|s| form.spaces[**s].count_name() == name);
            let count = match same {
                Some(other) => counts[other],
                None => self.param(&name, LoweredRole::DofCount { space: *space }),
            };
            counts.insert(*space, count);
        }
        counts
    }

    /// The maps of `spaces`, one for those of one name, and the states of entities where a space
    /// transforms values by them.
    fn maps(
        &mut self,
        form: &TabulatedForm,
        needed: &Needed,
        spaces: &BTreeSet<usize>,
        entities: VarId,
    ) -> (BTreeMap<usize, VarId>, BTreeMap<usize, VarId>) {
        let mut maps = BTreeMap::new();
        let mut states = BTreeMap::new();
        for space in 0..form.spaces.len() {
            let data = &form.spaces[space];
            let shape = |n: usize| vec![Affine::var(entities), Affine::constant(n as i64)];
            if spaces.contains(&space) {
                let name = data.map_name();
                let same = spaces.range(..space).find(|s| form.spaces[**s].map_name() == name);
                let map = match same {
                    Some(other) => maps[other],
                    None => {
                        let role = LoweredRole::Map { space };
                        self.array(&name, ScalarType::I32, shape(data.columns), role)
                    }
                };
                maps.insert(space, map);
            }
            let is_result = needed.outputs.iter().any(|k| form.outputs[*k].spaces.contains(&space));
            let is_input = needed.inputs.iter().any(|l| form.functions[l.of].space == space);
            if !data.transforms.is_empty() && (is_input || is_result) {
                let (shape, role) = (shape(data.transforms.len()), LoweredRole::States { space });
                states.insert(space, self.array(&data.states_name(), ScalarType::I32, shape, role));
            }
        }
        (maps, states)
    }

    /// Assumes that the maps of the results of coloured cells are injective.
    pub(super) fn assume_coloured(&mut self, form: &TabulatedForm, needed: &Needed, vars: &Vars) {
        if needed.vector != VectorResult::Coloured || form.rank != 1 {
            return;
        }
        let results = needed.outputs.iter().filter_map(|k| form.outputs[*k].spaces.first());
        let results: BTreeSet<VarId> = results.filter_map(|space| vars.maps.get(space)).copied().collect();
        for map in results {
            self.b.assume(Assumption::Injective(map));
        }
    }

    /// The results, and where their entries stand if they are sparse matrices.
    fn outputs(
        &mut self,
        form: &TabulatedForm,
        needed: &Needed,
        counts: &BTreeMap<usize, VarId>,
        (_, entities): (VarId, VarId),
    ) -> (BTreeMap<usize, VarId>, BTreeMap<usize, Places>) {
        let (mut outputs, mut places) = (BTreeMap::new(), BTreeMap::new());
        for place in &needed.outputs {
            let (output, role) = (&form.outputs[*place], LoweredRole::Output { output: *place });
            let local = || -> Vec<Affine> {
                let sizes = matrix_extents(form, *place, needed.entities);
                std::iter::once(Affine::var(entities))
                    .chain(sizes.map(|n| Affine::constant(n as i64)))
                    .collect()
            };
            let shape = match (&output.spaces[..], needed.matrix) {
                ([], _) => vec![Affine::constant(1)],
                ([test], _) if needed.vector == VectorResult::Entities => cell_shape(form, *test, entities),
                ([test], _) | ([test, ..], MatrixResult::Diagonal) => global_shape(form, *test, counts, None),
                (_, MatrixResult::Cells) => local(),
                (
                    _,
                    MatrixResult::Sparse
                    | MatrixResult::Coloured
                    | MatrixResult::SymmetricHalf
                    | MatrixResult::Searched
                    | MatrixResult::Rowwise
                    | MatrixResult::OwnedRows(_),
                ) => {
                    let role = LoweredRole::NonzeroCount { output: *place };
                    vec![Affine::var(self.param(&format!("n_{}", output.name), role))]
                }
            };
            outputs.insert(*place, self.array(&output.name, self.ty, shape.clone(), role));
            let owned = needed.matrix.is_owned();
            if output.spaces.len() == 2 && needed.matrix.is_sparse() && !owned {
                places.insert(*place, self.places(form, *place, needed, entities, &shape));
            }
        }
        (outputs, places)
    }

    /// What says where the entries of a sparse matrix stand.
    fn places(
        &mut self,
        form: &TabulatedForm,
        output: usize,
        needed: &Needed,
        entities: VarId,
        entries: &[Affine],
    ) -> Places {
        let name = &form.outputs[output].name;
        let sizes: Vec<usize> = matrix_extents(form, output, needed.entities).collect();
        let of_entities = |sizes: &[usize]| -> Vec<Affine> {
            let constant = |n: &usize| Affine::constant(*n as i64);
            std::iter::once(Affine::var(entities)).chain(sizes.iter().map(constant)).collect()
        };
        let mut list = |stem: &str, shape: Vec<Affine>, role: LoweredRole| {
            self.array(&format!("{name}_{stem}"), ScalarType::I32, shape, role)
        };
        let role = |list: SparseList| LoweredRole::SparseList { output, list };
        match needed.matrix {
            MatrixResult::Rowwise => Places::OfRow {
                row: list("pair_rows", of_entities(&[]), role(SparseList::PairRows)),
                positions: list("positions", of_entities(&sizes[1..]), LoweredRole::Positions { output }),
            },
            MatrixResult::Searched => {
                let rows = list("rows", of_entities(&sizes[..1]), role(SparseList::EntityRows));
                let spaces = &form.outputs[output].spaces;
                let columns_of = match spaces[0] == spaces[1] {
                    true => rows,
                    false => list("cols", of_entities(&sizes[1..]), role(SparseList::EntityColumns)),
                };
                let columns = list("columns", entries.to_vec(), role(SparseList::Columns));
                let count = |count| LoweredRole::SparseCount { output, count };
                let n_rows = self.param(&format!("n_{name}_rows"), count(SparseCount::Rows));
                let steps = self.param(&format!("n_{name}_steps"), count(SparseCount::SearchSteps));
                let shape = vec![Affine::var(n_rows).plus_constant(1)];
                let row_starts = role(SparseList::RowStarts);
                let row_starts =
                    self.array(&format!("{name}_row_starts"), ScalarType::I32, shape, row_starts);
                Places::Searched { rows, columns_of, row_starts, columns, steps }
            }
            MatrixResult::Coloured => {
                let positions = list("positions", of_entities(&sizes), LoweredRole::Positions { output });
                self.b.assume(Assumption::Injective(positions));
                Places::Table(positions)
            }
            MatrixResult::SymmetricHalf => {
                Places::Upper(list("positions", of_entities(&sizes), LoweredRole::Positions { output }))
            }
            MatrixResult::Sparse
            | MatrixResult::Cells
            | MatrixResult::Diagonal
            | MatrixResult::OwnedRows(_) => {
                Places::Table(list("positions", of_entities(&sizes), LoweredRole::Positions { output }))
            }
        }
    }

    fn function(
        &mut self,
        form: &TabulatedForm,
        place: usize,
        shape: Vec<Affine>,
        role: LoweredRole,
    ) -> VarId {
        let function = &form.functions[place];
        // names of coefficients were reserved
        let (name, ty) = match function.role {
            Role::Coordinates => (self.names.fresh(function.argument_name()), self.ty.part()),
            Role::Coefficient => (function.argument_name().to_owned(), self.ty),
        };
        self.arguments.push(LoweredArgument { name: name.clone(), role });
        self.b.argument(name, ty, shape, Direction::In)
    }

    /// The array of a local.
    fn local(&mut self, form: &TabulatedForm, local: &Local, ty: ScalarType) -> LocalVar {
        let block = form.spaces[local.space].block;
        let name = self.names.fresh(&format!("{}_cell", local.stem));
        let var = self.b.temporary(name, ty, local_shape(local.columns, block));
        LocalVar { local: local.clone(), var, block: (block > 1).then_some(block) }
    }
}

/// The spaces whose maps the kernel reads.
fn used_spaces(form: &TabulatedForm, needed: &Needed, functions: &BTreeSet<usize>) -> BTreeSet<usize> {
    let scattered = needed.outputs.iter().filter_map(|place| match &form.outputs[*place].spaces[..] {
        [test] if needed.vector != VectorResult::Entities => Some(*test),
        [test, _] if needed.matrix == MatrixResult::Diagonal => Some(*test),
        _ => None,
    });
    let gathered = functions.iter().filter(|k| !needed.cell_values.contains(k));
    gathered.map(|k| form.functions[*k].space).chain(scattered).collect()
}

/// Shape of a function's degrees of freedom on the mesh: [dofs] or [dofs, components], of which an
/// array has `width` where it is wider.
fn global_shape(
    form: &TabulatedForm,
    space: usize,
    counts: &BTreeMap<usize, VarId>,
    width: Option<usize>,
) -> Vec<Affine> {
    let width = width.or_else(|| Some(form.spaces[space].block).filter(|block| *block > 1));
    let width = width.map(|n| Affine::constant(n as i64));
    std::iter::once(Affine::var(counts[&space])).chain(width).collect()
}

/// Shape of the degrees of freedom of each entity: [entities, columns] or [entities, columns,
/// components].
fn cell_shape(form: &TabulatedForm, space: usize, entities: VarId) -> Vec<Affine> {
    let space = &form.spaces[space];
    let sizes = std::iter::once(space.columns).chain(Some(space.block).filter(|n| *n > 1));
    std::iter::once(Affine::var(entities)).chain(sizes.map(|n| Affine::constant(n as i64))).collect()
}
