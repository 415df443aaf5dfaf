//! The tuner: tries candidates on a device, keeps what it finds, chooses the fastest that is right.
//!
//! Code is generated and compiled ahead on many threads; one thread owns the device. A candidate
//! that does not transform, compile, launch or agree with the reference is recorded with its reason
//! and passed over. What the database holds already is not done again, so a run that was stopped
//! goes on where it was. Processes that share a database share its trials: each is claimed by the
//! one that does it, and on one device they time alternately.
//!
//! # Source
//! Kulkarni & Klöckner 2025, §4.3 and §6.2: the b best ranked variants and the single-cell one, 5
//! warm-ups, at least 15 runs or 0.2 s; here the median is kept with the shortest and the longest,
//! by the device's own clock.

mod ahead;
mod shared;
mod subject;
mod trial;
mod watch;

pub use subject::{Built, Ending, Event, Observer, Session, Subject, TunerOptions};

use crate::database::{Database, DatabaseError};
use crate::record::{Candidate, Key};
use kingpost_runtime::DeviceModel;
use shared::{Setting, Shared};
use std::collections::HashSet;
use std::time::Instant;
use subject::Job;

/// A case and what to try on it.
pub struct Task<S: Subject> {
    /// The case.
    pub subject: S,
    /// What to try, in this order; the first one that is right serves as reference of the others.
    pub candidates: Vec<Candidate<S::Mapping>>,
}

/// Tries the candidates of `tasks` that `database` does not hold, and keeps each result there at
/// once. Trials that other processes do are waited for, and done where those die.
///
/// # Errors
/// The database cannot be read or written.
pub fn tune<S: Subject>(
    tasks: &[Task<S>],
    machine: &DeviceModel,
    database: &Database<S::Mapping>,
    options: &TunerOptions,
    observer: &dyn Observer<S::Mapping>,
) -> Result<Ending, DatabaseError> {
    let shared = Shared::new(database, options.again)?;
    let started = Instant::now();
    let setting = Setting { machine, shared: &shared, options, observer, started };
    let key = |task: &Task<S>, c: &Candidate<S::Mapping>| {
        Key::of(task.subject.workload(), &machine.name, &c.parameters)
    };
    let mut left = HashSet::new();
    let (mut trials, mut known) = (0, 0);
    for (task, candidate) in tasks.iter().flat_map(|task| task.candidates.iter().map(move |c| (task, c))) {
        let key = key(task, candidate);
        if shared.is_kept(&key)? {
            known += 1;
        } else {
            trials += 1;
            left.insert(key);
        }
    }
    observer.event(Event::Planned { trials, known });
    loop {
        if let Some(ending) = setting.wait_for_others(&mut left)? {
            return Ok(ending);
        }
        let todo: Vec<Vec<Job<'_, S>>> =
            tasks.iter().map(|task| jobs(task, |c| !left.contains(&key(task, c)))).collect();
        let trials = todo.iter().flatten().filter(|j| j.is_trial()).count();
        // Cases are cut apart only where compiling would disturb timing.
        let batches = if options.shares_cores { todo } else { vec![todo.into_iter().flatten().collect()] };
        let pass = trial::run(&batches, setting, trials)?;
        match pass.ending {
            Ending::Complete => left = pass.elsewhere,
            Ending::Stopped { .. } | Ending::DeviceLost { .. } => return Ok(pass.ending),
        }
    }
}

fn jobs<S: Subject>(task: &Task<S>, is_known: impl Fn(&Candidate<S::Mapping>) -> bool) -> Vec<Job<'_, S>> {
    let trials = task.candidates.iter().filter(|c| !is_known(c)).count();
    if trials == 0 {
        return Vec::new();
    }
    let mut jobs = vec![Job::Prepare(&task.subject, trials)];
    for (k, candidate) in task.candidates.iter().enumerate() {
        let only_reference = is_known(candidate);
        if k == 0 || !only_reference {
            jobs.push(Job::Build { subject: &task.subject, candidate, only_reference });
        }
    }
    jobs
}
