//! The tuner tries the strategy of this crate and Kingpost's, judges its results, and keeps its trials.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use kingpost::autotune::known_devices;
use kingpost::autotune::tuner::{Ending, Event, Observer, Task, TunerOptions, tune};
use kingpost::forms::TakenName;
use kingpost::forms::lowering::{LoweredForm, LoweringOptions, lower};
use kingpost::kernels::Operator;
use kingpost::runtime::{Cache, TimingOptions, open};
use kingpost::tuning::{
    Candidate, CaseMesh, CaseSubject, Database, FormCase, Record, candidates_of, database_of,
};
use kingpost::{Mapping, transform};
use own_strategy::{CellRuns, strategies};
use std::sync::atomic::{AtomicUsize, Ordering};

fn form() -> LoweredForm {
    lower(&Operator::Mass.form(2, 3).unwrap(), &LoweringOptions::new("mass")).unwrap()
}

/// Trials that a run does, and those that it finds.
#[derive(Default)]
struct Counts([AtomicUsize; 2]);

impl Counts {
    fn planned(&self) -> [usize; 2] {
        self.0.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

impl Observer<Mapping> for Counts {
    fn event(&self, event: Event<'_, Mapping>) {
        if let Event::Planned { trials, known } = event {
            self.0[0].store(trials, Ordering::Relaxed);
            self.0[1].store(known, Ordering::Relaxed);
        }
    }

    fn wants_stop(&self) -> bool {
        false
    }

    fn hangs(&self, record: &Record) {
        panic!("{} hangs", record.parameters);
    }
}

/// On the processor, against the reference and with Kingpost's mapping; a later run finds the trials.
#[test]
fn trials_are_right_and_kept() {
    let device = open("c").unwrap();
    let (set, cache) = (strategies().unwrap(), Cache::from_environment());
    let machine = known_devices().unwrap().into_iter().find(|m| m.name.ends_with("cores C")).unwrap();
    let found = candidates_of(&set, &form(), 128, &machine, 48 << 10, 1).unwrap();
    let is_tried = |c: &Candidate| c.parameters.find::<CellRuns>().is_some();
    let mut chosen: Vec<Candidate> = found.into_iter().filter(is_tried).collect();
    // with the points of the form, and with its modes
    assert!(chosen.len() >= 2 && chosen.iter().any(|c| c.parameters.then().is_some()), "{chosen:?}");
    chosen.insert(0, Candidate::unranked(Mapping::single_cell()));
    let trials = chosen.len();

    let case = FormCase::new("mass.2D.P3", form(), CaseMesh::Unit(8)).unwrap();
    let subject = CaseSubject { case, device: &*device, cache: &cache, seed: 7 };
    let tasks = [Task { subject, candidates: chosen }];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.jsonl");
    let timing = TimingOptions { warm_up: 0, min_runs: 1, min_seconds: 0.0, max_runs: 1 };
    let options = TunerOptions { timing, ..TunerOptions::default() };
    let run =
        |observer: &Counts| tune(&tasks, &machine, &database_of(&set, &path), &options, observer).unwrap();
    let first = Counts::default();
    assert_eq!((run(&first), first.planned()), (Ending::Complete, [trials, 0]));
    let again = Counts::default();
    assert_eq!((run(&again), again.planned()), (Ending::Complete, [0, trials]));

    let records = database_of(&set, &path).read().unwrap().records;
    assert_eq!(records.len(), trials);
    for record in &records {
        assert!(record.measurement().is_some(), "{}: {:?}", record.parameters, record.outcome);
    }
    // Kingpost alone does not know it, and says what it lacks
    let unread = Database::at(&path).read().unwrap();
    assert_eq!((unread.records.len(), unread.damaged.len()), (1, trials - 1));
    assert!(
        unread.damaged[0].reason.contains("there is no strategy `acme.cell_runs`"),
        "{:?}",
        unread.damaged
    );
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let refused = |mapping: Mapping| transform(&form(), &mapping).unwrap_err().to_string();
    assert_eq!(
        refused(Mapping::from(CellRuns { run: 0, items: 8 })),
        "transform: the cells of a run is 0, needed at least 1"
    );
    assert!(refused(Mapping::from(CellRuns { run: 2, items: 0 })).contains("step "));
    let in_orbits = refused(Mapping::from(CellRuns { run: 2, items: 8 }).with_orbits());
    assert!(in_orbits.contains("`runs of 2 cells, 8 a group` combines no degrees of freedom in orbits"));
}

#[test]
fn a_set_has_each_name_once() {
    let set = strategies().unwrap();
    assert_eq!(set.clone().with::<CellRuns>().unwrap_err(), TakenName("acme.cell_runs"));
    assert!(kingpost_strategies::strategies().clone().and(&set).is_err());
    let missing = set.mapping(r#"{"strategy":"acme.cell_runs","run":4}"#).unwrap_err().to_string();
    assert!(missing.contains("missing field `items`"), "{missing}");
    let other = set.mapping(r#"{"strategy":"modes","then":{"strategy":"acme.cell_run"}}"#).unwrap_err();
    assert!(other.to_string().contains("did you mean `acme.cell_runs`"), "{other}");
}
