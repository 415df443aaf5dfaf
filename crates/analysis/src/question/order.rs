//! Which barriers order the ends of a dependence, and whether it leaves a sub-group.

use super::pairs::{Decider, Differences};
use super::relation::ByDecider;
use super::{Linear, Part, Question, Relation, Sign};
use kingpost_isl as isl;
use std::sync::Arc;

/// Pairs of instances of one group that run apart: in different work-items, or in different
/// sub-groups. The question is whether there is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Apart {
    /// The pairs.
    pub(crate) relation: Arc<Relation>,
    /// Coordinates of the ends that are equal in one group.
    pub(crate) groups: Vec<(Linear, Linear)>,
    /// The pairs that run apart, axis by axis.
    pub(crate) items: Vec<Part>,
}

/// How pairs of instances of one group in different work-items are kept in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Order {
    /// The pairs.
    pub(crate) apart: Apart,
    /// Whether both ends update by one operator, which no barrier keeps from clashing.
    pub(crate) updates: bool,
    /// The common loops that are sequential and may advance from source to sink.
    pub(crate) splits: Vec<usize>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ordered {
    /// By barriers: for each the loop that carries it, if one does.
    Barriers(Vec<Option<usize>>),
    /// Updates that clash.
    NotAtomic,
    /// Pairs that no barrier orders: the first loop of `splits` that runs backward; none: those at
    /// one iteration of all of them, whose order the text does not decide.
    Unordered(Option<usize>),
}

impl Question for Order {
    type Answer = Ordered;

    const ASKS: &'static str = "whether barriers keep the order of instances in different work-items";

    /// The pairs are taken apart by what decides their order, which often says how each loop steps.
    fn ask(&self) -> Result<Ordered, isl::IslError> {
        if self.updates {
            let clash = self.apart.ask()?;
            return Ok(if clash { Ordered::NotAtomic } else { Ordered::Barriers(Vec::new()) });
        }
        let relation = self.apart.relation.by_decider();
        let mut parts = crossing_parts(&relation);
        let not_empty = |decider, all: &Differences| relation.has_pair(decider, all);
        let possible = |decider, all: &Differences| relation.is_possible(decider, all);
        let mut carriers = Vec::new();
        for depth in &self.splits {
            let mut rest = Vec::with_capacity(parts.len());
            let mut carries = false;
            for part in parts {
                let steps = |sign| part.stepping(*depth, sign);
                match relation.sign(part.decider, *depth) {
                    Some(Sign::Positive) => carries = carries || self.apart.any(&part, &not_empty)?,
                    Some(Sign::Zero) => rest.push(part),
                    Some(Sign::Negative) | None => {
                        carries = carries || self.apart.any(&steps(Sign::Positive), &not_empty)?;
                        if self.apart.any(&steps(Sign::Negative), &possible)? {
                            return Ok(Ordered::Unordered(Some(*depth)));
                        }
                        rest.push(steps(Sign::Zero));
                    }
                }
            }
            carriers.extend(carries.then_some(Some(*depth)));
            parts = rest;
        }
        for part in &parts {
            if self.apart.relation.pairs.span.textual {
                if self.apart.any(part, &not_empty)? {
                    carriers.push(None);
                    break;
                }
            } else if self.apart.any(part, &possible)? {
                return Ok(Ordered::Unordered(None));
            }
        }
        Ok(Ordered::Barriers(carriers))
    }
}

/// The pairs that something decides, as far as they are left.
struct Crossing {
    decider: Decider,
    /// The steps of loops that they have.
    steps: Differences,
}

impl Crossing {
    fn new(decider: Decider, steps: Differences) -> Self {
        Self { decider, steps }
    }

    /// Those at which a common loop steps so.
    fn stepping(&self, depth: usize, sign: Sign) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step(depth, sign));
        Self::new(self.decider, steps)
    }
}

/// The step of a common loop.
fn step(depth: usize, sign: Sign) -> (Sign, Linear, Linear) {
    let value = Linear::of_loop(depth);
    (sign, value.clone(), value)
}

impl Question for Apart {
    type Answer = bool;

    const ASKS: &'static str = "whether instances that depend on each other run in different work-items";

    /// Whether there is such a pair for values that the symbols can take.
    fn ask(&self) -> Result<bool, isl::IslError> {
        let relation = self.relation.by_decider();
        for part in &crossing_parts(&relation) {
            if self.any(part, &|decider, all| relation.is_possible(decider, all))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The pairs of a relation, by what decides their order.
fn crossing_parts(relation: &ByDecider) -> Vec<Crossing> {
    relation.deciders().into_iter().map(|d| Crossing::new(d, Vec::new())).collect()
}

impl Apart {
    /// Whether some of the pairs are as asked.
    fn any(
        &self,
        part: &Crossing,
        asked: &dyn Fn(Decider, &Differences) -> Result<bool, isl::IslError>,
    ) -> Result<bool, isl::IslError> {
        let same = self.groups.iter().map(|(x, y)| (Sign::Zero, x.clone(), y.clone()));
        let common: Differences = part.steps.iter().cloned().chain(same).collect();
        for apart in self.items.iter().flat_map(|axis| &axis.0) {
            let all: Differences = common.iter().chain(apart).cloned().collect();
            if asked(part.decider, &all)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Order {
    /// The pairs that stand against an order by barriers.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn pairs_against(&self, answer: &Ordered) -> Result<Option<isl::Map>, isl::IslError> {
        let Some(mut rest) = self.crossing()? else { return Ok(None) };
        let backward = match answer {
            Ordered::Barriers(_) => return Ok(None),
            Ordered::NotAtomic => return Ok(Some(rest)),
            Ordered::Unordered(backward) => *backward,
        };
        for depth in self.splits.iter().take_while(|depth| Some(**depth) != backward) {
            rest = self.stepping(*depth, Sign::Zero, &rest)?;
        }
        match backward {
            Some(depth) => self.stepping(depth, Sign::Negative, &rest).map(Some),
            None => Ok(Some(rest)),
        }
    }

    /// The pairs in one group but in different work-items; `None` if there are none.
    fn crossing(&self) -> Result<Option<isl::Map>, isl::IslError> {
        // groups first: they leave few pairs
        let Apart { relation, groups, items } = &self.apart;
        let same = groups.iter().map(|(x, y)| (Sign::Zero, x.clone(), y.clone())).collect();
        let whole = self.part(&Part(vec![same]), &relation.map()?)?;
        let mut crossing: Option<isl::Map> = None;
        for apart in items {
            let part = self.part(apart, &whole)?;
            if part.is_empty()? {
                continue;
            }
            crossing = Some(match crossing {
                None => part,
                Some(sum) => sum.union(&part)?,
            });
        }
        Ok(crossing)
    }

    /// The pairs at which a common loop advances so.
    fn stepping(&self, depth: usize, sign: Sign, whole: &isl::Map) -> Result<isl::Map, isl::IslError> {
        self.part(&Part(vec![vec![step(depth, sign)]]), whole)
    }

    fn part(&self, part: &Part, whole: &isl::Map) -> Result<isl::Map, isl::IslError> {
        let relation = &self.apart.relation;
        part.of(whole, &relation.names(), &relation.symbols().names)
    }
}
