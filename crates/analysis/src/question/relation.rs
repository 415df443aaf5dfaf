//! Pairs of instances: those of two accesses that touch one element, those among which values flow.

use super::pairs::{Decider, Differences, Ends, Pairs, Sign};
use super::point::is_found;
use super::{Linear, Question, Range, Symbols};
use crate::polyhedral::{Disjuncts, difference};
use foldhash::fast::FixedState;
use kingpost_isl as isl;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::thread::LocalKey;

/// The pairs among which a value flows, or that touch one element: pairs, less those with a write
/// in between.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Relation {
    /// The pairs.
    pub(crate) pairs: Pairs,
    /// From the source to a certain write of the element, and from there to the sink.
    pub(crate) detours: Vec<(Pairs, Pairs)>,
}

/// Maps of a kind that are kept on a thread, at most: each has some kilobytes.
const KEPT: usize = 1024;

type Kept<Q, A> = RefCell<HashMap<Q, A, FixedState>>;

thread_local! {
    static MAPS: Kept<Pairs, isl::Map> = RefCell::default();
    static DETOURS: Kept<(Pairs, Pairs), Option<isl::Map>> = RefCell::default();
}

/// What is kept of a question, or what is found. Failures are not kept.
fn kept<Q: Clone + Eq + Hash, A: Clone>(
    known: &'static LocalKey<Kept<Q, A>>,
    question: &Q,
    find: impl FnOnce() -> Result<A, isl::IslError>,
) -> Result<A, isl::IslError> {
    if let Some(known) = known.with_borrow(|known| known.get(question).cloned()) {
        return Ok(known);
    }
    let found = find()?;
    known.with_borrow_mut(|known| {
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(question.clone(), found.clone());
    });
    Ok(found)
}

/// From sources to sinks by way of a write, if there are any. Relations of what many statements
/// write and read have the same ones, and several questions are asked about each relation.
fn detour(first: &Pairs, second: &Pairs) -> Result<Option<isl::Map>, isl::IslError> {
    kept(&DETOURS, &(first.clone(), second.clone()), || {
        let [first, second] = [first, second].map(|pairs| kept(&MAPS, pairs, || pairs.map()));
        let (first, second) = (first?, second?);
        let none = first.is_empty()? || second.is_empty()?;
        if none { Ok(None) } else { first.apply_range(&second).map(Some) }
    })
}

impl Relation {
    /// The pairs as an isl map; loops by number.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn map(&self) -> Result<isl::Map, isl::IslError> {
        self.without_detours(self.pairs.map()?)
    }

    /// Some of the pairs, less those with a write in between.
    ///
    /// # Errors
    /// A failure of isl.
    pub(super) fn without_detours(&self, mut map: isl::Map) -> Result<isl::Map, isl::IslError> {
        for (first, second) in &self.detours {
            if map.is_empty()? {
                break;
            }
            let Some(detour) = detour(first, second)? else { continue };
            // to subtract, isl finds formulas for what lies in between, which takes much longer than to tell that
            // nothing does
            let between = map.intersect(&detour)?;
            if !between.is_empty()? {
                map = map.subtract(&between)?.coalesce()?;
            }
        }
        Ok(map)
    }

    /// The pairs by what decides their order.
    pub(super) fn by_decider(&self) -> ByDecider<'_> {
        let ranges = [self.pairs.ends[0].ranges(), self.pairs.ends[1].ranges()];
        ByDecider { relation: self, names: self.names(), ranges }
    }

    /// Names of the loops at both ends of the map.
    pub(super) fn names(&self) -> Ends {
        self.pairs.names()
    }

    pub(super) fn symbols(&self) -> &Symbols {
        &self.pairs.symbols
    }
}

/// The pairs of a relation by what decides their order. A part is small, and often the constraints
/// alone tell that it is empty, while the whole relation is a union.
pub(super) struct ByDecider<'r> {
    relation: &'r Relation,
    names: Ends,
    /// Bounds of the loops at both ends.
    ranges: [Vec<Range>; 2],
}

