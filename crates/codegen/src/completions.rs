//! What completes the calls of a target that run asynchronously.

use crate::ast::{Fence, Name};
use crate::callees;
use crate::error::CodegenError;
use crate::target::{Completion, TargetDescription};
use kingpost_analysis::Analysis;
use kingpost_analysis::placement::Barrier;
use kingpost_ir::calls::{self, Accumulator, Beginning, Piece, TargetCode, touched_later};
use kingpost_ir::{InsnId, Kernel, VarId};
use kingpost_isl::IslError;
use std::collections::{BTreeMap, BTreeSet};

/// The highest age, in groups: calls that are older still are not told apart.
pub(crate) const OLDEST: u8 = 16;

/// Statements that complete calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    /// What makes a group of calls, if they are completed group by group.
    pub(crate) commit: Option<Name>,
    /// What waits for them.
    pub(crate) wait: Name,
    /// Whether every work-item waits for the calls, so that none has to tell others.
    pub(crate) by_all: bool,
}

impl Kind {
    fn of(completion: &calls::Completion) -> Self {
        let by_all = completion.begin().is_some();
        Self { commit: completion.commit().map(Into::into), wait: completion.wait().into(), by_all }
    }

    /// The age of a call after a fence, if it had `age` before: the groups that were made since, its own
    /// included; none if it is done. A wait knows nothing of calls that no group holds yet. `of_all`: only one that
    /// waits for all groups counts.
    pub(crate) fn behind(&self, fence: &Fence, age: u8, of_all: bool) -> Option<u8> {
        let waits = fence.completions.get(&self.wait);
        let Some(commit) = &self.commit else { return waits.is_none().then_some(age) };
        let age = OLDEST.min(age + u8::from(fence.commits.contains(commit)));
        let done = waits.is_some_and(|going_on| age > *going_on && (*going_on == 0 || !of_all));
        (!done).then_some(age)
    }
}

/// What completes the instructions of such calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Completions {
    /// For each instruction and each array that it touches later.
    kinds: BTreeMap<(InsnId, VarId), Kind>,
    /// For each instruction and each array that it accesses through a proxy: what ends ordinary accesses.
    proxies: BTreeMap<(InsnId, VarId), Name>,
    /// What stands at the beginning of the kernel.
    begins: BTreeSet<Beginning>,
    /// Axes of work-items along which all run a statement together, where calls are made so.
    together: BTreeMap<Name, u8>,
    /// What waits for calls that update registers, with the arrays that hold these.
    accumulators: BTreeMap<Name, BTreeSet<VarId>>,
    /// Iterations of its carrier between the ends of a sync, where that is more than one.
    apart: BTreeMap<Barrier, u8>,
}

/// Code that says nothing of a completion waits for itself.
fn check_waits(callee: &str, code: &TargetCode, target: &TargetDescription) -> Result<(), CodegenError> {
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Element(_) | Piece::Address(..) | Piece::Map(_) | Piece::Begin(..) => None,
    };
    let text: String = code.text.iter().filter_map(text).collect();
    for Completion { instruction, waits, hints } in target.completions {
        let begins = |at: usize| !hints.iter().any(|hint| text[at..].starts_with(hint));
        let runs_on = text.match_indices(instruction).any(|(at, _)| begins(at));
        if runs_on && !waits.iter().any(|wait| text.contains(wait)) {
            return Err(CodegenError::NeverCompleted { callee: callee.into(), instruction });
        }
    }
    Ok(())
}

impl Completions {
    /// The completions of the code of a target. A host runs the work-items of a group one after the other, and
    /// takes the meaning instead.
    ///
    /// # Errors
    /// A kernel that is not well formed; code that waits for nothing and should.
    pub(crate) fn new(kernel: &Kernel, target: &TargetDescription) -> Result<Self, CodegenError> {
        let mut found = Self::default();
        if target.is_host() {
            return Ok(found);
        }
        for call in callees::with_code(kernel, target)?.values() {
            let callee = &kernel.callees[call.callee];
            let Some(code) = callee.code_for(target.name) else { continue };
            if let Some(fence) = &code.proxy {
                for (var, _) in calls::proxies(callee, &call.binding) {
                    let insns = call.binding.insns.iter();
                    found.proxies.extend(insns.map(|insn| ((*insn, var), Name::from(fence.as_str()))));
                }
            }
            let Some(completion) = &code.completes else {
                check_waits(callee.name(), code, target)?;
                continue;
            };
            found.begins.extend(completion.begin().cloned());
            let completion = Kind::of(completion);
            // sub-groups whole make groups for the calls of another work-item
            let axes = if completion.by_all { 1 } else { callee.axes_together() };
            if axes > 0 {
                let statements = completion.commit.iter().chain([&completion.wait]).cloned();
                found.together.extend(statements.map(|statement| (statement, axes)));
            }
            let accumulators = Accumulator::of(callee, &call.binding).map(|own| own.window.var);
            found.accumulators.entry(completion.wait.clone()).or_default().extend(accumulators);
            for var in touched_later(callee, &call.binding) {
                let insns = call.binding.insns.iter();
                found.kinds.extend(insns.map(|insn| ((*insn, var), completion.clone())));
            }
        }
        Ok(found)
    }

