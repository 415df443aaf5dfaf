//! Values at points by a basis of the columns of tables, by matrix instructions.

use super::blocks::{behind, gathers_first, written};
use super::cell_groups::cell_groups;
use super::common_basis::{Algebra, Modal, Sums, common_basis};
use super::component_products::Quadrature;
use super::fragments::{
    Axes, CELLS, LANES, Nest, TILE, exactly, fragment, lay_out_of, lay_out_spread_table, product, tiled,
};
use super::matrix_groups::Parts;
use super::single_cell::make_atomic;
use super::staging::{CellNest, Staged, deal, stage_results};
use super::{StrategyError, applied};
use crate::program::{CellProgram, NotAnAction};
use purlin_ir::{AddressSpace, AxisTag, Kernel};
use purlin_primitives::ScheduleSteps;
use purlin_primitives::intrinsics::MMA_M16N8K8_F64;
use purlin_primitives::primitives::{
    AliasStorage, ContractArray, DeclareCallee, FactorRank, PadInames, PrefetchArray, ReplaceWithIntrinsic,
    SetAddressSpace, SetResidentGroups, SplitArrayAxis, SplitIname, SplitLives, Tail, TransposeArrayAxes,
};
use purlin_primitives::schedule::{Array, Loop};
use purlin_primitives::{Recipe, Schedule, TransformError};

/// What the arrays of cells that fill no block end with.
const REST: &str = "rest";

/// Arguments of [`matrix_basis`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MatrixBasis {
    /// Work-groups that a compute unit should have registers for.
    pub resident_groups: Option<u32>,
}

/// Maps sixteen cells to a group, and to each sub-group one derivative of one component, which it
/// evaluates by a basis that all derivatives have in common: for nonlinear operators on vectors.
///
/// Derivatives of polynomials of degree `p` have degree `p - 1`, so that the tables of all directions
/// are `T_a = B*C_a` with as many columns in `B` as there are such polynomials
/// ([`FactorRank`]). The products with `C_a` are computed once for a cell, those with `B` at every
/// tile of points, all by matrix instructions. A sub-group holds its coefficients of the functions
/// and its sums over points in registers.
///
/// # Rewrite
/// ```text
/// for q in 0..Q                         =>  for c in 0..3 {l.1}
///   for j in 0..n                             for a in 0..3 {l.2}
///     e_00 += T_0[q, j]*u[j, 0]                 t[c, a, k] = C[a, k, j]*u[j, c]
///     ...                                     for q_tile in 0..ceil(Q/8)
///   f_00 = g(e_00, ...)                         e[c, a] of 8 points = B[q, k]*t[c, a, k]
///   ...                                         f = g(e), points and cells by work-items
///   for i in 0..n                               r[c, a, k] += B[q, k]*f[c, a] of 8 points
///     y[i, 0] += T_0[q, i]*f_00               y[i, c] += C[a, k, i]*r[c, a, k]
/// ```
///
/// # Errors
/// Functions without components, or with others than the result; a function that is evaluated with
/// other tables than those of the result, or more than one quadrature loop; a step that was refused.
pub fn matrix_basis(
    kernel: &Kernel,
    program: &CellProgram,
    args: &MatrixBasis,
) -> Result<(Kernel, Recipe), StrategyError> {
    let parts = Parts::of(kernel, program)?;
    let refuse = |found: &str| NotAnAction { kernel: kernel.name.clone(), found: found.into() };
    let [quadrature] = parts.blocks.as_slice() else {
        return Err(refuse("more than one quadrature loop; `matrix_groups` takes it").into());
    };
    if !shares_tables(quadrature) {
        return Err(refuse("a function has other tables than the result; `matrix_groups` takes it").into());
    }
    applied(kernel, |s| {
        Strategy { program, parts: &parts, quadrature }.map(s)?;
        args.resident_groups.map_or(Ok(()), |groups| s.apply(SetResidentGroups::new(groups)).map(drop))
    })
}

