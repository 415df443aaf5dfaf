//! Instance-wise dependences of the loop tree, by isl.
//!
//! For every variable the pairs of instances that touch the same element, at least one of them
//! writing, in textual order. A flow runs from a write to the reads that see it: pairs with another
//! certain write of the element in between are subtracted, and so they are from the pairs of
//! updates by one operator, of which the later one then adds to another value. Anti and output
//! dependences keep every pair that no certain write makes redundant in an obvious way (a superset
//! of the nearest ones with the same transitive closure). An access through an array is
//! over-approximated by the whole axis, unless an assumption narrows it.
//!
//! *Confined* variables take a shortcut. If in every iteration of the loops around all accesses the
//! first thing that happens is a certain write of every element the iteration touches, no value
//! lives from one iteration to another: flows stay inside, and across iterations there is only
//! reuse of the memory. Most temporaries are confined, and most of their relations are never needed
//! by any caller, so relations become isl objects on demand. *Straight* variables, which all
//! instructions touch by one index in the same loops, need no pairs at all: one scan over the
//! sequence of accesses finds the edges.

pub mod access;
mod agree;
mod confined;
mod covers;
mod dependence;
mod exclusive;
mod graph;
mod outside;
pub mod pair;
mod ranges;
mod straight;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use access::access_sites;
pub use access::{AccessSite, Mode};
pub use dependence::{Dependence, DependenceKind};
pub(crate) use dependence::{Kinds, Labels};
pub use graph::{DependenceGraph, show_dependences, to_dot};

use crate::Analysis;
use crate::analysis::Through;
use crate::polyhedral::{Polyhedral, is_symbol};
use crate::question::Relation;
use kingpost_ir::affine::Affine;
use kingpost_ir::ids::{InameId, InsnId, VarId};
use kingpost_ir::kernel::VarKind;
use kingpost_isl::{self as isl, IslError};
use pair::{Order, PairRelation, common_maps, index_map, pair_relation};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Analysis<'_> {
    /// The dependences, in order of variables and text.
    ///
    /// Cheap: no relation is computed. Some may turn out empty; [`Analysis::dependence_graph`]
    /// leaves those out.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn dependences(&self) -> Result<Vec<&Dependence>, IslError> {
        self.dependences_where(&|_, _| Some(Kinds::All))
    }

    /// The dependences through some variables, in order of variables and text: see
    /// [`Analysis::dependences`].
    ///
    /// # Errors
    /// A failure of isl.
    pub fn dependences_of(&self, wanted: &dyn Fn(VarId) -> bool) -> Result<Vec<&Dependence>, IslError> {
        self.dependences_where(&|var, _| wanted(var).then_some(Kinds::All))
    }

    /// The dependences through every variable by which some pair of instructions may depend on each
    /// other that `concerns`, in order of variables and text: see [`Analysis::dependences`].
    ///
    /// # Errors
    /// A failure of isl.
    pub fn dependences_between(
        &self,
        concerns: &dyn Fn(InsnId, InsnId) -> bool,
    ) -> Result<Vec<&Dependence>, IslError> {
        self.dependences_where(&|_, sites| {
            let mut writes = sites.iter().filter(|s| s.writes());
            writes.any(|w| sites.iter().any(|s| concerns(w.insn, s.insn))).then_some(Kinds::All)
        })
    }

    /// The dependences of these kinds through each variable of which some are asked for, in order of
    /// variables and text.
    pub(crate) fn dependences_of_kinds(
        &self,
        kinds: &dyn Fn(VarId) -> Option<Kinds>,
    ) -> Result<Vec<&Dependence>, IslError> {
        self.dependences_where(&|var, _| kinds(var))
    }

    fn dependences_where(
        &self,
        wanted: &dyn Fn(VarId, &[AccessSite]) -> Option<Kinds>,
    ) -> Result<Vec<&Dependence>, IslError> {
        let none = || self.kernel.vars.ids().map(|_| Through::default()).collect();
        let cells = self.facts.dependences.get_or_init(none);
        let mut found = Vec::new();
        for ((var, sites), cell) in self.kernel.vars.ids().zip(self.all_sites()).zip(cells) {
            if is_symbol(self.kernel, var) || !sites.iter().any(AccessSite::writes) {
                continue;
            }
            let Some(kinds) = wanted(var, sites) else { continue };
            let asked = match kinds {
                Kinds::All => &cell.all,
                Kinds::Flows => &cell.flows,
            };
            let through = match cell.all.get().or_else(|| asked.get()) {
                Some(known) => known,
                None => {
                    let through = dependences_through(self, var, kinds)?;
                    asked.get_or_init(|| through)
                }
            };
            found.extend(through.iter().filter(|d| kinds.hold(d.kind)));
        }
        Ok(found)
    }
}

