//! Quadrature loops over functions with components: a sub-group for each component multiplies by
//! tables, and all work-items share the pointwise group.

use super::fragments::{Axes, Nest, Product, exactly, short_product};
use super::instruction::{CELLS, MatrixInstruction};
use super::instruction_loops::Kept;
use kingpost_forms::program::{Block, Evaluation, Products};
use kingpost_ir::{AddressSpace, Expr, Kernel, VarId};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{JoinArrays, MoveInsns, PrefetchArray};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};

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
    /// Tiles of points whose values are in local memory together.
    pub(super) tiles: i64,
    /// Degrees of freedom of a component, if the last ones are multiplied by instructions of half
    /// the length.
    pub(super) short: Option<i64>,
    /// If the sub-groups of a group share points and rows, how.
    pub(super) shared: Option<Shared>,
    /// By which tables are multiplied.
    pub(super) instruction: MatrixInstruction,
}

/// How the sub-groups of a group share a quadrature loop: each evaluates at a tile of points of its
/// own, for all components, and adds to rows of its own from the factors of all of them.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    pub(super) sub_groups: i64,
    /// Rows of the result that a sub-group has.
    pub(super) rows: i64,
}

impl Quadrature<'_> {
    /// Points that a group has at a time.
    pub(super) fn points_at_a_time(&self) -> i64 {
        self.instruction.tile() * self.tiles * self.shared.map_or(1, |shared| shared.sub_groups)
    }

    /// Whether these are several tiles.
    const fn is_wide(&self) -> bool {
        self.tiles > 1
    }

    /// Components of each function, and of the result.
    fn components(&self) -> i64 {
        self.of_tables.iter().map(|c| c.insns.len() as i64).fold(1, i64::max)
    }
}

/// The statements that multiply a table, in order of the components of the vector that they read or
/// add to, one of `vectors`, with what else they add to or read.
pub(super) fn of_table(
    kernel: &Kernel,
    insns: &[String],
    table: &Array,
    vectors: &[&Array],
    is_sum: bool,
) -> Option<Components> {
    let table = kernel.var(table.name())?;
    let vectors: Vec<VarId> = vectors.iter().filter_map(|v| kernel.var(v.name())).collect();
    let mut found = Vec::new();
    for name in insns {
        let insn = &kernel.insns[kernel.insn(name)?];
        let reads = insn.reads();
        if !reads.iter().any(|a| a.var == table) {
            continue;
        }
        let own = if is_sum { &insn.lhs } else { *reads.iter().find(|a| vectors.contains(&a.var))? };
        let scalar = match is_sum {
            false => insn.lhs.var,
            true => reads.iter().find(|a| a.var != table && !vectors.contains(&a.var))?.var,
        };
        let Some(Expr::Int(component)) = own.index.get(1) else { return None };
        found.push((*component, name.clone(), Array::named(&kernel.vars[scalar].name)));
    }
    found.sort();
    let in_order = found.iter().enumerate().all(|(k, (component, ..))| *component == k as i64);
    let (insns, scalars) = found.into_iter().map(|(_, insn, scalar)| (insn, scalar)).unzip();
    in_order.then_some(Components { insns, scalars })
}

/// Loops over components in a quadrature loop, and arrays of all components.
pub(super) struct RolledBlock {
    pub(super) init: Loop,
    /// One for each function, and its values by table.
    evaluate: Vec<(Loop, Vec<Array>)>,
    pub(super) multiply: Loop,
    /// By table.
    pub(super) factors: Vec<Array>,
}

impl RolledBlock {
    pub(super) fn values(&self) -> impl Iterator<Item = &Array> {
        self.evaluate.iter().flat_map(|(_, values)| values)
    }
}

