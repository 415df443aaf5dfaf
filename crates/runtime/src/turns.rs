//! Turns at a device: of several processes that time kernels on it, one does at a time.
//!
//! A turn is a lock of a file in the cache folder, which ends with the process that has it, however
//! that ends. Processes of users with caches of their own do not see each other.

use crate::{Backend, Cache, DeviceInfo};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a process that waits looks again.
const PAUSE: Duration = Duration::from_millis(5);

/// What a process does with a device in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupation {
    /// It times kernels: nobody else may use the device.
    Alone,
    /// It keeps the cores busy that the device consists of: others may do so too, but not time.
    Beside,
}

/// The turns at one device.
#[derive(Clone, Debug)]
pub struct Turns {
    files: Option<Files>,
}

#[derive(Clone, Debug)]
struct Files {
    /// Locked by the one who is next, so that nobody takes two turns in a row while others wait.
    next: PathBuf,
    turn: PathBuf,
}

/// A turn, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Turn {
    _file: Option<File>,
}

impl Turns {
    /// Those at a device: a card by its own identity, and all that computes on the cores of the
    /// host as one. Where there is no cache folder, no process waits for another.
    pub fn of(device: &DeviceInfo, cache: &Cache) -> Self {
        let on_cores = match device.backend {
            Backend::C => true,
            Backend::OpenCl => device.private_mem_bytes.is_some(),
            Backend::Cuda => false,
        };
        let name = match &device.uuid {
            _ if on_cores => "the cores of the host".to_owned(),
            Some(uuid) => format!("{} {uuid}", device.name),
            None => format!("{} {}", device.name, device.index),
        };
        cache.dir().map_or_else(Self::free, |dir| Self::at(dir, &name))
    }

    /// Those at what has this name, as files in `dir`.
    pub fn at(dir: &Path, name: &str) -> Self {
        let hash = blake3::hash(name.as_bytes()).to_hex();
        let file = |end: &str| dir.join(format!("device-{}.{end}", &hash[..16]));
        Self { files: Some(Files { next: file("next"), turn: file("turn") }) }
    }

    /// No process waits for another.
    pub const fn free() -> Self {
        Self { files: None }
    }

    /// Waits for a turn, for as long as `waits` says so each time that it is asked; none if it does
    /// not. A folder that cannot be written means that nobody waits, never an error.
    pub fn take(&self, occupation: Occupation, waits: &mut dyn FnMut() -> bool) -> Option<Turn> {
        let Some(files) = &self.files else { return Some(Turn { _file: None }) };
        let next = locked(&files.next, Occupation::Alone, waits)?;
        let file = locked(&files.turn, occupation, waits)?;
        drop(next);
        Some(Turn { _file: file })
    }
}

/// The file with its lock, or without where there are no locks; none if the wait was given up.
fn locked(path: &Path, occupation: Occupation, waits: &mut dyn FnMut() -> bool) -> Option<Option<File>> {
    let open = || OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let made = || path.parent().and_then(|dir| std::fs::create_dir_all(dir).ok()).and_then(|()| open().ok());
    let Some(file) = open().ok().or_else(made) else { return Some(None) };
    loop {
        let tried = match occupation {
            Occupation::Alone => file.try_lock(),
            Occupation::Beside => file.try_lock_shared(),
        };
        match tried {
            Ok(()) => return Some(Some(file)),
            Err(TryLockError::Error(_)) => return Some(None),
            Err(TryLockError::WouldBlock) if waits() => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    fn at_once(turns: &Turns, occupation: Occupation) -> Option<Turn> {
        turns.take(occupation, &mut || false)
    }

    #[test]
    fn who_times_is_alone() {
        use Occupation::{Alone, Beside};
        let dir = tempfile::tempdir().unwrap();
        let turns = Turns::at(&dir.path().join("cache"), "a card");
        let other = Turns::at(&dir.path().join("cache"), "another card");
        let turn = at_once(&turns, Alone).unwrap();
        assert!(at_once(&turns, Alone).is_none() && at_once(&turns, Beside).is_none());
        assert!(at_once(&other, Alone).is_some());
        drop(turn);
        let beside = [at_once(&turns, Beside).unwrap(), at_once(&turns, Beside).unwrap()];
        assert!(at_once(&turns, Alone).is_none());
        drop(beside);
        assert!(at_once(&turns, Alone).is_some());
    }

    /// Someone who takes one turn after the other does not keep others from theirs.
    #[test]
    fn turns_alternate() {
        let dir = tempfile::tempdir().unwrap();
        let turns = Turns::at(dir.path(), "a card");
        let (greedy, modest) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let take = |count: &AtomicUsize| {
            let turn = turns.take(Occupation::Alone, &mut || true).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            count.fetch_add(1, Ordering::SeqCst);
            drop(turn);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| (0..5).for_each(|_| take(&modest)));
            let start = Instant::now();
            while modest.load(Ordering::SeqCst) < 5 {
                assert!(
                    start.elapsed() < Duration::from_secs(60),
                    "{greedy:?} turns, {modest:?} of the other"
                );
                take(&greedy);
            }
        });
        assert!(greedy.load(Ordering::SeqCst) <= 20, "{greedy:?} turns against 5");
    }

    /// A process that is killed leaves its files and no lock.
    #[test]
    fn what_a_killed_process_had_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let turns = Turns::at(dir.path(), "a card");
        drop(at_once(&turns, Occupation::Alone));
        let file = turns.files.as_ref().unwrap().turn.clone();
        let mut child = std::process::Command::new("flock")
            .args([file.as_os_str(), "sleep".as_ref(), "600".as_ref()])
            .spawn()
            .unwrap();
        let start = Instant::now();
        while at_once(&turns, Occupation::Alone).is_some() {
            assert!(start.elapsed() < Duration::from_secs(60), "the other process does not take its turn");
            std::thread::sleep(PAUSE);
        }
        // `flock` runs `sleep` with its lock
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let sleeping = std::fs::read_to_string(children).unwrap();
        for pid in sleeping.split_whitespace() {
            std::process::Command::new("kill").args(["-KILL", pid]).status().unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let start = Instant::now();
        assert!(turns.take(Occupation::Alone, &mut || start.elapsed() < Duration::from_secs(10)).is_some());
    }

    #[test]
    fn where_no_file_can_be_made_nobody_waits() {
        let turns = Turns::at(Path::new("/proc/no/such"), "a card");
        let first = at_once(&turns, Occupation::Alone);
        assert!(first.is_some() && at_once(&turns, Occupation::Alone).is_some());
        assert!(at_once(&Turns::free(), Occupation::Alone).is_some());
    }
}
