//! Where barriers stand in the loop tree: a greedy cover of the intervals that need one.
//!
//! A sync between siblings `a < b` of a list needs a barrier in one of the gaps `a+1 ..= b` (gap
//! `k` is before child `k`). A sync carried by a loop needs one anywhere on the way from child `a`
//! over the end of the body to child `b`. Inner lists come first, so that their barriers serve
//! outer syncs; in a list the syncs are taken by their last gap (the greedy cover of intervals by
//! points, which is smallest), and one barrier at the end of the body serves all carried syncs that
//! are still open. Syncs between sub-groups come first: their barriers serve those inside one,
//! too.
//!
//! A call that completes later asks for its completion at the barrier as well, and for both as late
//! as the dependence allows: a completion waits for all calls before it, so that it must not stand
//! after those of the next iteration.
//!
//! Where calls form groups, one is made of those of an iteration of the innermost list in which they
//! part from what waits for them, after neighbouring statements that make some. It stands outside
//! their guards, so that every iteration has a group, perhaps an empty one, and waits can count.

use crate::ast::{Fence, Name};
use crate::completions::{Completions, Kind};
use kingpost_analysis::placement::{Barrier as Sync, Scope, first_bounded_by};
use kingpost_ir::{AddressSpace, Id, InameId, InsnId, Kernel, Node};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The body of a loop, or the root.
type List = Option<InameId>;

/// Barriers by list and gap.
#[derive(Clone, Debug, Default)]
pub(crate) struct BarrierPlan {
    gaps: BTreeMap<(List, usize), Fence>,
    holders: BTreeSet<InameId>,
    /// Loops around calls that update registers later.
    updating: BTreeSet<InameId>,
}

impl BarrierPlan {
    /// The barrier before child `gap` of a list.
    pub(crate) fn at(&self, list: List, gap: usize) -> Option<Fence> {
        self.gaps.get(&(list, gap)).cloned()
    }

    /// Whether a barrier stands inside a loop.
    pub(crate) fn holds(&self, iname: InameId) -> bool {
        self.holders.contains(&iname)
    }

    /// Whether calls in a loop update registers later.
    pub(crate) fn updates_registers(&self, iname: InameId) -> bool {
        self.updating.contains(&iname)
    }

    /// A cover of all syncs.
    pub(crate) fn new(kernel: &Kernel, syncs: &[Sync], completions: &Completions) -> Self {
        let (paths, lengths) = paths(kernel);
        let need = |s: &Sync| {
            let need = Need::new(kernel, s, &paths)?;
            let end = lengths[&need.list()];
            let completion = completions.of(kernel, s);
            // the calls of the iteration before are waited for as late as may be, when others are under way
            let is_next = completion.as_ref().is_some_and(|kind| completions.is_of_team(kind))
                && completions.iterations_apart(s) == 1
                && need.is_forward();
            let proxy = completions.proxy(kernel, s).cloned();
            Some(Need { completion, proxy, is_next, end, ..need })
        };
        let mut needs: Vec<Need> = syncs.iter().filter_map(need).collect();
        needs.sort_by_key(|n| (Reverse(n.scope), Reverse(n.level), n.carried, n.last_gap()));
        let mut plan = Self::default();
        for need in &needs {
            if !plan.gaps.iter().any(|gap| need.is_met_by(gap)) {
                let list = need.list();
                let gap = if need.carried && !need.is_next { need.end } else { need.last_gap() };
                let scope = plan.at(list, gap).map_or(need.scope, |there| there.scope.max(need.scope));
                plan.gaps.entry((list, gap)).or_insert_with(Fence::nothing).scope = scope;
            }
        }
        for need in &needs {
            plan.fence(need);
        }
        if !completions.is_empty() {
            // what is under way at the end of the kernel is done there
            let last = plan.gaps.entry((None, kernel.body.len())).or_insert_with(Fence::nothing);
            last.completions.extend(completions.all().into_iter().map(|kind| (kind.wait, 0)));
        }
        plan.commit(&needs, completions, &paths, &lengths);
        for ((list, gap), fence) in &mut plan.gaps {
            fence.place = Some((list.map(|l| kernel.inames[l].name.clone()), *gap));
        }
        plan.holders = holders(kernel, &plan.gaps);
        let updates = |insn: InsnId, kind: &Kind| {
            completions.accumulators(&kind.wait).any(|var| var == kernel.insns[insn].lhs.var)
        };
        let insns = completions.insns().into_iter().filter(|(insn, kind)| updates(*insn, kind));
        plan.updating =
            insns.flat_map(|(insn, _)| paths[insn.index()].iter().filter_map(|(list, _)| *list)).collect();
        plan
    }

