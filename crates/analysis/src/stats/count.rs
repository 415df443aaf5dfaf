//! Exact numbers of integer points, without visiting them.
//!
//! Branch and bound over boxes: constraints that a box decides are dropped, bounds are tightened,
//! dimensions that no remaining constraint links are counted apart and multiplied, a single
//! dimension is counted by its period, and what is left is cut in two. A rectangular nest takes one
//! step, a split loop with a partial last tile a logarithmic number, a triangle one for each row.

use super::error::StatsError;
use super::formula::{Formula, Region};
use kingpost_ir::affine::{Affine, Atom, gcd};
use kingpost_ir::domain::Constraint;
use kingpost_ir::ids::InameId;
use std::collections::{BTreeMap, BTreeSet};

/// Boxes looked at before a count is given up (some seconds).
const LIMIT: u64 = 4_000_000;

/// One dimension of at most this width is counted point by point.
const SMALL: u128 = 256;

/// Longest period worth counting point by point.
const MAX_PERIOD: i64 = 1 << 16;

/// Number of points of `region` in `formula`; `what` names the set in messages.
pub(super) fn count(formula: &Formula, region: &Region, what: &str) -> Result<u128, StatsError> {
    let mut counter = Counter { left: LIMIT };
    counter.count(formula.clone(), region.clone()).map_err(|trouble| match trouble {
        Trouble::Budget => StatsError::Budget { what: what.into(), limit: LIMIT },
        Trouble::Overflow => StatsError::Overflow,
    })
}

enum Trouble {
    Budget,
    Overflow,
}

struct Counter {
    left: u64,
}

impl Counter {
    fn count(&mut self, formula: Formula, mut region: Region) -> Result<u128, Trouble> {
        self.left = self.left.checked_sub(1).ok_or(Trouble::Budget)?;
        let formula = tighten(formula, &mut region);
        if region.is_empty() || formula == Formula::FALSE {
            return Ok(0);
        }
        let components = components(formula.into_conjuncts());
        let mut product = 1_u128;
        for (dim, ..) in region.bounds() {
            if !components.iter().any(|(dims, _)| dims.contains(dim)) {
                product = product.checked_mul(region.width(*dim)).ok_or(Trouble::Overflow)?;
            }
        }
        for (dims, conjuncts) in components {
            let n = self.component(Formula::all(conjuncts), region.restricted(&dims))?;
            product = product.checked_mul(n).ok_or(Trouble::Overflow)?;
            if product == 0 {
                break;
            }
        }
        Ok(product)
    }

    /// A set whose dimensions the constraints link.
    fn component(&mut self, formula: Formula, region: Region) -> Result<u128, Trouble> {
        if let [(dim, lo, hi)] = region.bounds()
            && let Some(n) = self.line(&formula, *dim, *lo, *hi)?
        {
            return Ok(n);
        }
        let Some(dim) = cut_dimension(&formula, &region) else { return Ok(0) };
        let (lo, hi) = region.get(dim);
        let middle = lo + (hi - lo) / 2;
        let (mut left, mut right) = (region.clone(), region);
        left.set(dim, lo, middle);
        right.set(dim, middle + 1, hi);
        let n = self.count(formula.clone(), left)?;
        n.checked_add(self.count(formula, right)?).ok_or(Trouble::Overflow)
    }

    /// One dimension: point by point if it is short, else by its period if it has one.
    fn line(&mut self, formula: &Formula, dim: InameId, lo: i128, hi: i128) -> Result<Option<u128>, Trouble> {
        let width = (hi - lo) as u128 + 1;
        let mut points = |from: i128, n: u128| {
            self.left = self.left.checked_sub(n as u64 / 8).ok_or(Trouble::Budget)?;
            Ok((0..n as i128).filter(|k| formula.holds(&|_| from + k)).count() as u128)
        };
        if width <= SMALL {
            return points(lo, width).map(Some);
        }
        let Some(period) = period(formula, dim).filter(|p| u128::from(p.unsigned_abs()) < width) else {
            return Ok(None);
        };
        let period = u128::from(period.unsigned_abs());
        let rest = width % period;
        Ok(Some(width / period * points(lo, period)? + points(hi - rest as i128 + 1, rest)?))
    }
}