/// A quadrature loop in tiles of points: evaluations and products by instructions, between them
/// the pointwise group by all work-items.
pub(super) fn products(
    s: &mut Schedule,
    quadrature: &Quadrature<'_>,
    rolled: &RolledBlock,
    cells: &Loop,
    axes: &mut Axes,
) -> Result<(), TransformError> {
    let Quadrature { block, evaluated, products, of_tables, instruction, .. } = quadrature;
    let wide = quadrature.is_wide();
    let [tile, mut point] =
        s.split_as(&block.quad, quadrature.points_at_a_time(), ["point_tile", "point_init"])?;
    let mut own_points = None;
    if quadrature.shared.is_some() {
        let [own, inner] = s.split_as(&point, instruction.tile(), ["point_sub_group", "point_own"])?;
        (own_points, point) = (Some(own), inner);
    }
    for array in rolled.values().chain(&rolled.factors) {
        own_points.iter().try_for_each(|own| s.expand(array, [own]).map(drop))?;
        s.expand(array, [cells, &point])?;
    }
    for outer in [&tile].into_iter().chain(&own_points) {
        s.interchange(cells, outer)?;
    }
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
    let [values, multiply] = exactly(s, nests.split_off(evaluated.len()), "points and products")?;

    s.reorder([&rolled.init, cells, &point])?;
    axes.add_components(&rolled.init);
    axes.add(instruction.rows(s, &Nest { cells: cells.clone(), columns: point }, wide)?);
    let mut calls = evaluations(s, quadrature, rolled, &nests, axes)?;
    let copies = at_points(s, &values, rolled, quadrature, axes)?;
    let (owner, rows) = own_rows(s, quadrature, own_points, &multiply, axes)?;
    let of_product = [&rolled.multiply, &multiply.cells, &multiply.columns, &rows];
    s.reorder(owner.iter().chain(of_product))?;
    axes.add_components(&rolled.multiply);
    let (part, columns) = tile_of_points(s, &multiply, wide, *instruction)?;
    let nest = instruction.transposed(s, &Nest { cells: multiply.cells.clone(), columns }, &rows)?;
    if axes.all_components {
        for inner in part.iter().chain(&nest.tiles) {
            s.interchange(&rolled.multiply, inner)?;
        }
    }
    axes.unrolled.extend(part);
    calls.push((nest, first_insns(of_tables)));
    let in_front = if quadrature.shared.is_some() { 2 } else { 1 };
    for array in rolled.values() {
        instruction.lay_out(s, array, in_front, wide, Kept::Results)?;
        axes.fragments.push(array.clone());
    }
    for array in copies.iter().chain(&rolled.factors) {
        let is_held = axes.all_components && quadrature.shared.is_none();
        let kept = if is_held { Kept::Terms } else { Kept::Local };
        instruction.lay_out(s, array, in_front, wide, kept)?;
        if is_held { &mut axes.fragments } else { &mut axes.local }.push(array.clone());
    }
    for table in &products.tables {
        if !axes.tables.contains(table) {
            instruction.lay_out_table(s, table, 0, false)?;
            axes.tables.push(table.clone());
        }
    }
    for (nest, insns) in calls {
        nest.to_calls(s, &insns, axes)?;
    }
    Ok(())
}

/// The rows that a sub-group has, and the loop over sub-groups around them, if these share rows.
/// The products are then after all points that a group has at a time, `points` of which a sub-group
/// each has evaluated.
fn own_rows(
    s: &mut Schedule,
    quadrature: &Quadrature<'_>,
    points: Option<Loop>,
    multiply: &Nest,
    axes: &mut Axes,
) -> Result<(Option<Loop>, Loop), TransformError> {
    let rows = &quadrature.products.rows;
    let (Some(points), Some(shared)) = (points, quadrature.shared) else { return Ok((None, rows.clone())) };
    let evaluated_by = s.distribute_one(&points, &multiply.cells, "point_evaluated_by")?;
    let [owner, rows] = s.split_as(rows, shared.rows, ["row_sub_group", "row_own"])?;
    axes.sub_groups.extend([points, owner.clone()]);
    axes.unrolled.push(evaluated_by);
    Ok((Some(owner), rows))
}

