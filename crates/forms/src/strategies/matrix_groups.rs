//! Sixteen cells a group and a sub-group for each component, by matrix instructions.

use super::blocks::{behind, gathers_first, statements, written};
use super::cell_groups::cell_groups;
use super::fragments::{Axes, CELLS, Nest, TILE, exactly, fragment, lay_out, lay_out_table, product, tiled};
use super::modes::factor;
use super::single_cell::make_atomic;
use super::staging::{CellNest, Staged, deal, roll_gathers, stage_results};
use super::{StrategyError, applied};
use crate::program::{Block, CellProgram, Evaluation, Gather, NotAnAction, Products};
use purlin_ir::{AddressSpace, AxisTag, Expr, Kernel};
use purlin_transforms::intrinsics::MMA_M16N8K8_F64;
use purlin_transforms::primitives::{
    AliasStorage, ContractArray, DeclareCallee, JoinArrays, MoveInsns, PadInames, PrefetchArray,
    ReplaceWithIntrinsic, SetAddressSpace, SetResidentGroups, SplitIname, SplitLives, Tail,
};
use purlin_transforms::schedule::{Array, Loop};
use purlin_transforms::{Recipe, Schedule, TransformError};

/// What the arrays of cells that fill no block end with.
const REST: &str = "rest";

/// Statements that do the same for one component after the other, with one table.
pub(super) struct Components {
    pub(super) insns: Vec<String>,
    /// Values at a point, or factors, one a component.
    pub(super) scalars: Vec<Array>,
}

/// A function with its tables.
pub(super) struct Evaluated<'p> {
    pub(super) evaluation: &'p Evaluation,
    pub(super) of_tables: Vec<Components>,
}

/// A quadrature loop.
pub(super) struct Quadrature<'p> {
    pub(super) block: &'p Block,
    pub(super) evaluated: Vec<Evaluated<'p>>,
    pub(super) products: &'p Products,
    pub(super) of_tables: Vec<Components>,
}

/// What the strategy takes of a cell program: functions and a result with as many components and
/// degrees of freedom.
pub(super) struct Parts<'p> {
    pub(super) gathers: Vec<&'p Gather>,
    pub(super) components: i64,
    /// Degrees of freedom of a component.
    pub(super) count: i64,
    pub(super) blocks: Vec<Quadrature<'p>>,
}

impl<'p> Parts<'p> {
    pub(super) fn of(kernel: &Kernel, program: &'p CellProgram) -> Result<Self, NotAnAction> {
        let refuse = |found: &str| {
            let found = format!("{found}; the strategies `straight_cells` and `staged_tiling` take it");
            NotAnAction { kernel: kernel.name.clone(), found }
        };
        let tiled = program.tiled(kernel)?;
        let (components, count) = (tiled.element.components, tiled.element.count);
        if components < 2 {
            return Err(refuse("the result has no components, which `matrix_cells` is for"));
        }
        let gathers: Vec<&Gather> = program.evaluated().into_iter().map(|k| &program.gathers[k]).collect();
        if gathers.is_empty() || gathers.iter().any(|g| (g.components, g.count) != (Some(components), count))
        {
            return Err(refuse("a function has not the components and degrees of freedom of the result"));
        }
        let by_table = |insns: Vec<String>, tables: &[Array], vector: &Array, is_sum: bool| {
            let found = tables.iter().map(|table| of_table(kernel, &insns, table, vector, is_sum));
            let found: Option<Vec<_>> = found.collect();
            found
                .filter(|all| all.iter().all(|c| c.insns.len() as i64 == components))
                .ok_or_else(|| refuse("a table does not multiply all components"))
        };
        let mut blocks = Vec::new();
        for (block, products) in program.blocks.iter().zip(&tiled.products) {
            if block.pointwise.is_empty() || block.evaluations.is_empty() {
                return Err(refuse("a quadrature loop has no evaluation or no pointwise group"));
            }
            let mut evaluated = Vec::new();
            for e in &block.evaluations {
                let [only] = e.inputs[..] else {
                    return Err(refuse("one loop evaluates several functions"));
                };
                let array = &program.gathers[only].array;
                let insns = statements(kernel, e.dofs.name());
                evaluated
                    .push(Evaluated { evaluation: e, of_tables: by_table(insns, &e.tables, array, false)? });
            }
            let insns = products.insns.iter().map(String::from).collect();
            let of_tables = by_table(insns, &products.tables, &tiled.element.array, true)?;
            blocks.push(Quadrature { block, evaluated, products, of_tables });
        }
        Ok(Self { gathers, components, count, blocks })
    }
}

