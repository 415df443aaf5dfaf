//! A device whose candidates do as their number of cells says.

use kingpost_autotune::tuner::{Built, Event, Observer, Session, Subject};
use kingpost_autotune::{
    Candidate, DeviceModel, Errors, Measurement, Outcome, RECORD_VERSION, Refusal, Stage, Work, Workload,
};
use kingpost_runtime::{Timing, TimingOptions};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

pub const RIGHT: u64 = 32;
pub const FAST: u64 = 33;
pub const HOPELESS: u64 = 34;
/// As fast as most, with the least energy.
pub const FRUGAL: u64 = 41;
pub const NO_CODE: u64 = 35;
pub const PANICS: u64 = 36;
pub const NO_LAUNCH: u64 = 37;
pub const WRONG: u64 = 38;
pub const FATAL: u64 = 39;
pub const HANGS: u64 = 40;

/// A mapping that is a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cells {
    pub cells: u64,
}

impl fmt::Display for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cells", self.cells)
    }
}

pub type Record = kingpost_autotune::Record<Cells>;
pub type Database = kingpost_autotune::Database<Cells>;

pub fn candidates(cells: &[u64]) -> Vec<Candidate<Cells>> {
    cells.iter().map(|cells| Candidate::unranked(Cells { cells: *cells })).collect()
}

pub fn workload(case: &str) -> Workload {
    Workload {
        case: case.into(),
        kernel: format!("hash of {case}"),
        data: None,
        numbering: None,
        size: 100,
        results: 50,
        work: Work { flops: 1_000_000, dram_bytes: 1000, table_bytes: 500 },
    }
}

pub fn machine() -> DeviceModel {
    DeviceModel {
        name: "fake \"quoted\" card\nof two lines".into(),
        description: "none".into(),
        clock_mhz: 1,
        dram_bytes_per_s: 1e9,
        local_bytes_per_s: None,
        fp64_flops_per_s: 1e12,
        source: "invented".into(),
        occupancy: None,
    }
}

pub fn record(case: &str, cells: u64, median_s: f64) -> Record {
    let measurement = Measurement {
        setup: None,
        kernel: "transformed".into(),
        errors: Errors { small: 1e-16, measured: 1e-16 },
        runs: 15,
        median_s,
        min_s: 0.9 * median_s,
        max_s: 1.1 * median_s,
        joules: None,
        cut_short: false,
        resources: None,
        executed_flops: None,
    };
    Record {
        version: RECORD_VERSION,
        workload: workload(case),
        device: machine(),
        parameters: Cells { cells },
        rank: Some(1),
        predicted_s: Some(1e-5),
        outcome: Outcome::Measured(measurement),
        seed: 7,
        unix_s: 1,
    }
}

/// A gate that the hanging candidate waits at.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn wait(&self) {
        drop(self.opened.wait_while(self.open.lock().unwrap(), |open| !*open).unwrap());
    }
}

pub struct Fake {
    pub workload: Workload,
    pub gate: Arc<Gate>,
    /// Builds under way, all cases together.
    pub building: Arc<AtomicUsize>,
    /// Largest number of builds under way while a candidate was timed.
    pub disturbed: Arc<AtomicUsize>,
    /// Candidates on the device, all tuners together.
    pub running: Arc<AtomicUsize>,
    /// Largest number of them.
    pub crowd: Arc<AtomicUsize>,
    pub alive: Arc<AtomicBool>,
    pub no_inputs: bool,
}

impl Fake {
    pub fn new(case: &str) -> Self {
        Self {
            workload: workload(case),
            gate: Arc::default(),
            building: Arc::default(),
            disturbed: Arc::default(),
            running: Arc::default(),
            crowd: Arc::default(),
            alive: Arc::new(AtomicBool::new(true)),
            no_inputs: false,
        }
    }
}

pub struct FakeSession<'s>(&'s Fake);

/// A candidate on the device, for a millisecond at least.
struct OnDevice<'s>(&'s Fake);

