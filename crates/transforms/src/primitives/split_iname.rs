//! Splits a loop into blocks.

use kingpost_analysis::Analysis;
use kingpost_ir::{
    Affine, Atom, AxisTag, Constraint, Domain, Expr, GuardedRange, Id, Iname, InameId, Kernel, Node,
};
use kingpost_steps::copy::copy_nest;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Instances;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::bounds::{
    BOUNDS_STAY, CONSTANT_BOUNDS, changing_bounds, check_bounds_stay, check_constant_value,
};
use kingpost_steps::proofs::length::RangeOf;
use kingpost_steps::refusal::{AtParameters, Refusal};
use kingpost_steps::schedule::Loop;
use kingpost_steps::substitute::substitute_iname;
use kingpost_steps::tree::{body_of, loop_body, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Splits `iname` into a loop over blocks and a loop of constant length `factor` inside.
///
/// # Rewrite
/// ```text
/// for i in 0..n      =>   for i_o in 0..floor_div(n + 3, 4)
///   S(i)                    for i_i in 0..min(4, n - 4*i_o)
///                             S(4*i_o + i_i)
/// ```
/// Bounds that hold for every block are dropped. The iname of a reduction is split likewise.
///
/// With the tail strategy `peel` the blocks are full and the remainder has a nest of its own after
/// them; everything in it is copied:
/// ```text
/// for i in 0..n      =>   for i_o in 0..floor_div(n, 4)
///   s: S(i)                 for i_i in 0..4
///                             s: S(4*i_o + i_i)
///                         for i_tail in 4*floor_div(n, 4)..n
///                           s_tail: S(i_tail)
/// ```
/// With `exact` there are full blocks only.
///
/// # Precondition
/// `factor >= 1`, and the loop has no tag. Nothing inside writes a scalar in its bounds, which are
/// evaluated again for each block. The order of the instances stays: `(floor(i/f), i mod f)`
/// ascends with `i`, and the tail comes after all full blocks. `peel` and
/// `exact` need a range `lo..hi`, perhaps under conditions
/// `C` that do not mention the loop; `exact` proves
/// `{ params, outer : C, lo < hi, (hi - lo) mod f != 0 }` empty under the assumptions.
///
/// # Errors
/// A factor below 1, an unknown or tagged iname, names that are taken, bounds changed inside.
/// `peel`, `exact`: no plain range, bounds read from memory;
/// `peel`: the iname of a reduction, a copy that the placement breaks, with two instances; `exact`:
/// parameters with which blocks of that size do not fill the loop, with their values.
///
/// # Elsewhere
/// Loopy `split_iname` (with slabs); Halide `split` with `TailStrategy`; Exo `divide_loop` with
/// `tail`; TVM `split`; MLIR `affine-loop-tile`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitIname {
    /// The loop.
    pub iname: String,
    /// Iterations of a block.
    pub factor: i64,
    /// Name of the loop over blocks; `{iname}_o` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outer: Option<String>,
    /// Name of the loop inside a block; `{iname}_i` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<String>,
    /// What becomes of the iterations that fill no block.
    #[serde(default, skip_serializing_if = "Tail::is_guard")]
    pub tail: Tail,
}

/// What becomes of the iterations that fill no block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tail {
    /// The last block is shorter: its loop has a second bound.
    #[default]
    Guard,
    /// They run in a nest of their own, after the full blocks.
    Peel,
    /// There are none, which is proved.
    Exact,
}

impl Tail {
    fn is_guard(&self) -> bool {
        *self == Self::Guard
    }
}

impl SplitIname {
    /// Splits `iname` by `factor` into `{iname}_o` and `{iname}_i`.
    pub fn new(iname: impl Into<String>, factor: i64) -> Self {
        Self { iname: iname.into(), factor, outer: None, inner: None, tail: Tail::Guard }
    }

    /// Uses another tail strategy.
    #[must_use]
    pub fn with_tail(mut self, tail: Tail) -> Self {
        self.tail = tail;
        self
    }

    fn outer_name(&self) -> String {
        self.outer.clone().unwrap_or_else(|| format!("{}_o", self.iname))
    }

    fn inner_name(&self) -> String {
        self.inner.clone().unwrap_or_else(|| format!("{}_i", self.iname))
    }
}

impl fmt::Display for SplitIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "split `{}` by {} into `{}`, `{}`",
            self.iname,
            self.factor,
            self.outer_name(),
            self.inner_name()
        )?;
        f.write_str(match self.tail {
            Tail::Guard => "",
            Tail::Peel => ", the remainder peeled",
            Tail::Exact => ", without remainder",
        })
    }
}

