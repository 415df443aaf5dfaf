//! Makes statements a call of a kernel that they are an instance of.

use kingpost_analysis::Analysis;
use kingpost_ir::calls::{Mismatch, unify};
use kingpost_ir::{CalleeId, Kernel, KernelError, Node};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::{CONTIGUOUS, NOT_CALLED, Run};
use kingpost_steps::{lookup, run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes neighbouring statements a call of a declared callee whose meaning they are. Generated code
/// then holds what the callee's code says for the target, such as a hardware instruction, or the
/// meaning where it says nothing.
///
/// # Rewrite
/// ```text
/// callee axpy4 ...                              callee axpy4 ...
///
/// for i_o in 0..n                               for i_o in 0..n
///   for i_i in 0..4                           =>    call axpy4  # a = 2.0, x = x[4*i_o..], y = y[4*i_o..]
///     s: y[4*i_o + i_i] += x[4*i_o + i_i]*2.0       for i_i in 0..4
///                                                     s: y[4*i_o + i_i] += x[4*i_o + i_i]*2.0
/// ```
///
/// # Precondition
/// There are parameters `p`, values and windows `w(f) = o + M f`, found by unification, with which
/// the callee has exactly the instances and accesses of the statements: loops are equal up to
/// shifts, operations up to commutativity, and for every access `A[f(l)]` of the callee the
/// statements access `B[o + M f(l)]`. If it has code:
///
/// - each element that it writes belongs to one argument only;
/// - a window whose address the code takes lies in memory as the argument is declared;
/// - arguments are in the memory, and at the multiples of bytes, that the code asks for;
/// - what asynchronous code writes is in local or global memory. A completion must stand on every
///   dependence from it; code generation puts it there.
///
/// Instances keep their order, so that no dependence changes. Code may round differently within one
/// instance and within a reduction. From then on, every step must keep the statements an instance of
/// the callee.
///
/// # Errors
/// Unknown names, statements that are no run, and the first difference between the statements and
/// the callee.
///
/// # Elsewhere
/// Exo `replace`; Halide and TVM `tensorize`; Loopy `match_instruction`-style library calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// The statements do what the callee does.
const MEANING: Obligation = Obligation::new(
    "replace_with_intrinsic.meaning",
    "with values for its arguments, the callee has the instances and accesses of the statements",
);

/// The verifier asks the same of every later step.
const CODE: Obligation =
    Obligation::new("replace_with_intrinsic.code", "the arguments are as the code of the callee takes them");

/// Neighbouring statements that are an instance of a callee.
pub struct Instance {
    nodes: Vec<Node>,
    callee: CalleeId,
}

impl Primitive for ReplaceWithIntrinsic {
    const NAME: &'static str = "replace_with_intrinsic";
    const SUMMARY: &'static str = "Makes statements a call of a kernel whose meaning they are.";

    type Proof = Instance;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[MEANING, CODE, CONTIGUOUS, NOT_CALLED];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Instance, Refusal> {
        let kernel = analysis.kernel();
        let callee = lookup::callee(kernel, &self.callee)?;
        let run = run::named(kernel, &self.statements)?;
        let meaning = &kernel.callees[callee].kernel;
        let unlike = unify(analysis.expanded(), meaning, run.nodes).err();
        MEANING.forbid(unlike, |why| self.difference(&why))?;
        let proof = Instance { nodes: run.nodes.to_vec(), callee };
        let no_code = match self.draft(kernel, &proof).calls() {
            Ok(_) => None,
            Err(KernelError::Call { why, .. }) => Some(why),
            Err(other) => return Err(Refusal::Malformed(other)),
        };
        CODE.forbid(no_code, |why| self.difference(&why))?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Instance) {
        Run { nodes: &proof.nodes }.mark(kernel, proof.callee);
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut statements: Vec<_> =
            draw::insns(kernel, |i| i.callee.is_none()).into_iter().map(|i| vec![i]).collect();
        statements.extend(draw::some_statements(kernel, p));
        let calls = |callee: &String| {
            let call = |s: &Vec<String>| Self::new(s.clone(), callee.clone());
            statements.iter().map(call).collect::<Vec<_>>()
        };
        draw::possible(kernel, draw::callees(kernel).iter().flat_map(calls).collect(), p)
    }
}

impl ReplaceWithIntrinsic {
    fn difference(&self, why: &Mismatch) -> String {
        format!("the statements are not `{}`: {why}", self.callee)
    }
}