/// The statements that multiply a table, in order of the components of the vector that they read or
/// add to, with what else they add to or read.
fn of_table(
    kernel: &Kernel,
    insns: &[String],
    table: &Array,
    vector: &Array,
    is_sum: bool,
) -> Option<Components> {
    let (table, vector) = (kernel.var(table.name())?, kernel.var(vector.name())?);
    let mut found = Vec::new();
    for name in insns {
        let insn = &kernel.insns[kernel.insn(name)?];
        let reads = insn.reads();
        if !reads.iter().any(|a| a.var == table) {
            continue;
        }
        let own = if is_sum { &insn.lhs } else { *reads.iter().find(|a| a.var == vector)? };
        let scalar = match is_sum {
            false => insn.lhs.var,
            true => reads.iter().find(|a| a.var != table && a.var != vector)?.var,
        };
        let Some(Expr::Int(component)) = own.index.get(1) else { return None };
        found.push((*component, name.clone(), Array::named(&kernel.vars[scalar].name)));
    }
    found.sort();
    let in_order = found.iter().enumerate().all(|(k, (component, ..))| *component == k as i64);
    let (insns, scalars) = found.into_iter().map(|(_, insn, scalar)| (insn, scalar)).unzip();
    in_order.then_some(Components { insns, scalars })
}

/// Arguments of [`matrix_groups`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MatrixGroups {
    /// Work-groups that a compute unit shall have registers for.
    pub resident_groups: Option<u32>,
}

/// Maps sixteen cells to a group, of which each sub-group multiplies one component by tables with
/// matrix instructions: modes or points times degrees of freedom by cells.
///
/// Degrees of freedom, values at points and the factors of the products are in local memory as
/// fragments lie; what a component adds to the result stays in the registers of its sub-group.
/// Pointwise groups are dealt out to all work-items. Sums run over
/// [modes](super::factored_quadrature) where the integrand is linear. Cells that fill no block are
/// mapped to a group each.
///
/// # Rewrite
/// ```text
/// for q in 0..m                        =>  for q_tile in 0..ceil(m/8)
///   for j in 0..n                            for c in 0..3 {l.1}
///     e0 += phi[q, j]*u[j, 0]                  for j_tile in 0..ceil(n/8) {unroll}
///     ...                                        call mma  # e[c] of 16 cells and 8 points
///   f0 = g(e0, e1, e2)                       f = g(e), points and cells by work-items
///   ...                                      for c in 0..3 {l.1}
///   for i in 0..n                              for i_tile in 0..ceil(n/8) {unroll}
///     y[i, 0] += phi[q, i]*f0                    call mma  # y[c] of 16 cells and 8 rows
///     ...
/// ```
///
/// # Errors
/// Functions without components, or with others than the result; tables that multiply some components
/// only; a step that was refused.
pub fn matrix_groups(
    kernel: &Kernel,
    program: &CellProgram,
    args: &MatrixGroups,
) -> Result<(Kernel, Recipe), StrategyError> {
    let (kernel, modes) = match applied(kernel, |s| factor(s, program, TILE as u32)) {
        Ok(found) => found,
        Err(_) => (kernel.clone(), Recipe::default()),
    };
    let program = CellProgram::read(&kernel)?;
    let parts = Parts::of(&kernel, &program)?;
    let map = |s: &mut Schedule| {
        Strategy { program: &program, parts: &parts }.map(s)?;
        args.resident_groups.map_or(Ok(()), |groups| s.apply(SetResidentGroups::new(groups)).map(drop))
    };
    match applied(&kernel, map) {
        Ok((kernel, rest)) => Ok((kernel, modes.followed_by(rest))),
        Err(error) => Err(error.behind(modes)),
    }
}

/// Degrees of freedom of a component of what [`matrix_groups`] can map.
#[must_use]
pub fn matrix_group_dofs(kernel: &Kernel, program: &CellProgram) -> Option<i64> {
    Parts::of(kernel, program).ok().map(|parts| parts.count)
}

struct Strategy<'a> {
    program: &'a CellProgram,
    parts: &'a Parts<'a>,
}

/// Loops over components, and arrays of all components.
struct Rolled {
    /// One for each gather of the program.
    gathers: Vec<Option<Loop>>,
    zero: Loop,
    store: Loop,
    blocks: Vec<RolledBlock>,
}

