//! Questions to isl as plain values: what isl is asked is built from the value alone, and the value
//! is the key under which the answer is kept, so that the two cannot differ.
//!
//! Loops go by number, outer first, so that the same question about another variable, or after
//! loops were renamed, is the same value. Symbols go by name: witnesses hold their values.

mod alive;
mod awaited;
mod covered;
mod instances;
mod memory;
mod order;
mod pairs;
mod point;
mod relation;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
mod values;

pub(crate) use alive::NothingBetween;
pub(crate) use awaited::Written;
pub(crate) use covered::{Covered, Footprint, Index};
pub(crate) use instances::{Instances, Symbols, Union, union_of};
pub(crate) use memory::Memory;
pub(crate) use order::{Apart, Order, Ordered};
pub(crate) use pairs::{Pairs, Sign};
pub(crate) use relation::{NoPair, Part, Relation};
pub(crate) use values::values;

use foldhash::fast::FixedState;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::Constraint;
use kingpost_ir::ids::{InameId, VarId};
use kingpost_isl as isl;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A question with its answer.
pub(crate) trait Question: Clone + Eq + Hash {
    /// What isl says.
    type Answer: Clone;

    /// What it asks, for whoever gets no answer.
    const ASKS: &'static str;

    /// Maximum number of answers that are kept; a step of a recipe asks a few dozen questions.
    const KEPT: usize = 4096;

    /// Asks isl.
    ///
    /// # Errors
    /// A failure of isl.
    fn ask(&self) -> Result<Self::Answer, isl::IslError>;
}

/// A part that many questions share: hashed once, and compared by address where that decides.
#[derive(Debug)]
pub(crate) struct Shared<T>(Arc<(u64, T)>);

impl<T: Hash> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new((FixedState::default().hash_one(&value), value)))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.1
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.0);
    }
}

/// A linear expression of loops and symbols by number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Linear {
    terms: Vec<(Column, i64)>,
    constant: i64,
}

/// What a coefficient multiplies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Column {
    /// A loop around, counted from outside.
    Loop(usize),
    /// A symbol.
    Symbol(usize),
    /// The quotient by a positive number, rounded down.
    Floor(Box<Linear>, i64),
}

impl Linear {
    /// An expression at a place with these loops around; `None` if it mentions anything but them
    /// and symbols.
    pub(crate) fn of(e: &Affine, scope: &[InameId], symbol: &dyn Fn(VarId) -> Option<usize>) -> Option<Self> {
        let term = |(atom, c): &(Atom, i64)| {
            let column = match atom {
                Atom::Iname(i) => Column::Loop(scope.iter().position(|l| l == i)?),
                Atom::Var(v) => Column::Symbol(symbol(*v)?),
                Atom::Floor(numerator, d) => Column::Floor(Box::new(Self::of(numerator, scope, symbol)?), *d),
            };
            Some((column, *c))
        };
        let terms = e.terms().iter().map(term).collect::<Option<_>>()?;
        Some(Self { terms, constant: e.constant_term() })
    }

    /// The loop, if this is its value.
    fn as_loop(&self) -> Option<usize> {
        match self.terms.as_slice() {
            [(Column::Loop(k), 1)] if self.constant == 0 => Some(*k),
            _ => None,
        }
    }

    fn is_constant(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value of a loop.
    pub(crate) fn of_loop(k: usize) -> Self {
        Self { terms: vec![(Column::Loop(k), 1)], constant: 0 }
    }

    /// Bounds of the value, as far as those of the loops tell.
    fn range(&self, loops: &[Range]) -> Range {
        let mut sum = Range::point(self.constant);
        for (column, c) in &self.terms {
            let range = match column {
                Column::Loop(k) => loops.get(*k).copied().unwrap_or_default(),
                Column::Symbol(_) => Range::default(),
                Column::Floor(numerator, d) => numerator.range(loops).floor_div(*d),
            };
            sum = sum.plus(range.times(*c));
        }
        sum
    }

    /// The expression in isl's terms.
    fn named(&self, loops: &[String], symbols: &[String]) -> isl::Affine {
        let mut result = isl::Affine::constant(self.constant);
        for (column, c) in &self.terms {
            match column {
                Column::Loop(k) => result.terms.push((loops[*k].clone(), *c)),
                Column::Symbol(k) => result.terms.push((symbols[*k].clone(), *c)),
                Column::Floor(numerator, d) => {
                    let numerator = numerator.named(loops, symbols);
                    result.divs.push((isl::FloorDiv { numerator, denominator: *d }, *c));
                }
            }
        }
        result
    }
}

/// Smallest and largest value, where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    lo: Option<i128>,
    hi: Option<i128>,
}

