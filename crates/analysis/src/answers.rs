//! What isl has answered, by what it was asked.

use crate::question::{Apart, Covered, Memory, NoPair, NothingBetween, Order};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Questions to isl that are settled. The next step of a recipe meets most of them again, so that
/// one store is handed from the analysis of a kernel to that of the next
/// ([`crate::Analysis::next`]).
///
/// Plain data: it may be shared between threads.
#[derive(Default)]
pub struct Answers {
    /// Whether a write covers what an access touches.
    pub(crate) covered: Memory<Covered>,
    /// Whether barriers order a dependence, and which.
    pub(crate) order: Memory<Order>,
    /// Whether the ends of a dependence run apart.
    pub(crate) apart: Memory<Apart>,
    /// Whether nothing is written while a value is alive.
    pub(crate) between: Memory<NothingBetween>,
    /// Whether a part of a relation is empty.
    pub(crate) no_pair: Memory<NoPair>,
}

impl Answers {
    /// The store of this process. A question is a value that says all that isl is told, so that the
    /// answer is the same whoever asks: candidates of a tuner and steps of a recipe share most of
    /// theirs.
    pub fn shared() -> Arc<Self> {
        static SHARED: LazyLock<Arc<Answers>> = LazyLock::new(Arc::default);
        Arc::clone(&SHARED)
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { covered, order, apart, between, no_pair } = self;
        let kept = covered.len() + order.len() + apart.len() + between.len() + no_pair.len();
        f.debug_struct("Answers").field("kept", &kept).finish()
    }
}
