//! The last check: an independent walk over the final code that a barrier separates every sync.
//!
//! It shares nothing with the placement of barriers but the list of what needs one. For each sync
//! it follows, in order of execution, whether the source has run and no barrier since that orders
//! its memory. A call that runs asynchronously must have been completed before that barrier, and
//! before the end of the kernel. Calls in groups have ages, the groups that were made since: 0 in none, one
//! more for each that is made, and a wait for all groups but the last `n` completes those older than `n`.
//! Branches take the least.

mod completing;
mod event;
mod state;

use crate::ast::{Block, Fence, Name, Stmt};
use crate::completions::{Completions, Kind, OLDEST};
use crate::error::CodegenError;
use event::{Event, Loop};
use kingpost_analysis::placement::{Barrier, Scope, first_bounded_by};
use kingpost_ir::{AddressSpace, AxisTag, Id, InameId, InsnId, Kernel};
use state::{Stage, State};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum number of steps that dropping barriers takes; above it, barriers that could go stay.
const BUDGET: usize = 2_000_000;

/// Checks that a barrier separates the two sides of every sync, and removes barriers without which
/// every sync is still separated.
///
/// # Errors
/// [`CodegenError::Race`].
pub(crate) fn settle_barriers(
    kernel: &Kernel,
    syncs: &[Barrier],
    completions: &Completions,
    names: &[Name],
    body: &mut Block,
) -> Result<(), CodegenError> {
    let mut outline = Outline::of(kernel, syncs, completions, names, body);
    if let Some(sync) = outline.first_race() {
        return Err(CodegenError::Race {
            first: kernel.insns[sync.source].name.clone(),
            second: kernel.insns[sync.sink].name.clone(),
            var: kernel.vars[sync.var].name.clone(),
            kernel: kingpost_ir::text::print(kernel),
        });
    }
    if let Some(completion) = outline.first_outstanding() {
        return Err(CodegenError::Outstanding {
            completion: completion.to_string(),
            kernel: kingpost_ir::text::print(kernel),
        });
    }
    let walked: usize = outline.ends.iter().map(|ends| event::count(&ends.events)).sum();
    if outline.fences.len() * walked <= BUDGET {
        outline.let_groups_go_on();
        outline.drop_needless();
        settle(body, &mut outline.fences.into_iter());
    }
    Ok(())
}

/// Gives each barrier, in textual order, what it is to order; one that is to order nothing goes.
fn settle(block: &mut Block, fences: &mut impl Iterator<Item = Option<Fence>>) {
    block.retain_mut(|stmt| {
        if let Stmt::Barrier(fence) = stmt {
            let settled = fences.next().flatten();
            let stays = settled.is_some();
            if let Some(settled) = settled {
                *fence = settled;
            }
            return stays;
        }
        if let Some(body) = stmt.body_mut() {
            settle(body, fences);
        }
        true
    });
}

/// What of the code decides whether a barrier separates the syncs.
struct Outline<'s> {
    /// What each barrier orders, in textual order; none: it is taken away.
    fences: Vec<Option<Fence>>,
    ends: Vec<Ends<'s>>,
    /// Completions that must come before the end, each with what concerns it.
    outstanding: Vec<(Kind, Vec<Event>)>,
}

/// The ends of a sync and the loops that count for it.
struct Ends<'s> {
    sync: &'s Barrier,
    /// What completes the source, if it runs asynchronously.
    completion: Option<Kind>,
    /// What ends ordinary accesses for the sink.
    proxy: Option<Name>,
    /// Iterations of the carrier that are at least between source and sink.
    apart: usize,
    /// Whether it is through global memory, else local.
    global: bool,
    /// Whether it is through registers: they are read after a wait for all groups alone, after which the code
    /// says so to the compiler.
    in_registers: bool,
    carrier: Loop,
    /// The outermost loop around source and sink whose bounds are what they read.
    bounded: [Loop; 2],
    /// Sequential loops around both, outer first.
    common: Vec<Loop>,
    /// What of the code concerns the sync: the walk goes over it again for every barrier that may
    /// go.
    events: Vec<Event>,
}

