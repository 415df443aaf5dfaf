//! Questions to isl as plain values: what isl is asked is built from the value alone, and the value
//! is the key under which the answer is kept, so that the two cannot differ.
//!
//! Loops go by number, outer first, so that the same question about another variable, or after
//! loops were renamed, is the same value. Symbols go by name: witnesses hold their values.

mod alive;
mod covered;
mod instances;
mod order;
mod relation;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;

pub(crate) use alive::NothingBetween;
pub(crate) use covered::{Covered, Footprint, Index};
pub(crate) use instances::{Instances, Symbols, Union, union_of};
pub(crate) use order::{Order, Ordered};
pub(crate) use relation::{NoPair, Pairs, Part, Relation, Sign};

use purlin_ir::affine::{Affine, Atom};
use purlin_ir::domain::Constraint;
use purlin_ir::ids::{InameId, VarId};
use purlin_isl as isl;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A question with its answer.
pub(crate) trait Question: Clone + Eq + Hash {
    /// What isl says.
    type Answer: Clone;

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
        let mut hasher = std::collections::hash_map::DefaultHasher::new();
        value.hash(&mut hasher);
        Self(Arc::new((hasher.finish(), value)))
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

    /// The value of a loop.
    pub(crate) fn of_loop(k: usize) -> Self {
        Self { terms: vec![(Column::Loop(k), 1)], constant: 0 }
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

    fn named(&self, loops: &[String], symbols: &[String]) -> isl::Constraint {
        let value = self.value.named(loops, symbols);
        if self.is_zero { isl::Constraint::zero(value) } else { isl::Constraint::non_negative(value) }
    }
}

/// Names of loops by number, on one side of a relation: `#` cannot stand in names of kernels.
fn numbered(loops: usize, prime: &str) -> Vec<String> {
    (0..loops).map(|k| format!("#{k}{prime}")).collect()
}
