//! Declares a kernel that parts of the program may become calls of.

use super::Transform;
use crate::lookup;
use crate::refusal::Refusal;
use purlin_ir::{Callee, Kernel};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Declares a callee: a kernel of parameters and arguments, with the code that targets have for it, if any.
///
/// # Rewrite
/// ```text
/// for i in 0..n                         callee fma
///   s: y[i] += a*x[i]                     arg a: f64 in
///                               =>        arg b: f64 in
///                                         arg c: f64 inout
///
///                                         s: c += a*b
///
///                                       for i in 0..n
///                                         s: y[i] += a*x[i]
/// ```
///
/// # Precondition
/// Nothing calls it yet, so the program stays as it is: `{ s : callee(s) = declared }` is empty. The callee is well
/// formed by itself.
///
/// # Errors
/// Text that is not one callee, with the first error and its place; a name that is taken; a kernel that cannot
/// be called.
///
/// # Elsewhere
/// Exo `@instr`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclareCallee {
    /// The callee as it stands in the text of a kernel, from `callee name` on.
    pub text: String,
}

impl DeclareCallee {
    /// Declares the callee of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    fn name(&self) -> &str {
        self.text.split_whitespace().nth(1).unwrap_or_default()
    }
}

impl fmt::Display for DeclareCallee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "declare callee `{}`", self.name())
    }
}

impl Transform for DeclareCallee {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let callee = self.check(kernel)?;
        let mut declared = kernel.clone();
        declared.callees.push(callee);
        Ok(declared)
    }
}

impl DeclareCallee {
    fn check(&self, kernel: &Kernel) -> Result<Callee, Refusal> {
        let callees = purlin_ir::text::parse_callees(&self.text).map_err(|errors| {
            let first = errors.errors().first().map(ToString::to_string).unwrap_or_default();
            Refusal::Other(format!("the text is no callee: {first}"))
        })?;
        let Ok([callee]) = <[Callee; 1]>::try_from(callees) else {
            return Err(Refusal::Other("the text does not hold one callee; declare one a step".into()));
        };
        lookup::free(kernel, callee.name())?;
        Ok(callee)
    }
}
