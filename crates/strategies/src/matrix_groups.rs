//! Sixteen cells a group and a sub-group for each component, by matrix instructions.

use super::blocks::{REST, blocks_of_cells, gathers_first, statements, written};
use super::cell_groups::cell_groups;
use super::component_products::{Evaluated, Quadrature, RolledBlock, Shared, of_table, products, roll_block};
use super::fragments::{Axes, Nest, exactly};
use super::instruction::CELLS;
use super::matrix_group_orbits::matrix_group_orbits;
use super::modes::factor;
use super::show_parts;
use super::single_cell::make_atomic;
use super::staging::{CellNest, Staged, check_parts, deal_parts, roll_gathers, stage_results};
use super::{instruction::MatrixInstruction, instruction_loops::Kept};
use crate::strategy::{Arguments, CombinedOrbits, Needs, Question, Stopped, Strategy, StrategyError, Work};
use kingpost_forms::program::{CellProgram, Gather, NotAnAction};
use kingpost_ir::{AddressSpace, AxisTag, Kernel};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::intrinsics::MMA_M16N8K4_F64;
use kingpost_primitives::primitives::{
    AliasStorage, ContractArray, DeclareCallee, JoinArrays, LaunchHint, PadInames, ReplaceWithIntrinsic,
    SetAddressSpace, SplitArrayAxis, TransposeArrayAxes,
};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::fmt;

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
            let found = tables.iter().map(|table| of_table(kernel, &insns, table, &[vector], is_sum));
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
            blocks.push(Quadrature {
                block,
                evaluated,
                products,
                of_tables,
                tiles: 1,
                short: None,
                shared: None,
                instruction: MatrixInstruction::default(),
            });
        }
        Ok(Self { gathers, components, count, blocks })
    }
}

/// Maps sixteen cells to a group, of which each sub-group multiplies one component by tables with
/// matrix instructions: modes or points times degrees of freedom by cells.
///
/// Degrees of freedom, values at points and the factors of the products are in local memory as
/// fragments lie; what a component adds to the result stays in the registers of its sub-group.
/// Pointwise groups are dealt out to all work-items. One sub-group may have all components instead,
/// with values at points in its registers. Sums run over [modes](super::Modes) where
/// the integrand is linear. Cells that fill no block are mapped to a group each.
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
/// Functions without components, or with others than the result; tables that multiply some
/// components only; instructions of half the length and kinds of modes by `mfma_16x16x4`; a step that was
/// refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixGroups {
    /// Work-groups that a compute unit should have registers for; none leaves it to the compiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_groups: Option<u32>,
    /// Tiles of eight points whose values are in local memory together; none is one. With several
    /// there are fewer barriers, and degrees of freedom are read less often, but more registers are
    /// taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point_tiles: Option<u32>,
    /// Whether the last of the degrees of freedom are multiplied by instructions of half the length
    /// where these hold them all, which is where fewer zeros are multiplied. Not with several tiles
    /// of points.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub short_terms: bool,
    /// Whether one sub-group has all components of its cells, and a group is one sub-group: values
    /// at points stay in registers then, and nobody waits for others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_sub_group: bool,
    /// Sub-groups of a group, if they share points and rows instead of components: each evaluates
    /// all components at a tile of points, whose values stay in its registers, and has some rows of
    /// the result. Four keep all schedulers of a multiprocessor busy where three would leave one
    /// without work. Not with one sub-group, and not with several tiles of points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_points: Option<u32>,
    /// Whether each sub-group of a group has a kind of modes instead of a component, those that one
    /// combination of the degrees of freedom of an orbit has: in [orbits](super::InOrbits) only.
    /// All modes of a kind are evaluated at once, and four kinds keep all schedulers of a
    /// multiprocessor busy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kinds: bool,
    /// Degrees of freedom that are gathered and scattered separately, as in
    /// [`StraightCells`](super::StraightCells).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<u64>,
    /// The instruction.
    #[serde(default, skip_serializing_if = "MatrixInstruction::is_default")]
    pub instruction: MatrixInstruction,
}

impl MatrixGroups {
    pub(super) fn tiles(&self) -> i64 {
        self.point_tiles.map_or(1, i64::from).max(1)
    }

    /// Sub-groups of a group.
    pub(super) fn sub_groups(&self, components: i64) -> i64 {
        let alone = self.one_sub_group.then_some(1);
        alone.or(self.shared_points.map(i64::from)).unwrap_or(components) // a component each, as said above
    }

    /// Rows of a result of `count`, in full tiles, as many for each sub-group that shares them.
    pub(super) fn rows(&self, count: i64) -> i64 {
        let whole = self.instruction.tile() * self.shared_points.map_or(1, i64::from);
        count + (-count).rem_euclid(whole)
    }

