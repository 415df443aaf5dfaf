//! Makes statements a call of a kernel that they are an instance of.

use super::Transform;
use crate::refusal::Refusal;
use crate::{lookup, run};
use purlin_analysis::Analysis;
use purlin_ir::calls::unify;
use purlin_ir::{CalleeId, Kernel};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes neighbouring statements a call of a declared callee whose meaning they are. Generated code then holds
/// what the callee's code says for the target, such as a hardware instruction, or the meaning where it says
/// nothing.
///
/// # Rewrite
/// ```text
/// callee axpy4 ...                              callee axpy4 ...
///
/// for i_o in 0..n                               for i_o in 0..n
///   for i_i in 0..4                     =>        call axpy4  # a = 2.0, x = x[4*i_o..], y = y[4*i_o..]
///     s: y[4*i_o + i_i] += x[4*i_o + i_i]*2.0       for i_i in 0..4
///                                                     s: y[4*i_o + i_i] += x[4*i_o + i_i]*2.0
/// ```
///
/// # Precondition
/// There are parameters `p`, values and windows `w(f) = o + M f`, found by unification, with which the callee has
/// exactly the instances and accesses of the statements: loops are equal up to shifts, operations up to
/// commutativity, and for every access `A[f(l)]` of the callee the statements access `B[o + M f(l)]`. If it has
/// code: what it writes is one argument only, and a window whose address the code takes lies in memory as the
/// argument is declared. Instances keep their order, so that no dependence changes; code may round differently
/// within one instance and within a reduction. From then on every step must keep the call one.
///
/// # Errors
/// Unknown names, statements that are no run, and the first difference between the statements and the callee.
///
/// # Elsewhere
/// Exo `replace`; Halide and TVM `tensorize`; Loopy `match_instruction`-style library calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaceWithIntrinsic {
    /// Names of the instructions and loops; neighbours.
    pub statements: Vec<String>,
    /// The callee.
    pub callee: String,
}

impl ReplaceWithIntrinsic {
    /// Makes the statements a call of `callee`.
    pub fn new<S: Into<String>>(statements: impl IntoIterator<Item = S>, callee: impl Into<String>) -> Self {
        Self { statements: statements.into_iter().map(Into::into).collect(), callee: callee.into() }
    }
}

impl fmt::Display for ReplaceWithIntrinsic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.statements.iter().map(|n| format!("`{n}`")).collect();
        let names = if names.is_empty() { "nothing".into() } else { names.join(", ") };
        write!(f, "replace {names} with `{}`", self.callee)
    }
}

impl Transform for ReplaceWithIntrinsic {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let (run, callee) = self.check(kernel)?;
        let mut replaced = kernel.clone();
        run.mark(&mut replaced, callee);
        // What code needs of its arguments: the verifier asks the same of every later step.
        replaced.calls().map_err(|error| match error {
            purlin_ir::KernelError::Call { why, .. } => self.differs(&why),
            other => Refusal::Malformed(other),
        })?;
        Ok(replaced)
    }
}

impl ReplaceWithIntrinsic {
    fn check<'k>(&self, kernel: &'k Kernel) -> Result<(run::Run<'k>, CalleeId), Refusal> {
        let callee = lookup::callee(kernel, &self.callee)?;
        let run = run::named(kernel, &self.statements)?;
        unify(Analysis::of(kernel).expanded(), &kernel.callees[callee].kernel, run.nodes)
            .map_err(|why| self.differs(&why))?;
        Ok((run, callee))
    }

    fn differs(&self, why: &purlin_ir::calls::Mismatch) -> Refusal {
        Refusal::Other(format!("the statements are not `{}`: {why}", self.callee))
    }
}
