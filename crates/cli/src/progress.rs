//! What is going on, on standard error, where a person looks at it, or of what takes long.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A stage that takes longer is worth a line where nobody looks on.
const LONG: Duration = Duration::from_secs(1);

/// A line that says which stage is under way and for how long; nothing unless standard error is a terminal,
/// or [long stages](Progress::of_long_stages) are noted.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    stage: Arc<Mutex<Stage>>,
}

/// The stage that is under way.
struct Stage {
    is_written: bool,
    what: String,
    since: Instant,
}

impl Stage {
    /// Ends it, and enters the next one.
    fn enter(&mut self, what: String) {
        let lasted = self.since.elapsed();
        if self.is_written && lasted > LONG && !self.what.is_empty() {
            // a reader that has gone is no reason to stop
            _ = writeln!(std::io::stderr(), "kingpost: {}: {:.1} s", self.what, lasted.as_secs_f64());
        }
        (self.what, self.since) = (what, Instant::now());
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.enter(String::new());
    }
}

impl Progress {
    /// A line without a stage yet.
    #[must_use]
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        let stage = Stage { is_written: false, what: String::new(), since: Instant::now() };
        Self { bar, stage: Arc::new(Mutex::new(stage)) }
    }

    /// The same, and where standard error is no terminal a line for each stage that took more than a
    /// second, when it has ended.
    #[must_use]
    pub fn of_long_stages() -> Self {
        let this = Self::new();
        this.of_stage().is_written = !std::io::stderr().is_terminal();
        this
    }

    fn of_stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a stage.
    pub fn stage(&self, what: impl Into<String>) {
        let what = what.into();
        self.bar.set_message(what.clone());
        self.of_stage().enter(what);
    }

    /// What tells a person of the stages of work that says them itself, after some words.
    pub fn teller(&self, before: &'static str) -> impl Fn(&str) + 'static {
        let this = self.clone();
        move |what| this.stage(format!("{before}{what}"))
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // those that tell of stages have copies
        if Arc::strong_count(&self.stage) == 1 {
            self.bar.finish_and_clear();
        }
    }
}
