//! Relations between the instances of two accesses that touch the same element.

use crate::deps::access::AccessSite;
use crate::deps::agree::agreeing;
use crate::deps::words::Words;
use crate::polyhedral::{Disjuncts, Polyhedral, Side, conjunction, difference, equal_values, step};
use purlin_ir::affine::Affine;
use purlin_ir::expr::Expr;
use purlin_ir::ids::{InameId, InsnId, VarId};
use purlin_ir::kernel::Assumption;
use purlin_isl as isl;

/// A relation as plain data, not yet an isl object.
///
/// Formula: `{ i -> j : i in D_a, j in D_b, f_a(i) = f_b(j), i before j }`, reduction loops projected out.
#[derive(Clone, Debug)]
pub struct PairRelation {
    ends: [End; 2],
    /// Values at the source that equal values at the sink: `f_a(i) = f_b(j)`, as far as both are known.
    same: Vec<(Affine, Affine)>,
    /// Loops at the source that have the value of a loop at the sink.
    agreeing: Vec<(InameId, InameId)>,
    span: Span,
}

/// One of the two accesses.
#[derive(Clone, Debug)]
struct End {
    insn: InsnId,
    reduction: Vec<InameId>,
    /// See [`AccessSite::conditions`].
    conditions: Option<usize>,
}

/// What decides the order: the first common loop of this range at which the two differ, or the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First of the common loops, counted from outside; on those before it both agree.
    pub start: usize,
    /// One behind the last of them.
    pub end: usize,
    /// Whether pairs belong to the relation that agree on all common loops.
    pub textual: bool,
}

