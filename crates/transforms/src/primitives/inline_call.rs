//! Makes calls ordinary statements again.

use kingpost_analysis::Analysis;
use kingpost_ir::{CalleeId, Id, InsnId, Kernel};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes the calls of a callee, or the one that an instruction belongs to, ordinary statements
/// again, which further steps may transform. A callee that nothing calls any more is gone.
///
/// # Rewrite
/// ```text
/// call multiply_add  # a = a, b = x[i], c = y[i]     =>   s: y[i] += a*x[i]
///   s: y[i] += a*x[i]
/// ```
///
/// # Precondition
/// That is what a call means: `call f(w)` is the body of `f` with the windows `w` for its
/// arguments, which the tree holds already. Its instances, `{ s : callee(s) = f }`, stay as they
/// are.
///
/// # Errors
/// An unknown callee; no call of it, or an instruction that belongs to none.
///
/// # Elsewhere
/// Loopy `inline_callable_kernel`; Exo `inline`; MLIR `inline`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// There is something to inline.
const CALLED: Obligation = Obligation::new(
    "inline_call.called",
    "the callee has a call, which the instruction belongs to if one is named",
);

/// Calls of a callee.
pub struct Calls {
    callee: CalleeId,
    insns: Vec<InsnId>,
}

impl Primitive for InlineCall {
    const NAME: &'static str = "inline_call";
    const SUMMARY: &'static str = "Makes calls ordinary statements again.";

    type Proof = Calls;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[CALLED];

    fn check(&self, analysis: &Analysis) -> Result<Calls, Refusal> {
        let kernel = analysis.kernel();
        let callee = lookup::callee(kernel, &self.callee)?;
        let at = self.insn.as_ref().map(|name| lookup::insn(kernel, name)).transpose()?;
        let calls = kernel.calls()?.into_iter().filter(|c| c.callee == callee);
        let insns: Vec<_> = calls
            .map(|c| c.binding.insns)
            .filter(|insns| at.is_none_or(|insn| insns.contains(&insn)))
            .flatten()
            .collect();
        CALLED.require(!insns.is_empty(), || match &self.insn {
            Some(insn) => format!("`{insn}` belongs to no call of `{}`", self.callee),
            None => format!("nothing calls `{}`", self.callee),
        })?;
        Ok(Calls { callee, insns })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Calls) {
        for insn in &proof.insns {
            kernel.insns[*insn].callee = None;
        }
        if kernel.insns.values().all(|i| i.callee != Some(proof.callee)) {
            remove(kernel, proof.callee);
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        draw::possible(kernel, draw::callees(kernel).into_iter().map(Self::new).collect(), p)
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
