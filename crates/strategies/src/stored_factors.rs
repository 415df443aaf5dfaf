//! Factors at quadrature points that depend on the mesh alone, as inputs.

use super::factorised_cells::{FactorisedCells, tensor_dimension};
use super::factorised_lines::{FactorCopy, FactorisedLines};
use super::factorised_planes::FactorisedPlanes;
use super::modes::with_modes;
use super::single_cell::ConstantCells;
use super::words_in_registers;
use crate::strategy::mapping::Mapping;
use crate::strategy::{Arguments, Combinator, Needs, Question, Stopped, Strategy, Work};
use kingpost_forms::CellKernel;
use kingpost_forms::program::{Block, CellProgram, NotAnAction, stage};
use kingpost_ir::{Direction, Insn, Kernel, VarId, VarKind, Variable};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{CollectFactors, Hoist, PassValues, RemoveUnusedVars};
use kingpost_primitives::schedule::Array;
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Passes what multiplies the values of functions at each point: geometry, weights and the
/// derivatives of the integrand, which are computed from the mesh once for all launches.
///
/// A mass operator has one such factor a point, a Laplace operator on a cube six: equal ones are one.
///
/// # Rewrite
/// ```text
/// for q in 0..Q                                =>   for q in 0..Q
///   x0_q += phi_p1_d0[q, j]*x_cell[j, 0]
///   g = inv_00*u_d0 + inv_10*u_d1
///   e0 = weights[q]*abs_det*(inv_00*g + …)            e0 = e0_u_d0[cell, q]*u_d0 + e0_u_d1[cell, q]*u_d1
/// ```
/// The recipe's [`Recipe::definitions`](kingpost_primitives::Recipe::definitions) are the kernels
/// that compute the factors. Where these depend on constants of the form, the definitions take
/// those, and have to run again for others.
///
/// Where the map of a cell has one derivative, as on simplices, [`store_cell_values`] passes what is
/// the same at all points of a cell.
///
/// # Shapes and units
/// Each factor is an input `[cells, points]`; on simplices `[cells]`.
///
/// # Errors
/// An integrand that is not linear in the values of functions, or a factor that depends on more than
/// the coordinates of the mesh and constants: a step that was refused.
///
/// # Source
/// Świrydowicz et al. 2019, §2 (the factors of BP3.5); Fischer et al. 2020.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFactors {}

impl fmt::Display for StoredFactors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stored factors")
    }
}

impl Arguments for StoredFactors {
    const NAME: &'static str = "stored_factors";
    const SUMMARY: &'static str = "Factors at points that depend on the mesh alone are inputs.";
}

impl Combinator for StoredFactors {
    fn apply(&self, on: &mut Work<'_>, then: &Mapping) -> Result<(), Stopped> {
        let form = on.form();
        store(on.schedule(), form.kernel(), &*form.program()?)?;
        on.go_on(then)
    }

    fn needs(&self) -> Needs {
        Needs { setup: true, ..Needs::default() }
    }

    fn candidates(question: &Question<'_>) -> Vec<Mapping> {
        let mut found = Vec::new();
        if has_few_factors(question.form) {
            let cells = FactorisedCells::candidates(question).into_iter().map(Mapping::from);
            let planes = FactorisedPlanes::candidates(question).into_iter().map(Mapping::from);
            let lines = FactorisedLines::candidates(question);
            let copied = lines.iter().filter(|lines| !lines.literal_tables).flat_map(|lines| {
                let copies = [FactorCopy::Private, FactorCopy::Local];
                copies.map(|copy| FactorisedLines { factors: Some(copy), ..*lines })
            });
            let lines = lines.iter().copied().chain(copied).map(Mapping::from);
            found.extend(cells.chain(planes).chain(lines).map(Mapping::with_stored_factors));
        }
        found.extend(of_few_dofs(question).filter(|_| question.is_card));
        found
    }
}

impl Mapping {
    /// The same with factors that are stored.
    #[must_use]
    pub fn with_stored_factors(self) -> Self {
        StoredFactors {}.before(self)
    }
}

/// Most factors of a point that are stored: six are those of a Laplace operator, and elasticity has
/// some forty.
const MOST_FACTORS: usize = 10;

