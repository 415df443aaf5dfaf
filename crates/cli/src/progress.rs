//! What is going on, on standard error, where a person looks at it.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A line that says which stage is under way and for how long; nothing unless standard error is a
/// terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// A line without a stage yet.
    #[must_use]
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Enters a stage.
    pub fn stage(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