    /// Makes one of the barriers that meet a need order its memory.
    fn fence(&mut self, need: &Need) {
        let orders = |f: &Fence| {
            let memory = need.scope == Scope::WorkItem || if need.global { f.global } else { f.local };
            memory
                && need.completion.as_ref().is_none_or(|kind| f.completions.contains_key(&kind.wait))
                && need.proxy.as_ref().is_none_or(|proxy| f.proxies.contains(proxy))
        };
        if self.gaps.iter().any(|gap| need.is_met_by(gap) && orders(gap.1)) {
            return;
        }
        if let Some((_, fence)) = self.gaps.iter_mut().find(|(key, fence)| need.is_met_by((key, fence))) {
            if need.scope > Scope::WorkItem {
                fence.global |= need.global;
                fence.local |= !need.global;
            }
            fence.completions.extend(need.completion.iter().map(|kind| (kind.wait.clone(), 0)));
            fence.proxies.extend(need.proxy.clone());
        }
    }

    /// Makes groups of calls.
    fn commit(
        &mut self,
        needs: &[Need],
        completions: &Completions,
        paths: &[Path],
        lengths: &BTreeMap<List, usize>,
    ) {
        let insns = completions.insns();
        for (insn, kind) in &insns {
            let Some(commit) = &kind.commit else { continue };
            let of_kind = || needs.iter().filter(|need| need.completion.as_ref() == Some(*kind));
            // what nothing waits for is done at the end of the kernel
            let level = of_kind().filter(|need| need.insn == *insn).map(|need| need.level).max().unwrap_or(0);
            let (list, child) = paths[insn.index()][level];
            let calls = |gap: usize| {
                insns.iter().any(|(other, of)| of == kind && paths[other.index()].contains(&(list, gap)))
            };
            let waits = |gap: usize| {
                let here = |need: &Need| !need.carried && need.list() == list && need.last_gap() == gap;
                self.gaps.get(&(list, gap)).is_some_and(|fence| fence.completions.contains_key(&kind.wait))
                    || of_kind().any(here)
            };
            let last = (child + 1..lengths[&list]).find(|gap| !calls(*gap) || waits(*gap));
            let gap = last.unwrap_or(lengths[&list]);
            self.gaps.entry((list, gap)).or_insert_with(Fence::nothing).commits.insert(commit.clone());
        }
    }
}

/// The syncs that a barrier of the loop tree meets.
pub(crate) fn met(kernel: &Kernel, syncs: &[Sync], fence: &Fence) -> Vec<Sync> {
    let Some((list, gap)) = &fence.place else { return Vec::new() };
    let list = list.as_ref().and_then(|name| kernel.iname(name));
    let (paths, lengths) = paths(kernel);
    let is_met = |sync: &&Sync| {
        Need::new(kernel, sync, &paths).is_some_and(|need| {
            let end = lengths[&need.list()];
            Need { end, ..need }.is_met_by((&(list, *gap), fence))
        })
    };
    syncs.iter().filter(is_met).cloned().collect()
}

/// The way to each instruction, and the number of children of each list.
fn paths(kernel: &Kernel) -> (Vec<Path>, BTreeMap<List, usize>) {
    let mut paths = vec![Vec::new(); kernel.insns.len()];
    let mut lengths = BTreeMap::from([(None, kernel.body.len())]);
    walk(&kernel.body, None, &mut Vec::new(), &mut paths, &mut lengths);
    (paths, lengths)
}

/// Lists and children from the root to an instruction.
type Path = Vec<(List, usize)>;

struct Need {
    /// The source itself.
    insn: InsnId,
    source: Path,
    sink: Path,
    /// Level of the list in which they part, or of the body of the carrying loop.
    level: usize,
    carried: bool,
    global: bool,
    scope: Scope,
    /// What completes the source.
    completion: Option<Kind>,
    /// What ends ordinary accesses for the sink.
    proxy: Option<Name>,
    /// Whether it is met in the iteration of the sink, after the source's statement there.
    is_next: bool,
    /// The gap after the last child of the list.
    end: usize,
}

