//! One cell a work-group: what a strategy of blocks leaves over.

use super::fragments::LANES;
use super::length;
use kingpost_forms::program::{CellProgram, stage};
use kingpost_ir::{AddressSpace, AxisTag};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{MakeAtomic, SetAddressSpace};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, Selection, TransformError};

/// Most points of a cell whose factors are in local memory together.
const MAX_POINTS: i64 = 256;

/// Loops that go on the axes of a group.
#[derive(Default)]
pub(super) struct Lanes {
    /// On `l.0`.
    pub(super) items: Vec<Loop>,
    /// On `l.1`.
    pub(super) sub_groups: Vec<Loop>,
    /// What is in local memory of degrees of freedom, and of factors at points.
    pub(super) values: Vec<Array>,
    pub(super) factors: Vec<Array>,
}

/// Maps the loop `cell`, a copy of that of `program`, to a group a cell: rows, degrees of freedom and
/// modes along its work-items, `sub_groups` times 32 of them, the geometry by one. Copies of loops end
/// with `_tail`, and arrays that are theirs with `_{arrays}`, as `split_iname` and `split_lives` name
/// them. The loops for the axes are returned, to be tagged together with others.
pub(super) fn cell_groups(
    s: &mut Schedule,
    program: &CellProgram,
    cell: &Loop,
    arrays: &str,
    sub_groups: u64,
) -> Result<Lanes, TransformError> {
    let copy = |iname: &Loop| Loop::named(format!("{iname}_tail"));
    let own = |array: &Array| Array::named(format!("{array}_{arrays}"));
    let inside = [Selection::Inside(cell.into()), Selection::Tag(stage::SCATTER.into())];
    s.apply(MakeAtomic { insns: Selection::All(inside.to_vec()) })?;
    let gathers: Vec<_> = program.evaluated().into_iter().map(|k| &program.gathers[k]).collect();
    let of_dofs = gathers.iter().map(|g| &g.array).chain(program.results.iter().map(|r| &r.array));
    let mut lanes = Lanes { values: of_dofs.map(own).collect(), ..Lanes::default() };
    let mut spread: Vec<(Loop, i64)> = gathers.iter().map(|g| (copy(&g.dofs), g.count)).collect();
    for result in &program.results {
        spread.extend([&result.zero, &result.scatter].map(|l| (copy(l), result.count)));
    }
    let mut rolled = Vec::new();
    for block in &program.blocks {
        let mut quad = copy(&block.quad);
        let mut points = block.points;
        if points > MAX_POINTS {
            // factors of one round of points at a time in local memory
            points = LANES * length(sub_groups);
            let names = ["rounds", "round"].map(|end| format!("{quad}_{end}"));
            [_, quad] = s.split_as(&quad, points, [&names[0], &names[1]])?;
        }
        rolled.extend(block.evaluations.iter().map(|e| copy(&e.dofs)));
        for products in &block.products {
            for factor in &block.factors {
                s.expand(own(factor), [&quad])?;
                lanes.factors.push(own(factor));
            }
            let rows = copy(&products.rows);
            let sum = s.distribute_one(&quad, &rows, &format!("{quad}_sum"))?;
            s.interchange(&sum, &rows)?;
            rolled.push(sum);
            spread.push((rows, products.count));
        }
        spread.push((quad, points));
    }
    let of_cell: Vec<Array> = program.per_cell.iter().map(own).collect();
    for array in lanes.values.iter().chain(&of_cell).chain(&lanes.factors) {
        s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
    }
    for (iname, count) in spread {
        let names = ["round", "lane"].map(|end| format!("{iname}_{end}"));
        let [round, lane] = s.split_as(&iname, LANES, [&names[0], &names[1]])?;
        lanes.items.push(lane);
        if (count + LANES - 1) / LANES <= length(sub_groups) {
            lanes.sub_groups.push(round);
        }
    }
    // compilers would unroll them, and take registers from what the rest of the kernel does
    s.tag_all(&rolled, AxisTag::Rolled)?;
    s.tag(cell, AxisTag::Group(0))?;
    Ok(lanes)
}