/// The functions at the points, one nest each, with the statements that become instructions.
pub(super) fn evaluations(
    s: &mut Schedule,
    quadrature: &Quadrature<'_>,
    rolled: &RolledBlock,
    nests: &[Nest],
    axes: &mut Axes,
) -> Result<Vec<(Product, Vec<String>)>, TransformError> {
    let wide = quadrature.is_wide();
    let mut calls = Vec::new();
    for ((e, (component, _)), nest) in quadrature.evaluated.iter().zip(&rolled.evaluate).zip(nests) {
        let dofs = &e.evaluation.dofs;
        s.reorder([component, &nest.cells, &nest.columns, dofs])?;
        axes.add_components(component);
        let insns = first_insns(&e.of_tables);
        if let (Some(count), false) = (quadrature.short, wide) {
            let nests = short_product(s, nest, dofs, count, insns)?;
            if quadrature.shared.is_some() {
                tables_once(s, component, &nests, axes)?;
            }
            calls.extend(nests);
            continue;
        }
        let (part, columns) = tile_of_points(s, nest, wide, quadrature.instruction)?;
        let nest =
            quadrature.instruction.evaluation(s, &Nest { cells: nest.cells.clone(), columns }, dofs)?;
        // tables are read once for all components of a sub-group, values of degrees of freedom once
        // for all tiles of points
        for outer in part.iter().chain(axes.all_components.then_some(component)) {
            nest.tiles.iter().try_for_each(|tile| s.interchange(outer, tile).map(drop))?;
        }
        if let (Some(part), true) = (&part, axes.all_components) {
            s.interchange(component, part)?;
        }
        axes.unrolled.extend(part);
        calls.push((nest, insns));
    }
    Ok(calls)
}

/// Reads the tables of neighbouring nests once for all components of a sub-group.
fn tables_once(
    s: &mut Schedule,
    component: &Loop,
    nests: &[(Product, Vec<String>)],
    axes: &mut Axes,
) -> Result<(), TransformError> {
    let mut components = vec![component.clone()];
    for (k, (nest, _)) in nests.iter().enumerate().skip(1) {
        components.push(s.distribute_one(&components[k - 1], &nest.lanes[0], "component_short")?);
        axes.add_components(&components[k]);
    }
    for (component, (nest, _)) in components.iter().zip(nests) {
        nest.tiles.iter().try_for_each(|tile| s.interchange(component, tile).map(drop))?;
    }
    Ok(())
}

/// The tiles of the points of a nest, in a loop around it, and the points of a tile.
pub(super) fn tile_of_points(
    s: &mut Schedule,
    nest: &Nest,
    wide: bool,
    instruction: MatrixInstruction,
) -> Result<(Option<Loop>, Loop), TransformError> {
    if !wide {
        return Ok((None, nest.columns.clone()));
    }
    let [part, columns] = s.split_as(&nest.columns, instruction.tile(), ["point_part", "point_column"])?;
    s.interchange(&nest.cells, &part)?;
    Ok((Some(part), columns))
}