    fn check(&self) -> Result<(), StrategyError> {
        if !self.instruction.is_default() && (self.short_terms || self.kinds) {
            let reason =
                "wavefronts multiply four terms at a time; leave `short_terms` and `kinds` out".into();
            return Err(StrategyError::Unsuited { strategy: Self::NAME, reason });
        }
        let Some(found) = self.shared_points else { return Ok(()) };
        if !(2..=32).contains(&found) {
            let symbol = "the number of sub-groups that share points".into();
            return Err(StrategyError::Parameter { symbol, found: found.into(), needed: "2 to 32".into() });
        }
        if self.one_sub_group || self.tiles() > 1 {
            let reason =
                "sub-groups that share points have a tile of points each; leave `one_sub_group` and \
                          `point_tiles` out"
                    .into();
            return Err(StrategyError::Unsuited { strategy: Self::NAME, reason });
        }
        Ok(())
    }
}

impl fmt::Display for MatrixGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resident_groups, point_tiles, short_terms, one_sub_group, shared_points, kinds, .. } =
            self;
        f.write_str("matrix groups")?;
        f.write_str(if *one_sub_group { " of one sub-group" } else { "" })?;
        shared_points.map_or(Ok(()), |n| write!(f, " of {n} sub-groups that share points"))?;
        f.write_str(if *kinds { " of a sub-group for each kind of modes" } else { "" })?;
        resident_groups.map_or(Ok(()), |groups| write!(f, ", {groups} at a time"))?;
        point_tiles.map_or(Ok(()), |tiles| {
            write!(f, ", {} points at a time", self.instruction.tile() * i64::from(tiles))
        })?;
        f.write_str(if *short_terms { ", short terms" } else { "" })?;
        show_parts(f, &self.parts)?;
        f.write_str(if self.instruction.is_default() { "" } else { ", wavefronts" })
    }
}

impl Arguments for MatrixGroups {
    const NAME: &'static str = "matrix_groups";
    const SUMMARY: &'static str =
        "Sixteen cells a group and a sub-group for each component, products by matrix instructions.";
}

impl Strategy for MatrixGroups {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        self.check()?;
        if self.kinds {
            let reason = "kinds of modes are those of `orbits`; write `{\"strategy\":\"orbits\",\"then\":…}` around it".into();
            return Err(StrategyError::Unsuited { strategy: Self::NAME, reason }.into());
        }
        let s = on.schedule();
        let before = s.clone();
        match factor(s, &*form.program()?, self.instruction.tile() as u32) {
            Ok(()) => {}
            // the integrand is not linear: sums run over points
            Err(error) if error.is_misfit() => *s = before,
            Err(error) => return Err(error.into()),
        }
        let kernel = s.kernel().clone();
        let program = CellProgram::read(&kernel)?;
        let mut parts = Parts::of(&kernel, &program)?;
        check_parts(&self.parts, [parts.count])?;
        let short = self.short_terms.then_some(parts.count);
        for quadrature in &mut parts.blocks {
            (quadrature.tiles, quadrature.short) = (self.tiles(), short);
            quadrature.instruction = self.instruction;
            quadrature.shared = self.shared_points.map(|n| {
                let sub_groups = i64::from(n);
                Shared { sub_groups, rows: self.rows(parts.count) / sub_groups }
            });
        }
        Plan { program: &program, parts: &parts, args: self }.map(s)?;
        let groups = self.resident_groups;
        Ok(groups.map_or(Ok(()), |groups| s.apply(LaunchHint::resident_groups(groups)).map(drop))?)
    }

    fn needs(&self) -> Needs {
        Needs { matrix_instructions: true, ..Needs::default() }
    }

    fn candidates(question: &Question<'_>) -> Vec<Self> {
        let (Some(instruction), Ok(program)) = (question.matrix_instruction, question.form.program()) else {
            return Vec::new();
        };
        Self::that_pay(question.form.kernel(), &program, (instruction, question.local_bytes))
    }

    fn with_parts(&self, parts: &[u64]) -> Option<Self> {
        Some(Self { parts: parts.to_vec(), ..self.clone() })
    }

    fn in_orbits(&self, on: &mut Work<'_>, how: CombinedOrbits) -> Result<(), Stopped> {
        self.check()?;
        if how != CombinedOrbits::default() || self.short_terms || self.shared_points.is_some() {
            return Err(how.refused(self));
        }
        if self.kinds && (self.one_sub_group || self.point_tiles.is_some()) {
            let reason =
                "all modes of a kind are evaluated at once; leave `one_sub_group` and `point_tiles` out"
                    .into();
            return Err(StrategyError::Unsuited { strategy: Self::NAME, reason }.into());
        }
        let orbits = how.lower(on)?;
        matrix_group_orbits(on, self, &orbits)
    }
}

