//! Loops over the range between two entries of an ascending array.

use crate::polyhedral::Polyhedral;
use purlin_ir::affine::{Affine, Atom};
use purlin_ir::expr::Expr;
use purlin_ir::ids::{InsnId, VarId};
use purlin_ir::kernel::{Assumption, WriteOp};

/// If the value is the counter of a loop over `starts[e] .. starts[e + 1]` of an array that ascends
/// and that nothing writes: the array and `e`.
///
/// Formula: from `s[e] <= k < s[e + 1]`, `s[f] <= k < s[f + 1]` and an `s` that ascends follows
/// `e = f`: of `e < f` would follow `k < s[e + 1] <= s[f] <= k`.
pub(super) fn range_entry(poly: &Polyhedral, insn: InsnId, value: &Affine) -> Option<(VarId, Affine)> {
    let kernel = &*poly.kernel;
    let ([(Atom::Iname(k), 1)], 0) = (value.terms(), value.constant_term()) else { return None };
    let range = kernel.inames[*k].domain.as_guarded_range(*k)?;
    let depth = poly.loops(insn).iter().position(|l| l == k)?;
    let (starts, first) = loaded(poly, insn, depth, &range.lo)?;
    let (ends, last) = loaded(poly, insn, depth, &range.hi)?;
    let ascends = kernel.assumptions.contains(&Assumption::Ascending(starts));
    let written = kernel.insns.values().any(|i| i.lhs.var == starts);
    let next = last.minus(&first).as_constant() == Some(1);
    (starts == ends && next && ascends && !written).then_some((starts, first))
}

/// The entry of an array that a bound is, if it is a scalar that one instruction before the loop, in
/// loops around it alone, loads in each of their iterations.
fn loaded(poly: &Polyhedral, insn: InsnId, depth: usize, bound: &Affine) -> Option<(VarId, Affine)> {
    let kernel = &*poly.kernel;
    let ([(Atom::Var(scalar), 1)], 0) = (bound.terms(), bound.constant_term()) else { return None };
    let mut writers = kernel.insns.iter().filter(|(_, i)| i.lhs.var == *scalar);
    let ((writer, load), None) = (writers.next()?, writers.next()) else { return None };
    let (around, loops) = (&poly.loops(insn)[..depth], poly.loops(writer));
    let before = poly.position(writer) < poly.position(insn) && around.starts_with(loops);
    if !before || load.predicate.is_some() || load.op != WriteOp::Assign || !load.lhs.index.is_empty() {
        return None;
    }
    let Expr::Load(entry) = &load.rhs else { return None };
    let [index] = &entry.index[..] else { return None };
    let index = index.as_affine().filter(|e| poly.is_symbolic(e))?;
    Some((entry.var, index))
}
