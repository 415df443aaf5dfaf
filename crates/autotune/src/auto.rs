//! Automatic schedules of loop programs: proposals ([`purlin_auto`]) are checked and timed on a
//! device, with the program as it is written among them.
//!
//! ```
//! use purlin_autotune::auto::{Found, schedule};
//! use purlin_interp::Memory;
//!
//! let kernel = purlin_ir::text::parse(
//!     "kernel t\nparam n: i32\narg a: f64[n, n] in\narg y: f64[n] inout\n\n\
//!      for i in 0..n\n  for j in 0..n\n    s: y[i] += a[j, i]\n",
//! )?;
//! let memory = Memory::new().param("n", 40).value("a", vec![0.5; 1600]).value("y", vec![0.0; 40]);
//! let device = purlin_runtime::open("c")?;
//! let Found { trials, best } = schedule(&kernel, &*device, &memory, 10, &mut |_| {})?;
//! let best = &trials[best];
//! assert!(best.outcome.is_ok());
//! println!("{}", best.proposal.text(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use purlin_auto::{Machine, Proposal, propose, propose_for_card};

use crate::tuning::throughput::{ThroughputModel, predicted};
use crate::{DeviceModel, DeviceModelError, kernel_work, known_devices};
use purlin_codegen::{Options, PlacedKernel, Target, generate};
use purlin_interp::{InterpError, Memory};
use purlin_ir::Kernel;
use purlin_primitives::TransformError;
use purlin_run::judge::{Expected, HostError, STEPS, results, with_tables};
use purlin_run::{LoadError, Loaded, laid_out};
use purlin_runtime::{Backend, Device, DeviceInfo, Executable, TimingOptions};
use rayon::prelude::*;
use std::time::Instant;

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
/// long) and timed. `note` hears what is being done.
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
    note("compiling them");
    let ready: Vec<_> = proposals.par_iter().map(|p| compiled(device, &p.kernel, true)).collect();
    let mut trials: Vec<Trial> = Vec::new();
    let mut fastest = f64::INFINITY;
    for (proposal, executable) in proposals.into_iter().zip(ready) {
        note(&format!("timing `{}`", proposal.name));
        let timed = |executable| time(kernel, device, memory, &expected, &proposal, executable, fastest);
        let outcome = executable.and_then(timed);
        fastest = outcome.as_ref().map_or(fastest, |time| fastest.min(*time));
        trials.push(Trial { proposal, outcome });
    }
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
            Backend::C => purlin_runtime::host_threads(),
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
    Ok(found)
}

fn predict(kernel: &Kernel, memory: &Memory, model: &ThroughputModel<'_>) -> Result<f64, String> {
    let placed = PlacedKernel::new(kernel).map_err(|e| e.to_string())?;
    let made = placed.program_and_codes(Target::Cuda, &Options::default());
    let (program, codes) = made.map_err(|e| e.to_string())?;
    predicted(&program, &codes, memory, model).map_err(|e| e.to_string())
}

fn expected(kernel: &Kernel, memory: &Memory) -> Result<Expected, AutoError> {
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

/// Median seconds of a launch; one of those that are far from the fastest so far.
fn time(
    kernel: &Kernel,
    device: &dyn Device,
    memory: &Memory,
    expected: &Expected,
    proposal: &Proposal,
    executable: Executable,
    fastest: f64,
) -> Result<f64, String> {
    let memory_with_tables = with_tables(kernel, &proposal.kernel, memory);
    let inputs = laid_out(&proposal.kernel, &memory_with_tables);
    let load =
        |executable| Loaded::compiled(device, executable, &inputs).map_err(|e: LoadError| e.to_string());
    // Equal as it is timed is enough. A program that loses digits may be equal only where each
    // operation is rounded, as in what is expected.
    let first = match compared(kernel, memory, expected, proposal, &load(executable.clone())?) {
        Ok(first) => first,
        Err(_) => {
            let rounded = compiled(device, &proposal.kernel, false)?;
            compared(kernel, memory, expected, proposal, &load(rounded)?)?
        }
    };
    if device.info().backend == Backend::C && first > (1.5 * fastest).max(COLD) {
        return Ok(first);
    }
    let mut times: Vec<f64> = Vec::with_capacity(LAUNCHES);
    let again = |times: &[f64]| {
        times.len() < LAUNCHES && times.iter().sum::<f64>() < SECONDS && times[0] < 1.2 * fastest
    };
    while times.is_empty() || again(&times) {
        times.push(load(executable.clone())?.time(&ONCE).map_err(|e| e.to_string())?.median_s);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Launches a kernel on poisoned results, and holds them against what is expected. Returns the seconds of
/// the launch, where the device waits for its end.
fn compared(
    kernel: &Kernel,
    memory: &Memory,
    expected: &Expected,
    proposal: &Proposal,
    loaded: &Loaded,
) -> Result<f64, String> {
    expected.poison(loaded).map_err(|e| e.to_string())?;
    let start = Instant::now();
    loaded.launch().map_err(|e| e.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    let found = results(&proposal.kernel, loaded, memory).map_err(|e| e.to_string())?;
    match expected.compare(&found).fault(kernel, memory) {
        Some(fault) => Err(format!("wrong: {fault}")),
        None => Ok(seconds),
    }
}
