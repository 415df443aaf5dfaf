//! What isl has answered, by what it was asked.

use crate::deps::words::Words;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Questions to isl that are settled. The next step of a recipe meets most of them again, so that one store is handed
/// from the analysis of a kernel to that of the next ([`crate::Analysis::next`]).
///
/// Plain data: it may be shared between threads.
#[derive(Default)]
pub struct Answers {
    /// Whether a write covers what an access touches.
    pub(crate) covered: Memory<bool>,
    /// The depths of the loops whose barriers order a dependence.
    pub(crate) carriers: Memory<Vec<Option<usize>>>,
    /// Dependences whose ends run together.
    pub(crate) together: Memory<()>,
}

/// Maximum number of answers of a kind that are kept; a step of a recipe asks a few dozen questions.
const KEPT: usize = 4096;

/// Answers of one kind.
pub(crate) struct Memory<T>(Mutex<HashMap<Words, T>>);

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<T: Clone> Memory<T> {
    /// The answer that is kept, or else the one that is found now. Errors are not kept.
    ///
    /// # Errors
    /// What `find` returns.
    pub(crate) fn answer<E>(&self, question: Words, find: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if let Some(known) = self.lock().get(&question) {
            return Ok(known.clone());
        }
        let answer = find()?;
        let mut kept = self.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(question, answer.clone());
        Ok(answer)
    }
}

impl<T> Memory<T> {
    /// Nothing in here can be half done, so that a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, HashMap<Words, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = [self.covered.lock().len(), self.carriers.lock().len(), self.together.lock().len()];
        f.debug_struct("Answers").field("kept", &kept.iter().sum::<usize>()).finish()
    }
}