/// Drops what the box decides and shrinks the box by constraints that are linear in a dimension.
fn tighten(mut formula: Formula, region: &mut Region) -> Formula {
    // each round may shrink the box; 8 are plenty for loop nests, and more would not be wrong to
    // skip
    for _ in 0..8 {
        formula = formula.simplify(region);
        let mut changed = false;
        let conjuncts = match &formula {
            Formula::All(parts) => parts.as_slice(),
            single @ (Formula::Atom(_) | Formula::Any(_)) => std::slice::from_ref(single),
        };
        for part in conjuncts {
            if let Formula::Atom(c) = part {
                changed |= shrink(c, region);
            }
        }
        if !changed || region.is_empty() {
            break;
        }
    }
    formula.simplify(region)
}

fn shrink(c: &Constraint, region: &mut Region) -> bool {
    let mut changed = false;
    for (atom, _) in c.expr().terms() {
        let Atom::Iname(dim) = atom else { continue };
        let (lo, hi) = region.get(*dim);
        let (least, most) = region.implied(c, *dim);
        let (new_lo, new_hi) = (lo.max(least.unwrap_or(lo)), hi.min(most.unwrap_or(hi)));
        if (new_lo, new_hi) != (lo, hi) {
            region.set(*dim, new_lo, new_hi);
            changed = true;
        }
    }
    changed
}

type Component = (BTreeSet<InameId>, Vec<Formula>);

/// Conjuncts grouped so that no two groups share a dimension.
pub(super) fn components(conjuncts: Vec<Formula>) -> Vec<Component> {
    let mut groups: Vec<Component> = Vec::new();
    for conjunct in conjuncts {
        let mut merged = (conjunct.dims(), vec![conjunct]);
        groups.retain_mut(|(dims, parts)| {
            let apart = dims.is_disjoint(&merged.0);
            if !apart {
                merged.0.append(dims);
                merged.1.append(parts);
            }
            apart
        });
        groups.push(merged);
    }
    groups
}

/// The dimension to cut: one inside floors first (they are decided late), then the one in most
/// constraints, then the widest.
fn cut_dimension(formula: &Formula, region: &Region) -> Option<InameId> {
    let mut uses: BTreeMap<InameId, (bool, u32)> = BTreeMap::new();
    formula.for_each(&mut |c| {
        for (atom, _) in c.expr().terms() {
            match atom {
                Atom::Iname(i) => uses.entry(*i).or_default().1 += 1,
                Atom::Floor(numerator, _) => numerator.for_each_symbol(&mut |a| {
                    if let Atom::Iname(i) = a {
                        let entry = uses.entry(*i).or_default();
                        *entry = (true, entry.1 + 1);
                    }
                }),
                Atom::Var(_) => {}
            }
        }
    });
    let wide = uses.into_iter().filter(|(dim, _)| region.width(*dim) > 1);
    wide.max_by_key(|(dim, key)| (*key, region.width(*dim))).map(|(dim, _)| dim)
}

/// The period of a set of one dimension, if all its constraints repeat.
fn period(formula: &Formula, dim: InameId) -> Option<i64> {
    let mut period = Some(1_i64);
    formula.for_each(&mut |c| {
        period = period.and_then(|p| lcm(p, value_period(c.expr())?)).filter(|p| *p <= MAX_PERIOD);
    });
    let length = period?;
    let mut repeats = true;
    formula.for_each(&mut |c| repeats &= drift(c.expr(), dim, i128::from(length)) == Some(0));
    repeats.then_some(length)
}

fn lcm(a: i64, b: i64) -> Option<i64> {
    (a / gcd(a, b)).checked_mul(b)
}

/// A length over which the value grows by the same amount everywhere.
fn value_period(e: &Affine) -> Option<i64> {
    e.terms().iter().try_fold(1_i64, |p, (atom, _)| match atom {
        Atom::Floor(numerator, d) => lcm(p, value_period(numerator)?.checked_mul(*d)?),
        Atom::Iname(_) | Atom::Var(_) => Some(p),
    })
}

/// Growth of the value when `dim` grows by `length`, a multiple of its [`value_period`].
fn drift(e: &Affine, dim: InameId, length: i128) -> Option<i128> {
    let mut sum = 0_i128;
    for (atom, c) in e.terms() {
        let growth = match atom {
            Atom::Iname(i) if *i == dim => length,
            Atom::Iname(_) | Atom::Var(_) => 0,
            Atom::Floor(numerator, d) => {
                let growth = drift(numerator, dim, length)?;
                let d = i128::from(*d);
                if growth % d != 0 {
                    return None;
                }
                growth / d
            }
        };
        sum = sum.checked_add(growth.checked_mul(i128::from(*c))?)?;
    }
    Some(sum)
}