/// Those of a quadrature loop.
struct RolledBlock {
    init: Loop,
    /// One for each function, and its values by table.
    evaluate: Vec<(Loop, Vec<Array>)>,
    multiply: Loop,
    /// By table.
    factors: Vec<Array>,
}

impl RolledBlock {
    fn values(&self) -> impl Iterator<Item = &Array> {
        self.evaluate.iter().flat_map(|(_, values)| values)
    }
}

/// Loops over the cells of a block around what is not multiplied.
struct Ends<'a> {
    gather: &'a Loop,
    geometry: &'a Loop,
    commit: &'a Loop,
    staged: &'a Staged,
    rest: Option<&'a Loop>,
}

impl Strategy<'_> {
    fn map(&self, s: &mut Schedule) -> Result<(), TransformError> {
        let (program, parts) = (self.program, self.parts);
        let result = &program.results[0];
        let [block, cell] = s.make(SplitIname {
            outer: Some(s.fresh("cell_block")),
            inner: Some(s.fresh("cell_gather")),
            ..SplitIname::new(&program.cells.cell, CELLS).with_tail(Tail::Peel)
        })?;
        let rest = behind(s.kernel(), block.name());
        if let Some(rest) = &rest {
            s.apply(SplitLives::new(rest, REST))?;
        }
        let staged = stage_results(s, &result.commits, &result.scatter, None, "commit_dof")?;
        let components = self.roll(s)?;
        self.pad(s, &components)?;

        // loops over the cells of a block: for the gather, the geometry, the products, the scatter
        let order = gathers_first(s, &cell, program)?;
        let gathered = parts.gathers.iter().map(|g| &g.array);
        for array in gathered.chain([&staged.array, &result.array]).chain(&program.per_cell) {
            s.expand(array, [&cell])?;
        }
        let quads = parts.blocks.iter().map(|q| String::from(&q.block.quad));
        let starts = [order.first, String::from(&result.zero)].into_iter().chain(quads);
        let starts = starts.chain([String::from(&result.scatter), String::from(&staged.rows)]);
        let mut stems = vec!["cell_geometry", "cell_zero"];
        stems.extend(parts.blocks.iter().map(|_| "cell_points"));
        stems.extend(["cell_store", "cell_commit"]);
        let mut cells = s.distribute_as(&cell, starts, &stems)?;
        let [store, commit] = exactly(cells.split_off(cells.len() - 2), "store and commit")?;
        let points = cells.split_off(2);
        let [geometry, zero] = exactly(cells, "geometry and zeros")?;

        let mut axes = Axes::default();
        axes.sub_groups.extend([&components.zero, &components.store].map(Clone::clone));
        for (cells, columns, component) in
            [(zero, &result.zero, &components.zero), (store, &result.scatter, &components.store)]
        {
            s.reorder([component, &cells, columns])?;
            axes.add(fragment(s, &Nest { cells, columns: columns.clone() }, true)?);
        }
        for ((quadrature, of_block), cells) in parts.blocks.iter().zip(&components.blocks).zip(&points) {
            self.products(s, quadrature, of_block, cells, &mut axes)?;
        }
        let rest = rest.as_ref();
        let ends = Ends { gather: &cell, geometry: &geometry, commit: &commit, staged: &staged, rest };
        self.ends(s, &ends, &components, &mut axes)?;
        self.place(s, &ends, &block, &axes)
    }

    /// A loop over components for each of what is done to one after the other.
    fn roll(&self, s: &mut Schedule) -> Result<Rolled, TransformError> {
        let result = &self.program.results[0];
        let gathers = roll_gathers(s, self.program)?;
        let zeros = statements(s.kernel(), result.zero.name());
        let zero = s.roll(zeros, "component_zero")?;
        let stores = statements(s.kernel(), result.scatter.name());
        let store = s.roll(stores, "component_store")?;
        let blocks = self.parts.blocks.iter().map(|q| roll_block(s, q)).collect::<Result<_, _>>()?;
        Ok(Rolled { gathers, zero, store, blocks })
    }

    /// Points and degrees of freedom in full tiles.
    fn pad(&self, s: &mut Schedule, rolled: &Rolled) -> Result<(), TransformError> {
        let parts = self.parts;
        for (Quadrature { block, .. }, of_block) in parts.blocks.iter().zip(&rolled.blocks) {
            if block.points % TILE == 0 {
                continue;
            }
            // what a point computes gets elements, too: sums and products are then zeros without conditions
            let written = block.pointwise.iter().filter_map(|insn| written(s.kernel(), insn.name()));
            let mut arrays: Vec<Array> = of_block.values().chain(&of_block.factors).cloned().collect();
            for array in written {
                if !arrays.contains(&array) {
                    arrays.push(array);
                }
            }
            for array in &arrays {
                s.expand(array, [&block.quad])?;
            }
            s.apply(PadInames::new([&block.quad], tiled(block.points)))?;
            for array in &arrays {
                s.apply(ContractArray::new(array, 0))?;
            }
        }
        if parts.count % TILE == 0 {
            return Ok(());
        }
        let result = &self.program.results[0];
        let rows = parts.blocks.iter().map(|q| &q.products.rows);
        let evaluated = parts.blocks.iter().flat_map(|q| &q.evaluated).map(|e| &e.evaluation.dofs);
        let gathered = parts.gathers.iter().map(|g| &g.dofs);
        let all = gathered.chain([&result.zero, &result.scatter]).chain(rows).chain(evaluated);
        s.apply(PadInames::new(all, tiled(parts.count))).map(drop)
    }

    /// A quadrature loop in tiles of points: evaluations and products by instructions, between them
    /// the pointwise group by all work-items.
    fn products(
        &self,
        s: &mut Schedule,
        quadrature: &Quadrature<'_>,
        rolled: &RolledBlock,
        cells: &Loop,
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        let Quadrature { block, evaluated, products, of_tables } = quadrature;
        let [tile, point] = s.split_as(&block.quad, TILE, ["point_tile", "point_init"])?;
        for array in rolled.values().chain(&rolled.factors) {
            s.expand(array, [cells, &point])?;
        }
        s.interchange(cells, &tile)?;
        let starts: Vec<String> = evaluated
            .iter()
            .map(|e| String::from(&e.evaluation.dofs))
            .chain(block.pointwise.first().map(String::from))
            .chain([String::from(&products.rows)])
            .collect();
        let stems = |of: &str| {
            let ends = evaluated.iter().map(|_| "evaluate").chain(["values", "multiply"]);
            ends.map(|end| format!("{of}_{end}")).collect::<Vec<_>>()
        };
        let [of_points, of_cells] = ["point", "cell"].map(stems);
        let points = s.distribute_as(&point, starts.clone(), &refs(&of_points))?;
        let around = s.distribute_as(cells, starts, &refs(&of_cells))?;
        let mut nests: Vec<Nest> =
            around.into_iter().zip(points).map(|(cells, columns)| Nest { cells, columns }).collect();
        let [values, multiply] = exactly(nests.split_off(evaluated.len()), "points and products")?;

        s.reorder([&rolled.init, cells, &point])?;
        axes.sub_groups.push(rolled.init.clone());
        axes.add(fragment(s, &Nest { cells: cells.clone(), columns: point }, false)?);
        let mut calls = Vec::new();
        for ((e, (component, _)), nest) in evaluated.iter().zip(&rolled.evaluate).zip(&nests) {
            let dofs = &e.evaluation.dofs;
            s.reorder([component, &nest.cells, &nest.columns, dofs])?;
            axes.sub_groups.push(component.clone());
            calls.push((product(s, &nest.cells, &nest.columns, dofs, true)?, first_insns(&e.of_tables)));
        }
        let copies = self.points(s, &values, rolled, axes)?;
        let Nest { cells, columns } = &multiply;
        s.reorder([&rolled.multiply, cells, columns, &products.rows])?;
        axes.sub_groups.push(rolled.multiply.clone());
        calls.push((product(s, cells, &products.rows, columns, false)?, first_insns(of_tables)));
        for array in rolled.values() {
            lay_out(s, array, false, true)?;
            axes.fragments.push(array.clone());
        }
        for array in copies.iter().chain(&rolled.factors) {
            lay_out(s, array, false, false)?;
            axes.local.push(array.clone());
        }
        for table in &products.tables {
            if !axes.tables.contains(table) {
                lay_out_table(s, table, 0)?;
                axes.tables.push(table.clone());
            }
        }
        for (nest, insns) in calls {
            nest.to_calls(s, &insns, axes)?;
        }
        Ok(())
    }

    /// The pointwise group: each sub-group stores the values of its component, and pairs of points and
    /// cells are dealt out to all. Returns what is stored.
    fn points(
        &self,
        s: &mut Schedule,
        nest: &Nest,
        rolled: &RolledBlock,
        axes: &mut Axes,
    ) -> Result<Vec<Array>, TransformError> {
        let [once, cells] = s.split_as(&nest.cells, CELLS, ["values_once", "cell_pair"])?;
        let mut copies = Vec::new();
        for array in rolled.values() {
            let fetch = PrefetchArray::new(array, &once, AddressSpace::Private);
            let (copy, loops) = s.prefetch_as(fetch, &format!("{array}_all"))?;
            let [cells, columns, component] = exactly(loops, "values at points")?;
            s.reorder([&component, &cells, &columns])?;
            axes.sub_groups.push(component);
            axes.add(fragment(s, &Nest { cells, columns }, false)?);
            copies.push(copy);
        }
        let pairs = fragment(s, &Nest { cells, columns: nest.columns.clone() }, false)?;
        axes.items.push(pairs.lanes);
        let [half, part] = exactly(pairs.own, "pairs")?;
        let own = s.join(&half, &part)?;
        let [_, sub_group] = s.split_as(&own, self.parts.components, ["pair_round", "pair_sub_group"])?;
        axes.sub_groups.push(sub_group);
        axes.unrolled.push(once);
        Ok(copies)
    }

    /// Both ends by all work-items, one degree of freedom after the other; the geometry by one work-item
    /// a cell; what fills no block.
    fn ends(
        &self,
        s: &mut Schedule,
        ends: &Ends<'_>,
        rolled: &Rolled,
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        let (program, parts) = (self.program, self.parts);
        let result = &program.results[0];
        let items = [32, parts.components];
        let mut around = vec![ends.gather.clone()];
        let order: Vec<usize> = program.evaluated();
        let others: Vec<String> =
            order.iter().skip(1).map(|k| String::from(&program.gathers[*k].dofs)).collect();
        if !others.is_empty() {
            let stems: Vec<&str> = others.iter().map(|_| "cell_gather").collect();
            around.extend(s.distribute_as(ends.gather, others, &stems)?);
        }
        let mut dealt = Vec::new();
        for (k, cells) in order.iter().zip(&around) {
            let (g, component) = (&program.gathers[*k], rolled.gathers[*k].as_ref());
            let shape = [tiled(parts.count), parts.components];
            let nest = CellNest { array: &g.array, cells, rows: &g.dofs, component, shape };
            dealt.push(deal(s, &nest, g.dofs.name(), items)?);
        }
        dealt.push(deal(s, &ends.staged.nest(ends.commit, result.count), "commit", items)?);
        make_atomic(s, std::slice::from_ref(&ends.staged.commit))?;
        axes.items.push(ends.geometry.clone());
        if let Some(rest) = ends.rest {
            let lanes = cell_groups(s, program, rest, REST, parts.components.unsigned_abs())?;
            axes.items.extend(lanes.items);
            axes.sub_groups.extend(lanes.sub_groups);
        }
        for flat in dealt {
            if flat.has_few_rounds(CELLS, items) {
                axes.unrolled.push(flat.round);
            }
            let mut items = flat.items.into_iter();
            axes.items.extend(items.next());
            axes.sub_groups.extend(items);
        }
        let wide = parts.gathers.iter().map(|g| &g.array).chain([&ends.staged.array]);
        for array in wide {
            lay_out(s, array, true, false)?;
            axes.local.push(array.clone());
        }
        lay_out(s, &result.array, true, true)?;
        axes.fragments.push(result.array.clone());
        Ok(())
    }

    /// Loops to work-items, arrays to memory, products to instructions.
    fn place(
        &self,
        s: &mut Schedule,
        ends: &Ends<'_>,
        block: &Loop,
        axes: &Axes,
    ) -> Result<(), TransformError> {
        for array in axes.local.iter().chain(&self.program.per_cell).chain(&axes.fragments) {
            s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
        }
        s.tag(block, AxisTag::Group(0))?;
        s.tag_all(&axes.items, AxisTag::Local(0))?;
        for array in &axes.fragments {
            s.apply(SetAddressSpace::new(array, AddressSpace::SubGroup))?;
        }
        s.tag_all(&axes.sub_groups, AxisTag::Local(1))?;
        let vars = self.parts.gathers.iter().take(1).map(|g| &g.array).chain([&ends.staged.array]);
        s.apply(AliasStorage { vars: vars.map(String::from).collect(), storage: s.fresh("cell_values") })?;
        s.apply(DeclareCallee::new(MMA_M16N8K8_F64))?;
        for call in &axes.calls {
            s.apply(ReplaceWithIntrinsic::new([call], "mma_m16n8k8_f64"))?;
        }
        s.tag_all(&axes.unrolled, AxisTag::Unrolled)
    }
}

