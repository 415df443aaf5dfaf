//! Accesses to items of block-local lists that no other block has.

use crate::deps::access::AccessSite;
use crate::deps::pair::map_entries;
use crate::polyhedral::Polyhedral;
use purlin_ir::affine::Affine;
use purlin_ir::expr::{BinaryOp, Expr};
use purlin_ir::ids::VarId;
use purlin_ir::kernel::Assumption;
use purlin_ir::{BlockLists, ExclusiveItems};

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
