//! The last check: an independent walk over the final code that a barrier separates every sync.
//!
//! It shares nothing with the placement of barriers but the list of what needs one. For each sync
//! it follows, in order of execution, whether the source has run and no barrier since that orders
//! its memory.

use crate::ast::{Block, Fence, Name, Stmt};
use crate::error::CodegenError;
use purlin_analysis::placement::{Barrier, first_bounded_by};
use purlin_ir::{AddressSpace, AxisTag, Id, InameId, InsnId, Kernel};

/// Checks that a barrier separates the two sides of every sync.
///
/// # Errors
/// [`CodegenError::Race`].
pub(crate) fn check(
    kernel: &Kernel,
    syncs: &[Barrier],
    names: &[Name],
    body: &Block,
) -> Result<(), CodegenError> {
    match first_race(kernel, syncs, names, body) {
        None => Ok(()),
        Some(sync) => Err(CodegenError::Race {
            first: kernel.insns[sync.source].name.clone(),
            second: kernel.insns[sync.sink].name.clone(),
            var: kernel.vars[sync.var].name.clone(),
            kernel: purlin_ir::text::print(kernel),
        }),
    }
}

/// Maximum number of steps that [`drop_needless`] takes; above it, barriers that could go stay.
const BUDGET: usize = 2_000_000;

/// Removes barriers without which every sync is still separated, from the last to the first: after
/// an unrolled loop the one at the end of its last copy, for example. The memory that one orders
/// may be left to the one before it.
pub(crate) fn drop_needless(kernel: &Kernel, syncs: &[Barrier], names: &[Name], body: &mut Block) {
    let (barriers, size) = body.iter().map(counts).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    if barriers * size * syncs.len().max(1) > BUDGET {
        return;
    }
    for k in (0..barriers).rev() {
        let mut fewer = body.clone();
        let Some(fence) = remove(&mut fewer, &mut { k }) else { continue };
        if first_race(kernel, syncs, names, &fewer).is_some() {
            let Some(before) = k.checked_sub(1) else { continue };
            widen(&mut fewer, &mut { before }, fence);
            if first_race(kernel, syncs, names, &fewer).is_some() {
                continue;
            }
        }
        *body = fewer;
    }
}

/// Barriers and statements in a statement.
fn counts(stmt: &Stmt) -> (usize, usize) {
    let own = (usize::from(matches!(stmt, Stmt::Barrier(_))), 1);
    stmt.body().into_iter().flatten().map(counts).fold(own, |(a, b), (c, d)| (a + c, b + d))
}

/// Removes the k-th barrier; what it ordered.
fn remove(block: &mut Block, k: &mut usize) -> Option<Fence> {
    for at in 0..block.len() {
        if let Stmt::Barrier(fence) = block[at] {
            if *k == 0 {
                block.remove(at);
                return Some(fence);
            }
            *k -= 1;
        } else if let Some(fence) = block[at].body_mut().and_then(|b| remove(b, k)) {
            return Some(fence);
        }
    }
    None
}

/// Lets the k-th barrier order the memory of another one, too.
fn widen(block: &mut Block, k: &mut usize, more: Fence) -> bool {
    block.iter_mut().any(|stmt| match stmt {
        Stmt::Barrier(fence) if *k == 0 => {
            fence.local |= more.local;
            fence.global |= more.global;
            true
        }
        Stmt::Barrier(_) => {
            *k -= 1;
            false
        }
        other @ (Stmt::Comment(_)
        | Stmt::Declare(_)
        | Stmt::Assign { .. }
        | Stmt::Atomic(_)
        | Stmt::Intrinsic(_)
        | Stmt::If { .. }
        | Stmt::For(_)
        | Stmt::Iteration(_)) => other.body_mut().is_some_and(|b| widen(b, k, more)),
    })
}

