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
mod exclusive;
mod graph;
pub mod pair;
mod ranges;
mod straight;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use access::access_sites;
pub use access::{AccessSite, Mode};
pub(crate) use agree::bounds_of;
pub(crate) use graph::dependence_graph;
pub use graph::{DependenceGraph, show_dependences, to_dot};

use crate::Analysis;
use crate::polyhedral::{Polyhedral, Side, difference, symbol_ranges};
use crate::question::Relation;
use crate::witness::{Instance, Witness};
use pair::{Order, PairRelation, Span, common_maps, index_map, pair_relation};
use purlin_ir::affine::{Affine, Atom};
use purlin_ir::ids::{Id, InameId, InsnId, VarId};
use purlin_ir::kernel::{Kernel, VarKind};
use purlin_isl as isl;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Why something must come after something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DependenceKind {
    /// Read after write.
    Flow,
    /// Write after read.
    Anti,
    /// Write after write.
    Output,
    /// Update after update by the same commuting operator: the order does not matter, only that
    /// they do not tear each other.
    Update,
}

impl fmt::Display for DependenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flow => "flow",
            Self::Anti => "anti",
            Self::Output => "output",
            Self::Update => "update",
        })
    }
}

/// A dependence between two instructions through one variable.
#[derive(Clone, Debug)]
pub struct Dependence {
    /// The instruction whose instances come first.
    pub source: InsnId,
    /// The instruction whose instances come after.
    pub sink: InsnId,
    /// Why.
    pub kind: DependenceKind,
    /// The variable.
    pub var: VarId,
    /// Common loops, outer first, on whose values source and sink agree in every pair.
    pub equal: Vec<InameId>,
    /// Whether it only says that memory is used again: no value flows between iterations of these
    /// loops through the variable. Reordering whole iterations of them keeps it irrelevant.
    pub reuse_across: Vec<InameId>,
    /// The array through which the element is found, if any.
    pub through: Option<VarId>,
    /// Arrays through which both accesses find the element, and the entries that injectivity would
    /// make the same.
    maps: Vec<(VarId, Vec<(Affine, Affine)>)>,
    /// The indices of both accesses, as far as they are quasi-affine.
    indices: [Arc<[Option<Affine>]>; 2],
    /// Loops at the source that have the value of a loop at the sink.
    agreeing: Vec<(InameId, InameId)>,
    /// All that isl is told of the pairs: those of two accesses, less those with a certain write in
    /// between.
    relation: Arc<Relation>,
    labels: Arc<Labels>,
}

/// How the instructions of a kernel and the loops around them are called.
#[derive(Debug)]
pub(crate) struct Labels {
    /// Shares what it holds with the kernel that is analysed.
    kernel: Kernel,
    loops: Vec<Vec<InameId>>,
}

impl Labels {
    pub(crate) fn of(poly: &Polyhedral) -> Self {
        let kernel = &*poly.kernel;
        let loops = kernel.insns.ids().map(|i| poly.loops(i).to_vec()).collect();
        Self { kernel: kernel.clone(), loops }
    }

    /// A map from instances to instances whose loops go by number, with the names of the kernel;
    /// those of the sink end in `'`.
    pub(crate) fn name(&self, map: &isl::Map, insns: [InsnId; 2]) -> Result<isl::Map, isl::IslError> {
        let loops = |i: InsnId| self.loops[i.index()].iter().map(|l| self.kernel.inames[*l].name.as_str());
        named(map, insns.map(|i| (self.kernel.insns[i].name.as_str(), loops(i).collect())))
    }
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

impl Dependence {
    /// Whether a value goes from source to sink: a read of what was written, or an update of it.
    pub fn carries_value(&self) -> bool {
        match self.kind {
            DependenceKind::Flow | DependenceKind::Update => true,
            DependenceKind::Anti | DependenceKind::Output => false,
        }
    }

    /// Whether `i` at the source has the value of `j` at the sink in every pair, as far as the
    /// indices tell.
    pub fn agrees(&self, i: InameId, j: InameId) -> bool {
        (i == j && self.equal.contains(&i)) || self.agreeing.contains(&(i, j))
    }

    /// Whether `x` at the source and `y` at the sink, which mention no scalar that may change, have
    /// one value in every pair, as far as the indices tell.
    pub fn agree_on(&self, x: &Affine, y: &Affine) -> bool {
        if let (Some(i), Some(j)) = (x.as_iname(), y.as_iname()) {
            return self.agrees(i, j);
        }
        let mut same = x == y;
        x.for_each_symbol(&mut |atom| match atom {
            Atom::Iname(i) => same &= self.agrees(*i, *i),
            Atom::Var(_) | Atom::Floor(..) => {}
        });
        same
    }

