//! Joins two nested loops into one.

use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, Atom, AxisTag, Constraint, Domain, Expr, Iname, InameId, Kernel, Node};
use kingpost_steps::Means;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::bounds::{CONSTANT_BOUNDS, check_constant_value};
use kingpost_steps::proofs::extent::smallest;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::Loop;
use kingpost_steps::substitute::{simplify_indices, substitute_iname};
use kingpost_steps::tree::{insns_of, loop_body, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Joins `outer` and the loop `inner` directly inside it, of constant length, into one loop: the
/// inverse of a split.
///
/// # Rewrite
/// ```text
/// for i in 0..n          =>   for i_j in 0..4*n
///   for j in 0..4               S(floor_div(i_j, 4), i_j - 4*floor_div(i_j, 4))
///     S(i, j)
/// ```
/// Neighbouring inames of a reduction are joined likewise.
///
/// # Precondition
/// `outer` is a range `lo..hi`, of which either end may be the tightest of several, and holds
/// `inner` and nothing else; `inner` is a range `start..start + c` with a constant `c >= 1`, of
/// which more bounds may leave out a part, which the joined loop leaves out as well; conditions on
/// the loops around and on parameters stay; and neither has a tag. The order of the instances
/// stays: `(i, j) < (i', j')  <=>  c*i + j - start < c*i' + j' - start'` lexicographically.
///
/// Where the length `l` is an expression of the parameters, `c` is the largest that the assumptions allow,
/// `max { l : assumptions }`, and the joined loop leaves out what is beyond `l`. The product of two parameters
/// is no bound that isl could work with. Without such an assumption, split `inner` by a constant and
/// interchange the loop over blocks with `outer`: the rest of `inner` has a constant length.
///
/// # Errors
/// Unknown or tagged inames, loops that are not directly nested, values that are no range, a length
/// that nothing bounds or that is not positive, bounds of `inner` read from memory, a name that is taken.
///
/// # Elsewhere
/// Loopy `join_inames`; Halide `fuse`; Exo `mult_loops`; OpenMP `collapse`; TVM `fuse`; MLIR
/// `affine-loop-coalescing`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinInames {
    /// The outer loop.
    pub outer: String,
    /// The loop directly inside it.
    pub inner: String,
    /// Name of the joined loop; `{outer}_{inner}` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<String>,
}

impl JoinInames {
    /// Joins `outer` and `inner` into `{outer}_{inner}`.
    pub fn new(outer: impl Into<String>, inner: impl Into<String>) -> Self {
        Self { outer: outer.into(), inner: inner.into(), joined: None }
    }

    fn joined_name(&self) -> String {
        self.joined.clone().unwrap_or_else(|| format!("{}_{}", self.outer, self.inner))
    }
}

impl fmt::Display for JoinInames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "join `{}`, `{}` into `{}`", self.outer, self.inner, self.joined_name())
    }
}

/// Its iterations run in one place, one after the other.
const UNTAGGED: Obligation = Obligation::new("join_inames.untagged", "neither loop has a tag");

/// Nothing runs between the loops.
const NESTED: Obligation =
    Obligation::new("join_inames.nested", "the outer loop holds the inner one and nothing else");

/// Bounds, of which the joined loop has multiples.
const RANGES: Obligation = Obligation::new(
    "join_inames.ranges",
    "both loops are ranges `lo..hi`, of which either end may be the tightest of several",
);

/// The same number of iterations inside each one outside.
const CONSTANT_LENGTH: Obligation = Obligation::new(
    "join_inames.constant_length",
    "the length of the inner loop is a constant of at least 1, or assumptions bound it by one",
);

/// Two loops of a perfect nest.
pub struct Nest {
    outer: InameId,
    inner: InameId,
    ranges: Ranges,
}

/// The constraints on `outer`, each as `(a, e)` for `a*outer + e >= 0` with `a` 1 or -1;
/// `inner in start..start + length`; and all else that both domains say.
struct Ranges {
    bounds: Vec<(i64, Affine)>,
    start: Affine,
    length: i64,
    rest: Vec<Constraint>,
}

impl Primitive for JoinInames {
    const NAME: &'static str = "join_inames";
    const SUMMARY: &'static str = "Joins two loops of a perfect nest into one.";

    type Proof = Nest;
    type Made = Loop;

    const OBLIGATIONS: &'static [Obligation] = &[UNTAGGED, NESTED, RANGES, CONSTANT_LENGTH, CONSTANT_BOUNDS];

