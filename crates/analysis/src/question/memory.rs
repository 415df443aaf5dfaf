//! What isl has answered to questions of one kind.

use super::Question;
use foldhash::fast::FixedState;
use kingpost_isl::{self as isl, IslError};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
        if kept.len() >= Q::KEPT {
            kept.clear();
        }
        kept.insert(question.clone(), answer.clone());
        Ok(answer)
    }

    /// How many answers are kept.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Nothing in here can be half done, so that a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, HashMap<Q, Q::Answer, FixedState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
