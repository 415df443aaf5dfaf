//! The commands of the study; `--help` explains them.

use clap::{Args, Parser, Subcommand};
use kingpost::Random;
use kingpost::codegen::{Options, Target, generate};
use kingpost::files;
use kingpost::runtime::cuda::nvrtc;
use kingpost::runtime::{Cache, Device, Optimisation, TimingOptions, open};
use kingpost_cli::{Failure, JsonLinesError, append_json_line, end, out};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use study_swirydowicz_2019::measure::Case;
use study_swirydowicz_2019::page::{Sequence, page};
use study_swirydowicz_2019::picture::rates_svg;
use study_swirydowicz_2019::problem::{MAX_DEGREE, Precision, Problem, Sizes};
use study_swirydowicz_2019::recipes::{RecipeError, Tuned};
use study_swirydowicz_2019::record::{self, Key, Outcome, Record};
use study_swirydowicz_2019::stale::stale;
use study_swirydowicz_2019::steps::{Launch, steps};

/// As for `kingpost` itself, whose steps make and drop many small expressions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AFTER: &str = "\
Examples, after `cargo study study-swirydowicz-2019 --`:
  list                                                   all kernels, and by what each differs from the one before
  recipe bp35.2d.10 --degree 7 > k10.json                its steps, for `kingpost steps FILE --recipe k10.json`
  recipe bp30.3d.1 --launch 2 --plain > part.kingpost      what the steps of its second launch start from
  steps bp35.2d --degree 7                               what each kernel changes in the recipe before, and its gain
  compile --arch sm_90                                   no GPU needed: fills the cache of compiled kernels
  time --device cuda --db h200.jsonl --time-limit 9m     every kernel, degree and size that is not in the file yet
  time --device opencl --kernels bp35.2d --degrees 1-3 --elements 64
  time --device cuda --precision f64,f32 --kernels bp35.2d.13 --elements 32768
  stale --kernels bp35.2d --degrees 7                    records of code that is no longer generated
  page --db h200.jsonl --dir results/h200                the page as Markdown, and its pictures

The plain kernels that recipes start from are in studies/swirydowicz-2019/kernels.";

/// The study of Świrydowicz et al. 2019: its tuned kernels as recipes, timed beside a copy of the
/// same bytes.
#[derive(Parser)]
#[command(name = "study-swirydowicz-2019", version, after_help = AFTER, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the kernels and their ideas
    List,
    /// Print the recipe of a kernel
    Recipe(RecipeArgs),
    /// Print what each kernel of a sequence changes in the recipe before it, and the gain
    ///
    /// Times are those of records whose source is the one that is generated now.
    Steps(StepsArgs),
    /// Compile the CUDA source of kernels into the cache (`KINGPOST_CACHE_DIR`), without a GPU
    Compile(CompileArgs),
    /// Check and time kernels; lines of JSON
    Time(TimeArgs),
    /// Print the page of measurements, and draw its pictures
    Page(PageArgs),
    /// List the records of code that is no longer generated; 1 if there are any
    Stale(StaleArgs),
}

#[derive(Args)]
struct RecipeArgs {
    /// A kernel, such as bp35.2d.10
    kernel: String,
    /// Polynomial degree
    #[arg(long, default_value_t = 7)]
    degree: usize,
    /// Type of real numbers
    #[arg(long, default_value = "f64")]
    precision: Precision,
    /// Which launch, of a kernel of several
    #[arg(long, value_name = "K")]
    launch: Option<usize>,
    /// Print the kernel that the steps start from instead of them
    #[arg(long)]
    plain: bool,
    /// Print the CUDA source that the steps lead to instead of them
    #[arg(long, conflicts_with = "plain")]
    source: bool,
}

#[derive(Args)]
struct StepsArgs {
    /// Kernels or beginnings of their names, such as bp35.2d
    #[arg(required = true)]
    kernels: Vec<String>,
    /// Polynomial degree
    #[arg(long, default_value_t = 7)]
    degree: usize,
    /// Type of real numbers
    #[arg(long, default_value = "f64")]
    precision: Precision,
    /// Elements of the launch that was timed
    #[arg(long, value_name = "N", default_value_t = 32768)]
    elements: usize,
    /// The records that `time` wrote
    #[arg(long, value_name = "FILE", default_value = "results/h200/swirydowicz_2019.jsonl")]
    db: PathBuf,
}

