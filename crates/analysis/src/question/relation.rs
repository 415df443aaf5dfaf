//! Pairs of instances: those of two accesses that touch one element, those among which values flow.

use super::pairs::{Decider, Detour, Differences, Ends, Pairs, Sign};
use super::point::is_found;
use super::{Linear, Question, Range, Symbols, Written};
use crate::polyhedral::{Disjuncts, difference};
use kingpost_isl as isl;
use std::sync::Arc;

/// The pairs among which a value flows, or that touch one element: pairs, less those with a write
/// in between.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Relation {
    /// The pairs.
    pub(crate) pairs: Pairs,
    /// From the source to a certain write of the element, and from there to the sink.
    pub(crate) detours: Vec<(Pairs, Pairs)>,
}

impl Relation {
    /// The pairs as an isl map; loops by number.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn map(&self) -> Result<isl::Map, isl::IslError> {
        if self.detours.is_empty() { self.pairs.kept_map() } else { self.select(&|pairs| Ok(pairs)) }
    }

    /// The pairs that `part` keeps of some that it is given.
    ///
    /// # Errors
    /// A failure of isl, or of `part`.
    pub(crate) fn select(
        &self,
        part: &dyn Fn(isl::Map) -> Result<isl::Map, isl::IslError>,
    ) -> Result<isl::Map, isl::IslError> {
        if self.detours.is_empty() {
            return part(self.pairs.map()?);
        }
        let names = self.names();
        let mut found: Option<isl::Map> = None;
        for decider in self.pairs.deciders() {
            let decided = part(self.pairs.map_where(&names, vec![self.pairs.decided(decider, &names)])?)?;
            // most parts are empty, and what is overwritten takes long to tell
            if decided.is_empty()? || self.is_overwritten(decider)? {
                continue;
            }
            let pairs = self.without_detours(decided, decider)?;
            found = Some(match found {
                None => pairs,
                Some(found) => found.union(&pairs)?,
            });
        }
        let none = || part(self.pairs.map_where(&names, Vec::new())?);
        found.map_or_else(none, Ok)
    }

    /// Some of the pairs that `decider` decides, less those with a write in between.
    ///
    /// Formula: where both ends are in one iteration of some loops, so is what runs in between.
    fn without_detours(&self, mut map: isl::Map, decider: Decider) -> Result<isl::Map, isl::IslError> {
        if self.detours.is_empty() || map.is_empty()? {
            return Ok(map);
        }
        let depth = match decider {
            Decider::Loop(k) => k,
            Decider::Text => self.pairs.common,
        };
        for (first, second) in &self.detours {
            let (Some(first), Some(second)) = (first.within(depth), second.within(depth)) else { continue };
            let Some(detour) = Detour(first, second).kept_map()? else { continue };
            // to subtract, isl finds formulas for what lies in between, which takes much longer than to tell that
            // nothing does
            let between = map.intersect(&detour)?;
            if !between.is_empty()? {
                map = map.subtract(&between)?.coalesce()?;
                if map.is_empty()? {
                    break;
                }
            }
        }
        Ok(map)
    }

    /// Whether a write is between the ends of each pair that a loop decides, because one always is
    /// in the iteration of the sink. This is asked once of a sink, whatever the source.
    ///
    /// Formula: of `{ i -> j : f(i) = g(j), i in an earlier iteration than j }` nothing is left if
    /// each `j` is in the range of `{ w -> j : h(w) = g(j), w before j in its iteration }`, as then
    /// `f(i) = h(w)`.
    fn is_overwritten(&self, decider: Decider) -> Result<bool, isl::IslError> {
        let Decider::Loop(k) = decider else { return Ok(false) };
        let Pairs { ends: [_, sink], same, symbols, .. } = &self.pairs;
        if self.detours.is_empty() || sink.reductions > 0 {
            return Ok(false);
        }
        let equal = |same: &[(Linear, Linear)], x: &Linear, y: &Linear| {
            (x == y && x.is_constant()) || same.iter().any(|(p, q)| p == x && q == y)
        };
        let hides = |(first, second): &(Pairs, Pairs)| {
            let at_sink = || same.iter().chain(&second.same).map(|(_, z)| z);
            let meets =
                |(x, y): &(Linear, Linear)| at_sink().any(|z| equal(same, x, z) && equal(&second.same, y, z));
            let decides = first.deciders().any(|decider| decider == Decider::Loop(k));
            if decides && first.same.iter().all(meets) { second.within(k + 1) } else { None }
        };
        let written = |pairs| Arc::new(Self { pairs, detours: Vec::new() });
        let flows: Vec<_> = self.detours.iter().filter_map(hides).map(written).collect();
        let (reads, symbols) = (sink.clone(), symbols.clone());
        Ok(!flows.is_empty() && Written { reads, flows, symbols }.answer()?)
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
    /// there are none even with detours.
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
        let part = self.relation.pairs.map_where(&self.names, vec![constraints])?;
        // most parts are empty, and what is overwritten takes long to tell
        if part.is_empty()? || self.relation.is_overwritten(decider)? {
            return Ok(None);
        }
        self.relation.without_detours(part, decider).map(Some)
    }

    /// Whether there is such a pair for values that the symbols can take.
    ///
    /// # Errors
    /// A failure of isl.
    pub(super) fn is_possible(&self, decider: Decider, all: &Differences) -> Result<bool, isl::IslError> {
        let Some(part) = self.part(decider, all)? else { return Ok(false) };
        part.has_pair_within(&self.relation.symbols().ranges)
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
        let relation = self.relation.by_decider();
        // what is overwritten in each iteration of an inner loop is so in each of an outer one
        for decider in relation.deciders().into_iter().rev() {
            for all in &self.part.0 {
                if relation.is_possible(decider, all)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

impl NoPair {
    /// The pairs in the part; loops by number.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn pairs(&self) -> Result<isl::Map, isl::IslError> {
        let (names, symbols) = (self.relation.names(), &self.relation.symbols().names);
        self.relation.select(&|pairs| self.part.of(&pairs, &names, symbols))
    }
}