fn refs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// The statement that is left of each group when its components are in a loop.
fn first_insns(of_tables: &[Components]) -> Vec<String> {
    of_tables.iter().filter_map(|c| c.insns.first().cloned()).collect()
}

/// Loops over components in place of the statements of a quadrature loop.
fn roll_block(s: &mut Schedule, quadrature: &Quadrature<'_>) -> Result<RolledBlock, TransformError> {
    let Quadrature { evaluated, of_tables, .. } = quadrature;
    // what sets a value to zero stands in front of all evaluations, in the order of those
    let inits = |e: &Evaluated<'_>| {
        let kernel = s.kernel();
        let of = |array: &Array| {
            let mut inits = e.evaluation.inits.iter().map(String::from);
            inits.find(|i| {
                kernel.insn(i).is_some_and(|i| kernel.vars[kernel.insns[i].lhs.var].name == array.name())
            })
        };
        e.of_tables.iter().map(|c| c.scalars.iter().filter_map(of).collect()).collect::<Vec<Vec<String>>>()
    };
    let inits: Vec<Vec<String>> = evaluated.iter().flat_map(inits).collect();
    let late: Vec<String> =
        evaluated.iter().skip(1).flat_map(|e| e.evaluation.inits.iter().map(String::from)).collect();
    if let (Some(first), false) = (evaluated.first(), late.is_empty()) {
        s.apply(MoveInsns::before(&late, &first.evaluation.dofs))?;
    }
    let mut evaluate = Vec::new();
    for e in evaluated {
        let function = &e.evaluation.function;
        let stem = |c: &Components| {
            let first = c.scalars.first().map_or("", Array::name);
            first.replacen(&format!("{function}0"), function, 1)
        };
        evaluate.push(join(s, &e.of_tables, stem)?);
    }
    let factors = join(s, of_tables, |_| "factors".into())?;
    let init = roll_groups(s, &inits, "component_init")?;
    let insns = |of: &[Components]| of.iter().map(|c| c.insns.clone()).collect::<Vec<_>>();
    let rolled = evaluated.iter().map(|e| roll_groups(s, &insns(&e.of_tables), "component_evaluate"));
    let rolled = rolled.collect::<Result<Vec<_>, _>>()?;
    let multiply = roll_groups(s, &insns(of_tables), "component_multiply")?;
    Ok(RolledBlock { init, evaluate: rolled.into_iter().zip(evaluate).collect(), multiply, factors })
}

