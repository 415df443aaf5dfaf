//! The number of points of a set in closed form: a sum of polynomials, each where its conditions hold.
//!
//! Dimensions are summed over one by one (Faulhaber's formula). Of several bounds of a dimension one is
//! the closest: each case is a piece. A bound may be a quotient that is rounded if it is one of
//! parameters; a floor of dimensions becomes a dimension of its own. The loops of a split are first joined
//! again. Where nothing helps there is no closed form by this method, and the reason is said.

use super::super::formula::Formula;
use super::polynomial::{Polynomial, Ratio};
use super::system::System;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::Constraint;
use kingpost_ir::elimination::implied;
use kingpost_ir::ids::{Id, InameId};
use kingpost_ir::kernel::Kernel;
use std::collections::{BTreeMap, BTreeSet};

/// Pieces looked at before a sum is given up (some seconds).
const LIMIT: usize = 4000;

/// Values of a condition below 0 at which a piece is tried for zero, so that the condition can go.
const TRIED: i64 = 4;

/// Polynomials by the conditions of parameters under which they count.
pub(super) type Pieces = BTreeMap<Vec<Constraint>, Polynomial>;

/// Why there is no closed form.
type Found<T> = Result<T, String>;

/// What is known of the parameters of a kernel, and how far a sum has come.
pub(super) struct Summation<'k> {
    kernel: &'k Kernel,
    /// What is not negative.
    known: Vec<Affine>,
    left: usize,
    /// Dimensions that stand for floors: by what is divided and the divisor.
    floors: Vec<(Affine, i64)>,
    pieces: Pieces,
}

impl<'k> Summation<'k> {
    pub(super) fn of(kernel: &'k Kernel) -> Self {
        let mut known: Vec<Affine> =
            kernel.known_of_parameters().iter().flat_map(Constraint::not_negative).collect();
        // no array has a negative extent
        let extents: BTreeSet<&Affine> = kernel.vars.values().flat_map(|v| &v.shape).collect();
        known.extend(extents.into_iter().filter(|e| e.as_constant().is_none()).cloned());
        Self { kernel, known, left: LIMIT, floors: Vec::new(), pieces: Pieces::new() }
    }

    /// The number of points with these dimensions, outer first.
    pub(super) fn count(mut self, formula: &Formula, dims: &[InameId]) -> Found<Pieces> {
        for system in self.disjoint(formula, vec![System::default()])? {
            let mut dims = dims.to_vec();
            self.floors.clear();
            let system = self.without_floors(system, &mut dims)?;
            let mut system = self.irredundant(system);
            while system.join_blocks(&mut dims) {
                system = self.irredundant(system);
            }
            self.sum(system, dims, Polynomial::constant(Ratio::ONE))?;
        }
        self.pieces.retain(|_, p| !p.is_zero());
        Ok(self.pieces)
    }

    /// Systems that have no point in common, and together the points of the formula within `around`.
    fn disjoint(&mut self, formula: &Formula, around: Vec<System>) -> Found<Vec<System>> {
        self.spend(around.len())?;
        match formula {
            Formula::Atom(c) => Ok(around.into_iter().filter_map(|s| self.narrowed(s, c)).collect()),
            Formula::All(parts) => parts.iter().try_fold(around, |systems, p| self.disjoint(p, systems)),
            Formula::Any(parts) => {
                let (mut found, mut rest) = (Vec::new(), around);
                for part in parts {
                    found.extend(self.disjoint(part, rest.clone())?);
                    rest = self.disjoint(&part.not(), rest)?;
                }
                Ok(found)
            }
        }
    }

    fn spend(&mut self, pieces: usize) -> Found<()> {
        let left = self.left.checked_sub(pieces.max(1));
        self.left = left.ok_or_else(|| format!("more than {LIMIT} pieces"))?;
        Ok(())
    }

    /// The system with one more constraint; none if it has no point.
    fn narrowed(&self, mut system: System, c: &Constraint) -> Option<System> {
        match c {
            Constraint::NonNegative(e) => {
                let e = without_quotient(e);
                if self.follows(&system, &e) {
                    return Some(system);
                }
                if self.follows(&system, &e.times(-1).plus_constant(-1)) {
                    return None;
                }
                system.least.push(e);
            }
            Constraint::Zero(e) => {
                let apart = [e.plus_constant(-1), e.times(-1).plus_constant(-1)];
                if c.as_constant() == Some(true) {
                    return Some(system);
                }
                if apart.iter().any(|e| self.follows(&system, e)) {
                    return None;
                }
                system.zero.push(e.clone());
            }
        }
        Some(system)
    }

