//! Accesses of which one finds its element through an array whose entries are outside a range.

use crate::deps::access::AccessSite;
use crate::polyhedral::{Polyhedral, Side, conjunction, cross, difference};
use kingpost_ir::Access;
use kingpost_ir::affine::Affine;
use kingpost_ir::expr::{BinaryOp, Expr};
use kingpost_ir::kernel::Assumption;
use kingpost_isl as isl;

/// What is known where an affine index equals one that is read from an array.
pub(super) enum Met {
    /// They never do.
    Never,
    /// Then these are equal, of the first access and of the second one.
    In(Affine, Affine),
}

/// What follows where one index is affine, the other one an entry of an array that nothing writes
/// and an affine offset, and the affine one without the offset is in a range that entries are
/// outside.
///
/// Formula: from `x = m[r, i] + d`, `from <= x - d < to` and not `from <= m[r, i] < to` follows a
/// contradiction. Where rows of `m` have `l` numbers alone
/// ([`OutsideRange`](kingpost_ir::OutsideRange)) and `d = 0`, `floor((x - from)/l) = r` follows,
/// and a contradiction where `i` is none of their columns.
pub(super) fn met(poly: &Polyhedral, a: &AccessSite, b: &AccessSite, axis: usize) -> Option<Met> {
    let kernel = &*poly.kernel;
    // every pair of accesses asks, and few kernels have such an array
    if !kernel.assumptions.iter().any(|a| matches!(a, Assumption::Outside(_))) {
        return None;
    }
    let (value, known, read, swapped) = match (&a.index[axis], &b.index[axis]) {
        (Some(value), None) => (value, a, b, false),
        (None, Some(value)) => (value, b, a, true),
        (None, None) | (Some(_), Some(_)) => return None,
    };
    let (entry, offset) = entry_and_offset(&read.access.index[axis])?;
    if !poly.is_symbolic(&offset) || kernel.insns.values().any(|i| i.lhs.var == entry.var) {
        return None;
    }
    kernel.assumptions.iter().find_map(|assumption| {
        let Assumption::Outside(outside) = assumption else { return None };
        let ends = [&outside.from, &outside.to];
        if outside.array != entry.var || !is_within(poly, ends, [(known, value), (read, &offset)]) {
            return None;
        }
        let Some(own) = outside.own else { return Some(Met::Never) };
        let [row, column] = &entry.index[..] else { return None };
        let [row, column] = [row, column].map(|e| e.as_affine().filter(|e| poly.is_symbolic(e)));
        let (zero, own) = (Affine::default(), Affine::constant(own));
        if column.is_some_and(|column| is_within(poly, [&zero, &own], [(read, &column), (known, &zero)])) {
            return Some(Met::Never);
        }
        let row = row.filter(|_| offset.as_constant() == Some(0))?;
        let of_value = value.minus(&outside.from).floor_div(outside.length(kernel));
        Some(if swapped { Met::In(row, of_value) } else { Met::In(of_value, row) })
    })
}

/// The entry of an array and the affine rest that an index is the sum of.
fn entry_and_offset(index: &Expr) -> Option<(&Access, Affine)> {
    if let Expr::Load(entry) = index {
        return (!entry.index.is_empty()).then(|| (entry, Affine::default()));
    }
    let Expr::Binary(BinaryOp::Add, x, y) = index else { return None };
    let ((entry, offset), rest) = match (x.as_affine(), y.as_affine()) {
        (None, Some(rest)) => (entry_and_offset(x)?, rest),
        (Some(rest), None) => (entry_and_offset(y)?, rest),
        (None, None) | (Some(_), Some(_)) => return None,
    };
    Some((entry, offset.plus(&rest)))
}

/// Whether the difference of two values is in a range at all instances of the accesses.
///
/// Formula: `{ i -> j : i in D_a, j in D_b, not from <= f_a(i) - f_b(j) < to }` is empty. A failure of isl
/// proves nothing: the accesses then may meet, and who asks for their relation hears of it.
fn is_within(poly: &Polyhedral, ends: [&Affine; 2], values: [(&AccessSite, &Affine); 2]) -> bool {
    let mut names = Vec::new();
    let mut all = vec![Vec::new()];
    let mut terms = Vec::new();
    for ((site, value), side) in values.into_iter().zip([Side::Source, Side::Sink]) {
        let (instances, _) = poly.instances_under(site.insn, site.conditions, side);
        let (reduced, _) = poly.domains(&site.reduction, side);
        all = cross(&all, &conjunction(instances, reduced));
        names.extend(poly.names(poly.loops(site.insn), side));
        names.extend(poly.names(&site.reduction, side));
        terms.extend(poly.affine(value, side));
    }
    let ends = ends.map(|end| poly.affine(end, Side::Source));
    let ([value, offset], [Some(from), Some(to)]) = (&terms[..], ends) else { return false };
    let value = difference(value, offset);
    let outside = [difference(&from, &value).offset(-1), difference(&value, &to)];
    let outside = outside.map(|e| vec![isl::Constraint::non_negative(e)]).to_vec();
    let all = poly.in_context(conjunction(all, outside));
    let space = isl::SetSpace::new(&names, &poly.params);
    isl::Set::from_disjuncts(&space, &all).and_then(|set| set.is_empty()).unwrap_or(false)
}
