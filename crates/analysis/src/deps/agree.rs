//! Loops that have one value at both ends of every pair, read off the indices without isl.
//!
//! Equal elements have equal indices, and an index such as `23*tile + 4*round + item` with
//! `item` in `0..4` and `4*round + item` in `0..23` is a number of mixed radix, whose digits are
//! equal if the numbers are.

use crate::polyhedral::{Polyhedral, bounds_of};
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::ids::InameId;
use std::borrow::Cow;

type Terms = Vec<(Atom, i64)>;

/// Two values that are equal: at the source, and at the sink.
pub type Same<'a> = (Cow<'a, Affine>, Cow<'a, Affine>);

/// Pairs `(i, j)` for which `i` at the source equals `j` at the sink wherever the values of `same`
/// are equal.
///
/// Formula: from `c*i + l = c*j + m` and `|l - m| < |c|` follow `i = j` and `l = m`; the ranges of
/// `l` and `m` are those that the constant bounds of their loops leave.
pub fn agreeing(poly: &Polyhedral, same: &[Same]) -> Vec<(InameId, InameId)> {
    let mut known: Vec<(Atom, Atom)> = Vec::new();
    // What one axis tells may settle terms of another: as often as there are axes.
    for _ in same {
        let before = known.len();
        for (x, y) in same {
            split(poly, x, y, &mut known);
        }
        if known.len() == before {
            break;
        }
    }
    let inames = |pair: (Atom, Atom)| match pair {
        (Atom::Iname(i), Atom::Iname(j)) => Some((i, j)),
        (Atom::Iname(_) | Atom::Var(_) | Atom::Floor(..), _) => None,
    };
    known.into_iter().filter_map(inames).collect()
}

/// Takes two equal values apart, digit by digit.
fn split(poly: &Polyhedral, x: &Affine, y: &Affine, known: &mut Vec<(Atom, Atom)>) {
    if x.constant_term() != y.constant_term() {
        return;
    }
    if let ([(a, c)], [(b, d)]) = (x.terms(), y.terms()) {
        if c == d && !are_equal(a, b, known) {
            learn(a, b, known);
        }
        return;
    }
    let (mut x, mut y) = unsettled(x, y, known);
    let by_weight = |terms: &mut Terms| terms.sort_by_key(|(_, c)| c.unsigned_abs());
    by_weight(&mut x);
    by_weight(&mut y);
    while let (Some((a, c)), Some((b, d))) = (x.pop(), y.pop()) {
        let (Some(low), Some(high)) = (bounds(poly, &x), bounds(poly, &y)) else { return };
        let width = (low.1 - high.0).max(high.1 - low.0);
        if c != d || width >= i128::from(c).abs() {
            return;
        }
        learn(&a, &b, known);
    }
}

/// The terms of both sides less those that are known to be equal. Symbols are: they keep their
/// value.
fn unsettled(x: &Affine, y: &Affine, known: &[(Atom, Atom)]) -> (Terms, Terms) {
    let (mut left, mut right): (Terms, Terms) = (Vec::new(), y.terms().to_vec());
    for (a, c) in x.terms() {
        match right.iter().position(|(b, d)| c == d && are_equal(a, b, known)) {
            Some(k) => drop(right.remove(k)),
            None => left.push((a.clone(), *c)),
        }
    }
    (left, right)
}

fn learn(a: &Atom, b: &Atom, known: &mut Vec<(Atom, Atom)>) {
    if !known.iter().any(|(p, q)| p == a && q == b) {
        known.push((a.clone(), b.clone()));
    }
}

/// Whether an atom at the source is known to equal one at the sink.
fn are_equal(a: &Atom, b: &Atom, known: &[(Atom, Atom)]) -> bool {
    match (a, b) {
        (Atom::Var(v), Atom::Var(w)) => v == w,
        _ => known.iter().any(|(p, q)| p == a && q == b),
    }
}

