//! Trials one after the other on the thread that owns the device.

use super::ahead::Ahead;
use super::watch::Watch;
use super::{Built, Ending, Event, Job, Observer, Session, Subject, TunerOptions};
use crate::database::{Database, DatabaseError};
use crate::mapping::Mapping;
use crate::record::{Candidate, Measurement, Outcome, RECORD_VERSION, Record, Refusal, Stage, Workload};
use purlin_runtime::{DeviceModel, Timing, TimingOptions};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// One run that tells whether a candidate is worth more of them.
const PROBE: TimingOptions = TimingOptions { warm_up: 0, min_runs: 1, min_seconds: 0.0, max_runs: 1 };

/// What stays the same from trial to trial.
pub(super) struct Setting<'t, M> {
    pub machine: &'t DeviceModel,
    pub database: &'t Database<M>,
    pub options: &'t TunerOptions,
    pub observer: &'t dyn Observer<M>,
}

impl<M> Clone for Setting<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Setting<'_, M> {}

/// What was made ahead of its use.
enum Made<S: Subject> {
    Inputs(Result<S::Inputs, String>),
    Built(Result<Built<S::Program>, Refusal>),
}

/// Works through the batches; each is made ahead as a whole.
pub(super) fn run<S: Subject>(
    batches: &[Vec<Job<'_, S>>],
    setting: Setting<'_, S::Mapping>,
    trials: usize,
) -> Result<Ending, DatabaseError> {
    let (threads, in_rounds) = (setting.options.threads.max(1), setting.options.shares_cores);
    let window = threads.saturating_mul(3).saturating_add(8);
    let ahead = Ahead { threads, window, in_rounds };
    let watch = Watch::new();
    let mut run: Run<'_, S> = Run {
        setting,
        watch: &watch,
        started: Instant::now(),
        left: trials,
        session: None,
        best: None,
        ended: None,
    };
    std::thread::scope(|scope| {
        let watcher = || {
            if let Some((workload, candidate)) = watch.overdue(setting.options.patience) {
                hang(setting, &workload, &candidate);
            }
        };
        scope.spawn(watcher);
        let _close = CloseOnExit(&watch);
        let mut result = Ok(());
        for batch in batches {
            run.session = None;
            ahead.run(batch, make, |job, made| match run.take(job, made) {
                Ok(flow) => flow,
                Err(e) => {
                    result = Err(e);
                    ControlFlow::Break(())
                }
            });
            if result.is_err() || run.ended.is_some() {
                break;
            }
        }
        result.map(|()| run.ended.unwrap_or(Ending::Complete))
    })
}

/// Frees the watching thread, however the trials end.
struct CloseOnExit<'w, M: Mapping>(&'w Watch<(Workload, Candidate<M>)>);

impl<M: Mapping> Drop for CloseOnExit<'_, M> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Keeps the record of a candidate that does not come back and tells the observer.
fn hang<M: Mapping>(setting: Setting<'_, M>, workload: &Workload, candidate: &Candidate<M>) {
    let patience = setting.options.patience.as_secs_f64();
    let refusal = Refusal::new(Stage::Hang, format!("no result within {patience:.0} s"));
    let record = record(setting, workload, candidate, Outcome::Refused(refusal));
    // The process ends anyway; a database that cannot be written is no reason to wait for the
    // device.
    let _ = setting.database.append(&record);
    setting.observer.hangs(&record);
}

fn make<S: Subject>(job: &Job<'_, S>) -> Made<S> {
    let panicked = "bug of purlin: it panicked";
    match job {
        Job::Prepare(subject, _) => {
            let prepare = || subject.prepare();
            Made::Inputs(catch_unwind(AssertUnwindSafe(prepare)).unwrap_or_else(|_| Err(panicked.into())))
        }
        Job::Build { subject, candidate, .. } => {
            let build = || subject.build(&candidate.parameters);
            let refused = |_| Err(Refusal::new(Stage::Generate, panicked));
            Made::Built(catch_unwind(AssertUnwindSafe(build)).unwrap_or_else(refused))
        }
    }
}

fn record<M: Mapping>(
    setting: Setting<'_, M>,
    workload: &Workload,
    candidate: &Candidate<M>,
    outcome: Outcome,
) -> Record<M> {
    Record {
        version: RECORD_VERSION,
        workload: workload.clone(),
        device: setting.machine.clone(),
        parameters: candidate.parameters.clone(),
        rank: candidate.rank,
        predicted_s: candidate.predicted_s,
        outcome,
        seed: setting.options.seed,
        unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
    }
}

