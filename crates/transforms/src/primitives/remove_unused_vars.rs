//! Drops what nothing mentions.

use kingpost_analysis::Analysis;
use kingpost_ir::{Id, Kernel, VarId, VarKind};
use kingpost_steps::draw::Picks;
use kingpost_steps::mentioned::mentioned;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Drops the temporaries and tables that nothing mentions.
///
/// # Rewrite
/// ```text
/// temp t: f64[8]              =>
/// s: y[0] = 1.0                    s: y[0] = 1.0
/// ```
///
/// # Precondition
/// No instruction, rule, bound or assumption mentions the variable:
/// `{ a in accesses : var(a) = v }` is empty. Parameters and arguments are the kernel's signature
/// and stay.
///
/// # Errors
/// If there is no such variable.
///
/// # Elsewhere
/// Loopy `remove_unused_arguments` (of arguments); Exo `delete_buffer`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveUnusedVars {}

impl fmt::Display for RemoveUnusedVars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("remove unused variables")
    }
}

/// There is something to remove.
const SOME: Obligation =
    Obligation::new("remove_unused_vars.some", "there is a temporary or table that nothing mentions");

/// The variables that nothing mentions.
pub struct Unmentioned {
    /// From the back of the kernel's table.
    vars: Vec<VarId>,
}

impl Primitive for RemoveUnusedVars {
    const NAME: &'static str = "remove_unused_vars";
    const SUMMARY: &'static str = "Drops the temporaries and tables that nothing mentions.";

    type Proof = Unmentioned;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[SOME];

    fn check(&self, analysis: &Analysis) -> Result<Unmentioned, Refusal> {
        let kernel = analysis.kernel();
        let used = mentioned(kernel);
        let unmentioned = |var: &VarId| match kernel.vars[*var].kind {
            VarKind::Temporary | VarKind::Table(_) => !used[var.index()],
            VarKind::Param | VarKind::Argument(_) => false,
        };
        let vars: Vec<_> = kernel.vars.ids().rev().filter(unmentioned).collect();
        SOME.require(!vars.is_empty(), || {
            "every temporary and table is used; there is nothing to remove".into()
        })?;
        Ok(Unmentioned { vars })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Unmentioned) {
        // from the back, so that the ids in front stay
        for var in &proof.vars {
            // no access is left that would take the value
            *kernel = kernel.with_var_fixed(*var, 0);
        }
    }

    fn draw(_: &Kernel, _: &mut Picks<'_>) -> Option<Self> {
        Some(Self::default())
    }
}
