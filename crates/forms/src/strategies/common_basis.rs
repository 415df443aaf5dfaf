//! One basis for the derivatives of functions along all directions.

use super::blocks::statements;
use super::component_products::{Components, Quadrature};
use super::fragments::exactly;
use super::staging::roll_gathers;
use crate::program::CellProgram;
use purlin_ir::Insn;
use purlin_primitives::ScheduleSteps;
use purlin_primitives::primitives::{
    ContractArray, CopyTable, FactorOut, FactorRank, HoistNest, JoinArrays, MoveInsns, RemoveUnusedVars,
};
use purlin_primitives::schedule::{Array, Loop};
use purlin_primitives::{Schedule, Selection, TransformError};

/// A nest over components, directions and modes.
#[derive(Clone)]
pub(super) struct Modal {
    pub(super) component: Loop,
    pub(super) direction: Loop,
    pub(super) mode: Loop,
}

impl Modal {
    /// Distributes the loops: the statement `at` and what follows get loops of their own.
    pub(super) fn cut(&self, s: &mut Schedule, at: &str, stem: &str) -> Result<Self, TransformError> {
        let mode = s.distribute_one(&self.mode, at, &format!("{stem}_mode"))?;
        let direction = s.distribute_one(&self.direction, &mode, &format!("{stem}_direction"))?;
        let component = s.distribute_one(&self.component, &direction, &format!("{stem}_component"))?;
        Ok(Self { component, direction, mode })
    }

    pub(super) fn outer(&self) -> [&Loop; 2] {
        [&self.component, &self.direction]
    }
}

/// Sums with a table of coefficients, and with the basis.
pub(super) struct Sums {
    /// Where the array of modes begins.
    pub(super) start: Modal,
    /// The sum over degrees of freedom, or over points.
    pub(super) sum: Modal,
    /// The loop over what is summed, if it is not that over points.
    pub(super) terms: Loop,
    pub(super) insn: String,
    /// The product with what was summed.
    pub(super) product: Modal,
    pub(super) whole: String,
    /// `[modes, components, directions]`.
    pub(super) modes: Array,
}

/// What the algebra leaves.
pub(super) struct Algebra {
    pub(super) basis: Array,
    /// For functions, and for the rows of the result.
    pub(super) coefficients: Array,
    pub(super) of_rows: Array,
    /// By function, with its values at points, `[components, directions]`.
    pub(super) functions: Vec<(Sums, Array)>,
    /// Their products with the basis.
    pub(super) evaluate: Modal,
    /// Start of the values at a point: over components and directions.
    pub(super) init: [Loop; 2],
    pub(super) result: Sums,
    pub(super) factors: Array,
    pub(super) gathers: Vec<Option<Loop>>,
    pub(super) zero: Loop,
    pub(super) store: Loop,
}

