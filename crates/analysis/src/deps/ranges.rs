//! Values in the range between two entries of an ascending array.

use crate::deps::access::AccessSite;
use crate::polyhedral::Polyhedral;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::Constraint;
use kingpost_ir::expr::{BinaryOp, Expr};
use kingpost_ir::ids::{InameId, InsnId, VarId};
use kingpost_ir::kernel::{Assumption, Insn, WriteOp};

/// Entries of an ascending array that are the same where two indices are, each of which lies between
/// two entries of the array: by the bounds of the loops around the access, or by its condition. It is
/// the counter of such a loop, the sum of the counters that the loop was split into, or a sum of
/// scalars. What both indices subtract may be a scalar that has one value in an iteration of
/// `within`, in which both accesses are.
///
/// Formula: from `s[e] <= k < s[e + c]`, `s[f] <= k < s[f + c]` and an `s` that ascends follows
/// `|e - f| < c`: of `e + c <= f` would follow `k < s[e + c] <= s[f] <= k`. Where `e - f` is a
/// multiple of `c`, `e = f` follows. The upper entry may be the smaller one of `e + c` and others.
pub(super) fn same_range(
    poly: &Polyhedral,
    (a, x): (&AccessSite, &Affine),
    (b, y): (&AccessSite, &Affine),
    within: &[InameId],
) -> Option<(Affine, Affine)> {
    // every pair of accesses asks, and few kernels have such an array
    if !poly.kernel.assumptions.iter().any(|a| matches!(a, Assumption::Ascending(_))) {
        return None;
    }
    let (p, q) = (range(poly, a, x)?, range(poly, b, y)?);
    let one_base = p.base == q.base && p.base.is_none_or(|base| keeps_value(poly, base, [a, b], within));
    let same = p.starts == q.starts && p.length == q.length && one_base;
    (same && are_steps(&p.entry, &q.entry, p.length)).then_some((p.entry, q.entry))
}

/// A value of which with `base` is known `starts[entry] <= value + base < starts[entry + length]`.
struct Range {
    starts: VarId,
    entry: Affine,
    length: i64,
    base: Option<VarId>,
}

fn range(poly: &Polyhedral, site: &AccessSite, value: &Affine) -> Option<Range> {
    let kernel = &*poly.kernel;
    let loops = poly.loops(site.insn);
    let depth = loops.iter().position(|l| value.mentions(*l)).unwrap_or(loops.len());
    let (mut lows, mut highs) = (Vec::new(), Vec::new());
    let mut bound = |constraint: &Constraint, around: &[InameId]| {
        let Constraint::NonNegative(e) = constraint else { return };
        // `value - lo >= 0`, and `hi - 1 - value >= 0`
        lows.extend(loaded(poly, (site.insn, around), &value.minus(e)));
        highs.extend(loaded(poly, (site.insn, around), &e.plus(value).plus_constant(1)));
    };
    let own = loops[depth..].iter().filter_map(|l| kernel.inames[*l].domain.as_conjunction());
    own.flatten().for_each(|constraint| bound(constraint, &loops[..depth]));
    // of a condition, the scalars have the values that the index has
    let conditions = poly.conditions(site.insn, site.conditions);
    let conditions = conditions.iter().filter_map(|domain| domain.as_conjunction());
    conditions.flatten().for_each(|constraint| bound(constraint, loops));
    let of = |(lo, hi): (&Read<'_>, &Read<'_>)| {
        let [entry] = &lo.entries[..] else { return None };
        let ascends = kernel.assumptions.contains(&Assumption::Ascending(lo.starts));
        let written = kernel.insns.values().any(|i| i.lhs.var == lo.starts);
        let is_range = lo.starts == hi.starts && lo.base == hi.base && ascends && !written;
        let lengths = hi.entries.iter().filter_map(|end| end.minus(entry).as_constant());
        let length = lengths.filter(|length| *length >= 1).min()?;
        let range = Range { starts: lo.starts, entry: entry.clone(), length, base: lo.base };
        (is_range && empty_together(poly, lo, hi)).then_some(range)
    };
    let mut ranges = lows.iter().flat_map(|lo| highs.iter().map(move |hi| (lo, hi)));
    ranges.find_map(of)
}

