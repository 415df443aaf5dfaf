//! Integer sets as plain data: disjunctions of conjunctions of quasi-affine constraints.

use crate::affine::{Affine, Atom, gcd};
use crate::ids::InameId;
use serde::{Deserialize, Serialize};

/// A quasi-affine constraint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Constraint {
    /// The expression is zero.
    Zero(Affine),
    /// The expression is not negative.
    NonNegative(Affine),
}

impl Constraint {
    /// `a <= b`.
    pub fn le(a: &Affine, b: &Affine) -> Self {
        Self::NonNegative(b.minus(a)).normalised()
    }

    /// `a < b`.
    pub fn lt(a: &Affine, b: &Affine) -> Self {
        Self::NonNegative(b.minus(a).plus_constant(-1)).normalised()
    }

    /// `a == b`.
    pub fn equal(a: &Affine, b: &Affine) -> Self {
        Self::Zero(a.minus(b)).normalised()
    }

    /// What is not negative where the constraint holds.
    #[must_use]
    pub fn not_negative(&self) -> Vec<Affine> {
        match self {
            Self::NonNegative(e) => vec![e.clone()],
            Self::Zero(e) => vec![e.clone(), e.times(-1)],
        }
    }

    /// The expression that is compared with zero.
    pub fn expr(&self) -> &Affine {
        match self {
            Self::Zero(e) | Self::NonNegative(e) => e,
        }
    }

    /// Whether the constraint holds, if it mentions no symbol.
    pub fn as_constant(&self) -> Option<bool> {
        match self {
            Self::Zero(e) => e.as_constant().map(|c| c == 0),
            Self::NonNegative(e) => e.as_constant().map(|c| c >= 0),
        }
    }

    /// Replaces symbols; see [`Affine::substitute`].
    #[must_use]
    pub fn substitute(&self, replace: &dyn Fn(&Atom) -> Option<Affine>) -> Self {
        match self {
            Self::Zero(e) => Self::Zero(e.substitute(replace)),
            Self::NonNegative(e) => Self::NonNegative(e.substitute(replace)),
        }
        .normalised()
    }

    /// Divides by the common factor of the coefficients (rounding the constant of an inequality
    /// down, which drops no integer point) and makes the first coefficient of an equality positive.
    #[must_use]
    pub fn normalised(self) -> Self {
        let common = self.expr().terms().iter().fold(0, |g, (_, c)| gcd(g, *c));
        match self {
            Self::NonNegative(e) if common > 1 => Self::NonNegative(e.divided(common)),
            Self::Zero(e) if !e.terms().is_empty() => {
                let sign = if e.terms()[0].1 < 0 { -1 } else { 1 };
                let e = e.times(sign);
                if common > 1 && e.constant_term() % common == 0 {
                    Self::Zero(e.divided(common))
                } else {
                    Self::Zero(e)
                }
            }
            other @ (Self::Zero(_) | Self::NonNegative(_)) => other,
        }
    }
}

/// A union of conjunctions, sorted and without repetition.
///
/// The domain of an iname constrains that iname in the context of the loops around it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Domain {
    disjuncts: Vec<Vec<Constraint>>,
}

impl Domain {
    /// Every integer point.
    pub fn universe() -> Self {
        Self { disjuncts: vec![Vec::new()] }
    }

    /// The points that satisfy all constraints.
    pub fn conjunction(constraints: impl IntoIterator<Item = Constraint>) -> Self {
        Self::union([constraints.into_iter().collect::<Vec<_>>()])
    }

    /// The points that satisfy all constraints of at least one disjunct.
    pub fn union(disjuncts: impl IntoIterator<Item = Vec<Constraint>>) -> Self {
        let mut all: Vec<_> = disjuncts.into_iter().filter_map(canonical_conjunction).collect();
        if all.iter().any(Vec::is_empty) {
            return Self::universe();
        }
        all.sort();
        all.dedup();
        Self { disjuncts: all }
    }

    /// `lo <= iname < hi`.
    pub fn range(iname: InameId, lo: &Affine, hi: &Affine) -> Self {
        let i = Affine::iname(iname);
        Self::conjunction([Constraint::le(lo, &i), Constraint::lt(&i, hi)])
    }

    /// The disjuncts; none means the empty set.
    pub fn disjuncts(&self) -> &[Vec<Constraint>] {
        &self.disjuncts
    }