#[derive(Args)]
struct CompileArgs {
    /// Architecture of the card
    #[arg(long, default_value = "sm_90")]
    arch: String,
    /// Kernels or beginnings of their names, such as bp10 or bp35.2d [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    kernels: Vec<String>,
    /// Polynomial degrees, such as 7 or 1-15
    #[arg(long, value_name = "RANGE", default_value = "1-15", value_parser = degrees)]
    degrees: (usize, usize),
    /// Types of real numbers
    #[arg(long, value_name = "TYPES", value_delimiter = ',', default_value = "f64")]
    precision: Vec<Precision>,
}

#[derive(Args)]
struct TimeArgs {
    /// Where to run: cuda, opencl, c
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Kernels or beginnings of their names, such as bp10 or bp35.2d [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    kernels: Vec<String>,
    /// Polynomial degrees, such as 7 or 1-15
    #[arg(long, value_name = "RANGE", default_value = "1-15", value_parser = degrees)]
    degrees: (usize, usize),
    /// Types of real numbers
    #[arg(long, value_name = "TYPES", value_delimiter = ',', default_value = "f64")]
    precision: Vec<Precision>,
    /// Numbers of elements
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [512, 4096])]
    elements: Vec<usize>,
    /// File of records; what it holds is not timed again
    #[arg(long, value_name = "FILE", default_value = "swirydowicz-2019.jsonl")]
    db: PathBuf,
    /// Stop after this time, such as 540s or 9m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,
    /// Seconds of counted runs of a kernel, at least
    #[arg(long, value_name = "S", default_value_t = 0.02)]
    min_seconds: f64,
    /// Seed of the inputs [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Args)]
struct PageArgs {
    /// The records that `time` wrote
    #[arg(long, value_name = "FILE", default_value = "swirydowicz-2019.jsonl")]
    db: PathBuf,
    /// Folder for the pictures; without it none are drawn
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Multiprocessors of the device, for the shared-memory roofline
    #[arg(long, requires = "clock_mhz")]
    multiprocessors: Option<u32>,
    /// Its clock in MHz
    #[arg(long, requires = "multiprocessors")]
    clock_mhz: Option<f64>,
}

#[derive(Args)]
struct StaleArgs {
    /// The records that `time` wrote
    #[arg(long, value_name = "FILE", default_value = "results/h200/swirydowicz_2019.jsonl")]
    db: PathBuf,
    /// Kernels or beginnings of their names, such as bp10 or bp35.2d [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    kernels: Vec<String>,
    /// Polynomial degrees, such as 7 or 1-15
    #[arg(long, value_name = "RANGE", default_value = "1-15", value_parser = degrees)]
    degrees: (usize, usize),
}

/// `7` or `1-15`.
fn degrees(text: &str) -> Result<(usize, usize), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<usize>().map_err(|e| format!("`{text}` is no degree: {e}"));
    match (number(first)?, number(last)?) {
        (a, b) if 1 <= a && a <= b && b <= MAX_DEGREE => Ok((a, b)),
        _ => Err(format!("degrees are 1 to {MAX_DEGREE}, the lower one first")),
    }
}

/// `540s` or `9m`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time, needed one such as 540s or 9m");
    let (number, factor) = match (text.strip_suffix('s'), text.strip_suffix('m')) {
        (Some(n), _) => (n, 1),
        (None, Some(n)) => (n, 60),
        (None, None) => return Err(wrong()),
    };
    Ok(Duration::from_secs(factor * number.parse::<u64>().map_err(|_| wrong())?))
}

fn main() -> ExitCode {
    let cli = Cli::parse(); // exits with 2 on a mistake
    end(match &cli.command {
        Command::List => list(),
        Command::Recipe(args) => recipe(args),
        Command::Steps(args) => print_steps(args),
        Command::Compile(args) => compile(args),
        Command::Time(args) => time(args),
        Command::Page(args) => print_page(args),
        Command::Stale(args) => list_stale(args),
    })
}

fn list() -> Result<(), Failure> {
    let line = |k: &Tuned| format!("{k:<11} {}\n", k.idea());
    out(&Tuned::all().iter().map(line).collect::<String>())
}

fn failed(error: RecipeError) -> Failure {
    match error {
        RecipeError::TooManyWorkItems { .. } | RecipeError::OtherLines { .. } => {
            Failure::Usage(error.to_string())
        }
        RecipeError::Refused { .. } | RecipeError::Plain { .. } => Failure::Refused(error.to_string()),
    }
}

