//! Says where the iterations of loops run.

use kingpost_analysis::Analysis;
use kingpost_ir::{AxisTag, InameId, Kernel};
use kingpost_steps::argument;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::former::Former;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::extent::parametric_extent;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::tree::{inames_of, loop_body};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most iterations that are written out: beyond, compilers take minutes.
pub const MAX_TRIP_COUNT: i64 = 4096;

/// Most lanes: 64 bytes hold 64 of the smallest elements.
pub const MAX_LANES: i64 = 64;

/// Tags loops: sequential, unrolled, in vector lanes, on an axis of work-groups or of work-items.
///
/// # Rewrite
/// ```text
/// for i in 0..n      =>   for i in 0..n {g.0}
///   S(i)                    S(i)
/// ```
/// The text keeps its order and its meaning; the tag says where an instance runs. Tag several loops
/// in one step if values flow between them: such a value stays on its work-item only once both loops
/// are on the axis.
///
/// ```text
/// for c in 0..8          =>   for c in 0..8 {l.0}
///   s: t[c] = a[c]              s: t[c] = a[c]
/// for d in 0..8               for d in 0..8 {l.0}
///   r: b[d] = 2.0*t[d]          r: b[d] = 2.0*t[d]
/// ```
/// An unrolled loop is written out. So is the loop of a reduction: the accumulator is updated once
/// for each value.
///
/// ```text
/// for j in 0..3      =>   for j in 0..3 {unroll}      which is printed as  S(0); S(1); S(2)
///   S(j)                    S(j)
/// ```
/// Iterations in lanes run together. C code has vectors of GCC and Clang for arithmetic in loops of
/// a number of iterations, and asks the compiler for others (`omp simd`). CUDA and OpenCL code
/// loads and stores neighbours in memory at once (`double2`, `float4`; in OpenCL up to 16
/// elements). OpenCL code also computes with vectors. What differs among lanes in another way is
/// done for one lane after the other.
///
/// CUDA needs first elements at multiples of the vector's size: rows of 4 or 8 elements, of `4*n`,
/// or of a length that an assumption gives (`n mod 4 == 0`). Where no such access is found, the loop
/// stays scalar, and code generation says so. Split a loop of parametric length first, and peel its
/// remainder.
///
/// ```text
/// for i in 0..8      =>   for i in 0..8 {vector}
///   S(i)                    S(i)
/// ```
///
/// Every iteration of a loop tagged `launch` is a launch: what is ordered between work-groups goes to the next
/// one. Every instruction is then in a launch, and the loops around are the host's.
///
/// ```text
/// for t in 0..m      =>   for t in 0..m {launch}
///   S(t)                    S(t)
/// ```
///
/// # Precondition
/// For every dependence `(i, j)` whose ends run in different places, the table of
/// [`kingpost_analysis::placement`] holds with all tags:
///
/// - no value flows through memory that the sink cannot see;
/// - updates across places commute and are atomic;
/// - within a group the source comes strictly first once the parallel loops are left out, so that a
///   barrier can stand between.
///
/// An unrolled loop has no axis. Its length is a constant of at most [`MAX_TRIP_COUNT`], or its
/// values lie between constants that far apart: then every copy is guarded.
///
/// A loop in lanes is a range of a constant length of 2, 4, 8, … at most [`MAX_LANES`], perhaps
/// under conditions that do not mention it. It holds no loop and no reduction, and has no axis. With
/// `any_form` it may have any form, and what is no vector stays scalar. Lanes run together: for
/// every dependence `D` through memory that they share, `{ s -> t in D : o = o', i /= i' }` is
/// empty. No private value leaves the loop, except an element of a lane's own.
///
/// # Errors
/// Refused are
///
/// - no inames, or an unknown one;
/// - the iname of a reduction on an axis or in lanes;
/// - an axis that a loop around or inside has;
/// - a dependence that the placement breaks, or between lanes, with two instances;
/// - a loop to be unrolled without constant bounds, or with too many values;
/// - a loop in lanes with a loop inside, or of another length.
///
/// # Elsewhere
/// Loopy `tag_inames`, with `unr` and `vec`; Halide `gpu_blocks`, `gpu_threads`, `unroll`,
/// `vectorize`; Exo `parallelize_loop`, `unroll_loop`; OpenMP `simd`; TVM `bind`, `parallel`,
/// `unroll`, `vectorize`; MLIR `convert-affine-for-to-gpu`, `transform.loop.unroll`,
/// `affine-super-vectorize`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tag {
    /// The loop, or a list of loops.
    #[serde(with = "argument::one_or_several")]
    #[schemars(schema_with = "argument::one_or_several::schema")]
    pub inames: Vec<String>,
    /// `g.0`–`g.2`, `l.0`–`l.2`, `vector`, `unroll`, `launch` or `sequential`.
    #[serde(serialize_with = "argument::write", deserialize_with = "argument::read")]
    #[schemars(schema_with = "argument::tags")]
    pub tag: AxisTag,
    /// Whether loops in lanes may have any length and hold others: what is no vector stays scalar,
    /// which code generation says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_form: bool,
}