impl<'s> OnDevice<'s> {
    fn enter(fake: &'s Fake) -> Self {
        let running = fake.running.fetch_add(1, Ordering::SeqCst) + 1;
        fake.crowd.fetch_max(running, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(1));
        Self(fake)
    }
}

impl Drop for OnDevice<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Subject for Fake {
    type Mapping = Cells;
    type Program = u64;
    type Inputs = ();
    type Session<'s> = FakeSession<'s>;

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn build(&self, parameters: &Cells) -> Result<Built<u64>, Refusal> {
        self.building.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(1));
        self.building.fetch_sub(1, Ordering::SeqCst);
        match parameters.cells {
            NO_CODE => Err(Refusal::new(Stage::Compile, "too many registers")),
            PANICS => panic!("asked to"),
            cells => Ok(Built {
                program: cells,
                kernel: format!("variant {cells}"),
                resources: None,
                executed_flops: None,
            }),
        }
    }

    fn prepare(&self) -> Result<(), String> {
        if self.no_inputs { Err("no memory".into()) } else { Ok(()) }
    }

    fn load(&self, (): ()) -> Result<FakeSession<'_>, String> {
        Ok(FakeSession(self))
    }
}

impl Session for FakeSession<'_> {
    type Program = u64;

    fn check(&mut self, program: &u64) -> Result<Errors, Refusal> {
        let launch = |reason: &str| Err(Refusal::new(Stage::Launch, reason));
        let _on_device = OnDevice::enter(self.0);
        if !self.is_alive() {
            return launch("the device is gone");
        }
        match *program {
            NO_LAUNCH => launch("too many groups"),
            WRONG => Err(Refusal::new(Stage::Check, "relative error 1")),
            FATAL => {
                self.0.alive.store(false, Ordering::SeqCst);
                launch("illegal address")
            }
            HANGS => {
                self.0.gate.wait();
                launch("let go")
            }
            _ => Ok(Errors { small: 0.0, measured: 0.0 }),
        }
    }

    fn time(&mut self, program: &u64, options: &TimingOptions) -> Result<Timing, Refusal> {
        let _on_device = OnDevice::enter(self.0);
        self.0.disturbed.fetch_max(self.0.building.load(Ordering::SeqCst), Ordering::SeqCst);
        let s = match *program {
            FAST => 1e-5,
            HOPELESS => 1.0,
            _ => 2e-5,
        };
        let runs = options.min_runs;
        Ok(Timing { runs, median_s: s, min_s: s, max_s: s, seconds: vec![s; runs] })
    }

    fn joules(&mut self, program: &u64, _: f64) -> Result<Option<f64>, Refusal> {
        Ok(Some(if *program == FRUGAL { 1.0 } else { 2.0 }))
    }

    fn is_alive(&self) -> bool {
        self.0.alive.load(Ordering::SeqCst)
    }
}

/// Counts what it sees; stops when told.
#[derive(Default)]
pub struct Watcher {
    pub done: AtomicUsize,
    pub skipped: AtomicUsize,
    pub known: AtomicUsize,
    pub waited: AtomicUsize,
    pub tried: AtomicUsize,
    pub stop_after: Option<usize>,
    pub gate: Arc<Gate>,
}

impl Observer<Cells> for Watcher {
    fn event(&self, event: Event<'_, Cells>) {
        match event {
            Event::Done(_) => {
                self.done.fetch_add(1, Ordering::SeqCst);
            }
            Event::Skipped { trials, .. } => {
                self.skipped.fetch_add(trials, Ordering::SeqCst);
            }
            Event::Planned { known, .. } => self.known.store(known, Ordering::SeqCst),
            Event::Trying(..) => {
                self.tried.fetch_add(1, Ordering::SeqCst);
            }
            Event::Waiting { .. } => {
                self.waited.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn wants_stop(&self) -> bool {
        self.stop_after.is_some_and(|n| self.done.load(Ordering::SeqCst) >= n)
    }

    fn hangs(&self, _: &Record) {
        self.gate.open();
    }
}
