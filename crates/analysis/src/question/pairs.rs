//! Pairs of instances of two accesses that touch one element.

use super::{Instances, Linear, Shared, Symbols, numbered};
use crate::deps::pair::Span;
use crate::polyhedral::{Disjuncts, conjunction, difference};
use kingpost_isl as isl;

/// The pairs of instances of two accesses that touch one element, one before the other.
///
/// Formula: `{ i -> j : i in D_a, j in D_b, f_a(i) = f_b(j), i before j }`, reduction loops
/// projected out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pairs {
    /// The domains `D_a` and `D_b`.
    pub(crate) ends: [Shared<Instances>; 2],
    /// Values at the source that equal values at the sink: `f_a(i) = f_b(j)`, as far as both are
    /// known.
    pub(crate) same: Vec<(Linear, Linear)>,
    /// Number of loops around both.
    pub(crate) common: usize,
    /// Those among them that do not order the instances.
    pub(crate) unordered: Vec<usize>,
    /// What decides the order.
    pub(crate) span: Span,
    /// The symbols.
    pub(crate) symbols: Shared<Symbols>,
}

/// Names of all loops at the source and at the sink.
pub(super) type Ends = [Vec<String>; 2];

impl Pairs {
    pub(super) fn names(&self) -> Ends {
        [numbered(self.ends[0].depth(), ""), numbered(self.ends[1].depth(), "'")]
    }

    /// The pairs as an isl map; loops by number.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn map(&self) -> Result<isl::Map, isl::IslError> {
        let names = self.names();
        let before = self.deciders().map(|decider| self.decided(decider, &names)).collect();
        self.map_where(&names, before)
    }

    /// The pairs in one of these conjunctions, in which "source before sink" is up to the caller.
    pub(super) fn map_where(&self, names: &Ends, before: Disjuncts) -> Result<isl::Map, isl::IslError> {
        let mut all = self.ends[0].named(&names[0], &self.symbols);
        all = conjunction(all, self.ends[1].named(&names[1], &self.symbols));
        let same = self.same.iter().map(|(x, y)| {
            let symbols = &self.symbols.names;
            isl::Constraint::zero(difference(&x.named(&names[0], symbols), &y.named(&names[1], symbols)))
        });
        all = conjunction(all, vec![same.collect()]);
        all = conjunction(self.symbols.restrict(all), before);
        let map =
            isl::Map::from_disjuncts(&isl::MapSpace::new(&names[0], &names[1], &self.symbols.names), &all)?;
        let hidden = self.ends.iter().zip(names).flat_map(|(end, names)| &names[end.loops..]);
        let hidden: Vec<_> = hidden.map(String::as_str).collect();
        if hidden.is_empty() { Ok(map) } else { map.project_out(&hidden) }
    }

    /// Whether a common loop orders the instances.
    pub(super) fn orders(&self, l: usize) -> bool {
        l < self.common && !self.unordered.contains(&l)
    }

    /// What may decide the order of a pair, each pair by one of them.
    pub(super) fn deciders(&self) -> impl Iterator<Item = Decider> {
        let Span { start, end, textual } = self.span;
        let loops = (start..end).filter(|l| self.orders(*l)).map(Decider::Loop);
        loops.chain(textual.then_some(Decider::Text))
    }

    /// The signs of the steps of common loops where this decides the order.
    pub(super) fn signs(&self, decider: Decider) -> impl Iterator<Item = (usize, Sign)> {
        let (depth, first) = match decider {
            Decider::Loop(k) => (k, Some((k, Sign::Positive))),
            Decider::Text => (self.common, None),
        };
        (0..depth).filter(|l| self.orders(*l)).map(|l| (l, Sign::Zero)).chain(first)
    }

    /// "Source before sink" as this decides it.
    pub(super) fn decided(&self, decider: Decider, names: &Ends) -> Vec<isl::Constraint> {
        let step = |k: usize| isl::Affine::name(names[1][k].as_str()).plus(-1, names[0][k].as_str());
        let (depth, first) = match decider {
            Decider::Loop(k) => (k, Some(isl::Constraint::non_negative(step(k).offset(-1)))),
            Decider::Text => (self.common, None),
        };
        let equal = (0..depth).filter(|l| self.orders(*l)).map(|l| isl::Constraint::zero(step(l)));
        equal.chain(first).collect()
    }
}

/// What decides the order of the instances of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decider {
    /// The first of the common loops that order instances at which they differ.
    Loop(usize),
    /// The text, as they agree on all of these loops.
    Text,
}

/// The sign of a difference, sink minus source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sign {
    /// Equal values.
    Zero,
    /// The sink's is larger.
    Positive,
    /// The sink's is smaller.
    Negative,
}

/// A conjunction of signs of differences between a value at the source and a value at the sink.
pub(crate) type Differences = Vec<(Sign, Linear, Linear)>;