/// Matrix instructions for sixteen cells, by `matrix_groups` over points and by [`matrix_basis`];
/// none of what that does not take.
#[must_use]
pub fn matrix_basis_instructions(kernel: &Kernel, program: &CellProgram) -> Option<[i64; 2]> {
    let parts = Parts::of(kernel, program).ok()?;
    let [quadrature] = parts.blocks.as_slice() else { return None };
    if !shares_tables(quadrature) {
        return None;
    }
    let mut s = Schedule::of(kernel);
    let made = s.make(FactorRank::new(&quadrature.products.tables)).ok()?;
    let basis = &s.kernel().vars[s.kernel().var(made.basis.name())?];
    let tiles = |n: i64| tiled(n) / TILE;
    let [points, dofs, modes] =
        [quadrature.block.points, parts.count, basis.shape.get(1)?.as_constant()?].map(tiles);
    let vectors = (quadrature.evaluated.len() + 1) as i64;
    let values = vectors * parts.components * quadrature.products.tables.len() as i64;
    Some([points * dofs, points * modes + modes * dofs].map(|products| values * products))
}

/// Whether all functions have the tables of the result.
fn shares_tables(quadrature: &Quadrature<'_>) -> bool {
    let tables = &quadrature.products.tables;
    quadrature.evaluated.iter().all(|e| e.evaluation.tables == *tables)
}

