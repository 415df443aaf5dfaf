//! Quotients and remainders of flat positions, without those that the lengths of the loops make
//! needless.

use kingpost_ir::affine::gcd;
use kingpost_ir::{Affine, Atom, InameId, Kernel};

/// Loops that count from zero, with their lengths.
#[derive(Clone, Debug, Default)]
pub struct Sizes(Vec<(InameId, i64)>);

impl Sizes {
    /// The sizes of some loops that are plain ranges of constant length.
    pub fn of(kernel: &Kernel, inames: &[InameId]) -> Self {
        let size = |i: &InameId| {
            let (lo, hi) = kernel.inames[*i].domain.as_range(*i)?;
            (lo.as_constant() == Some(0)).then_some((*i, hi.as_constant()?))
        };
        Self(inames.iter().filter_map(size).collect())
    }

    /// `floor(e/d)`: with `m < 4` and `l < 32`, that of `32*m + l` is `m` for 32 and `floor(m/2)`
    /// for 64.
    pub fn quotient(&self, e: &Affine, d: i64) -> Affine {
        let divisors = e.terms().iter().map(|(_, c)| gcd(*c, d)).filter(|g| *g > 1);
        // floor((g*m + r)/d) is floor(m/(d/g)) for 0 <= r < g
        let high = std::iter::once(d).chain(divisors).find_map(|g| Some((self.high_part(e, g)?, d / g)));
        match high {
            Some((high, 1)) => high,
            Some((high, d)) => self.quotient(&high, d),
            None => e.floor_div(d),
        }
    }

    /// `e mod d`.
    pub fn remainder(&self, e: &Affine, d: i64) -> Affine {
        e.minus(&self.quotient(e, d).times(d))
    }

    /// `m` if `e` is `g*m + r` with `0 <= r < g`, every term in one of them.
    fn high_part(&self, e: &Affine, g: i64) -> Option<Affine> {
        let mut high = Affine::constant(e.constant_term().div_euclid(g));
        let mut most = e.constant_term().rem_euclid(g);
        for (atom, c) in e.terms() {
            let Atom::Iname(i) = atom else { return None };
            if c % g == 0 {
                high = high.plus(&Affine::iname(*i).times(c / g));
            } else {
                let (_, size) = self.0.iter().find(|(known, _)| known == i)?;
                most = most.checked_add((*c > 0).then(|| c.checked_mul(size - 1))??)?;
            }
        }
        (most < g).then_some(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kingpost_ir::Id;

    #[test]
    fn quotients_of_flat_positions_agree_with_integers() {
        let [m, l] = [0, 1].map(InameId::from_index);
        for (rows, columns) in [(4, 32), (3, 8), (2, 6), (5, 1), (1, 12)] {
            let sizes = Sizes(vec![(m, rows), (l, columns)]);
            let position = Affine::iname(m).times(columns).plus(&Affine::iname(l));
            for d in 1..70 {
                let (q, r) = (sizes.quotient(&position, d), sizes.remainder(&position, d));
                for (a, b) in (0..rows).flat_map(|a| (0..columns).map(move |b| (a, b))) {
                    let value = |e: &Affine| e.eval(&mut |x| Some(if *x == Atom::Iname(m) { a } else { b }));
                    let p = columns * a + b;
                    assert_eq!((value(&q), value(&r)), (Some(p / d), Some(p % d)), "{p} by {d}");
                }
            }
        }
    }

    #[test]
    fn positions_of_whole_rows_need_no_quotient() {
        let [m, l] = [0, 1].map(InameId::from_index);
        let sizes = Sizes(vec![(m, 32), (l, 32)]);
        let position = Affine::iname(m).times(32).plus(&Affine::iname(l));
        assert_eq!(sizes.quotient(&position, 32), Affine::iname(m));
        assert_eq!(sizes.remainder(&position, 32), Affine::iname(l));
    }
}
