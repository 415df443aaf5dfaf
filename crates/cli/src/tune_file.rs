//! `kingpost tune` on a `.kingpost` file: values for the holes of its schedule, or mappings of a kernel
//! of a form.

use super::failure::Failure;
use super::imported::{imported_inputs, single_cells};
use super::inputs::{Inputs, inputs};
use super::mesh_inputs::LoweredArrays;
use super::out;
use super::progress::Progress;
use super::results::{best_by, energy, mapping_json, trials_table};
use super::run_args::open_device;
use super::source::{FileSource, is_json};
use super::table::{facts, figure, seconds};
use super::trial_args::{Prepared, compile_only, model, model_of_arch, restart, say};
use super::trials::Trials;
use super::tune_args::{TuneArgs, given_mesh};
use super::values::read_mesh;
use kingpost::Random;
use kingpost::autotune::DeviceModel;
use kingpost::autotune::tuner::{Ending, Subject, Task, tune};
use kingpost::codegen::Options;
use kingpost::forms::CellKernel;
use kingpost::forms::strategies::HoleValues;
use kingpost::transforms::Script;
use kingpost::transforms::schedule::Choice;
use kingpost::tuning::known::{Sought, default_first, with_vectors};
use kingpost::tuning::{
    Candidate, Database, KernelSubject, Record, Scheduled, candidates, numbering, with_dynamic_local,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Runs the command.
pub fn run(args: &TuneArgs, what: &str, file: FileSource) -> Result<(), Failure> {
    let lowered = file.lower();
    let has_holes = file.script.as_ref().is_some_and(Script::has_holes);
    let of_program = file.form.is_none() && lowered.program().is_err();
    if of_program && !has_holes && args.trials.mapping.is_empty() && !args.trials.compile_only {
        let device = open_device(args.trials.device.as_deref())?;
        let seed = args.trials.seed.unwrap_or_else(Random::fresh_seed);
        return super::auto::print(what, &file, &args.inputs, &*device, seed, args.trials.budget + 1, false);
    }
    let FileSource { kernel, script, form } = file;
    let script = script.filter(Script::has_holes).filter(|_| args.trials.mapping.is_empty());
    let scheduled = Scheduled { form: &*lowered, script: script.as_ref() };
    if args.trials.compile_only {
        let model = model_of_arch(&args.trials.arch)?;
        let chosen = choose(args, what, &*lowered, scheduled, 0, &model, u64::MAX)?;
        let jobs: Vec<_> = chosen.into_iter().map(|c| (what, &scheduled, c.parameters)).collect();
        let how = (args.trials.time_limit, &Progress::of_long_stages());
        return compile_only(&args.trials.arch, &jobs, how);
    }
    let progress = Progress::new();
    let prepared = args.trials.prepare(&progress)?;
    let Prepared { device, measured, seed, .. } = &prepared;
    // a parameter that a hole fixes has as many values as the hole
    let given = args.inputs.given()?;
    // default: a kernel without a schedule fixes nothing
    let fixed = script.as_ref().map(|s| s.fixed_params(&Choice::default(), &given)).unwrap_or_default();
    let wanted = args.inputs.wanted(fixed);
    let inputs = match &form {
        Some(of) => imported_inputs(&wanted, of, *seed)?,
        None => inputs(&wanted, &kernel, *seed)?,
    };
    let subject = subject(args, what, scheduled, inputs, &prepared)?;
    progress.stage("ranking mappings");
    let (model, local_bytes) = (model(device.info(), measured)?, device.info().local_mem_bytes);
    let cells = subject.workload.size;
    let mut candidates = choose(args, what, &*lowered, scheduled, cells, &model, local_bytes)?;
    if let Some(of) = form.as_ref().filter(|_| args.trials.mapping.is_empty()) {
        if args.trials.budget > 0 {
            candidates.extend(with_dynamic_local(&*lowered, &candidates));
            candidates = with_vectors(candidates, &*lowered, device.info());
        }
        let sought = Sought { case: None, dim: of.form.form.cell.dim() };
        candidates = default_first(candidates, &*lowered, sought, &**device);
    }
    drop(progress);
    let database = args.trials.database()?;
    subject.check_trust(&candidates)?;
    let tasks = [Task { subject, candidates }];
    let options = args.trials.options(device.info(), *seed);
    let trials = Trials::new(restart);
    let ending = tune(&tasks, measured, &database, &options, &trials)?;
    let signal = trials.signal();
    drop(trials);
    say(ending);
    finish(what, args, &prepared, form.is_some(), &tasks[0], &database, ending)?;
    signal.map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))
}

