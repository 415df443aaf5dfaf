//! Maps several loops onto one axis at once.

use super::Transform;
use super::tag_iname::{check_placement, parallel_tag};
use super::unroll_iname::check_unrolled;
use crate::lookup;
use crate::refusal::Refusal;
use purlin_ir::{AxisTag, Kernel};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Tags several loops alike in one step: what flows from one of them to another stays on its work-item only once
/// both are on the axis.
///
/// # Rewrite
/// ```text
/// for c in 0..8          =>   for c in 0..8 {l.0}
///   s: t[c] = a[c]              s: t[c] = a[c]
/// for d in 0..8               for d in 0..8 {l.0}
///   r: b[d] = 2.0*t[d]          r: b[d] = 2.0*t[d]
/// ```
///
/// # Precondition
/// That of [`TagIname`](super::TagIname), or for `unroll` of [`UnrollIname`](super::UnrollIname), for the kernel
/// with all tags.
///
/// # Errors
/// No inames; otherwise as the two.
///
/// # Elsewhere
/// Loopy `tag_inames`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagInames {
    /// The loops.
    pub inames: Vec<String>,
    /// `g.0`–`g.2`, `l.0`–`l.2`, `vector`, `unroll` or `sequential`.
    pub tag: String,
}

impl TagInames {
    /// Tags `inames` with the tag of that text.
    pub fn new<S: Into<String>>(inames: impl IntoIterator<Item = S>, tag: impl Into<String>) -> Self {
        Self { inames: inames.into_iter().map(Into::into).collect(), tag: tag.into() }
    }
}

impl fmt::Display for TagInames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inames: Vec<_> = self.inames.iter().map(|i| format!("`{i}`")).collect();
        write!(f, "tag {} {}", inames.join(", "), self.tag)
    }
}

impl Transform for TagInames {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        if self.inames.is_empty() {
            return Err(Refusal::Other("no iname is given; name the loops to tag".into()));
        }
        let mut tagged = kernel.clone();
        let unrolled = self.tag == AxisTag::Unrolled.to_string();
        for name in &self.inames {
            let iname = lookup::iname(kernel, name)?;
            tagged.inames[iname].tag = if unrolled {
                check_unrolled(kernel, iname)?;
                AxisTag::Unrolled
            } else {
                parallel_tag(kernel, iname, &self.tag)?
            };
        }
        tagged.verify()?;
        // only loops that are on no axis are unrolled, and they stay in order
        if !unrolled {
            check_placement(&tagged)?;
        }
        Ok(tagged)
    }
}
