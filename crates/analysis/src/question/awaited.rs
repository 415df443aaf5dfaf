//! Whether whatever reads an element finds one that was written.

use super::{Instances, Memory, Question, Relation, Shared, Symbols, numbered};
use kingpost_isl as isl;
use std::sync::{Arc, LazyLock};

/// Whether every instance of a read is at the end of a flow: what groups wait for is written, or
/// what a value would be read by is overwritten before.
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

    const ASKS: &'static str = "whether all that is read was written before";

    fn ask(&self) -> Result<bool, isl::IslError> {
        let names = numbered(self.reads.depth(), "'");
        let space = isl::SetSpace::new(&names, &self.symbols.names);
        let all = self.symbols.restrict(self.reads.named(&names, &self.symbols));
        let mut rest = isl::Set::from_disjuncts(&space, &all)?;
        for flow in &self.flows {
            if rest.is_empty()? {
                break;
            }
            rest = rest.subtract(&flow.map()?.range()?)?;
        }
        rest.is_empty()
    }
}

impl Written {
    /// The answer of this process: relations ask it, too, which have no store.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn answer(&self) -> Result<bool, isl::IslError> {
        static ANSWERS: LazyLock<Memory<Written>> = LazyLock::new(Memory::default);
        ANSWERS.answer(self)
    }
}
