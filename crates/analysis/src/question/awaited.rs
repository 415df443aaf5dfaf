//! Whether whatever reads an element finds one that was written.

use super::{Instances, Question, Relation, Shared, Symbols, numbered};
use kingpost_isl as isl;
use std::sync::Arc;

/// Whether every instance of a read is at the end of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Written {
    /// The instances of the read, or more.
    pub(crate) reads: Shared<Instances>,
    /// Flows to it, each from a write that surely runs where it is said to.
    pub(crate) flows: Vec<Arc<Relation>>,
    /// The symbols.
    pub(crate) symbols: Shared<Symbols>,
}

impl Question for Written {
    type Answer = bool;

    const ASKS: &'static str = "whether all that is waited for is written";

    fn ask(&self) -> Result<bool, isl::IslError> {
        let names = numbered(self.reads.depth(), "'");
        let space = isl::SetSpace::new(&names, &self.symbols.names);
        let all = self.symbols.restrict(self.reads.named(&names, &self.symbols));
        let mut rest = isl::Set::from_disjuncts(&space, &all)?;
        for flow in &self.flows {
            rest = rest.subtract(&flow.map()?.range()?)?;
        }
        rest.is_empty()
    }
}
