//! What a tuner does, on standard error: a bar with the time left, or lines where nobody looks at a
//! terminal.

use super::failure::Signal;
use super::table::seconds;
use super::terminal::shown;
use indicatif::{ProgressBar, ProgressStyle};
use kingpost::Mapping;
use kingpost::autotune::tuner::{Event, Observer};
use kingpost::autotune::{Outcome, Workload};
use kingpost::tuning::{Candidate, Record};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Shows trials as they come and stops between two of them when it is told to.
pub struct Trials {
    bar: ProgressBar,
    terminal: bool,
    /// Set by Ctrl-C and by a request to terminate.
    interrupted: Arc<AtomicBool>,
    /// Which of both that was.
    signal: Arc<AtomicUsize>,
    /// Starts a process that goes on where this one hangs.
    restart: fn(),
}

impl Trials {
    /// An observer; from now on the first Ctrl-C stops after the trial that runs, the second at
    /// once.
    pub fn new(restart: fn()) -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos} of {len}, {eta} left  {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        let interrupted = Arc::new(AtomicBool::new(false));
        let which = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM] {
            // A handler that cannot be set leaves the signal as it is: the process ends, the
            // database is whole.
            let _ = flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted));
            let _ = flag::register_usize(signal, Arc::clone(&which), signal as usize);
            let _ = flag::register(signal, Arc::clone(&interrupted));
        }
        Self { bar, terminal: std::io::stderr().is_terminal(), interrupted, signal: which, restart }
    }

    /// What stopped the trials from outside, if something did.
    pub fn signal(&self) -> Option<Signal> {
        match self.signal.load(Ordering::SeqCst) as i32 {
            SIGINT => Some(Signal::Interrupt),
            SIGTERM => Some(Signal::Terminate),
            _ => None,
        }
    }

    /// Says something without disturbing the bar.
    pub fn say(&self, text: &str) {
        let text = &*shown(text);
        if self.terminal {
            self.bar.println(text);
        } else {
            eprintln!("{text}");
        }
    }

    fn done(&self, record: &Record) {
        self.bar.inc(1);
        let what = shown(&format!("{}, {}", record.workload.case, record.parameters)).into_owned();
        match &record.outcome {
            Outcome::Measured(m) if self.terminal => {
                self.bar.set_message(format!("{what}: {}", seconds(m.median_s)));
            }
            Outcome::Measured(m) => eprintln!("{what}: {}", seconds(m.median_s)),
            Outcome::Refused(refusal) => self.say(&format!("{what}: refused: {}", first_line(refusal))),
        }
    }

    fn trying(&self, workload: &Workload, candidate: &Candidate) {
        self.bar.set_message(format!("{}, {}", workload.case, candidate.parameters));
    }
}

/// Compilers write long logs; the database keeps them whole.
pub fn first_line(refusal: &impl ToString) -> String {
    let text = refusal.to_string();
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(200).collect();
    if short.len() < text.len() { short + " …" } else { short }
}

impl Observer<Mapping> for Trials {
    fn event(&self, event: Event<'_, Mapping>) {
        match event {
            Event::Planned { trials, known } => {
                self.bar.set_length(trials as u64);
                if known > 0 {
                    self.say(&format!("{known} trials are in the database already, {trials} to do"));
                }
            }
            Event::Waiting { reason } => self.say(&format!("waiting: {reason}")),
            Event::Trying(workload, candidate) => self.trying(workload, candidate),
            Event::Done(record) => self.done(record),
            Event::Skipped { workload, trials, reason } => {
                self.bar.inc(trials as u64);
                self.say(&format!("{}: {trials} trials passed over: {reason}", workload.case));
            }
        }
    }

    fn wants_stop(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }

    fn hangs(&self, record: &Record) {
        self.say(&format!("{}, {}: it hangs; starting again", record.workload.case, record.parameters));
        (self.restart)();
    }
}

impl Drop for Trials {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