fn recipe(args: &RecipeArgs) -> Result<(), Failure> {
    let kernel: Tuned = args.kernel.parse().map_err(|e| Failure::Usage(format!("{e}")))?;
    let launches = kernel.launches_in(args.degree, args.precision).map_err(failed)?;
    let launch = match (&launches[..], args.launch) {
        ([launch], None) => launch,
        (all, Some(k)) if (1..=all.len()).contains(&k) => &all[k - 1],
        (all, _) => {
            let message = format!("`{kernel}` has launches 1 to {}; choose one with --launch", all.len());
            return Err(Failure::Usage(message));
        }
    };
    if args.plain {
        return out(&launch.plain.to_string());
    }
    if args.source {
        let program = generate(launch.schedule.kernel(), Target::Cuda, &Options::default().with_trust(true));
        return out(&program.map_err(|e| Failure::Refused(e.to_string()))?.source);
    }
    let json = launch.schedule.recipe().to_json().map_err(|e| Failure::Refused(e.to_string()))?;
    out(&(json + "\n"))
}

fn print_steps(args: &StepsArgs) -> Result<(), Failure> {
    let kernels = chosen(&args.kernels)?;
    let records = if args.db.exists() { record::read(&args.db).map_err(unreadable)? } else { Vec::new() };
    let StepsArgs { degree, precision, elements, .. } = *args;
    let problems: BTreeSet<Problem> = kernels.iter().map(|k| k.problem).collect();
    for problem in problems {
        let of: Vec<Tuned> = kernels.iter().filter(|k| k.problem == problem).copied().collect();
        let launch = Launch { sizes: Sizes { problem, degree, precision }, elements };
        out(&steps(&of, launch, &records).map_err(failed)?)?;
    }
    Ok(())
}

fn compile(args: &CompileArgs) -> Result<(), Failure> {
    nvrtc::version().map_err(|e| Failure::Missing(e.to_string()))?;
    let (kernels, cache) = (chosen(&args.kernels)?, Cache::from_environment());
    let degrees = args.degrees.0..=args.degrees.1;
    let sizes = degrees.flat_map(|degree| args.precision.iter().map(move |p| (degree, *p)));
    let cases: Vec<_> = sizes.flat_map(|(degree, p)| kernels.iter().map(move |k| (*k, degree, p))).collect();
    let line = |(kernel, degree, precision): &(Tuned, usize, Precision)| -> Result<String, Failure> {
        let launches = match kernel.launches_in(*degree, *precision) {
            Ok(launches) => launches,
            Err(e @ (RecipeError::TooManyWorkItems { .. } | RecipeError::OtherLines { .. })) => {
                return Ok(format!("{e}\n"));
            }
            Err(e @ (RecipeError::Refused { .. } | RecipeError::Plain { .. })) => return Err(failed(e)),
        };
        let mut resources = Vec::new();
        for launch in &launches {
            let options = Options::default().with_trust(true);
            let program = match generate(launch.schedule.kernel(), Target::Cuda, &options) {
                Ok(program) => program,
                Err(e) => return Ok(format!("{kernel} at degree {degree} in {precision}: {e}\n")),
            };
            let object = nvrtc::compile_program(&args.arch, &program, Optimisation::Full, &cache)?;
            resources.extend(object.resources.iter().map(ToString::to_string));
        }
        Ok(format!("{kernel} at degree {degree} in {precision}: {}\n", resources.join("; ")))
    };
    out(&cases.par_iter().map(line).collect::<Result<String, Failure>>()?)
}

fn unreadable(error: JsonLinesError) -> Failure {
    error.into()
}

/// What `time` does: everything that was asked for and is not in the file.
struct Campaign<'a> {
    args: &'a TimeArgs,
    device: Box<dyn Device>,
    kernels: Vec<Tuned>,
    done: Vec<Key>,
    begin: Instant,
    options: TimingOptions,
    seed: u64,
}

