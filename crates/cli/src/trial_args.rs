//! Trials: what all commands that tune have in common.

use super::failure::{Failure, Signal};
use super::out;
use super::progress::Progress;
use super::results::{objective, warn_of_damage};
use super::run_args::open_device;
use super::table::table;
use super::transform::mapping;
use super::trials::{Trials, first_line};
use clap::Args;
use kingpost::autotune::tuner::{Ending, Subject, Task, TunerOptions, tune};
use kingpost::autotune::{DeviceModel, Objective, Refusal, Stage, known_devices};
use kingpost::codegen::Target;
use kingpost::forms::CellKernel;
use kingpost::runtime::cuda::nvrtc;
use kingpost::runtime::hip;
use kingpost::runtime::{
    Backend, Cache, Device, DeviceInfo, Occupation, Optimisation, Turns, measure_ceilings,
};
use kingpost::tuning::architecture;
use kingpost::tuning::known::{Sought, default_first, with_vectors};
use kingpost::tuning::{Candidate, CaseSubject, Database, FormCase, Record, known, source};
use kingpost::{Mapping, Random};
use rayon::prelude::*;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where, how long and into which database is tuned.
#[derive(Args)]
pub struct TrialArgs {
    /// Where to run: c, opencl, cuda, cuda:1 … [default: opencl if there is one, else c]
    #[arg(long)]
    pub device: Option<String>,
    /// How many of the best ranked mappings to try, besides the default and one cell a work-item
    #[arg(long, visible_alias = "top", value_name = "B", default_value_t = 9)]
    pub budget: usize,
    /// Of the mappings of a form try this many, those that are predicted to be the fastest; on cards
    #[arg(long, value_name = "N", conflicts_with = "mapping")]
    pub first: Option<usize>,
    /// Try this mapping alone, as the records have it in JSON; may be given several times
    #[arg(long, value_name = "JSON", value_parser = mapping, conflicts_with = "budget")]
    pub mapping: Vec<Mapping>,
    /// What the best has least of: its time, or on a card the energy that the whole card takes meanwhile
    #[arg(long, value_name = "WHAT", default_value = "time", value_parser = objective())]
    pub objective: Objective,
    /// Begin no trial after this time, such as 90s, 9m or 1h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub time_limit: Option<Duration>,
    /// The database; pictures are written next to it
    #[arg(long, value_name = "FILE", default_value = known::DATABASE)]
    pub db: PathBuf,
    /// Try again what the database holds
    #[arg(long)]
    pub again: bool,
    /// Threads that generate and compile [default: the cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Only compile, for --arch, into the cache of compiled kernels; needs NVRTC or, for AMD's
    /// processors, clang, but no GPU
    #[arg(long)]
    pub compile_only: bool,
    /// Architecture of --compile-only
    #[arg(long, default_value = "sm_90", value_name = "ARCH")]
    pub arch: String,
    /// Seed of inputs and samples [default: from the clock]
    #[arg(long)]
    pub seed: Option<u64>,
}

/// What trials of some cases found.
pub struct Found {
    /// How they ended.
    pub ending: Ending,
    /// What stopped them from outside.
    pub stopped_by: Option<Signal>,
    /// The records of these cases on this device.
    pub records: Vec<Record>,
    /// What the device's code is written in.
    pub target: Target,
}

impl Found {
    /// How a command ends that has shown this.
    ///
    /// # Errors
    /// The trials were stopped from outside.
    pub fn end(&self) -> Result<(), Failure> {
        self.stopped_by.map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))
    }
}

/// Unix seconds at which trials end, for a process that goes on where another one hung.
const DEADLINE: &str = "KINGPOST_TUNE_DEADLINE";

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; write 90s, 9m or 1h");
    let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic()).ok_or_else(wrong)?);
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let factor = match unit {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(number * factor).map_err(|_| wrong())
}

/// Where trials run.
pub(super) struct Prepared {
    pub device: Box<dyn Device>,
    pub cache: Cache,
    /// What the device can do, measured.
    pub measured: DeviceModel,
    /// Of inputs and samples.
    pub seed: u64,
}

/// When trials end, in seconds since 1970.
static ENDS: OnceLock<u64> = OnceLock::new();

/// Goes on in a new process with the same arguments: what hangs or broke the device is in the
/// database.
pub(super) fn restart() {
    let Ok(program) = std::env::current_exe() else { std::process::exit(1) };
    let mut command = std::process::Command::new(program);
    command.args(std::env::args_os().skip(1));
    if let Some(ends) = ENDS.get() {
        command.env(DEADLINE, ends.to_string());
    }
    // `exec` returns only if it fails.
    let error = std::os::unix::process::CommandExt::exec(&mut command);
    eprintln!("error: cannot start again: {error}; give the same command again");
    std::process::exit(1);
}

