//! What isl's scheduler has answered: several ideas begin with the same bands.

use kingpost_ir::Kernel;
use kingpost_isl::{Objective, ScheduleTree};
use kingpost_steps::TransformError;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Answers, by what was asked.
#[derive(Debug, Default)]
pub(crate) struct Asked(Mutex<Vec<Question>>);

#[derive(Debug)]
struct Question {
    kernel: Kernel,
    objective: Objective,
    answer: Arc<Answer>,
}

/// An order of all instances, or why there is none.
pub(crate) type Answer = OnceLock<Result<ScheduleTree, TransformError>>;

impl Asked {
    /// The answer for a kernel, which who comes first has to find.
    pub(crate) fn answer(&self, kernel: &Kernel, objective: Objective) -> Arc<Answer> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|q| q.objective == objective && q.kernel == *kernel) {
            return Arc::clone(&known.answer);
        }
        let answer = Arc::<Answer>::default();
        all.push(Question { kernel: kernel.clone(), objective, answer: Arc::clone(&answer) });
        answer
    }
}
