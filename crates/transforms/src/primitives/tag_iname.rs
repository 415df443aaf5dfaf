//! Says where the iterations of a loop run.

use super::unroll_iname::{NO_AXIS, TRIP_COUNT, VALUES_BOUNDED, check_unrolled};
use purlin_analysis::Analysis;
use purlin_ir::{AxisTag, InameId, Kernel};
use purlin_steps::argument;
use purlin_steps::draw::{self, Picks};
use purlin_steps::lookup;
use purlin_steps::obligation::Obligation;
use purlin_steps::primitive::Primitive;
use purlin_steps::refusal::Refusal;
use purlin_steps::tree::loop_body;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Tags `iname`: sequential, unrolled, in vector lanes, on an axis of work-groups or of work-items.
///
/// # Rewrite
/// ```text
/// for i in 0..n      =>   for i in 0..n {g.0}
///   S(i)                    S(i)
/// ```
/// The text keeps its order and its meaning; the tag says where an instance runs.
///
/// # Precondition
/// For every dependence `(i, j)` whose ends run in different places, the table of
/// [`purlin_analysis::placement`] holds: no value flows through memory that the sink cannot see,
/// updates across places commute and are atomic, and within a group the source comes strictly first
/// once the parallel loops are left out, so that a barrier can stand between. For `unroll` that of
/// [`UnrollIname`](super::UnrollIname).
///
/// # Errors
/// A loop that cannot be unrolled; an unknown iname, the iname of a reduction, an axis that a loop around or inside has, and a
/// dependence that the placement breaks, with two instances.
///
/// # Elsewhere
/// Loopy `tag_inames`; Halide `gpu_blocks`, `gpu_threads`, `vectorize`; Exo
/// `parallelize_loop`; TVM `bind`, `parallel`; MLIR `convert-affine-for-to-gpu`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TagIname {
    /// The loop.
    pub iname: String,
    /// `g.0`–`g.2`, `l.0`–`l.2`, `vector`, `unroll` or `sequential`.
    #[serde(serialize_with = "argument::write", deserialize_with = "argument::read")]
    #[schemars(schema_with = "argument::tags")]
    pub tag: AxisTag,
}

impl TagIname {
    /// Tags `iname`.
    pub fn new(iname: impl Into<String>, tag: AxisTag) -> Self {
        Self { iname: iname.into(), tag }
    }
}

impl fmt::Display for TagIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tag `{}` {}", self.iname, self.tag)
    }
}

/// The loop of a reduction runs where its instruction does.
pub(crate) const IN_TREE: Obligation =
    Obligation::new("tag_iname.in_tree", "a loop that takes an axis is none of a reduction");

/// What the edit relies on.
pub struct Tagged {
    iname: InameId,
    tag: AxisTag,
}

impl Primitive for TagIname {
    const NAME: &'static str = "tag_iname";
    const SUMMARY: &'static str = "Says where the iterations of a loop run.";

    type Proof = Tagged;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[IN_TREE, NO_AXIS, TRIP_COUNT, VALUES_BOUNDED];
    const WEIGHT: usize = 3;

    fn check(&self, analysis: &Analysis) -> Result<Tagged, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::iname(kernel, &self.iname)?;
        Ok(Tagged { iname, tag: checked_tag(analysis, iname, self.tag)? })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Tagged) {
        kernel.inames[proof.iname].tag = proof.tag;
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut tags = AxisTag::ALL.to_vec();
        tags.extend([AxisTag::Group(0), AxisTag::Local(0), AxisTag::Local(0), AxisTag::Local(0)]);
        let iname = p.of(&draw::loops(kernel))?;
        Some(Self::new(iname, p.of(&tags)?))
    }
}

/// The tag, if the loop may have it as far as its own form goes.
///
/// # Errors
/// [`Refusal::Unfit`]: a parallel tag for the iname of a reduction, `unroll` for a loop that cannot be
/// written out.
pub(crate) fn checked_tag(analysis: &Analysis, iname: InameId, tag: AxisTag) -> Result<AxisTag, Refusal> {
    let kernel = analysis.kernel();
    let parallel = match tag {
        AxisTag::Unrolled => {
            check_unrolled(analysis, iname)?;
            false
        }
        AxisTag::Sequential | AxisTag::Rolled => false,
        AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) => true,
    };
    IN_TREE.require(!parallel || loop_body(&kernel.body, iname).is_some(), || {
        format!("`{}` runs inside a reduction; realise the reduction first", kernel.inames[iname].name)
    })?;
    Ok(tag)
}
