//! `purlin tune`: the fastest mapping of a form's action on a device.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::run::open_device;
use super::source::{FormOptions, Scheme, is_file};
use super::transform::mapping;
use super::trials::{Trials, first_line};
use super::values::ParamArg;
use super::{cases, results, study, tune_file};
use clap::Args;
use purlin::autotune::tuner::{Ending, Subject, Task, TunerOptions, tune};
use purlin::autotune::{
    Candidate, Database, DeviceModel, Machine, Parameters, Record, Refusal, Stage, best_of_each,
    known_devices,
};
use purlin::codegen::Target;
use purlin::forms::quadrature::QuadratureScheme;
use purlin::runtime::cuda::nvrtc;
use purlin::runtime::{Backend, Cache, Ceilings, Device, DeviceInfo, measure_ceilings};
use purlin::tuning::{CaseSubject, Choice, LoweredCase, source, staged};
use purlin::{Case, Random, device_model, occupancy};
use rayon::prelude::*;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Find the fastest mapping of a form's action, or the best values for the holes of a schedule, on a device
///
/// Of a form the best ranked mappings are tried, of a schedule all values that satisfy its constraints; a loop program is
/// compared with the interpreter, or with its own C code where it is too large for that. Every result is kept.
///
/// Candidates are generated and compiled on all cores; each is checked against the reference (on a small mesh
/// everywhere, on the measured mesh at random degrees of freedom or with the first result that was right) and timed by
/// the device's clock: 5 warm-ups, then at least 15 runs or 0.2 s. One that does not compile, does not launch or is
/// wrong is recorded with its reason and passed over.
#[derive(Args)]
#[command(after_help = "\
Examples:
  purlin tune laplace --dim 3 --degree 3 --device opencl --cells 16
  purlin tune examples/tuned_matmul.purlin --param n=256          every value of the holes of its schedule
  purlin tune --cases published --device cuda --db h200.jsonl --time-limit 9m      the 70 actions of Kulkarni & Klöckner 2025
  purlin tune --cases laplace.3D,mass.2D.P1 --device c --cells 6
  purlin tune --cases published --compile-only --arch sm_90       no GPU needed: fills the cache of compiled kernels
  purlin tune --study --device cuda --db study.jsonl              how good the ranking is
  purlin results --db h200.jsonl                                  tables of what was found

Every trial is in the database before the next one begins. A run that was stopped (Ctrl-C, --time-limit, kill, power)
goes on where it was when the same command is given again; several processes may share a database.")]
pub struct TuneArgs {
    /// A form by name: mass, helmholtz, laplace, elasticity, hyperelasticity; or a .purlin file that ends with a schedule
    /// with holes
    #[arg(value_name = "WHAT", required_unless_present_any = ["cases", "study"], conflicts_with = "cases")]
    what: Option<String>,
    /// Cases of Kulkarni & Klöckner 2025 instead of one form: `published` for all 70, or components of names:
    /// laplace, 3D.P4,mass.2D
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cases: Vec<String>,
    /// Dimension of the cells of a form: 2 for triangles, 3 for tetrahedra
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3))]
    dim: u8,
    /// Polynomial degree of a form's elements
    #[arg(long, default_value_t = 2)]
    degree: usize,
    /// Quadrature rules [default: xiao-gimbutas for --cases, else default]
    #[arg(long, value_enum)]
    scheme: Option<Scheme>,
    /// Divisions of each side of the unit square or cube [default: 32 or 8; with --cases 1280 or 56, as published]
    #[arg(long, value_name = "N")]
    cells: Option<usize>,
    /// Value of a parameter of a file's kernel; repeat it for each
    #[arg(long, value_name = "NAME=VALUE")]
    pub param: Vec<ParamArg>,
    /// JSON object of argument values for a file's kernel, instead of random ones
    #[arg(long, value_name = "FILE.json")]
    pub values: Option<PathBuf>,
    /// Where to run: c, opencl, cuda, cuda:1 … [default: opencl if there is one, else c]
    #[arg(long)]
    pub device: Option<String>,
    /// How many of the best ranked mappings to try, besides one cell a work-item
    #[arg(long, visible_alias = "top", value_name = "B", default_value_t = 9)]
    budget: usize,
    /// Try this mapping alone, as the records have it in JSON; may be given several times
    #[arg(long, value_name = "JSON", value_parser = mapping, conflicts_with_all = ["budget", "study"])]
    mapping: Vec<Parameters>,
    /// Judge the ranking: the 10 best ranked against --draw random ones [default cases: ten of Kulkarni &
    /// Klöckner 2025]
    #[arg(long, conflicts_with = "budget")]
    study: bool,
    /// Mappings of each case that a study draws at random
    #[arg(long, value_name = "N", default_value_t = 200, requires = "study")]
    draw: usize,
    /// Begin no trial after this time, such as 90s, 9m or 1h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,
    /// The database; pictures are written beside it
    #[arg(long, value_name = "FILE", default_value = "tune-output/trials.jsonl")]
    db: PathBuf,
    /// Try again what the database holds
    #[arg(long)]
    again: bool,
    /// Threads that generate and compile [default: the cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Only compile, for --arch, into the cache of compiled kernels; needs NVRTC but no GPU
    #[arg(long)]
    compile_only: bool,
    /// Architecture of --compile-only
    #[arg(long, default_value = "sm_90", value_name = "ARCH")]
    arch: String,
    /// Seed of inputs and samples [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
}

