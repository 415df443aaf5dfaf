//! Quotients made simpler by what is known of ranges.

use crate::env::Env;
use kingpost_ir::affine::gcd;
use kingpost_ir::{Affine, Atom};

impl Env<'_> {
    /// The expression with its quotients simplified by what is known of ranges:
    /// `floor(l/32)` of `l < 32` is 0, `floor((32*m + l)/128)` is `floor(m/4)`,
    /// `floor(floor(x/4)/3)` is `floor(x/12)`.
    pub(crate) fn simplified(&self, e: &Affine) -> Affine {
        if !e.terms().iter().any(|(a, _)| matches!(a, Atom::Floor(..))) {
            return e.clone();
        }
        let constant = Affine::constant(e.constant_term());
        e.terms().iter().fold(constant, |sum, (atom, c)| match atom {
            Atom::Iname(_) | Atom::Var(_) => sum.plus(&Affine::from(atom).times(*c)),
            Atom::Floor(n, d) => sum.plus(&self.quotient(&self.simplified(n), *d).times(*c)),
        })
    }

    /// `floor(n/d)`, simplified.
    pub(crate) fn quotient(&self, n: &Affine, d: i64) -> Affine {
        let (whole, rest) = split(n, d);
        let floor = rest.floor_div(d);
        let simple = match floor.terms() {
            [(Atom::Floor(n, d), 1)] if floor.constant_term() == 0 => self.simpler(n, *d),
            _ => None,
        };
        whole.plus(&simple.unwrap_or(floor))
    }

    /// `floor(n/d)` without a quotient, or with a simpler one.
    fn simpler(&self, n: &Affine, d: i64) -> Option<Affine> {
        let range = self.range(n).floor_div(d);
        if range.lo == range.hi {
            return i64::try_from(range.lo).ok().map(Affine::constant);
        }
        for (_, c) in n.terms() {
            // floor((g*m + r)/d) is floor(m/(d/g)) for 0 <= r < g
            let g = gcd(*c, d);
            if g > 1
                && let Some(m) = self.without_low_part(n, g)
            {
                return Some(self.quotient(&m, d / g));
            }
        }
        // floor((floor(m/a) + r)/d) is floor((m + a*r)/(a*d))
        let inner = n.terms().iter().find_map(|(atom, c)| match atom {
            Atom::Floor(m, a) if *c == 1 => Some((atom, m, *a)),
            Atom::Floor(..) | Atom::Iname(_) | Atom::Var(_) => None,
        })?;
        let (atom, m, a) = inner;
        let flat = n.minus(&Affine::from(atom)).times(a).plus(m);
        let divisor = a.checked_mul(d)?;
        flat.in_bounds().then(|| self.quotient(&flat, divisor))
    }

    /// `m` if `n` is `g*m + r` with `0 <= r < g`.
    fn without_low_part(&self, n: &Affine, g: i64) -> Option<Affine> {
        let (high, low) = split(n, g);
        let range = self.range(&low);
        (range.lo >= 0 && range.hi < i128::from(g)).then_some(high)
    }
}

/// `(m, r)` with `n = g*m + r`: `m` takes every term that `g` divides.
fn split(n: &Affine, g: i64) -> (Affine, Affine) {
    let mut high = Affine::constant(n.constant_term().div_euclid(g));
    let mut low = Affine::constant(n.constant_term().rem_euclid(g));
    for (atom, c) in n.terms() {
        if c % g == 0 {
            high = high.plus(&Affine::from(atom).times(c / g));
        } else {
            low = low.plus(&Affine::from(atom).times(*c));
        }
    }
    (high, low)
}