    /// Whether `e >= 0` is proved for the points of a system.
    fn follows(&self, system: &System, e: &Affine) -> bool {
        if let Some(value) = e.as_constant() {
            return value >= 0;
        }
        let mut known: Vec<Affine> = self.known.iter().chain(&system.least).cloned().collect();
        known.extend(system.zero.iter().flat_map(|e| [e.clone(), e.times(-1)]));
        let mut floors = BTreeSet::new();
        known.iter().chain([e]).for_each(|e| floors_in(e, &mut floors));
        for (numerator, d) in floors {
            let rest = numerator.minus(&numerator.floor_div(d).times(d));
            known.extend([rest.times(-1).plus_constant(d - 1), rest]);
        }
        implied(&known, e)
    }

    /// A system in which dimensions stand for floors of dimensions.
    fn without_floors(&mut self, system: System, dims: &mut Vec<InameId>) -> Found<System> {
        let plain = |this: &mut Self, all: &[Affine]| all.iter().map(|e| this.plain(e)).collect::<Vec<_>>();
        let mut result = System { least: plain(self, &system.least), zero: plain(self, &system.zero) };
        for k in 0..self.floors.len() {
            let (numerator, d) = self.floors[k].clone();
            let dim = self.floor_dim(k);
            let rest = numerator.minus(&Affine::iname(dim).times(d));
            result.least.extend([rest.times(-1).plus_constant(d - 1), rest]);
            dims.push(dim);
        }
        self.spend(1)?;
        Ok(result)
    }

    fn floor_dim(&self, k: usize) -> InameId {
        InameId::from_index(self.kernel.inames.len() + k)
    }

    /// An expression with a dimension for each of its floors that mentions one.
    fn plain(&mut self, e: &Affine) -> Affine {
        let mut result = Affine::constant(e.constant_term());
        for (atom, c) in e.terms() {
            let value = match atom {
                Atom::Floor(numerator, d) if has_dims(numerator) => {
                    let numerator = self.plain(numerator);
                    let floor = (numerator, *d);
                    let k = self.floors.iter().position(|known| *known == floor).unwrap_or_else(|| {
                        self.floors.push(floor);
                        self.floors.len() - 1
                    });
                    Affine::iname(self.floor_dim(k))
                }
                Atom::Floor(numerator, d) => quotient(numerator, *d),
                Atom::Iname(i) => Affine::iname(*i),
                Atom::Var(v) => Affine::var(*v),
            };
            result = result.plus(&value.times(*c));
        }
        result
    }

    /// Sums a polynomial over the points of a system.
    fn sum(&mut self, system: System, mut dims: Vec<InameId>, p: Polynomial) -> Found<()> {
        self.spend(1)?;
        let all = system.least.iter().chain(&system.zero);
        if all.clone().any(|e| !e.in_bounds()) {
            return Err("coefficients beyond 2^40".into());
        }
        if let Some(k) = (0..system.zero.len()).find(|k| has_dims(&system.zero[*k])) {
            return self.solve(system, k, dims, &p);
        }
        let system = self.irredundant(system);
        let Some(at) = (0..dims.len()).rev().find(|k| is_summable(&system, dims[*k])) else {
            return match dims.is_empty() {
                true => self.put(system, &p),
                false => Err(self.stuck(&system, &dims)),
            };
        };
        let dim = dims.remove(at);
        let (mut lower, mut upper, mut rest) = (Vec::new(), Vec::new(), System::default());
        rest.zero = system.zero;
        for e in system.least {
            match e.coefficient(&Atom::Iname(dim)) {
                0 => rest.least.push(e),
                c => {
                    let bound = bound_of(&e, dim, c);
                    if c > 0 { lower.push(bound) } else { upper.push(bound) }
                }
            }
        }
        if lower.is_empty() || upper.is_empty() {
            let missing = if lower.is_empty() { "lower" } else { "upper" };
            return Err(format!("{} has no {missing} bound", self.name(dim)));
        }
        for lo in 0..lower.len() {
            let Some(closest) = self.closest(rest.clone(), &lower, lo, 1) else { continue };
            for hi in 0..upper.len() {
                let Some(piece) = self.closest(closest.clone(), &upper, hi, -1) else { continue };
                // the sum over nothing is 0 by the formula, if only one value is missing
                let length = upper[hi].minus(&lower[lo]).plus_constant(1);
                let Some(piece) = self.narrowed(piece, &Constraint::NonNegative(length)) else { continue };
                let summed = p.summed(&Atom::Iname(dim), &lower[lo], &upper[hi]).ok_or_else(too_large)?;
                if !summed.is_zero() {
                    self.sum(piece, dims.clone(), summed)?;
                }
            }
        }
        Ok(())
    }

