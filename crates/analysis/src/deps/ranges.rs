//! Loops over the range between two entries of an ascending array.

use crate::polyhedral::Polyhedral;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::Constraint;
use kingpost_ir::expr::Expr;
use kingpost_ir::ids::{InsnId, VarId};
use kingpost_ir::kernel::{Assumption, WriteOp};

/// If the value lies in `starts[e] .. starts[e + 1]`, by the bounds of the loops around it, of an array that
/// ascends and that nothing writes: the array and `e`. It is the counter of such a loop, or the sum of the
/// counters that the loop was split into.
///
/// Formula: from `s[e] <= k < s[e + 1]`, `s[f] <= k < s[f + 1]` and an `s` that ascends follows
/// `e = f`: of `e < f` would follow `k < s[e + 1] <= s[f] <= k`.
pub(super) fn range_entry(poly: &Polyhedral, insn: InsnId, value: &Affine) -> Option<(VarId, Affine)> {
    let kernel = &*poly.kernel;
    // every pair of accesses asks, and few kernels have such an array
    if !kernel.assumptions.iter().any(|a| matches!(a, Assumption::Ascending(_))) {
        return None;
    }
    let loops = poly.loops(insn);
    let depth = loops.iter().position(|l| value.mentions(*l))?;
    let (mut lows, mut highs) = (Vec::new(), Vec::new());
    let own = loops[depth..].iter().filter_map(|l| kernel.inames[*l].domain.as_conjunction());
    for constraint in own.flatten() {
        let Constraint::NonNegative(e) = constraint else { continue };
        // `value - lo >= 0`, and `hi - 1 - value >= 0`
        lows.extend(loaded(poly, insn, depth, &value.minus(e)));
        highs.extend(loaded(poly, insn, depth, &e.plus(value).plus_constant(1)));
    }
    let is_range = |(lo, hi): (&Read<'_>, &Read<'_>)| {
        let ascends = kernel.assumptions.contains(&Assumption::Ascending(lo.starts));
        let written = kernel.insns.values().any(|i| i.lhs.var == lo.starts);
        let next = hi.entry.minus(&lo.entry).as_constant() == Some(1);
        lo.starts == hi.starts && next && ascends && !written && empty_together(poly, lo, hi)
    };
    let mut ranges = lows.iter().flat_map(|lo| highs.iter().map(move |hi| (lo, hi)));
    let (lo, _) = ranges.find(|range| is_range(*range))?;
    Some((lo.starts, lo.entry.clone()))
}

/// A bound that an instruction reads from an array.
struct Read<'k> {
    starts: VarId,
    entry: Affine,
    /// Where it is read, if it is not always: else the bound is a number.
    condition: Option<(&'k Expr, i64)>,
    reader: InsnId,
}

/// The entry of an array that a bound is, if it is a scalar that one instruction before the loop, in
/// loops around it alone, loads in each of their iterations, or where a condition holds.
fn loaded<'k>(poly: &'k Polyhedral, insn: InsnId, depth: usize, bound: &Affine) -> Option<Read<'k>> {
    let kernel = &*poly.kernel;
    let ([(Atom::Var(scalar), 1)], 0) = (bound.terms(), bound.constant_term()) else { return None };
    let mut writers = kernel.insns.iter().filter(|(_, i)| i.lhs.var == *scalar);
    let ((reader, load), None) = (writers.next()?, writers.next()) else { return None };
    let (around, loops) = (&poly.loops(insn)[..depth], poly.loops(reader));
    let before = poly.position(reader) < poly.position(insn) && around.starts_with(loops);
    if !before || load.predicate.is_some() || load.op != WriteOp::Assign || !load.lhs.index.is_empty() {
        return None;
    }
    let (value, condition) = if let Expr::Select(condition, value, otherwise) = &load.rhs {
        let Expr::Int(otherwise) = **otherwise else { return None };
        (&**value, Some((&**condition, otherwise)))
    } else {
        (&load.rhs, None)
    };
    let Expr::Load(entry) = value else { return None };
    let [index] = &entry.index[..] else { return None };
    let index = index.as_affine().filter(|e| poly.is_symbolic(e))?;
    Some(Read { starts: entry.var, entry: index, condition, reader })
}

/// Whether the loop runs nothing where one of its bounds is not read: both have one condition, which
/// nothing changes in between, and the same number instead.
fn empty_together(poly: &Polyhedral, lo: &Read<'_>, hi: &Read<'_>) -> bool {
    let Some((condition, _)) = lo.condition else { return hi.condition.is_none() };
    let places = [poly.position(lo.reader), poly.position(hi.reader)];
    let changes = poly.kernel.insns.iter().any(|(id, insn)| {
        let place = poly.position(id);
        condition.loads(insn.lhs.var)
            && places.iter().min() <= Some(&place)
            && Some(&place) <= places.iter().max()
    });
    lo.condition == hi.condition && poly.loops(lo.reader) == poly.loops(hi.reader) && !changes
}
