//! Writes that the work-items of a group repeat: each writes the same value to the same element.

use crate::placement::axes::{Axis, axis_of};
use crate::polyhedral::Polyhedral;
use purlin_ir::affine::Atom;
use purlin_ir::expr::Expr;
use purlin_ir::ids::{InameId, InsnId};
use purlin_ir::kernel::{AddressSpace, WriteOp};

/// Whether every iteration of the loop over work-items along `axis` around an instruction writes the same
/// value to the same element of memory that they share, so that their order says nothing.
///
/// Formula: with `l` that loop, neither the index, the value and the condition mention `l`, nor the bounds of
/// the loops inside; nothing in the kernel writes what is read; nothing else in `l` writes the array.
pub(super) fn is_repeated(poly: &Polyhedral, insn: InsnId, axis: Axis) -> bool {
    let kernel = &*poly.kernel;
    let written = &kernel.insns[insn];
    let shared = match kernel.vars[written.lhs.var].space {
        AddressSpace::Local | AddressSpace::Global => true,
        AddressSpace::SubGroup | AddressSpace::Private | AddressSpace::Constant | AddressSpace::Literal => {
            false
        }
    };
    let loops = poly.loops(insn);
    let on_axis = |l: &&InameId| axis_of(kernel.inames[**l].tag) == Some(axis);
    let (Axis::Local(_), WriteOp::Assign, Some(item)) = (axis, &written.op, loops.iter().find(on_axis))
    else {
        return false;
    };
    let bounds = |l: &InameId| kernel.inames[*l].domain.mentions(*item);
    let bounded = |e: &Expr| matches!(e, Expr::Reduce(r) if r.inames.iter().any(bounds));
    let varies = |e: &Expr| e.mentions(*item) || e.any(&mut |e| bounded(e));
    let stays = |var| kernel.insns.values().all(|other| other.lhs.var != var);
    let alone = |(id, other): (InsnId, &purlin_ir::Insn)| {
        id == insn || other.lhs.var != written.lhs.var || !poly.loops(id).contains(item)
    };
    shared
        && poly.only_value(&Atom::Iname(*item)).is_none()
        && written.callee.is_none()
        && !loops.iter().any(|l| l != item && bounds(l))
        && !written.expressions().any(varies)
        && written.reads().iter().all(|access| stays(access.var))
        && kernel.insns.iter().all(alone)
}
