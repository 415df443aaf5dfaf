//! Boolean combinations of quasi-affine constraints, and what they are over a box.
//!
//! Dimensions are inames; the axes of an array take ids after those of the kernel.

use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::{Constraint, Domain};
use kingpost_ir::ids::InameId;
use std::collections::BTreeSet;

/// A set of integer points.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Formula {
    /// One constraint holds.
    Atom(Constraint),
    /// All hold; true if there are none.
    All(Vec<Formula>),
    /// At least one holds; false if there are none.
    Any(Vec<Formula>),
}

impl Formula {
    pub(super) const TRUE: Self = Self::All(Vec::new());
    pub(super) const FALSE: Self = Self::Any(Vec::new());

    pub(super) fn of_domain(domain: &Domain) -> Self {
        Self::of_disjuncts(domain.disjuncts())
    }

    pub(super) fn of_disjuncts(disjuncts: &[Vec<Constraint>]) -> Self {
        let conjunction = |d: &Vec<Constraint>| Self::all(d.iter().cloned().map(Self::Atom));
        Self::any(disjuncts.iter().map(conjunction))
    }

    /// The conjunction, flattened.
    pub(super) fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::All(inner) => flat.extend(inner),
                Self::Any(inner) if inner.is_empty() => return Self::FALSE,
                other @ (Self::Atom(_) | Self::Any(_)) => flat.push(other),
            }
        }
        if flat.len() == 1 { flat.remove(0) } else { Self::All(flat) }
    }

    /// The disjunction, flattened.
    pub(super) fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::Any(inner) => flat.extend(inner),
                Self::All(inner) if inner.is_empty() => return Self::TRUE,
                other @ (Self::Atom(_) | Self::All(_)) => flat.push(other),
            }
        }
        if flat.len() == 1 { flat.remove(0) } else { Self::Any(flat) }
    }

    /// The complement.
    pub(super) fn not(&self) -> Self {
        let zero = Affine::default();
        match self {
            Self::Atom(Constraint::NonNegative(e)) => Self::Atom(Constraint::lt(e, &zero)),
            Self::Atom(Constraint::Zero(e)) => {
                Self::Any(vec![Self::Atom(Constraint::lt(e, &zero)), Self::Atom(Constraint::lt(&zero, e))])
            }
            Self::All(parts) => Self::any(parts.iter().map(Self::not)),
            Self::Any(parts) => Self::all(parts.iter().map(Self::not)),
        }
    }

    /// The conjuncts.
    pub(super) fn into_conjuncts(self) -> Vec<Self> {
        match self {
            Self::All(parts) => parts,
            other @ (Self::Atom(_) | Self::Any(_)) => vec![other],
        }
    }

    pub(super) fn substitute(&self, replace: &dyn Fn(&Atom) -> Option<Affine>) -> Self {
        match self {
            Self::Atom(c) => Self::Atom(c.substitute(replace)),
            Self::All(parts) => Self::all(parts.iter().map(|p| p.substitute(replace))),
            Self::Any(parts) => Self::any(parts.iter().map(|p| p.substitute(replace))),
        }
    }

    /// Calls `visit` with every constraint.
    pub(super) fn for_each<'f>(&'f self, visit: &mut dyn FnMut(&'f Constraint)) {
        match self {
            Self::Atom(c) => visit(c),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|p| p.for_each(visit)),
        }
    }

    /// The dimensions it mentions.
    pub(super) fn dims(&self) -> BTreeSet<InameId> {
        let mut dims = BTreeSet::new();
        self.for_each(&mut |c| {
            c.expr().for_each_symbol(&mut |atom| {
                if let Atom::Iname(i) = atom {
                    dims.insert(*i);
                }
            });
        });
        dims
    }

    /// Whether a point belongs to the set.
    pub(super) fn holds(&self, value: &dyn Fn(InameId) -> i128) -> bool {
        match self {
            Self::Atom(c) => {
                let at = |dim| (value(dim), value(dim));
                decide(c, &at) == Some(true)
            }
            Self::All(parts) => parts.iter().all(|p| p.holds(value)),
            Self::Any(parts) => parts.iter().any(|p| p.holds(value)),
        }
    }

    /// An equal set inside the box, without the constraints that the box decides.
    pub(super) fn simplify(&self, region: &Region) -> Self {
        match self {
            Self::Atom(c) => match decide(c, &|dim| region.get(dim)) {
                Some(true) => Self::TRUE,
                Some(false) => Self::FALSE,
                None => self.clone(),
            },
            Self::All(parts) => Self::all(parts.iter().map(|p| p.simplify(region))),
            Self::Any(parts) => Self::any(parts.iter().map(|p| p.simplify(region))),
        }
    }
}