struct Strategy<'a> {
    program: &'a CellProgram,
    parts: &'a Parts<'a>,
    quadrature: &'a Quadrature<'a>,
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
        let algebra = common_basis(s, program, self.quadrature, &block, TILE as u32)?;
        self.pad(s, &algebra)?;

        let order = gathers_first(s, &cell, program)?;
        let gathered = parts.gathers.iter().map(|g| &g.array);
        let modes = algebra.functions.iter().map(|(sums, _)| &sums.modes).chain([&algebra.result.modes]);
        for array in gathered.chain([&staged.array, &result.array]).chain(modes).chain(&program.per_cell) {
            s.expand(array, [&cell])?;
        }
        let mut starts = vec![order.first, String::from(&result.zero)];
        let mut stems = vec!["cell_geometry", "cell_zero"];
        for (sums, _) in &algebra.functions {
            starts.extend([&sums.start, &sums.sum].map(|nest| String::from(&nest.component)));
            stems.extend(["cell_modes", "cell_coefficients"]);
        }
        let of_result = &algebra.result;
        starts.push(String::from(&of_result.start.component));
        starts.push(String::from(&self.quadrature.block.quad));
        starts.push(String::from(&of_result.product.component));
        starts.extend([&result.scatter, &staged.rows].map(String::from));
        stems.extend(["cell_sums", "cell_points", "cell_result", "cell_store", "cell_commit"]);
        let mut cells = s.distribute_as(&cell, starts, &stems)?;
        let [sums, points, product, store, commit] =
            exactly(s, cells.split_off(cells.len() - 5), "products, store and commit")?;
        let of_functions = cells.split_off(2);
        let [geometry, zero] = exactly(s, cells, "geometry and zeros")?;

        let mut axes = Axes::default();
        for (cells, columns, component) in
            [(zero, &result.zero, &algebra.zero), (store, &result.scatter, &algebra.store)]
        {
            s.reorder([component, &cells, columns])?;
            let [plane, round, row] = self.rows(s, columns)?;
            s.reorder([component, &plane, &round, &cells, &row])?;
            axes.on_axes([component, &plane]);
            axes.unrolled.push(round);
            axes.add(fragment(s, &Nest { cells, columns: row }, false)?);
        }
        for ((of_function, _), around) in algebra.functions.iter().zip(of_functions.chunks(2)) {
            start(s, &of_function.start, &around[0], &mut axes)?;
            coefficients(s, of_function, &around[1], &mut axes)?;
        }
        start(s, &of_result.start, &sums, &mut axes)?;
        self.points(s, &algebra, &points, &mut axes)?;
        let copy = self.result(s, of_result, &product, &mut axes)?;
        self.lay_out(s, &algebra, &copy, &mut axes)?;
        let ends = Ends {
            gather: &cell,
            geometry: &geometry,
            commit: &commit,
            staged: &staged,
            rest: rest.as_ref(),
        };
        self.ends(s, &ends, &algebra, &mut axes)?;
        self.place(s, &ends, &block, &axes)
    }

    /// Points and degrees of freedom in full tiles.
    fn pad(&self, s: &mut Schedule, algebra: &Algebra) -> Result<(), TransformError> {
        let (parts, block) = (self.parts, self.quadrature.block);
        if block.points % TILE != 0 {
            // what a point computes gets elements, too: sums and products are then zeros without conditions
            let written = block.pointwise.iter().filter_map(|insn| written(s.kernel(), insn.name()));
            let values = algebra.functions.iter().map(|(_, values)| values.clone());
            let mut arrays: Vec<Array> = values.chain([algebra.factors.clone()]).collect();
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
        let result = &self.program.results[0];
        let gathered = parts.gathers.iter().map(|g| &g.dofs);
        let terms = algebra.functions.iter().map(|(sums, _)| &sums.terms);
        let columns: Vec<&Loop> = gathered.chain(terms).collect();
        let rows = vec![&result.zero, &result.scatter, &algebra.result.terms];
        for (loops, length) in [(columns, tiled(parts.count)), (rows, self.all_rows())] {
            if length != parts.count {
                s.apply(PadInames::new(loops, length))?;
            }
        }
        Ok(())
    }

    /// The quadrature loop in tiles of points: values and sums by instructions, between them the pointwise
    /// group by all work-items.
    fn points(
        &self,
        s: &mut Schedule,
        algebra: &Algebra,
        cells: &Loop,
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        let block = self.quadrature.block;
        let [tile, point] = s.split_as(&block.quad, TILE, ["point_tile", "point_init"])?;
        let values: Vec<&Array> = algebra.functions.iter().map(|(_, values)| values).collect();
        for array in values.iter().copied().chain([&algebra.factors]) {
            s.expand(array, [cells, &point])?;
        }
        s.interchange(cells, &tile)?;
        let evaluate = &algebra.evaluate;
        let starts = [String::from(&evaluate.component)].into_iter();
        let starts = starts.chain(block.pointwise.first().map(String::from));
        let starts: Vec<String> = starts.chain([String::from(&algebra.result.sum.component)]).collect();
        let points =
            s.distribute_as(&point, starts.clone(), &["point_evaluate", "point_values", "point_multiply"])?;
        let around = s.distribute_as(cells, starts, &["cell_evaluate", "cell_values", "cell_multiply"])?;
        let nests = around.into_iter().zip(points).map(|(cells, columns)| Nest { cells, columns }).collect();
        let [evaluated, at_points, multiply] = exactly(s, nests, "points and products")?;

        let [component, direction] = &algebra.init;
        s.reorder([component, direction, cells, &point])?;
        axes.sub_groups.push(component.clone());
        axes.planes.push(direction.clone());
        axes.add(fragment(s, &Nest { cells: cells.clone(), columns: point }, false)?);
        let mut calls = Vec::new();
        let Nest { cells, columns } = &evaluated;
        s.reorder(evaluate.outer().into_iter().chain([cells, columns, &evaluate.mode]))?;
        axes.on_axes(evaluate.outer());
        let wholes = algebra.functions.iter().map(|(sums, _)| sums.whole.clone()).collect();
        calls.push((product(s, cells, columns, &evaluate.mode, true)?, wholes));
        let copies = self.pairs(s, &at_points, &values, axes)?;
        let (Nest { cells, columns }, modal) = (&multiply, &algebra.result.sum);
        s.reorder(modal.outer().into_iter().chain([cells, columns, &modal.mode]))?;
        axes.on_axes(modal.outer());
        calls.push((product(s, cells, &modal.mode, columns, false)?, vec![algebra.result.insn.clone()]));
        for array in values {
            lay_out_of(s, array, 2, false, true)?;
            axes.fragments.push(array.clone());
        }
        for array in copies.iter().chain([&algebra.factors]) {
            lay_out_of(s, array, 2, false, false)?;
            axes.local.push(array.clone());
        }
        lay_out_spread_table(s, &algebra.basis, 0)?;
        for (nest, insns) in calls {
            nest.to_calls(s, &insns, axes)?;
        }
        Ok(())
    }

    /// The pointwise group: each sub-group stores its values, and pairs of points and cells are dealt
    /// out to all. Returns what is stored.
    fn pairs(
        &self,
        s: &mut Schedule,
        nest: &Nest,
        values: &[&Array],
        axes: &mut Axes,
    ) -> Result<Vec<Array>, TransformError> {
        let [once, cells] = s.split_as(&nest.cells, CELLS, ["values_once", "cell_pair"])?;
        let mut copies = Vec::new();
        for array in values {
            let fetch = PrefetchArray::new(*array, &once, AddressSpace::Private);
            let (copy, loops) = s.prefetch_as(fetch, &format!("{array}_all"))?;
            let [cells, columns, component, direction] = exactly(s, loops, "values at points")?;
            s.reorder([&component, &direction, &cells, &columns])?;
            axes.on_axes([&component, &direction]);
            axes.add(fragment(s, &Nest { cells, columns }, false)?);
            copies.push(copy);
        }
        let pairs = fragment(s, &Nest { cells, columns: nest.columns.clone() }, false)?;
        axes.items.push(pairs.lanes);
        let [half, part] = exactly(s, pairs.own, "pairs")?;
        let own = s.join(&half, &part)?;
        let [sub_group, plane] = s.split_as(&own, self.directions(), ["pair_sub_group", "pair_plane"])?;
        axes.on_axes([&sub_group, &plane]);
        axes.unrolled.push(once);
        Ok(copies)
    }

    /// Rows of the result in tiles, those of a round on the planes of a group.
    fn rows(&self, s: &mut Schedule, rows: &Loop) -> Result<[Loop; 3], TransformError> {
        let [tile, row] = s.split_as(rows, TILE, ["row_tile", "row"])?;
        let [round, plane] = s.split_as(&tile, self.directions(), ["row_round", "row_plane"])?;
        Ok([plane, round, row])
    }

    /// Rows of the result in full rounds of tiles.
    fn all_rows(&self) -> i64 {
        let round = TILE * self.directions();
        self.parts.count + (-self.parts.count).rem_euclid(round)
    }

    fn directions(&self) -> i64 {
        self.quadrature.products.tables.len() as i64
    }

    /// The products of the sums over points with coefficients, tiles of rows by sub-groups; returns the
    /// copy of the sums that they read.
    fn result(
        &self,
        s: &mut Schedule,
        sums: &Sums,
        cells: &Loop,
        axes: &mut Axes,
    ) -> Result<Array, TransformError> {
        let [once, cells] = s.split_as(cells, CELLS, ["result_once", "cell_result"])?;
        let fetch = PrefetchArray::new(&sums.modes, &once, AddressSpace::Private);
        let (copy, loops) = s.prefetch_as(fetch, &format!("{}_all", sums.modes))?;
        let [copied, modes, component, direction] = exactly(s, loops, "sums over points")?;
        s.reorder([&component, &direction, &copied, &modes])?;
        axes.on_axes([&component, &direction]);
        axes.add(fragment(s, &Nest { cells: copied, columns: modes }, true)?);
        let (Modal { component, direction, mode }, rows) = (&sums.product, &sums.terms);
        s.reorder([component, &cells, rows, direction, mode])?;
        let [plane, round, row] = self.rows(s, rows)?;
        axes.on_axes([component, &plane]);
        s.reorder([component, &plane, &round, direction, &cells, &row, mode])?;
        let nest = product(s, &cells, &row, mode, true)?;
        nest.to_calls(s, std::slice::from_ref(&sums.whole), axes)?;
        axes.unrolled.extend([once, round, direction.clone()]);
        Ok(copy)
    }

    /// Arrays as the instruction has them.
    fn lay_out(
        &self,
        s: &mut Schedule,
        algebra: &Algebra,
        copy: &Array,
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        let of_functions = algebra.functions.iter().map(|(sums, _)| &sums.modes);
        for array in of_functions.chain([&algebra.result.modes]) {
            lay_out_of(s, array, 2, true, true)?;
            axes.fragments.push(array.clone());
        }
        lay_out_of(s, copy, 2, true, false)?;
        axes.local.push(copy.clone());
        lay_out_spread_table(s, &algebra.coefficients, 1)?;
        lay_out_spread_table(s, &algebra.of_rows, 1)?;
        // rows of a round by planes: `[component, plane, lane, round, half, part]`
        let result = &self.program.results[0].array;
        lay_out_of(s, result, 1, true, true)?;
        s.apply(SplitArrayAxis { var: result.into(), axis: 2, factor: self.directions() })?;
        s.apply(TransposeArrayAxes { var: result.into(), order: vec![0, 3, 1, 2, 4, 5] })?;
        axes.fragments.push(result.clone());
        Ok(())
    }

    /// Both ends by all work-items, one degree of freedom after the other; the geometry by one work-item
    /// a cell; what fills no block.
    fn ends(
        &self,
        s: &mut Schedule,
        ends: &Ends<'_>,
        algebra: &Algebra,
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        let (program, parts) = (self.program, self.parts);
        let result = &program.results[0];
        let items = [LANES * self.directions(), parts.components];
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
            let (g, component) = (&program.gathers[*k], algebra.gathers[*k].as_ref());
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
            let [item, sub_group] = exactly(s, flat.items, "work-items of the ends")?;
            let [plane, lane] = s.split_as(&item, LANES, ["item_plane", "item_lane"])?;
            axes.items.push(lane);
            axes.on_axes([&sub_group, &plane]);
        }
        let wide = parts.gathers.iter().map(|g| &g.array).chain([&ends.staged.array]);
        for array in wide {
            lay_out_of(s, array, 1, true, false)?;
            axes.local.push(array.clone());
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
        for array in axes.local.iter().chain(&self.program.per_cell).chain(&axes.fragments) {
            s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
        }
        s.tag(block, AxisTag::Group(0))?;
        s.tag_all(&axes.items, AxisTag::Local(0))?;
        for array in &axes.fragments {
            s.apply(SetAddressSpace::new(array, AddressSpace::SubGroup))?;
        }
        s.tag_all(&axes.sub_groups, AxisTag::Local(1))?;
        s.tag_all(&axes.planes, AxisTag::Local(2))?;
        let vars = self.parts.gathers.iter().take(1).map(|g| &g.array).chain([&ends.staged.array]);
        s.apply(AliasStorage { vars: vars.map(String::from).collect(), storage: s.fresh("cell_values") })?;
        s.apply(DeclareCallee::new(MMA_M16N8K8_F64))?;
        for call in &axes.calls {
            s.apply(ReplaceWithIntrinsic::new([call], "mma_m16n8k8_f64"))?;
        }
        s.tag_all(&axes.unrolled, AxisTag::Unrolled)
    }
}

/// The start of an array of modes, in fragments.
fn start(s: &mut Schedule, nest: &Modal, cells: &Loop, axes: &mut Axes) -> Result<(), TransformError> {
    let [component, direction] = nest.outer();
    s.reorder([component, direction, cells, &nest.mode])?;
    axes.on_axes(nest.outer());
    axes.add(fragment(s, &Nest { cells: cells.clone(), columns: nest.mode.clone() }, true)?);
    Ok(())
}

/// The coefficients of a function by instructions.
fn coefficients(s: &mut Schedule, sums: &Sums, cells: &Loop, axes: &mut Axes) -> Result<(), TransformError> {
    let (Modal { component, direction, mode }, terms) = (&sums.sum, &sums.terms);
    s.reorder([component, direction, cells, mode, terms])?;
    axes.on_axes([component, direction]);
    let [tile, mode] = s.split_as(mode, TILE, ["mode_tile", "mode"])?;
    s.reorder([&tile, cells, &mode, terms])?;
    let nest = product(s, cells, &mode, terms, true)?;
    nest.to_calls(s, std::slice::from_ref(&sums.insn), axes)?;
    axes.unrolled.push(tile);
    Ok(())
}
