//! Runs the iterations of a loop in the lanes of a vector.

use super::Transform;
use super::tag_iname::check_placement;
use crate::lookup;
use crate::refusal::Refusal;
use crate::tree::{inames_of, loop_body};
use purlin_ir::{AxisTag, InameId, Kernel};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most lanes: 64 bytes hold 64 of the smallest elements.
pub const MAX_LANES: i64 = 64;

/// Tags `iname` so that its iterations run together in the lanes of one vector.
///
/// # Rewrite
/// ```text
/// for i in 0..8      =>   for i in 0..8 {vector}
///   S(i)                    S(i)
/// ```
/// C code asks the compiler for vector instructions (`omp simd`). In CUDA and OpenCL neighbours in memory are loaded and
/// stored at once (`double2`, `float4`; in OpenCL up to 16 elements), in OpenCL calculated with as vectors, too; what
/// differs among lanes in another way is done for one lane after the other. CUDA needs first elements at multiples of
/// the vector's size: rows of 4 or 8, say, rather than of a parametric length. A loop of parametric length is first
/// split, with its remainder peeled.
///
/// # Precondition
/// The loop is a range, perhaps under conditions that do not mention it, of a constant length of 2, 4, 8, … at most [`MAX_LANES`], holds no loop and no
/// reduction, and has no axis. Lanes run together: for every dependence `D` through memory that they share,
/// `{ s -> t in D : o = o', i /= i' }` is empty, and no private value but an element of a lane's own leaves
/// the loop.
///
/// # Errors
/// An unknown iname, one of a reduction, a loop inside, a length that is none of these, an axis, and a
/// dependence between lanes, with two instances.
///
/// # Elsewhere
/// Loopy tag `vec`; Halide `vectorize`; OpenMP `simd`; Exo `replace` with vector instructions; TVM
/// `vectorize`; MLIR `affine-super-vectorize`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectoriseIname {
    /// The loop.
    pub iname: String,
}

impl VectoriseIname {
    /// Runs the iterations of `iname` in lanes.
    pub fn new(iname: impl Into<String>) -> Self {
        Self { iname: iname.into() }
    }
}

impl fmt::Display for VectoriseIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vectorise `{}`", self.iname)
    }
}

impl Transform for VectoriseIname {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let data = &kernel.inames[iname];
        match data.tag {
            AxisTag::Sequential | AxisTag::Vector => {}
            tag @ (AxisTag::Unrolled | AxisTag::Group(_) | AxisTag::Local(_)) => {
                return Err(Refusal::Other(format!(
                    "`{}` is tagged {tag}; tag it sequential first",
                    self.iname
                )));
            }
        }
        self.check_innermost(kernel, iname)?;
        self.check_length(kernel, iname)?;
        let mut vectorised = kernel.clone();
        vectorised.inames[iname].tag = AxisTag::Vector;
        check_placement(&vectorised)?;
        Ok(vectorised)
    }
}

impl VectoriseIname {
    fn check_innermost(&self, kernel: &Kernel, iname: InameId) -> Result<(), Refusal> {
        let body = loop_body(&kernel.body, iname).unwrap_or_default();
        let Some(inner) = inames_of(kernel, body).first().map(|i| &kernel.inames[*i].name) else {
            return Ok(());
        };
        let way_out = match kernel.iname(inner).and_then(|i| loop_body(&kernel.body, i)) {
            Some(_) => "interchange the loops, or distribute this one",
            None => "realise the reduction first",
        };
        Err(Refusal::Other(format!(
            "`{}` holds the loop `{inner}`, and only innermost loops run in lanes; {way_out}",
            self.iname
        )))
    }

    fn check_length(&self, kernel: &Kernel, iname: InameId) -> Result<(), Refusal> {
        let domain = &kernel.inames[iname].domain;
        let length = domain.as_guarded_range(iname).map(|range| range.length());
        let found = match length.map(|n| n.as_constant()) {
            Some(Some(n)) if (2..=MAX_LANES).contains(&n) && n & (n - 1) == 0 => return Ok(()),
            Some(Some(n)) => format!("has {n} iterations"),
            Some(None) => "has no constant length".into(),
            None => "is no plain range `lo..hi`".into(),
        };
        Err(Refusal::Other(format!(
            "`{}` {found}, needed 2, 4, 8, 16, 32 or {MAX_LANES} lanes; split it by one of these with the tail \
             strategy peel, or exact where it divides the length",
            kernel.show_domain(iname, domain)
        )))
    }
}
