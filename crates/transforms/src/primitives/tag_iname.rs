//! Says where the iterations of a loop run.

use super::Transform;
use crate::lookup;
use crate::refusal::Refusal;
use crate::tree::loop_body;
use purlin_analysis::Analysis;
use purlin_ir::{AxisTag, InameId, Kernel};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Tags `iname`: sequential, in vector lanes, on an axis of work-groups or of work-items.
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
/// [`purlin_analysis::placement`] holds: no value flows through memory that the sink cannot see, updates
/// across places commute and are atomic, and within a group the source comes strictly first once the
/// parallel loops are left out, so that a barrier can stand between.
///
/// # Errors
/// An unknown iname, the iname of a reduction, an axis that a loop around or inside has, and a
/// dependence that the placement breaks, with two instances.
///
/// # Elsewhere
/// Loopy `tag_inames`; Halide `gpu_blocks`, `gpu_threads`, `vectorize`; Exo `parallelize_loop`; TVM `bind`,
/// `parallel`; MLIR `convert-affine-for-to-gpu`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagIname {
    /// The loop.
    pub iname: String,
    /// `g.0`–`g.2`, `l.0`–`l.2`, `vector` or `sequential`.
    pub tag: String,
}

impl TagIname {
    /// Tags `iname` with the tag of that text.
    pub fn new(iname: impl Into<String>, tag: impl Into<String>) -> Self {
        Self { iname: iname.into(), tag: tag.into() }
    }
}

impl fmt::Display for TagIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tag `{}` {}", self.iname, self.tag)
    }
}

impl Transform for TagIname {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let iname = lookup::iname(kernel, &self.iname)?;
        let tag = parallel_tag(kernel, iname, &self.tag)?;
        let mut tagged = kernel.clone();
        tagged.inames[iname].tag = tag;
        tagged.verify()?;
        check_placement(&tagged)?;
        Ok(tagged)
    }
}

/// The tag of a text, if the loop may have it as far as its own form goes.
///
/// # Errors
/// [`Refusal::Argument`]: no tag, `unroll`, a parallel tag for the iname of a reduction.
pub(crate) fn parallel_tag(kernel: &Kernel, iname: InameId, text: &str) -> Result<AxisTag, Refusal> {
    let tag = AxisTag::parse(text).ok_or_else(|| {
        let known: Vec<_> = AxisTag::ALL.iter().map(AxisTag::to_string).collect();
        Refusal::Other(format!("`{text}` is no tag; there is {}", known.join(", ")))
    })?;
    let parallel = match tag {
        AxisTag::Unrolled => {
            return Err(Refusal::Other(
                "an unrolled loop needs a constant length; use the step unroll_iname, which checks it".into(),
            ));
        }
        AxisTag::Sequential => false,
        AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) => true,
    };
    if parallel && loop_body(&kernel.body, iname).is_none() {
        return Err(Refusal::Other(format!(
            "`{}` runs inside a reduction; realise the reduction first",
            kernel.inames[iname].name
        )));
    }
    Ok(tag)
}

/// Checks that the tags of a kernel keep every dependence.
pub(crate) fn check_placement(kernel: &Kernel) -> Result<(), Refusal> {
    Ok(Analysis::of(kernel).check_placement()?)
}