    fn check(&self, analysis: &Analysis) -> Result<Nest, Refusal> {
        let kernel = analysis.kernel();
        let outer = lookup::iname(kernel, &self.outer)?;
        let inner = lookup::iname(kernel, &self.inner)?;
        for iname in [outer, inner] {
            let Iname { name, tag, .. } = &kernel.inames[iname];
            UNTAGGED.require(*tag == AxisTag::Sequential, || {
                format!("`{name}` is tagged {tag}; tag it sequential, join the loops, then tag the result")
            })?;
        }
        self.check_nest(kernel, outer, inner)?;
        let name = self.joined_name();
        if name != self.outer && name != self.inner {
            lookup::free(kernel, &name)?;
        }
        let ranges = ranges(analysis, outer, inner)?;
        Ok(Nest { outer, inner, ranges })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Nest) -> Loop {
        let Nest { outer, inner, ranges: Ranges { bounds, start, length, rest } } = proof;
        let (outer, inner, name) = (*outer, *inner, self.joined_name());
        let joined = kernel.inames.push(Iname { name, domain: Domain::universe(), tag: AxisTag::Sequential });
        // lo <= floor(f/c) <=> c*lo <= f, floor(f/c) <= last <=> f <= c*last + c - 1
        let bound = |(a, e): &(i64, Affine)| {
            let slack = if *a > 0 { 0 } else { length - 1 };
            let value = Affine::iname(joined).times(*a).plus(&e.times(*length)).plus_constant(slack);
            Constraint::le(&Affine::default(), &value)
        };
        let block = Affine::iname(joined).floor_div(*length);
        let start = start.substitute(&|atom| (*atom == Atom::Iname(outer)).then(|| block.clone()));
        let value = start.plus(&Affine::iname(joined).modulo(*length));
        let values = |atom: &Atom| match atom {
            Atom::Iname(l) if *l == inner => Some(value.clone()),
            Atom::Iname(l) if *l == outer => Some(block.clone()),
            Atom::Iname(_) | Atom::Var(_) | Atom::Floor(..) => None,
        };
        let rest = rest.iter().map(|c| c.substitute(&values));
        kernel.inames[joined].domain = Domain::conjunction(bounds.iter().map(bound).chain(rest));
        let users = insns_of(&kernel.body);
        substitute_iname(kernel, inner, &value);
        substitute_iname(kernel, outer, &block);
        put_in_place(kernel, outer, inner, joined);
        simplify_indices(kernel, &users);
        Loop::named(self.joined_name())
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let (outer, inner) = p.of(&draw::nested(kernel))?;
        Some(Self::new(outer, inner))
    }
}

impl JoinInames {
    fn check_nest(&self, kernel: &Kernel, outer: InameId, inner: InameId) -> Result<(), Refusal> {
        let nested = match loop_body(&kernel.body, outer) {
            Some(body) => matches!(body, [Node::Loop(only, _)] if *only == inner),
            None => kernel.insns.values().any(|insn| {
                insn.expressions().any(|e| e.any(&mut |e| neighbours_in(e, outer, inner).is_some()))
            }),
        };
        NESTED.require(nested, || {
            format!(
                "`{}` does not hold `{}` and nothing else; name two loops of a perfect nest, the outer one first",
                self.outer, self.inner
            )
        })
    }
}

fn ranges(analysis: &Analysis, outer: InameId, inner: InameId) -> Result<Ranges, Refusal> {
    let kernel = analysis.kernel();
    let why = |iname: InameId| {
        let domain = kernel.show_domain(iname, &kernel.inames[iname].domain);
        format!("`{domain}` is no plain range `lo..hi`; only ranges are joined")
    };
    let Bounds { bounds, guard } =
        RANGES.find(bounds_of(&kernel.inames[outer].domain, outer), || why(outer))?;
    let domain = &kernel.inames[inner].domain;
    let constant = |e: &Affine| Ok(e.as_constant().map(|n| (n, true)));
    let assumed = |e: &Affine| {
        if e.any_symbol(&mut |atom| matches!(atom, Atom::Iname(_))) {
            return Ok(None);
        }
        let [least, negated] = [e.clone(), e.times(-1)].map(|e| smallest(analysis.polyhedral(), &e));
        let (least, most) = (least?, negated?.and_then(i64::checked_neg));
        Ok(most.filter(|most| *most <= i64::from(i32::MAX)).map(|most| (most, least == Some(most))))
    };
    let found = match bounded_range(domain, inner, &constant)? {
        Some(found) => Some(found),
        None => bounded_range(domain, inner, &assumed)?,
    };
    if let Some((start, length, mut rest)) = found {
        CONSTANT_LENGTH.holds(Means::Form, String::new);
        check_constant_value(kernel, inner, &start)?;
        rest.iter().try_for_each(|c| check_constant_value(kernel, inner, c.expr()))?;
        rest.extend(guard);
        return Ok(Ranges { bounds, start, length, rest });
    }
    let range = RANGES.find(kernel.inames[inner].domain.as_guarded_range(inner), || why(inner))?;
    let domain = kernel.show_domain(inner, &kernel.inames[inner].domain);
    let (name, around) = (&kernel.inames[inner].name, &kernel.inames[outer].name);
    Err(CONSTANT_LENGTH.unfit(match range.length().as_constant() {
        Some(n) => format!("the length of `{domain}` is {n}, needed one of at least 1"),
        None => format!(
            "the length of `{domain}` is not a constant, and no assumption bounds it by one; assume how large it may be, \
             fix the parameters, or split `{name}`, interchange `{around}` with the loop over blocks, and join \
             `{around}` with the one inside"
        ),
    }))
}

