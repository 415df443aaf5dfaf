//! Declares a kernel that parts of the program may become calls of.

use kingpost_analysis::Analysis;
use kingpost_ir::{Callee, Kernel};
use kingpost_steps::draw::Picks;
use kingpost_steps::intrinsics::{MMA_M16N8K4_F64, shipped};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Declares a callee: a kernel of parameters and arguments, with the code that targets have for it,
/// if any.
///
/// # Rewrite
/// ```text
/// for i in 0..n                         callee multiply_add
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
/// Nothing calls it yet, so the program stays as it is: `{ s : callee(s) = declared }` is empty.
/// The callee is well formed. Code that runs asynchronously, until its work-item runs the
/// statement of `completes`, only stores, and takes the address of what it writes.
///
/// # Errors
/// Text that is not one callee, with the first error and its place; a name of none that Kingpost ships;
/// a name that is taken; a kernel that cannot be called.
///
/// # Elsewhere
/// Exo `@instr`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclareCallee {
    /// The callee as it stands in the text of a kernel, from `callee name` on; or the name of one that
    /// Kingpost ships, as in `declare_callee(copy_async_f64x2)`.
    pub text: String,
}

impl DeclareCallee {
    /// Declares the callee of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// For messages, which also tell of texts that are no callee.
    fn name(&self) -> &str {
        self.text.split_whitespace().take(2).last().unwrap_or("?")
    }

    /// The callee that is meant by a name alone.
    fn shipped(&self) -> Option<Result<Callee, Refusal>> {
        let name = self.text.trim();
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty();
        is_name.then(|| {
            let found = shipped().iter().find(|callee| callee.name() == name);
            found.cloned().ok_or_else(|| {
                let all: Vec<_> = shipped().iter().map(Callee::name).collect();
                let needed = format!("the text of a callee, or one of `{}`", all.join("`, `"));
                Refusal::argument("text", format!("Kingpost ships no callee `{name}`"), needed)
            })
        })
    }

    fn parsed(&self) -> Result<Callee, Refusal> {
        let callees = CALLEE.met(kingpost_ir::text::parse_callees(&self.text), |errors| {
            let first = errors.errors().first().map_or_else(|| errors.to_string(), ToString::to_string);
            format!("the text is no callee: {first}")
        })?;
        let one = <[Callee; 1]>::try_from(callees).map(|[callee]| callee);
        one.map_err(|_| Refusal::argument("text", "the text does not hold one callee", "one callee a step"))
    }
}

impl fmt::Display for DeclareCallee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "declare callee `{}`", self.name())
    }
}

/// The callee could be called.
const CALLEE: Obligation = Obligation::new("declare_callee.callee", "the callee is well formed");

/// A callee that is well formed, under a name that is free.
pub struct Declared {
    callee: Callee,
}

impl Primitive for DeclareCallee {
    const NAME: &'static str = "declare_callee";
    const SUMMARY: &'static str = "Declares a kernel that parts of the program may become calls of.";

    type Proof = Declared;
    type Made = ();

    // nothing calls what is new
    const OBLIGATIONS: &'static [Obligation] = &[CALLEE];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Declared, Refusal> {
        let callee = self.shipped().unwrap_or_else(|| self.parsed())?;
        lookup::free(analysis.kernel(), callee.name())?;
        Ok(Declared { callee })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Declared) {
        kernel.callees.push(proof.callee.clone());
    }

    fn draw(_: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(p.among(CALLEES)))
    }
}

/// Callees that many statements are calls of, with and without code for targets.
const CALLEES: [&str; 5] = [
    "callee store\n  arg a: f64 in\n  arg c: f64 inout\n\n  s: c = a\n  code c (\"{c} = {a};\")\n  \
     code opencl (\"{{\" \"    double stored = {a};\" \"    {c} = stored;\" \"}}\")\n",
    "callee add\n  arg a: f64 in\n  arg c: f64 inout\n\n  s: c += a\n  code c (\"{c} = {c} + {a};\")\n  \
     code opencl (\"{c} += {a};\")\n",
    "callee fill\n  param n: i64\n  arg x: f64[n] in\n  arg y: f64[n] inout\n\n  for i in 0..n\n    \
     s: y[i] = 0.5*x[i]\n",
    // runs asynchronously in CUDA, and is treated so in OpenCL, in groups
    "callee later\n  arg a: f64[1] in\n  arg c: f64[1] out\n\n  s: c[0] = a[0]\n  \
     code opencl memory(a: global, c: local) completes(commit \"/* group */\", wait \"/* all but {n} */\") (\
     \"*{&c[0]} = *{&a[0]};\")\n  \
     code cuda needs(sm_80) memory(a: global, c: local) \
     completes(\"asm volatile(\\\"cp.async.wait_all;\\\" ::: \\\"memory\\\");\") (\
     \"asm volatile(\\\"cp.async.ca.shared.global [%0], [%1], 8;\\\" :: \
     \\\"r\\\"((unsigned)__cvta_generic_to_shared({&c[0]})), \\\"l\\\"({&a[0]}) : \\\"memory\\\");\")\n",
    // of the work-items of a sub-group
    MMA_M16N8K4_F64,
];