impl Range {
    fn point(value: i64) -> Self {
        Self { lo: Some(value.into()), hi: Some(value.into()) }
    }

    fn plus(self, other: Self) -> Self {
        let sum = |a: Option<i128>, b: Option<i128>| a?.checked_add(b?);
        Self { lo: sum(self.lo, other.lo), hi: sum(self.hi, other.hi) }
    }

    fn times(self, factor: i64) -> Self {
        let scaled = |end: Option<i128>| end?.checked_mul(factor.into());
        let (lo, hi) = (scaled(self.lo), scaled(self.hi));
        if factor < 0 { Self { lo: hi, hi: lo } } else { Self { lo, hi } }
    }

    fn floor_div(self, divisor: i64) -> Self {
        let quotient = |end: Option<i128>| end.map(|end| end.div_euclid(divisor.into()));
        Self { lo: quotient(self.lo), hi: quotient(self.hi) }
    }

    /// Narrows it to where `factor*x + constant` is zero, or not negative.
    fn narrow(&mut self, factor: i64, constant: i64, is_zero: bool) {
        let (factor, constant) = (i128::from(factor), i128::from(constant));
        if factor > 0 || is_zero {
            let least = (-constant * factor.signum()).div_euclid(factor.abs());
            let rounded = least + i128::from(least * factor.abs() != -constant * factor.signum());
            self.lo = Some(self.lo.map_or(rounded, |lo| lo.max(rounded)));
        }
        if factor < 0 || is_zero {
            let most = (-constant * factor.signum()).div_euclid(factor.abs());
            self.hi = Some(self.hi.map_or(most, |hi| hi.min(most)));
        }
    }

    /// Whether a value of this sign is in the range.
    fn allows(self, sign: Sign) -> bool {
        match sign {
            Sign::Zero => self.lo.is_none_or(|lo| lo <= 0) && self.hi.is_none_or(|hi| hi >= 0),
            Sign::Positive => self.hi.is_none_or(|hi| hi > 0),
            Sign::Negative => self.lo.is_none_or(|lo| lo < 0),
        }
    }
}

/// A constraint: the value is zero, or not negative.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    is_zero: bool,
    value: Linear,
}

impl Row {
    /// A constraint at a place with these loops around; `None` if it mentions anything but them and
    /// symbols.
    pub(crate) fn of(
        c: &Constraint,
        scope: &[InameId],
        symbol: &dyn Fn(VarId) -> Option<usize>,
    ) -> Option<Self> {
        let is_zero = matches!(c, Constraint::Zero(_));
        Some(Self { is_zero, value: Linear::of(c.expr(), scope, symbol)? })
    }

    /// Narrows the range of a loop, if the constraint is on it alone.
    fn narrow(&self, ranges: &mut [Range]) {
        if let [(Column::Loop(k), c)] = self.value.terms.as_slice()
            && let Some(range) = ranges.get_mut(*k)
        {
            range.narrow(*c, self.value.constant, self.is_zero);
        }
    }

    fn named(&self, loops: &[String], symbols: &[String]) -> isl::Constraint {
        let value = self.value.named(loops, symbols);
        if self.is_zero { isl::Constraint::zero(value) } else { isl::Constraint::non_negative(value) }
    }
}

/// Names of loops by number, on one side of a relation: `#` cannot stand in names of kernels.
fn numbered(loops: usize, prime: &str) -> Vec<String> {
    (0..loops).map(|k| format!("#{k}{prime}")).collect()
}