/// Unix seconds at which trials end, for a process that goes on where another one hung.
const DEADLINE: &str = "PURLIN_TUNE_DEADLINE";

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

/// Runs the command.
pub fn run(args: &TuneArgs) -> Result<(), Failure> {
    if let Some(what) = args.what.as_ref().filter(|what| is_file(what)) {
        return tune_file::run(args, what);
    }
    if let Some(param) = args.param.first() {
        return Err(Failure::Usage(format!("--param {param}: parameters are those of a .purlin file")));
    }
    let progress = Progress::new();
    let cases = args.cases()?;
    progress.stage("lowering");
    let lowered = cases.iter().map(|c| args.lower(*c)).collect::<Result<Vec<_>, _>>()?;
    if args.compile_only {
        return compile_only(args, &lowered, &progress);
    }
    let Prepared { device, cache, ceilings, machine, seed } = args.prepare(&progress)?;
    let model = model(device.info(), &ceilings)?;
    progress.stage("ranking mappings");
    let tasks = args.tasks(lowered, &*device, &cache, seed, |case| {
        args.candidates(case, &model, device.info().local_mem_bytes)
    })?;
    drop(progress);
    let database = args.database()?;
    let options = args.options(device.info(), seed);
    let ending = {
        let trials = Trials::new(restart);
        tune(&tasks, &machine, &database, &options, &trials)?
    };
    finish(args, ending, &tasks, &machine, &database)
}

/// Where trials run.
pub struct Prepared {
    pub device: Box<dyn Device>,
    pub cache: Cache,
    pub ceilings: Ceilings,
    pub machine: Machine,
    /// Of inputs and samples.
    pub seed: u64,
}

/// When trials end, in seconds since 1970.
static ENDS: OnceLock<u64> = OnceLock::new();

