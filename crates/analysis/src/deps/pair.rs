//! Relations between the instances of two accesses that touch the same element.

use crate::deps::access::AccessSite;
use crate::deps::agree::{Same, agreeing};
use crate::deps::exclusive::{map_entries, same_exclusive_item, same_map_entry};
use crate::deps::outside::{Met, met};
use crate::deps::ranges::same_range;
use crate::polyhedral::Polyhedral;
use crate::question::{Linear, Pairs};
use kingpost_ir::affine::Affine;
use kingpost_ir::expr::Expr;
use kingpost_ir::ids::{InameId, InsnId, VarId};
use kingpost_isl as isl;
use std::borrow::Cow;

/// A relation as plain data, not yet an isl object.
///
/// Formula: `{ i -> j : i in D_a, j in D_b, f_a(i) = f_b(j), i before j }`, reduction loops
/// projected out.
#[derive(Clone, Debug)]
pub struct PairRelation {
    /// The instructions at both ends.
    insns: [InsnId; 2],
    /// All that isl is told.
    pairs: Pairs,
    /// Loops at the source that have the value of a loop at the sink.
    agreeing: Vec<(InameId, InameId)>,
}

/// What decides the order: the first common loop of this range at which the two differ, or the
/// text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// First of the common loops, counted from outside; on those before it both agree.
    pub start: usize,
    /// One after the last of them.
    pub end: usize,
    /// Whether pairs belong to the relation that agree on all common loops.
    pub textual: bool,
}

impl PairRelation {
    /// The isl map from source to sink instances; names of the sink end in `'`.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn map(&self, poly: &Polyhedral) -> Result<isl::Map, isl::IslError> {
        let kernel = &*poly.kernel;
        let loops = |i| poly.loops(i).iter().map(|l| kernel.inames[*l].name.as_str()).collect();
        named(&self.pairs.map()?, self.insns.map(|i| (kernel.insns[i].name.as_str(), loops(i))))
    }

    /// What isl is told.
    pub(crate) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// Pairs `(i, j)`: in every pair of instances `i` at the source has the value of `j` at the
    /// sink.
    pub fn agreeing(&self) -> &[(InameId, InameId)] {
        &self.agreeing
    }

    /// What decides the order.
    pub fn span(&self) -> Span {
        self.pairs.span
    }
}

/// Which pairs in textual order to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order<'a> {
    /// Source before sink, in the same iteration of these outer loops.
    Within(&'a [InameId]),
    /// Source in an earlier iteration of these outer loops.
    Across(&'a [InameId]),
    /// Source before sink, anywhere.
    Anywhere,
}

/// The pairs of instances of `a` and `b` that touch the same element, `a` first; `None` if the
/// indices can never be equal, or the text decides that there are none.
pub fn pair_relation(
    poly: &Polyhedral,
    a: &AccessSite,
    b: &AccessSite,
    order: Order,
) -> Option<PairRelation> {
    let span = span(poly, a, b, order);
    if span.start >= span.end && !span.textual {
        return None;
    }
    let within = match order {
        Order::Within(outer) => outer,
        Order::Across(_) | Order::Anywhere => &[],
    };
    let same = same_element(poly, a, b, within)?;
    let agreeing = agreeing(poly, &same);
    let advances = |l: &InameId| !agreeing.contains(&(*l, *l));
    if !span.textual && !poly.common_loops(a.insn, b.insn)[span.start..span.end].iter().any(advances) {
        return None;
    }
    let end = |s: &AccessSite| poly.instances_of(s.insn, s.conditions, &s.reduction);
    let scopes = [scope(poly, a), scope(poly, b)];
    let value = |e: &Affine, side: usize| Linear::of(e, &scopes[side], &|v| poly.symbol(v));
    let pairs = Pairs {
        ends: [end(a), end(b)],
        // symbolic both, which `same_element` made sure of
        same: same.iter().filter_map(|(x, y)| Some((value(x, 0)?, value(y, 1)?))).collect(),
        common: poly.common_loops(a.insn, b.insn).len(),
        unordered: Vec::new(),
        span,
        symbols: poly.symbols().clone(),
    };
    Some(PairRelation { insns: [a.insn, b.insn], pairs, agreeing })
}

/// The loops around an access, outer first.
pub(crate) fn scope<'p>(poly: &'p Polyhedral, s: &AccessSite) -> Cow<'p, [InameId]> {
    let loops = poly.loops(s.insn);
    match s.reduction.is_empty() {
        true => Cow::Borrowed(loops),
        false => Cow::Owned([loops, &s.reduction].concat()),
    }
}