/// Whether a constraint holds everywhere (`Some(true)`) or nowhere (`Some(false)`) in a box.
fn decide(c: &Constraint, bounds: &dyn Fn(InameId) -> (i128, i128)) -> Option<bool> {
    let (lo, hi) = interval(c.expr(), bounds);
    match c {
        Constraint::NonNegative(_) if lo >= 0 => Some(true),
        Constraint::NonNegative(_) if hi < 0 => Some(false),
        Constraint::Zero(_) if lo == 0 && hi == 0 => Some(true),
        Constraint::Zero(_) if lo > 0 || hi < 0 => Some(false),
        Constraint::NonNegative(_) | Constraint::Zero(_) => None,
    }
}

/// Bounds of a quasi-affine value over a box; those of a variable are unknown, that is, wide.
fn interval(e: &Affine, bounds: &dyn Fn(InameId) -> (i128, i128)) -> (i128, i128) {
    let (mut lo, mut hi) = (i128::from(e.constant_term()), i128::from(e.constant_term()));
    for (atom, c) in e.terms() {
        let c = i128::from(*c);
        let (a, b) = match atom {
            Atom::Iname(i) => bounds(*i),
            Atom::Var(_) => (i128::from(i64::MIN), i128::from(i64::MAX)),
            Atom::Floor(numerator, d) => {
                let (a, b) = interval(numerator, bounds);
                (a.div_euclid(i128::from(*d)), b.div_euclid(i128::from(*d)))
            }
        };
        let (a, b) = if c > 0 { (a, b) } else { (b, a) };
        lo = lo.saturating_add(a.saturating_mul(c));
        hi = hi.saturating_add(b.saturating_mul(c));
    }
    (lo, hi)
}

/// A box: inclusive bounds of each dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Region {
    bounds: Vec<(InameId, i128, i128)>,
}

impl Region {
    pub(super) fn push(&mut self, dim: InameId, lo: i128, hi: i128) {
        self.bounds.push((dim, lo, hi));
    }

    pub(super) fn bounds(&self) -> &[(InameId, i128, i128)] {
        &self.bounds
    }

    /// Bounds of a dimension; one that is not there is taken as any 64-bit number.
    pub(super) fn get(&self, dim: InameId) -> (i128, i128) {
        let found = self.bounds.iter().find(|(d, ..)| *d == dim);
        found.map_or((i128::from(i64::MIN), i128::from(i64::MAX)), |(_, lo, hi)| (*lo, *hi))
    }

    pub(super) fn set(&mut self, dim: InameId, lo: i128, hi: i128) {
        for b in self.bounds.iter_mut().filter(|(d, ..)| *d == dim) {
            *b = (dim, lo, hi);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bounds.iter().any(|(_, lo, hi)| lo > hi)
    }

    pub(super) fn width(&self, dim: InameId) -> u128 {
        let (lo, hi) = self.get(dim);
        if lo > hi { 0 } else { (hi - lo) as u128 + 1 }
    }

    /// The part with these dimensions.
    pub(super) fn restricted(&self, dims: &BTreeSet<InameId>) -> Self {
        Self { bounds: self.bounds.iter().filter(|(d, ..)| dims.contains(d)).copied().collect() }
    }

    /// The bounds as constraints.
    pub(super) fn formula(&self) -> Formula {
        let clamp = |x: i128| Affine::constant(x.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        Formula::all(self.bounds.iter().flat_map(|(dim, lo, hi)| {
            let x = Affine::iname(*dim);
            [Constraint::le(&clamp(*lo), &x), Constraint::le(&x, &clamp(*hi))].map(Formula::Atom)
        }))
    }

    /// What a constraint that is linear in `dim` says about it, given the box of the others.
    pub(super) fn implied(&self, c: &Constraint, dim: InameId) -> (Option<i128>, Option<i128>) {
        let coefficient = c.expr().coefficient(&Atom::Iname(dim));
        let rest = c.expr().minus(&Affine::iname(dim).times(coefficient));
        if coefficient == 0 || rest.mentions(dim) {
            return (None, None);
        }
        let (least, most) = interval(&rest, &|d| self.get(d));
        let c_abs = i128::from(coefficient).abs();
        let floor = |x: i128| x.div_euclid(c_abs);
        let ceil = |x: i128| -((-x).div_euclid(c_abs));
        // c x + rest >= 0: x >= ceil(-rest / c) or x <= floor(rest / |c|), at the rest that allows
        // most
        match (c, coefficient > 0) {
            (Constraint::NonNegative(_), true) => (Some(ceil(-most)), None),
            (Constraint::NonNegative(_), false) => (None, Some(floor(most))),
            (Constraint::Zero(_), true) => (Some(ceil(-most)), Some(floor(-least))),
            (Constraint::Zero(_), false) => (Some(ceil(least)), Some(floor(most))),
        }
    }
}

/// A set of points, and whether it is the exact one, not a larger one.
pub(super) type Bound = (Formula, bool);
