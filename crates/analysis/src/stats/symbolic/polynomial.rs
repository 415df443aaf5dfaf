//! Polynomials in loops, parameters and floors of parameters, with rational coefficients.
//!
//! Every operation is exact; none is what exceeds 128 bits.

use kingpost_ir::affine::{Affine, Atom};
use std::collections::BTreeMap;

/// A quotient in lowest terms, with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ratio {
    pub(super) numerator: i128,
    pub(super) denominator: i128,
}

impl Ratio {
    pub(super) const ONE: Self = Self::whole(1);

    pub(super) const fn whole(numerator: i128) -> Self {
        Self { numerator, denominator: 1 }
    }

    fn new(numerator: i128, denominator: i128) -> Option<Self> {
        let common = gcd(numerator, denominator);
        let (n, d) = (numerator.checked_div(common)?, denominator.checked_div(common)?);
        Some(if d < 0 {
            Self { numerator: n.checked_neg()?, denominator: d.checked_neg()? }
        } else {
            Self { numerator: n, denominator: d }
        })
    }

    fn plus(self, other: Self) -> Option<Self> {
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Self::new(left.checked_add(right)?, self.denominator.checked_mul(other.denominator)?)
    }

    fn times(self, other: Self) -> Option<Self> {
        let numerator = self.numerator.checked_mul(other.numerator)?;
        Self::new(numerator, self.denominator.checked_mul(other.denominator)?)
    }
}

/// The largest common divisor, at least 1.
pub(super) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i128::try_from(a).map_or(1, |g| g.max(1))
}

/// Powers of atoms, sorted by atom, none to the power 0.
pub(super) type Monomial = Vec<(Atom, u32)>;

/// A sum of monomials with coefficients, none of which is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Polynomial {
    terms: BTreeMap<Monomial, Ratio>,
}

impl Polynomial {
    pub(super) fn constant(value: Ratio) -> Self {
        let mut result = Self::default();
        if value.numerator != 0 {
            result.terms.insert(Vec::new(), value);
        }
        result
    }

    pub(super) fn of_affine(e: &Affine) -> Self {
        let mut result = Self::constant(Ratio::whole(e.constant_term().into()));
        for (atom, c) in e.terms() {
            result.terms.insert(vec![(atom.clone(), 1)], Ratio::whole((*c).into()));
        }
        result
    }

    pub(super) fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    pub(super) fn terms(&self) -> impl DoubleEndedIterator<Item = (&Monomial, Ratio)> {
        self.terms.iter().map(|(monomial, c)| (monomial, *c))
    }

    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let mut result = self.clone();
        for (monomial, c) in &other.terms {
            result.add(monomial.clone(), *c)?;
        }
        Some(result)
    }

    fn add(&mut self, monomial: Monomial, c: Ratio) -> Option<()> {
        let sum = match self.terms.get(&monomial) {
            Some(own) => own.plus(c)?,
            None => c,
        };
        if sum.numerator == 0 {
            self.terms.remove(&monomial);
        } else {
            self.terms.insert(monomial, sum);
        }
        Some(())
    }

    pub(super) fn scaled(&self, factor: Ratio) -> Option<Self> {
        self.times(&Self::constant(factor))
    }

    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        let mut result = Self::default();
        for (a, x) in &self.terms {
            for (b, y) in &other.terms {
                result.add(product(a, b), x.times(*y)?)?;
            }
        }
        Some(result)
    }

    /// The coefficients of the powers of an atom, from power 0 on.
    fn powers_of(&self, atom: &Atom) -> Vec<Self> {
        let mut powers = Vec::new();
        for (monomial, c) in &self.terms {
            let power = monomial.iter().find(|(a, _)| a == atom).map_or(0, |(_, p)| *p as usize);
            if powers.len() <= power {
                powers.resize(power + 1, Self::default());
            }
            let rest = monomial.iter().filter(|(a, _)| a != atom).cloned().collect();
            powers[power].terms.insert(rest, *c);
        }
        powers
    }

    /// The polynomial with a value for an atom.
    pub(super) fn with(&self, atom: &Atom, value: &Self) -> Option<Self> {
        compose(&self.powers_of(atom), value)
    }

    /// The sum over the whole numbers from `lo` to `hi` instead of an atom, where `lo - 1 <= hi`.
    ///
    /// # Source
    /// Faulhaber's formula: with `S_k(m)` the sum of the powers `0^k + … + m^k`, a polynomial,
    /// `S_k(m) - S_k(m - 1) = m^k` for all whole `m`, so that the sum is `S_k(hi) - S_k(lo - 1)`.
    pub(super) fn summed(&self, atom: &Atom, lo: &Affine, hi: &Affine) -> Option<Self> {
        let (hi, before) = (Self::of_affine(hi), Self::of_affine(&lo.plus_constant(-1)));
        let coefficients = self.powers_of(atom);
        let sums = power_sums(coefficients.len())?;
        let mut result = Self::default();
        for (c, sum) in coefficients.iter().zip(&sums) {
            let sum: Vec<_> = sum.iter().map(|c| Self::constant(*c)).collect();
            let below = compose(&sum, &before)?.scaled(Ratio::whole(-1))?;
            result = result.plus(&compose(&sum, &hi)?.plus(&below)?.times(c)?)?;
        }
        Some(result)
    }

    /// The value, if every atom has one and it is whole.
    pub(super) fn eval(&self, value: &dyn Fn(&Atom) -> Option<i128>) -> Option<i128> {
        let mut sum = Ratio::whole(0);
        for (monomial, c) in &self.terms {
            let mut product = *c;
            for (atom, power) in monomial {
                let factor = Ratio::whole(value(atom)?);
                for _ in 0..*power {
                    product = product.times(factor)?;
                }
            }
            sum = sum.plus(product)?;
        }
        (sum.denominator == 1).then_some(sum.numerator)
    }
}

