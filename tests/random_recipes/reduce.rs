//! Makes a failing pair smaller in processes of their own: an attempt that takes too long or too much memory ends
//! with its process, and counts as one that does not fail. The next process goes on after it.

use crate::devices::Place;
use crate::{drafts, harvest, shrink};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The file that a process reads its work from; it notes answers in the same folder, and its report.
const WORK: &str = "KINGPOST_TEST_REDUCE";

/// A draft, by what it is drawn from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Origin {
    pub seed: u64,
    /// Of its batch.
    pub number: u64,
    /// In its batch.
    pub k: usize,
    /// A primitive that is tried before every other step.
    pub aim: Option<String>,
}

impl Origin {
    pub fn draft(&self) -> shrink::Tree {
        // a test's process ends soon
        let aim = self.aim.clone().map(|name| &*name.leak());
        drafts(self.seed, self.number, aim).swap_remove(self.k)
    }
}

/// What a smaller pair is to do, too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Fails {
    /// Break the promise of a step.
    Broken,
    /// Have other results.
    On(Place),
    /// Let a command fail that judges the file of its line.
    By(Vec<String>),
}

/// What attempts may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a process.
    pub memory: u64,
    /// Time of an attempt.
    pub attempt: Duration,
    /// Time of all.
    pub all: Duration,
}

impl Limits {
    pub const USUAL: Self =
        Self { memory: 3 << 30, attempt: Duration::from_secs(120), all: Duration::from_secs(600) };
}

/// The report of the smallest failure that is found; none where nothing is within the limits.
pub fn report(of: &Origin, fails: &Fails, limits: Limits) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("work.json");
    std::fs::write(&file, serde_json::to_vec(&(of, fails)).unwrap()).unwrap();
    let answers = dir.path().join("answers");
    let start = Instant::now();
    while start.elapsed() < limits.all {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "reduce::child", "--ignored", "--nocapture"]).env(WORK, &file);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if ends_well(&mut command.spawn().unwrap(), &answers, limits) {
            return std::fs::read_to_string(dir.path().join("report")).ok();
        }
        Journal::open(&answers).write(b'n');
    }
    None
}

/// Whether a process ends with success within the limits of an attempt, which each answer starts again.
fn ends_well(child: &mut Child, answers: &Path, limits: Limits) -> bool {
    let count = || std::fs::metadata(answers).map_or(0, |file| file.len());
    let (mut since, mut known) = (Instant::now(), count());
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if count() != known {
            (since, known) = (Instant::now(), count());
        }
        if since.elapsed() > limits.attempt || resident(child.id()) > limits.memory {
            child.kill().unwrap();
            child.wait().unwrap();
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The bytes in memory of a process; none where the system does not say.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    kib.map_or(0, |kib: u64| kib << 10)
}

/// The answers to attempts so far, in order: `y` where one failed, `n` where not.
pub struct Journal {
    known: RefCell<std::vec::IntoIter<u8>>,
    file: RefCell<File>,
}

impl Journal {
    pub fn open(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        let known = std::fs::read(path).unwrap();
        Self { known: RefCell::new(known.into_iter()), file: RefCell::new(file) }
    }

    fn write(&self, answer: u8) {
        self.file.borrow_mut().write_all(&[answer]).unwrap();
    }

    /// What an attempt finds. One that is known to find nothing is not made again.
    pub fn ask<T>(&self, attempt: impl FnOnce() -> Option<T>) -> Option<T> {
        let known = self.known.borrow_mut().next();
        match known {
            Some(b'n') => None,
            Some(_) => attempt(),
            None => {
                let found = attempt();
                self.write(if found.is_some() { b'y' } else { b'n' });
                found
            }
        }
    }
}

#[test]
#[ignore = "run by the tests that find a failure"]
fn child() {
    let Some(file) = std::env::var_os(WORK) else { return };
    let (of, fails): (Origin, Fails) = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let dir = Path::new(&file).parent().unwrap();
    let (mut tree, journal) = (of.draft(), Journal::open(&dir.join("answers")));
    let report = match &fails {
        Fails::Broken => shrink::broken(&mut tree, &journal),
        Fails::On(place) => shrink::wrong(&mut tree, *place, &journal),
        Fails::By(command) => harvest::smaller(&mut tree, &of, command, &journal),
    };
    std::fs::write(dir.join("report"), report).unwrap();
}

/// Attempts that end their process are passed over, and the others have the last word.
#[test]
fn what_ends_a_process_does_not_fail() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("answers");
    let mut ended = 0;
    let smallest = loop {
        let journal = Journal::open(&path);
        let attempts = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut best = None;
            for size in (0..10).rev() {
                let attempt = || {
                    assert!(![7, 3].contains(&size), "this one takes all memory");
                    [9, 8, 6, 4, 2].contains(&size).then_some(size)
                };
                best = journal.ask(attempt).or(best);
            }
            best
        }));
        match attempts {
            Ok(best) => break best,
            Err(_) => {
                ended += 1;
                journal.write(b'n');
            }
        }
    };
    assert_eq!((smallest, ended), (Some(2), 2));
    assert_eq!(std::fs::read(&path).unwrap(), b"yynynynynn");
}

/// A process is ended at either limit; without limits it says that the pair does not fail.
#[test]
fn limits_end_a_process() {
    let of = Origin { seed: 7, number: 0, k: 0, aim: None };
    assert!(report(&of, &Fails::Broken, Limits::USUAL).unwrap().contains("does not repeat"));
    let little = Limits { memory: 1, all: Duration::from_millis(300), ..Limits::USUAL };
    assert_eq!(report(&of, &Fails::Broken, little), None);
    let short = Limits { attempt: Duration::ZERO, all: Duration::from_millis(300), ..Limits::USUAL };
    assert_eq!(report(&of, &Fails::Broken, short), None);
}