    /// The part of a system where one of some bounds is the closest: the largest, or for sign -1 the
    /// smallest; the first of equal ones.
    fn closest(&self, system: System, bounds: &[Affine], k: usize, sign: i64) -> Option<System> {
        let mut others = bounds.iter().enumerate().filter(|(other, _)| *other != k);
        others.try_fold(system, |system, (other, bound)| {
            let ahead = bounds[k].minus(bound).times(sign);
            let strict = if other < k { ahead.plus_constant(-1) } else { ahead };
            self.narrowed(system, &Constraint::NonNegative(strict).normalised())
        })
    }

    /// Leaves out what follows from the rest.
    fn irredundant(&self, mut system: System) -> System {
        let mut k = 0;
        while k < system.least.len() {
            let e = system.least.remove(k);
            if !self.follows(&system, &e) {
                system.least.insert(k, e);
                k += 1;
            }
        }
        system
    }

    /// Solves an equation for one of its dimensions.
    fn solve(&mut self, mut system: System, k: usize, mut dims: Vec<InameId>, p: &Polynomial) -> Found<()> {
        let e = system.zero.remove(k);
        let unit = dims.iter().rev().find(|d| e.coefficient(&Atom::Iname(**d)).abs() == 1).copied();
        let single = dims.iter().copied().filter(|d| e.mentions(*d)).collect::<Vec<_>>();
        let (dim, value) = match (unit, single.as_slice()) {
            (Some(dim), _) => {
                let c = e.coefficient(&Atom::Iname(dim));
                (dim, e.minus(&Affine::iname(dim).times(c)).times(-c))
            }
            (None, [dim]) => {
                // c*x + r = 0 with r of parameters: where c divides r
                let c = e.coefficient(&Atom::Iname(*dim));
                let rest = e.minus(&Affine::iname(*dim).times(c));
                let divisor = c.abs();
                let whole = quotient(&rest, divisor);
                system.zero.push(rest.minus(&whole.times(divisor)));
                (*dim, whole.times(-c.signum()))
            }
            (None, _) => {
                let text = self.names(&single);
                return Err(format!("an equation of {text} has no coefficient 1"));
            }
        };
        dims.retain(|d| *d != dim);
        let replace = |atom: &Atom| (*atom == Atom::Iname(dim)).then(|| value.clone());
        let p = p.with(&Atom::Iname(dim), &Polynomial::of_affine(&value)).ok_or_else(too_large)?;
        let mut solved = System::default();
        let zero = system.zero.iter().map(|e| Constraint::Zero(e.clone()));
        for c in zero.chain(system.least.iter().map(|e| Constraint::NonNegative(e.clone()))) {
            match self.narrowed(solved, &c.substitute(&replace)) {
                Some(narrower) => solved = narrower,
                None => return Ok(()),
            }
        }
        self.sum(solved, dims, p)
    }

    /// Adds a piece, whose conditions are those that are not known and change it.
    fn put(&mut self, mut system: System, p: &Polynomial) -> Found<()> {
        let mut k = 0;
        while k < system.least.len() {
            let e = system.least.remove(k);
            if !self.vanishes_below(&system, &e, p)? {
                system.least.insert(k, e);
                k += 1;
            }
        }
        let least = system.least.into_iter().map(Constraint::NonNegative);
        let zero = system.zero.into_iter().map(Constraint::Zero);
        let conditions: BTreeSet<_> =
            least.chain(zero).map(Constraint::normalised).filter(|c| c.as_constant() != Some(true)).collect();
        let entry = self.pieces.entry(conditions.into_iter().collect()).or_default();
        *entry = entry.plus(p).ok_or_else(too_large)?;
        Ok(())
    }