impl Tag {
    /// Tags one loop.
    pub fn new(iname: impl Into<String>, tag: AxisTag) -> Self {
        Self::all([iname], tag)
    }

    /// Tags several loops in one step.
    pub fn all<S: Into<String>>(inames: impl IntoIterator<Item = S>, tag: AxisTag) -> Self {
        Self { inames: inames.into_iter().map(Into::into).collect(), tag, any_form: false }
    }

    /// The same for loops in lanes of any length, and with loops inside.
    #[must_use]
    pub fn of_any_form(mut self) -> Self {
        self.any_form = true;
        self
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inames: Vec<_> = self.inames.iter().map(|i| format!("`{i}`")).collect();
        write!(f, "tag {} {}", inames.join(", "), self.tag)?;
        f.write_str(if self.any_form { ", of any form" } else { "" })
    }
}

/// The loop of a reduction runs where its instruction does.
const IN_TREE: Obligation =
    Obligation::new("tag.in_tree", "a loop that takes an axis or runs in lanes is none of a reduction");

/// A loop on an axis is not written out, and a loop has one place to run.
const NO_AXIS: Obligation =
    Obligation::new("tag.no_axis", "a loop that is unrolled or runs in lanes has no axis");

/// Code of that length can be compiled.
const TRIP_COUNT: Obligation =
    Obligation::new("tag.trip_count", "an unrolled loop has a maximum of 4096 iterations");

/// It is known how many copies there are.
const VALUES_BOUNDED: Obligation =
    Obligation::new("tag.values_bounded", "the values of an unrolled loop lie between two constants");

/// A lane runs no loop.
const INNERMOST: Obligation =
    Obligation::new("tag.innermost", "a loop in lanes holds no loop and no reduction");

/// Vectors have these lengths.
const LANES: Obligation =
    Obligation::new("tag.lanes", "a loop in lanes is a range of 2, 4, 8, 16, 32 or 64 iterations");

/// Loops that may have the tag as far as their own form goes.
pub struct Tagged(Vec<InameId>);

impl Primitive for Tag {
    const NAME: &'static str = "tag";
    const SUMMARY: &'static str = "Says where the iterations of loops run.";
    const FORMER: &'static [Former] = &[
        Former::of::<OneLoop, Self>("tag_iname"),
        Former::of::<SeveralLoops, Self>("tag_inames"),
        Former::of::<Unrolled, Self>("unroll_iname"),
        Former::of::<InLanes, Self>("vectorise_iname"),
    ];

    type Proof = Tagged;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] =
        &[IN_TREE, NO_AXIS, TRIP_COUNT, VALUES_BOUNDED, INNERMOST, LANES];
    const WEIGHT: usize = 7;

    fn check(&self, analysis: &Analysis) -> Result<Tagged, Refusal> {
        let kernel = analysis.kernel();
        if self.inames.is_empty() {
            let needed = "one or more; name the loops to tag";
            return Err(Refusal::argument("inames", "no iname is given", needed));
        }
        let tagged = |name: &String| {
            let iname = lookup::iname(kernel, name)?;
            self.check_tag(analysis, iname)?;
            Ok(iname)
        };
        Ok(Tagged(self.inames.iter().map(tagged).collect::<Result<_, Refusal>>()?))
    }

    fn edit(&self, kernel: &mut Kernel, Tagged(inames): &Tagged) {
        for iname in inames {
            kernel.inames[*iname].tag = self.tag;
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        if p.one_in(4) {
            return Some(Self::new(p.of(&draw::inames(kernel))?, AxisTag::Unrolled));
        }
        let all = draw::loops(kernel);
        if p.one_in(6) {
            let tag = p.among([AxisTag::Local(0), AxisTag::Group(0), AxisTag::Local(1)]);
            return Some(Self::all([p.of(&all)?, p.of(&all)?], tag));
        }
        let mut tags = AxisTag::ALL.to_vec();
        let often = [AxisTag::Group(0), AxisTag::Vector, AxisTag::Vector, AxisTag::Vector];
        tags.extend(often.into_iter().chain([AxisTag::Local(0); 4]));
        let tag = Self::new(p.of(&all)?, p.of(&tags)?);
        Some(if tag.tag == AxisTag::Vector && p.one_in(3) { tag.of_any_form() } else { tag })
    }
}

