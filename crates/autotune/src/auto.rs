//! Automatic schedules of loop programs: proposals ([`kingpost_auto`]) are checked and timed on a
//! device, with the program as it is written among them.
//!
//! ```
//! use kingpost_autotune::auto::{Found, schedule};
//! use kingpost_interp::Memory;
//!
//! let kernel = kingpost_ir::text::parse(
//!     "kernel t\nparam n: i32\narg a: f64[n, n] in\narg y: f64[n] inout\n\n\
//!      for i in 0..n\n  for j in 0..n\n    s: y[i] += a[j, i]\n",
//! )?;
//! let memory = Memory::new().param("n", 40).value("a", vec![0.5; 1600]).value("y", vec![0.0; 40]);
//! let device = kingpost_runtime::open("c")?;
//! let Found { trials, best } = schedule(&kernel, &*device, &memory, 10, &mut |_| {})?;
//! let best = &trials[best];
//! assert!(best.outcome.is_ok());
//! println!("{}", best.proposal.text(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use kingpost_auto::{Machine, Proposal, propose, propose_for_card};

use crate::tuning::throughput::{ThroughputModel, predicted};
use crate::{DeviceModel, DeviceModelError, kernel_work, known_devices};
use kingpost_codegen::{Options, PlacedKernel, Target, generate};
use kingpost_interp::{InterpError, Memory};
use kingpost_ir::{AxisTag, Kernel};
use kingpost_primitives::TransformError;
use kingpost_run::judge::{Expected, HostError, STEPS, results, with_tables};
use kingpost_run::{LoadError, Loaded, laid_out};
use kingpost_runtime::{Backend, Device, DeviceInfo, Executable, TimingOptions};
use rayon::prelude::*;
use serde::Serialize;

