//! Graphs that run concurrently with the host.

use super::context::{Context, Stopwatch};
use crate::device::Running;
use crate::error::RuntimeError;
use std::sync::{Arc, Mutex, PoisonError};

/// The stopwatches of a card that no run uses: events take longer to make than a short graph runs.
#[derive(Clone, Default)]
pub(super) struct Stopwatches(Arc<Mutex<Vec<Stopwatch>>>);

impl Stopwatches {
    fn take(&self, context: &Arc<Context>) -> Result<Stopwatch, RuntimeError> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.map_or_else(|| Stopwatch::new(context), Ok)
    }

    /// Puts a graph on the default stream between the start and the end of a stopwatch.
    pub(super) fn run(
        &self,
        context: &Arc<Context>,
        graph: impl FnOnce() -> Result<(), RuntimeError>,
    ) -> Result<Run, RuntimeError> {
        let stopwatch = self.take(context)?;
        stopwatch.start()?;
        let put = graph();
        stopwatch.stop()?;
        // one that failed is waited for as well, as nobody knows how far it came
        let run = Run { stopwatch: Some(stopwatch), free: self.clone() };
        put.map(|()| run)
    }
}

/// A graph on its way.
pub(super) struct Run {
    /// None once it has ended.
    stopwatch: Option<Stopwatch>,
    free: Stopwatches,
}

impl Run {
    /// Waits for the end: the seconds that it took, if it had not ended before.
    fn wait(&mut self) -> Result<Option<f64>, RuntimeError> {
        let Some(stopwatch) = self.stopwatch.take() else { return Ok(None) };
        let seconds = stopwatch.seconds()?;
        self.free.0.lock().unwrap_or_else(PoisonError::into_inner).push(stopwatch);
        Ok(Some(seconds))
    }
}

impl Running for Run {
    fn finish(mut self: Box<Self>) -> Result<f64, RuntimeError> {
        // one that has ended has no second end
        Ok(self.wait()?.unwrap_or_default())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // nobody is left to tell of a failure
        let _ = self.wait();
    }
}