fn first_race<'s>(
    kernel: &Kernel,
    syncs: &'s [Barrier],
    names: &[Name],
    body: &Block,
) -> Option<&'s Barrier> {
    let mut loops = vec![Vec::new(); kernel.insns.len()];
    for (insn, around) in kernel.schedule() {
        loops[insn.index()] = around;
    }
    syncs.iter().find(|sync| {
        let name = |i: &InameId| names[i.index()].clone();
        let common = loops[sync.source.index()].iter().filter(|i| {
            loops[sync.sink.index()].contains(i)
                && !matches!(kernel.inames[**i].tag, AxisTag::Group(_) | AxisTag::Local(_))
        });
        let mut walk = Walk {
            sync,
            global: kernel.vars[sync.var].space == AddressSpace::Global,
            carrier: sync.carrier.as_ref().map(name),
            bounded: [sync.source, sync.sink].map(|insn| {
                let around = &loops[insn.index()];
                let reads = kernel.insns[insn].lhs.var != sync.var;
                let outer = first_bounded_by(kernel, around, sync.var).filter(|_| reads);
                outer.map(|k| name(&around[k]))
            }),
            common: common.map(name).collect(),
            race: false,
        };
        walk.block(body, State::default());
        walk.race
    })
}

/// What is known at a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    /// The source may have run in this iteration of the common loops, with no barrier since.
    fresh: bool,
    /// The source may have run in an earlier iteration of the carrier, with no barrier since.
    carried: bool,
}

impl State {
    fn join(self, other: Self) -> Self {
        Self { fresh: self.fresh | other.fresh, carried: self.carried | other.carried }
    }
}

