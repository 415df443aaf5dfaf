//! Extremes by intervals that a concrete point attains: the usual box, decided without isl.
//!
//! An interval bound holds for every point of the loops, and a point that satisfies all constraints
//! and reaches it shows that it is the best one. What neither decides is left to isl.

use kingpost_analysis::polyhedral::{Polyhedral, is_symbol};
use kingpost_ir::{Affine, Assumption, Atom, Constraint, InameId};
use std::collections::BTreeMap;

/// Values of the symbols that are tried: large, so that no block is partial; then some, and one.
const SYMBOLS: [i64; 3] = [1 << 20, 64, 1];

/// Smallest and largest value of `e` over the points of `loops` (outer first) and all values of the
/// symbols. `None`: not decided.
pub fn bounds(poly: &Polyhedral, e: &Affine, loops: &[InameId]) -> Option<(i64, i64)> {
    let (mut low, mut high) = (e.constant_term(), e.constant_term());
    let (mut at_low, mut at_high) = (BTreeMap::new(), BTreeMap::new());
    for (atom, c) in e.terms() {
        let Atom::Iname(i) = atom else { return None };
        let (Some(first), Some(last)) = constant_bounds(poly, *i) else { return None };
        let (min, max) = if *c > 0 { (first, last) } else { (last, first) };
        low = low.checked_add(c.checked_mul(min)?)?;
        high = high.checked_add(c.checked_mul(max)?)?;
        at_low.insert(*i, min);
        at_high.insert(*i, max);
    }
    let attained = |fixed| SYMBOLS.iter().any(|n| point(poly, loops, fixed, *n).is_some());
    (attained(&at_low) && attained(&at_high)).then_some((low, high))
}

/// Whether `loops` surely have a point, for some values of the symbols. `false`: not decided.
pub(crate) fn has_point(poly: &Polyhedral, loops: &[InameId]) -> bool {
    SYMBOLS.iter().any(|n| point(poly, loops, &BTreeMap::new(), *n).is_some())
}

/// Whether a constraint holds at some point of `loops`. `None`: not decided.
pub fn reachable(poly: &Polyhedral, loops: &[InameId], c: &Constraint) -> Option<bool> {
    if let Constraint::NonNegative(e) = c
        && greatest(poly, e).is_some_and(|most| most < 0)
    {
        return Some(false);
    }
    let at = |n: &i64| {
        let found = point(poly, loops, &BTreeMap::new(), *n)?;
        holds(poly, c, &found, *n)
    };
    SYMBOLS.iter().any(|n| at(n) == Some(true)).then_some(true)
}

/// An upper bound of an expression by the constant bounds of the inames in it.
fn greatest(poly: &Polyhedral, e: &Affine) -> Option<i64> {
    e.terms().iter().try_fold(e.constant_term(), |sum, (atom, c)| {
        let Atom::Iname(i) = atom else { return None };
        let (first, last) = constant_bounds(poly, *i);
        sum.checked_add(c.checked_mul(if *c > 0 { last? } else { first? })?)
    })
}

/// First and last value of a loop, where constants bound it.
fn constant_bounds(poly: &Polyhedral, iname: InameId) -> (Option<i64>, Option<i64>) {
    let (mut first, mut last): (Option<i64>, Option<i64>) = (None, None);
    for (c, rest) in limits(poly, iname) {
        let Some(rest) = rest.as_constant() else { continue };
        let bound = rest.div_euclid(c.saturating_abs());
        if c > 0 {
            first = Some(first.map_or(-bound, |f| f.max(-bound)));
        } else {
            last = Some(last.map_or(bound, |l| l.min(bound)));
        }
    }
    (first, last)
}

/// The `(c, rest)` with `c*iname + rest >= 0` in a domain that is one conjunction.
fn limits(poly: &Polyhedral, iname: InameId) -> impl Iterator<Item = (i64, Affine)> {
    // default: of several conjunctions none alone limits the loop
    let constraints = poly.kernel.inames[iname].domain.as_conjunction().unwrap_or_default();
    constraints.iter().filter_map(move |constraint| {
        let Constraint::NonNegative(e) = constraint else { return None };
        let c = e.coefficient(&Atom::Iname(iname));
        let rest = e.minus(&Affine::iname(iname).times(c));
        (c != 0 && !rest.mentions(iname)).then_some((c, rest))
    })
}

/// A point of the loops with some values given and the others as small as they can be, all symbols
/// being `n`.
fn point(
    poly: &Polyhedral,
    loops: &[InameId],
    fixed: &BTreeMap<InameId, i64>,
    n: i64,
) -> Option<BTreeMap<InameId, i64>> {
    let mut values = BTreeMap::new();
    let assumed = poly.kernel.assumptions.iter().all(|a| match a {
        Assumption::Params(c) => holds(poly, c, &values, n) == Some(true),
        Assumption::Defined(..) => false, // not all parameters are `n` then
        Assumption::Injective(_)
        | Assumption::Ascending(_)
        | Assumption::Outside(_)
        | Assumption::Symmetric(_)
        | Assumption::Lists(_) => true,
    });
    if !assumed {
        return None;
    }
    for iname in loops {
        let value = match fixed.get(iname) {
            Some(value) => *value,
            None => lowest(poly, *iname, &values, n)?,
        };
        values.insert(*iname, value);
        let domain = poly.kernel.inames[*iname].domain.as_conjunction()?;
        if !domain.iter().all(|c| holds(poly, c, &values, n) == Some(true)) {
            return None;
        }
    }
    Some(values)
}

/// The largest lower bound of a loop, given the loops around it.
fn lowest(poly: &Polyhedral, iname: InameId, around: &BTreeMap<InameId, i64>, n: i64) -> Option<i64> {
    let lower = limits(poly, iname).filter(|(c, _)| *c > 0);
    let bounds = lower.map(|(c, rest)| Some(-value(poly, &rest, around, n)?.div_euclid(c)));
    bounds.collect::<Option<Vec<i64>>>()?.into_iter().max()
}

fn value(poly: &Polyhedral, e: &Affine, values: &BTreeMap<InameId, i64>, n: i64) -> Option<i64> {
    e.eval(&mut |atom| match atom {
        Atom::Iname(i) => values.get(i).copied(),
        Atom::Var(v) => is_symbol(&poly.kernel, *v).then_some(n),
        Atom::Floor(..) => None,
    })
}

fn holds(poly: &Polyhedral, c: &Constraint, values: &BTreeMap<InameId, i64>, n: i64) -> Option<bool> {
    Some(match c {
        Constraint::Zero(e) => value(poly, e, values, n)? == 0,
        Constraint::NonNegative(e) => value(poly, e, values, n)? >= 0,
    })
}