/// Replaces the tables of a quadrature loop by products with a basis of their columns
/// ([`FactorRank`]), and computes products with coefficients apart from those with the basis: of
/// functions before the loop, of the result after it. Numbers of modes are multiples of
/// `multiple`. What is outside the loop `block` keeps the tables.
pub(super) fn common_basis(
    s: &mut Schedule,
    program: &CellProgram,
    quadrature: &Quadrature<'_>,
    block: &Loop,
    multiple: u32,
) -> Result<Algebra, TransformError> {
    let Quadrature { evaluated, products, of_tables, .. } = quadrature;
    let mut tables = Vec::new();
    for table in &products.tables {
        let copy = s.fresh(table.name());
        let insns = [Selection::Inside(block.into()), Selection::Reads(table.into())];
        tables.push(s.make(CopyTable::new(table, Selection::All(insns.to_vec()), copy))?);
    }
    let factored = s.make(FactorRank::new(&tables).in_multiples_of(multiple))?;
    let mut modes = factored.loops;
    let [of_result] = exactly(s, modes.split_off(evaluated.len()), "modes of the result")?;

    let late: Vec<String> =
        evaluated.iter().skip(1).flat_map(|e| e.evaluation.inits.iter().map(String::from)).collect();
    if let (Some(first), false) = (evaluated.first(), late.is_empty()) {
        s.apply(MoveInsns::before(&late, &first.evaluation.dofs))?;
    }
    let (mut values, mut nests) = (Vec::new(), Vec::new());
    let mut init: Option<[Loop; 2]> = None;
    for e in evaluated {
        let inits = starts_of(s, &e.of_tables);
        let array = join(s, &e.of_tables, &format!("{}_values", e.evaluation.function))?;
        let [direction, component] = roll(s, &inits, "init")?;
        init = Some(match init.take() {
            None => [component, direction],
            Some([first_component, first]) => {
                let direction = s.fuse(&first, &direction)?;
                [s.fuse(&first_component, &component)?, direction]
            }
        });
        values.push(array);
        nests.push(roll(s, &insns_of(&e.of_tables), "evaluate")?);
    }
    let [init] = exactly(s, init.into_iter().collect(), "values at points")?;
    let factors = join(s, of_tables, "factors")?;
    let nest = roll(s, &insns_of(of_tables), "multiply")?;

    let mut functions = Vec::new();
    for (((e, [direction, component]), mode), values) in evaluated.iter().zip(nests).zip(modes).zip(values) {
        let nest = Modal { component, direction, mode };
        let insn = first_of(s, &e.of_tables)?;
        let sums = evaluation(s, &e.evaluation.dofs, nest, insn)?;
        s.apply(HoistNest::new([&sums.start.component, &sums.sum.component]))?;
        functions.push((sums, values));
    }
    let evaluate = fused(s, functions.iter().map(|(sums, _)| &sums.product))?;
    let [direction, component] = nest;
    let nest = Modal { component, direction, mode: of_result };
    let insn = first_of(s, of_tables)?;
    let result = sums_of_result(s, quadrature, nest, insn, &factors)?;
    s.apply(RemoveUnusedVars {})?;
    let gathers = roll_gathers(s, program)?;
    let of = &program.results[0];
    let zero = s.roll(statements(s.kernel(), of.zero.name()), "component_zero")?;
    let store = s.roll(statements(s.kernel(), of.scatter.name()), "component_store")?;
    let (basis, coefficients) = (factored.basis, factored.coefficients);
    let rows = s.fresh(&format!("{coefficients}_of_rows"));
    let of_rows = s.make(CopyTable::new(&coefficients, Selection::Insn(result.whole.clone()), rows))?;
    Ok(Algebra {
        basis,
        coefficients,
        of_rows,
        functions,
        evaluate,
        init,
        result,
        factors,
        gathers,
        zero,
        store,
    })
}

/// The coefficients of a function: sums over its degrees of freedom, before those over modes.
fn evaluation(s: &mut Schedule, dofs: &Loop, nest: Modal, insn: String) -> Result<Sums, TransformError> {
    let Modal { component, direction, mode } = &nest;
    s.reorder([component, direction, mode, dofs])?;
    let modes = Array::named(s.fresh(&format!("{dofs}_modes")));
    s.make(FactorOut::of_update(&insn, dofs).into_temporary(&modes))?;
    let whole = format!("{modes}_sum");
    s.expand(&modes, [mode, component, direction])?;
    let product = nest.cut(s, &whole, "evaluate")?;
    let sum = nest.cut(s, dofs.name(), "coefficients")?;
    Ok(Sums { start: nest, sum, terms: dofs.clone(), insn, product, whole, modes })
}

