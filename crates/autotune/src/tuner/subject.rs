//! What is tuned, how, and what is told of it.

use crate::mapping::Mapping;
use crate::record::{Candidate, Errors, Record, Refusal, Setup, Workload};
use kingpost_runtime::cuda::ptxas::Resources;
use kingpost_runtime::{Timing, TimingOptions, Turns};
use std::time::Duration;

/// A case to tune: how its programs and its inputs are made.
pub trait Subject: Sync {
    /// How it may be mapped.
    type Mapping: Mapping;
    /// A compiled candidate.
    type Program: Send;
    /// Inputs and reference values in the memory of the host.
    type Inputs: Send;
    /// The case in the memory of its device.
    type Session<'s>: Session<Program = Self::Program>
    where
        Self: 's;

    /// What is computed, and how much of it.
    fn workload(&self) -> &Workload;

    /// Transforms, generates and compiles; on any thread, several at once.
    ///
    /// # Errors
    /// Which stage refused, and why.
    fn build(&self, parameters: &Self::Mapping) -> Result<Built<Self::Program>, Refusal>;

    /// Makes inputs and reference values; on any thread, ahead of their use.
    ///
    /// # Errors
    /// Why there are none; the case is passed over.
    fn prepare(&self) -> Result<Self::Inputs, String>;

    /// Moves inputs to the device; on the thread that owns it.
    ///
    /// # Errors
    /// Why the device does not take them; the case is passed over.
    fn load(&self, inputs: Self::Inputs) -> Result<Self::Session<'_>, String>;
}

/// A compiled candidate.
pub struct Built<P> {
    /// What the subject's session runs.
    pub program: P,
    /// Hash of the transformed kernel.
    pub kernel: String,
    /// Registers, spills and memory where the compiler reports them.
    pub resources: Option<Resources>,
    /// FLOP of one launch of the transformed kernel, where they can be counted.
    pub executed_flops: Option<u64>,
}

/// A case in the memory of its device.
pub trait Session {
    /// A compiled candidate.
    type Program;

    /// Runs a candidate on fresh outputs and compares it with the reference. The first one that is
    /// right may become the reference of those that follow.
    ///
    /// # Errors
    /// The launch failed, or the result is wrong.
    fn check(&mut self, program: &Self::Program) -> Result<Errors, Refusal>;

    /// Times a candidate.
    ///
    /// # Errors
    /// The launch failed.
    fn time(&mut self, program: &Self::Program, options: &TimingOptions) -> Result<Timing, Refusal>;

    /// Joules that the device takes in one run of the candidate that was timed last, of runs of at least `seconds`;
    /// none where it has no counter.
    ///
    /// # Errors
    /// The launch failed.
    fn joules(&mut self, _: &Self::Program, _seconds: f64) -> Result<Option<f64>, Refusal> {
        Ok(None)
    }

    /// What computing inputs took that the candidate that was checked last has of its own.
    fn setup(&self) -> Option<Setup> {
        None
    }

    /// Whether the device still works: after some faults it refuses everything.
    fn is_alive(&self) -> bool;
}

/// How to tune.
#[derive(Clone, Debug)]
pub struct TunerOptions {
    /// Warm-up and runs.
    pub timing: TimingOptions,
    /// A candidate whose first run takes this many times the best median is not run again.
    pub hopeless: f64,
    /// Threads that generate and compile.
    pub threads: usize,
    /// Whether the device computes on the cores that compile: then some candidates are compiled,
    /// and nothing is while they are timed.
    pub shares_cores: bool,
    /// No candidate is begun later than this after the start.
    pub time_limit: Option<Duration>,
    /// A candidate that keeps the device longer than this hangs.
    pub patience: Duration,
    /// Try again what the database holds.
    pub again: bool,
    /// Seed of the inputs, for the records.
    pub seed: u64,
    /// Turns at the device.
    pub turns: Turns,
}

impl Default for TunerOptions {
    fn default() -> Self {
        Self {
            timing: TimingOptions::default(),
            hopeless: 5.0,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            shares_cores: true,
            time_limit: None,
            patience: Duration::from_secs(120),
            again: false,
            seed: 0,
            turns: Turns::free(),
        }
    }
}

/// What happens while tuning.
#[derive(Debug)]
pub enum Event<'e, M> {
    /// The number of trials to run, without those that the database holds.
    Planned {
        /// To be done.
        trials: usize,
        /// Found in the database.
        known: usize,
    },
    /// Nothing can be done until other processes have; it is said once a run.
    Waiting {
        /// What they do.
        reason: &'e str,
    },
    /// A trial begins on the device.
    Trying(&'e Workload, &'e Candidate<M>),
    /// A trial is done and kept.
    Done(&'e Record<M>),
    /// A case is passed over with all its trials.
    Skipped {
        /// The case.
        workload: &'e Workload,
        /// Its trials.
        trials: usize,
        /// Why.
        reason: &'e str,
    },
}

/// What the caller of a tuner sees and decides.
pub trait Observer<M>: Sync {
    /// Something happened.
    fn event(&self, event: Event<'_, M>);
    /// Whether to stop before the next trial.
    fn wants_stop(&self) -> bool;
    /// A candidate does not come back from the device; its record is kept. The thread that waits
    /// for it cannot be freed: the process has to end.
    fn hangs(&self, record: &Record<M>);
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything was tried.
    Complete,
    /// The observer or the time limit stopped it, and some trials are left.
    Stopped {
        /// Trials that are left.
        left: usize,
    },
    /// A candidate broke the device; it is recorded, and a new process can go on.
    DeviceLost {
        /// Trials that are left.
        left: usize,
    },
}

/// One thing to make ahead.
pub(super) enum Job<'t, S: Subject> {
    /// The inputs of a case, with the trials that need them.
    Prepare(&'t S, usize),
    /// A candidate to try, or only to serve as reference because its time is known.
    Build { subject: &'t S, candidate: &'t Candidate<S::Mapping>, only_reference: bool },
}

impl<S: Subject> Job<'_, S> {
    pub(super) fn is_trial(&self) -> bool {
        matches!(self, Self::Build { only_reference: false, .. })
    }
}