impl ByDecider<'_> {
    /// What may decide the order.
    pub(super) fn deciders(&self) -> Vec<Decider> {
        self.relation.pairs.deciders().collect()
    }

    /// The sign of the step of a common loop, if the decider says it.
    pub(super) fn sign(&self, decider: Decider, l: usize) -> Option<Sign> {
        let depth = match decider {
            Decider::Loop(k) if k == l => return Some(Sign::Positive),
            Decider::Loop(k) => k,
            Decider::Text => self.relation.pairs.common,
        };
        (l < depth && self.relation.pairs.orders(l)).then_some(Sign::Zero)
    }

    /// The pairs that this decides and at which all these differences have these signs; `None` if
    /// bounds alone tell that there are none.
    pub(super) fn part(
        &self,
        decider: Decider,
        all: &Differences,
    ) -> Result<Option<isl::Map>, isl::IslError> {
        if !self.may_have(decider, all) {
            return Ok(None);
        }
        let symbols = &self.relation.symbols().names;
        let mut constraints = self.relation.pairs.decided(decider, &self.names);
        constraints.extend(all.iter().map(|difference| signed(difference, &self.names, symbols)));
        // most parts are empty, and detours take long to subtract
        let part = self.relation.pairs.map_where(&self.names, vec![constraints])?;
        self.relation.without_detours(part).map(Some)
    }

    /// Whether there are pairs that this decides and at which all these differences have these
    /// signs.
    ///
    /// # Errors
    /// A failure of isl.
    pub(super) fn has_pair(&self, decider: Decider, all: &Differences) -> Result<bool, isl::IslError> {
        // pairs with a write in between are not told from others by a point
        let searched = self.relation.detours.is_empty() && self.may_have(decider, all);
        if searched && is_found(&self.relation.pairs, &self.ranges, decider, all) {
            debug_assert!(self.part(decider, all)?.is_some_and(|pairs| pairs.is_empty() == Ok(false)));
            return Ok(true);
        }
        match self.part(decider, all)? {
            Some(pairs) => Ok(!pairs.is_empty()?),
            None => Ok(false),
        }
    }

    /// Whether such a pair may exist as far as the bounds of the loops tell, and no step has two
    /// signs.
    fn may_have(&self, decider: Decider, all: &Differences) -> bool {
        let allows = |sign: Sign, source: &Linear, sink: &Linear| {
            let (source, sink) = (source.range(&self.ranges[0]), sink.range(&self.ranges[1]));
            sink.plus(source.times(-1)).allows(sign)
        };
        let advances = match decider {
            Decider::Loop(k) => {
                let value = Linear::of_loop(k);
                allows(Sign::Positive, &value, &value)
            }
            Decider::Text => true,
        };
        let decided = |source: &Linear, sink: &Linear| {
            let l =
                source.as_loop().filter(|l| sink.as_loop() == Some(*l) && *l < self.relation.pairs.common)?;
            self.sign(decider, l)
        };
        advances
            && self.relation.pairs.same.iter().all(|(x, y)| allows(Sign::Zero, x, y))
            && all.iter().all(|(sign, source, sink)| {
                decided(source, sink).is_none_or(|known| known == *sign) && allows(*sign, source, sink)
            })
    }
}

/// Some of the pairs of a relation: those at which one of these conjunctions holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Part(pub(crate) Vec<Differences>);

impl Part {
    /// All pairs.
    pub(crate) fn whole() -> Self {
        Self(vec![Vec::new()])
    }

    /// The pairs at which two values differ.
    pub(crate) fn apart(source: &Linear, sink: &Linear) -> Self {
        let sign = |sign| vec![(sign, source.clone(), sink.clone())];
        Self(vec![sign(Sign::Positive), sign(Sign::Negative)])
    }

    /// The pairs at which a common loop has other values, while the first `around` of the common
    /// loops have the same ones.
    pub(crate) fn of_lanes(lane: usize, around: usize) -> Self {
        let value = Linear::of_loop;
        let Self(mut cases) = Self::apart(&value(lane), &value(lane));
        for case in &mut cases {
            case.extend((0..around).map(|l| (Sign::Zero, value(l), value(l))));
        }
        Self(cases)
    }

    /// The part of the pairs at which these common loops have one value at both ends.
    #[must_use]
    pub(crate) fn within(mut self, loops: &[usize]) -> Self {
        for case in &mut self.0 {
            case.extend(loops.iter().map(|l| (Sign::Zero, Linear::of_loop(*l), Linear::of_loop(*l))));
        }
        self
    }

    /// The pairs at which one of these common loops has other values.
    pub(crate) fn across(loops: &[usize]) -> Self {
        let value = Linear::of_loop;
        Self(loops.iter().flat_map(|l| Self::apart(&value(*l), &value(*l)).0).collect())
    }

    /// Whether these are all pairs.
    fn is_whole(&self) -> bool {
        self.0.iter().any(Vec::is_empty)
    }

    /// This part of a map whose loops have these names.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn of(
        &self,
        whole: &isl::Map,
        names: &Ends,
        symbols: &[String],
    ) -> Result<isl::Map, isl::IslError> {
        if self.is_whole() {
            return Ok(whole.clone());
        }
        let constraint = |d: &(Sign, Linear, Linear)| signed(d, names, symbols);
        let disjuncts: Disjuncts = self.0.iter().map(|all| all.iter().map(constraint).collect()).collect();
        whole.intersect(&isl::Map::from_disjuncts(&whole.space()?, &disjuncts)?)
    }
}

/// A difference has a sign.
fn signed(
    (sign, source, sink): &(Sign, Linear, Linear),
    names: &Ends,
    symbols: &[String],
) -> isl::Constraint {
    let (source, sink) = (source.named(&names[0], symbols), sink.named(&names[1], symbols));
    match sign {
        Sign::Zero => isl::Constraint::zero(difference(&sink, &source)),
        Sign::Positive => isl::Constraint::non_negative(difference(&sink, &source).offset(-1)),
        Sign::Negative => isl::Constraint::non_negative(difference(&source, &sink).offset(-1)),
    }
}

/// Whether a relation has no pair in a part, for any values that the symbols can take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NoPair {
    /// The relation.
    pub(crate) relation: Arc<Relation>,
    /// The part.
    pub(crate) part: Part,
}

impl Question for NoPair {
    type Answer = bool;

    const ASKS: &'static str = "whether two instances touch one element";

    fn ask(&self) -> Result<bool, isl::IslError> {
        let pairs = self.pairs()?;
        Ok(pairs.is_empty()? || pairs.lexmin_pair_within(&self.relation.symbols().ranges)?.is_none())
    }
}

impl NoPair {
    /// The pairs in the part; loops by number.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn pairs(&self) -> Result<isl::Map, isl::IslError> {
        let symbols = &self.relation.symbols().names;
        let part = self.part.of(&self.relation.pairs.map()?, &self.relation.names(), symbols)?;
        self.relation.without_detours(part)
    }
}
