//! Several tuners on one database and one device.

use crate::fake::{self, Database, Fake, Watcher, candidates};
use kingpost_autotune::Outcome;
use kingpost_autotune::tuner::{Ending, Task, TunerOptions, tune};
use kingpost_runtime::Turns;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Where a process of its own tunes.
const TOLD: &str = "KINGPOST_TEST_TUNER";

fn options(dir: &Path, shares_cores: bool) -> TunerOptions {
    TunerOptions { threads: 2, shares_cores, turns: Turns::at(dir, "a device"), ..TunerOptions::default() }
}

fn database(dir: &Path) -> Database {
    Database::at(dir.join("trials.jsonl"))
}

fn lines(dir: &Path) -> usize {
    std::fs::read_to_string(database(dir).path()).map_or(0, |text| text.lines().count())
}

/// Cases of one device, whose counters all tuners share.
fn tasks(device: &Fake, cases: &[&str], cells: &[u64]) -> Vec<Task<Fake>> {
    let of = |case: &&str| {
        let counters = (device.building.clone(), device.disturbed.clone());
        let (running, crowd) = (device.running.clone(), device.crowd.clone());
        let subject = Fake { building: counters.0, disturbed: counters.1, running, crowd, ..Fake::new(case) };
        Task { subject, candidates: candidates(cells) }
    };
    cases.iter().map(of).collect()
}

#[test]
fn no_trial_is_done_twice_and_none_beside_another() {
    let cells: Vec<u64> = (100..120).collect();
    for shares_cores in [false, true] {
        for again in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let device = Fake::new("the counters of");
            let options = TunerOptions { again, ..options(dir.path(), shares_cores) };
            let watchers: Vec<Watcher> = (0..3).map(|_| Watcher::default()).collect();
            std::thread::scope(|scope| {
                for watcher in &watchers {
                    scope.spawn(|| {
                        let tasks = tasks(&device, &["a", "b"], &cells);
                        let ending = tune(&tasks, &fake::machine(), &database(dir.path()), &options, watcher);
                        assert_eq!(ending.unwrap(), Ending::Complete);
                        // whoever ends knows everything
                        assert_eq!(database(dir.path()).read().unwrap().records.len(), 40);
                    });
                }
            });
            let done: Vec<usize> = watchers.iter().map(|w| w.done.load(Ordering::SeqCst)).collect();
            assert_eq!((done.iter().sum::<usize>(), lines(dir.path())), (40, 40), "{done:?}");
            assert_eq!(device.crowd.load(Ordering::SeqCst), 1, "candidates at the same time");
            if shares_cores {
                assert_eq!(device.disturbed.load(Ordering::SeqCst), 0, "code during a timing");
            }
        }
    }
}

/// Tunes, and hangs in its second trial, until it is killed.
#[test]
#[ignore = "a process that another test starts"]
fn tuner() {
    let dir = std::env::var(TOLD).unwrap();
    let dir = Path::new(&dir);
    let mut tasks = tasks(&Fake::new("x"), &["a"], &[fake::RIGHT, fake::HANGS, 100, 101]);
    tasks[0].subject.gate = Arc::default();
    struct Says;
    impl kingpost_autotune::tuner::Observer<fake::Cells> for Says {
        fn event(&self, event: kingpost_autotune::tuner::Event<'_, fake::Cells>) {
            println!("event {event:?}");
        }
        fn wants_stop(&self) -> bool {
            false
        }
        fn hangs(&self, _: &fake::Record) {}
    }
    tune(&tasks, &fake::machine(), &database(dir), &options(dir, false), &Says).unwrap();
}

#[test]
fn what_a_killed_tuner_had_claimed_is_done_by_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "together::tuner", "--nocapture"])
        .env(TOLD, dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let hanging = format!("cells: {} ", fake::HANGS);
    assert!(lines.filter(|line| line.contains("Trying")).any(|line| line.contains(&hanging)));

    // it has the turn and claims; who gives up in time says what is left
    let device = Fake::new("x");
    let tasks = tasks(&device, &["a"], &[fake::RIGHT, fake::HANGS, 100, 101]);
    tasks[0].subject.gate.open();
    let run = |options: &TunerOptions| {
        let watcher = Watcher::default();
        let ending = tune(&tasks, &fake::machine(), &database(dir.path()), options, &watcher).unwrap();
        (ending, watcher)
    };
    let limited = TunerOptions { time_limit: Some(Duration::from_millis(300)), ..options(dir.path(), false) };
    let (ending, watcher) = run(&limited);
    assert_eq!(ending, Ending::Stopped { left: 3 });
    assert_eq!((watcher.waited.into_inner(), watcher.tried.into_inner()), (1, 0));

    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    let start = Instant::now();
    let (ending, watcher) = run(&options(dir.path(), false));
    assert_eq!(ending, Ending::Complete);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_eq!(watcher.done.into_inner(), 3);
    let records = database(dir.path()).read().unwrap().records;
    let cells: BTreeSet<u64> = records.iter().map(|r| r.parameters.cells).collect();
    assert_eq!(cells, BTreeSet::from([fake::RIGHT, fake::HANGS, 100, 101]));
    let hung = records.iter().find(|r| r.parameters.cells == fake::HANGS).unwrap();
    assert!(matches!(&hung.outcome, Outcome::Refused(why) if why.reason == "let go"), "{hung:?}");
}

/// A case that another cannot prepare does not keep this one waiting, nor trying for ever.
#[test]
fn cases_without_inputs_are_left_alone_by_all() {
    let dir = tempfile::tempdir().unwrap();
    let device = Fake::new("x");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut tasks = tasks(&device, &["a", "b"], &[100, 101, 102]);
                tasks[0].subject.no_inputs = true;
                let ending = tune(
                    &tasks,
                    &fake::machine(),
                    &database(dir.path()),
                    &options(dir.path(), false),
                    &Watcher::default(),
                );
                assert_eq!(ending.unwrap(), Ending::Complete);
            });
        }
    });
    assert_eq!(lines(dir.path()), 3);
}
