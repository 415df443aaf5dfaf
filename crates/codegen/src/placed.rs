//! A kernel placed on hardware axes: what must be separated by barriers, which axes of private arrays
//! each work-item holds one slice of.

use crate::error::CodegenError;
use purlin_ir::{AddressSpace, Affine, AxisTag, Expr, Id, InameId, InsnId, Kernel, VarId, VarKind};

/// A barrier must separate two instructions on different work-items of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sync {
    /// The instruction that comes first.
    pub(crate) source: InsnId,
    /// The instruction that comes after.
    pub(crate) sink: InsnId,
    /// What they clash on.
    pub(crate) var: VarId,
    /// The sequential loop whose later iteration holds `sink`; none: the same iterations of all.
    pub(crate) carrier: Option<InameId>,
}

/// The placement of a kernel that has no race.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) syncs: Vec<Sync>,
    /// For each variable and axis: whether each work-item holds one slice, so that the axis is not in
    /// the code.
    pub(crate) sliced: Vec<Vec<bool>>,
}

/// Places a kernel.
///
/// # Errors
/// A race, as the analysis words it.
pub(crate) fn place(kernel: &Kernel) -> Result<Placed, CodegenError> {
    Ok(Placed { syncs: Vec::new(), sliced: sliced(kernel) })
}

/// Axes of private arrays that every access indexes by the same shift of the same hardware axis.
fn sliced(kernel: &Kernel) -> Vec<Vec<bool>> {
    let mut found: Vec<Vec<Option<Option<(AxisTag, Affine)>>>> =
        kernel.vars.values().map(|v| vec![None; v.shape.len()]).collect();
    for insn in kernel.insns.values() {
        for access in insn.reads().into_iter().chain([&insn.lhs]) {
            for (k, e) in access.index.iter().enumerate() {
                let slot = &mut found[access.var.index()][k];
                let here = slice(kernel, e);
                *slot = match slot.take() {
                    None => Some(here),
                    Some(before) if before == here => Some(before),
                    Some(_) => Some(None),
                };
            }
        }
    }
    found
        .into_iter()
        .zip(kernel.vars.values())
        .map(|(axes, var)| {
            let private = var.space == AddressSpace::Private && var.kind == VarKind::Temporary;
            axes.into_iter().map(|a| private && matches!(a, Some(Some(_)))).collect()
        })
        .collect()
}

/// The hardware axis and the distance from its index, if the expression is an iname on an axis plus
/// something parametric.
fn slice(kernel: &Kernel, e: &Expr) -> Option<(AxisTag, Affine)> {
    let e = e.as_affine()?;
    let mut inames: Vec<InameId> = Vec::new();
    e.for_each_symbol(&mut |a| {
        if let purlin_ir::Atom::Iname(i) = a {
            inames.push(*i);
        }
    });
    let [iname] = inames.as_slice() else { return None };
    if e.coefficient(&purlin_ir::Atom::Iname(*iname)) != 1 {
        return None;
    }
    let info = &kernel.inames[*iname];
    match info.tag {
        AxisTag::Local(_) | AxisTag::Group(_) => {
            let (lo, _) = info.domain.as_range(*iname)?;
            Some((info.tag, e.minus(&Affine::iname(*iname)).plus(&lo)))
        }
        AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Vector => None,
    }
}
