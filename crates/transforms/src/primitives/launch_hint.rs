//! Tells the compiler and the launch what a kernel should run with.

use kingpost_analysis::Analysis;
use kingpost_ir::{AddressSpace, AxisTag, Kernel, RESIDENT_GROUPS, SubGroup};
use kingpost_steps::draw::Picks;
use kingpost_steps::former::Former;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Says for how many work-groups at a time a compute unit should have registers, that all arrays in local
/// memory are parts of one that the launch provides, that groups start in order, or how many work-items a
/// sub-group has.
///
/// # Rewrite
/// ```text
/// kernel k                        =>   kernel k {resident_groups(4)}
///
/// for i in 0..n {g.0}                  for i in 0..n {g.0}
///   for j in 0..32 {l.0}                 for j in 0..32 {l.0}
///     s: y[i, j] = 2.0*x[i, j]             s: y[i, j] = 2.0*x[i, j]
/// ```
/// The compiler then gives a work-item fewer registers, and keeps in memory what does not fit. More
/// groups hide each other's barriers and latencies. The hint is the second number of CUDA's
/// `__launch_bounds__`. Compilers ignore a number that the registers of the device do not allow.
///
/// ```text
/// kernel k                        =>   kernel k {dynamic_local}
///
/// temp t: f64[32] local                temp t: f64[32] local
///
/// for i in 0..32 {l.0}                 for i in 0..32 {l.0}
///   s: t[i] = x[i]                       s: t[i] = x[i]
/// ```
/// In CUDA these are one `extern __shared__` array, with the temporaries one after the other in the
/// order of their declarations. Without the hint, a kernel declares what fits into 48 KiB, the
/// smallest arrays first, and the launch provides the rest. Compilers know that declared arrays do
/// not overlap, and place them freely; parts of one array stay in order. Which is faster depends on
/// the kernel. OpenCL and C have neither hint, and compile the kernel as it is.
///
/// ```text
/// kernel k                        =>   kernel k {ordered_groups}
///
/// for b in 0..n                        for b in 0..n
///   s: t[b + 1] = 2.0*x[b]               s: t[b + 1] = 2.0*x[b]
///   z: v = 0.0                           z: v = 0.0
///   r: v = t[b] if 0 < b                 r: v = t[b] if 0 < b
///   u: y[b] = v                          u: y[b] = v
/// ```
/// Groups then start in the order of their index along `g.0`, which is their only axis. A value may flow
/// through a temporary in global memory from one to a later one, which waits for it: each element is written
/// once, before it is read in the order of the text, and read by a copy. The placement proves that. In CUDA
/// groups take their indices when they start, and elements carry the number of their launch; C runs groups in
/// order; OpenCL has no such groups.
///
/// ```text
/// kernel k                        =>   kernel k {sub_group(64)}
///
/// for i in 0..64 {l.0}                 for i in 0..64 {l.0}
///   s: y[i] = 2.0*x[i]                   s: y[i] = 2.0*x[i]
/// ```
/// Sub-groups of 64 work-items are wavefronts of AMD's processors; without a number they have 32. What is
/// dealt out to sub-groups and held by them comes after.
///
/// # Precondition
/// For resident groups: `{ l in loops : tag(l) = g or tag(l) = l }` is not empty. For dynamic local
/// memory: `{ v in temporaries : space(v) = local }` is not empty. For sub-groups:
/// `{ v in temporaries : space(v) = subgroup }` is empty. The same instances run in the same order.
///
/// # Errors
/// No hint; a number beyond 1 to 32, or a kernel without an axis of work-items; a kernel without a
/// temporary in local memory; sub-groups of another number than a power of two up to 128, or a temporary that
/// the work-items of a sub-group hold.
///
/// # Source
/// CUDA C++ Programming Guide, Launch Bounds and `__shared__`.
///
/// # Elsewhere
/// Launch bounds and dynamic shared memory of CUDA and HIP; Triton's `maxnreg`; TVM's storage scope
/// `shared.dyn`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchHint {
    /// Work-groups of a compute unit; as before if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_groups: Option<u32>,
    /// Whether the launch provides local memory; as before if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dynamic_local: bool,
    /// Whether groups start in order, and wait for values of earlier ones; as before if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ordered_groups: bool,
    /// Work-items of a sub-group; as before if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_group: Option<u32>,
}

impl LaunchHint {
    const NONE: Self =
        Self { resident_groups: None, dynamic_local: false, ordered_groups: false, sub_group: None };

    /// Asks for registers for a number of work-groups.
    pub const fn resident_groups(groups: u32) -> Self {
        Self { resident_groups: Some(groups), ..Self::NONE }
    }