impl PairRelation {
    /// The isl map from source to sink instances.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn map(&self, poly: &Polyhedral) -> Result<isl::Map, isl::IslError> {
        let [source, sink] = &self.ends;
        let mut all = side_domain(poly, source, Side::Source);
        all = conjunction(all, side_domain(poly, sink, Side::Sink));
        all = conjunction(all, vec![self.same_element(poly)]);
        all = conjunction(poly.in_context(all), self.before(poly));
        let names = |end: &End, side| {
            let mut dims = poly.names(poly.loops(end.insn), side);
            let reduction = poly.names(&end.reduction, side);
            dims.extend(reduction.iter().cloned());
            (dims, reduction)
        };
        let (in_dims, mut reduction) = names(source, Side::Source);
        let (out_dims, more) = names(sink, Side::Sink);
        reduction.extend(more);
        let tuple = |end: &End| poly.kernel.insns[end.insn].name.clone();
        let space =
            isl::MapSpace::new(&in_dims, &out_dims, &poly.params).with_tuples(tuple(source), tuple(sink));
        let map = isl::Map::from_disjuncts(&space, &all)?;
        if reduction.is_empty() {
            return Ok(map);
        }
        let names: Vec<_> = reduction.iter().map(String::as_str).collect();
        map.project_out(&names)
    }

    /// Adds what isl is told of the relation to a question; returns the loops at its source and at its sink.
    pub fn ask(&self, poly: &Polyhedral, question: &mut Words) -> [Vec<InameId>; 2] {
        let scopes = self
            .ends
            .each_ref()
            .map(|end| question.instances(poly, (end.insn, end.conditions), &end.reduction));
        question.count(poly.common_loops(self.ends[0].insn, self.ends[1].insn).len());
        question.count(self.span.start);
        question.count(self.span.end);
        question.push(i64::from(self.span.textual));
        question.count(self.same.len());
        for (x, y) in &self.same {
            question.affine(x, &scopes[0]);
            question.affine(y, &scopes[1]);
        }
        question.context(poly);
        scopes
    }

    /// Pairs `(i, j)`: in every pair of instances `i` at the source has the value of `j` at the sink.
    pub fn agreeing(&self) -> &[(InameId, InameId)] {
        &self.agreeing
    }

    /// What decides the order.
    pub fn span(&self) -> Span {
        self.span
    }

    fn same_element(&self, poly: &Polyhedral) -> Vec<isl::Constraint> {
        // symbolic both, which `pair_relation` made sure of
        let difference = |(x, y): &(Affine, Affine)| {
            Some(difference(&poly.affine(x, Side::Source)?, &poly.affine(y, Side::Sink)?))
        };
        self.same.iter().filter_map(difference).map(isl::Constraint::zero).collect()
    }

    /// Disjuncts of "source before sink" in textual order.
    fn before(&self, poly: &Polyhedral) -> Disjuncts {
        let common = poly.common_loops(self.ends[0].insn, self.ends[1].insn);
        let Span { start, end, textual } = self.span;
        let mut disjuncts: Disjuncts = (start..end).map(|k| first_difference_at(poly, common, k)).collect();
        if textual {
            disjuncts.push(equal_values(poly, common));
        }
        disjuncts
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
    let same = same_element(poly, a, b)?;
    let agreeing = agreeing(poly, &same);
    let advances = |l: &InameId| !agreeing.contains(&(*l, *l));
    if !span.textual && !poly.common_loops(a.insn, b.insn)[span.start..span.end].iter().any(advances) {
        return None;
    }
    let end = |site: &AccessSite| End {
        insn: site.insn,
        reduction: site.reduction.clone(),
        conditions: site.conditions,
    };
    Some(PairRelation { ends: [end(a), end(b)], same, agreeing, span })
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

fn side_domain(poly: &Polyhedral, end: &End, side: Side) -> Disjuncts {
    let (loops, _) = poly.instances_under(end.insn, end.conditions, side);
    if end.reduction.is_empty() { loops } else { conjunction(loops, poly.domains(&end.reduction, side).0) }
}

/// Values that are equal where the indices are, as far as they are known; `None` if they cannot be.
fn same_element(poly: &Polyhedral, a: &AccessSite, b: &AccessSite) -> Option<Vec<(Affine, Affine)>> {
    let mut same = Vec::new();
    for (axis, (x, y)) in a.index.iter().zip(b.index.iter()).enumerate() {
        if let (Some(x), Some(y)) = (x, y) {
            if let (Some(p), Some(q)) = (x.as_constant(), y.as_constant()) {
                if p != q {
                    return None;
                }
                continue;
            }
            same.push((x.clone(), y.clone()));
        } else if let Some(equal) = same_map_entry(poly, &a.access.index[axis], &b.access.index[axis]) {
            same.extend(equal);
        }
    }
    Some(same)
}

/// If both indices are entries of the same injective array, equal values mean equal entries. An array
/// that instructions write may hold other values at the second access.
fn same_map_entry(poly: &Polyhedral, x: &Expr, y: &Expr) -> Option<Vec<(Affine, Affine)>> {
    let (map, entries) = map_entries(poly, x, y)?;
    poly.kernel.assumptions.contains(&Assumption::Injective(map)).then_some(entries)
}

/// The array of which both indices are entries, if no instruction writes it, and where those are, as far as it is known.
fn map_entries(poly: &Polyhedral, x: &Expr, y: &Expr) -> Option<(VarId, Vec<(Affine, Affine)>)> {
    let (Expr::Load(p), Expr::Load(q)) = (x, y) else { return None };
    if p.var != q.var || poly.kernel.insns.values().any(|i| i.lhs.var == p.var) {
        return None;
    }
    let entries = p.index.iter().zip(&q.index).filter_map(|(s, t)| {
        let (s, t) = (s.as_affine()?, t.as_affine()?);
        (poly.is_symbolic(&s) && poly.is_symbolic(&t)).then_some((s, t))
    });
    Some((p.var, entries.collect()))
}

/// Arrays that nobody writes and both accesses find their element through, on any axis, with the entries that would be
/// the same if the array was injective.
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

/// Equal on `loops[..k]` and smaller at `loops[k]`.
fn first_difference_at(poly: &Polyhedral, loops: &[InameId], k: usize) -> Vec<isl::Constraint> {
    let mut constraints = equal_values(poly, &loops[..k]);
    constraints.push(isl::Constraint::non_negative(step(poly, loops[k]).offset(-1)));
    constraints
}
