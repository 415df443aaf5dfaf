//! What a quasi-affine integer is written as: remainders instead of differences with quotients, and
//! no quotient whose value or part the ranges tell.

use kingpost_ir::affine::gcd;
use kingpost_ir::{Affine, Atom};

/// What a coefficient stands before in code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Factor {
    Atom(Atom),
    /// `numerator mod divisor`.
    Remainder(Affine, i64),
}

impl Factor {
    /// It as an expression.
    pub(crate) fn to_affine(&self) -> Affine {
        match self {
            Self::Atom(a) => Affine::from(a),
            Self::Remainder(n, d) => n.modulo(*d),
        }
    }
}

/// Terms whose sum with the constant is `e`.
///
/// `k*n - k*d*floor(n/d)` is `k*(n mod d)`, also where `n` is a quotient itself, which flat
/// positions in a box give. `33*x - 131*floor(x/4)` is `33*(x mod 4) + floor(x/4)`.
pub(crate) fn factors(e: &Affine) -> (Vec<(Factor, i64)>, i64) {
    let mut rest = e.clone();
    let mut found = Vec::new();
    let quotients = quotients(e);
    for part in [exact_part, stride, exact_part] {
        for (floor, d) in &quotients {
            take_remainder(&mut rest, floor, *d, part, &mut found);
        }
    }
    let mut terms: Vec<_> = rest.terms().iter().map(|(a, c)| (Factor::Atom(a.clone()), *c)).collect();
    terms.extend(found);
    (terms, rest.constant_term())
}

/// The quotients among the terms, small divisors first: a larger one may be the quotient of a
/// smaller one.
fn quotients(e: &Affine) -> Vec<(Atom, i64)> {
    let mut found: Vec<(Atom, i64)> = e
        .terms()
        .iter()
        .filter_map(|(a, _)| match a {
            Atom::Floor(_, d) => Some((a.clone(), *d)),
            Atom::Iname(_) | Atom::Var(_) => None,
        })
        .collect();
    found.sort_by_key(|(_, d)| *d);
    found
}

/// How often `n mod d` is taken out of an expression with `floor`, which is `floor(n/d)`.
type Part = fn(rest: &Affine, floor: &Atom, n: &Affine, d: i64) -> Option<i64>;

/// Moves a remainder that `floor` is part of from `rest` to `found`, if there is one.
fn take_remainder(rest: &mut Affine, floor: &Atom, d: i64, part: Part, found: &mut Vec<(Factor, i64)>) {
    let Atom::Floor(numerator, _) = floor else { return };
    if rest.coefficient(floor) == 0 {
        return;
    }
    let is_floor = |(atom, _): &(Atom, i64)| matches!(atom, Atom::Floor(..)) && atom != floor;
    let others = rest.terms().iter().any(is_floor) || numerator.terms().iter().any(is_floor);
    // floor(n/d) is floor(floor(n/a) / (d/a)), which is a quotient itself for a > 1
    let divisors = if others { inner_divisors(d) } else { vec![1] };
    for a in divisors.into_iter().filter(|a| may_be_part(rest, floor, numerator, *a)) {
        let (n, d) = (numerator.floor_div(a), d / a);
        if n.coefficient(floor) != 0 || n.terms().is_empty() {
            continue;
        }
        if let Some(k) = part(rest, floor, &n, d) {
            *rest = rest.minus(&n.times(k)).plus(&Affine::from(floor).times(k.saturating_mul(d)));
            found.push((Factor::Remainder(n, d), k));
            return;
        }
    }
}

/// Whether the terms of `floor(numerator/a)` may be among those of `rest`, seen without the
/// division: what `a` does not divide is left as a quotient, which must be there too.
fn may_be_part(rest: &Affine, floor: &Atom, numerator: &Affine, a: i64) -> bool {
    let left = numerator.terms().iter().filter(|(_, c)| c % a != 0);
    let divisor = a / left.fold(a, |g, (_, c)| gcd(g, *c));
    let is_there =
        |(atom, _): &(Atom, i64)| matches!(atom, Atom::Floor(_, d) if *d == divisor) && atom != floor;
    // a quotient among the terms that `a` divides may cancel it
    let cancels = |(atom, c): &(Atom, i64)| c % a == 0 && matches!(atom, Atom::Floor(..));
    divisor == 1 || rest.terms().iter().any(is_there) || numerator.terms().iter().any(cancels)
}

/// As often as makes the quotient vanish, if `n` has that many.
fn exact_part(rest: &Affine, floor: &Atom, n: &Affine, d: i64) -> Option<i64> {
    let c = rest.coefficient(floor);
    (c % d == 0).then(|| -(c / d)).filter(|k| holds(rest, n, *k))
}

/// As often as `n` is there, if the rest is then a multiple of the quotient that reads better.
fn stride(rest: &Affine, floor: &Atom, n: &Affine, _: i64) -> Option<i64> {
    ratio(rest, n).filter(|k| is_stride(rest, floor, *k))
}

/// Larger divisors of a divisor are not tried: the axes of a box are shorter.
const MAX_INNER_DIVISOR: i64 = 1 << 12;

/// The divisors of `d` below it and below [`MAX_INNER_DIVISOR`], ascending: those up to its root,
/// then their cofactors.
fn inner_divisors(d: i64) -> Vec<i64> {
    let small: Vec<i64> = (1..MAX_INNER_DIVISOR).take_while(|a| *a <= d / a).filter(|a| d % a == 0).collect();
    let large: Vec<i64> = small.iter().rev().map(|a| d / a).filter(|b| *b > d / b).collect();
    small.into_iter().chain(large).take_while(|a| *a < d.min(MAX_INNER_DIVISOR)).collect()
}

