//! `kingpost auto`: a schedule of a loop program, without a user's step.

use super::failure::Failure;
use super::inputs::{InputArgs, inputs};
use super::out;
use super::progress::Progress;
use super::run_args::open_device;
use super::source::{FileSource, Source, SourceArgs};
use super::table::{seconds, table};
use clap::Args;
use kingpost::Random;
use kingpost::auto::{AutoError, Found, Platform, Trial, proposals, schedule};
use kingpost::runtime::Device;

/// Find a schedule for a loop program on a device, without a user's step
///
/// Proposals are made of primitives, each step of which is proved; what is refused is dropped. A
/// model ranks them, and the best are launched on the given sizes, held against the interpreter and
/// timed, with the program as it is written among them. What is printed is the schedule of the
/// fastest: put it after the program, or give it to --recipe.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost auto lu.kingpost --param n=1000 --device c > lu.schedule
  kingpost run lu.kingpost --param n=1000 --device c --recipe lu.schedule
  kingpost auto lu.kingpost --param n=1000 --device c --why    what was considered, and why not")]
pub struct AutoArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Where to run: c, opencl, cuda, cuda:1 … [default: opencl if there is one, else c]
    #[arg(long)]
    pub device: Option<String>,
    /// How many schedules to time, the program as it is written among them
    #[arg(long, value_name = "B", default_value_t = 10)]
    pub budget: usize,
    /// Seed of the inputs [default: from the clock]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Run nothing: print the schedule that the model takes for the fastest. Needs no device; without
    /// one, cuda and opencl stand for an H200
    #[arg(long, conflicts_with = "budget")]
    pub untimed: bool,
    /// Print all that was considered, as comments: what was taken, what was refused and why
    #[arg(long)]
    pub why: bool,
}

/// Runs the command.
pub fn run(args: &AutoArgs) -> Result<(), Failure> {
    let source = args.source.source()?;
    let Source::File(file) = source else {
        return Err(Failure::Usage(format!(
            "`{}` is a form, which has mappings; `kingpost tune` finds the fastest one",
            args.source.what
        )));
    };
    let (seed, budget) = (args.seed.unwrap_or_else(Random::fresh_seed), args.budget);
    if args.untimed {
        return print_untimed(args, &file, seed);
    }
    let device = open_device(args.device.as_deref())?;
    print(&args.source.what, &file, &args.inputs, &*device, seed, budget, args.why)
}

/// Prints the schedule that the model ranks first.
fn print_untimed(args: &AutoArgs, file: &FileSource, seed: u64) -> Result<(), Failure> {
    let name = args.device.as_deref().unwrap_or("c");
    let platform = match open_device(Some(name)) {
        Ok(device) => Platform::of(device.info()),
        Err(Failure::Missing(_)) => Platform::card(""),
        Err(error) => return Err(error),
    };
    let platform = platform.map_err(AutoError::from)?;
    let wanted = args.inputs.wanted(std::collections::BTreeMap::default());
    let memory = inputs(&wanted, &file.kernel, seed)?.memory;
    let all = proposals(&file.kernel, &memory, &platform).map_err(AutoError::from)?;
    let Some((first, others)) = all.split_first() else {
        return Err(AutoError::None("nothing was proposed".into()).into());
    };
    let params = memory.params().iter().map(|(name, value)| format!(" --param {name}={value}"));
    let params = params.collect::<String>();
    let mut text = format!("# kingpost auto {}{params} --device {name} --untimed\n", args.source.what);
    text += &format!("# not timed: {} ranks {} schedules\n#\n", platform.model(), all.len());
    for other in others.iter().filter(|_| args.why) {
        text += &commented(&other.text(true));
    }
    text += &first.text(args.why);
    out(&text)
}

/// Finds a schedule and prints it, with what was tried as comments.
pub fn print(
    what: &str,
    file: &FileSource,
    given: &InputArgs,
    device: &dyn Device,
    seed: u64,
    budget: usize,
    why: bool,
) -> Result<(), Failure> {
    let wanted = given.wanted(std::collections::BTreeMap::default());
    let memory = inputs(&wanted, &file.kernel, seed)?.memory;
    let progress = Progress::new();
    let Found { trials, best } =
        schedule(&file.kernel, device, &memory, budget, &mut |stage| progress.stage(stage.to_owned()))?;
    drop(progress);
    let params = memory.params().iter().map(|(name, value)| format!(" --param {name}={value}"));
    let info = device.info();
    let mut text =
        format!("# kingpost auto {what}{} --device {}\n", params.collect::<String>(), info.selector());
    text += &format!("# {}, seed {seed}; median times of a launch:\n#\n", info.name);
    text += &commented(&tried(&trials, best));
    text += "#\n";
    if why {
        for (k, trial) in trials.iter().enumerate().filter(|(k, _)| *k != best) {
            text += &format!("# {}. {}", k + 1, commented_steps(trial));
        }
    }
    text += &trials[best].proposal.text(why);
    out(&text)
}

/// A row for each trial.
fn tried(trials: &[Trial], best: usize) -> String {
    let plain = trials.iter().find(|t| t.proposal.recipe.steps.is_empty());
    let plain = plain.and_then(|t| t.outcome.as_ref().ok().copied());
    let rows = trials.iter().enumerate().map(|(k, trial)| {
        let (time, speed) = match &trial.outcome {
            Ok(time) => (seconds(*time), plain.map_or(String::new(), |p| format!("{:.2}", p / time))),
            Err(why) => (why.split('\n').take(1).collect(), String::new()),
        };
        let chosen = if k == best { "fastest" } else { "" };
        let steps = trial.proposal.recipe.steps.len();
        [trial.proposal.name.clone(), steps.to_string(), time, speed, chosen.to_owned()]
    });
    table(["schedule", "steps", "time", "speed", ""], rows)
}

fn commented(text: &str) -> String {
    text.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect()
}

/// The steps of a schedule that was not the fastest, and what was considered for it.
fn commented_steps(trial: &Trial) -> String {
    let text = trial.proposal.text(true);
    let lines = text.lines().map(|line| line.trim_start_matches("# "));
    lines
        .enumerate()
        .map(|(k, line)| if k == 0 { format!("{line}\n") } else { format!("#    {line}\n") })
        .collect()
}

impl From<AutoError> for Failure {
    fn from(error: AutoError) -> Self {
        match error {
            AutoError::Transform(error) => Self::Refused(error.to_string()),
            AutoError::Model(error) => Self::Refused(error.to_string()),
            AutoError::Interp(error) => Self::Usage(error.to_string()),
            AutoError::Host(error) => error.into(),
            AutoError::None(_) => Self::Refused(error.to_string()),
        }
    }
}
