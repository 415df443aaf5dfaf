//! What isl has answered, by what it was asked.

use crate::question::{Apart, Covered, NoPair, NothingBetween, Order, Question, Written};
use foldhash::fast::FixedState;
use kingpost_isl::{self as isl, IslError};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

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
    /// Whether all that groups wait for is written.
    pub(crate) written: Memory<Written>,
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

/// Maximum number of answers of a kind that are kept; a step of a recipe asks a few dozen
/// questions.
const KEPT: usize = 4096;

/// Operations of the solver that one question may take: some seconds.
const LIMIT: u64 = 50_000_000;

/// Answers of one kind.
pub(crate) struct Memory<Q: Question>(Mutex<HashMap<Q, Q::Answer, FixedState>>);

impl<Q: Question> Default for Memory<Q> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Q: Question> Memory<Q> {
    /// The answer that is kept, or else that of isl. Failures are not kept.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn answer(&self, question: &Q) -> Result<Q::Answer, IslError> {
        if let Some(known) = self.lock().get(question) {
            return Ok(known.clone());
        }
        let answer = isl::with_operation_limit(LIMIT, || question.ask())
            .map_err(|e| e.asked(|| Q::ASKS.to_owned()))?;
        let mut kept = self.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(question.clone(), answer.clone());
        Ok(answer)
    }

    /// Nothing in here can be half done, so that a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, HashMap<Q, Q::Answer, FixedState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { covered, order, apart, between, no_pair, written } = self;
        let kept = covered.lock().len()
            + order.lock().len()
            + apart.lock().len()
            + between.lock().len()
            + no_pair.lock().len()
            + written.lock().len();
        f.debug_struct("Answers").field("kept", &kept).finish()
    }
}
