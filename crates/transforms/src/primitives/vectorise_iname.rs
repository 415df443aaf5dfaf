//! Runs the iterations of a loop in the lanes of a vector.

use purlin_analysis::Analysis;
use purlin_ir::{AxisTag, InameId, Kernel};
use purlin_steps::draw::{self, Picks};
use purlin_steps::lookup;
use purlin_steps::lookup::NO_REDUCTION;
use purlin_steps::obligation::Obligation;
use purlin_steps::primitive::Primitive;
use purlin_steps::refusal::Refusal;
use purlin_steps::tree::body_of;
use purlin_steps::tree::{inames_of, loop_body};
use schemars::JsonSchema;
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
/// C code asks the compiler for vector instructions (`omp simd`). In CUDA and OpenCL neighbours in
/// memory are loaded and stored at once (`double2`, `float4`; in OpenCL up to 16 elements), in
/// OpenCL calculated with as vectors, too; what differs among lanes in another way is done for one
/// lane after the other. CUDA needs first elements at multiples of the vector's size: rows of 4 or
/// 8, say, of `4*n`, or of a length that an assumption tells (`n mod 4 == 0`). Where none is known to
/// be at one, the loop stays scalar and code generation says so. A loop of parametric length is first
/// split, with its remainder peeled.
///
/// # Precondition
/// The loop is a range, perhaps under conditions that do not mention it, of a constant length of 2,
/// 4, 8, … at most
/// [`MAX_LANES`], holds no loop and no reduction, and has no axis. Lanes run together: for every
/// dependence `D` through memory that they share, `{ s -> t in D : o = o', i /= i' }` is empty, and
/// no private value but an element of a lane's own leaves the loop.
///
/// # Errors
/// An unknown iname, one of a reduction, a loop inside, a length that is none of these, an axis,
/// and a dependence between lanes, with two instances.
///
/// # Elsewhere
/// Loopy tag `vec`; Halide `vectorize`; OpenMP `simd`; Exo `replace` with vector instructions; TVM
/// `vectorize`; MLIR `affine-super-vectorize`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// A loop has one place to run.
const NO_AXIS: Obligation =
    Obligation::new("vectorise_iname.no_axis", "the loop has no axis and is not unrolled");

/// A lane runs no loop.
const INNERMOST: Obligation =
    Obligation::new("vectorise_iname.innermost", "the loop holds no loop and no reduction");

/// Vectors have these lengths.
const LANES: Obligation =
    Obligation::new("vectorise_iname.lanes", "the loop is a range of 2, 4, 8, 16, 32 or 64 iterations");

/// A loop whose iterations fill the lanes of a vector.
pub struct Lanes(InameId);

impl Primitive for VectoriseIname {
    const NAME: &'static str = "vectorise_iname";
    const SUMMARY: &'static str = "Runs the iterations of an innermost loop in vector lanes.";

    type Proof = Lanes;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[NO_AXIS, INNERMOST, LANES, NO_REDUCTION];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Lanes, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let tag = kernel.inames[iname].tag;
        let elsewhere = match tag {
            AxisTag::Sequential | AxisTag::Vector => false,
            AxisTag::Unrolled | AxisTag::Rolled | AxisTag::Group(_) | AxisTag::Local(_) => true,
        };
        NO_AXIS
            .require(!elsewhere, || format!("`{}` is tagged {tag}; tag it sequential first", self.iname))?;
        self.check_innermost(kernel, iname)?;
        self.check_length(kernel, iname)?;
        Ok(Lanes(iname))
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Lanes) {
        kernel.inames[proof.0].tag = AxisTag::Vector;
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(p.of(&draw::loops(kernel))?))
    }
}

impl VectoriseIname {
    fn check_innermost(&self, kernel: &Kernel, iname: InameId) -> Result<(), Refusal> {
        let body = body_of(kernel, iname)?;
        let Some(inner) = inames_of(kernel, body).first().copied() else { return Ok(()) };
        INNERMOST.require(false, || {
            let way_out = match loop_body(&kernel.body, inner) {
                Some(_) => "interchange the loops, or distribute this one",
                None => "realise the reduction first",
            };
            format!(
                "`{}` holds the loop `{}`, and only innermost loops run in lanes; {way_out}",
                self.iname, kernel.inames[inner].name
            )
        })
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
        LANES.require(false, || {
            format!(
                "`{}` {found}, needed 2, 4, 8, 16, 32 or {MAX_LANES} lanes; split it by one of these with the tail \
                 strategy peel, or exact where it divides the length",
                kernel.show_domain(iname, domain)
            )
        })
    }
}
