//! What processes that tune into one database know of each other: the trials that are kept, and who
//! does the others.

use super::subject::{Ending, Event, Observer, TunerOptions};
use crate::database::{Database, DatabaseError};
use crate::mapping::Mapping;
use crate::record::{Key, Record};
use kingpost_runtime::{Claim, Claims, DeviceModel, Occupation, Turn};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a process looks whether others have done their trials.
const PAUSE: Duration = Duration::from_millis(50);

/// A database with those who write into it.
pub(super) struct Shared<'t, M> {
    database: &'t Database<M>,
    claims: Claims,
    kept: Mutex<Kept>,
    said: AtomicBool,
}

/// The trials that need not be done.
struct Kept {
    /// Up to where the database was read.
    place: u64,
    keys: HashSet<Key>,
}

impl<'t, M: Mapping> Shared<'t, M> {
    /// With what the database holds, or, to try that again, with what will be added from now on.
    pub(super) fn new(database: &'t Database<M>, again: bool) -> Result<Self, DatabaseError> {
        database.read()?; // a file of something else is refused before anything is tried
        let mut kept = Kept { place: 0, keys: HashSet::new() };
        let found = database.news(&mut kept.place)?;
        if !again {
            kept.keys.extend(found.iter().map(Record::key));
        }
        let claims = database.claims()?;
        Ok(Self { database, claims, kept: Mutex::new(kept), said: AtomicBool::new(false) })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // a reader that panics leaves keys that are kept
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a trial is kept, by whomever.
    pub(super) fn is_kept(&self, key: &Key) -> Result<bool, DatabaseError> {
        let mut kept = self.kept();
        let news = self.database.news(&mut kept.place)?;
        kept.keys.extend(news.iter().map(Record::key));
        Ok(kept.keys.contains(key))
    }

    /// The right to do a trial; none if it is kept, or another process has it.
    pub(super) fn claim(&self, key: &Key) -> Result<Option<Claim<'_>>, DatabaseError> {
        let claim = self.claims.claim(key.text()).map_err(|e| self.database.unclaimed(e))?;
        // whoever had it before may have kept it in between
        Ok(if self.is_kept(key)? { None } else { claim })
    }

    /// Keeps what came of a trial.
    pub(super) fn keep(&self, record: &Record<M>) -> Result<(), DatabaseError> {
        self.database.append(record)
    }

    fn is_free(&self, key: &Key) -> Result<bool, DatabaseError> {
        self.claims.is_free(key.text()).map_err(|e| self.database.unclaimed(e))
    }
}

/// What stays the same from trial to trial.
pub(super) struct Setting<'t, M> {
    pub machine: &'t DeviceModel,
    pub shared: &'t Shared<'t, M>,
    pub options: &'t TunerOptions,
    pub observer: &'t dyn Observer<M>,
    pub started: Instant,
}

impl<M> Clone for Setting<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Setting<'_, M> {}

impl<M: Mapping> Setting<'_, M> {
    pub(super) fn wants_stop(&self) -> bool {
        let late = self.options.time_limit.is_some_and(|limit| self.started.elapsed() >= limit);
        late || self.observer.wants_stop()
    }

    /// A turn at the device; none if the run is to stop before there is one.
    pub(super) fn turn(&self, occupation: Occupation) -> Option<Turn> {
        self.options.turns.take(occupation, &mut || {
            self.waiting("another process uses the device");
            !self.wants_stop()
        })
    }

    /// Says once a run that it waits, and for what.
    fn waiting(&self, reason: &str) {
        if !self.shared.said.swap(true, Ordering::SeqCst) {
            self.observer.event(Event::Waiting { reason });
        }
    }

    /// Waits until one of the trials that are left is nobody's, and takes those from them that are
    /// kept. How the run ends if there is nothing to do, or no time.
    pub(super) fn wait_for_others(&self, left: &mut HashSet<Key>) -> Result<Option<Ending>, DatabaseError> {
        loop {
            let mut free = false;
            for key in left.clone() {
                if self.shared.is_kept(&key)? {
                    left.remove(&key);
                } else {
                    free = free || self.shared.is_free(&key)?;
                }
            }
            if left.is_empty() {
                return Ok(Some(Ending::Complete));
            }
            if self.wants_stop() {
                return Ok(Some(Ending::Stopped { left: left.len() }));
            }
            if free {
                return Ok(None);
            }
            self.waiting("other processes do the trials that are left");
            std::thread::sleep(PAUSE);
        }
    }
}
