//! Relations between the instances of two accesses that touch the same element.

use crate::deps::access::AccessSite;
use crate::expr::Expr;
use crate::ids::{InameId, VarId};
use crate::kernel::Assumption;
use crate::polyhedral::{Disjuncts, Polyhedral, Side, cross, difference, equal_values, step};
use purlin_isl as isl;

/// A relation by its constraints, not yet an isl object.
#[derive(Clone, Debug)]
pub struct PairRelation {
    /// Dimensions, with reduction loops last on each side.
    space: isl::MapSpace,
    disjuncts: Disjuncts,
    /// Names of the reduction loops.
    reduction: Vec<String>,
}

impl PairRelation {
    /// The isl map from source to sink instances.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn map(&self) -> Result<isl::Map, isl::IslError> {
        let map = isl::Map::from_disjuncts(&self.space, &self.disjuncts)?;
        if self.reduction.is_empty() {
            return Ok(map);
        }
        let names: Vec<_> = self.reduction.iter().map(String::as_str).collect();
        map.project_out(&names)
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
/// indices can never be equal.
///
/// Formula: `{ i -> j : i in D_a, j in D_b, f_a(i) = f_b(j), i before j }`, reduction loops projected out.
pub fn pair_relation(
    poly: &Polyhedral,
    a: &AccessSite,
    b: &AccessSite,
    order: Order,
) -> Option<PairRelation> {
    let same = same_element(poly, a, b)?;
    let before = before(poly, a, b, order);
    if before.is_empty() {
        return None;
    }
    let mut all = side_domain(poly, a, Side::Source);
    all = cross(&all, &side_domain(poly, b, Side::Sink));
    all = cross(&all, std::slice::from_ref(&same));
    all = cross(&poly.in_context(all), &before);
    let names = |site: &AccessSite, side| {
        let mut dims = poly.names(poly.loops(site.insn), side);
        let reduction = poly.names(&site.reduction, side);
        dims.extend(reduction.iter().cloned());
        (dims, reduction)
    };
    let (in_dims, mut reduction) = names(a, Side::Source);
    let (out_dims, more) = names(b, Side::Sink);
    reduction.extend(more);
    let tuple = |site: &AccessSite| poly.kernel.insns[site.insn].name.clone();
    let space = isl::MapSpace::new(&in_dims, &out_dims, &poly.params).with_tuples(tuple(a), tuple(b));
    Some(PairRelation { space, disjuncts: all, reduction })
}

fn side_domain(poly: &Polyhedral, site: &AccessSite, side: Side) -> Disjuncts {
    let (loops, _) = poly.instances(site.insn, side);
    if site.reduction.is_empty() { loops } else { cross(&loops, &poly.domains(&site.reduction, side).0) }
}

/// Constraints that make the indices equal, as far as they are known; `None` if they cannot be.
fn same_element(poly: &Polyhedral, a: &AccessSite, b: &AccessSite) -> Option<Vec<isl::Constraint>> {
    let mut same = Vec::new();
    for (axis, (x, y)) in a.index.iter().zip(&b.index).enumerate() {
        if let (Some(x), Some(y)) = (x, y) {
            if let (Some(p), Some(q)) = (x.as_constant(), y.as_constant()) {
                if p != q {
                    return None;
                }
                continue;
            }
            let (x, y) = (poly.affine(x, Side::Source)?, poly.affine(y, Side::Sink)?);
            same.push(isl::Constraint::zero(difference(&x, &y)));
        } else if let Some(equal) = same_map_entry(poly, &a.access.index[axis], &b.access.index[axis]) {
            same.extend(equal);
        }
    }
    Some(same)
}

/// If both indices are entries of the same injective array, equal values mean equal entries. An array
/// that instructions write may hold other values at the second access.
fn same_map_entry(poly: &Polyhedral, x: &Expr, y: &Expr) -> Option<Vec<isl::Constraint>> {
    let (Expr::Load(p), Expr::Load(q)) = (x, y) else { return None };
    let injective = poly.kernel.assumptions.contains(&Assumption::Injective(p.var));
    if p.var != q.var || !injective || poly.kernel.insns.values().any(|i| i.lhs.var == p.var) {
        return None;
    }
    let equal = p.index.iter().zip(&q.index).filter_map(|(s, t)| {
        let s = poly.affine(&s.as_affine()?, Side::Source)?;
        let t = poly.affine(&t.as_affine()?, Side::Sink)?;
        Some(isl::Constraint::zero(difference(&s, &t)))
    });
    Some(equal.collect())
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

/// Disjuncts of "a before b" in textual order.
fn before(poly: &Polyhedral, a: &AccessSite, b: &AccessSite, order: Order) -> Disjuncts {
    let common = poly.common_loops(a.insn, b.insn);
    let (start, end, textual) = match order {
        Order::Within(outer) => (outer.len(), common.len(), true),
        Order::Across(outer) => (0, outer.len(), false),
        Order::Anywhere => (0, common.len(), true),
    };
    let mut disjuncts: Disjuncts = (start..end).map(|k| first_difference_at(poly, common, k)).collect();
    if textual && poly.position(a.insn) < poly.position(b.insn) {
        disjuncts.push(equal_values(poly, common));
    }
    disjuncts
}

/// Equal on `loops[..k]` and smaller at `loops[k]`.
fn first_difference_at(poly: &Polyhedral, loops: &[InameId], k: usize) -> Vec<isl::Constraint> {
    let mut constraints = equal_values(poly, &loops[..k]);
    constraints.push(isl::Constraint::non_negative(step(poly, loops[k]).offset(-1)));
    constraints
}