/// The state between two trials.
struct Run<'t, S: Subject + 't> {
    setting: Setting<'t, S::Mapping>,
    watch: &'t Watch<(Workload, Candidate<S::Mapping>)>,
    started: Instant,
    /// Trials to be done.
    left: usize,
    /// The case on the device; none if it could not be put there.
    session: Option<S::Session<'t>>,
    /// Best median of the case.
    best: Option<f64>,
    ended: Option<Ending>,
}

impl<'t, S: Subject> Run<'t, S> {
    fn take(&mut self, job: &Job<'t, S>, made: Made<S>) -> Result<ControlFlow<()>, DatabaseError> {
        match (job, made) {
            (Job::Prepare(subject, trials), Made::Inputs(inputs)) => {
                if self.wants_stop() {
                    return Ok(self.end(Ending::Stopped { left: self.left }));
                }
                self.session = None; // the case before leaves the device first
                self.best = None;
                match inputs.and_then(|inputs| subject.load(inputs)) {
                    Ok(session) => self.session = Some(session),
                    Err(reason) => {
                        self.left -= trials;
                        let (workload, trials, reason) = (subject.workload(), *trials, reason.as_str());
                        self.setting.observer.event(Event::Skipped { workload, trials, reason });
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            (Job::Build { subject, candidate, only_reference }, Made::Built(built)) => {
                if *only_reference {
                    Ok(self.reference(*subject, candidate, built))
                } else {
                    self.trial(*subject, candidate, built)
                }
            }
            // `make` answers each kind of job with its own kind of result.
            (Job::Prepare(..), Made::Built(_)) | (Job::Build { .. }, Made::Inputs(_)) => {
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Runs a candidate whose time is known, so that others can be compared with its result. If
    /// that fails, the next one that is right takes its place.
    fn reference(
        &mut self,
        subject: &'t S,
        candidate: &Candidate<S::Mapping>,
        built: Result<Built<S::Program>, Refusal>,
    ) -> ControlFlow<()> {
        let Some(session) = &mut self.session else { return ControlFlow::Continue(()) };
        if let Ok(built) = built {
            self.watch.begin((subject.workload().clone(), candidate.clone()));
            let failed = session.check(&built.program).is_err();
            self.watch.end();
            if failed && !session.is_alive() {
                return self.end(Ending::DeviceLost { left: self.left });
            }
        }
        ControlFlow::Continue(())
    }

    fn trial(
        &mut self,
        subject: &'t S,
        candidate: &Candidate<S::Mapping>,
        built: Result<Built<S::Program>, Refusal>,
    ) -> Result<ControlFlow<()>, DatabaseError> {
        if self.wants_stop() {
            return Ok(self.end(Ending::Stopped { left: self.left }));
        }
        let Some(session) = &mut self.session else { return Ok(ControlFlow::Continue(())) };
        let workload = subject.workload();
        self.setting.observer.event(Event::Trying(workload, candidate));
        self.watch.begin((workload.clone(), candidate.clone()));
        let hopeless = self.best.map(|s| self.setting.options.hopeless * s);
        let measured = built.and_then(|b| measure(session, &b, hopeless, &self.setting.options.timing));
        self.watch.end();
        let lost = measured.is_err() && !session.is_alive();
        if let Ok(m) = &measured {
            self.best = Some(self.best.map_or(m.median_s, |s| s.min(m.median_s)));
        }
        let outcome = measured.map_or_else(Outcome::Refused, Outcome::Measured);
        let record = record(self.setting, workload, candidate, outcome);
        self.setting.database.append(&record)?;
        self.left -= 1;
        self.setting.observer.event(Event::Done(&record));
        Ok(if lost { self.end(Ending::DeviceLost { left: self.left }) } else { ControlFlow::Continue(()) })
    }

    fn wants_stop(&self) -> bool {
        let late = self.setting.options.time_limit.is_some_and(|limit| self.started.elapsed() >= limit);
        late || self.setting.observer.wants_stop()
    }

    fn end(&mut self, ending: Ending) -> ControlFlow<()> {
        self.ended = Some(ending);
        ControlFlow::Break(())
    }
}

/// Checks, then times; one run only if that one takes `hopeless` seconds or more.
fn measure<S: Session>(
    session: &mut S,
    built: &Built<S::Program>,
    hopeless: Option<f64>,
    options: &TimingOptions,
) -> Result<Measurement, Refusal> {
    let errors = session.check(&built.program)?;
    let first = session.time(&built.program, &PROBE)?;
    let cut_short = hopeless.is_some_and(|limit| first.median_s >= limit);
    let timing: Timing = if cut_short { first } else { session.time(&built.program, options)? };
    Ok(Measurement {
        kernel: built.kernel.clone(),
        errors,
        runs: timing.runs,
        median_s: timing.median_s,
        min_s: timing.min_s,
        max_s: timing.max_s,
        cut_short,
        resources: built.resources.clone(),
        setup: session.setup(),
        executed_flops: built.executed_flops,
    })
}