/// Its iterations run in one place, one after the other.
const UNTAGGED: Obligation = Obligation::new("split_iname.untagged", "the loop has no tag");

/// Full blocks start at its lower bound.
const RANGE: Obligation = Obligation::new(
    "split_iname.range",
    "a loop that is cut into full blocks is a range `lo..hi`, perhaps under conditions that do not mention it",
);

/// `{ params, outer : C, lo < hi, (hi - lo) mod f != 0 }` is empty.
const DIVIDES: Obligation =
    Obligation::new("split_iname.divides", "without remainder: the factor divides the length of the loop");

/// There is a place for a second loop.
const PLACE: Obligation =
    Obligation::new("split_iname.place", "a loop with a peeled remainder is no reduction");

/// A loop, and the blocks that it is made of.
pub struct Blocks {
    iname: InameId,
    /// Domains of the loop over blocks and of the one inside a block.
    domains: (Domain, Domain),
    /// The value of the loop that is split.
    value: Affine,
    /// The values after full blocks, and the body that runs for them.
    remainder: Option<(Remainder, Vec<Node>)>,
}

/// The values after the full blocks.
struct Remainder {
    start: Affine,
    range: GuardedRange,
    /// Whether the start may be below the lower bound.
    backward: bool,
}

impl Primitive for SplitIname {
    const NAME: &'static str = "split_iname";
    const VERB: Option<&'static str> = Some("split");
    const SUMMARY: &'static str = "Splits a loop into blocks of constant length.";

    type Proof = Blocks;
    /// The loop over blocks and the one inside a block. That over what remains has its name after
    /// `_tail`.
    type Made = [Loop; 2];

    const OBLIGATIONS: &'static [Obligation] =
        &[UNTAGGED, BOUNDS_STAY, RANGE, CONSTANT_BOUNDS, DIVIDES, PLACE];
    const WEIGHT: usize = 2;

    fn instances(&self) -> Instances {
        match self.tail {
            Tail::Peel => Instances::Copied,
            Tail::Guard | Tail::Exact => Instances::Same,
        }
    }

    fn check(&self, analysis: &Analysis) -> Result<Blocks, Refusal> {
        let kernel = analysis.kernel();
        let iname = self.untagged(kernel)?;
        if self.tail == Tail::Guard {
            let (outer, inner) = next_two(kernel);
            let domains = self.domains(&kernel.inames[iname].domain, iname, outer, inner);
            let value = Affine::iname(outer).times(self.factor).plus(&Affine::iname(inner));
            return Ok(Blocks { iname, domains, value, remainder: None });
        }
        let range = range_of(analysis, iname)?;
        let full = self.full_blocks(&range, next_two(kernel));
        if self.tail == Tail::Peel && !changing_bounds(kernel, iname).is_empty() {
            let remainder = Some((self.remainder(&range)?, body_of(kernel, iname)?.to_vec())); // nothing is known of the length
            return Ok(Blocks { remainder, ..full });
        }
        let indivisible = range.indivisible(self.factor)?;
        let remainder = match self.tail {
            Tail::Guard | Tail::Peel => match indivisible {
                Some(_) => Some((self.remainder(&range)?, body_of(kernel, iname)?.to_vec())),
                None => None,
            },
            Tail::Exact => {
                DIVIDES.refute(indivisible.map(|(point, length)| self.indivisible(&range, point, length)))?;
                None
            }
        };
        Ok(Blocks { remainder, ..full })
    }

    fn edit(&self, kernel: &mut Kernel, blocks: &Blocks) -> [Loop; 2] {
        let Blocks { iname, domains, value, remainder } = blocks;
        let names = [self.outer_name(), self.inner_name()];
        let [outer, inner] = [(&names[0], &domains.0), (&names[1], &domains.1)].map(|(name, domain)| {
            let (name, domain) = (name.clone(), domain.clone());
            kernel.inames.push(Iname { name, domain, tag: AxisTag::Sequential })
        });
        let tail = remainder.as_ref().map(|(remainder, body)| {
            let (tail, nest) = copy_nest(kernel, *iname, body, "tail");
            kernel.inames[tail].domain = remainder.domain(tail);
            nest
        });
        substitute_iname(kernel, *iname, value);
        if loop_body(&kernel.body, *iname).is_some() {
            replace_loop(&mut kernel.body, *iname, &mut |body| {
                let blocks = Node::Loop(outer, vec![Node::Loop(inner, body)]);
                [blocks].into_iter().chain(tail.clone()).collect()
            });
        } else {
            split_reduction(kernel, *iname, outer, inner);
        }
        names.map(Loop::named)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let tail = p.among([Tail::Guard, Tail::Guard, Tail::Peel, Tail::Exact]);
        Some(Self::new(p.of(&draw::inames(kernel))?, p.between(0, 5)).with_tail(tail))
    }
}

