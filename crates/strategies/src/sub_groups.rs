//! Sixteen cells a sub-group: both ends, what fills no block, and what is where.

use super::ahead::Ahead;
use super::blocks::REST;
use super::cell_groups::cell_groups;
use super::fragments::{Axes, spread_halves};
use super::instruction::CELLS;
use super::length;
use super::matrix_cells::MatrixCells;
use super::single_cell::make_atomic;
use super::staging::{CellNest, deal_parts};
use kingpost_forms::program::{CellProgram, Gather};
use kingpost_ir::{AddressSpace, AxisTag};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{
    AliasStorage, DeclareCallee, PadArray, PrefetchArray, ReplaceWithIntrinsic, SetAddressSpace,
};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};

/// Loops over the cells of a block, and what they are inside.
pub(super) struct Places {
    /// Around the gather, the geometry, and the scatter.
    pub(super) gather: Loop,
    pub(super) geometry: Loop,
    pub(super) commit: Loop,
    /// Over groups, and over the blocks of one.
    pub(super) group: Loop,
    pub(super) turn: Loop,
    /// What is copied ahead, if anything is.
    pub(super) ahead: Option<Ahead>,
    /// Over the cells that fill no block.
    pub(super) rest: Option<Loop>,
}

impl Places {
    /// Both ends by the sub-group that multiplies the cells, one degree of freedom after the other, and
    /// the geometry by one work-item a cell, so that no sub-group waits for another; what fills no
    /// block. What is added is in an array, by a loop over its rows.
    pub(super) fn ends(
        &self,
        s: &mut Schedule,
        (program, g, args): (&CellProgram, &Gather, &MatrixCells),
        (added, added_rows): (&Array, &Loop),
        axes: &mut Axes,
    ) -> Result<(), TransformError> {
        let result = &program.results[0];
        let [gather, cells] = s.split_as(&self.gather, CELLS, ["gather_sub_group", "gather_cell"])?;
        let [commit, rows] = s.split_as(&self.commit, CELLS, ["commit_sub_group", "commit_cell"])?;
        axes.sub_groups.extend([gather, commit]);
        let nest =
            |array, cells, rows, count| CellNest { array, cells, rows, component: None, shape: [count, 1] };
        make_atomic(s, &result.commits)?;
        let gathered = nest(&g.array, &cells, &g.dofs, g.count);
        let mut ends = deal_parts(s, &gathered, g.dofs.name(), args.items(), &args.parts)?;
        let added = nest(added, &rows, added_rows, result.count);
        ends.extend(deal_parts(s, &added, "commit", args.items(), &args.parts)?);
        for array in &program.per_cell {
            s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
        }
        let [round, lane] = s.split_as(&self.geometry, CELLS, ["geometry_sub_group", "geometry_lane"])?;
        axes.items.push(lane);
        axes.sub_groups.push(round);
        if let Some(vertices) = self.ahead.as_ref().and_then(|ahead| ahead.vertices.as_ref()) {
            vertices.deal(s, axes)?;
        }
        if let Some(rest) = &self.rest {
            let lanes = cell_groups(s, program, rest, REST, args.sub_groups)?;
            axes.items.extend(lanes.items);
            axes.sub_groups.extend(lanes.sub_groups);
        }
        for flat in ends {
            if flat.has_few_rounds(CELLS, args.items()) {
                axes.unrolled.push(flat.round);
            }
            axes.items.extend(flat.items);
        }
        Ok(())
    }

    /// Loops to work-items, arrays to memory, products to instructions: arrays with their columns share rows
    /// of a length, and these tables are kept next to those of the products.
    pub(super) fn place(
        &self,
        s: &mut Schedule,
        args: &MatrixCells,
        shared: [(&Array, i64); 2],
        row: i64,
        (tables, axes): (&[Array], &Axes),
    ) -> Result<(), TransformError> {
        args.instruction.set_width(s)?;
        for (array, columns) in shared {
            s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
            s.apply(PadArray::new(array, 1, row - columns))?;
        }
        s.tag(&self.group, AxisTag::Group(0))?;
        for array in &axes.fragments {
            s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
        }
        s.tag_all(&axes.items, AxisTag::Local(0))?;
        for array in &axes.fragments {
            s.apply(SetAddressSpace::new(array, AddressSpace::SubGroup))?;
        }
        s.tag_all(&axes.sub_groups, AxisTag::Local(1))?;
        if self.ahead.is_none() {
            let vars = shared.map(|(array, _)| String::from(array)).to_vec();
            s.apply(AliasStorage { vars, storage: s.fresh("cell_values") })?;
        }
        let kept = usize::try_from(args.kept_tables).unwrap_or(usize::MAX);
        for table in tables.iter().chain(axes.tables.iter().take(kept)) {
            let fetch = PrefetchArray::new(table, &self.group, AddressSpace::Local);
            let fetch = fetch.by_work_items([args.instruction.lanes(), length(args.sub_groups)]);
            let (copy, _) = s.prefetch_as(fetch, &format!("{table}_kept"))?;
            // copies of other tables lie as they do
            if axes.tables.contains(table) && args.instruction.is_default() {
                spread_halves(s, &copy)?;
            }
        }
        let (callee, name) = args.instruction.callee();
        s.apply(DeclareCallee::new(callee))?;
        for call in &axes.calls {
            s.apply(ReplaceWithIntrinsic::new([call], name))?;
        }
        s.tag_all(&axes.unrolled, AxisTag::Unrolled)?;
        self.ahead.as_ref().map_or(Ok(()), |ahead| ahead.pipeline(s, &self.turn))
    }
}