/// Whether sums are axis by axis, and what multiplies the values of functions at a point are few numbers
/// that depend on the mesh alone.
fn has_few_factors(form: &dyn CellKernel) -> bool {
    let factors = |program: &CellProgram| stored_factor_count(form.kernel(), program);
    let count = || form.program().ok().and_then(|program| factors(&program));
    tensor_dimension(form.kernel()).is_some() && count().is_some_and(|count| count <= MOST_FACTORS)
}

/// Fewest degrees of freedom, read and added to, for which gather and scatter along them pay: 8, of
/// scalars on 3-D P1, take 35 µs so and 26 µs where each cell has its own (H200, 2026-11-23).
pub const STAGED_WORDS: i64 = 12;

/// One cell a work-item with stored geometry, where cells have so few degrees of freedom that each
/// gathers its own: the map to vertices and their coordinates then are most of what is read.
fn of_few_dofs(question: &Question<'_>) -> Option<Mapping> {
    let few = words_in_registers(question.form).is_some_and(|words| words < STAGED_WORDS);
    let simplex = few && tensor_dimension(question.form.kernel()).is_none();
    let mapping = simplex.then(|| Mapping::from(ConstantCells { cells: 128 }).with_stored_factors())?;
    let over_modes = with_modes(question.form).is_some_and(|(_, products)| products.is_le());
    Some(if over_modes { mapping.with_modes() } else { mapping })
}

/// The steps.
fn store(s: &mut Schedule, kernel: &Kernel, program: &CellProgram) -> Result<(), Stopped> {
    let vertices = vertex_inputs(kernel);
    let of_vertices = |g: &Geometry| vertices.is_empty() || g.inputs.iter().all(|i| vertices.contains(i));
    let Some(geometry) = geometry(kernel, program).filter(of_vertices) else {
        if vertices.is_empty() {
            let found = "it gathers no coordinates of vertices, on which factors would depend".into();
            return Err(NotAnAction { kernel: kernel.name.clone(), found }.into());
        }
        return Ok(store_cell_values(s, program)?);
    };
    let mut factors = Vec::new();
    for block in &program.blocks {
        let unknown = block.evaluations.iter().filter(|e| !e.inputs.contains(&geometry.gather));
        let scalars: Vec<&Array> = unknown.flat_map(|e| &e.outputs).collect();
        let setters = setters(s.kernel(), block);
        let made = s.apply(CollectFactors::new(setters, scalars.iter().map(|a| a.name())))?;
        for factor in &made.arrays {
            s.expand(factor, [program.cells.cell.name(), block.quad.name()])?;
        }
        factors.extend(made.arrays);
    }
    Ok(pass(s, &factors, geometry.inputs.iter().cloned())?)
}

/// Passes what depends on the mesh alone and is the same at all points of a cell: the factors of the
/// values of functions, where these are as few as the geometry that the integrand reads and do not
/// change with the point, else that geometry.
///
/// # Rewrite
/// ```text
/// for cell in 0..n_cells                    =>  for cell in 0..n_cells
///   x_cell[k, 0] = coords[vertices[cell, k], 0]   for q in 0..m
///   inv_00 = …                                      u_d0 += phi_d0[q, j]*u_cell[j]
///   for q in 0..m                                   e0 = e0_u_d0[cell]*u_d0
///     u_d0 += phi_d0[q, j]*u_cell[j]
///     e0 = abs_det*inv_00*inv_00*u_d0
/// ```
///
/// # Shapes and units
/// Each value is an input `[cells]`.
///
/// # Errors
/// Steps that were refused.
pub(super) fn store_cell_values(s: &mut Schedule, program: &CellProgram) -> Result<(), TransformError> {
    let inputs = vertex_inputs(s.kernel());
    let before = s.clone();
    let values = match factors_of_cells(s, program) {
        Ok(factors) if factors.len() <= program.per_cell.len() => factors,
        Ok(_) | Err(_) => {
            *s = before;
            program.per_cell.clone()
        }
    };
    for value in &values {
        s.expand(value, [program.cells.cell.name()])?;
    }
    pass(s, &values, inputs)
}