/// The largest value of a length, and whether it has no other.
type Most<'a> = &'a dyn Fn(&Affine) -> Result<Option<(i64, bool)>, Refusal>;

/// The shortest range of constant length, at least 1, that two bounds of a loop make, and its other
/// constraints.
fn bounded_range(
    domain: &Domain,
    iname: InameId,
    most: Most<'_>,
) -> Result<Option<(Affine, i64, Vec<Constraint>)>, Refusal> {
    let Some(Bounds { bounds, guard }) = bounds_of(domain, iname) else { return Ok(None) };
    let ends = |sign| bounds.iter().enumerate().filter(move |(_, (a, _))| *a == sign);
    let pairs = ends(1).flat_map(|low| ends(-1).map(move |high| (low, high)));
    let mut lengths = Vec::new();
    for ((k, (_, low)), (l, (_, high))) in pairs {
        // -start <= iname and iname <= last
        if let Some((length, only)) = most(&high.plus(low).plus_constant(1))?.filter(|(n, _)| *n >= 1) {
            lengths.push((length, k, only.then_some(l), low.times(-1)));
        }
    }
    let Some((length, k, l, start)) = lengths.into_iter().min_by_key(|(length, ..)| *length) else {
        return Ok(None);
    };
    let others = bounds.iter().enumerate().filter(|(n, _)| *n != k && Some(*n) != l);
    let value = |(_, (a, e)): (usize, &(i64, Affine))| Affine::iname(iname).times(*a).plus(e);
    let others = others.map(value).map(|e| Constraint::NonNegative(e).normalised());
    Ok(Some((start, length, others.chain(guard).collect())))
}

/// The constraints of a conjunction: bounds of one iname, each as `(a, e)` for `a*iname + e >= 0`
/// with `a` 1 or -1, and conditions that do not mention it.
struct Bounds {
    bounds: Vec<(i64, Affine)>,
    guard: Vec<Constraint>,
}

/// The lower and upper bounds of a loop, at least one of each, if nothing else is said of its
/// values.
fn bounds_of(domain: &Domain, iname: InameId) -> Option<Bounds> {
    let (of_iname, guard): (Vec<_>, Vec<_>) =
        domain.as_conjunction()?.iter().cloned().partition(|c| c.expr().mentions(iname));
    let bound = |c: &Constraint| match c {
        Constraint::NonNegative(e) => {
            let a = e.coefficient(&Atom::Iname(iname));
            let rest = e.minus(&Affine::iname(iname).times(a));
            (a.abs() == 1 && !rest.mentions(iname)).then_some((a, rest))
        }
        Constraint::Zero(_) => None,
    };
    let bounds: Vec<_> = of_iname.iter().map(bound).collect::<Option<_>>()?;
    let ends = [1, -1].iter().all(|a| bounds.iter().any(|(b, _)| a == b));
    ends.then_some(Bounds { bounds, guard })
}

/// Position of `outer` in a reduction that has `inner` directly after it.
fn neighbours_in(e: &Expr, outer: InameId, inner: InameId) -> Option<usize> {
    let Expr::Reduce(r) = e else { return None };
    r.inames.windows(2).position(|pair| pair == [outer, inner])
}

/// Lets the joined loop stand where the two loops, or those of a reduction, stood.
fn put_in_place(kernel: &mut Kernel, outer: InameId, inner: InameId, joined: InameId) {
    if loop_body(&kernel.body, outer).is_some() {
        replace_loop(&mut kernel.body, outer, &mut |mut body| {
            let inside = match body.pop() {
                Some(Node::Loop(_, inside)) => inside,
                Some(Node::Insn(_)) | None => Vec::new(), // not met: the nest is perfect
            };
            vec![Node::Loop(joined, inside)]
        });
        return;
    }
    let mut rewrite = |e: Expr| match (neighbours_in(&e, outer, inner), e) {
        (Some(k), Expr::Reduce(mut r)) => {
            r.inames.splice(k..=k + 1, [joined]);
            Expr::Reduce(r)
        }
        (_, e) => e,
    };
    for insn in kernel.insns.values_mut() {
        insn.map_expressions(&mut rewrite);
    }
}
