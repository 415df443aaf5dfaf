//! Quasi-affine expressions: integer combinations of inames, integer scalars and floors.

use crate::ids::{InameId, VarId};
use crate::terms::Terms;
use serde::{Deserialize, Serialize};

/// Largest coefficient or constant a kernel may hold: sums and products of a few of them fit 64
/// bits.
///
/// Arithmetic on [`Affine`] saturates, and the verifier refuses what exceeds this bound, so that
/// overflow is an error and never a wrong answer.
pub const MAX_COEFFICIENT: i64 = 1 << 40;

/// Maximum number of terms of an expression, those inside floors included.
///
/// A remainder holds its operand twice, so nested ones double: what would grow beyond this is not
/// taken as affine.
pub const MAX_TERMS: usize = 1000;

/// What a coefficient stands before.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Atom {
    /// A loop variable.
    Iname(InameId),
    /// A parameter or a scalar integer temporary.
    Var(VarId),
    /// `floor(numerator / denominator)`, denominator at least 2.
    Floor(Box<Affine>, i64),
}

/// `constant + sum of coefficient * atom`, with the atoms sorted and no coefficient zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Affine {
    /// Atoms with their coefficients.
    terms: Terms<(Atom, i64)>,
    constant: i64,
}

impl Affine {
    /// A constant.
    pub fn constant(value: i64) -> Self {
        Self { terms: Terms::None, constant: value }
    }

    /// One iname.
    pub fn iname(iname: InameId) -> Self {
        Self { terms: Terms::One((Atom::Iname(iname), 1)), constant: 0 }
    }

    /// One parameter or scalar integer temporary.
    pub fn var(var: VarId) -> Self {
        Self { terms: Terms::One((Atom::Var(var), 1)), constant: 0 }
    }

    /// The terms, sorted by atom.
    pub fn terms(&self) -> &[(Atom, i64)] {
        self.terms.as_slice()
    }

    /// The constant term.
    pub fn constant_term(&self) -> i64 {
        self.constant
    }

    /// The value, if no atom occurs.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The iname, if the expression is just that.
    pub fn as_iname(&self) -> Option<InameId> {
        match self.terms.as_slice() {
            [(Atom::Iname(i), 1)] if self.constant == 0 => Some(*i),
            _ => None,
        }
    }

    /// Coefficient of a bare atom (occurrences inside floors do not count).
    pub fn coefficient(&self, atom: &Atom) -> i64 {
        match self.terms.binary_search_by(|(a, _)| a.cmp(atom)) {
            Ok(k) => self.terms[k].1,
            Err(_) => 0,
        }
    }

