//! Asks for registers for several work-groups at a time.

use purlin_analysis::Analysis;
use purlin_ir::{AxisTag, Kernel, RESIDENT_GROUPS};
use purlin_steps::draw::Picks;
use purlin_steps::obligation::Obligation;
use purlin_steps::primitive::Primitive;
use purlin_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Says for how many work-groups at a time a compute unit should have registers.
///
/// # Rewrite
/// ```text
/// kernel k                        =>   kernel k {resident_groups(4)}
///
/// for i in 0..n {g.0}                  for i in 0..n {g.0}
///   for j in 0..32 {l.0}                 for j in 0..32 {l.0}
///     s: y[i, j] = 2.0*x[i, j]             s: y[i, j] = 2.0*x[i, j]
/// ```
/// The compiler gives a work-item fewer registers then, and keeps what does not fit in memory: more
/// groups hide each other's barriers and latencies. It is the second number of CUDA's
/// `__launch_bounds__`; OpenCL and C have none, and compile the kernel as it is. A number that the
/// registers of a device do not allow is ignored by its compiler.
///
/// # Precondition
/// There are groups: `{ l in loops : tag(l) = g or tag(l) = l }` is not empty. The same instances run
/// in the same order.
///
/// # Errors
/// A number beyond 1 to 32, a kernel without an axis of work-items.
///
/// # Source
/// CUDA C++ Programming Guide, Launch Bounds.
///
/// # Elsewhere
/// Launch bounds of CUDA and HIP; Triton's `maxnreg`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetResidentGroups {
    /// Work-groups of a compute unit.
    pub groups: u32,
}

impl SetResidentGroups {
    /// For a given number of work-groups.
    pub const fn new(groups: u32) -> Self {
        Self { groups }
    }
}

impl fmt::Display for SetResidentGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set resident groups {}", self.groups)
    }
}

/// There are groups.
const GROUPS: Obligation =
    Obligation::new("set_resident_groups.groups", "a loop is mapped to work-items or work-groups");

impl Primitive for SetResidentGroups {
    const NAME: &'static str = "set_resident_groups";
    const SUMMARY: &'static str = "Asks for registers for several work-groups at a time.";

    type Proof = ();
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[GROUPS];

    fn check(&self, analysis: &Analysis) -> Result<(), Refusal> {
        if !RESIDENT_GROUPS.contains(&self.groups) {
            let (found, needed) = (format!("{} resident groups", self.groups), "1 to 32");
            return Err(Refusal::argument("groups", found, needed));
        }
        let mut tags = analysis.kernel().inames.values().map(|iname| iname.tag);
        let mapped = tags.any(|tag| matches!(tag, AxisTag::Group(_) | AxisTag::Local(_)));
        GROUPS.require(mapped, || "no loop is mapped to work-items or work-groups; tag one first".into())
    }

    fn edit(&self, kernel: &mut Kernel, (): &()) {
        kernel.resident_groups = Some(self.groups);
    }

    fn draw(_: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(p.between(1, 4).unsigned_abs() as u32))
    }
}
