//! Patches that a group solves for one after the other, each copied to local memory by asynchronous
//! copies while the one before is computed.

use crate::{Dimension, Precision, Steps};
use kingpost_ir::AddressSpace;
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::intrinsics::{COPY_ASYNC_F32, COPY_ASYNC_F64};
use kingpost_primitives::primitives::{
    DeclareCallee, PipelineLoop, PrefetchArray, ReplaceWithIntrinsic, SplitIname,
};
use kingpost_primitives::{Schedule, Selection, TransformError};

/// The loop over groups where patches are taken one after the other; `p0` is then that over the
/// patches of a group.
pub(crate) const GROUPS: &str = "p0_groups";

/// Nodes of a patch before they are needed.
pub(crate) const NODES: &str = "x_ahead";

/// Entries of the right-hand side of a patch before they are needed.
pub(crate) const SOURCE: &str = "b_ahead";

/// Loops over planes, rows and columns of a copy.
pub(crate) const SOURCE_LOOPS: [&str; 3] = ["k_b", "j_b", "i_b"];
pub(crate) const NODES_LOOPS: [&str; 3] = ["k_x", "j_x", "i_x"];

/// Gives each group a number of patches of a row, one after the other.
pub(crate) fn take_in_turn(s: &mut Schedule, patches: u32) -> Steps {
    let (outer, inner) = (Some(GROUPS.to_owned()), Some("p0_turn".to_owned()));
    s.apply(SplitIname { outer, inner, ..SplitIname::new("p0", i64::from(patches)) })?;
    s.rename_loop("p0_turn", "p0").map(drop)
}

/// Copies what a patch reads of an array to a temporary.
fn copy(s: &mut Schedule, of: (&str, &str, Selection), loops: &[&str], space: AddressSpace) -> Steps {
    let (array, into, insns) = of;
    let inames = loops.iter().map(|l| (*l).to_owned()).collect();
    let fetch = PrefetchArray { inames, ..PrefetchArray::new(array, "p0", space) };
    s.apply(fetch.into_temporary(into).only_in(insns)).map(drop)
}

/// The nodes of a patch in local memory.
pub(crate) fn copy_nodes(s: &mut Schedule) -> Steps {
    copy(s, ("x", NODES, Selection::Insn("fetch".into())), &NODES_LOOPS, AddressSpace::Local)
}

/// The right-hand side of a patch in a memory.
pub(crate) fn copy_source(s: &mut Schedule, dimension: Dimension, space: AddressSpace) -> Steps {
    let loops = &SOURCE_LOOPS[3 - dimension.axes()..];
    copy(s, ("b", SOURCE, Selection::Insn("residual".into())), loops, space)
}

/// Parts of a loop over the patches of a group at a time: the copies, what uses them, and the rest.
pub(crate) fn part(
    s: &mut Schedule,
    along: &str,
    dimension: Dimension,
    copies_source: bool,
) -> Result<Vec<String>, TransformError> {
    let before: &[&str] = match dimension {
        Dimension::Two => &["mass0", "fetch_b_ahead", "residual", "to_modes0"],
        Dimension::Three => &["mass0", "mass1", "fetch_b_ahead", "residual", "to_modes1"],
    };
    let there = before.iter().copied().filter(|name| copies_source || *name != "fetch_b_ahead");
    Ok(s.distribute(along, there)?.iter().map(String::from).collect())
}

/// Fills the arrays for the next patch of a group after their last use, by copies that go on.
pub(crate) fn pipeline(s: &mut Schedule, arrays: &[&str], precision: Precision) -> Steps {
    for array in arrays {
        s.apply(PipelineLoop::new("p0", [*array]).with_buffers(1))?;
    }
    let (callee, name) = match precision {
        Precision::Double => (COPY_ASYNC_F64, "copy_async_f64"),
        Precision::Single => (COPY_ASYNC_F32, "copy_async_f32"),
    };
    s.apply(DeclareCallee::new(callee))?;
    for array in arrays {
        let var = s.kernel().var(array);
        let fills = s.kernel().insns.values().filter(|insn| Some(insn.lhs.var) == var);
        let fills: Vec<String> = fills.map(|insn| insn.name.clone()).collect();
        fills.into_iter().try_for_each(|fill| s.apply(ReplaceWithIntrinsic::new([fill], name)).map(drop))?;
    }
    Ok(())
}