    /// The constraints, if the set is one conjunction.
    pub fn as_conjunction(&self) -> Option<&[Constraint]> {
        match self.disjuncts.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// `Some((lo, hi))` if the set is exactly `lo <= iname < hi`, neither bound mentioning `iname`.
    pub fn as_range(&self, iname: InameId) -> Option<(Affine, Affine)> {
        let [a, b] = self.as_conjunction()? else { return None };
        let (mut lo, mut hi) = (None, None);
        for c in [a, b] {
            let Constraint::NonNegative(e) = c else { return None };
            let rest = e.minus(&Affine::iname(iname).times(e.coefficient(&Atom::Iname(iname))));
            if rest.mentions(iname) {
                return None;
            }
            match e.coefficient(&Atom::Iname(iname)) {
                1 => lo = Some(rest.times(-1)),
                -1 => hi = Some(rest.plus_constant(1)),
                _ => return None,
            }
        }
        Some((lo?, hi?))
    }

    /// The set as a range of `iname` under conditions that do not mention it, if it is one: exactly
    /// one lower and one upper bound, both with coefficient 1, and anything about loops around and
    /// parameters.
    pub fn as_guarded_range(&self, iname: InameId) -> Option<GuardedRange> {
        let (bounds, guard): (Vec<_>, Vec<_>) =
            self.as_conjunction()?.iter().cloned().partition(|c| c.expr().mentions(iname));
        let (lo, hi) = Self { disjuncts: vec![bounds] }.as_range(iname)?;
        Some(GuardedRange { lo, hi, guard })
    }

    /// Replaces symbols in every constraint.
    #[must_use]
    pub fn substitute(&self, replace: &dyn Fn(&Atom) -> Option<Affine>) -> Self {
        Self::union(self.disjuncts.iter().map(|d| d.iter().map(|c| c.substitute(replace)).collect()))
    }

    /// The points in both sets.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let pairs = self.disjuncts.iter().flat_map(|a| {
            other.disjuncts.iter().map(move |b| a.iter().chain(b).cloned().collect::<Vec<_>>())
        });
        Self::union(pairs)
    }

    /// Calls `visit` with every symbol of every constraint.
    pub fn for_each_symbol(&self, visit: &mut dyn FnMut(&Atom)) {
        for c in self.disjuncts.iter().flatten() {
            c.expr().for_each_symbol(visit);
        }
    }

    /// Whether a symbol of a constraint is what is looked for.
    pub fn any_symbol(&self, is: &mut dyn FnMut(&Atom) -> bool) -> bool {
        self.disjuncts.iter().flatten().any(|c| c.expr().any_symbol(is))
    }

    /// Whether the iname occurs.
    pub fn mentions(&self, iname: InameId) -> bool {
        self.disjuncts.iter().flatten().any(|c| c.expr().mentions(iname))
    }
}

/// `lo <= iname < hi` where all conditions of `guard` hold, else nothing; neither mentions the
/// iname.
///
/// Software pipelining makes such loops: what is fetched ahead is fetched where a later iteration
/// needs it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GuardedRange {
    /// The first value.
    pub lo: Affine,
    /// The value after the last one.
    pub hi: Affine,
    /// Conditions on loops around, parameters and scalars.
    pub guard: Vec<Constraint>,
}

impl GuardedRange {
    /// Number of values where the guard holds and `lo <= hi`.
    pub fn length(&self) -> Affine {
        self.hi.minus(&self.lo)
    }

    /// Another set of values under the same guard.
    #[must_use]
    pub fn guarded(&self, values: &Domain) -> Domain {
        values.intersect(&Domain::conjunction(self.guard.iter().cloned()))
    }
}

/// Sorted constraints without those that always hold; `None` if one never holds.
fn canonical_conjunction(mut constraints: Vec<Constraint>) -> Option<Vec<Constraint>> {
    if constraints.iter().any(|c| c.as_constant() == Some(false)) {
        return None;
    }
    constraints.retain(|c| c.as_constant().is_none());
    // the variants of `Constraint` are public: what is built by hand gets the form that all others
    // have
    let mut constraints: Vec<_> = constraints.into_iter().map(Constraint::normalised).collect();
    constraints.sort();
    constraints.dedup();
    Some(constraints)
}