/// The factors of the values of functions, computed before the loops over points.
fn factors_of_cells(s: &mut Schedule, program: &CellProgram) -> Result<Vec<Array>, TransformError> {
    let mut factors = Vec::new();
    for block in &program.blocks {
        for insn in &block.pointwise {
            // refused where it depends on the point or on the values of functions there
            s.attempt(Hoist::new([insn.name()]))?;
        }
        let scalars: Vec<&Array> = block.evaluations.iter().flat_map(|e| &e.outputs).collect();
        let setters = setters(s.kernel(), block);
        let made = s.apply(CollectFactors::new(setters, scalars.iter().map(|a| a.name())))?;
        for insn in &made.insns {
            s.apply(Hoist::new([insn]))?;
        }
        factors.extend(made.arrays);
    }
    Ok(factors)
}

/// The instructions of the pointwise group that set what products multiply bases by.
fn setters(kernel: &Kernel, block: &Block) -> Vec<String> {
    let sets = |name: &str| {
        let written = kernel.insn(name).map(|i| kernel.insns[i].lhs.var);
        written.is_some_and(|v| block.factors.iter().any(|f| f.name() == kernel.vars[v].name))
    };
    block.pointwise.iter().map(|i| i.name()).filter(|name| sets(name)).map(String::from).collect()
}

/// Passes values that depend on inputs and constants of the form.
fn pass(
    s: &mut Schedule,
    values: &[Array],
    inputs: impl IntoIterator<Item = String>,
) -> Result<(), TransformError> {
    let is_constant =
        |v: &&Variable| v.kind == VarKind::Argument(Direction::In) && v.shape.is_empty() && v.ty.is_real();
    let constants: Vec<String> =
        s.kernel().vars.values().filter(is_constant).map(|v| v.name.clone()).collect();
    s.apply(PassValues::new(values, inputs.into_iter().chain(constants)))?;
    s.apply(RemoveUnusedVars {}).map(drop)
}

/// The inputs that the gather of the vertices of a cell reads: their coordinates and the map to them.
fn vertex_inputs(kernel: &Kernel) -> Vec<String> {
    let vertices = [stage::GATHER, "of_x"];
    let of_vertices = |insn: &&Insn| vertices.iter().all(|tag| insn.tags.contains(*tag));
    let read = kernel.insns.values().filter(of_vertices).flat_map(|insn| insn.reads());
    let read: BTreeSet<VarId> = read.map(|access| access.var).collect();
    let inputs = read.into_iter().filter(|v| kernel.vars[*v].kind == VarKind::Argument(Direction::In));
    inputs.map(|v| kernel.vars[v].name.clone()).collect()
}

/// The number of factors that [`StoredFactors`] passes; none where it is refused.
fn stored_factor_count(kernel: &Kernel, program: &CellProgram) -> Option<usize> {
    let mut s = Schedule::of(kernel);
    store(&mut s, kernel, program).ok()?;
    let passed = s.recipe().steps.iter().filter_map(|step| step.get::<PassValues>());
    Some(passed.map(|pass| pass.vars.len()).sum())
}

/// The gather of the coordinates of vertices, and the inputs that it reads.
struct Geometry {
    gather: usize,
    inputs: Vec<String>,
}

/// Coordinates stand before the functions of a form.
fn geometry(kernel: &Kernel, program: &CellProgram) -> Option<Geometry> {
    let inputs = |gather: usize| -> BTreeSet<VarId> {
        let insns = program.gathers[gather].insns.iter().filter_map(|i| kernel.insn(i.name()));
        let read = insns.flat_map(|i| kernel.insns[i].reads().into_iter().map(|a| a.var).collect::<Vec<_>>());
        read.filter(|v| kernel.vars[*v].kind == VarKind::Argument(Direction::In)).collect()
    };
    let first = (0..program.gathers.len()).min_by_key(|g| inputs(*g).first().copied())?;
    // a form without geometry at points has no gather of its own for it
    let is_geometry = program.gathers[first].components.is_some();
    let inputs = inputs(first).into_iter().map(|v| kernel.vars[v].name.clone()).collect();
    is_geometry.then_some(Geometry { gather: first, inputs })
}
