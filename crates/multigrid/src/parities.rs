//! The fused kernel on even and odd parts of nodes and eigenvectors: the matrices of a line of two
//! cells are those of its mirror image, so that they have two blocks of half their size.

use crate::ahead::SOURCE;
use crate::line::Line;
use crate::{Element, MultigridError, Steps};
use kingpost_ir::AddressSpace;
use kingpost_primitives::primitives::{
    CopyTable, DecomposeParity, DistributeLoop, ExpandArray, FixArgument, PrefetchArray, StageValue,
};
use kingpost_primitives::{Schedule, Selection};

/// Places for the parts of a parity: the lines of half a tile of sixteen.
pub(crate) const HALF: usize = 8;

/// Loops over pairs of nodes `[k, j, i]`, with the axis of the lines of the array in them, which is in
/// registers.
pub(crate) const PAIRS: [([&str; 3], &str, usize); 3] = [
    (["k_u", "j_u", "i_u"], "u", 0),
    (["k_rhs", "j_rhs", "i_rhs"], "rhs", 2),
    (["k_correct", "j_correct", "i_correct"], "correction", 2),
];

/// Arrays of one length along an axis that depend on each other there: nodes of a patch, its inner nodes
/// before the eigenvectors, and those after, whose parts are halves so that nodes are sums of parts.
const LINES: [(&[(&str, u32)], bool); 9] = [
    (&[("u", 2)], false),
    (&[("u", 1), ("mu", 1), ("au", 1)], false),
    (&[("u", 0), ("mu", 0), ("au", 0), ("mm", 0), ("ma", 0)], false),
    (&[("mu", 2), ("au", 2), ("mm", 2), ("ma", 2), ("rhs", 2), ("r", 2), ("s0", 2), ("s1", 2)], false),
    (&[("mm", 1), ("ma", 1), ("rhs", 1), ("r", 1), ("s0", 1)], false),
    (&[("rhs", 0), ("r", 0)], false),
    (&[("s3", 2), ("s4", 2), ("correction", 2)], true),
    (&[("s4", 1), ("correction", 1)], true),
    (&[("correction", 0)], true),
];

/// Decomposes the fused kernel, whose reductions are not realised yet, with [`HALF`] places for the
/// eigenvectors of either parity.
pub(crate) fn decompose(s: &mut Schedule, element: Element) -> Result<(), MultigridError> {
    let line = Line::new(element.degree)?;
    let (vectors, values) = line.modes_by_parity(HALF);
    let known =
        [("M", line.mass.entries), ("A", line.stiffness.entries), ("S", vectors.entries), ("lambda", values)];
    for (name, values) in known {
        s.apply(FixArgument::real(name, values))?;
    }
    // no table has the name of an argument of the plain kernel
    s.apply(CopyTable::new("lambda", Selection::Insn("to_modes0".into()), "eigenvalues"))?;
    stage(s)?;
    for (lines, halved) in LINES {
        let of = DecomposeParity::new(lines.iter().copied(), HALF as u32);
        s.apply(if halved { of.halved() } else { of })?;
    }
    Ok(())
}

/// Gives the right-hand side and the correction arrays and nests of their own.
fn stage(s: &mut Schedule) -> Steps {
    let source = if s.kernel().var(SOURCE).is_some() { SOURCE } else { "b" };
    s.apply(PrefetchArray {
        inames: ["k_rhs", "j_rhs", "i_rhs"].map(str::to_owned).into(),
        ..PrefetchArray::new(source, "p0", AddressSpace::Private)
            .into_temporary("rhs")
            .only_in(Selection::Insn("residual".into()))
    })?;
    let nest = ["k_8", "j_8", "i_8"];
    s.apply(StageValue::new("correct", "correction"))?;
    s.apply(ExpandArray::new("correction", nest))?;
    for (along, name) in nest.into_iter().zip(["k_correct", "j_correct", "i_correct"]).rev() {
        let names = vec![name.to_owned()];
        s.make(DistributeLoop { names, ..DistributeLoop::new(along, ["correct"]) })?;
    }
    Ok(())
}
