//! Which barriers order the ends of a dependence.

use super::{Linear, Part, Question, Relation, Sign};
use purlin_isl as isl;
use std::sync::Arc;

/// How pairs of instances of one group in different work-items are kept in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Order {
    /// The pairs.
    pub(crate) relation: Arc<Relation>,
    /// Coordinates of the ends that are equal in one group.
    pub(crate) groups: Vec<(Linear, Linear)>,
    /// The pairs in different work-items, axis by axis.
    pub(crate) items: Vec<Part>,
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
    /// Pairs that no barrier orders.
    Unordered,
}

/// An answer with the pairs that no barrier orders.
type Found = (Ordered, Option<isl::Map>);

impl Question for Order {
    type Answer = Ordered;

    fn ask(&self) -> Result<Ordered, isl::IslError> {
        Ok(self.find()?.0)
    }
}

impl Order {
    /// The answer, and the pairs that stand against it.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn find(&self) -> Result<Found, isl::IslError> {
        let Some(crossing) = self.crossing()? else { return Ok((Ordered::Barriers(Vec::new()), None)) };
        if self.updates {
            return Ok(match self.is_possible(&crossing)? {
                true => (Ordered::NotAtomic, Some(crossing)),
                false => (Ordered::Barriers(Vec::new()), None),
            });
        }
        let mut rest = crossing;
        let mut carriers = Vec::new();
        for depth in &self.splits {
            let part = |sign| self.stepping(*depth, sign, &rest);
            if !part(Sign::Positive)?.is_empty()? {
                carriers.push(Some(*depth));
            }
            let backward = part(Sign::Negative)?;
            if self.is_possible(&backward)? {
                return Ok((Ordered::Unordered, Some(backward)));
            }
            rest = part(Sign::Zero)?;
        }
        if !rest.is_empty()? {
            if self.relation.pairs.span.textual {
                carriers.push(None);
            } else if self.is_possible(&rest)? {
                return Ok((Ordered::Unordered, Some(rest)));
            }
        }
        Ok((Ordered::Barriers(carriers), None))
    }

    /// The pairs in one group but in different work-items; `None` if there are none.
    fn crossing(&self) -> Result<Option<isl::Map>, isl::IslError> {
        // groups first: they leave few pairs
        let same = self.groups.iter().map(|(x, y)| (Sign::Zero, x.clone(), y.clone())).collect();
        let whole = self.part(&Part(vec![same]), &self.relation.map()?)?;
        let mut crossing: Option<isl::Map> = None;
        for apart in &self.items {
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
        let value = Linear::of_loop(depth);
        self.part(&Part(vec![vec![(sign, value.clone(), value)]]), whole)
    }

    fn part(&self, part: &Part, whole: &isl::Map) -> Result<isl::Map, isl::IslError> {
        part.of(whole, &self.relation.names(), &self.relation.symbols().names)
    }

    /// Whether there is a pair for values that the symbols can take.
    fn is_possible(&self, part: &isl::Map) -> Result<bool, isl::IslError> {
        Ok(!part.is_empty()? && part.lexmin_pair_within(&self.relation.symbols().ranges)?.is_some())
    }
}
