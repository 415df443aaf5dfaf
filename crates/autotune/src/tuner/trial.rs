//! Trials one after the other on the thread that owns the device.

use super::ahead::Ahead;
use super::shared::Setting;
use super::subject::{Built, Ending, Event, Job, Session, Subject};
use super::watch::Watch;
use crate::database::DatabaseError;
use crate::mapping::Mapping;
use crate::record::{Candidate, Key, Measurement, Outcome, RECORD_VERSION, Record, Refusal, Stage, Workload};
use kingpost_runtime::{Claim, Occupation, Timing, TimingOptions, Turn};
use std::cell::Cell;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{SystemTime, UNIX_EPOCH};

/// One run that tells whether a candidate is worth more of them.
const PROBE: TimingOptions = TimingOptions { warm_up: 0, min_runs: 1, min_seconds: 0.0, max_runs: 1 };

/// Least time of the runs whose energy is counted, in seconds: some steps of a card's counter.
const ENERGY_S: f64 = 0.5;

/// What was made ahead of its use.
enum Made<'t, S: Subject> {
    Inputs(Result<S::Inputs, String>),
    /// With the right to try it; none where its time is known.
    Built(Result<Built<S::Program>, Refusal>, Option<Claim<'t>>),
    /// Another process tries it, or has done so.
    Elsewhere(Key),
    /// Nobody can say who tries it.
    Unclaimed(DatabaseError),
}

/// What became of the jobs of a run.
pub(super) struct Pass {
    pub ending: Ending,
    /// Trials that other processes do, or have done.
    pub elsewhere: HashSet<Key>,
}

/// Works through the batches; each is made ahead as a whole.
pub(super) fn run<S: Subject>(
    batches: &[Vec<Job<'_, S>>],
    setting: Setting<'_, S::Mapping>,
    trials: usize,
) -> Result<Pass, DatabaseError> {
    let (threads, in_rounds) = (setting.options.threads.max(1), setting.options.shares_cores);
    let window = threads.saturating_mul(3).saturating_add(8);
    let ahead = Ahead { threads, window, in_rounds };
    let watch = Watch::new();
    let mut run: Run<'_, S> = Run {
        setting,
        watch: &watch,
        left: trials,
        elsewhere: HashSet::new(),
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
        let gave_up = Cell::new(false);
        let begin = || {
            let turn = setting.turn(Occupation::Beside);
            gave_up.set(turn.is_none());
            turn
        };
        for batch in batches {
            run.session = None;
            let made = |job: &Job<'_, S>| make(job, setting);
            ahead.run(batch, begin, made, |job, made| match run.take(job, made) {
                Ok(flow) => flow,
                Err(e) => {
                    result = Err(e);
                    ControlFlow::Break(())
                }
            });
            if gave_up.get() {
                run.ended = Some(Ending::Stopped { left: run.left });
            }
            if result.is_err() || run.ended.is_some() {
                break;
            }
        }
        result.map(|()| Pass { ending: run.ended.unwrap_or(Ending::Complete), elsewhere: run.elsewhere })
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
    let _ = setting.shared.keep(&record);
    setting.observer.hangs(&record);
}

fn make<'t, S: Subject>(job: &Job<'_, S>, setting: Setting<'t, S::Mapping>) -> Made<'t, S> {
    let panicked = "bug of kingpost: it panicked";
    match job {
        Job::Prepare(subject, _) => {
            let prepare = || subject.prepare();
            Made::Inputs(catch_unwind(AssertUnwindSafe(prepare)).unwrap_or_else(|_| Err(panicked.into())))
        }
        Job::Build { subject, candidate, only_reference } => {
            let claim = match only_reference {
                true => None,
                false => {
                    let key = Key::of(subject.workload(), &setting.machine.name, &candidate.parameters);
                    match setting.shared.claim(&key) {
                        Ok(Some(claim)) => Some(claim),
                        Ok(None) => return Made::Elsewhere(key),
                        Err(e) => return Made::Unclaimed(e),
                    }
                }
            };
            let build = || subject.build(&candidate.parameters);
            let refused = |_| Err(Refusal::new(Stage::Generate, panicked));
            Made::Built(catch_unwind(AssertUnwindSafe(build)).unwrap_or_else(refused), claim)
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
    /// Trials to be done.
    left: usize,
    elsewhere: HashSet<Key>,
    /// The case on the device; none if it could not be put there.
    session: Option<S::Session<'t>>,
    /// Best median of the case.
    best: Option<f64>,
    ended: Option<Ending>,
}

impl<'t, S: Subject> Run<'t, S> {
    fn take(&mut self, job: &Job<'t, S>, made: Made<'t, S>) -> Result<ControlFlow<()>, DatabaseError> {
        match (job, made) {
            (Job::Prepare(subject, trials), Made::Inputs(inputs)) => {
                let Some(_turn) = self.turn() else { return Ok(self.stop()) };
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
            (Job::Build { subject, candidate, .. }, Made::Built(built, None)) => {
                Ok(self.reference(*subject, candidate, built))
            }
            (Job::Build { subject, candidate, .. }, Made::Built(built, Some(claim))) => {
                let flow = self.trial(*subject, candidate, built);
                drop(claim); // its record is kept
                flow
            }
            (Job::Build { .. }, Made::Elsewhere(key)) => {
                self.elsewhere.insert(key);
                Ok(ControlFlow::Continue(()))
            }
            (Job::Build { .. }, Made::Unclaimed(error)) => Err(error),
            // `make` answers each kind of job with its own kind of result.
            (Job::Prepare(..), Made::Built(..) | Made::Elsewhere(_) | Made::Unclaimed(_))
            | (Job::Build { .. }, Made::Inputs(_)) => Ok(ControlFlow::Continue(())),
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
        let Some(_turn) = self.turn() else { return self.stop() };
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
        let Some(_turn) = self.turn() else { return Ok(self.stop()) };
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
        self.setting.shared.keep(&record)?;
        self.left -= 1;
        self.setting.observer.event(Event::Done(&record));
        Ok(if lost { self.end(Ending::DeviceLost { left: self.left }) } else { ControlFlow::Continue(()) })
    }

    /// A turn at the device; none if the run is to stop.
    fn turn(&self) -> Option<Turn> {
        if self.setting.wants_stop() { None } else { self.setting.turn(Occupation::Alone) }
    }

    fn stop(&mut self) -> ControlFlow<()> {
        self.end(Ending::Stopped { left: self.left })
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
    let joules = if cut_short { None } else { session.joules(&built.program, ENERGY_S)? };
    Ok(Measurement {
        kernel: built.kernel.clone(),
        errors,
        runs: timing.runs,
        median_s: timing.median_s,
        min_s: timing.min_s,
        max_s: timing.max_s,
        joules,
        cut_short,
        resources: built.resources.clone(),
        setup: session.setup(),
        executed_flops: built.executed_flops,
    })
}
