//! What completes the calls of a target that run asynchronously.

use crate::ast::Name;
use crate::callees;
use crate::error::CodegenError;
use crate::target::{Completion, TargetDescription};
use kingpost_analysis::placement::Barrier;
use kingpost_ir::calls::{Piece, TargetCode, touched_later};
use kingpost_ir::{InsnId, Kernel, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// For each instruction of such calls and each array that it touches later, the completion.
#[derive(Clone, Debug, Default)]
pub(crate) struct Completions(BTreeMap<(InsnId, VarId), Name>);

/// Code that says nothing of a completion waits for itself.
fn check_waits(callee: &str, code: &TargetCode, target: &TargetDescription) -> Result<(), CodegenError> {
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Element(_) | Piece::Address(_) => None,
    };
    let text: String = code.text.iter().filter_map(text).collect();
    for Completion { instruction, waits } in target.completions {
        if text.contains(instruction) && !waits.iter().any(|wait| text.contains(wait)) {
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
            let Some(completion) = &code.completes else {
                check_waits(callee.name(), code, target)?;
                continue;
            };
            let completion: Name = completion.as_str().into();
            for var in touched_later(callee, &call.binding) {
                let insns = call.binding.insns.iter();
                found.0.extend(insns.map(|insn| ((*insn, var), completion.clone())));
            }
        }
        Ok(found)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All completions, without repetition.
    pub(crate) fn all(&self) -> BTreeSet<Name> {
        self.0.values().cloned().collect()
    }

    /// The completion of an instruction.
    pub(crate) fn of_insn(&self, insn: InsnId) -> Option<&Name> {
        self.0.iter().find(|((source, _), _)| *source == insn).map(|(_, completion)| completion)
    }

    /// What must stand between the ends of a sync besides a barrier. Arrays that share a buffer are
    /// one.
    pub(crate) fn of(&self, kernel: &Kernel, sync: &Barrier) -> Option<Name> {
        let storage = |var: VarId| kernel.vars[var].storage.as_ref();
        let same = |var: VarId| var == sync.var || storage(var).is_some_and(|s| Some(s) == storage(sync.var));
        let mut of_source = self.0.iter().filter(|((insn, var), _)| *insn == sync.source && same(*var));
        of_source.next().map(|(_, completion)| completion.clone())
    }
}
