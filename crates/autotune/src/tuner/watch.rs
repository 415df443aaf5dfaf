//! A watch over the device: who keeps it, and since when.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is on the device, for a thread that watches.
pub(super) struct Watch<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    running: Option<(Instant, T)>,
    closed: bool,
}

impl<T: Clone> Watch<T> {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { running: None, closed: false }), changed: Condvar::new() }
    }

    fn set(&self, change: impl FnOnce(&mut State<T>)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// `what` is on the device from now on.
    pub(super) fn begin(&self, what: T) {
        self.set(|s| s.running = Some((Instant::now(), what)));
    }

    /// The device is free again.
    pub(super) fn end(&self) {
        self.set(|s| s.running = None);
    }

    /// Nothing more will come.
    pub(super) fn close(&self) {
        self.set(|s| s.closed = true);
    }

    /// Waits until something has been on the device for longer than
    /// `patience`, which it returns, or for [`Watch::close`].
    pub(super) fn overdue(&self, patience: Duration) -> Option<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.closed {
                return None;
            }
            let left = match &state.running {
                Some((since, what)) => match patience.checked_sub(since.elapsed()) {
                    Some(left) => left,
                    None => return Some(what.clone()),
                },
                None => patience,
            };
            let waited = self.changed.wait_timeout(state, left + Duration::from_millis(1));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stays_too_long_is_overdue() {
        let watch = Watch::new();
        std::thread::scope(|scope| {
            let found = scope.spawn(|| watch.overdue(Duration::from_millis(300)));
            for k in 0..5 {
                watch.begin(k);
                std::thread::sleep(Duration::from_millis(1));
                watch.end();
            }
            watch.begin(7);
            assert_eq!(found.join().ok(), Some(Some(7)));
        });
        watch.end();
        std::thread::scope(|scope| {
            let found = scope.spawn(|| watch.overdue(Duration::from_secs(60)));
            watch.close();
            assert_eq!(found.join().ok(), Some(None));
        });
    }
}