/// Goes on in a new process with the same arguments: what hangs or broke the device is in the database.
pub fn restart() {
    let Ok(program) = std::env::current_exe() else { std::process::exit(1) };
    let mut command = std::process::Command::new(program);
    command.args(std::env::args_os().skip(1));
    if let Some(ends) = ENDS.get() {
        command.env(DEADLINE, ends.to_string());
    }
    // `exec` returns only if it fails.
    let error = std::os::unix::process::CommandExt::exec(&mut command);
    eprintln!("error: cannot start anew: {error}; give the same command again");
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

/// The device with its measured ceilings.
fn machine(info: &DeviceInfo, ceilings: &Ceilings) -> Machine {
    Machine {
        name: info.name.clone(),
        driver: info.driver.clone(),
        clock_mhz: info.clock_mhz,
        dram_bytes_per_s: ceilings.stream_bytes_per_s,
        local_bytes_per_s: ceilings.local_bytes_per_s,
        fp64_flops_per_s: ceilings.fma_flops_per_s,
    }
}

/// Says how the trials ended, if they did not all run.
pub fn say(ending: Ending) {
    match ending {
        Ending::Complete => {}
        Ending::Stopped { left } => {
            eprintln!("{left} trials are left; the same command goes on with them");
        }
        Ending::DeviceLost { left } => {
            eprintln!("the device refuses everything since the last trial, {left} are left; starting anew");
            restart();
        }
    }
}

impl TuneArgs {
    /// The device, and its measured ceilings.
    pub fn prepare(&self, progress: &Progress) -> Result<Prepared, Failure> {
        let device = open_device(self.device.as_deref())?;
        let cache = Cache::from_environment();
        progress.stage("measuring the device's ceilings (kept for a day)");
        let ceilings = measure_ceilings(&*device, &cache, false)?;
        let machine = machine(device.info(), &ceilings);
        Ok(Prepared { device, cache, ceilings, machine, seed: self.seed.unwrap_or_else(Random::fresh_seed) })
    }

    /// The database, in a folder that exists.
    pub fn database(&self) -> Result<Database, Failure> {
        if let Some(dir) = self.db.parent().filter(|d| !d.as_os_str().is_empty()) {
            std::fs::create_dir_all(dir)
                .map_err(|e| Failure::Usage(format!("cannot make `{}`: {e}", dir.display())))?;
        }
        Ok(Database::at(&self.db))
    }

    /// What a form is lowered with.
    pub fn form_options(&self) -> FormOptions {
        let scheme = self.scheme.unwrap_or(Scheme::Default);
        FormOptions { dim: self.dim, degree: self.degree, scheme }
    }

    /// The cases to tune.
    fn cases(&self) -> Result<Vec<Case>, Failure> {
        if let Some(what) = &self.what {
            let form = self.form_options().form(what)?;
            return Ok(vec![Case { operator: form.operator, dim: form.dim, degree: self.degree }]);
        }
        if self.cases.is_empty() { cases::named(&study::CASES) } else { cases::named(&self.cases) }
    }

    fn lower(&self, case: Case) -> Result<LoweredCase, Failure> {
        let published = self.what.is_none();
        let scheme = match self.scheme {
            Some(Scheme::XiaoGimbutas) => QuadratureScheme::XiaoGimbutas,
            Some(Scheme::Default) => QuadratureScheme::Default,
            None if published => QuadratureScheme::XiaoGimbutas,
            None => QuadratureScheme::Default,
        };
        let small = if case.dim == 2 { 32 } else { 8 };
        let default = if published { case.published_subdivisions() } else { small };
        Ok(LoweredCase::new(case, scheme, self.cells.unwrap_or(default))?)
    }

    /// Each case with its mappings, after the one that all are compared with.
    fn tasks<'d>(
        &self,
        lowered: Vec<LoweredCase>,
        device: &'d dyn Device,
        cache: &'d Cache,
        seed: u64,
        candidates: impl Fn(&LoweredCase) -> Result<Vec<Candidate>, Failure>,
    ) -> Result<Vec<Task<CaseSubject<'d>>>, Failure> {
        let mut tasks = Vec::new();
        for lowered in lowered {
            let candidates = candidates(&lowered)?;
            tasks.push(Task { subject: CaseSubject { lowered, device, cache, seed }, candidates });
        }
        Ok(tasks)
    }

    /// The single-cell variant, then the best ranked tilings, then for a study those that are drawn.
    fn candidates(
        &self,
        case: &LoweredCase,
        model: &DeviceModel,
        local_bytes: u64,
    ) -> Result<Vec<Candidate>, Failure> {
        if !self.mapping.is_empty() {
            return Ok(self.mapping.iter().cloned().map(Candidate::unranked).collect());
        }
        let mut candidates = vec![Candidate::single_cell()];
        if self.budget == 0 && !self.study {
            return Ok(candidates);
        }
        let largest = model.occupancy.as_ref().map_or(u64::MAX, |o| o.local_bytes_per_group);
        let choice = Choice::new(case, model, local_bytes).map_err(|e| Failure::Usage(e.to_string()))?;
        if !self.study {
            candidates.extend(Candidate::beyond_single_cell(case.table_bytes()));
            candidates.extend(choice.ranked(self.budget));
            let staged = staged(case, local_bytes.min(largest), self.budget.div_ceil(2));
            candidates.extend(staged.map_err(|e| Failure::Usage(e.to_string()))?);
            return Ok(candidates);
        }
        candidates.extend(choice.ranked(study::TOP));
        let mut drawn = choice.drawn(self.draw, study::DRAW_SEED);
        drawn.retain(|new| candidates.iter().all(|c| c.parameters != new.parameters));
        candidates.extend(drawn);
        Ok(candidates)
    }

    /// How to tune on this device.
    pub fn options(&self, info: &DeviceInfo, seed: u64) -> TunerOptions {
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
            ..TunerOptions::default()
        }
    }
}

