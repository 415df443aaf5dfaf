//! Copies to local memory that are under way while the block of cells before is computed.

use super::blocks::statements;
use super::fragments::{Axes, LANES};
use super::instruction::CELLS;
use super::staging::{CellNest, deal};
use kingpost_forms::program::{CellProgram, stage};
use kingpost_ir::{AddressSpace, Kernel};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::intrinsics::COPY_ASYNC_F64;
use kingpost_primitives::primitives::{DeclareCallee, PipelineLoop, ReplaceWithIntrinsic, SetAddressSpace};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};

/// What is copied for the next block of cells.
pub(super) struct Ahead {
    /// The degrees of freedom.
    values: Array,
    /// The coordinates of vertices, if the geometry begins with their gather.
    pub(super) vertices: Option<Vertices>,
}

/// The gather of the vertices of a block.
pub(super) struct Vertices {
    array: Array,
    cells: Loop,
    /// Over the vertices of a cell.
    rows: Loop,
    count: i64,
}

impl Ahead {
    /// Takes the gather of vertices, the statement `first` of the loop `geometry` over cells, out of it;
    /// returns the loop over what is left, too.
    pub(super) fn of(
        s: &mut Schedule,
        values: &Array,
        geometry: Loop,
        first: &str,
    ) -> Result<(Self, Loop), TransformError> {
        let values = values.clone();
        let found = gather_of_vertices(s.kernel(), first);
        let second = statements(s.kernel(), geometry.name()).get(1).cloned();
        let (Some((array, count)), Some(second)) = (found, second) else {
            return Ok((Self { values, vertices: None }, geometry));
        };
        s.expand(&array, [&geometry])?;
        let rest = s.distribute_one(&geometry, second, "cell_factors")?;
        let vertices = Vertices { array, cells: geometry, rows: Loop::named(first), count };
        Ok((Self { values, vertices: Some(vertices) }, rest))
    }

    /// Fills the arrays for the next iteration of `turn` after their last use, by copies that go on.
    pub(super) fn pipeline(&self, s: &mut Schedule, turn: &Loop) -> Result<(), TransformError> {
        let arrays = || self.vertices.iter().map(|v| &v.array).chain([&self.values]);
        s.apply(PipelineLoop::new(turn, arrays().map(String::from)).with_buffers(1))?;
        s.apply(DeclareCallee::new(COPY_ASYNC_F64))?;
        for array in arrays() {
            for copy in fills(s.kernel(), array) {
                s.apply(ReplaceWithIntrinsic::new([copy], "copy_async_f64"))?;
            }
        }
        Ok(())
    }
}

impl Vertices {
    /// Deals the vertices of sixteen cells out to their sub-group.
    pub(super) fn deal(&self, s: &mut Schedule, axes: &mut Axes) -> Result<(), TransformError> {
        let [sub_group, cells] = s.split_as(&self.cells, CELLS, ["vertices_sub_group", "vertices_cell"])?;
        let nest = CellNest {
            array: &self.array,
            cells: &cells,
            rows: &self.rows,
            component: None,
            shape: [self.count, 1],
        };
        let flat = deal(s, &nest, "vertices", [LANES, 1])?;
        s.apply(SetAddressSpace::new(&self.array, AddressSpace::Local))?;
        axes.sub_groups.push(sub_group);
        axes.items.extend(flat.items);
        axes.unrolled.push(flat.round);
        Ok(())
    }
}

/// Numbers of a cell that are copied ahead besides degrees of freedom: coordinates of vertices, none
/// where nothing gathers them. `None` if their number is no constant.
pub(super) fn coordinates(kernel: &Kernel, program: &CellProgram) -> Option<u64> {
    let is_function = |name: &String| program.gathers.iter().any(|g| g.dofs.name() == name);
    let body = statements(kernel, program.cells.cell.name());
    let first = body.iter().find(|name| !is_function(name));
    let Some((array, _)) = first.and_then(|name| gather_of_vertices(kernel, name)) else { return Some(0) };
    let shape = &kernel.vars[kernel.var(array.name())?].shape;
    shape.iter().map(|n| Some(n.as_constant()?.unsigned_abs())).product()
}

/// The array that a loop over vertices gathers into, and their number.
fn gather_of_vertices(kernel: &Kernel, name: &str) -> Option<(Array, i64)> {
    let iname = kernel.iname(name)?;
    let count = kernel.inames[iname].domain.as_range(iname)?.1.as_constant()?;
    let around = |(insn, loops): &(_, Vec<_>)| loops.contains(&iname).then_some(*insn);
    let insns: Vec<_> = kernel.schedule().iter().filter_map(around).collect();
    let first = kernel.insns.get(*insns.first()?)?.lhs.var;
    let gathers = |insn: &&_| {
        let insn = &kernel.insns[**insn];
        insn.lhs.var == first && insn.tags.iter().any(|tag| tag == stage::GATHER)
    };
    let only = insns.iter().filter(gathers).count() == insns.len();
    only.then(|| (Array::named(&kernel.vars[first].name), count))
}

/// The statements that store to an array.
fn fills(kernel: &Kernel, array: &Array) -> Vec<String> {
    let var = kernel.var(array.name());
    let stores = kernel.insns.values().filter(|insn| Some(insn.lhs.var) == var);
    stores.map(|insn| insn.name.clone()).collect()
}