/// Horner's scheme.
fn compose(powers: &[Polynomial], value: &Polynomial) -> Option<Polynomial> {
    let mut result = Polynomial::default();
    for c in powers.iter().rev() {
        result = result.times(value)?.plus(c)?;
    }
    Some(result)
}

fn product(a: &Monomial, b: &Monomial) -> Monomial {
    let mut powers: BTreeMap<&Atom, u32> = BTreeMap::new();
    for (atom, power) in a.iter().chain(b) {
        *powers.entry(atom).or_default() += power;
    }
    powers.into_iter().map(|(atom, power)| (atom.clone(), power)).collect()
}

/// Coefficients of `S_k(m) = 0^k + … + m^k`, from power 0 on, for `k` below `n`.
///
/// `(m + 1)^(k + 1)` is the sum of `C(k + 1, j) S_j(m)` over `j` up to `k`.
fn power_sums(n: usize) -> Option<Vec<Vec<Ratio>>> {
    let mut sums: Vec<Vec<Ratio>> = Vec::with_capacity(n);
    for k in 0..n {
        let mut sum = binomials(k + 1)?;
        for (lower, c) in sums.iter().zip(binomials(k + 1)?) {
            for (own, other) in sum.iter_mut().zip(lower) {
                *own = own.plus(other.times(c)?.times(Ratio::whole(-1))?)?;
            }
        }
        let inverse = Ratio::new(1, k as i128 + 1)?;
        sums.push(sum.into_iter().map(|c| c.times(inverse)).collect::<Option<_>>()?);
    }
    Some(sums)
}

/// `C(n, j)` for `j` up to `n`.
fn binomials(n: usize) -> Option<Vec<Ratio>> {
    let mut row = vec![Ratio::ONE];
    for j in 0..n {
        let last = row[j];
        row.push(last.times(Ratio::new((n - j) as i128, j as i128 + 1)?)?);
    }
    Some(row)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_ir::ids::{Id, InameId};

    #[test]
    fn sums_of_powers_are_those_of_the_numbers() {
        let (i, j) = (InameId::from_index(0), InameId::from_index(1));
        let one = Polynomial::constant(Ratio::ONE);
        for power in 0..7 {
            let x = Polynomial::of_affine(&Affine::iname(i));
            let p = (0..power).fold(one.clone(), |p, _| p.times(&x).unwrap());
            let sum = p.summed(&Atom::Iname(i), &Affine::constant(-3), &Affine::iname(j)).unwrap();
            for hi in -4..9_i128 {
                let wanted = (-3..=hi).map(|x| x.pow(power)).sum();
                assert_eq!(sum.eval(&|_| Some(hi)), Some(wanted), "power {power} to {hi}");
            }
        }
    }
}