    /// Counts the iterations between calls in groups and what waits for them.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn count_iterations(&mut self, kernel: &Kernel, syncs: &[Barrier]) -> Result<(), IslError> {
        let analysis = Analysis::of(kernel);
        for sync in syncs {
            if self.of(kernel, sync).is_some_and(|kind| kind.commit.is_some()) {
                let apart = analysis.iterations_apart(sync, OLDEST.into())?;
                self.apart.extend(u8::try_from(apart).ok().map(|apart| (sync.clone(), apart)));
            }
        }
        Ok(())
    }

    /// Iterations of the carrier that are at least between the ends of a sync.
    pub(crate) fn iterations_apart(&self, sync: &Barrier) -> u8 {
        // what is not counted may be in the next one
        self.apart.get(sync).copied().unwrap_or(1)
    }

    /// What stands at the beginning of the kernel.
    pub(crate) fn begins(&self) -> &BTreeSet<Beginning> {
        &self.begins
    }

    /// Axes along which work-items run a statement together.
    pub(crate) fn axes_together(&self, statement: &Name) -> Option<u8> {
        self.together.get(statement).copied()
    }

    /// The arrays in registers that calls update for which a statement waits.
    pub(crate) fn accumulators(&self, wait: &Name) -> impl Iterator<Item = VarId> {
        self.accumulators.get(wait).into_iter().flatten().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.proxies.is_empty()
    }

    /// What must stand between the ends of a sync so that what the source did is done for the sink, which accesses
    /// memory through a proxy.
    pub(crate) fn proxy(&self, kernel: &Kernel, sync: &Barrier) -> Option<&Name> {
        let storage = |var: VarId| kernel.vars[var].storage.as_ref();
        let same = |var: VarId| var == sync.var || storage(var).is_some_and(|s| Some(s) == storage(sync.var));
        let of = |insn: InsnId| {
            let mut here = self.proxies.iter().filter(move |((i, var), _)| *i == insn && same(*var));
            here.next().map(|(_, fence)| fence)
        };
        of(sync.sink).filter(|fence| of(sync.source) != Some(fence))
    }

    /// Whether calls that a statement completes are those of work-items together.
    pub(crate) fn is_of_team(&self, kind: &Kind) -> bool {
        !kind.by_all && self.together.contains_key(&kind.wait)
    }

    /// All kinds, without repetition.
    pub(crate) fn all(&self) -> BTreeSet<Kind> {
        self.kinds.values().cloned().collect()
    }

    /// The instructions of calls, each with its kind.
    pub(crate) fn insns(&self) -> BTreeSet<(InsnId, &Kind)> {
        self.kinds.iter().map(|((insn, _), kind)| (*insn, kind)).collect()
    }

    /// The completion of an instruction.
    pub(crate) fn of_insn(&self, insn: InsnId) -> Option<&Kind> {
        self.kinds.iter().find(|((source, _), _)| *source == insn).map(|(_, kind)| kind)
    }

    /// What must stand between the ends of a sync besides a barrier. Arrays that share a buffer are
    /// one.
    pub(crate) fn of(&self, kernel: &Kernel, sync: &Barrier) -> Option<Kind> {
        let storage = |var: VarId| kernel.vars[var].storage.as_ref();
        let same = |var: VarId| var == sync.var || storage(var).is_some_and(|s| Some(s) == storage(sync.var));
        let mut of_source = self.kinds.iter().filter(|((insn, var), _)| *insn == sync.source && same(*var));
        of_source.next().map(|(_, kind)| kind.clone())
    }
}
