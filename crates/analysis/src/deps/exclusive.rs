//! Accesses through maps: entries of injective ones, items of block-local lists that no other block has.

use crate::deps::access::AccessSite;
use crate::polyhedral::Polyhedral;
use kingpost_ir::affine::Affine;
use kingpost_ir::expr::{BinaryOp, Expr};
use kingpost_ir::ids::VarId;
use kingpost_ir::kernel::Assumption;
use kingpost_ir::{BlockLists, ExclusiveItems, TableData, VarKind};

/// If both indices are items of the same lists, one is exclusive and the other one is exclusive or
/// among those that are not: equal items are the same item, so that the entries are equal.
///
/// Formula: with `i` the items, `e` and `c` the counts and `f` the room of exclusive ones, from `i[b, k] =
/// i[b', k']`, `k < e[b]` and `k' < e[b'] or f <= k' < c[b']` follows `b = b'` and `k = k'`
/// ([`BlockLists`]). The conditions are parts of those of the instructions.
pub(super) fn same_exclusive_item(
    poly: &Polyhedral,
    a: &AccessSite,
    b: &AccessSite,
    axis: usize,
) -> Option<Vec<(Affine, Affine)>> {
    let (items, entries) = map_entries(poly, &a.access.index[axis], &b.access.index[axis])?;
    let exclusive = poly.kernel.assumptions.iter().any(|assumption| {
        let Assumption::Lists(lists) = assumption else { return false };
        let Some(of) = lists.exclusive.filter(|of| lists.items == items && is_read_only(poly, lists, of))
        else {
            return false;
        };
        let [first, second] = [a, b].map(|site| part(poly, site, axis, lists, of));
        match (first, second) {
            (Some(first), Some(second)) => first == Part::Exclusive || second == Part::Exclusive,
            (None, _) | (_, None) => false,
        }
    });
    exclusive.then_some(entries)
}

/// Whether no instruction writes what says how long lists are.
fn is_read_only(poly: &Polyhedral, lists: &BlockLists, of: &ExclusiveItems) -> bool {
    !poly.kernel.insns.values().any(|i| i.lhs.var == of.counts || i.lhs.var == lists.counts)
}

/// Where an item stands in its list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Exclusive,
    Other,
}

/// The part of its list in which an access surely finds its element.
fn part(
    poly: &Polyhedral,
    site: &AccessSite,
    axis: usize,
    lists: &BlockLists,
    of: ExclusiveItems,
) -> Option<Part> {
    let Expr::Load(item) = &site.access.index[axis] else { return None };
    let [block, place] = &item.index[..] else { return None };
    let predicate = poly.kernel.insns[site.insn].predicate.as_ref()?;
    let mut conditions = predicate.conjuncts();
    conditions.truncate(site.conditions.unwrap_or(usize::MAX));
    let below = |counts: VarId| {
        conditions.iter().any(|condition| {
            let Expr::Binary(BinaryOp::Lt, k, bound) = condition else { return false };
            let Expr::Load(count) = &**bound else { return false };
            let of_block = matches!(&count.index[..], [b] if equal(b, block));
            count.var == counts && of_block && equal(k, place)
        })
    };
    let behind = || {
        conditions.iter().any(|condition| {
            let Expr::Binary(BinaryOp::Le, first, k) = condition else { return false };
            **first == Expr::Int(of.room) && equal(k, place)
        })
    };
    if below(of.counts) {
        Some(Part::Exclusive)
    } else if behind() && below(lists.counts) {
        Some(Part::Other)
    } else {
        None
    }
}

/// Whether two integers are written alike, or are the same affine expression.
fn equal(a: &Expr, b: &Expr) -> bool {
    a == b || matches!((a.as_affine(), b.as_affine()), (Some(a), Some(b)) if a == b)
}

/// The array of which both indices are entries, if no instruction writes it, and where those are,
/// as far as it is known. An entry may be found through an injective array itself.
pub(super) fn map_entries(poly: &Polyhedral, x: &Expr, y: &Expr) -> Option<(VarId, Vec<(Affine, Affine)>)> {
    let (Expr::Load(p), Expr::Load(q)) = (x, y) else { return None };
    if p.var != q.var || poly.kernel.insns.values().any(|i| i.lhs.var == p.var) {
        return None;
    }
    let entries = p.index.iter().zip(&q.index).flat_map(|(s, t)| match (s.as_affine(), t.as_affine()) {
        (Some(s), Some(t)) if poly.is_symbolic(&s) && poly.is_symbolic(&t) => vec![(s, t)],
        (Some(_), Some(_)) => Vec::new(),
        (None, _) | (_, None) => same_map_entry(poly, s, t).unwrap_or_default(),
    });
    Some((p.var, entries.collect()))
}

/// If both indices are entries of the same injective array, equal values mean equal entries. An
/// array that instructions write may hold other values at the second access.
pub(super) fn same_map_entry(poly: &Polyhedral, x: &Expr, y: &Expr) -> Option<Vec<(Affine, Affine)>> {
    let (map, entries) = map_entries(poly, x, y)?;
    is_injective(poly, map).then_some(entries)
}

/// Whether no value of an array occurs twice: by assumption, or as a table has its values.
fn is_injective(poly: &Polyhedral, map: VarId) -> bool {
    let by_values = || match &poly.kernel.vars[map].kind {
        VarKind::Table(TableData::Int(values)) => {
            let mut sorted = values.to_vec();
            sorted.sort_unstable();
            sorted.windows(2).all(|w| w[0] != w[1])
        }
        VarKind::Table(TableData::Real(_) | TableData::Complex(_))
        | VarKind::Param
        | VarKind::Argument(_)
        | VarKind::Temporary => false,
    };
    poly.kernel.assumptions.contains(&Assumption::Injective(map)) || by_values()
}
