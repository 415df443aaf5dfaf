//! Makes calls ordinary statements again.

use super::Transform;
use crate::lookup;
use crate::refusal::Refusal;
use purlin_ir::{CalleeId, Id, InsnId, Kernel};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes the calls of a callee, or the one that an instruction belongs to, ordinary statements again, which
/// further steps may transform. A callee that nothing calls any more is gone.
///
/// # Rewrite
/// ```text
/// call fma  # a = a, b = x[i], c = y[i]     =>   s: y[i] += a*x[i]
///   s: y[i] += a*x[i]
/// ```
///
/// # Precondition
/// That is what a call means: `call f(w)` is the body of `f` with the windows `w` for its arguments, which the tree holds
/// already. Its instances, `{ s : callee(s) = f }`, stay as they are.
///
/// # Errors
/// An unknown callee; no call of it, or an instruction that belongs to none.
///
/// # Elsewhere
/// Loopy `inline_callable_kernel`; Exo `inline`; MLIR `inline`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InlineCall {
    /// The callee.
    pub callee: String,
    /// An instruction of the call; every call if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insn: Option<String>,
}

impl InlineCall {
    /// Inlines every call of `callee`.
    pub fn new(callee: impl Into<String>) -> Self {
        Self { callee: callee.into(), insn: None }
    }

    /// Only the call that this instruction belongs to.
    #[must_use]
    pub fn at(mut self, insn: impl Into<String>) -> Self {
        self.insn = Some(insn.into());
        self
    }
}

impl fmt::Display for InlineCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "inline `{}`", self.callee)?;
        match &self.insn {
            Some(insn) => write!(f, " at `{insn}`"),
            None => Ok(()),
        }
    }
}

impl Transform for InlineCall {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let (callee, insns) = self.check(kernel)?;
        let mut inlined = kernel.clone();
        for insn in insns {
            inlined.insns[insn].callee = None;
        }
        if inlined.insns.values().all(|i| i.callee != Some(callee)) {
            remove(&mut inlined, callee);
        }
        Ok(inlined)
    }
}

impl InlineCall {
    /// The callee, and the instructions of the calls.
    fn check(&self, kernel: &Kernel) -> Result<(CalleeId, Vec<InsnId>), Refusal> {
        let callee = lookup::callee(kernel, &self.callee)?;
        let at = self.insn.as_ref().map(|name| lookup::insn(kernel, name)).transpose()?;
        let calls = kernel.calls()?.into_iter().filter(|c| c.callee == callee);
        let insns: Vec<_> = calls
            .map(|c| c.binding.insns)
            .filter(|insns| at.is_none_or(|insn| insns.contains(&insn)))
            .flatten()
            .collect();
        if !insns.is_empty() {
            return Ok((callee, insns));
        }
        Err(Refusal::Other(match &self.insn {
            Some(insn) => format!("`{insn}` belongs to no call of `{}`", self.callee),
            None => format!("nothing calls `{}`", self.callee),
        }))
    }
}

/// Drops a callee that nothing calls; later ones move up by one.
fn remove(kernel: &mut Kernel, callee: CalleeId) {
    let kept = kernel.callees.iter().filter(|(id, _)| *id != callee);
    kernel.callees = kept.map(|(_, c)| c.clone()).collect();
    for insn in kernel.insns.values_mut() {
        insn.callee = insn.callee.map(|c| CalleeId::from_index(c.index() - usize::from(c > callee)));
    }
}