    /// The index of the element at the source, as far as it is quasi-affine.
    pub(crate) fn source_index(&self) -> &[Option<Affine>] {
        &self.indices[0]
    }

    /// What decides the order of the pairs.
    pub fn span(&self) -> Span {
        self.relation.pairs.span
    }

    /// The instance relation, from source to sink instances; sink names end in `'`.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn relation(&self) -> Result<isl::Map, isl::IslError> {
        self.name(&self.relation.map()?)
    }

    /// A part of the relation whose loops go by number, with the names of the kernel.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn name(&self, part: &isl::Map) -> Result<isl::Map, isl::IslError> {
        self.labels.name(part, [self.source, self.sink])
    }

    /// The array that, if it was injective, would leave nothing of a part of the relation.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn injective_map_against(
        &self,
        poly: &Polyhedral,
        part: &isl::Map,
    ) -> Result<Option<VarId>, isl::IslError> {
        // the pairs say nothing of the inames of reductions
        let known = |e: &Affine, insn| {
            poly.kernel.inames.ids().all(|i| !e.mentions(i) || poly.loops(insn).contains(&i))
        };
        for (map, entries) in &self.maps {
            let same = |(x, y): &(Affine, Affine)| {
                if !(known(x, self.source) && known(y, self.sink)) {
                    return None;
                }
                let (x, y) = (poly.affine(x, Side::Source)?, poly.affine(y, Side::Sink)?);
                Some(isl::Constraint::zero(difference(&x, &y)))
            };
            let same: Vec<_> = entries.iter().filter_map(same).collect();
            if part.intersect(&isl::Map::from_constraints(&part.space()?, &same)?)?.is_empty()? {
                return Ok(Some(*map));
            }
        }
        Ok(None)
    }

    /// All that isl is told of the pairs.
    pub(crate) fn told(&self) -> &Arc<Relation> {
        &self.relation
    }

    /// The smallest pair of a part of the relation as a witness.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn witness(&self, kernel: &Kernel, part: &isl::Map) -> Result<Option<Witness>, isl::IslError> {
        let Some(pair) = part.lexmin_pair_within(&symbol_ranges(kernel))? else { return Ok(None) };
        let point = |p: &[(String, i64)]| p.iter().map(|(_, v)| *v).collect::<Vec<_>>();
        let params: Vec<_> = pair.params.clone();
        let source = Instance::new(kernel, self.source, point(&pair.input));
        let element = self.element(kernel, [&pair.input, &pair.output], &params);
        let sink = Instance::new(kernel, self.sink, point(&pair.output));
        let through = self.through.map(|v| kernel.vars[v].name.clone());
        // Parameters that the clash does not depend on would only distract.
        let constraints = part.disjuncts()?;
        let matters = |name: &str| constraints.iter().flatten().any(|c| c.expr.mentions(name));
        let params = params.into_iter().filter(|(name, _)| matters(name)).collect();
        Ok(Some(Witness { source, sink, element, through, params }))
    }

    /// The element the two accesses touch, where one of them says which.
    fn element(&self, kernel: &Kernel, points: [&[(String, i64)]; 2], params: &[(String, i64)]) -> String {
        let name = &kernel.vars[self.var].name;
        for (index, point) in self.indices.iter().zip(points) {
            let value = |name: &str| point.iter().chain(params).find(|(n, _)| n == name).map(|(_, v)| *v);
            let at = |e: &Option<Affine>| {
                e.as_ref()?.eval(&mut |atom| match atom {
                    Atom::Iname(i) => {
                        let iname = &kernel.inames[*i].name;
                        value(iname).or_else(|| value(&format!("{iname}'")))
                    }
                    Atom::Var(v) => value(&kernel.vars[*v].name),
                    Atom::Floor(..) => None,
                })
            };
            if let Some(index) = index.iter().map(at).collect::<Option<Vec<_>>>() {
                let index: Vec<_> = index.iter().map(i64::to_string).collect();
                return if index.is_empty() { name.clone() } else { format!("{name}[{}]", index.join(",")) };
            }
        }
        name.clone()
    }
}

/// Which dependences are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// All.
    All,
    /// Flows: what the placement of a private variable depends on.
    Flows,
}

impl Kinds {
    pub(crate) fn hold(self, kind: DependenceKind) -> bool {
        match self {
            Self::All => true,
            Self::Flows => kind == DependenceKind::Flow,
        }
    }
}

/// The dependences through a variable that is written, in textual order.
///
/// # Errors
/// A failure of isl.
pub(crate) fn dependences_through(
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
