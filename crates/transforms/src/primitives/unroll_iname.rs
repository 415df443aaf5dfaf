//! Writes out a loop.

use purlin_analysis::Analysis;
use purlin_ir::{AxisTag, InameId, Kernel};
use purlin_steps::draw::{self, Picks};
use purlin_steps::lookup;
use purlin_steps::obligation::Obligation;
use purlin_steps::primitive::Primitive;
use purlin_steps::proofs::extent::parametric_extent;
use purlin_steps::refusal::Refusal;
use schemars::JsonSchema;
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
/// The loop has no axis, and its length is a constant of at most [`MAX_TRIP_COUNT`], or its values
/// lie between constants that far apart: then every copy is guarded. The order of the instances
/// stays.
///
/// # Errors
/// An unknown or tagged iname, values without constant bounds or too many.
///
/// # Elsewhere
/// Loopy tag `unr`; Halide `unroll`; Exo `unroll_loop`; TVM `unroll`; MLIR `transform.loop.unroll`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// A loop on an axis is not written out.
pub(crate) const NO_AXIS: Obligation = Obligation::new("unroll_iname.no_axis", "the loop has no axis");

/// Code of that length can be compiled.
pub(crate) const TRIP_COUNT: Obligation =
    Obligation::new("unroll_iname.trip_count", "the loop has a maximum of 4096 iterations");

/// It is known how many copies there are.
pub(crate) const VALUES_BOUNDED: Obligation =
    Obligation::new("unroll_iname.values_bounded", "the values of the loop lie between two constants");

/// A loop whose iterations can be written out.
pub struct Unrolled(InameId);

impl Primitive for UnrollIname {
    const NAME: &'static str = "unroll_iname";
    const SUMMARY: &'static str = "Writes out the iterations of a loop.";

    type Proof = Unrolled;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[NO_AXIS, TRIP_COUNT, VALUES_BOUNDED];

    fn check(&self, analysis: &Analysis) -> Result<Unrolled, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::iname(kernel, &self.iname)?;
        check_unrolled(analysis, iname)?;
        Ok(Unrolled(iname))
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Unrolled) {
        kernel.inames[proof.0].tag = AxisTag::Unrolled;
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(p.of(&draw::inames(kernel))?))
    }
}

/// Checks that the iterations of a loop can be written out.
///
/// # Errors
/// A loop on an axis, a length without a constant bound or too large a one.
pub(crate) fn check_unrolled(analysis: &Analysis, iname: InameId) -> Result<(), Refusal> {
    let kernel = analysis.kernel();
    let data = &kernel.inames[iname];
    let on_axis = match data.tag {
        AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled => false,
        AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) => true,
    };
    NO_AXIS
        .require(!on_axis, || format!("`{}` is tagged {}; tag it sequential first", data.name, data.tag))?;
    let length = data.domain.as_guarded_range(iname).and_then(|range| range.length().as_constant());
    let bounds = match length {
        Some(n) => Some(n),
        None => parametric_extent(analysis.polyhedral(), iname)?
            .and_then(|(lo, n)| lo.as_constant().and(n.as_constant())),
    };
    let Some(n) = bounds else {
        return Err(VALUES_BOUNDED.undecided(format!(
            "the values of `{}` have no constant bounds; fix the parameters, or split by a constant",
            kernel.show_domain(iname, &data.domain)
        )));
    };
    TRIP_COUNT.require(n <= MAX_TRIP_COUNT, || {
        format!("{n} iterations, at most {MAX_TRIP_COUNT} are written out; split the loop first")
    })
}
