//! Maps several loops onto one axis at once.

use super::tag_iname::{IN_TREE, checked_tag};
use super::unroll_iname::{NO_AXIS, TRIP_COUNT, VALUES_BOUNDED};
use purlin_analysis::Analysis;
use purlin_ir::{AxisTag, InameId, Kernel};
use purlin_steps::argument;
use purlin_steps::draw::{self, Picks};
use purlin_steps::lookup;
use purlin_steps::obligation::Obligation;
use purlin_steps::primitive::Primitive;
use purlin_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Tags several loops alike in one step: what flows from one of them to another stays on its
/// work-item only once both are on the axis.
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
/// The one of [`TagIname`](super::TagIname), for the kernel with all tags.
///
/// # Errors
/// No inames; otherwise as the two.
///
/// # Elsewhere
/// Loopy `tag_inames`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TagInames {
    /// The loops.
    pub inames: Vec<String>,
    /// `g.0`–`g.2`, `l.0`–`l.2`, `vector`, `unroll` or `sequential`.
    #[serde(serialize_with = "argument::write", deserialize_with = "argument::read")]
    #[schemars(schema_with = "argument::tags")]
    pub tag: AxisTag,
}

impl TagInames {
    /// Tags `inames`.
    pub fn new<S: Into<String>>(inames: impl IntoIterator<Item = S>, tag: AxisTag) -> Self {
        Self { inames: inames.into_iter().map(Into::into).collect(), tag }
    }
}

impl fmt::Display for TagInames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inames: Vec<_> = self.inames.iter().map(|i| format!("`{i}`")).collect();
        write!(f, "tag {} {}", inames.join(", "), self.tag)
    }
}

/// What the edit relies on.
pub struct Tagged {
    inames: Vec<(InameId, AxisTag)>,
}

impl Primitive for TagInames {
    const NAME: &'static str = "tag_inames";
    const SUMMARY: &'static str = "Says where the iterations of several loops run, in one step.";

    type Proof = Tagged;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[IN_TREE, NO_AXIS, TRIP_COUNT, VALUES_BOUNDED];

    fn check(&self, analysis: &Analysis) -> Result<Tagged, Refusal> {
        let kernel = analysis.kernel();
        if self.inames.is_empty() {
            let needed = "one or more; name the loops to tag";
            return Err(Refusal::argument("inames", "no iname is given", needed));
        }
        let tagged = |name: &String| {
            let iname = lookup::iname(kernel, name)?;
            Ok((iname, checked_tag(analysis, iname, self.tag)?))
        };
        Ok(Tagged { inames: self.inames.iter().map(tagged).collect::<Result<_, Refusal>>()? })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Tagged) {
        for (iname, tag) in &proof.inames {
            kernel.inames[*iname].tag = *tag;
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let all = draw::loops(kernel);
        Some(Self::new(
            [p.of(&all)?, p.of(&all)?],
            p.among([AxisTag::Local(0), AxisTag::Group(0), AxisTag::Local(1)]),
        ))
    }
}