impl Remainder {
    /// From the end of the full blocks on.
    fn domain(&self, tail: InameId) -> Domain {
        let i = Affine::iname(tail);
        let mut bounds = vec![Constraint::le(&self.start, &i), Constraint::lt(&i, &self.range.hi)];
        if self.backward {
            bounds.push(Constraint::le(&self.range.lo, &i));
        }
        self.range.guarded(&Domain::conjunction(bounds))
    }
}

/// The ids of the next two inames of a kernel.
fn next_two(kernel: &Kernel) -> (InameId, InameId) {
    let n = kernel.inames.len();
    (InameId::from_index(n), InameId::from_index(n + 1))
}

/// The bounds of a loop that is cut into full blocks.
fn range_of<'a, 'k>(analysis: &'a Analysis<'k>, iname: InameId) -> Result<RangeOf<'a, 'k>, Refusal> {
    let kernel = analysis.kernel();
    let domain = &kernel.inames[iname].domain;
    let range = RANGE.find(domain.as_guarded_range(iname), || {
        format!(
            "`{}` is no plain range `lo..hi`, and only ranges are cut into full blocks; split with the tail \
             strategy guard",
            kernel.show_domain(iname, domain)
        )
    })?;
    check_constant_value(kernel, iname, &range.lo)?;
    Ok(RangeOf { analysis, iname, range })
}

impl SplitIname {
    fn untagged(&self, kernel: &Kernel) -> Result<InameId, Refusal> {
        let iname = lookup::iname(kernel, &self.iname)?;
        if !(1..=1 << 31).contains(&self.factor) {
            let found = format!("a block has {} iterations", self.factor);
            return Err(Refusal::argument("factor", found, "1 to 2^31; choose a positive factor"));
        }
        let tag = kernel.inames[iname].tag;
        UNTAGGED.require(tag == AxisTag::Sequential, || {
            format!("`{}` is tagged {tag}; tag it sequential, split it, then tag the parts", self.iname)
        })?;
        let (outer, inner) = (self.outer_name(), self.inner_name());
        if outer == inner {
            let found = format!("both loops would be called `{outer}`");
            return Err(Refusal::argument("inner", found, "two names"));
        }
        for name in [&outer, &inner] {
            if *name != self.iname {
                lookup::free(kernel, name)?;
            }
        }
        // the loop of a reduction has no body
        if let Some(body) = loop_body(&kernel.body, iname) {
            check_bounds_stay(kernel, iname, body)?;
        }
        Ok(iname)
    }

    /// Blocks that are full, from the lower bound on; the same values as with a guard where it is a
    /// multiple of the factor.
    fn full_blocks(&self, of: &RangeOf, (outer, inner): (InameId, InameId)) -> Blocks {
        let (f, range) = (self.factor, &of.range);
        let inside = Domain::range(inner, &Affine::default(), &Affine::constant(f));
        let position = Affine::iname(outer).times(f).plus(&Affine::iname(inner));
        let first = range.lo.floor_div(f);
        let (blocks, value) = if first.times(f) == range.lo {
            (Domain::range(outer, &first, &range.hi.floor_div(f)), position)
        } else {
            let full = range.length().floor_div(f);
            (Domain::range(outer, &Affine::default(), &full), position.plus(&range.lo))
        };
        Blocks { iname: of.iname, domains: (range.guarded(&blocks), inside), value, remainder: None }
    }

    fn indivisible(&self, range: &RangeOf, params: Vec<(String, i64)>, length: i64) -> AtParameters {
        let kernel = range.analysis.kernel();
        let domain = kernel.show_domain(range.iname, &kernel.inames[range.iname].domain);
        let found = format!("`{domain}` has {length} iterations");
        let reason = format!(
            "which {} does not divide; peel the remainder, guard it, or fix the parameters",
            self.factor
        );
        AtParameters { params, found, reason }
    }