/// What is left of the time, also where an earlier process has used some of it.
fn time_left(limit: Option<Duration>) -> Option<Duration> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let inherited = std::env::var(DEADLINE).ok().and_then(|text| text.parse::<u64>().ok());
    let ends = inherited.or_else(|| limit.map(|l| now + l.as_secs()))?;
    let ends = *ENDS.get_or_init(|| ends);
    Some(Duration::from_secs(ends.saturating_sub(now)))
}

/// Says how the trials ended, if they did not all run.
pub(super) fn say(ending: Ending) {
    match ending {
        Ending::Complete => {}
        Ending::Stopped { left } => {
            eprintln!("{left} trials are left; the same command goes on with them");
        }
        Ending::DeviceLost { left } => {
            eprintln!("the device refuses everything since the last trial, {left} are left; starting again");
            restart();
        }
    }
}

/// What to try on a case: for a device's model and bytes of local memory.
type Choose<'f> = dyn Fn(&FormCase, &DeviceModel, u64) -> Result<Vec<Candidate>, Failure> + 'f;

impl TrialArgs {
    /// Tunes cases, of which `choose` says what to try where no `--mapping` is given; nothing is
    /// found where code is only compiled.
    ///
    /// # Errors
    /// A device, a compiler or a database that cannot be used; what `choose` refuses.
    pub fn tune(&self, cases: Vec<FormCase>, choose: &Choose<'_>) -> Result<Option<Found>, Failure> {
        let chosen = |case: &FormCase, model: &DeviceModel, local_bytes| match self.given() {
            Some(given) => Ok(given),
            None => choose(case, model, local_bytes),
        };
        if self.compile_only {
            let progress = Progress::of_long_stages();
            let model = model_of_arch(&self.arch)?;
            compiler_of(&self.arch)?;
            progress.stage("choosing mappings");
            let mut jobs = Vec::new();
            for case in &cases {
                let form = &case.lowered;
                let candidates = chosen(case, &model, u64::MAX)?.into_iter();
                jobs.extend(candidates.map(|c| (case.workload.case.as_str(), form, c.parameters)));
            }
            compile_only(&self.arch, &jobs, (self.time_limit, &progress))?;
            return Ok(None);
        }
        let progress = Progress::new();
        let Prepared { device, cache, measured, seed } = self.prepare(&progress)?;
        let model = model(device.info(), &measured)?;
        progress.stage("ranking mappings");
        let mut tasks = Vec::new();
        for case in cases {
            let mut candidates = chosen(&case, &model, device.info().local_mem_bytes)?;
            if self.mapping.is_empty() {
                if self.budget > 0 {
                    candidates = with_vectors(candidates, &case.lowered, device.info());
                }
                let sought = Sought { case: Some(&case.workload.case), dim: case.lowered.cell.dim() };
                candidates = default_first(candidates, &case.lowered, sought, &*device);
            }
            let subject = CaseSubject { case, device: &*device, cache: &cache, seed };
            tasks.push(Task { subject, candidates });
        }
        drop(progress);
        let database = self.database()?;
        let options = self.options(device.info(), seed);
        let trials = Trials::new(restart);
        let ending = tune(&tasks, &measured, &database, &options, &trials)?;
        let stopped_by = trials.signal();
        drop(trials);
        say(ending);
        let contents = database.read()?;
        warn_of_damage(&contents, database.path());
        let is_ours = |r: &Record| {
            r.device.name == measured.name && tasks.iter().any(|t| t.subject.workload().is_same(&r.workload))
        };
        let records = contents.records.into_iter().filter(is_ours).collect();
        Ok(Some(Found { ending, stopped_by, records, target: device.info().backend.target() }))
    }

    /// The mappings that the command line gives.
    pub(super) fn given(&self) -> Option<Vec<Candidate>> {
        let given = || self.mapping.iter().cloned().map(Candidate::unranked).collect();
        (!self.mapping.is_empty()).then(given)
    }

    /// The device, and its measured ceilings.
    pub(super) fn prepare(&self, progress: &Progress) -> Result<Prepared, Failure> {
        let device = open_device(self.device.as_deref())?;
        if self.objective == Objective::Energy && device.joules().is_none() {
            return Err(Failure::Usage(format!(
                "`{}` has no counter of energy: cards of NVIDIA have one, where the driver's NVML is there; \
                 `--objective time` goes without",
                device.info().name
            )));
        }
        let cache = Cache::from_environment();
        let turns = Turns::of(device.info(), &cache);
        // while another process times kernels they would be too low, for a day
        let turn = turns.take(Occupation::Alone, &mut || {
            progress.stage("waiting for another process that uses the device");
            true
        });
        progress.stage("measuring the device's ceilings (kept for a day)");
        let measured = measure_ceilings(&*device, &cache, false)?;
        drop(turn);
        Ok(Prepared { device, cache, measured, seed: self.seed.unwrap_or_else(Random::fresh_seed) })
    }

    /// The database, in a folder that exists.
    pub(super) fn database(&self) -> Result<Database, Failure> {
        if let Some(dir) = self.db.parent().filter(|d| !d.as_os_str().is_empty()) {
            std::fs::create_dir_all(dir).map_err(|e| Failure::of_write(dir, &e))?;
        }
        Ok(Database::at(&self.db))
    }