/// Degrees of freedom of a component of what [`MatrixGroups`] can map.
#[must_use]
pub fn matrix_group_dofs(kernel: &Kernel, program: &CellProgram) -> Option<i64> {
    Parts::of(kernel, program).ok().map(|parts| parts.count)
}

struct Plan<'a> {
    program: &'a CellProgram,
    parts: &'a Parts<'a>,
    args: &'a MatrixGroups,
}

/// Loops over components, and arrays of all components.
struct Rolled {
    /// One for each gather of the program.
    gathers: Vec<Option<Loop>>,
    zero: Loop,
    store: Loop,
    blocks: Vec<RolledBlock>,
}

/// Loops over the cells of a block around what is not multiplied.
struct Ends<'a> {
    gather: &'a Loop,
    geometry: &'a Loop,
    commit: &'a Loop,
    staged: &'a Staged,
    rest: Option<&'a Loop>,
}

impl Plan<'_> {
    fn map(&self, s: &mut Schedule) -> Result<(), TransformError> {
        let (program, parts) = (self.program, self.parts);
        let result = &program.results[0];
        let ([block, cell], rest) = blocks_of_cells(s, program, CELLS)?;
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
        let [store, commit] = exactly(s, cells.split_off(cells.len() - 2), "store and commit")?;
        let points = cells.split_off(2);
        let [geometry, zero] = exactly(s, cells, "geometry and zeros")?;

        let all_components = self.args.one_sub_group || self.args.shared_points.is_some();
        let mut axes = Axes { all_components, ..Axes::default() };
        axes.add_components(&components.zero);
        axes.add_components(&components.store);
        for (cells, columns, component) in
            [(zero, &result.zero, &components.zero), (store, &result.scatter, &components.store)]
        {
            let (owner, columns) = self.own_rows(s, columns)?;
            s.reorder(owner.iter().chain([component, &cells, &columns]))?;
            axes.sub_groups.extend(owner);
            axes.add(self.args.instruction.rows(s, &Nest { cells, columns }, true)?);
        }
        for ((quadrature, of_block), cells) in parts.blocks.iter().zip(&components.blocks).zip(&points) {
            products(s, quadrature, of_block, cells, &mut axes)?;
        }
        let rest = rest.as_ref();
        let ends = Ends { gather: &cell, geometry: &geometry, commit: &commit, staged: &staged, rest };
        self.ends(s, &ends, &components, &mut axes)?;
        self.place(s, &ends, &block, &axes)
    }

    /// The rows that a sub-group has of a loop over them, and the loop over sub-groups around
    /// these, if they share rows.
    fn own_rows(&self, s: &mut Schedule, rows: &Loop) -> Result<(Option<Loop>, Loop), TransformError> {
        let Some(sub_groups) = self.args.shared_points else { return Ok((None, rows.clone())) };
        let own = self.args.rows(self.parts.count) / i64::from(sub_groups);
        let [owner, rows] = s.split_as(rows, own, ["row_sub_group", "row_own"])?;
        Ok((Some(owner), rows))
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
        for (quadrature, of_block) in parts.blocks.iter().zip(&rolled.blocks) {
            let (block, tile) = (quadrature.block, quadrature.points_at_a_time());
            if block.points % tile == 0 {
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
            s.apply(PadInames::new([&block.quad], block.points + (-block.points).rem_euclid(tile)))?;
            for array in &arrays {
                s.apply(ContractArray::new(array, 0))?;
            }
        }
        let (terms, all_rows) = (self.args.instruction.padded(parts.count), self.args.rows(parts.count));
        let result = &self.program.results[0];
        let rows =
            [&result.zero, &result.scatter].into_iter().chain(parts.blocks.iter().map(|q| &q.products.rows));
        if parts.count < terms {
            let evaluated = parts.blocks.iter().flat_map(|q| &q.evaluated).map(|e| &e.evaluation.dofs);
            let gathered = parts.gathers.iter().map(|g| &g.dofs);
            s.apply(PadInames::new(gathered.chain(rows.clone()).chain(evaluated), terms))?;
        }
        if terms < all_rows {
            s.apply(PadInames::new(rows, all_rows))?;
        }
        Ok(())
    }

    /// Both ends by all work-items, one degree of freedom after the other; the geometry by one
    /// work-item a cell; what fills no block.
    fn ends(
        &self,
        s: &mut Schedule,
        ends: &Ends<'_>,
        rolled: &Rolled,
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        let (program, parts) = (self.program, self.parts);
        let result = &program.results[0];
        let items = [self.args.instruction.lanes(), self.args.sub_groups(parts.components)];
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
            let shape = [self.args.instruction.padded(parts.count), parts.components];
            let nest = CellNest { array: &g.array, cells, rows: &g.dofs, component, shape };
            dealt.extend(deal_parts(s, &nest, g.dofs.name(), items, &self.args.parts)?);
        }
        make_atomic(s, std::slice::from_ref(&ends.staged.commit))?;
        let nest = ends.staged.nest(ends.commit, result.count);
        dealt.extend(deal_parts(s, &nest, "commit", items, &self.args.parts)?);
        axes.items.push(ends.geometry.clone());
        if let Some(rest) = ends.rest {
            let lanes = cell_groups(s, program, rest, REST, items[1].unsigned_abs())?;
            if self.args.shared_points.is_some() {
                let factors = Array::named(s.fresh("factors_of_rest"));
                s.apply(JoinArrays::new(&lanes.factors, &factors, 0))?;
                axes.of_rest = lanes.values.into_iter().chain([factors]).collect();
            }
            axes.items.extend(lanes.items);
            // the only sub-group has these loops, of one iteration, to itself
            let others = lanes.sub_groups.into_iter().filter(|_| !self.args.one_sub_group);
            axes.sub_groups.extend(others.collect::<Vec<_>>());
        }
        dealt.into_iter().for_each(|flat| axes.take(flat, items));
        let wide = parts.gathers.iter().map(|g| &g.array).chain([&ends.staged.array]);
        for array in wide {
            self.args.instruction.lay_out(s, array, 1, true, Kept::Local)?;
            self.args.instruction.spread_columns(s, array)?;
            axes.local.push(array.clone());
        }
        let mut in_front = 1;
        if let Some(sub_groups) = self.args.shared_points {
            // the sub-group that has a row is an axis of its own, which its index is
            let (var, factor) =
                (String::from(&result.array), self.args.rows(parts.count) / i64::from(sub_groups));
            s.apply(SplitArrayAxis { var, axis: 1, factor })?;
            s.apply(TransposeArrayAxes::new(&result.array, [0, 2, 1, 3]))?;
            in_front = 2;
        }
        self.args.instruction.lay_out(s, &result.array, in_front, true, Kept::Results)?;
        axes.fragments.push(result.array.clone());
        Ok(())
    }

    /// What is added has the place of a function, and what cells that fill no block have, if it is
    /// known, that of what others have: two groups then fit on a multiprocessor.
    fn share_storage(&self, s: &mut Schedule, staged: &Staged, axes: &Axes) -> Result<(), TransformError> {
        let gathered = self.parts.gathers.iter().map(|g| &g.array);
        let factors = axes
            .local
            .iter()
            .filter(|array| **array != staged.array && gathered.clone().all(|g| g != *array));
        let mut places: Vec<Vec<&Array>> = gathered.clone().chain(factors).map(|array| vec![array]).collect();
        places.iter_mut().take(1).for_each(|first| first.push(&staged.array));
        places.iter_mut().zip(&axes.of_rest).for_each(|(place, array)| place.push(array));
        for (k, place) in places.into_iter().enumerate().filter(|(_, place)| place.len() > 1) {
            let storage =
                s.fresh(&if k == 0 { "cell_values".into() } else { format!("{}_values", place[0]) });
            s.apply(AliasStorage::new(place, storage))?;
        }
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
        self.args.instruction.set_width(s)?;
        for array in axes.local.iter().chain(&self.program.per_cell).chain(&axes.fragments) {
            s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
        }
        s.tag(block, AxisTag::Group(0))?;
        s.tag_all(&axes.items, AxisTag::Local(0))?;
        for array in &axes.fragments {
            s.apply(SetAddressSpace::new(array, AddressSpace::SubGroup))?;
        }
        s.tag_all(&axes.sub_groups, AxisTag::Local(1))?;
        self.share_storage(s, ends.staged, axes)?;
        let (callee, name) = self.args.instruction.callee();
        s.apply(DeclareCallee::new(callee))?;
        for call in &axes.calls {
            s.apply(ReplaceWithIntrinsic::new([call], name))?;
        }
        if !axes.short_calls.is_empty() {
            s.apply(DeclareCallee::new(MMA_M16N8K4_F64))?;
        }
        for call in &axes.short_calls {
            s.apply(ReplaceWithIntrinsic::new([call], "mma_m16n8k4_f64"))?;
        }
        s.tag_all(&axes.unrolled, AxisTag::Unrolled)
    }
}