impl<'s> Outline<'s> {
    fn of(
        kernel: &Kernel,
        syncs: &'s [Barrier],
        completions: &Completions,
        names: &[Name],
        body: &Block,
    ) -> Self {
        let mut first: BTreeMap<&Name, InameId> = BTreeMap::new();
        for (iname, name) in kernel.inames.ids().zip(names) {
            first.entry(name).or_insert(iname);
        }
        let mut is_end = vec![false; kernel.insns.len()];
        for sync in syncs {
            is_end[sync.source.index()] = true;
            is_end[sync.sink.index()] = true;
        }
        let mut loops = vec![Vec::new(); kernel.insns.len()];
        for (insn, around) in kernel.schedule() {
            loops[insn.index()] = around;
        }
        let by_name = |i: &InameId| first.get(&names[i.index()]).copied();
        let mut fences = Vec::new();
        let events = events(body, &|name| first.get(name).copied(), &is_end, &mut fences);
        let of_sync = |sync| {
            let completion = completions.of(kernel, sync);
            let ends = Ends::of(kernel, sync, &loops, &by_name);
            // the bounds of a loop are read before its iterations
            let bounds = ends.bounded.iter().any(Option::is_some);
            let apart = if bounds { 1 } else { completions.iterations_apart(sync).into() };
            let proxy = completions.proxy(kernel, sync).cloned();
            let ends = Ends { completion, proxy, apart, ..ends };
            Ends { events: ends.concerning(&events), ..ends }
        };
        let ends = syncs.iter().map(of_sync).collect();
        let issued = |c: &Kind| completing::concerning(&events, &|insn| completions.of_insn(insn) == Some(c));
        let outstanding = completions.all().into_iter().map(|c| (c.clone(), issued(&c))).collect();
        Self { fences, ends, outstanding }
    }

    /// The first completion without which a call may be under way at the end.
    fn first_outstanding(&self) -> Option<&Name> {
        let mut all = self.outstanding.iter();
        let found =
            all.find(|(kind, events)| completing::youngest(events, &self.fences, kind, None).is_some());
        found.map(|(kind, _)| &kind.wait)
    }

    fn is_sound(&self) -> bool {
        self.first_race().is_none() && self.first_outstanding().is_none()
    }

    fn first_race(&self) -> Option<&'s Barrier> {
        let mut ends = self.ends.iter();
        let found = ends.find(|ends| {
            let mut walk = Walk { ends, fences: &self.fences, race: false };
            walk.block(&ends.events, State::default());
            walk.race
        });
        found.map(|ends| ends.sync)
    }

    /// Lets as many groups of calls go on after each wait as every sync allows, from the first wait to
    /// the last: where a later one waits for the same calls, the earlier one need not.
    fn let_groups_go_on(&mut self) {
        let grouped = self.outstanding.iter().filter(|(kind, _)| kind.commit.is_some());
        let waits: Vec<Name> = grouped.map(|(kind, _)| kind.wait.clone()).collect();
        for k in 0..self.fences.len() {
            for wait in &waits {
                for going_on in 1..OLDEST {
                    let waiting = self.fences[k].as_mut().and_then(|fence| fence.completions.get_mut(wait));
                    let Some(waiting) = waiting else { break };
                    let before = std::mem::replace(waiting, going_on);
                    if !self.is_sound() {
                        let fence = self.fences[k].as_mut();
                        fence.and_then(|fence| fence.completions.insert(wait.clone(), before));
                        break;
                    }
                }
            }
        }
    }

    /// Takes away barriers without which every sync is still separated, from the last to the
    /// first: after an unrolled loop the one at the end of its last copy, for example. The memory
    /// that one orders may be left to the one before it.
    fn drop_needless(&mut self) {
        for k in (0..self.fences.len()).rev() {
            let kept = self.fences.clone();
            let Some(fence) = self.fences[k].take() else { continue };
            self.fences[k] = fence.commits_alone();
            if self.is_sound() {
                continue;
            }
            // an earlier completion waits longer
            let earlier = k.checked_sub(1).filter(|_| fence.completions.is_empty());
            let before = earlier.and_then(|before| self.fences[before].as_mut());
            let widened = before.map(|before| {
                before.local |= fence.local;
                before.global |= fence.global;
                before.proxies.extend(fence.proxies.iter().cloned());
            });
            if widened.is_none() || !self.is_sound() {
                self.fences = kept;
            }
        }
        self.drop_needless_completions();
    }

    /// Takes away completions, from the first to the last, and barriers of which only a completion is
    /// needed.
    fn drop_needless_completions(&mut self) {
        for k in 0..self.fences.len() {
            let Some(fence) = self.fences[k].clone().filter(|f| !f.completions.is_empty()) else { continue };
            let alone = Fence { scope: Scope::WorkItem, local: false, global: false, ..fence.clone() };
            let mut kept = fence.clone();
            for wait in fence.completions.keys() {
                let mut less = kept.clone();
                less.completions.remove(wait);
                self.fences[k] = Some(less.clone());
                if self.is_sound() {
                    kept = less;
                }
            }
            if kept == fence {
                self.fences[k] = Some(alone);
                if self.is_sound() {
                    continue;
                }
            }
            self.fences[k] = Some(kept);
        }
    }
}