fn time(args: &TimeArgs) -> Result<(), Failure> {
    let kernels = chosen(&args.kernels)?;
    let device = open(&args.device)?;
    let records = if args.db.exists() { record::read(&args.db).map_err(unreadable)? } else { Vec::new() };
    let done = records.iter().map(Record::key).collect();
    let options = TimingOptions { min_seconds: args.min_seconds, min_runs: 10, ..TimingOptions::default() };
    let seed = args.seed.unwrap_or_else(Random::fresh_seed);
    let campaign = Campaign { args, device, kernels, done, begin: Instant::now(), options, seed };
    for elements in &args.elements {
        for problem in [Problem::Bp10, Problem::Bp35, Problem::Bp30, Problem::Bp35Vertices] {
            for degree in args.degrees.0..=args.degrees.1 {
                for precision in &args.precision {
                    if !campaign.sizes(Sizes { problem, degree, precision: *precision }, *elements)? {
                        eprintln!("the time limit is reached; the same command goes on");
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<Tuned>, Failure> {
    let all = Tuned::all();
    if names.is_empty() {
        return Ok(all);
    }
    let mut kernels = Vec::new();
    for name in names {
        let begins = |k: &&Tuned| k.to_string().starts_with(&format!("{name}."));
        let meant: Vec<Tuned> = match name.parse() {
            Ok(kernel) => vec![kernel],
            Err(_) => all.iter().filter(begins).copied().collect(),
        };
        if meant.is_empty() {
            let message = format!("no kernel is called `{name}` or begins so; `list` shows the kernels");
            return Err(Failure::Usage(message));
        }
        kernels.extend(meant);
    }
    kernels.sort();
    kernels.dedup();
    Ok(kernels)
}

impl Campaign<'_> {
    /// Measures the kernels of a problem at one size; false if time is up.
    fn sizes(&self, sizes: Sizes, elements: usize) -> Result<bool, Failure> {
        let (device, degree) = (&*self.device, sizes.degree);
        let is_left = |k: &&Tuned| !self.done.contains(&Key::new(**k, sizes, elements, device.info()));
        let left: Vec<&Tuned> =
            self.kernels.iter().filter(|k| k.problem == sizes.problem).filter(is_left).collect();
        if left.is_empty() {
            return Ok(true);
        }
        if self.is_late() {
            return Ok(false);
        }
        let mut case = match Case::new(device, sizes, elements, self.seed, &self.options) {
            Ok(case) => case,
            Err(e) => {
                eprintln!("{} at degree {degree}, {elements} elements: skipped: {e}", sizes.problem);
                return Ok(true);
            }
        };
        for kernel in left {
            if self.is_late() {
                return Ok(false);
            }
            let record = case.measure(*kernel, &self.options);
            say(&record);
            append_json_line(&self.args.db, &record).map_err(unreadable)?;
        }
        Ok(true)
    }

    fn is_late(&self) -> bool {
        self.args.time_limit.is_some_and(|limit| self.begin.elapsed() > limit)
    }
}

fn say(record: &Record) {
    let what = format!(
        "{} at degree {}, {} elements, {}",
        record.kernel, record.degree, record.elements, record.precision
    );
    match &record.outcome {
        Outcome::Measured { median_s, copy_s, .. } => eprintln!(
            "{what}: {:.1} µs, {:.2} of streaming, {:.0} GFLOP/s",
            1e6 * median_s,
            copy_s / median_s,
            record.flops_per_s().unwrap_or(f64::NAN) / 1e9,
        ),
        Outcome::Refused(why) => eprintln!("{what}: {why}"),
    }
}

fn print_page(args: &PageArgs) -> Result<(), Failure> {
    let records = record::read(&args.db).map_err(unreadable)?;
    if let Some(dir) = &args.dir {
        draw(&records, dir)?;
    }
    let shared = args.multiprocessors.zip(args.clock_mhz.map(|mhz| mhz * 1e6));
    out(&page(&records, shared))
}

fn list_stale(args: &StaleArgs) -> Result<(), Failure> {
    let records = record::read(&args.db).map_err(unreadable)?;
    let found = stale(&records, &chosen(&args.kernels)?, args.degrees);
    let line = |r: &&Record| format!("{} {} {} {}\n", r.kernel, r.degree, r.elements, r.precision);
    out(&found.iter().map(line).collect::<String>())?;
    match found.len() {
        0 => Ok(()),
        n => Err(Failure::Refused(format!(
            "{n} records are of code that is no longer generated; time these kernels again into another file, and \
             append it"
        ))),
    }
}

fn draw(records: &[Record], dir: &Path) -> Result<(), Failure> {
    for sequence in Sequence::of(records) {
        let of = sequence.records(records);
        if of.iter().all(|r| r.flops_per_s().is_none()) {
            continue;
        }
        let svg = rates_svg(&sequence.title(), &of).map_err(|e| Failure::Refused(e.to_string()))?;
        let path = dir.join(sequence.file() + ".svg");
        files::write(&path, svg).map_err(|e| Failure::of_write(&path, &e))?;
    }
    Ok(())
}
