//! Calls whose code runs asynchronously until a completion: which of their accesses a completion must
//! follow.
//!
//! Formula: with `A` the instructions of such calls, `T` what a call
//! [touches later](kingpost_ir::calls::touched_later) and `D` the flow, anti and output dependences
//! through `T` from `A`, a completion by the work-item of the source stands between the ends of every
//! pair of `D`, and then a barrier where the sink is another work-item.

use crate::Analysis;
use crate::placement::refusal::PlacementError;
use kingpost_ir::calls::touched_later;
use kingpost_ir::ids::{InsnId, VarId};
use std::collections::BTreeSet;

/// What calls that complete later touch until then.
#[derive(Default)]
pub(super) struct Later(BTreeSet<(InsnId, VarId)>);

impl Later {
    pub(super) fn of(analysis: &Analysis) -> Result<Self, PlacementError> {
        let kernel = analysis.kernel();
        let mut found = Self::default();
        if !kernel.callees.values().any(|c| c.is_asynchronous()) {
            return Ok(found);
        }
        for call in kernel.calls().map_err(PlacementError::Calls)? {
            let callee = &kernel.callees[call.callee];
            if callee.is_asynchronous() {
                for var in touched_later(callee, &call.binding) {
                    found.0.extend(call.binding.insns.iter().map(|insn| (*insn, var)));
                }
            }
        }
        Ok(found)
    }

    /// Whether anything completes later.
    pub(super) fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether a completion must follow what an instruction does with a variable.
    pub(super) fn completes(&self, insn: InsnId, var: VarId) -> bool {
        self.0.contains(&(insn, var))
    }
}
