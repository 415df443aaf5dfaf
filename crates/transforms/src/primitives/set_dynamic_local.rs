//! Puts all arrays of a group into memory that the launch provides.

use purlin_analysis::Analysis;
use purlin_ir::{AddressSpace, Kernel};
use purlin_steps::draw::Picks;
use purlin_steps::obligation::Obligation;
use purlin_steps::primitive::Primitive;
use purlin_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes all arrays in local memory parts of one that the launch provides.
///
/// # Rewrite
/// ```text
/// kernel k                        =>   kernel k {dynamic_local}
///
/// temp t: f64[32] local                temp t: f64[32] local
///
/// for i in 0..32 {l.0}                 for i in 0..32 {l.0}
///   s: t[i] = x[i]                       s: t[i] = x[i]
/// ```
/// In CUDA these are one `extern __shared__` array, with the temporaries one after the other in the
/// order of their declarations. Without, a kernel declares what fits into 48 KiB, the smallest arrays
/// first, and the launch provides the rest. Compilers know that declared arrays do not overlap, and
/// place them as they like; parts of one array stay in order. Which is faster depends on the kernel.
/// OpenCL and C declare all arrays, and compile the kernel as it is.
///
/// # Precondition
/// Something is provided: `{ v in temporaries : space(v) = local }` is not empty. The same instances run
/// in the same order.
///
/// # Errors
/// A kernel without a temporary in local memory.
///
/// # Source
/// CUDA C++ Programming Guide, `__shared__`.
///
/// # Elsewhere
/// Dynamic shared memory of CUDA and HIP; TVM's storage scope `shared.dyn`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetDynamicLocal {}

impl fmt::Display for SetDynamicLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("set dynamic local memory")
    }
}

/// There is something to provide.
const LOCAL: Obligation = Obligation::new("set_dynamic_local.local", "a temporary is in local memory");

impl Primitive for SetDynamicLocal {
    const NAME: &'static str = "set_dynamic_local";
    const SUMMARY: &'static str = "Makes all arrays in local memory parts of one that the launch provides.";

    type Proof = ();
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[LOCAL];

    fn check(&self, analysis: &Analysis) -> Result<(), Refusal> {
        let local = has_local(analysis.kernel());
        LOCAL.require(local, || "no temporary is in local memory; set the address space of one first".into())
    }

    fn edit(&self, kernel: &mut Kernel, (): &()) {
        kernel.dynamic_local = true;
    }

    fn draw(kernel: &Kernel, _: &mut Picks<'_>) -> Option<Self> {
        has_local(kernel).then_some(Self {})
    }
}

fn has_local(kernel: &Kernel) -> bool {
    kernel.vars.values().any(|var| var.space == AddressSpace::Local)
}