impl Tag {
    /// Checks that a loop may have the tag as far as its own form goes.
    fn check_tag(&self, analysis: &Analysis, iname: InameId) -> Result<(), Refusal> {
        match self.tag {
            AxisTag::Unrolled => check_unrolled(analysis, iname),
            AxisTag::Sequential | AxisTag::Rolled => Ok(()),
            AxisTag::Vector if !self.any_form => check_lanes(analysis.kernel(), iname),
            AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Launch => {
                check_in_tree(analysis.kernel(), iname).map(|_| ())
            }
        }
    }
}

/// Checks that a loop is none of a reduction; returns its name and the inames that it holds.
fn check_in_tree(kernel: &Kernel, iname: InameId) -> Result<(&str, Vec<InameId>), Refusal> {
    let name = &kernel.inames[iname].name;
    let body = loop_body(&kernel.body, iname);
    IN_TREE.require(body.is_some(), || {
        format!("`{name}` runs inside a reduction; realise the reduction first")
    })?;
    Ok((name, body.map_or_else(Vec::new, |body| inames_of(kernel, body))))
}

/// Checks that the iterations of a loop can be written out.
fn check_unrolled(analysis: &Analysis, iname: InameId) -> Result<(), Refusal> {
    let kernel = analysis.kernel();
    let data = &kernel.inames[iname];
    check_no_axis(kernel, iname)?;
    let length = data.domain.as_guarded_range(iname).and_then(|range| range.length().as_constant());
    let bounds = match length {
        Some(n) => Some(n),
        None => parametric_extent(analysis.polyhedral(), iname)?
            .and_then(|(lo, n)| lo.as_constant().and(n.as_constant())),
    };
    let n = VALUES_BOUNDED.known(bounds, || {
        format!(
            "the values of `{}` have no constant bounds; fix the parameters, or split by a constant",
            kernel.show_domain(iname, &data.domain)
        )
    })?;
    TRIP_COUNT.require(n <= MAX_TRIP_COUNT, || {
        format!("{n} iterations, at most {MAX_TRIP_COUNT} are written out; split the loop first")
    })
}

fn check_no_axis(kernel: &Kernel, iname: InameId) -> Result<(), Refusal> {
    let data = &kernel.inames[iname];
    let on_axis = match data.tag {
        AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled | AxisTag::Vector => false,
        AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Launch => true,
    };
    NO_AXIS.require(!on_axis, || format!("`{}` is tagged {}; tag it sequential first", data.name, data.tag))
}

/// Checks that the iterations of a loop can be the lanes of a vector.
fn check_lanes(kernel: &Kernel, iname: InameId) -> Result<(), Refusal> {
    let (name, inside) = check_in_tree(kernel, iname)?;
    check_no_axis(kernel, iname)?;
    INNERMOST.forbid(inside.first(), |inner| {
        let way_out = match loop_body(&kernel.body, *inner) {
            Some(_) => "interchange the loops, or distribute this one",
            None => "realise the reduction first",
        };
        format!(
            "`{name}` holds the loop `{}`, and only innermost loops run in lanes; {way_out}",
            kernel.inames[*inner].name
        )
    })?;
    let domain = &kernel.inames[iname].domain;
    let length = domain.as_guarded_range(iname).map(|range| range.length());
    let found = match length.map(|n| n.as_constant()) {
        Some(Some(n)) if (2..=MAX_LANES).contains(&n) && n & (n - 1) == 0 => None,
        Some(Some(n)) => Some(format!("has {n} iterations")),
        Some(None) => Some("has no constant length".into()),
        None => Some("is no plain range `lo..hi`".into()),
    };
    LANES.forbid(found, |found| {
        format!(
            "`{}` {found}, needed 2, 4, 8, 16, 32 or {MAX_LANES} lanes; split it by one of these with the tail \
             strategy peel, or exact where it divides the length, or allow any_form: C has lanes of any number",
            kernel.show_domain(iname, domain)
        )
    })
}

/// What `tag_iname` took.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneLoop {
    iname: String,
    #[serde(deserialize_with = "argument::read")]
    tag: AxisTag,
}

impl From<OneLoop> for Tag {
    fn from(old: OneLoop) -> Self {
        SeveralLoops { inames: vec![old.iname], tag: old.tag }.into()
    }
}

/// What `tag_inames` took.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeveralLoops {
    inames: Vec<String>,
    #[serde(deserialize_with = "argument::read")]
    tag: AxisTag,
}

impl From<SeveralLoops> for Tag {
    fn from(old: SeveralLoops) -> Self {
        Self { any_form: old.tag == AxisTag::Vector, ..Self::all(old.inames, old.tag) }
    }
}

/// What `unroll_iname` took.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unrolled {
    iname: String,
}

impl From<Unrolled> for Tag {
    fn from(old: Unrolled) -> Self {
        Self::new(old.iname, AxisTag::Unrolled)
    }
}

/// What `vectorise_iname` took.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InLanes {
    iname: String,
}

impl From<InLanes> for Tag {
    fn from(old: InLanes) -> Self {
        Self::new(old.iname, AxisTag::Vector)
    }
}