/// The sums over points of the result, before the products with coefficients.
fn sums_of_result(
    s: &mut Schedule,
    quadrature: &Quadrature<'_>,
    nest: Modal,
    insn: String,
    factors: &Array,
) -> Result<Sums, TransformError> {
    let (quad, rows) = (&quadrature.block.quad, &quadrature.products.rows);
    s.expand(factors, [quad])?;
    let sum = s.distribute_one(quad, rows, &format!("{quad}_sum"))?;
    let Modal { component, direction, mode } = &nest;
    s.reorder([component, direction, mode, rows, &sum])?;
    let modes = Array::named(s.fresh("result_modes"));
    s.make(FactorOut::of_update(&insn, &sum).into_temporary(&modes))?;
    let whole = format!("{modes}_sum");
    s.apply(HoistNest::new([format!("{modes}_init"), String::from(&sum)]))?;
    s.expand(&modes, [mode, component, direction])?;
    let product = nest.cut(s, rows.name(), "result")?;
    let summed = nest.cut(s, sum.name(), "multiply")?;
    s.reorder([&sum, &summed.component, &summed.direction, &summed.mode])?;
    s.apply(MoveInsns::before([component], quad))?;
    s.fuse(quad, &sum)?;
    s.apply(ContractArray::new(factors, 0))?;
    Ok(Sums { start: nest, sum: summed, terms: rows.clone(), insn, product, whole, modes })
}

/// One nest instead of several neighbours.
fn fused<'n>(s: &mut Schedule, nests: impl Iterator<Item = &'n Modal>) -> Result<Modal, TransformError> {
    let mut all: Option<Modal> = None;
    for nest in nests {
        all = Some(match all {
            None => nest.clone(),
            Some(first) => {
                let component = s.fuse(&first.component, &nest.component)?;
                let direction = s.fuse(&first.direction, &nest.direction)?;
                Modal { component, direction, mode: s.fuse(&first.mode, &nest.mode)? }
            }
        });
    }
    let [all] = exactly(s, all.into_iter().collect(), "products at points")?;
    Ok(all)
}

/// Statements by component, then by direction.
fn insns_of(of_tables: &[Components]) -> Vec<Vec<String>> {
    by_component(of_tables, |of, c| of.insns.get(c).cloned())
}

fn by_component<T>(of_tables: &[Components], at: impl Fn(&Components, usize) -> Option<T>) -> Vec<Vec<T>> {
    let components = of_tables.first().map_or(0, |of| of.insns.len());
    (0..components).map(|c| of_tables.iter().filter_map(|of| at(of, c)).collect()).collect()
}

/// The statement that is left of all.
fn first_of(s: &Schedule, of_tables: &[Components]) -> Result<String, TransformError> {
    s.expected(of_tables.first().and_then(|of| of.insns.first()).cloned(), "statement of a table")
}

/// The statements that start the values, by component, then by direction.
fn starts_of(s: &Schedule, of_tables: &[Components]) -> Vec<Vec<String>> {
    let kernel = s.kernel();
    let start = |of: &Components, c: usize| {
        let var = kernel.var(of.scalars.get(c)?.name())?;
        let is_start = |i: &&Insn| i.lhs.var == var && i.update_op().is_none();
        kernel.insns.values().find(is_start).map(|i| i.name.clone())
    };
    by_component(of_tables, start)
}

/// One array `[components, directions]` for scalars.
fn join(s: &mut Schedule, of_tables: &[Components], stem: &str) -> Result<Array, TransformError> {
    let mut arrays = Vec::new();
    for scalars in by_component(of_tables, |of, c| of.scalars.get(c).cloned()) {
        let array = Array::named(s.fresh(&format!("{stem}_directions")));
        s.apply(JoinArrays::new(&scalars, &array, 0))?;
        arrays.push(array);
    }
    let array = Array::named(s.fresh(stem));
    s.apply(JoinArrays::new(&arrays, &array, 0))?;
    Ok(array)
}

/// Loops over directions, and inside over components, instead of neighbouring statements by component
/// and direction.
fn roll(s: &mut Schedule, insns: &[Vec<String>], stem: &str) -> Result<[Loop; 2], TransformError> {
    let mut all: Option<Loop> = None;
    for of_component in insns {
        let rolled = s.roll(of_component, &format!("direction_{stem}"))?;
        all = Some(match all {
            None => rolled,
            Some(first) => s.fuse(&first, &rolled)?,
        });
    }
    let [direction] = exactly(s, all.into_iter().collect(), "directions")?;
    let firsts: Vec<String> = insns.iter().filter_map(|of| of.first().cloned()).collect();
    let component = s.roll(firsts, &format!("component_{stem}"))?;
    Ok([direction, component])
}