/// What the cost model knows of a device: the model of that name, or what is measured here.
pub fn model(info: &DeviceInfo, ceilings: &Ceilings) -> Result<DeviceModel, Failure> {
    let models = known_devices().map_err(|e| Failure::Refused(e.to_string()))?;
    // Drivers put the maker in front: `NVIDIA H200`.
    let is_its = |m: &DeviceModel| m.occupancy.is_some() && info.name.trim_start_matches("NVIDIA ") == m.name;
    let measured = || DeviceModel { occupancy: Some(occupancy(info)), ..device_model(ceilings) };
    Ok(models.into_iter().find(is_its).unwrap_or_else(measured))
}

/// Architectures that are compiled for where there is no card, with the model that ranks for them.
fn model_of_arch(arch: &str) -> Result<DeviceModel, Failure> {
    let name = match arch {
        "sm_90" | "sm_90a" => "H200",
        "sm_70" => "Titan V",
        _ => {
            let message = format!("no device model for `{arch}`; there are models for `sm_90` and `sm_70`");
            return Err(Failure::Usage(message));
        }
    };
    let mut models = known_devices().map_err(|e| Failure::Refused(e.to_string()))?.into_iter();
    models
        .find(|m| m.name == name)
        .ok_or_else(|| Failure::Refused(format!("bug of purlin: no model `{name}`")))
}

/// Fills the cache of compiled kernels.
fn compile_only(args: &TuneArgs, lowered: &[LoweredCase], progress: &Progress) -> Result<(), Failure> {
    nvrtc::version().map_err(|e| Failure::Missing(e.to_string()))?;
    let cache = Cache::from_environment();
    let model = model_of_arch(&args.arch)?;
    let mut jobs = Vec::new();
    for case in lowered {
        jobs.extend(args.candidates(case, &model, u64::MAX)?.into_iter().map(|c| (case, c.parameters)));
    }
    let done = AtomicUsize::new(0);
    let compile = |(case, parameters): &(&LoweredCase, Parameters)| {
        let result = source(&case.lowered.kernel, parameters, Target::Cuda).and_then(|(program, _)| {
            let object = nvrtc::compile_for(&args.arch, &program.entry, &program.source, &cache);
            object.map_err(|e| Refusal::new(Stage::Compile, e)).map(drop)
        });
        let n = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress.stage(format!("compiled {n} of {} for {}", jobs.len(), args.arch));
        result
            .err()
            .map(|refusal| format!("{}, {parameters}: {}\n", case.workload.case, first_line(&refusal)))
    };
    let refused: Vec<String> = jobs.par_iter().filter_map(compile).collect();
    let place =
        cache.dir().map_or("nowhere: there is no cache directory".into(), |d| d.display().to_string());
    let good = jobs.len() - refused.len();
    out(&format!(
        "{}{good} of {} compiled for {}, kept in {place}\n",
        refused.concat(),
        jobs.len(),
        args.arch
    ))
}

/// Says how it ended and shows what the database holds of these cases.
fn finish(
    args: &TuneArgs,
    ending: Ending,
    tasks: &[Task<CaseSubject<'_>>],
    machine: &Machine,
    database: &Database,
) -> Result<(), Failure> {
    say(ending);
    let contents = database.read()?;
    results::warn_of_damage(&contents, database.path());
    let is_ours = |r: &&Record| {
        r.device.name == machine.name
            && tasks.iter().any(|t| {
                let w = t.subject.workload();
                (&w.kernel, w.cells) == (&r.workload.kernel, r.workload.cells)
            })
    };
    let records: Vec<Record> = contents.records.iter().filter(is_ours).cloned().collect();
    let best = best_of_each(&records);
    if tasks.len() == 1 {
        out(&results::trials_table(&records))?;
    }
    out(&results::best_table(&best, &records))?;
    if args.study {
        out(&study::study_table(&records))?;
    }
    if best.is_empty() {
        return match ending {
            Ending::Complete => Err(Failure::Refused("no mapping is right; the table says why".into())),
            Ending::Stopped { .. } | Ending::DeviceLost { .. } => Ok(()),
        };
    }
    out(&results::write_pictures(&best, database.path())?)?;
    if let ([task], [best]) = (tasks, &best[..]) {
        let Case { operator, dim, degree } = task.subject.lowered.case;
        let published = task.subject.lowered.scheme == QuadratureScheme::XiaoGimbutas;
        let scheme = if published { " --scheme xiao-gimbutas" } else { "" };
        let target = task.subject.device.info().backend.target();
        let mapping = results::mapping_json(best)?;
        out(&format!(
            "its source: purlin print {operator} --dim {dim} --degree {degree}{scheme} --target {target} --mapping '{mapping}'\n"
        ))?;
    }
    Ok(())
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