struct Walk<'a> {
    sync: &'a Barrier,
    /// Whether it is through global memory, else local.
    global: bool,
    carrier: Option<Name>,
    /// The outermost loop around source and sink whose bounds are what they read.
    bounded: [Option<Name>; 2],
    /// Sequential loops around both, outer first.
    common: Vec<Name>,
    race: bool,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, mut state: State) -> State {
        for stmt in block {
            state = self.stmt(stmt, state);
        }
        state
    }

    fn stmt(&mut self, stmt: &Stmt, state: State) -> State {
        match stmt {
            Stmt::Comment(_) | Stmt::Declare(_) => state,
            Stmt::Assign { origin, .. } => self.instruction(*origin, state),
            Stmt::Atomic(a) => self.instruction(Some(a.origin), state),
            Stmt::Intrinsic(i) => self.together(&i.origins, state),
            Stmt::Barrier(fence) if self.is_ordered_by(*fence) => State::default(),
            Stmt::Barrier(_) => state,
            Stmt::Iteration(name) => self.next_iteration(name, state),
            Stmt::If { body, .. } => state.join(self.block(body, state)),
            Stmt::For(f) => {
                let state = self.head(&f.name, state);
                let once = self.block(&f.body, state);
                let once = self.head(&f.name, once);
                let twice = self.block(&f.body, self.next_iteration(&f.name, once));
                state.join(once).join(self.head(&f.name, twice))
            }
        }
    }

    fn is_ordered_by(&self, fence: Fence) -> bool {
        if self.global { fence.global } else { fence.local }
    }

    /// The head of a loop reads its bounds.
    fn head(&mut self, name: &Name, state: State) -> State {
        let ends = [self.sync.source, self.sync.sink];
        let reads = |k: &usize| self.bounded[*k].as_ref() == Some(name);
        let read: Vec<_> = (0..2).filter(reads).map(|k| ends[k]).collect();
        read.into_iter().fold(state, |state, insn| self.instruction(Some(insn), state))
    }

    fn instruction(&mut self, origin: Option<InsnId>, mut state: State) -> State {
        // The sink first: an instruction may be both, and does not race with its own instance.
        if origin == Some(self.sync.sink) {
            self.race |= if self.carrier.is_some() { state.carried } else { state.fresh };
        }
        if origin == Some(self.sync.source) {
            state.fresh = true;
        }
        state
    }

    /// Instructions that run as one: all sinks before any source.
    fn together(&mut self, origins: &[InsnId], state: State) -> State {
        let after = origins.iter().map(|origin| self.instruction(Some(*origin), state));
        after.collect::<Vec<_>>().into_iter().fold(state, State::join)
    }

    fn next_iteration(&self, name: &Name, state: State) -> State {
        if self.carrier.as_ref() == Some(name) {
            return State { fresh: false, carried: state.carried | state.fresh };
        }
        let depth = |name: &Name| self.common.iter().position(|l| l == name);
        match (depth(name), self.carrier.as_ref().and_then(depth)) {
            // inside of what carries the sync any two iterations are a pair
            (Some(own), Some(carrier)) if own > carrier => state,
            // an iteration of a common loop that does not carry the sync: its pairs are elsewhere
            (Some(_), _) => State::default(),
            (None, _) => state,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::plan::Target;
    use crate::{Options, PlacedKernel};

    const TILES: &str = "kernel tiles\n\nparam n: i32\narg x: f64[16*n] in\narg y: f64[16] inout\n\
        temp tile: f64[16] local\ntemp acc: f64[16] private\n\
        for l in 0..16 {l.0}\n  zero: acc[l] = 0.0\n\
        for t in 0..n TAG\n  for p in 0..16 {l.0}\n    load: tile[p] = x[16*t + p]\n  \
        for e in 0..16 {l.0}\n    use: acc[e] += tile[15 - e]\n\
        for s in 0..16 {l.0}\n  store: y[s] += acc[s]\n";

    /// The code of the kernel, and the first race without its k-th barrier.
    fn race_without(text: &str, k: usize) -> Option<Barrier> {
        let kernel = purlin_ir::text::parse(text).unwrap();
        let placed = PlacedKernel::new(&kernel).unwrap();
        let mut body = placed.code(Target::OpenCl, &Options::default()).unwrap().function.body;
        let names: Vec<Name> = kernel.inames.values().map(|i| i.name.as_str().into()).collect();
        let syncs = &placed.placement.barriers;
        assert_eq!(first_race(&kernel, syncs, &names, &body), None);
        assert!(remove(&mut body, &mut { k }).is_some());
        first_race(&kernel, syncs, &names, &body).cloned()
    }

    #[test]
    fn every_barrier_of_a_tile_loop_is_needed() {
        let text = TILES.replace(" TAG", "");
        let (first, second) = (race_without(&text, 0).unwrap(), race_without(&text, 1).unwrap());
        assert_eq!(first.carrier, None);
        assert!(second.carrier.is_some());
    }

    /// The barrier at the end of the last copy orders it and the first one of the next iteration
    /// around.
    #[test]
    fn every_barrier_of_copies_inside_a_loop_is_needed() {
        let text = "kernel copies\n\narg x: f64[16] in\narg y: f64[16] inout\ntemp t: f64 local\ntemp w: f64[16] private\n\
            for l in 0..16\n  zero: w[l] = 0.0\n\
            for i in 0..4 TAG\n  for k in 0..2 {unroll}\n    set: t = x[4*i + k]\n    use: w[4*i + k] += t\n\
            for s in 0..16 {l.0}\n  store: y[s] += w[s]\n";
        for k in 0..4 {
            assert!(race_without(&text.replace(" TAG", ""), k).is_some(), "barrier {k}");
        }
        for k in 0..15 {
            assert!(race_without(&text.replace("TAG", "{unroll}"), k).is_some(), "barrier {k}");
        }
    }

    #[test]
    fn every_barrier_of_an_unrolled_tile_loop_is_needed() {
        let text =
            TILES.replace("param n: i32\n", "").replace("16*n", "48").replace("0..n TAG", "0..3 {unroll}");
        // load, |, use, |, load, |, use, |, load, |, use: nothing follows the last
        for k in 0..5 {
            assert!(race_without(&text, k).is_some(), "barrier {k}");
        }
    }
}
