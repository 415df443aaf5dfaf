//! Writes out a loop.

use super::Transform;
use crate::error::Cause;
use crate::lookup;
use purlin_ir::{AxisTag, Kernel};
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
///
/// # Precondition
/// The loop is a range whose length is a constant of at most [`MAX_TRIP_COUNT`], and has no axis. The
/// order of the instances stays.
///
/// # Errors
/// An unknown or tagged iname, a length that is not constant or too large.
///
/// # Elsewhere
/// Loopy tag `unr`; Halide `unroll`; Exo `unroll_loop`.
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
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Cause> {
        let iname = lookup::iname(kernel, &self.iname)?;
        let data = &kernel.inames[iname];
        match data.tag {
            AxisTag::Sequential | AxisTag::Unrolled => {}
            tag @ (AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_)) => {
                return Err(Cause::Argument(format!(
                    "`{}` is tagged {tag}; tag it sequential first",
                    self.iname
                )));
            }
        }
        let length = data.domain.as_range(iname).and_then(|(lo, hi)| hi.minus(&lo).as_constant());
        match length {
            Some(n) if n <= MAX_TRIP_COUNT => {}
            Some(n) => {
                return Err(Cause::Argument(format!(
                    "{n} iterations, at most {MAX_TRIP_COUNT} are written out; split the loop first"
                )));
            }
            None => {
                let domain = kernel.show_domain(iname, &data.domain);
                return Err(Cause::Argument(format!(
                    "the length of `{domain}` is not a constant; fix the parameters, or split by a constant \
                     that divides it"
                )));
            }
        }
        let mut unrolled = kernel.clone();
        unrolled.inames[iname].tag = AxisTag::Unrolled;
        Ok(unrolled)
    }
}