    /// How to tune on this device.
    pub(super) fn options(&self, info: &DeviceInfo, seed: u64) -> TunerOptions {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shares_cores = info.backend != Backend::Cuda;
        // One core is left to the thread that owns a card.
        let threads = if shares_cores { cores } else { cores.saturating_sub(1).max(1) };
        TunerOptions {
            threads: self.threads.unwrap_or(threads),
            shares_cores,
            time_limit: time_left(self.time_limit),
            again: self.again,
            seed,
            turns: Turns::of(info, &Cache::from_environment()),
            ..TunerOptions::default()
        }
    }
}

/// What the cost model knows of a device.
pub(super) fn model(info: &DeviceInfo, measured: &DeviceModel) -> Result<DeviceModel, Failure> {
    known::model(info, measured).map_err(|e| Failure::Refused(e.to_string()))
}

/// Architectures that are compiled for where there is no card, with the model that ranks for them.
pub(super) fn model_of_arch(arch: &str) -> Result<DeviceModel, Failure> {
    let name = match arch {
        "sm_90" | "sm_90a" => "H200",
        "sm_70" => "Titan V",
        _ => {
            let model = architecture::model_of(arch).map_err(|e| Failure::Refused(e.to_string()))?;
            return model.ok_or_else(|| {
                let known: Vec<String> = ["sm_90", "sm_70"]
                    .into_iter()
                    .chain(architecture::processors())
                    .map(|a| format!("`{a}`"))
                    .collect();
                let known = known.join(", ");
                Failure::Usage(format!("no device model for `{arch}`; there are models for {known}"))
            });
        }
    };
    let mut models = known_devices().map_err(|e| Failure::Refused(e.to_string()))?.into_iter();
    models
        .find(|m| m.name == name)
        .ok_or_else(|| Failure::Refused(format!("bug of kingpost: no model `{name}`")))
}

/// What is compiled for an architecture, if its compiler is here.
fn compiler_of(arch: &str) -> Result<Target, Failure> {
    let is_hip = architecture::processors().any(|known| known == arch);
    let version = if is_hip { hip::version().map(drop) } else { nvrtc::version().map(drop) };
    version.map_err(|e| Failure::Missing(e.to_string()))?;
    Ok(if is_hip { Target::Hip } else { Target::Cuda })
}

/// Fills the cache of compiled kernels with that of each case and mapping; none is begun after the limit.
pub(super) fn compile_only<K: CellKernel + Sync>(
    arch: &str,
    jobs: &[(&str, &K, Mapping)],
    (limit, progress): (Option<Duration>, &Progress),
) -> Result<(), Failure> {
    let since = Instant::now();
    let is_over = || limit.is_some_and(|limit| since.elapsed() >= limit);
    let target = compiler_of(arch)?;
    let is_hip = target == Target::Hip;
    let cache = Cache::from_environment();
    let done = AtomicUsize::new(0);
    let compile = |(case, form, parameters): &(&str, &K, Mapping)| {
        let result = source(*form, parameters, target).and_then(|(program, _)| {
            let refused = |e| Refusal::new(Stage::Compile, e);
            if is_hip {
                let resources = hip::compile_program(arch, &program, &cache).map_err(refused)?.resources;
                return Ok(resources.into_iter().find(|r| r.entry == program.entry).map(|r| r.to_string()));
            }
            let object = nvrtc::compile_program(arch, &program, Optimisation::Full, &cache);
            let resources = object.map_err(refused)?.resources;
            Ok(resources.into_iter().find(|r| r.entry == program.entry).map(|r| r.to_string()))
        });
        let n = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress.stage(format!("compiled {n} of {} for {arch}", jobs.len()));
        let said = match &result {
            Ok(Some(resources)) => resources.clone(),
            Ok(None) => "no report of its resources".into(),
            Err(refusal) => first_line(refusal),
        };
        (result.is_ok(), [(*case).to_owned(), parameters.to_string(), said])
    };
    let compiled: Vec<(bool, [String; 3])> = jobs.par_iter().filter(|_| !is_over()).map(compile).collect();
    let left = jobs.len() - compiled.len();
    let left = if left > 0 { format!("; {left} are left, as the time is over") } else { String::new() };
    let place =
        cache.dir().map_or("nowhere: there is no cache directory".into(), |d| d.display().to_string());
    let good = compiled.iter().filter(|(is_good, _)| *is_good).count();
    let table = table(["case", "mapping", "resources"], compiled.into_iter().map(|(_, row)| row));
    out(&format!("{table}{good} of {} compiled for {arch}, kept in {place}{left}\n", jobs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        let seconds = |text| duration(text).map(|d| d.as_secs());
        assert_eq!([seconds("90s"), seconds("9m"), seconds("1.5h")], [Ok(90), Ok(540), Ok(5400)]);
        for text in ["", "9", "m", "-1s", "9 days", "1e999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