/// The events of statements in order; numbers their barriers.
fn events(
    block: &Block,
    by_name: &dyn Fn(&Name) -> Loop,
    is_end: &[bool],
    fences: &mut Vec<Option<Fence>>,
) -> Vec<Event> {
    let mut found = Vec::new();
    let ends = |origins: &mut dyn Iterator<Item = InsnId>| {
        let ends: Vec<_> = origins.filter(|insn| is_end[insn.index()]).collect();
        (!ends.is_empty()).then_some(ends)
    };
    let run = |origins: &mut dyn Iterator<Item = InsnId>| ends(origins).map(Event::Run);
    for stmt in block {
        let event = match stmt {
            Stmt::Comment(_) | Stmt::Declare(_) => None,
            Stmt::Assign { origin, .. } => run(&mut origin.iter().copied()),
            Stmt::Atomic(a) => run(&mut [a.origin].into_iter()),
            Stmt::Intrinsic(i) if i.asynchronous => Some(Event::Issue(i.origins.clone())),
            Stmt::Intrinsic(i) => run(&mut i.origins.iter().copied()),
            Stmt::Barrier(fence) => {
                fences.push(Some(fence.clone()));
                Some(Event::Barrier(fences.len() - 1))
            }
            Stmt::Iteration(name) => Some(Event::Iteration(by_name(name))),
            Stmt::If { body, .. } => Some(Event::If(events(body, by_name, is_end, fences))),
            Stmt::For(f) => Some(Event::For(by_name(&f.name), events(&f.body, by_name, is_end, fences))),
        };
        // after two runs of the same instructions a third one finds what the second one found
        let again = match (&event, &found[..]) {
            (Some(new @ (Event::Run(_) | Event::Issue(_))), [.., a, b]) => a == new && b == new,
            _ => false,
        };
        found.extend(event.filter(|_| !again));
    }
    found
}

impl<'s> Ends<'s> {
    fn of(
        kernel: &Kernel,
        sync: &'s Barrier,
        loops: &[Vec<InameId>],
        by_name: &dyn Fn(&InameId) -> Loop,
    ) -> Self {
        let common = loops[sync.source.index()].iter().filter(|i| {
            loops[sync.sink.index()].contains(i)
                && !matches!(kernel.inames[**i].tag, AxisTag::Group(_) | AxisTag::Local(_))
        });
        let bounded = [sync.source, sync.sink].map(|insn| {
            let around = &loops[insn.index()];
            let reads = kernel.insns[insn].lhs.var != sync.var;
            let outer = first_bounded_by(kernel, around, sync.var).filter(|_| reads);
            outer.and_then(|k| by_name(&around[k]))
        });
        Self {
            sync,
            completion: None,
            proxy: None,
            apart: 1,
            global: kernel.vars[sync.var].space == AddressSpace::Global,
            in_registers: kernel.vars[sync.var].space == AddressSpace::Private,
            carrier: sync.carrier.as_ref().and_then(by_name),
            bounded,
            common: common.map(by_name).collect(),
            events: Vec::new(),
        }
    }

    /// The events that may change what is known of the sync: its two instructions, barriers, the
    /// loops that count for it, and what holds any of these.
    ///
    /// The walk keeps its state over everything else: a condition around nothing joins a state with
    /// itself, and a loop around nothing changes it only at a head that reads bounds
    /// ([`Walk::head`]) or from one iteration to the next ([`Walk::next_iteration`]), which takes a
    /// loop that [`Ends::counts`].
    fn concerning(&self, events: &[Event]) -> Vec<Event> {
        let of_event = |event: &Event| match event {
            Event::Run(insns) => self.among(insns).map(Event::Run),
            Event::Issue(insns) => self.among(insns).map(Event::Issue),
            Event::Barrier(k) => Some(Event::Barrier(*k)),
            Event::Iteration(l) => self.counts(*l).then_some(Event::Iteration(*l)),
            Event::If(body) => {
                let body = self.concerning(body);
                (!body.is_empty()).then_some(Event::If(body))
            }
            Event::For(l, body) => {
                let body = self.concerning(body);
                (!body.is_empty() || self.counts(*l)).then_some(Event::For(*l, body))
            }
        };
        events.iter().filter_map(of_event).collect()
    }

    /// The ends of the sync among instructions, if there are any.
    fn among(&self, insns: &[InsnId]) -> Option<Vec<InsnId>> {
        let ends = insns.iter().filter(|i| [self.sync.source, self.sync.sink].contains(i));
        let ends: Vec<_> = ends.copied().collect();
        (!ends.is_empty()).then_some(ends)
    }

    /// Whether the head of a loop, or its next iteration, may change what is known of the sync.
    fn counts(&self, l: Loop) -> bool {
        l.is_some() && (self.carrier == l || self.bounded.contains(&l) || self.common.contains(&l))
    }
}