    /// Whether a polynomial is zero wherever `e` is negative in a system, because few values are left.
    fn vanishes_below(&self, system: &System, e: &Affine, p: &Polynomial) -> Found<bool> {
        if self.follows(system, e) {
            return Ok(true);
        }
        let Some(last) = (1..=TRIED).find(|m| self.follows(system, &e.plus_constant(*m))) else {
            return Ok(false);
        };
        let unit = e.terms().iter().find(|(atom, c)| c.abs() == 1 && matches!(atom, Atom::Var(_)));
        let Some((atom, c)) = unit else { return Ok(false) };
        let in_floors = |m: &Atom| matches!(m, Atom::Floor(n, _) if n.any_symbol(&mut |a| a == atom));
        if p.terms().any(|(monomial, _)| monomial.iter().any(|(a, _)| in_floors(a))) {
            return Ok(false);
        }
        for value in 1..=last {
            // c*x + r = -value
            let rest = e.minus(&atom_affine(atom).times(*c)).plus_constant(value);
            let at = p.with(atom, &Polynomial::of_affine(&rest.times(-c))).ok_or_else(too_large)?;
            if !at.is_zero() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn name(&self, dim: InameId) -> String {
        match self.kernel.inames.get(dim) {
            Some(iname) => format!("`{}`", iname.name),
            None => "a quotient".to_owned(),
        }
    }

    fn names(&self, dims: &[InameId]) -> String {
        dims.iter().map(|d| self.name(*d)).collect::<Vec<_>>().join(", ")
    }

    fn stuck(&self, system: &System, dims: &[InameId]) -> String {
        let linked = |d: &&InameId| system.least.iter().any(|e| e.mentions(**d));
        let dims: Vec<InameId> = dims.iter().filter(linked).copied().collect();
        format!("every bound of {} is a quotient of other loops", self.names(&dims))
    }
}

fn too_large() -> String {
    "coefficients beyond 128 bits".into()
}

fn atom_affine(atom: &Atom) -> Affine {
    match atom {
        Atom::Iname(i) => Affine::iname(*i),
        Atom::Var(v) => Affine::var(*v),
        Atom::Floor(numerator, d) => numerator.floor_div(*d),
    }
}

/// `floor(numerator/d)`, with one form for those that differ in sign: `floor(-x/d) = -floor((x + d - 1)/d)`,
/// and `floor((x + 1)/2) = x - floor(x/2)`.
fn quotient(numerator: &Affine, d: i64) -> Affine {
    let mut result = Affine::default();
    let quotient = numerator.floor_div(d);
    for (atom, c) in quotient.terms() {
        let value = match atom {
            Atom::Floor(n, d) if n.terms().first().is_some_and(|(_, c)| *c < 0) => {
                quotient_of(&n.times(-1).plus_constant(d - 1), *d).times(-1)
            }
            Atom::Floor(n, d) => quotient_of(n, *d),
            Atom::Iname(_) | Atom::Var(_) => atom_affine(atom),
        };
        result = result.plus(&value.times(*c));
    }
    result.plus_constant(quotient.constant_term())
}

fn quotient_of(numerator: &Affine, d: i64) -> Affine {
    if d == 2 && numerator.constant_term().rem_euclid(2) == 1 {
        let even = numerator.plus_constant(-1);
        return even.minus(&even.floor_div(2));
    }
    numerator.floor_div(d)
}

/// An inequality `e >= 0` without quotients where it has one: `floor(n/d) + r >= 0` is `n + d*r >= 0`, and
/// `r - floor(n/d) >= 0` is `d*r + d - 1 - n >= 0`.
fn without_quotient(e: &Affine) -> Affine {
    let found = e.terms().iter().find_map(|(atom, c)| match atom {
        Atom::Floor(numerator, d) if c.abs() == 1 => Some((numerator, *d, *c)),
        Atom::Floor(..) | Atom::Iname(_) | Atom::Var(_) => None,
    });
    let Some((numerator, d, c)) = found else { return e.clone() };
    let rest = e.minus(&numerator.floor_div(d).times(c)).times(d);
    let plain = if c == 1 { rest.plus(numerator) } else { rest.plus_constant(d - 1).minus(numerator) };
    match Constraint::NonNegative(plain).normalised() {
        Constraint::NonNegative(plain) | Constraint::Zero(plain) => without_quotient(&plain),
    }
}

fn has_dims(e: &Affine) -> bool {
    e.any_symbol(&mut |atom| matches!(atom, Atom::Iname(_)))
}

/// What floors divide, and by what, those inside others included.
fn floors_in(e: &Affine, found: &mut BTreeSet<(Affine, i64)>) {
    for (atom, _) in e.terms() {
        if let Atom::Floor(numerator, d) = atom {
            floors_in(numerator, found);
            found.insert(((**numerator).clone(), *d));
        }
    }
}

/// The bound that `e >= 0` gives a dimension, which has the coefficient `c` there.
fn bound_of(e: &Affine, dim: InameId, c: i64) -> Affine {
    let whole = quotient(&e.minus(&Affine::iname(dim).times(c)), c.abs());
    // x >= -floor(r/c), or x <= floor(r/-c)
    if c > 0 { whole.times(-1) } else { whole }
}

/// Whether the bounds of a dimension are affine in the others.
fn is_summable(system: &System, dim: InameId) -> bool {
    system.least.iter().all(|e| match e.coefficient(&Atom::Iname(dim)) {
        0 => true,
        c => !bound_of(e, dim, c).terms().iter().any(|(atom, _)| match atom {
            Atom::Floor(numerator, _) => has_dims(numerator),
            Atom::Iname(_) | Atom::Var(_) => false,
        }),
    })
}