/// Whether the difference of two entries is a multiple of a number.
fn are_steps(e: &Affine, f: &Affine, length: i64) -> bool {
    let is_multiple = |c: i64| c % length == 0;
    let counters =
        |e: &Affine| e.terms().iter().all(|(atom, c)| is_multiple(*c) || matches!(atom, Atom::Var(_)));
    let rest = |e: &Affine| {
        let terms = e.terms().iter().filter(|(_, c)| !is_multiple(*c)).cloned();
        terms.collect::<Vec<_>>()
    };
    let constants = e.constant_term().checked_sub(f.constant_term());
    // parameters have one value
    counters(e) && counters(f) && rest(e) == rest(f) && constants.is_some_and(is_multiple)
}

/// The instruction that alone writes a scalar, which it assigns to whatever the values are.
fn only_writer<'k>(poly: &'k Polyhedral, scalar: VarId) -> Option<(InsnId, &'k Insn)> {
    let mut writers = poly.kernel.insns.iter().filter(|(_, i)| i.lhs.var == scalar);
    let ((id, insn), None) = (writers.next()?, writers.next()) else { return None };
    let is_certain = insn.predicate.is_none() && insn.op == WriteOp::Assign && insn.lhs.index.is_empty();
    is_certain.then_some((id, insn))
}

/// Whether a scalar has one value at both accesses, in one iteration of these loops: it is written
/// before, in no loop besides.
fn keeps_value(poly: &Polyhedral, scalar: VarId, sites: [&AccessSite; 2], within: &[InameId]) -> bool {
    only_writer(poly, scalar).is_some_and(|(writer, _)| {
        let before = |site: &AccessSite| poly.position(writer) < poly.position(site.insn);
        within.starts_with(poly.loops(writer)) && sites.into_iter().all(before)
    })
}

/// A bound that an instruction reads from an array, less a scalar.
struct Read<'k> {
    starts: VarId,
    /// The entry is the smallest of these.
    entries: Vec<Affine>,
    base: Option<VarId>,
    /// Where it is read, if it is not always: else the bound is a number.
    condition: Option<(&'k Expr, i64)>,
    reader: InsnId,
}

/// The entry of an array that a bound is, if it is a scalar that one instruction before it, in
/// loops around it alone, loads in each of their iterations, or where a condition holds.
fn loaded<'k>(
    poly: &'k Polyhedral,
    (insn, around): (InsnId, &[InameId]),
    bound: &Affine,
) -> Option<Read<'k>> {
    let bound = &expanded(poly, (insn, around), bound);
    let (scalar, base) = match (bound.terms(), bound.constant_term()) {
        ([(Atom::Var(scalar), 1)], 0) => (*scalar, None),
        ([(Atom::Var(scalar), 1), (Atom::Var(base), -1)], 0)
        | ([(Atom::Var(base), -1), (Atom::Var(scalar), 1)], 0) => (*scalar, Some(*base)),
        _ => return None,
    };
    let (reader, load) = only_writer(poly, scalar)?;
    let before = poly.position(reader) < poly.position(insn) && around.starts_with(poly.loops(reader));
    if !before {
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
    let entries = if let Expr::Binary(BinaryOp::Min, x, y) = index { vec![&**x, &**y] } else { vec![index] };
    let symbolic = |e: &Expr| e.as_affine().filter(|e| poly.is_symbolic(e));
    let entries = entries.into_iter().map(symbolic).collect::<Option<_>>()?;
    Some(Read { starts: entry.var, entries, base, condition, reader })
}

/// The bound with what scalars are computed of, where one instruction before it, in loops around it
/// alone, assigns a sum of other scalars, which keep their values from there on: their writers stand
/// before it in the same way.
fn expanded(poly: &Polyhedral, (insn, around): (InsnId, &[InameId]), bound: &Affine) -> Affine {
    let is_before = |writer: InsnId, insn: InsnId, around: &[InameId]| {
        poly.position(writer) < poly.position(insn) && around.starts_with(poly.loops(writer))
    };
    let sum_of = |scalar: VarId| {
        let (writer, assigned) = only_writer(poly, scalar)?;
        let sum = assigned.rhs.as_affine()?;
        let is_kept = |atom: &Atom| {
            let Atom::Var(part) = atom else { return false };
            let read = only_writer(poly, *part);
            read.is_some_and(|(reader, _)| is_before(reader, writer, poly.loops(writer)))
        };
        let are_kept = sum.terms().iter().all(|(atom, _)| is_kept(atom));
        (are_kept && is_before(writer, insn, around)).then_some(sum)
    };
    bound.substitute(&|atom| if let Atom::Var(scalar) = atom { sum_of(*scalar) } else { None })
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
