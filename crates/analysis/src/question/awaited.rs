//! Whether whatever reads an element finds one that was written.

use super::{Instances, Linear, Memory, Question, Relation, Shared, Symbols, numbered, values};
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
        if self.is_found().unwrap_or(false) {
            return Ok(true);
        }
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
    /// Whether each element that is read is written before in the iteration of the loops around
    /// both, element by element; `None` if that is not known. Fragments lie by quotients of
    /// quotients, which isl takes minutes for.
    ///
    /// Formula: `{ g(j) : j in reads }` is in the union of `{ f(i) : i in writes }`, loops around both
    /// that these mention among their values.
    fn is_found(&self) -> Option<bool> {
        let suits = |flow: &&Arc<Relation>| flow.detours.is_empty() && flow.pairs.ends[1] == self.reads;
        let flows: Vec<_> = self
            .flows
            .iter()
            .filter(suits)
            .filter_map(|flow| Some((flow.pairs.as_written()?, &flow.pairs)))
            .collect();
        let ((_, read), _) = flows.first()?;
        // isl is fast where nothing is divided
        if !flows.iter().any(|((written, read), _)| written.iter().chain(read).any(Linear::divides)) {
            return None;
        }
        let mut rest = values(&self.reads, read)?;
        for ((written, of), pairs) in &flows {
            if of == read {
                let found = values(&pairs.ends[0], written)?;
                rest.retain(|element| !found.contains(element));
            }
        }
        Some(rest.is_empty())
    }

    /// The answer of this process: relations ask it, too, which have no store.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn answer(&self) -> Result<bool, isl::IslError> {
        static ANSWERS: LazyLock<Memory<Written>> = LazyLock::new(Memory::default);
        ANSWERS.answer(self)
    }
}
