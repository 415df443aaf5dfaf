//! What a dialogue works on.

use super::answer::Wrong;
use super::arguments::Run;
use kingpost::explore::Session;
use kingpost::interp::Memory;
use kingpost::ir::Kernel;
use kingpost::judge::Expected;
use kingpost::runtime::Device;
use kingpost::transforms::Script;

/// What a session of messages works on.
#[derive(Default)]
pub struct Server {
    /// The kernel.
    pub subject: Option<Subject>,
    /// Where it was run last.
    pub bench: Option<Bench>,
}

/// A kernel with what was done to it.
pub struct Subject {
    /// The kernel and its steps.
    pub session: Session,
    /// The schedule with holes that came with it.
    pub script: Option<Script>,
}

impl Server {
    /// The kernel.
    pub fn subject(&self) -> Result<&Subject, Wrong> {
        self.subject.as_ref().ok_or_else(nothing_loaded)
    }

    /// The kernel, to change it.
    pub fn subject_mut(&mut self) -> Result<&mut Subject, Wrong> {
        self.subject.as_mut().ok_or_else(nothing_loaded)
    }
}

/// What calls say before the first `load`.
pub fn nothing_loaded() -> Wrong {
    Wrong::new("usage", "no kernel is loaded; call `load` first")
}

/// A device, and what a kernel is run on there.
pub struct Bench {
    /// What was asked for.
    pub asked: Run,
    /// The kernel that this is for, before any step.
    pub written: Kernel,
    /// Where it runs.
    pub device: Box<dyn Device>,
    /// Its inputs.
    pub memory: Memory,
    /// What its results must be, once that is asked.
    pub expected: Option<Expected>,
}