    /// `self + other`.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.plus_scaled(1, other)
    }

    /// `self - other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.plus_scaled(-1, other)
    }

    /// `self + factor * other`: both lists of terms are sorted, so that one pass merges them.
    fn plus_scaled(&self, factor: i64, other: &Self) -> Self {
        let constant = self.constant.saturating_add(other.constant.saturating_mul(factor));
        if other.terms.is_empty() {
            return Self { terms: self.terms.clone(), constant };
        }
        if self.terms.is_empty() && factor != 0 {
            return Self { constant, ..other.times(factor) };
        }
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let mut left = self.terms.iter().peekable();
        for (atom, c) in &other.terms {
            let mut sum = c.saturating_mul(factor);
            while let Some(term) = left.next_if(|(a, _)| a <= atom) {
                if term.0 == *atom {
                    sum = sum.saturating_add(term.1);
                } else {
                    terms.push(term.clone());
                }
            }
            if sum != 0 {
                terms.push((atom.clone(), sum));
            }
        }
        terms.extend(left.cloned());
        Self { terms: terms.into(), constant }
    }

    /// `self + value`.
    #[must_use]
    pub fn plus_constant(&self, value: i64) -> Self {
        Self { terms: self.terms.clone(), constant: self.constant.saturating_add(value) }
    }

    /// `factor * self`.
    #[must_use]
    pub fn times(&self, factor: i64) -> Self {
        if factor == 0 {
            return Self::default();
        }
        let terms = self.terms.iter().map(|(a, c)| (a.clone(), c.saturating_mul(factor))).collect();
        Self { terms, constant: self.constant.saturating_mul(factor) }
    }

    /// The coefficients divided by a positive common factor, the constant rounded down.
    #[must_use]
    pub(crate) fn divided(&self, common: i64) -> Self {
        let constant = self.constant.div_euclid(common);
        if self.terms.iter().any(|(a, _)| matches!(a, Atom::Floor(..))) {
            // what is built by hand may hold floors that arithmetic would not leave
            let divided = |(a, c): &(Atom, i64)| Self::from(a).times(c / common);
            return self.terms.iter().map(divided).fold(Self::constant(constant), |sum, e| sum.plus(&e));
        }
        Self { terms: self.terms.iter().map(|(a, c)| (a.clone(), c / common)).collect(), constant }
    }

    /// `floor(self / divisor)` for a positive divisor; exact multiples leave the floor.
    #[must_use]
    pub fn floor_div(&self, divisor: i64) -> Self {
        assert!(divisor > 0, "divisors are positive");
        if divisor <= 1 {
            return self.clone();
        }
        // floor((d*a + r) / d) = a + floor(r / d)
        let mut whole = Self::constant(self.constant.div_euclid(divisor));
        let mut rest = Self::constant(self.constant.rem_euclid(divisor));
        for (atom, c) in &self.terms {
            if c % divisor == 0 {
                whole.add_term(atom.clone(), c / divisor);
            } else {
                rest.add_term(atom.clone(), *c);
            }
        }
        if rest.terms.is_empty() {
            return whole; // the rest of the constant is below the divisor
        }
        // floor(g*r / (g*d)) = floor(r / d), and floor((g*x + c) / (g*d)) = floor((x + floor(c/g))
        // / d)
        let common = rest.terms.iter().fold(divisor, |g, (_, c)| gcd(g, *c));
        let numerator = Self {
            terms: rest.terms.iter().map(|(a, c)| (a.clone(), c / common)).collect(),
            constant: rest.constant.div_euclid(common),
        };
        let denominator = divisor / common;
        if denominator == 1 {
            return whole.plus(&numerator);
        }
        whole.add_term(Atom::Floor(Box::new(numerator), denominator), 1);
        whole
    }

    /// `self mod divisor`, between 0 and `divisor - 1`.
    #[must_use]
    pub fn modulo(&self, divisor: i64) -> Self {
        self.minus(&self.floor_div(divisor).times(divisor))
    }

    fn add_term(&mut self, atom: Atom, coefficient: i64) {
        if coefficient == 0 {
            return;
        }
        match self.terms.binary_search_by(|(a, _)| a.cmp(&atom)) {
            Ok(k) => {
                self.terms[k].1 = self.terms[k].1.saturating_add(coefficient);
                if self.terms[k].1 == 0 {
                    self.terms.remove(k);
                }
            }
            Err(k) => self.terms.insert(k, (atom, coefficient)),
        }
    }

    /// Replaces inames and variables, also inside floors, where `replace` gives something.
    #[must_use]
    pub fn substitute(&self, replace: &dyn Fn(&Atom) -> Option<Affine>) -> Self {
        let mut result = Self::constant(self.constant);
        for (atom, c) in &self.terms {
            let value = match atom {
                Atom::Iname(_) | Atom::Var(_) => replace(atom),
                Atom::Floor(numerator, d) => Some(numerator.substitute(replace).floor_div(*d)),
            };
            match value {
                Some(value) => result = result.plus_scaled(*c, &value),
                None => result.add_term(atom.clone(), *c),
            }
        }
        result
    }

    /// Calls `visit` with every iname and variable, also inside floors.
    pub fn for_each_symbol(&self, visit: &mut dyn FnMut(&Atom)) {
        for (atom, _) in &self.terms {
            match atom {
                Atom::Iname(_) | Atom::Var(_) => visit(atom),
                Atom::Floor(numerator, _) => numerator.for_each_symbol(visit),
            }
        }
    }

    /// Whether an iname or variable is what is looked for, also inside floors.
    pub fn any_symbol(&self, is: &mut dyn FnMut(&Atom) -> bool) -> bool {
        self.terms.iter().any(|(atom, _)| match atom {
            Atom::Iname(_) | Atom::Var(_) => is(atom),
            Atom::Floor(numerator, _) => numerator.any_symbol(is),
        })
    }

    /// Whether the iname occurs, also inside floors.
    pub fn mentions(&self, iname: InameId) -> bool {
        self.any_symbol(&mut |a| *a == Atom::Iname(iname))
    }

    /// The terms that mention an iname which `inside` accepts, and the rest with the constant.
    #[must_use]
    pub fn split(&self, inside: &dyn Fn(InameId) -> bool) -> (Self, Self) {
        let is_inner = |(atom, _): &&(Atom, i64)| match atom {
            Atom::Iname(i) => inside(*i),
            Atom::Var(_) => false,
            Atom::Floor(numerator, _) => {
                numerator.any_symbol(&mut |atom| matches!(atom, Atom::Iname(i) if inside(*i)))
            }
        };
        let inner = self.terms.iter().filter(is_inner).cloned().collect();
        let outer = self.terms.iter().filter(|term| !is_inner(term)).cloned().collect();
        (Self { terms: inner, constant: 0 }, Self { terms: outer, constant: self.constant })
    }

    /// The value when every symbol has one; `None` on overflow of 64 bits.
    pub fn eval(&self, value: &mut dyn FnMut(&Atom) -> Option<i64>) -> Option<i64> {
        let mut sum = self.constant;
        for (atom, c) in &self.terms {
            let v = match atom {
                Atom::Iname(_) | Atom::Var(_) => value(atom)?,
                Atom::Floor(numerator, d) => numerator.eval(value)?.div_euclid(*d),
            };
            sum = sum.checked_add(v.checked_mul(*c)?)?;
        }
        Some(sum)
    }

    /// Number of terms and constants, those inside floors included.
    pub fn size(&self) -> usize {
        let of = |atom: &Atom| match atom {
            Atom::Iname(_) | Atom::Var(_) => 1,
            Atom::Floor(numerator, _) => 1 + numerator.size(),
        };
        1 + self.terms.iter().map(|(atom, _)| of(atom)).sum::<usize>()
    }

    /// Whether every coefficient is at most [`MAX_COEFFICIENT`].
    pub fn in_bounds(&self) -> bool {
        let small = |c: i64| c.unsigned_abs() <= MAX_COEFFICIENT as u64;
        small(self.constant)
            && self.terms.iter().all(|(a, c)| {
                small(*c)
                    && match a {
                        Atom::Floor(numerator, d) => small(*d) && numerator.in_bounds(),
                        Atom::Iname(_) | Atom::Var(_) => true,
                    }
            })
    }
}

