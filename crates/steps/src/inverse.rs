//! The inverse of an affine map.

use kingpost_ir::affine::gcd;
use kingpost_ir::{Affine, Atom, InameId};

/// The values of loops `old` from the values of new loops, each of which is a quasi-affine `row` of
/// them and of what is around.
///
/// Formula: Gauss–Jordan elimination of the equations `row - new = 0`. Floors of `old` loops are
/// unknowns of their own. An unknown that is alone with what is known is `a*x + k = 0`, so that
/// `x = floor(-k/a)` wherever it has a value at all.
///
/// `None` if the equations do not decide every loop, or for coefficients beyond 2^40.
#[must_use]
pub fn preimage(rows: &[(InameId, Affine)], old: &[InameId]) -> Option<Vec<Affine>> {
    let is_old = |i: InameId| old.contains(&i);
    let mut open: Vec<Affine> = rows.iter().map(|(new, row)| row.minus(&Affine::iname(*new))).collect();
    let mut solved: Vec<(Atom, Affine)> = Vec::new();
    // the smallest coefficient first: what has coefficient 1 leaves no quotients
    while let Some((at, atom, factor)) = pivot(&open, &is_old) {
        let equation = open.remove(at);
        let with_one = |e: &Affine| without(e, &equation, &atom, factor);
        open = open.iter().map(with_one).collect::<Option<_>>()?;
        solved = solved.into_iter().map(|(x, e)| Some((x, with_one(&e)?))).collect::<Option<_>>()?;
        solved.push((atom, equation));
    }
    let value = |iname: &InameId| {
        let atom = Atom::Iname(*iname);
        let (_, equation) = solved.iter().find(|(x, _)| *x == atom)?;
        let factor = equation.coefficient(&atom);
        let known = equation.minus(&Affine::iname(*iname).times(factor));
        let (unknown, _) = known.split(&is_old);
        let value = known.times(-factor.signum()).floor_div(factor.abs());
        unknown.terms().is_empty().then_some(value)
    };
    old.iter().map(value).collect()
}

/// The unknown with the smallest coefficient: its equation, itself, the coefficient.
fn pivot(open: &[Affine], is_old: &dyn Fn(InameId) -> bool) -> Option<(usize, Atom, i64)> {
    let unknowns = open.iter().enumerate().flat_map(|(k, e)| {
        let (unknown, _) = e.split(is_old);
        unknown.terms().iter().map(|(atom, c)| (k, atom.clone(), *c)).collect::<Vec<_>>()
    });
    unknowns.min_by_key(|(k, _, c)| (c.unsigned_abs(), *k))
}

/// An equation without an unknown, which another one has with coefficient `factor`.
fn without(e: &Affine, other: &Affine, atom: &Atom, factor: i64) -> Option<Affine> {
    let c = e.coefficient(atom);
    if c == 0 {
        return Some(e.clone());
    }
    let common = gcd(c, factor);
    let sum = e.times(factor / common).minus(&other.times(c / common));
    sum.in_bounds().then_some(sum)
}
