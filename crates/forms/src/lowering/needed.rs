//! What a kernel needs of a form.

use super::entity::Entities;
use super::graph::{Graph, Op, Uses};
use super::locals::Local;
use super::{MatrixResult, TabulatedOptions, VectorResult};
use crate::tabulated::{Role, TabulatedForm};
use std::collections::BTreeSet;

/// What a kernel needs of a form.
pub(super) struct Needed {
    pub(super) entities: Entities,
    pub(super) inputs: Vec<Local>,
    pub(super) results: Vec<Local>,
    /// Places of the outputs.
    pub(super) outputs: BTreeSet<usize>,
    pub(super) constants: BTreeSet<(usize, usize)>,
    /// Whether tables have an axis for the orientation of a facet.
    pub(super) oriented: bool,
    pub(super) matrix: MatrixResult,
    pub(super) vector: VectorResult,
    /// Places of the functions that are given cell by cell.
    pub(super) cell_values: BTreeSet<usize>,
    /// Whether it is the first kernel of its form.
    pub(super) first: bool,
    pub(super) position_width: Option<usize>,
    /// Whether the rules are known to be exact.
    pub(super) is_exact: bool,
}

/// The components of constants below the roots.
pub(super) fn used_constants(graph: &Graph, uses: &Uses) -> BTreeSet<(usize, usize)> {
    let needed = graph.nodes.iter().enumerate().filter(|(k, _)| uses.is_needed(*k));
    let constant = |op: &Op| match op {
        Op::Constant(place, component) => Some((*place, *component)),
        _ => None,
    };
    needed.filter_map(|(_, node)| constant(&node.op)).collect()
}

/// The functions that are given cell by cell.
pub(super) fn cell_values(form: &TabulatedForm, options: &TabulatedOptions) -> BTreeSet<usize> {
    let functions = form.functions.iter().enumerate();
    let given =
        functions.filter(|(_, f)| f.role == Role::Coefficient && options.cell_values.contains(&f.name));
    given.map(|(k, _)| k).collect()
}

/// Rows and columns of the matrix of an entity.
pub(super) fn matrix_extents(
    form: &TabulatedForm,
    output: usize,
    entities: Entities,
) -> impl Iterator<Item = usize> {
    let sides = entities.sides().len();
    form.outputs[output].spaces.iter().map(move |s| sides * form.spaces[*s].columns * form.spaces[*s].block)
}