/// One array for the scalars of each group.
fn join(
    s: &mut Schedule,
    groups: &[Components],
    stem: impl Fn(&Components) -> String,
) -> Result<Vec<Array>, TransformError> {
    let mut all = Vec::new();
    for group in groups {
        let array = Array::named(s.fresh(&stem(group)));
        s.apply(JoinArrays::new(&group.scalars, &array, 0))?;
        all.push(array);
    }
    Ok(all)
}

/// One loop over components for neighbouring statements: each group is a statement in it.
fn roll_groups(s: &mut Schedule, groups: &[Vec<String>], stem: &str) -> Result<Loop, TransformError> {
    let schedule = s.kernel().schedule();
    let names = schedule.iter().map(|(insn, _)| &s.kernel().insns[*insn].name);
    let mut order: Vec<String> =
        names.filter(|name| groups.iter().flatten().any(|i| i == *name)).cloned().collect();
    for group in groups {
        let (own, others): (Vec<_>, Vec<_>) = order.iter().cloned().partition(|i| group.contains(i));
        let at = order.iter().position(|i| group.contains(i)).unwrap_or_default();
        if let Some(next) = order[at..].iter().find(|i| !group.contains(i)).cloned() {
            let late: Vec<&String> =
                order.iter().skip_while(|i| **i != next).filter(|i| own.contains(i)).collect();
            if !late.is_empty() {
                s.apply(MoveInsns::before(late, &next))?;
            }
        }
        order = others;
    }
    let mut all: Option<Loop> = None;
    for group in groups {
        let rolled = s.roll(group, stem)?;
        all = Some(match all {
            None => rolled,
            Some(first) => s.fuse(&first, &rolled)?,
        });
    }
    let [all] = exactly(all.into_iter().collect(), "components")?;
    Ok(all)
}