fn span(poly: &Polyhedral, a: &AccessSite, b: &AccessSite, order: Order) -> Span {
    let common = poly.common_loops(a.insn, b.insn).len();
    let textual = poly.position(a.insn) < poly.position(b.insn);
    match order {
        Order::Within(outer) => Span { start: outer.len(), end: common, textual },
        Order::Across(outer) => Span { start: 0, end: outer.len(), textual: false },
        Order::Anywhere => Span { start: 0, end: common, textual },
    }
}

/// Values that are equal where the indices are, in one iteration of the loops `within`, as far as
/// they are known; `None` if they cannot be.
fn same_element<'a>(
    poly: &Polyhedral,
    a: &'a AccessSite,
    b: &'a AccessSite,
    within: &[InameId],
) -> Option<Vec<Same<'a>>> {
    let mut same = Vec::new();
    for (axis, (x, y)) in a.index.iter().zip(b.index.iter()).enumerate() {
        if let (Some(x), Some(y)) = (x, y) {
            if let (Some(p), Some(q)) = (x.as_constant(), y.as_constant()) {
                if p != q {
                    return None;
                }
                continue;
            }
            same.push((Cow::Borrowed(x), Cow::Borrowed(y)));
            let entries = same_range(poly, (a, x), (b, y), within);
            same.extend(entries.map(|(e, f)| (Cow::Owned(e), Cow::Owned(f))));
        } else if let (Some(x), Some(y)) =
            (a.access.index[axis].as_affine(), b.access.index[axis].as_affine())
        {
            let entries = same_range(poly, (a, &x), (b, &y), within);
            same.extend(entries.map(|(e, f)| (Cow::Owned(e), Cow::Owned(f))));
        } else if let Some(equal) = same_map_entry(poly, &a.access.index[axis], &b.access.index[axis]) {
            same.extend(equal.into_iter().map(|(x, y)| (Cow::Owned(x), Cow::Owned(y))));
        } else if let Some(equal) = same_exclusive_item(poly, a, b, axis) {
            same.extend(equal.into_iter().map(|(x, y)| (Cow::Owned(x), Cow::Owned(y))));
        } else {
            match met(poly, a, b, axis) {
                None => {}
                Some(Met::Never) => return None,
                Some(Met::In(x, y)) => same.push((Cow::Owned(x), Cow::Owned(y))),
            }
        }
    }
    Some(same)
}

/// Arrays that nothing writes and both accesses find their element through, on any axis, with the
/// entries that would be the same if the array was injective.
pub(crate) fn common_maps(
    poly: &Polyhedral,
    a: &AccessSite,
    b: &AccessSite,
) -> Vec<(VarId, Vec<(Affine, Affine)>)> {
    let mut found: Vec<(VarId, Vec<_>)> = Vec::new();
    for (x, y) in a.access.index.iter().zip(&b.access.index) {
        let Some((map, entries)) = map_entries(poly, x, y) else { continue };
        match found.iter_mut().find(|(known, _)| *known == map) {
            Some((_, known)) => known.extend(entries),
            None => found.push((map, entries)),
        }
    }
    found
}

/// The array through which an access finds its element, if one of its indices is loaded.
pub fn index_map(site: &AccessSite) -> Option<VarId> {
    let mut found = None;
    for index in &site.access.index {
        index.for_each(&mut |e| {
            if let Expr::Load(access) = e
                && !access.index.is_empty()
            {
                found = found.or(Some(access.var));
            }
        });
    }
    found
}

/// A map whose loops go by number, with names of the instructions and loops at both ends; those of
/// the sink end in `'`.
pub(crate) fn named(map: &isl::Map, ends: [(&str, Vec<&str>); 2]) -> Result<isl::Map, isl::IslError> {
    let [(source, outer), (sink, inner)] = ends;
    let primed: Vec<_> = inner.iter().map(|name| format!("{name}'")).collect();
    let new = outer.into_iter().chain(primed.iter().map(String::as_str));
    let old = map.in_dims().iter().chain(map.out_dims()).map(String::as_str);
    let named = map.rename(&old.zip(new).collect::<Vec<_>>())?;
    Ok(named.with_tuples(Some(source), Some(sink)))
}