impl Need {
    fn new(kernel: &Kernel, sync: &Sync, paths: &[Path]) -> Option<Self> {
        let path = |insn: InsnId| {
            let mut path = paths[insn.index()].clone();
            // the bounds of a loop are read at the loop, and not inside
            let loops: Vec<InameId> = path.iter().filter_map(|(list, _)| *list).collect();
            let reads = kernel.insns[insn].lhs.var != sync.var;
            if let Some(outer) = first_bounded_by(kernel, &loops, sync.var).filter(|_| reads) {
                path.truncate(outer + 1);
            }
            path
        };
        let (source, sink) = (path(sync.source), path(sync.sink));
        let level = match sync.carrier {
            None => source.iter().zip(&sink).position(|(a, b)| a != b)?,
            Some(c) => source.iter().position(|(list, _)| *list == Some(c))?,
        };
        // a loop whose bounds its body writes has read them by then; lowering refuses it where
        // others may not have
        sink.get(level)?;
        let global = kernel.vars[sync.var].space == AddressSpace::Global;
        let (carried, scope) = (sync.carrier.is_some(), sync.scope);
        let insn = sync.source;
        let (completion, proxy, is_next, end) = (None, None, false, 0);
        Some(Self { insn, source, sink, level, carried, global, scope, completion, proxy, is_next, end })
    }

    fn list(&self) -> List {
        self.source[self.level].0
    }

    /// Whether the sink's statement stands after that of the source.
    fn is_forward(&self) -> bool {
        self.carried && self.source[self.level].1 < self.sink[self.level].1
    }

    fn last_gap(&self) -> usize {
        self.sink[self.level].1
    }

    fn is_met_by(&self, ((list, gap), fence): (&(List, usize), &Fence)) -> bool {
        let (list, gap) = (*list, *gap);
        let (a, b) = (self.source[self.level].1, self.sink[self.level].1);
        let late = |gap| match (self.carried, self.is_next) {
            (true, true) => gap > a && gap <= b,
            (true, false) => gap <= a.min(b) || gap == self.end,
            (false, _) => gap == b,
        };
        let between = |gap| if self.carried { gap > a || gap <= b } else { gap > a && gap <= b };
        let is_late = self.completion.is_some();
        let here = list == self.list() && between(gap) && (!is_late || late(gap));
        // On the way out of the source's loops, and into the sink's.
        let after = !is_late && self.source[self.level + 1..].iter().any(|(l, k)| *l == list && gap > *k);
        let before = self.sink[self.level + 1..].iter().any(|(l, k)| *l == list && gap <= *k);
        fence.scope >= self.scope && (here || after || before)
    }
}

fn walk(
    nodes: &[Node],
    list: List,
    path: &mut Path,
    paths: &mut [Path],
    lengths: &mut BTreeMap<List, usize>,
) {
    for (k, node) in nodes.iter().enumerate() {
        path.push((list, k));
        match node {
            Node::Insn(insn) => paths[insn.index()] = path.clone(),
            Node::Loop(iname, body) => {
                lengths.insert(Some(*iname), body.len());
                walk(body, Some(*iname), path, paths, lengths);
            }
        }
        path.pop();
    }
}

/// Loops around a barrier.
fn holders(kernel: &Kernel, gaps: &BTreeMap<(List, usize), Fence>) -> BTreeSet<InameId> {
    fn visit(
        nodes: &[Node],
        around: &mut Vec<InameId>,
        lists: &BTreeSet<List>,
        found: &mut BTreeSet<InameId>,
    ) {
        for node in nodes {
            if let Node::Loop(iname, body) = node {
                around.push(*iname);
                if lists.contains(&Some(*iname)) {
                    found.extend(around.iter().copied());
                }
                visit(body, around, lists, found);
                around.pop();
            }
        }
    }
    let lists: BTreeSet<List> = gaps.keys().map(|(list, _)| *list).collect();
    let mut found = BTreeSet::new();
    visit(&kernel.body, &mut Vec::new(), &lists, &mut found);
    found
}