/// The dependences through a variable that is written, in textual order.
///
/// # Errors
/// A failure of isl.
fn dependences_through(
    analysis: &Analysis,
    var: VarId,
    kinds: Kinds,
) -> Result<Vec<Dependence>, isl::IslError> {
    let (poly, labels) = (analysis.polyhedral(), analysis.labels());
    let mut found = Vec::new();
    for sites in by_constant_axes(analysis.sites(var)) {
        let certain = sites.iter().map(|s| confined::is_certain_write(poly, s)).collect();
        let mut of_part = Collector { labels, poly, var, kinds, sites: &sites, certain, found: &mut found };
        if let Some((loops, edges)) = straight::straight_edges(poly, &sites) {
            of_part.straight(&loops, &edges);
        } else if let Some(common) = confined::confining_loops(poly, &sites, analysis.answers())? {
            of_part.confined(&common);
        } else {
            of_part.pairs(Order::Anywhere, &[]);
        }
    }
    Ok(found)
}

/// Accesses whose constant indices differ never meet: where every access has a constant on some
/// axis, such as the component of a vector, each constant is a variable of its own.
fn by_constant_axes(sites: &[AccessSite]) -> Vec<Cow<'_, [AccessSite]>> {
    let constant = |s: &AccessSite, axis: usize| s.index[axis].as_ref().and_then(Affine::as_constant);
    let rank = sites.first().map_or(0, |s| s.index.len());
    let axes: Vec<_> = (0..rank).filter(|a| sites.iter().all(|s| constant(s, *a).is_some())).collect();
    if axes.is_empty() {
        return vec![Cow::Borrowed(sites)];
    }
    let mut parts: BTreeMap<Vec<_>, Vec<AccessSite>> = BTreeMap::new();
    for site in sites {
        let key: Vec<_> = axes.iter().map(|a| constant(site, *a)).collect();
        parts.entry(key).or_default().push(site.clone());
    }
    parts.into_values().map(Cow::Owned).collect()
}

struct Collector<'a, 'k> {
    labels: &'a Arc<Labels>,
    poly: &'a Polyhedral<'k>,
    var: VarId,
    kinds: Kinds,
    sites: &'a [AccessSite],
    /// Which accesses write a known element at every point of their loops.
    certain: Vec<bool>,
    found: &'a mut Vec<Dependence>,
}

impl Collector<'_, '_> {
    /// The edges of a scan over the sequence of accesses.
    fn straight(&mut self, loops: &[InameId], edges: &[straight::Edge]) {
        let reuse = self.reuse_across(loops);
        for edge in edges {
            let (a, b) = (&self.sites[edge.source], &self.sites[edge.sink]);
            if !self.kinds.hold(kind_of(a.mode, b.mode)) {
                continue;
            }
            let order = if edge.across { Order::Across(loops) } else { Order::Within(loops) };
            let Some(pair) = pair_relation(self.poly, a, b, order) else { continue };
            let hidden_by = edge.hidden_by.filter(|w| self.certain[*w]).map(|w| &self.sites[w]);
            let detours = hidden_by.and_then(|w| self.detour(a, w, b, order)).into_iter().collect();
            let starts_anew = edge.across && edge.sink == 0 && self.sites[0].mode == Mode::Assign;
            let equal = if edge.across { Vec::new() } else { loops.to_vec() };
            let reuse = if starts_anew { reuse.clone() } else { Vec::new() };
            self.push(a, b, kind_of(a.mode, b.mode), equal, reuse, (pair, detours));
        }
    }

    /// Flows inside an iteration of `common`; reuse across iterations.
    fn confined(&mut self, common: &[InameId]) {
        self.pairs(Order::Within(common), common);
        if common.is_empty() || confined::is_injective_on(common, &self.sites[0]) {
            return;
        }
        // Every later access of an iteration comes before the first write of the next ones, which
        // comes before whatever else touches the element there; the rest follows by transitivity.
        let first = &self.sites[0];
        for site in self.sites {
            let kind = kind_of(site.mode, first.mode);
            if !self.kinds.hold(kind) {
                continue;
            }
            if let Some(pair) = pair_relation(self.poly, site, first, Order::Across(common)) {
                let reuse = self.reuse_across(common);
                self.push(site, first, kind, Vec::new(), reuse, (pair, Vec::new()));
            }
        }
    }