/// Why a loop program was not scheduled.
#[derive(Debug, thiserror::Error)]
pub enum AutoError {
    /// A bug of the engine.
    #[error(transparent)]
    Transform(#[from] TransformError),
    /// A bug: models of devices that cannot be read.
    #[error(transparent)]
    Model(#[from] DeviceModelError),
    /// The program does not run on these values.
    #[error(transparent)]
    Interp(#[from] InterpError),
    /// It is too large for the interpreter, and has no code in C.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Nothing that was tried runs, and is right.
    #[error("no schedule runs on the device; as it is written: {0}")]
    None(String),
}

/// A proposal and what came of it.
pub struct Trial {
    /// The schedule.
    pub proposal: Proposal,
    /// Median seconds of a launch, or why there are none.
    pub outcome: Result<f64, String>,
}

/// What was tried, in the order of the model, and which of it was the fastest.
pub struct Found {
    /// The trials.
    pub trials: Vec<Trial>,
    /// The place of the fastest one.
    pub best: usize,
}

/// How many times slower than the fastest so far a schedule is predicted to be that is not timed: the models of
/// cards are off by less, and a program on one thread of a card may take minutes.
const HOPELESS: f64 = 30.0;

/// Maximum number of launches that are timed, each on fresh inputs: a program that updates its arguments computes with
/// other numbers the second time, such as infinities.
const LAUNCHES: usize = 3;

/// Seconds up to which the first launch of a schedule says little: caches are cold.
const COLD: f64 = 0.01;

/// Seconds of launches of one schedule, after which no other is timed.
const SECONDS: f64 = 0.3;

/// One launch.
const ONCE: TimingOptions = TimingOptions { warm_up: 0, min_runs: 1, min_seconds: 0.0, max_runs: 1 };

/// Finds a schedule for a kernel on a device: at most `budget` of the proposals are launched on these
/// values, held against the interpreter (or the kernel as it is written, in C, where that takes too
/// long) and timed. What the model takes for far slower than the fastest so far is not launched. `note` hears what
/// is being done.
///
/// # Errors
/// Values that do not fit, a device that runs nothing of it, a bug.
pub fn schedule(
    kernel: &Kernel,
    device: &dyn Device,
    memory: &Memory,
    budget: usize,
    note: &mut dyn FnMut(&str),
) -> Result<Found, AutoError> {
    note("running the program as it is written");
    let expected = expected(kernel, memory)?;
    note("making proposals");
    let mut proposals = proposals(kernel, memory, &Platform::of(device.info())?)?;
    let written = proposals.iter().position(|p| p.recipe.steps.is_empty());
    let plain = written.map(|at| proposals.remove(at));
    proposals.truncate(budget.saturating_sub(1));
    proposals.extend(plain);
    let trials = Judge { kernel, device, memory, expected: &expected }.timed(proposals, note);
    let time = |trial: &Trial| trial.outcome.as_ref().copied().unwrap_or(f64::INFINITY);
    let best = (0..trials.len()).min_by(|a, b| time(&trials[*a]).total_cmp(&time(&trials[*b])));
    match (best, trials.last()) {
        (Some(best), Some(last)) => match &last.outcome {
            Err(why) if trials[best].outcome.is_err() => Err(AutoError::None(why.clone())),
            Ok(_) | Err(_) => Ok(Found { trials, best }),
        },
        _ => Err(AutoError::None("nothing was proposed".into())),
    }
}

/// What schedules are made for.
#[derive(Clone, Debug)]
pub enum Platform {
    /// A processor.
    Processor(Machine),
    /// A card.
    Card(Box<DeviceModel>),
}

/// What a model says of the time of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The model, in words.
    pub model: String,
    /// Cycles, of a processor.
    pub cycles: Option<f64>,
    /// Seconds; of a processor at the clock that it reports, if it reports one.
    pub seconds: Option<f64>,
}

/// The card that stands for others, of which the model knows less.
const CARD: &str = "H200";

impl Platform {
    /// A device.
    ///
    /// # Errors
    /// A bug: models of devices that cannot be read.
    pub fn of(info: &DeviceInfo) -> Result<Self, DeviceModelError> {
        let is_card = match info.backend {
            Backend::Cuda => true,
            Backend::OpenCl => info.vector_bytes == 0,
            Backend::C => false,
        };
        if is_card {
            return Self::card(info.name.trim_start_matches("NVIDIA "));
        }
        let mut machine = Machine::default();
        if info.vector_bytes > 0 {
            machine.vector_bytes = info.vector_bytes as f64;
            machine.registers = if info.vector_bytes > 32 { 32.0 } else { 16.0 };
        }
        if info.core_cache_bytes > 0 {
            machine.caches[1].0 = info.core_cache_bytes as f64;
        }
        machine.threads = match info.backend {
            Backend::C => kingpost_runtime::host_threads(),
            Backend::OpenCl | Backend::Cuda => info.compute_units as usize,
        };
        Ok(Self::Processor(machine))
    }

    /// What ranks schedules for it, in words.
    #[must_use]
    pub fn model(&self) -> String {
        match self {
            Self::Processor(_) => "the model of processors".into(),
            Self::Card(card) => format!("the model of {}", card.name),
        }
    }

    /// What the model predicts of a kernel on these values, on a device of this clock.
    ///
    /// # Errors
    /// Code that a card does not take, a size without a value.
    pub fn predict(&self, kernel: &Kernel, memory: &Memory, clock_mhz: u32) -> Result<Prediction, String> {
        let model = self.model();
        match self {
            Self::Processor(machine) => {
                let is_shared = kernel.inames.values().any(|iname| matches!(iname.tag, AxisTag::Group(_)));
                // as proposals are ranked: what is not in the loop that threads share is not told apart
                let threads = if is_shared { machine.threads.max(1) } else { 1 };
                let cycles = kingpost_auto::cycles(kernel, memory.params(), machine) / threads as f64;
                let seconds = (clock_mhz > 0).then(|| cycles / (1e6 * f64::from(clock_mhz)));
                Ok(Prediction { model, cycles: Some(cycles), seconds })
            }
            Self::Card(card) => {
                let throughput = ThroughputModel::new(card).map_err(|e| e.to_string())?;
                let seconds = predict(kernel, memory, &throughput)?;
                Ok(Prediction { model, cycles: None, seconds: Some(seconds) })
            }
        }
    }

    /// A card by the name of its model, or one like many others.
    ///
    /// # Errors
    /// A bug: models that cannot be read.
    pub fn card(name: &str) -> Result<Self, DeviceModelError> {
        let mut models = known_devices()?;
        models.retain(|model| model.occupancy.is_some());
        let named = |name: &str| models.iter().find(|model| model.name == name);
        let model = named(name).or_else(|| named(CARD)).or_else(|| models.first());
        Ok(match model {
            Some(model) => Self::Card(Box::new(model.clone())),
            None => Self::Processor(Machine::default()),
        })
    }
}

/// Proposals, those first that the model takes for the fastest; nothing is run. What a card has no code
/// for comes last.
///
/// # Errors
/// A bug of the engine.
pub fn proposals(
    kernel: &Kernel,
    memory: &Memory,
    platform: &Platform,
) -> Result<Vec<Proposal>, TransformError> {
    let card = match platform {
        Platform::Processor(machine) => return propose(kernel, memory.params(), machine),
        Platform::Card(card) => card,
    };
    let mut found = propose_for_card(kernel, memory.params())?;
    let Ok(model) = ThroughputModel::new(card) else { return Ok(found) };
    let seconds: Vec<Result<f64, String>> =
        found.par_iter().map(|proposal| predict(&proposal.kernel, memory, &model)).collect();
    for (proposal, seconds) in found.iter_mut().zip(seconds) {
        match seconds {
            Ok(seconds) => proposal.seconds = Some(seconds),
            Err(why) => proposal.considered.push(format!("no code: {why}")),
        }
    }
    let time = |proposal: &Proposal| proposal.seconds.unwrap_or(f64::INFINITY);
    found.sort_by(|a, b| time(a).total_cmp(&time(b)));
    // what both models take for equal is the same program with other names: it comes after all others
    let known: Vec<[u64; 2]> = found.iter().map(|p| [time(p).to_bits(), p.cycles.to_bits()]).collect();
    let (first, again): (Vec<_>, Vec<_>) =
        found.into_iter().enumerate().partition(|(k, _)| !known[..*k].contains(&known[*k]));
    Ok(first.into_iter().chain(again).map(|(_, proposal)| proposal).collect())
}

fn predict(kernel: &Kernel, memory: &Memory, model: &ThroughputModel<'_>) -> Result<f64, String> {
    let placed = PlacedKernel::new(kernel).map_err(|e| e.to_string())?;
    let made = placed.program_and_codes(Target::Cuda, &Options::default());
    let (program, codes) = made.map_err(|e| e.to_string())?;
    predicted(&program, &codes, memory, model).map_err(|e| e.to_string())
}

/// What the results of a kernel must be on these values: of the interpreter, or of the kernel as it is written,
/// in C, where that takes too long.
///
/// # Errors
/// Values that do not fit.
pub fn expected(kernel: &Kernel, memory: &Memory) -> Result<Expected, AutoError> {
    if kernel_work(kernel, memory.params()).map_or(true, |work| work.flops <= STEPS / 5) {
        match Expected::new(kernel, memory, STEPS) {
            Ok(expected) => return Ok(expected),
            Err(InterpError::StepLimit { .. } | InterpError::TooLarge { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Expected::by_host(kernel, memory)?)
}

/// The code of a kernel.
fn compiled(device: &dyn Device, kernel: &Kernel, contraction: bool) -> Result<Executable, String> {
    let options = Options::default().with_contraction(contraction);
    let program = generate(kernel, device.info().backend.target(), &options).map_err(|e| e.to_string())?;
    device.compile(&program).map_err(|e| e.to_string())
}

/// The fastest schedule so far.
struct Fastest {
    seconds: f64,
    /// What the model has predicted of it, if that is more.
    predicted: f64,
}

impl Default for Fastest {
    fn default() -> Self {
        Self { seconds: f64::INFINITY, predicted: f64::INFINITY }
    }
}

impl Fastest {
    fn meet(&mut self, seconds: f64, predicted: Option<f64>) {
        if seconds < self.seconds {
            *self =
                Self { seconds, predicted: predicted.map_or(seconds, |predicted| predicted.max(seconds)) };
        }
    }

    /// Whether what is predicted to take some seconds is not worth a launch.
    fn is_far_from(&self, seconds: f64) -> bool {
        seconds > HOPELESS * self.predicted
    }
}

/// What launches are held against.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// The kernel as it is written.
    pub kernel: &'a Kernel,
    /// Where launches run.
    pub device: &'a dyn Device,
    /// What the kernel is run on.
    pub memory: &'a Memory,
    /// What its results must be.
    pub expected: &'a Expected,
}

impl Judge<'_> {
    /// Median seconds of a launch of what steps made of the kernel, once its results are right; else why there
    /// are none.
    ///
    /// # Errors
    /// Code that is refused, a device that fails, a result that is off.
    pub fn seconds(&self, kernel: &Kernel) -> Result<f64, String> {
        let executable = compiled(self.device, kernel, true)?;
        self.time(kernel, executable, &Fastest::default())
    }

    /// What comes of proposals, one after the other.
    fn timed(&self, proposals: Vec<Proposal>, note: &mut dyn FnMut(&str)) -> Vec<Trial> {
        note(&format!("compiling {} schedules", proposals.len()));
        let ready: Vec<_> = proposals.par_iter().map(|p| compiled(self.device, &p.kernel, true)).collect();
        let (count, mut fastest, mut trials) = (proposals.len(), Fastest::default(), Vec::new());
        for (k, (proposal, executable)) in proposals.into_iter().zip(ready).enumerate() {
            note(&format!("timing `{}`, {} of {count}", proposal.name, k + 1));
            let outcome = match proposal.seconds {
                Some(seconds) if fastest.is_far_from(seconds) => {
                    Err(format!("not timed: {seconds:.2e} s predicted"))
                }
                Some(_) | None => {
                    executable.and_then(|executable| self.time(&proposal.kernel, executable, &fastest))
                }
            };
            if let Ok(seconds) = outcome {
                fastest.meet(seconds, proposal.seconds);
            }
            trials.push(Trial { proposal, outcome });
        }
        trials
    }

    /// Median seconds of a launch; one of those that are far from the fastest so far.
    fn time(&self, kernel: &Kernel, executable: Executable, fastest: &Fastest) -> Result<f64, String> {
        let text = |e: LoadError| e.to_string();
        let memory = with_tables(self.kernel, kernel, self.memory);
        let inputs = laid_out(kernel, &memory);
        let mut loaded = Loaded::compiled(self.device, executable.clone(), &inputs).map_err(text)?;
        // Equal as it is timed is enough. A program that loses digits may be equal only where each
        // operation is rounded, as in what is expected.
        let first = match self.compared(kernel, &loaded) {
            Ok(first) => first,
            Err(_) => {
                let rounded = compiled(self.device, kernel, false)?;
                loaded.exchange(vec![rounded], &inputs).map_err(text)?;
                loaded.renew(&inputs).map_err(text)?;
                let first = self.compared(kernel, &loaded)?;
                loaded.exchange(vec![executable], &inputs).map_err(text)?;
                first
            }
        };
        if first > (1.5 * fastest.seconds).max(COLD) {
            return Ok(first);
        }
        let mut times: Vec<f64> = Vec::with_capacity(LAUNCHES);
        let again = |times: &[f64]| {
            times.len() < LAUNCHES && times.iter().sum::<f64>() < SECONDS && times[0] < 1.2 * fastest.seconds
        };
        while times.is_empty() || again(&times) {
            loaded.renew(&inputs).map_err(text)?;
            times.push(loaded.time(&ONCE).map_err(|e| e.to_string())?.median_s);
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    /// Launches a kernel on poisoned results, and holds them against what is expected. Returns the seconds of
    /// the launch.
    fn compared(&self, kernel: &Kernel, loaded: &Loaded<'_>) -> Result<f64, String> {
        self.expected.poison(loaded).map_err(|e| e.to_string())?;
        let seconds = loaded.time(&ONCE).map_err(|e| e.to_string())?.median_s;
        let found = results(kernel, loaded, self.memory).map_err(|e| e.to_string())?;
        match self.expected.compare(&found).fault(self.kernel, self.memory) {
            Some(fault) => Err(format!("wrong: {fault}")),
            None => Ok(seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // what a failed test does
    use super::{Expected, Fastest, Judge, Platform, proposals};
    use kingpost_interp::Memory;
    use kingpost_ir::Kernel;
    use kingpost_sample::of_run;

    fn kernel() -> (Kernel, Memory) {
        let text = "kernel t\nparam n: i32\narg a: f64[n, n] in\narg y: f64[n] inout\n\n\
                    for i in 0..n\n  for j in 0..n\n    s: y[i] += a[i, j]\n";
        let memory = Memory::new().param("n", 600);
        let memory = memory.value("a", vec![0.5; 360_000]).value("y", vec![0.0; 600]);
        (kingpost_ir::text::parse(text).unwrap(), memory)
    }

    /// On one thread of a card the program takes many times what others take: it is launched if nothing else runs.
    #[test]
    fn what_a_card_takes_far_longer_for_is_not_timed() {
        let (kernel, memory) = kernel();
        let all = proposals(&kernel, &memory, &Platform::card("H200").unwrap()).unwrap();
        let written = all.iter().find(|p| p.recipe.steps.is_empty()).and_then(|p| p.seconds).unwrap();
        let mut fastest = Fastest::default();
        assert!(!fastest.is_far_from(written));
        fastest.meet(all[0].seconds.unwrap(), all[0].seconds);
        assert!(fastest.is_far_from(written) && !fastest.is_far_from(all[1].seconds.unwrap()));
        // where the model takes everything for slower than it is, it says nothing of one alone
        let mut fastest = Fastest::default();
        fastest.meet(1e-6, Some(1e-3));
        assert!(!fastest.is_far_from(2e-2) && fastest.is_far_from(4e-2));
        // or for faster
        let mut fastest = Fastest::default();
        fastest.meet(1e-3, Some(1e-6));
        fastest.meet(2e-3, Some(1e-9));
        assert!(!fastest.is_far_from(2e-2) && fastest.is_far_from(4e-2));
    }

    #[test]
    fn each_trial_is_said() {
        let (kernel, memory) = kernel();
        let device = kingpost_runtime::open("c").unwrap();
        let expected = Expected::new(&kernel, &memory, super::STEPS).unwrap();
        let judge = Judge { kernel: &kernel, device: &*device, memory: &memory, expected: &expected };
        let mut all = proposals(&kernel, &memory, &Platform::Processor(super::Machine::default())).unwrap();
        all.truncate(2);
        let mut said = Vec::new();
        let trials = judge.timed(all, &mut |line| said.push(line.to_owned()));
        assert!(trials.iter().all(|trial| trial.outcome.is_ok()));
        assert!(said[0] == "compiling 2 schedules" && said[2].ends_with(", 2 of 2"), "{said:?}");
    }

    /// A schedule that fixes the length of rows runs on values that have it.
    #[test]
    fn rows_in_registers_are_timed() {
        let text = "kernel k\nparam m: i32\nparam n: i32\narg x: f32[m, n] in\narg y: f32[m, n] out\n\
                    temp t: f32 private\n\nfor r in 0..m\n  z: t = 0.0\n  for j in 0..n\n    s: t += x[r, j]\n  \
                    for k in 0..n\n    d: y[r, k] = x[r, k] - t/f32(n)\n";
        let kernel = kingpost_ir::text::parse(text).unwrap();
        let memory = Memory::new().param("m", 3).param("n", 256);
        let memory = memory.value("x", (0..768).map(|k| k as f32 / 768.0).collect::<Vec<_>>());
        let device = kingpost_runtime::open("c").unwrap();
        let expected = Expected::new(&kernel, &memory, super::STEPS).unwrap();
        let judge = Judge { kernel: &kernel, device: &*device, memory: &memory, expected: &expected };
        let mut all = proposals(&kernel, &memory, &Platform::card("H200").unwrap()).unwrap();
        all.retain(|p| p.name.starts_with("rows in registers"));
        assert!(all.iter().all(|p| p.seconds.is_some()) && all.len() == 2);
        for trial in judge.timed(all, &mut |_| {}) {
            assert!(trial.outcome.is_ok(), "{:?}\n{}", trial.outcome, trial.proposal.text(true));
        }
    }

    /// Flash attention from attention as textbooks write it, with and without an array for the weights.
    #[test]
    fn attention_is_derived_in_one_pass() {
        let plain = include_str!("../../../examples/attention.kingpost");
        let plain = plain.split("\nschedule\n").next().unwrap();
        let in_place = plain.replace("temp p: f32[n] global\n", "").replace("p[", "s[");
        let card = Platform::card("H200").unwrap();
        let processor = Platform::Processor(super::Machine::default());
        for (text, platform) in of_run([(plain.to_owned(), card), (in_place, processor)], &[0]) {
            let kernel = kingpost_ir::text::parse(&text).unwrap();
            let n = 37;
            let values = |seed: usize| -> Vec<f32> {
                (0..64 * n).map(|k| ((k * seed + 11) % 101) as f32 / 50.0 - 1.0).collect()
            };
            let memory = Memory::new().param("n", n as i64);
            let memory = memory.value("q", values(37)).value("k", values(41)).value("v", values(43));
            let device = kingpost_runtime::open("c").unwrap();
            let expected = Expected::new(&kernel, &memory, super::STEPS).unwrap();
            let judge = Judge { kernel: &kernel, device: &*device, memory: &memory, expected: &expected };
            let mut all = proposals(&kernel, &memory, &platform).unwrap();
            all.retain(|p| p.name.starts_with("one pass"));
            assert!(!all.is_empty());
            for trial in judge.timed(all, &mut |_| {}) {
                let steps = trial.proposal.text(true);
                assert!(trial.outcome.is_ok(), "{:?}\n{steps}", trial.outcome);
                assert!(steps.contains("rescale_reduction(m, sums: [l, o]"), "{steps}");
                // neither scores nor weights are in memory
                assert!(!trial.proposal.kernel.to_string().contains("global"), "{steps}");
            }
        }
    }
}
