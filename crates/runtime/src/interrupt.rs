//! Requests to stop, which the long work of a thread asks about between its parts.
//!
//! Whoever starts such work says how to find out, as Python's package does for signals. Devices ask
//! before they compile, launch or copy, and the waiting for a compiler asks meanwhile, so that
//! work that is made of these ends soon after the request.
//!
//! ```
//! use kingpost_runtime::{RuntimeError, check_interrupt, interruptible};
//!
//! let stopped = interruptible(|| true, || (0..).try_for_each(|_| check_interrupt()));
//! assert!(matches!(stopped, Err(RuntimeError::Interrupted)));
//! assert!(check_interrupt().is_ok()); // nobody asks to stop what comes later
//! ```

use crate::error::RuntimeError;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How often the question is asked: below what a user notices, and seldom enough to cost nothing.
const EVERY: Duration = Duration::from_millis(50);

/// What a thread knows of requests to stop.
#[derive(Clone, Copy)]
struct Watch {
    is_requested: fn() -> bool,
    asked: Instant,
    /// A request stays: work that goes on after an error ends at the next question.
    stopped: bool,
}

thread_local! {
    static WATCH: Cell<Option<Watch>> = const { Cell::new(None) };
}

/// Puts the former watch back, if the work panics too.
struct Restored(Option<Watch>);

impl Drop for Restored {
    fn drop(&mut self) {
        WATCH.set(self.0);
    }
}

/// Runs `work`, which ends with [`RuntimeError::Interrupted`] soon after `is_requested` says so.
pub fn interruptible<T>(is_requested: fn() -> bool, work: impl FnOnce() -> T) -> T {
    let _restored = Restored(WATCH.get());
    WATCH.set(Some(Watch { is_requested, asked: Instant::now(), stopped: false }));
    work()
}

/// Whether this thread may be asked to stop.
pub(crate) fn is_watched() -> bool {
    WATCH.get().is_some()
}

/// Asks whether to stop; often, because most questions are answered from the last one.
///
/// # Errors
/// [`RuntimeError::Interrupted`] if this thread is to stop.
pub fn check_interrupt() -> Result<(), RuntimeError> {
    let Some(mut watch) = WATCH.get() else { return Ok(()) };
    if !watch.stopped && watch.asked.elapsed() >= EVERY {
        watch.stopped = (watch.is_requested)();
        watch.asked = Instant::now();
        WATCH.set(Some(watch));
    }
    if watch.stopped { Err(RuntimeError::Interrupted) } else { Ok(()) }
}