    /// Lets the launch provide local memory.
    pub const fn dynamic_local() -> Self {
        Self { dynamic_local: true, ..Self::NONE }
    }

    /// Starts groups in order.
    pub const fn ordered_groups() -> Self {
        Self { ordered_groups: true, ..Self::NONE }
    }

    /// Gives sub-groups a number of work-items.
    pub const fn sub_group(width: u32) -> Self {
        Self { sub_group: Some(width), ..Self::NONE }
    }
}

impl fmt::Display for LaunchHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.resident_groups.map(|groups| format!("resident groups {groups}"));
        let local = self.dynamic_local.then(|| "dynamic local memory".to_owned());
        let ordered = self.ordered_groups.then(|| "groups in order".to_owned());
        let width = self.sub_group.map(|width| format!("sub-groups of {width}"));
        let hints: Vec<String> = groups.into_iter().chain(local).chain(ordered).chain(width).collect();
        write!(f, "launch with {}", if hints.is_empty() { "no hint".into() } else { hints.join(", ") })
    }
}

/// There are groups.
const GROUPS: Obligation =
    Obligation::new("launch_hint.groups", "a loop is mapped to work-items or work-groups");

/// There is something to provide.
const LOCAL: Obligation = Obligation::new("launch_hint.local", "a temporary is in local memory");

/// No value is held by sub-groups of the width before.
const HELD: Obligation =
    Obligation::new("launch_hint.held", "no temporary is held by the work-items of a sub-group");

impl Primitive for LaunchHint {
    const NAME: &'static str = "launch_hint";
    const SUMMARY: &'static str = "Tells the compiler and the launch what a kernel should run with.";
    const FORMER: &'static [Former] = &[
        Former::of::<Resident, Self>("set_resident_groups"),
        Former::of::<Dynamic, Self>("set_dynamic_local"),
    ];

    type Proof = ();
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[GROUPS, LOCAL, HELD];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<(), Refusal> {
        let kernel = analysis.kernel();
        let Self { resident_groups, dynamic_local, ordered_groups, sub_group } = self;
        if let Some(groups) = resident_groups {
            if !RESIDENT_GROUPS.contains(groups) {
                return Err(Refusal::argument(
                    "resident_groups",
                    format!("{groups} resident groups"),
                    "1 to 32",
                ));
            }
            let mut tags = kernel.inames.values().map(|iname| iname.tag);
            let mapped = tags.any(|tag| matches!(tag, AxisTag::Group(_) | AxisTag::Local(_)));
            GROUPS
                .require(mapped, || "no loop is mapped to work-items or work-groups; tag one first".into())?;
        } else if !(*dynamic_local || *ordered_groups || sub_group.is_some()) {
            return Err(Refusal::argument(
                "resident_groups",
                "no hint is given",
                "a number, `dynamic_local`, `ordered_groups` or `sub_group`",
            ));
        }
        if let Some(width) = sub_group {
            if SubGroup::new(*width).is_none() {
                let needed = format!("a power of two, 1 to {}", SubGroup::MAX);
                return Err(Refusal::argument("sub_group", format!("sub-groups of {width}"), needed));
            }
            let held = kernel.vars.values().find(|var| var.space == AddressSpace::SubGroup);
            HELD.require(held.is_none(), || {
                // there is one where this is false
                let name = held.map_or("", |var| var.name.as_str());
                format!("`{name}` is held by sub-groups of {}; say how wide they are first", kernel.sub_group)
            })?;
        }
        LOCAL.require(!dynamic_local || has_local(kernel), || {
            "no temporary is in local memory; set the address space of one first".into()
        })
    }

    fn edit(&self, kernel: &mut Kernel, (): &()) {
        kernel.launch.resident_groups = self.resident_groups.or(kernel.launch.resident_groups);
        kernel.launch.dynamic_local |= self.dynamic_local;
        kernel.launch.ordered_groups |= self.ordered_groups;
        kernel.sub_group = self.sub_group.and_then(SubGroup::new).unwrap_or(kernel.sub_group); // as before if absent
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        if has_local(kernel) && p.one_in(2) {
            return Some(Self::dynamic_local());
        }
        Some(Self::resident_groups(p.between(1, 4).unsigned_abs() as u32))
    }
}

fn has_local(kernel: &Kernel) -> bool {
    kernel.vars.values().any(|var| var.space == AddressSpace::Local)
}

/// What `set_resident_groups` took.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resident {
    groups: u32,
}

impl From<Resident> for LaunchHint {
    fn from(old: Resident) -> Self {
        Self::resident_groups(old.groups)
    }
}

/// What `set_dynamic_local` took.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dynamic {}

impl From<Dynamic> for LaunchHint {
    fn from(_: Dynamic) -> Self {
        Self::dynamic_local()
    }
}