#[cfg(test)]
fn first_race<'s>(
    kernel: &Kernel,
    syncs: &'s [Barrier],
    names: &[Name],
    body: &Block,
) -> Option<&'s Barrier> {
    let completions = Completions::new(kernel, crate::Target::Cuda.description()).ok()?;
    Outline::of(kernel, syncs, &completions, names, body).first_race()
}

struct Walk<'a> {
    ends: &'a Ends<'a>,
    fences: &'a [Option<Fence>],
    race: bool,
}

impl Walk<'_> {
    fn block(&mut self, block: &[Event], mut state: State) -> State {
        for event in block {
            state = self.event(event, state);
        }
        state
    }

    fn event(&mut self, event: &Event, state: State) -> State {
        match event {
            Event::Run(origins) => self.together(origins, state, self.done()),
            Event::Issue(origins) => {
                let issued = Stage::Issued(Reverse(0));
                let issued = self.ends.completion.as_ref().map_or(self.done(), |_| issued);
                self.together(origins, state, issued)
            }
            Event::Barrier(k) => self.fences[*k].as_ref().map_or(state, |fence| self.behind(fence, state)),
            Event::Iteration(l) => self.next_iteration(*l, state),
            Event::If(body) => state.join(self.block(body, state)),
            Event::For(l, body) => self.repeat(*l, body, state),
        }
    }

    /// Iterations until another one would find what those before have found.
    fn repeat(&mut self, l: Loop, body: &[Event], state: State) -> State {
        let mut first = self.head(l, state);
        let mut after = first;
        loop {
            let once = self.block(body, first);
            let once = self.head(l, once);
            after = after.join(once);
            let again = first.join(self.next_iteration(l, once));
            if again == first {
                return after;
            }
            first = again;
        }
    }

    /// What a source that is done is: a work-item runs in order.
    fn done(&self) -> Stage {
        let in_order = self.ends.sync.scope == Scope::WorkItem && self.ends.proxy.is_none();
        if in_order { Stage::Ordered } else { Stage::Done }
    }

    /// Completions come before the barrier.
    fn behind(&self, fence: &Fence, state: State) -> State {
        let ordered = self.is_ordered_by(fence);
        state.each(|stage| {
            if let (Stage::Issued(Reverse(age)), Some(kind)) = (stage, &self.ends.completion)
                && let Some(age) = kind.behind(fence, age, self.ends.in_registers)
            {
                return Stage::Issued(Reverse(age));
            }
            match stage {
                Stage::Issued(_) | Stage::Done if !ordered => self.done(),
                Stage::Issued(_) | Stage::Done | Stage::Ordered => Stage::Ordered,
            }
        })
    }

    fn is_ordered_by(&self, fence: &Fence) -> bool {
        let memory = if self.ends.global { fence.global } else { fence.local };
        let orders = memory || self.ends.sync.scope == Scope::WorkItem;
        let ends = self.ends.proxy.as_ref().is_none_or(|proxy| fence.proxies.contains(proxy));
        orders && ends && fence.scope >= self.ends.sync.scope
    }

    /// The head of a loop reads its bounds.
    fn head(&mut self, l: Loop, mut state: State) -> State {
        let ends = [self.ends.sync.source, self.ends.sync.sink];
        for (insn, bounded) in ends.into_iter().zip(self.ends.bounded) {
            if l.is_some() && bounded == l {
                state = self.instruction(insn, state, self.done());
            }
        }
        state
    }

    fn instruction(&mut self, origin: InsnId, mut state: State, stage: Stage) -> State {
        let sync = self.ends.sync;
        // The sink first: an instruction may be both, and does not race with its own instance.
        if origin == sync.sink {
            let found = state.before(if sync.carrier.is_some() { self.ends.apart } else { 0 });
            self.race |= found != Stage::Ordered;
        }
        if origin == sync.source {
            state.run(stage);
        }
        state
    }

    /// Instructions that run as one: all sinks before any source.
    fn together(&mut self, origins: &[InsnId], state: State, stage: Stage) -> State {
        origins.iter().fold(state, |after, origin| after.join(self.instruction(*origin, state, stage)))
    }

    fn next_iteration(&self, l: Loop, state: State) -> State {
        if l.is_none() {
            return state;
        }
        if self.ends.carrier == l {
            return state.next_iteration(self.ends.apart);
        }
        let depth = |l: Loop| self.ends.common.iter().position(|other| *other == l);
        match (depth(l), self.ends.carrier.and_then(|carrier| depth(Some(carrier)))) {
            // inside what carries the sync any two iterations are a pair
            (Some(own), Some(carrier)) if own > carrier => state,
            // an iteration of a common loop that does not carry the sync: its pairs are elsewhere
            (Some(_), _) => State::default(),
            (None, _) => state,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