/// Smallest and largest value of a sum, as far as constant bounds tell.
pub fn bounds(poly: &Polyhedral, sum: &Terms) -> Option<(i128, i128)> {
    let (mut lo, mut hi) = (0i128, 0i128);
    for (atom, c) in sum {
        let Atom::Iname(i) = atom else { return None };
        let (first, last) = bounds_of(poly, *i, &[(atom.clone(), 1)]);
        let ends = [first?, last?].map(|end| i128::from(*c) * i128::from(end));
        lo += ends[0].min(ends[1]);
        hi += ends[0].max(ends[1]);
    }
    if sum.len() > 1 {
        // The bounds of an inner loop may limit the whole sum: `4*round + item < 23`.
        let mut sorted = sum.clone();
        sorted.sort();
        for (atom, _) in sum {
            let Atom::Iname(i) = atom else { return None };
            let (first, last) = bounds_of(poly, *i, &sorted);
            lo = first.map_or(lo, |f| lo.max(f.into()));
            hi = last.map_or(hi, |l| hi.min(l.into()));
        }
    }
    Some((lo, hi))
}

#[cfg(test)]
mod tests {
    use crate::Analysis;

    /// Pairs of loops known to agree in the flow from `s` to `r`.
    fn agreeing(loops: &str, written: &str, read: &str) -> String {
        let text = format!(
            "kernel k\nparam n: i32\nparam m: i32\narg y: f64[1000] out\narg b: f64[1000] out\n\n{}",
            loops
                .replace("WRITE", &format!("s: y[{written}] = 1.0"))
                .replace("READ", &format!("r: b[0] = y[{read}]"))
        );
        let kernel = kingpost_ir::text::parse(&text).expect("parses");
        let analysis = Analysis::of(&kernel);
        let all = analysis.dependences().expect("isl works");
        let flow = all.iter().find(|d| kernel.vars[d.var].name == "y" && d.carries_value()).expect("a flow");
        let mut found = Vec::new();
        for (i, source) in kernel.inames.iter() {
            let sinks = kernel.inames.iter().filter(|(j, _)| flow.agrees(i, *j));
            found.extend(sinks.map(|(_, sink)| format!("{}={}", source.name, sink.name)));
        }
        found.join(" ")
    }

    const NESTS: &str =
        "for i in 0..9\n  for j in 0..4\n    WRITE\nfor p in 0..9\n  for q in 0..4\n    READ\n";

    #[test]
    fn digits_of_equal_numbers_are_equal() {
        assert_eq!(agreeing(NESTS, "4*i + j", "4*p + q"), "i=p j=q");
        assert_eq!(agreeing(NESTS, "4*i + j + n", "4*p + q + n"), "i=p j=q");
        assert_eq!(agreeing(NESTS, "50 - 5*i - j", "50 - 5*p - q"), "i=p j=q");
    }

    #[test]
    fn digits_that_overlap_tell_nothing() {
        assert_eq!(agreeing(NESTS, "3*i + j", "3*p + q"), "");
        assert_eq!(agreeing(NESTS, "4*i + j", "4*p + q + 1"), "");
        assert_eq!(agreeing(NESTS, "4*i + j", "5*p + q"), "");
        assert_eq!(agreeing(NESTS, "4*i + j + n", "4*p + q + m"), "");
    }

    #[test]
    fn inner_bounds_limit_the_sum() {
        let nests = "for t in 0..3\n  for i in 0..6\n    for j in 0..min(4, 23 - 4*i)\n      WRITE\n\
                     for u in 0..3\n  for p in 0..6\n    for q in 0..min(4, 23 - 4*p)\n      READ\n";
        assert_eq!(agreeing(nests, "23*t + 4*i + j", "23*u + 4*p + q"), "t=u i=p j=q");
        assert_eq!(agreeing(nests, "22*t + 4*i + j", "22*u + 4*p + q"), "");
    }
}
