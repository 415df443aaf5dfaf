//! Pairs of instances of two accesses that touch one element.

use super::{Instances, Linear, Memory, Question, Shared, Symbols, numbered};
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

    /// As [`Pairs::map`], for pairs that several questions are asked of.
    ///
    /// # Errors
    /// A failure of isl.
    pub(super) fn kept_map(&self) -> Result<isl::Map, isl::IslError> {
        WAYS.with(|known| known.answer(self))
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

    /// The pairs in one iteration of the first loops around the source; `None` if they are not
    /// around the sink, or there are no such pairs.
    pub(super) fn within(&self, depth: usize) -> Option<Self> {
        assert!(self.unordered.is_empty(), "pairs of accesses are ordered by all of their loops");
        if self.common < depth {
            return None;
        }
        let Span { start, end, textual } = self.span;
        let start = start.max(depth);
        (start < end || textual).then(|| Self { span: Span { start, end, textual }, ..self.clone() })
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

/// The pairs as a map; loops by number.
impl Question for Pairs {
    type Answer = isl::Map;

    const ASKS: &'static str = "which instances touch one element";

    const KEPT: usize = MAPS;

    fn ask(&self) -> Result<isl::Map, isl::IslError> {
        self.map()
    }
}

/// From sources to sinks by way of a write. Relations of what many statements write and read have
/// the same ones, and several questions are asked about each relation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Detour(pub(super) Pairs, pub(super) Pairs);

impl Detour {
    /// The pairs as an isl map, if there are any; loops by number.
    ///
    /// # Errors
    /// A failure of isl.
    pub(super) fn kept_map(&self) -> Result<Option<isl::Map>, isl::IslError> {
        DETOURS.with(|known| known.answer(self))
    }
}

impl Question for Detour {
    /// None if there are none.
    type Answer = Option<isl::Map>;

    const ASKS: &'static str = "what is written between two accesses";

    const KEPT: usize = MAPS;

    fn ask(&self) -> Result<Option<isl::Map>, isl::IslError> {
        let (first, second) = (self.0.kept_map()?, self.1.kept_map()?);
        let none = first.is_empty()? || second.is_empty()?;
        if none { Ok(None) } else { first.apply_range(&second).map(Some) }
    }
}

/// Maps of a kind that are kept on a thread, at most: each has some kilobytes.
const MAPS: usize = 1024;

thread_local! {
    static WAYS: Memory<Pairs> = Memory::default();
    static DETOURS: Memory<Detour> = Memory::default();
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
