//! Writes that the work-items of a group repeat: each writes the same value to the same element.

use crate::placement::axes::{Axis, axis_of};
use crate::polyhedral::Polyhedral;
use kingpost_ir::affine::Atom;
use kingpost_ir::expr::Expr;
use kingpost_ir::ids::{InameId, InsnId, VarId};
use kingpost_ir::kernel::{AddressSpace, Insn, WriteOp};
use std::collections::BTreeSet;

/// Whether every iteration of the loop over work-items along `axis` around an instruction writes
/// the same value to the same element of memory that they share, so that their order says nothing.
///
/// Formula: with `l` that loop, neither the index, the value and the condition mention `l`, nor the
/// bounds of the loops inside; what is read is alike in all iterations; nothing else in `l` writes
/// the array.
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
    let mut alike = Alike { poly, item: *item, axis, seen: BTreeSet::new() };
    let alone = |(id, other): (InsnId, &Insn)| {
        id == insn || other.lhs.var != written.lhs.var || !poly.loops(id).contains(item)
    };
    shared
        && poly.only_value(&Atom::Iname(*item)).is_none()
        && written.callee.is_none()
        && !loops.iter().any(|l| l != item && alike.is_bound(*l))
        && alike.is_done(written)
        && kernel.insns.iter().all(alone)
}

/// What is the same in all iterations of a loop over work-items, in one iteration of the loops
/// around.
struct Alike<'p, 'k> {
    poly: &'p Polyhedral<'k>,
    item: InameId,
    axis: Axis,
    /// Variables that have been looked at, or are.
    seen: BTreeSet<VarId>,
}

impl Alike<'_, '_> {
    /// Whether the bounds of a loop mention the loop over work-items.
    fn is_bound(&self, l: InameId) -> bool {
        self.poly.kernel.inames[l].domain.mentions(self.item)
    }

    /// Whether an instruction does the same.
    fn is_done(&mut self, insn: &Insn) -> bool {
        let bounded = |e: &Expr| matches!(e, Expr::Reduce(r) if r.inames.iter().any(|l| self.is_bound(*l)));
        let varies = |e: &Expr| e.mentions(self.item) || e.any(&mut |e| bounded(e));
        !insn.expressions().any(varies) && insn.reads().iter().all(|access| self.has(access.var))
    }

    /// Whether a variable has the same values: nothing writes it, or each work-item holds its own
    /// and all do the same with it. A value that is read flows from the same work-item, which
    /// placement proves besides.
    fn has(&mut self, var: VarId) -> bool {
        let kernel = &*self.poly.kernel;
        let mut writers = kernel.insns.iter().filter(|(_, insn)| insn.lhs.var == var).peekable();
        if writers.peek().is_none() || !self.seen.insert(var) {
            return true; // of one that is looked at, values before are alike
        }
        kernel.vars[var].space == AddressSpace::Private && writers.all(|(id, insn)| self.writes(id, insn))
    }

    /// Whether an instruction that runs in all work-items, or in the iterations of the loop alone,
    /// does the same in each, and as often.
    fn writes(&mut self, id: InsnId, insn: &Insn) -> bool {
        let kernel = &*self.poly.kernel;
        let loops = self.poly.loops(id);
        let elsewhere = |l: &InameId| axis_of(kernel.inames[*l].tag) == Some(self.axis) && *l != self.item;
        if insn.callee.is_some() || loops.iter().any(elsewhere) {
            return false;
        }
        let inner = loops.iter().filter(|l| **l != self.item);
        let mut scalars = BTreeSet::new();
        for l in inner {
            if self.is_bound(*l) {
                return false;
            }
            kernel.inames[*l].domain.for_each_symbol(&mut |atom| {
                if let Atom::Var(var) = *atom {
                    scalars.insert(var);
                }
            });
        }
        self.is_done(insn) && scalars.into_iter().all(|var| self.has(var))
    }
}