    /// The loops across whose iterations only memory is used again. The last value of an argument
    /// outlives the kernel, so that the order of its writes matters.
    fn reuse_across(&self, loops: &[InameId]) -> Vec<InameId> {
        match self.poly.kernel.vars[self.var].kind {
            VarKind::Temporary => loops.to_vec(),
            VarKind::Param | VarKind::Argument(_) | VarKind::Table(_) => Vec::new(),
        }
    }

    /// Every pair of accesses, at least one writing, with values that are overwritten on the way
    /// subtracted.
    fn pairs(&mut self, order: Order, equal: &[InameId]) {
        let sites = self.sites;
        for a in sites {
            for b in sites {
                let kind = kind_of(a.mode, b.mode);
                if !(a.writes() || b.writes()) || !self.kinds.hold(kind) {
                    continue;
                }
                let Some(pair) = pair_relation(self.poly, a, b, order) else { continue };
                let detours = match kind {
                    DependenceKind::Flow | DependenceKind::Update => self.detours(a, b, order),
                    DependenceKind::Anti | DependenceKind::Output => Vec::new(),
                };
                self.push(a, b, kind, equal.to_vec(), Vec::new(), (pair, detours));
            }
        }
    }

    /// The ways from `a` over a certain write of the same element to `b`.
    fn detours(&self, a: &AccessSite, b: &AccessSite, order: Order) -> Vec<(PairRelation, PairRelation)> {
        let inside = match order {
            Order::Within(outer) | Order::Across(outer) => outer.len(),
            Order::Anywhere => 0,
        };
        let killers = self.sites.iter().zip(&self.certain).filter(|(w, certain)| {
            let itself =
                std::ptr::eq(*w, a) && confined::is_injective_on(&self.poly.loops(w.insn)[inside..], w);
            **certain && !itself
        });
        killers.filter_map(|(w, _)| self.detour(a, w, b, order)).collect()
    }

    /// The way from `a` over the certain write `w` to `b`, if `w` hides what `a` writes from `b`:
    /// both parts are exact on a common element. That holds if the element of
    /// `a` is known, or if `b` reads one known element; else `w` may overwrite another element than
    /// the one that flows.
    fn detour(
        &self,
        a: &AccessSite,
        w: &AccessSite,
        b: &AccessSite,
        order: Order,
    ) -> Option<(PairRelation, PairRelation)> {
        let known = a.is_affine() || (b.is_affine() && b.reduction.is_empty());
        if !known {
            return None;
        }
        Some((pair_relation(self.poly, a, w, order)?, pair_relation(self.poly, w, b, order)?))
    }

    fn push(
        &mut self,
        a: &AccessSite,
        b: &AccessSite,
        kind: DependenceKind,
        equal: Vec<InameId>,
        reuse_across: Vec<InameId>,
        (pair, detours): (PairRelation, Vec<(PairRelation, PairRelation)>),
    ) {
        let common = self.poly.common_loops(a.insn, b.insn);
        let agrees = |l: &&InameId| equal.contains(l) || pair.agreeing().contains(&(**l, **l));
        let equal = common.iter().filter(agrees).copied().collect();
        let agreeing = pair.agreeing().to_vec();
        let detours = detours.iter().map(|(a, b)| (a.pairs().clone(), b.pairs().clone())).collect();
        let relation = Arc::new(Relation { pairs: pair.pairs().clone(), detours });
        let through = index_map(a).or_else(|| index_map(b));
        let maps = through.map(|_| common_maps(self.poly, a, b)).unwrap_or_default();
        let var = self.var;
        self.found.push(Dependence {
            source: a.insn,
            sink: b.insn,
            kind,
            var,
            equal,
            reuse_across,
            through,
            maps,
            indices: [Arc::clone(&a.index), Arc::clone(&b.index)],
            agreeing,
            relation,
            labels: Arc::clone(self.labels),
        });
    }
}

fn kind_of(source: Mode, sink: Mode) -> DependenceKind {
    match (source, sink) {
        (Mode::Read, _) => DependenceKind::Anti,
        (Mode::Update(a), Mode::Update(b)) if a == b => DependenceKind::Update,
        (_, Mode::Assign) => DependenceKind::Output,
        (Mode::Assign | Mode::Update(_), Mode::Read | Mode::Update(_)) => DependenceKind::Flow,
    }
}