/// Whether all of `k*n` is in `e`, perhaps with more of the same.
fn holds(e: &Affine, n: &Affine, k: i64) -> bool {
    n.terms().iter().all(|(a, c)| {
        let (have, want) = (e.coefficient(a), k.saturating_mul(*c));
        have.signum() == want.signum() && have.saturating_abs() >= want.saturating_abs()
    })
}

/// `k` if the terms of `n` stand in `e` just `k` times.
fn ratio(e: &Affine, n: &Affine) -> Option<i64> {
    let (first, c) = n.terms().first()?;
    let have = e.coefficient(first);
    let k = (have % c == 0).then_some(have / c)?;
    (k != 0 && n.terms().iter().all(|(a, c)| e.coefficient(a) == k.saturating_mul(*c))).then_some(k)
}

/// Whether `k*n + c*floor(n/d)` reads better as `k*(n mod d) + (c + k*d)*floor(n/d)`: `n` is a flat
/// position made of several indices, or the quotient is subtracted, or the quotient of the quotient
/// is.
fn is_stride(e: &Affine, floor: &Atom, k: i64) -> bool {
    let (Atom::Floor(numerator, d), c) = (floor, e.coefficient(floor)) else { return false };
    let opposite = |c: i64| c.signum() == -k.signum();
    let further = e.terms().iter().any(|(a, c)| match a {
        Atom::Floor(n, larger) => larger > d && larger % d == 0 && opposite(*c) && shares(n, numerator),
        Atom::Iname(_) | Atom::Var(_) => false,
    });
    let flat = numerator.terms().len() > 1;
    flat || further || (opposite(c) && c.saturating_abs() > k.saturating_abs())
}

fn shares(a: &Affine, b: &Affine) -> bool {
    b.terms().iter().any(|(atom, _)| a.coefficient(atom) != 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::interval::Interval;
    use kingpost_ir::{Id, InameId};

    /// A reproducible stream of numbers (SplitMix64), seeded by the clock.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: i64) -> i64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) % n.unsigned_abs()).cast_signed()
        }

        /// A sum of three indices, often with quotients and remainders of flat positions.
        fn expression(&mut self, depth: u32) -> Affine {
            let mut sum = Affine::constant(self.below(9) - 4);
            for k in 0..3 {
                let strides = [0, 1, 2, 4, 8, 32, -1, -4];
                let c = strides[self.below(strides.len() as i64) as usize];
                sum = sum.plus(&Affine::iname(InameId::from_index(k)).times(c));
            }
            for _ in 0..self.below(3) * i64::from(depth > 0) {
                let (n, d) = (self.expression(depth - 1), [2, 3, 4, 8, 12, 32][self.below(6) as usize]);
                let c = self.below(40) - 20;
                let part = if self.below(2) == 0 { n.floor_div(d) } else { n.modulo(d) };
                sum = sum.plus(&part.times(c));
            }
            sum
        }
    }

    #[test]
    fn inner_divisors_are_all_there_are() {
        for d in (1..200).chain([4095, 4096, 4097, 8192, 16_777_216, 30_030 * 17, i64::MAX]) {
            let expected: Vec<_> = (1..d.min(MAX_INNER_DIVISOR)).filter(|a| d % a == 0).collect();
            assert_eq!(inner_divisors(d), expected, "{d}");
        }
    }

    #[test]
    fn factors_and_simplified_quotients_keep_the_value() {
        let text = "kernel k\narg y: f64[9, 9, 9] out\n\nfor a in 0..9\n  for b in 0..9\n    for c in 0..9\n      s: y[a, b, c] = 1.0\n";
        let kernel = kingpost_ir::text::parse(text).unwrap();
        let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let mut random = Random(seed);
        for _ in 0..3000 {
            let mut env = Env::new(&kernel);
            let sizes = [0, 1, 2].map(|_| [1, 2, 3, 4, 8, 12, 32][random.below(7) as usize]);
            for (k, size) in sizes.iter().enumerate() {
                env.set_range(InameId::from_index(k), Interval::new(0, i128::from(size - 1)));
            }
            let e = random.expression(2);
            let (terms, constant) = factors(&e);
            let simple = env.simplified(&e);
            for _ in 0..8 {
                let point = sizes.map(|size| random.below(size));
                let value = |e: &Affine| {
                    let at = |a: &Atom| match a {
                        Atom::Iname(i) => Some(point[i.index()]),
                        Atom::Var(_) | Atom::Floor(..) => None,
                    };
                    e.eval(&mut |a| at(a)).unwrap()
                };
                let sum = terms.iter().fold(constant, |sum, (f, c)| sum + c * value(&f.to_affine()));
                let (expected, range) = (value(&e), env.range(&e));
                assert_eq!(sum, expected, "seed {seed}: {e:?} at {point:?}");
                assert_eq!(value(&simple), expected, "seed {seed}: {e:?} in {sizes:?} at {point:?}");
                assert!(range.lo <= expected.into() && range.hi >= expected.into(), "seed {seed}: {e:?}");
                for (f, _) in &terms {
                    let (v, range) = (i128::from(value(&f.to_affine())), env.factor_range(f));
                    assert!(range.lo <= v && v <= range.hi, "seed {seed}: {f:?}");
                }
            }
        }
    }
}