    /// What remains after full blocks.
    fn remainder(&self, of: &RangeOf) -> Result<Remainder, Refusal> {
        let (f, range) = (self.factor, &of.range);
        PLACE.require(loop_body(&of.analysis.kernel().body, of.iname).is_some(), || {
            format!(
                "`{}` runs inside a reduction, which has no place for a second loop; realise the reduction first",
                self.iname
            )
        })?;
        let mut start = range.hi.floor_div(f).times(f);
        if range.lo.floor_div(f).times(f) != range.lo {
            start = range.length().floor_div(f).times(f).plus(&range.lo);
        }
        Ok(Remainder { start, range: range.clone(), backward: of.may_run_backward()? })
    }

    /// Domains of both loops. The outer one holds every block with a point (and, for domains that
    /// are no plain range, perhaps an empty one); the inner one is exact.
    fn domains(&self, domain: &Domain, iname: InameId, outer: InameId, inner: InameId) -> (Domain, Domain) {
        let f = self.factor;
        let (o, r) = (Affine::iname(outer), Affine::iname(inner));
        let block = [Constraint::le(&Affine::constant(0), &r), Constraint::lt(&r, &Affine::constant(f))];
        let value = o.times(f).plus(&r);
        if let Some(range) = domain.as_guarded_range(iname) {
            let (lo, hi) = (&range.lo, &range.hi);
            let first = lo.floor_div(f);
            let last = hi.plus_constant(-1).floor_div(f);
            let mut inside = block.to_vec();
            if first.times(f) != *lo {
                inside.push(Constraint::le(lo, &value));
            }
            if hi.floor_div(f).times(f) != *hi {
                inside.push(Constraint::lt(&value, hi));
            }
            let blocks = Domain::range(outer, &first, &last.plus_constant(1));
            return (range.guarded(&blocks), Domain::conjunction(inside));
        }
        let exact = |atom: &Atom| (*atom == Atom::Iname(iname)).then(|| value.clone());
        // Of several disjuncts, the block may be there for the sake of another one.
        let one = domain.as_conjunction().is_some();
        let partial = |d: &Vec<Constraint>| -> Vec<_> {
            let needed = d.iter().filter(|c| !(one && holds_for_whole_blocks(c, iname, f)));
            needed.map(|c| c.substitute(&exact)).chain(block.iter().cloned()).collect()
        };
        let inside = Domain::union(domain.disjuncts().iter().map(partial));
        let blocks =
            domain.disjuncts().iter().map(|d| d.iter().flat_map(|c| relax(c, iname, &o, f)).collect());
        (Domain::union(blocks), inside)
    }
}

/// What a constraint on `i` says of the block `o` that holds it: `c*i + e >= 0` holds somewhere in
/// the block only if it holds at the end of the block where `c*i` is largest.
fn relax(constraint: &Constraint, iname: InameId, o: &Affine, f: i64) -> Vec<Constraint> {
    let relaxed = |e: &Affine| {
        let c = e.coefficient(&Atom::Iname(iname));
        let rest = e.minus(&Affine::iname(iname).times(c));
        if rest.mentions(iname) {
            return None; // inside a floor: the inner domain keeps it
        }
        let end = if c > 0 { f - 1 } else { 0 };
        let largest = o.times(f).plus_constant(end).times(c).plus(&rest);
        Some(Constraint::le(&Affine::constant(0), &largest))
    };
    match constraint {
        Constraint::NonNegative(e) => relaxed(e).into_iter().collect(),
        Constraint::Zero(e) => [relaxed(e), relaxed(&e.times(-1))].into_iter().flatten().collect(),
    }
}

/// Whether a constraint holds for all of a block or for nothing of it, so that the outer loop alone
/// keeps it: `i >= b` or `i < b` with a bound `b` between blocks.
fn holds_for_whole_blocks(constraint: &Constraint, iname: InameId, f: i64) -> bool {
    let Constraint::NonNegative(e) = constraint else { return false };
    let c = e.coefficient(&Atom::Iname(iname));
    let rest = e.minus(&Affine::iname(iname).times(c));
    let bound = match c {
        1 => rest.times(-1),
        -1 => rest.plus_constant(1),
        _ => return false,
    };
    !bound.mentions(iname) && bound.floor_div(f).times(f) == bound
}

fn split_reduction(kernel: &mut Kernel, iname: InameId, outer: InameId, inner: InameId) {
    let mut rewrite = |e: Expr| match e {
        Expr::Reduce(mut r) => {
            if let Some(k) = r.inames.iter().position(|i| *i == iname) {
                r.inames.splice(k..=k, [outer, inner]);
            }
            Expr::Reduce(r)
        }
        other => other,
    };
    for insn in kernel.insns.values_mut() {
        insn.map_expressions(&mut rewrite);
    }
}
