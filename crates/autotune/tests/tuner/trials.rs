use crate::fake::{self, Database, Fake, Record, Watcher, candidates};
use kingpost_autotune::tuner::{Ending, Task, TunerOptions, tune};
use kingpost_autotune::{Objective, Outcome, Stage, best_of_each};
use std::sync::atomic::Ordering;
use std::time::Duration;

fn options() -> TunerOptions {
    TunerOptions { threads: 4, shares_cores: false, ..TunerOptions::default() }
}

fn tasks(cases: &[&str], cells: &[u64]) -> Vec<Task<Fake>> {
    cases.iter().map(|c| Task { subject: Fake::new(c), candidates: candidates(cells) }).collect()
}

fn run(tasks: &[Task<Fake>], database: &Database, options: &TunerOptions, watcher: &Watcher) -> Ending {
    tune(tasks, &fake::machine(), database, options, watcher).unwrap()
}

fn stage(record: &Record) -> Option<Stage> {
    match &record.outcome {
        Outcome::Refused(refusal) => Some(refusal.stage),
        Outcome::Measured(_) => None,
    }
}

fn database(dir: &tempfile::TempDir) -> Database {
    Database::at(dir.path().join("trials.jsonl"))
}

#[test]
fn what_fails_is_recorded_and_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let cells = [
        fake::RIGHT,
        fake::NO_CODE,
        fake::PANICS,
        fake::NO_LAUNCH,
        fake::WRONG,
        fake::HOPELESS,
        fake::FAST,
        fake::FRUGAL,
    ];
    let watcher = Watcher::default();
    let ending = run(&tasks(&["a", "b"], &cells), &database(&dir), &options(), &watcher);
    assert_eq!(ending, Ending::Complete);
    let contents = database(&dir).read().unwrap();
    assert_eq!((contents.records.len(), contents.damaged.len()), (16, 0));
    let mut hopeless_joules = Vec::new();
    for case in contents.records.chunks(8) {
        let stages: Vec<_> = case.iter().map(stage).collect();
        let expected = [
            None,
            Some(Stage::Compile),
            Some(Stage::Generate),
            Some(Stage::Launch),
            Some(Stage::Check),
            None,
            None,
            None,
        ];
        assert_eq!(stages, expected);
        let hopeless = case[5].measurement().unwrap();
        hopeless_joules.push(hopeless.joules);
        assert!(hopeless.cut_short && hopeless.runs == 1);
        let fast = case[6].measurement().unwrap();
        assert!(!fast.cut_short && fast.runs == 15);
    }
    let best = |objective| -> Vec<_> {
        best_of_each(&contents.records, objective).iter().map(|r| r.parameters.cells).collect()
    };
    assert_eq!(best(Objective::Time), [fake::FAST, fake::FAST]);
    // of the fake card the slower one takes less; the one that was cut short is not counted
    assert_eq!(best(Objective::Energy), [fake::FRUGAL, fake::FRUGAL]);
    assert_eq!(hopeless_joules, [None, None]);
}

#[test]
fn a_run_that_was_stopped_goes_on_without_loss_or_repetition() {
    let cells = [fake::RIGHT, fake::FAST, fake::WRONG, 100, 101, 102];
    for first in 0..=12 {
        let dir = tempfile::tempdir().unwrap();
        let watcher = Watcher { stop_after: Some(first), ..Watcher::default() };
        let ending = run(&tasks(&["a", "b"], &cells), &database(&dir), &options(), &watcher);
        let stopped = Ending::Stopped { left: 12 - first };
        assert_eq!(ending, if first == 12 { Ending::Complete } else { stopped });
        assert_eq!(database(&dir).read().unwrap().records.len(), first);

        let watcher = Watcher::default();
        assert_eq!(run(&tasks(&["a", "b"], &cells), &database(&dir), &options(), &watcher), Ending::Complete);
        assert_eq!((watcher.known.into_inner(), watcher.done.into_inner()), (first, 12 - first));
        // One line a trial: nothing was done twice.
        let text = std::fs::read_to_string(database(&dir).path()).unwrap();
        assert_eq!((text.lines().count(), database(&dir).read().unwrap().records.len()), (12, 12));
    }
}

#[test]
fn no_trial_begins_after_the_time_limit() {
    let dir = tempfile::tempdir().unwrap();
    let options = TunerOptions { time_limit: Some(Duration::ZERO), ..options() };
    let ending = run(&tasks(&["a"], &[fake::RIGHT]), &database(&dir), &options, &Watcher::default());
    assert_eq!(ending, Ending::Stopped { left: 1 });
    assert_eq!(database(&dir).read().unwrap().records, []);
}

#[test]
fn a_lost_device_ends_the_run_and_the_next_one_goes_past_it() {
    let dir = tempfile::tempdir().unwrap();
    let cells = [fake::RIGHT, fake::FATAL, fake::FAST];
    let ending = run(&tasks(&["a"], &cells), &database(&dir), &options(), &Watcher::default());
    assert_eq!(ending, Ending::DeviceLost { left: 1 });
    // A new process has a new device.
    let ending = run(&tasks(&["a"], &cells), &database(&dir), &options(), &Watcher::default());
    assert_eq!(ending, Ending::Complete);
    let stages: Vec<_> = database(&dir).read().unwrap().records.iter().map(stage).collect();
    assert_eq!(stages, [None, Some(Stage::Launch), None]);
}

#[test]
fn a_candidate_that_does_not_come_back_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let options = TunerOptions { patience: Duration::from_millis(200), ..options() };
    let tasks = tasks(&["a"], &[fake::RIGHT, fake::HANGS]);
    let watcher = Watcher { gate: tasks[0].subject.gate.clone(), ..Watcher::default() };
    run(&tasks, &database(&dir), &options, &watcher);
    let text = std::fs::read_to_string(database(&dir).path()).unwrap();
    let second = text.lines().nth(1).unwrap();
    assert!(second.contains(r#""stage":"hang","reason":"no result within"#), "{second}");
}

#[test]
fn a_case_without_inputs_is_passed_over_and_not_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let mut tasks = tasks(&["a", "b"], &[fake::RIGHT, fake::FAST]);
    tasks[0].subject.no_inputs = true;
    let watcher = Watcher::default();
    assert_eq!(run(&tasks, &database(&dir), &options(), &watcher), Ending::Complete);
    assert_eq!((watcher.skipped.into_inner(), watcher.done.into_inner()), (2, 2));
    assert!(database(&dir).read().unwrap().records.iter().all(|r| r.workload.case == "b"));
}

#[test]
fn nothing_is_compiled_beside_a_timing_on_shared_cores() {
    let dir = tempfile::tempdir().unwrap();
    let options = TunerOptions { shares_cores: true, ..options() };
    let cells: Vec<u64> = (100..140).collect();
    let mut tasks = tasks(&["a", "b"], &cells);
    tasks[1].subject.building = tasks[0].subject.building.clone();
    run(&tasks, &database(&dir), &options, &Watcher::default());
    assert_eq!(database(&dir).read().unwrap().records.len(), 80);
    for task in &tasks {
        assert_eq!(task.subject.disturbed.load(Ordering::SeqCst), 0);
    }
}