/// The pointwise group: each sub-group stores the values of its component, and pairs of points and
/// cells are dealt out to all; one that has all components keeps them. Returns what is stored.
fn at_points(
    s: &mut Schedule,
    nest: &Nest,
    rolled: &RolledBlock,
    quadrature: &Quadrature<'_>,
    axes: &mut Axes,
) -> Result<Vec<Array>, TransformError> {
    if axes.all_components {
        axes.add(quadrature.instruction.rows(s, nest, quadrature.is_wide())?);
        return Ok(Vec::new());
    }
    let [once, cells] = s.split_as(&nest.cells, CELLS, ["values_once", "cell_pair"])?;
    let mut copies = Vec::new();
    for array in rolled.values() {
        let fetch = PrefetchArray::new(array, &once, AddressSpace::Private);
        let (copy, loops) = s.prefetch_as(fetch, &format!("{array}_all"))?;
        let [cells, columns, component] = exactly(s, loops, "values at points")?;
        s.reorder([&component, &cells, &columns])?;
        axes.sub_groups.push(component);
        axes.add(quadrature.instruction.rows(s, &Nest { cells, columns }, quadrature.is_wide())?);
        copies.push(copy);
    }
    let pairs = Nest { cells, columns: nest.columns.clone() };
    let pairs = quadrature.instruction.rows(s, &pairs, quadrature.is_wide())?;
    axes.items.push(pairs.lanes);
    let mut own = pairs.own.into_iter();
    let [mut pair] = exactly(s, own.by_ref().take(1).collect(), "pairs")?;
    for part in own {
        pair = s.join(&pair, &part)?;
    }
    let [_, sub_group] = s.split_as(&pair, quadrature.components(), ["pair_round", "pair_sub_group"])?;
    axes.sub_groups.push(sub_group);
    axes.unrolled.push(once);
    Ok(copies)
}

fn refs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// The statement that is left of each group when its components are in a loop.
pub(super) fn first_insns(of_tables: &[Components]) -> Vec<String> {
    of_tables.iter().filter_map(|c| c.insns.first().cloned()).collect()
}

/// Loops over components instead of the statements of a quadrature loop.
pub(super) fn roll_block(
    s: &mut Schedule,
    quadrature: &Quadrature<'_>,
) -> Result<RolledBlock, TransformError> {
    let Quadrature { evaluated, of_tables, .. } = quadrature;
    // what sets a value to zero stands before all evaluations, in the order of those
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
    let mut groups: Vec<Vec<String>> = Vec::new();
    for group in evaluated.iter().flat_map(inits) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
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
    let init = roll_groups(s, &groups, "component_init")?;
    let insns = |of: &[Components]| of.iter().map(|c| c.insns.clone()).collect::<Vec<_>>();
    let rolled = evaluated.iter().map(|e| roll_groups(s, &insns(&e.of_tables), "component_evaluate"));
    let rolled = rolled.collect::<Result<Vec<_>, _>>()?;
    let multiply = roll_groups(s, &insns(of_tables), "component_multiply")?;
    Ok(RolledBlock { init, evaluate: rolled.into_iter().zip(evaluate).collect(), multiply, factors })
}

/// One array for the scalars of each group; groups with the same scalars share it.
fn join(
    s: &mut Schedule,
    groups: &[Components],
    stem: impl Fn(&Components) -> String,
) -> Result<Vec<Array>, TransformError> {
    let mut all = Vec::new();
    for (k, group) in groups.iter().enumerate() {
        if groups[..k].iter().any(|known| known.scalars == group.scalars) {
            continue;
        }
        let array = Array::named(s.fresh(&stem(group)));
        s.apply(JoinArrays::new(&group.scalars, &array, 0))?;
        all.push(array);
    }
    Ok(all)
}

/// One loop over components for neighbouring statements: each group is a statement in it.
pub(super) fn roll_groups(
    s: &mut Schedule,
    groups: &[Vec<String>],
    stem: &str,
) -> Result<Loop, TransformError> {
    let schedule = s.kernel().schedule();
    let names = schedule.iter().map(|(insn, _)| &s.kernel().insns[*insn].name);
    let mut order: Vec<String> =
        names.filter(|name| groups.iter().flatten().any(|i| i == *name)).cloned().collect();
    for group in groups {
        let (own, others): (Vec<_>, Vec<_>) = order.iter().cloned().partition(|i| group.contains(i));
        let at = order.iter().position(|i| group.contains(i));
        let at = s.expected(at, "statement of a group")?;
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
    let [all] = exactly(s, all.into_iter().collect(), "components")?;
    Ok(all)
}