impl From<&Atom> for Affine {
    fn from(atom: &Atom) -> Self {
        match atom {
            Atom::Iname(i) => Self::iname(*i),
            Atom::Var(v) => Self::var(*v),
            Atom::Floor(n, d) => n.floor_div(*d),
        }
    }
}

/// Greatest common divisor, not negative; `gcd(0, b) = |b|`.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.min(i64::MAX as u64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    fn i() -> Affine {
        Affine::iname(InameId::from_index(0))
    }

    #[test]
    fn floor_of_exact_multiple_leaves_no_floor() {
        assert_eq!(i().times(4).plus_constant(3).floor_div(4), i());
        assert_eq!(i().times(6).plus_constant(5).floor_div(4), {
            // floor((6 i + 5)/4) = 1 + floor((6 i + 1)/4) = 1 + floor((3 i + 0)/2)
            i().times(3).floor_div(2).plus_constant(1)
        });
    }

    #[test]
    fn modulo_of_shifted_multiple_is_constant() {
        assert_eq!(i().times(8).plus_constant(5).modulo(4).as_constant(), Some(1));
    }

    #[test]
    fn floors_agree_with_integers() {
        for c in -7..7 {
            for k in -7..7 {
                for d in 1..6 {
                    let e = i().times(c).plus_constant(k).floor_div(d);
                    for v in -9..9_i64 {
                        assert_eq!(e.eval(&mut |_| Some(v)), Some((c * v + k).div_euclid(d)));
                    }
                }
            }
        }
    }
}