/// What to try: the given mappings, values for the holes of the schedule, or the mappings of an
/// action.
fn choose(
    args: &TuneArgs,
    what: &str,
    lowered: &dyn CellKernel,
    scheduled: Scheduled<'_>,
    cells: u64,
    model: &DeviceModel,
    local_bytes: u64,
) -> Result<Vec<Candidate>, Failure> {
    if let Some(given) = args.trials.given() {
        return Ok(given);
    }
    if scheduled.script.is_none() {
        let found = candidates(lowered, cells, model, local_bytes, args.trials.budget);
        if found.is_err() && is_json(what) {
            return Ok(single_cells(lowered));
        }
        return found.map_err(|error| {
            Failure::Usage(format!(
                "`{what}` has no schedule with holes, so there is nothing to search; end it with a line `schedule` \
                 and lines such as `tile in [8, 16, 32]` and `split_iname(i, tile)`; nor can it be mapped as the \
                 action of a form: {error}"
            ))
        });
    }
    let chosen = scheduled.choices();
    if chosen.is_empty() {
        return Err(Failure::Usage(format!("no values satisfy the constraints of the schedule of `{what}`")));
    }
    Ok(chosen)
}

/// The kernel on its inputs, and which mesh these are of.
fn subject<'d>(
    args: &TuneArgs,
    what: &str,
    scheduled: Scheduled<'d>,
    inputs: Inputs,
    prepared: &'d Prepared,
) -> Result<KernelSubject<'d>, Failure> {
    let name = Path::new(what).file_stem().map_or(what.into(), |s| s.to_string_lossy());
    let mesh = match &args.inputs.mesh {
        Some(path) => given_mesh(path, read_mesh(path)?).identity(),
        None => None,
    };
    let lowered = LoweredArrays::of(scheduled.kernel());
    let size = lowered.as_ref().map_or(0, |l| l.cells(scheduled.kernel(), inputs.memory.params()));
    let mut subject =
        KernelSubject::new(&name, scheduled, inputs.memory, &*prepared.device, &prepared.cache)?;
    subject.workload.data = mesh;
    subject.workload.numbering = lowered.and_then(|_| numbering(inputs.order));
    subject.workload.size = size;
    subject.options = Options::default().with_trust(args.trust.trust);
    Ok(subject)
}

/// Shows every trial, the best values, and how to use them.
fn finish(
    what: &str,
    args: &TuneArgs,
    prepared: &Prepared,
    is_form: bool,
    task: &Task<KernelSubject<'_>>,
    database: &Database,
    ending: Ending,
) -> Result<(), Failure> {
    let is_ours = |r: &Record| {
        r.device.name == prepared.measured.name
            && r.workload.is_same(task.subject.workload())
            && task.candidates.iter().any(|c| c.parameters == r.parameters)
    };
    let mut latest: BTreeMap<String, Record> = BTreeMap::new();
    for record in database.read()?.records.into_iter().filter(is_ours) {
        latest.insert(record.parameters.to_string(), record);
    }
    let records: Vec<Record> = latest.into_values().collect();
    out(&trials_table(&records, args.trials.objective))?;
    if let Some(text) = task.subject.not_finite() {
        out(&format!("{text}\n"))?;
    }
    let best = best_by(&records, args.trials.objective)?;
    let Some((best, median)) = best.first().and_then(|best| Some((*best, best.median_s()?))) else {
        return match ending {
            Ending::Complete => {
                Err(Failure::Refused("no choice of values is right; the table says why".into()))
            }
            // what is left was said
            Ending::Stopped { .. } | Ending::DeviceLost { .. } => Ok(()),
        };
    };
    let work = &task.subject.workload.work;
    let rate = |n: u64| figure(n as f64 / median / 1e9);
    let mapping = mapping_options(best)?;
    let params = task.subject.memory().params().iter();
    let sizes: String = match (&args.inputs.mesh, args.inputs.cells) {
        (Some(path), _) => format!(" --mesh {}", path.display()),
        (None, Some(cells)) => format!(" --cells {cells}"),
        // of an imported form the unit mesh is the default
        (None, None) if is_form => String::new(),
        (None, None) => params.map(|(name, v)| format!(" --param {name}={v}")).collect(),
    };
    let (form, target) = (args.form.given(), prepared.device.info().backend.target());
    let device = args.trials.device.as_ref().map_or(String::new(), |d| format!(" --device {d}"));
    let of_a_run = [("best", best.parameters.to_string()), ("time (median)", seconds(median))];
    let rates = [("GFLOP/s", rate(work.flops)), ("GB/s of distinct data", rate(work.dram_bytes))];
    out(&facts(of_a_run.into_iter().chain(energy(best).map(|joules| ("energy", joules))).chain(rates)))?;
    // outside the box, which would break the lines: they are to be copied
    out(&format!(
        "run it:      kingpost run {what}{form}{sizes}{device}{mapping}\n\
         its source:  kingpost print {what}{form} --target {target}{mapping}\n"
    ))
}

/// The options that give a mapping, or the values of holes, to other commands.
fn mapping_options(best: &Record) -> Result<String, Failure> {
    Ok(match best.parameters.get::<HoleValues>() {
        Some(HoleValues { values }) => {
            values.iter().map(|(name, value)| format!(" --hole {name}={value}")).collect()
        }
        None => format!(" --mapping '{}'", mapping_json(best)?),
    })
}
