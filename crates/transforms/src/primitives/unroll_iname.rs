//! Writes out a loop.

use super::Transform;
use crate::lookup;
use crate::proofs::extent::parametric_extent;
use crate::refusal::Refusal;
use purlin_analysis::Analysis;
use purlin_ir::{AxisTag, InameId, Kernel};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most iterations that are written out: beyond, compilers take minutes.
pub const MAX_TRIP_COUNT: i64 = 4096;

/// Tags `iname` so that its iterations are written out one after the other.
///
/// # Rewrite
/// ```text
/// for j in 0..3      =>   for j in 0..3 {unroll}      which is printed as  S(0); S(1); S(2)
///   S(j)                    S(j)
/// ```
/// The loop of a reduction is written out likewise: the accumulator is updated once for each value.
///
/// # Precondition
/// The loop has no axis, and its length is a constant of at most [`MAX_TRIP_COUNT`], or its values lie between
/// constants that far apart: then every copy is guarded. The order of the instances stays.
///
/// # Errors
/// An unknown or tagged iname, values without constant bounds or too many.
///
/// # Elsewhere
/// Loopy tag `unr`; Halide `unroll`; Exo `unroll_loop`; TVM `unroll`; MLIR `transform.loop.unroll`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnrollIname {
    /// The loop.
    pub iname: String,
}

impl UnrollIname {
    /// Unrolls `iname`.
    pub fn new(iname: impl Into<String>) -> Self {
        Self { iname: iname.into() }
    }
}

impl fmt::Display for UnrollIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unroll `{}`", self.iname)
    }
}

impl Transform for UnrollIname {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let iname = lookup::iname(kernel, &self.iname)?;
        check_unrolled(kernel, iname)?;
        let mut unrolled = kernel.clone();
        unrolled.inames[iname].tag = AxisTag::Unrolled;
        Ok(unrolled)
    }
}

/// Checks that the iterations of a loop can be written out.
///
/// # Errors
/// A loop on an axis, a length without a constant bound or too large a one.
pub(crate) fn check_unrolled(kernel: &Kernel, iname: InameId) -> Result<(), Refusal> {
    let data = &kernel.inames[iname];
    match data.tag {
        AxisTag::Sequential | AxisTag::Unrolled => {}
        tag @ (AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_)) => {
            return Err(Refusal::Other(format!("`{}` is tagged {tag}; tag it sequential first", data.name)));
        }
    }
    let length = data.domain.as_guarded_range(iname).and_then(|range| range.length().as_constant());
    let bounds = match length {
        Some(n) => Some(n),
        None => parametric_extent(Analysis::of(kernel).polyhedral(), iname)?
            .and_then(|(lo, n)| lo.as_constant().and(n.as_constant())),
    };
    match bounds {
        Some(n) if n <= MAX_TRIP_COUNT => Ok(()),
        Some(n) => Err(Refusal::Other(format!(
            "{n} iterations, at most {MAX_TRIP_COUNT} are written out; split the loop first"
        ))),
        None => {
            let domain = kernel.show_domain(iname, &data.domain);
            Err(Refusal::Other(format!(
                "the values of `{domain}` have no constant bounds; fix the parameters, or split by a constant"
            )))
        }
    }
}
