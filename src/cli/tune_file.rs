//! `purlin tune` on a `.purlin` file: values for the holes of its schedule, or mappings of a kernel
//! of a form.

use super::failure::Failure;
use super::imported::{imported_inputs, single_cells};
use super::inputs::inputs;
use super::judge::{Expected, STEPS, results, with_tables};
use super::mesh_inputs::LoweredArrays;
use super::out;
use super::progress::Progress;
use super::results::{mapping_json, trials_table};
use super::source::{FileSource, Lowered, is_json};
use super::table::{facts, figure, seconds};
use super::trial_args::{Prepared, compile_only, model, model_of_arch, restart, say};
use super::trials::Trials;
use super::tune::{TuneArgs, given_mesh};
use super::values::read_mesh;
use purlin::autotune::tuner::{Built, Ending, Session, Subject, Task, tune};
use purlin::autotune::{DeviceModel, Errors, Refusal, Stage, Workload};
use purlin::codegen::{Options, Program, generate};
use purlin::interp::{InterpError, Memory};
use purlin::ir::Kernel;
use purlin::runtime::{Cache, Device, Executable, RuntimeError, Timing, TimingOptions};
use purlin::transforms::Script;
use purlin::transforms::lists::Definition;
use purlin::transforms::schedule::Choice;
use purlin::tuning::known::{Sought, default_first, with_vectors};
use purlin::tuning::{Candidate, Database, Record, candidates, compile_ahead, numbering, with_dynamic_local};
use purlin::{Loaded, Mapping, kernel_work, laid_out, set_up_with, transform_with_setup};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

/// A kernel with what maps it: a schedule that has holes, or the mappings of a form's action.
struct FileSubject<'d> {
    kernel: Kernel,
    lowered: &'d Lowered,
    script: Option<Script>,
    memory: Memory,
    workload: Workload,
    device: &'d dyn Device,
    cache: &'d Cache,
    options: Options,
    /// What a comparison of results proves nothing of.
    not_finite: OnceLock<String>,
}

/// A candidate's kernel and its code.
struct Candidated {
    kernel: Kernel,
    program: Program,
    /// What computes the inputs that the mapping passes.
    definitions: Vec<Definition>,
    /// None on a card, where the thread that owns it loads the code.
    executable: Option<Executable>,
}

/// Runs the command.
pub fn run(args: &TuneArgs, what: &str, file: FileSource) -> Result<(), Failure> {
    let lowered = file.lower();
    let FileSource { kernel, script, form } = file;
    let script = script.filter(Script::has_holes).filter(|_| args.trials.mapping.is_empty());
    if args.trials.compile_only {
        let model = model_of_arch(&args.trials.arch)?;
        let chosen = choose(args, what, &lowered, script.as_ref(), 0, &model, u64::MAX)?;
        let jobs: Vec<_> = chosen.into_iter().map(|c| (what, &lowered, c.parameters)).collect();
        return compile_only(&args.trials.arch, &jobs, &Progress::new());
    }
    let progress = Progress::new();
    let Prepared { device, cache, measured, seed } = args.trials.prepare(&progress)?;
    // a parameter that a hole fixes has as many values as the hole
    let fixed = script.as_ref().map(|s| s.fixed_params(&Choice::default())).unwrap_or_default();
    let wanted = args.inputs.wanted(fixed);
    let memory = match &form {
        Some(of) => imported_inputs(&wanted, of, seed)?.memory,
        None => inputs(&wanted, &kernel, seed)?.memory,
    };
    let workload = workload(args, what, &kernel, &memory)?;
    progress.stage("ranking mappings");
    let (model, local_bytes) = (model(device.info(), &measured)?, device.info().local_mem_bytes);
    let mut candidates = choose(args, what, &lowered, script.as_ref(), workload.size, &model, local_bytes)?;
    if let Some(of) = form.as_ref().filter(|_| args.trials.mapping.is_empty()) {
        if args.trials.budget > 0 {
            candidates.extend(with_dynamic_local(&lowered, &candidates));
            candidates = with_vectors(candidates, &lowered, device.info());
        }
        let sought = Sought { case: None, dim: of.form.form.cell.dim() };
        candidates = default_first(candidates, &lowered, sought, &*device);
    }
    drop(progress);
    let database = args.trials.database()?;
    let subject = FileSubject {
        kernel,
        lowered: &lowered,
        script,
        memory,
        workload,
        device: &*device,
        cache: &cache,
        options: Options::default().with_trust(args.trust.trust),
        not_finite: OnceLock::new(),
    };
    subject.check_trust(&candidates)?;
    let tasks = [Task { subject, candidates }];
    let options = args.trials.options(device.info(), seed);
    let trials = Trials::new(restart);
    let ending = tune(&tasks, &measured, &database, &options, &trials)?;
    let signal = trials.signal();
    drop(trials);
    say(ending);
    finish(what, args, &tasks[0], &measured.name, &database, ending)?;
    signal.map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))
}

/// What to try: the given mappings, values for the holes of the schedule, or the mappings of an
/// action.
fn choose(
    args: &TuneArgs,
    what: &str,
    lowered: &Lowered,
    script: Option<&Script>,
    cells: u64,
    model: &DeviceModel,
    local_bytes: u64,
) -> Result<Vec<Candidate>, Failure> {
    if let Some(given) = args.trials.given() {
        return Ok(given);
    }
    let Some(script) = script else {
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
    };
    let chosen: Vec<Candidate> = script.choices().map(|c| Candidate::unranked(parameters(&c))).collect();
    if chosen.is_empty() {
        return Err(Failure::Usage(format!("no values satisfy the constraints of the schedule of `{what}`")));
    }
    Ok(chosen)
}

/// The values of holes as a record has them.
fn parameters(choice: &Choice) -> Mapping {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Mapping::Schedule { values: choice.values().iter().map(|(k, v)| (k.clone(), text(v))).collect() }
}

/// What is computed. The kernel's hash is that of its text with its schedule and parameters, which
/// make another case.
fn workload(args: &TuneArgs, what: &str, kernel: &Kernel, memory: &Memory) -> Result<Workload, Failure> {
    let sizes: Vec<String> = memory.params().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let name = Path::new(what).file_stem().map_or(what.into(), |s| s.to_string_lossy());
    let work = kernel_work(kernel, memory.params())?;
    let outputs = kernel.vars.values().filter(|v| v.is_output());
    let lowered = LoweredArrays::of(kernel);
    let mesh = match &args.inputs.mesh {
        Some(path) => given_mesh(path, read_mesh(path)?).identity(),
        None => None,
    };
    Ok(Workload {
        case: if sizes.is_empty() { name.into_owned() } else { format!("{name} {}", sizes.join(" ")) },
        kernel: format!("{} {}", kernel.content_hash(), sizes.join(" ")),
        data: mesh,
        numbering: lowered.as_ref().and_then(|_| numbering(args.inputs.order())),
        size: lowered.map_or(0, |l| l.cells(kernel, memory.params())),
        results: outputs.filter_map(|v| memory.get(&v.name)).map(|v| v.len() as u64).sum(),
        work,
    })
}

impl Subject for FileSubject<'_> {
    type Mapping = Mapping;
    type Program = Candidated;
    type Inputs = Expected;
    type Session<'s>
        = OnDevice<'s>
    where
        Self: 's;

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn build(&self, parameters: &Mapping) -> Result<Built<Candidated>, Refusal> {
        let (kernel, definitions) = self.mapped(parameters)?;
        let info = self.device.info();
        let program = generate(&kernel, info.backend.target(), &self.options)
            .map_err(|e| Refusal::new(Stage::Generate, e))?;
        let (executable, resources) = compile_ahead(self.device, self.cache, &program)?;
        let executed_flops = kernel_work(&kernel, self.memory.params()).ok().map(|work| work.flops);
        let hash = kernel.content_hash();
        let program = Candidated { kernel, program, definitions, executable };
        Ok(Built { program, kernel: hash, resources, executed_flops })
    }

    fn prepare(&self) -> Result<Expected, String> {
        let by_host = || Expected::by_host(&self.kernel, &self.memory).map_err(|e| e.text());
        if self.workload.work.flops > STEPS {
            return by_host();
        }
        match Expected::new(&self.kernel, &self.memory, STEPS) {
            Ok(expected) => Ok(expected),
            Err(InterpError::StepLimit { .. } | InterpError::TooLarge { .. }) => by_host(),
            Err(error) => Err(error.to_string()),
        }
    }

    fn load(&self, expected: Expected) -> Result<OnDevice<'_>, String> {
        Ok(OnDevice { subject: self, expected })
    }
}

impl FileSubject<'_> {
    /// Refuses code that nobody has allowed to run before a trial is recorded as refused: with the
    /// first candidate that maps, as all declare the same callees.
    fn check_trust(&self, candidates: &[Candidate]) -> Result<(), Failure> {
        let mapped = candidates.iter().find_map(|c| self.mapped(&c.parameters).ok());
        let Some((kernel, _)) = mapped else { return Ok(()) };
        // a kernel without code is refused trial by trial
        let program = generate(&kernel, self.device.info().backend.target(), &self.options).ok();
        match program.and_then(|program| Some((program.entry, program.untrusted.into_iter().next()?))) {
            Some((entry, callee)) => Err(RuntimeError::Untrusted { entry, callee }.into()),
            None => Ok(()),
        }
    }

    /// The kernel with values for the holes of its schedule, or with a mapping.
    fn mapped(&self, parameters: &Mapping) -> Result<(Kernel, Vec<Definition>), Refusal> {
        let refused = |e: String| Refusal::new(Stage::Transform, e);
        match (&self.script, parameters) {
            (Some(script), Mapping::Schedule { values }) => {
                let value =
                    |(hole, text): (&String, &String)| Ok((hole.clone(), script.value_of(hole, text)?));
                let values = values.iter().map(value).collect::<Result<Vec<_>, String>>().map_err(refused)?;
                let applied = script.apply_with(&self.kernel, &Choice::new(values));
                let (kernel, recipe) = applied.map_err(|e| refused(e.to_string()))?.finish();
                let definitions = recipe.definitions(&self.kernel);
                Ok((kernel, definitions.map_err(|e| refused(e.to_string()))?))
            }
            (_, mapping) => {
                let (kernel, _, definitions) = transform_with_setup(self.lowered, mapping)?;
                Ok((kernel, definitions))
            }
        }
    }
}

/// A kernel on its device, with what its results must be.
struct OnDevice<'s> {
    subject: &'s FileSubject<'s>,
    expected: Expected,
}

impl<'s> OnDevice<'s> {
    fn place(&self, candidate: &Candidated) -> Result<Loaded<'s>, Refusal> {
        let refused = |e: &dyn std::fmt::Display| Refusal::new(Stage::Launch, e);
        let device = self.subject.device;
        let executable = match &candidate.executable {
            Some(executable) => executable.clone(),
            None => device.compile(&candidate.program).map_err(|e| refused(&e))?,
        };
        let mut memory = with_tables(&self.subject.kernel, &candidate.kernel, &self.subject.memory);
        set_up_with(device, &candidate.definitions, &mut memory, &self.subject.options)
            .map_err(|e| refused(&e))?;
        Loaded::compiled(device, executable, &laid_out(&candidate.kernel, &memory)).map_err(|e| refused(&e))
    }
}

impl Session for OnDevice<'_> {
    type Program = Candidated;

    fn check(&mut self, candidate: &Candidated) -> Result<Errors, Refusal> {
        let refused = |e: Failure| Refusal::new(Stage::Launch, e.text());
        let loaded = self.place(candidate)?;
        self.expected.poison(&loaded).map_err(refused)?;
        loaded.launch().map_err(|e| Refusal::new(Stage::Launch, e))?;
        let found = results(&candidate.kernel, &loaded, &self.subject.memory).map_err(refused)?;
        let mut comparison = self.expected.compare(&found);
        if let Some(text) = comparison.not_finite() {
            // the same of every candidate
            self.subject.not_finite.get_or_init(|| text);
        }
        let (kernel, memory) = (&self.subject.kernel, &self.subject.memory);
        if !comparison.is_right() {
            self.expected.excuse(kernel, memory, &mut comparison);
        }
        match comparison.fault(kernel, memory) {
            Some(fault) => Err(Refusal::new(Stage::Check, fault)),
            None => {
                let error = comparison.largest();
                Ok(Errors { small: error, measured: error })
            }
        }
    }

    fn time(&mut self, candidate: &Candidated, options: &TimingOptions) -> Result<Timing, Refusal> {
        self.place(candidate)?.time(options).map_err(|e| Refusal::new(Stage::Launch, e))
    }

    fn is_alive(&self) -> bool {
        self.subject.device.allocate(8).is_ok()
    }
}

/// Shows every trial, the best values, and how to use them.
fn finish(
    what: &str,
    args: &TuneArgs,
    task: &Task<FileSubject<'_>>,
    machine: &str,
    database: &Database,
    ending: Ending,
) -> Result<(), Failure> {
    let is_ours = |r: &Record| {
        r.device.name == machine
            && r.workload.is_same(task.subject.workload())
            && task.candidates.iter().any(|c| c.parameters == r.parameters)
    };
    let mut latest: BTreeMap<String, Record> = BTreeMap::new();
    for record in database.read()?.records.into_iter().filter(is_ours) {
        latest.insert(record.parameters.to_string(), record);
    }
    let records: Vec<Record> = latest.into_values().collect();
    out(&trials_table(&records))?;
    if let Some(text) = task.subject.not_finite.get() {
        out(&format!("{text}\n"))?;
    }
    let time = |r: &&Record| r.median_s().unwrap_or(f64::INFINITY);
    let measured = records.iter().filter(|r| r.median_s().is_some());
    let Some(best) = measured.min_by(|a, b| time(a).total_cmp(&time(b))) else {
        return match ending {
            Ending::Complete => {
                Err(Failure::Refused("no choice of values is right; the table says why".into()))
            }
            // what is left was said
            Ending::Stopped { .. } | Ending::DeviceLost { .. } => Ok(()),
        };
    };
    let (median, work) = (time(&best), &task.subject.workload.work);
    let rate = |n: u64| figure(n as f64 / median / 1e9);
    let mapping = mapping_options(best)?;
    let params = task.subject.memory.params().iter();
    let sizes: String = match (&args.inputs.mesh, args.inputs.cells) {
        (Some(path), _) => format!(" --mesh {}", path.display()),
        (None, Some(cells)) => format!(" --cells {cells}"),
        // of an imported form the unit mesh is the default
        (None, None) if matches!(task.subject.lowered, Lowered::Imported(_)) => String::new(),
        (None, None) => params.map(|(name, v)| format!(" --param {name}={v}")).collect(),
    };
    let (form, target) = (args.form.given(), task.subject.device.info().backend.target());
    let device = args.trials.device.as_ref().map_or(String::new(), |d| format!(" --device {d}"));
    out(&facts([
        ("best", best.parameters.to_string()),
        ("time (median)", seconds(median)),
        ("GFLOP/s", rate(work.flops)),
        ("GB/s of distinct data", rate(work.dram_bytes)),
        ("run it", format!("purlin run {what}{form}{sizes}{device}{mapping}")),
        ("its source", format!("purlin print {what}{form} --target {target}{mapping}")),
    ]))
}

/// The options that give a mapping, or the values of holes, to other commands.
fn mapping_options(best: &Record) -> Result<String, Failure> {
    Ok(match &best.parameters {
        Mapping::Schedule { values } => {
            values.iter().map(|(name, value)| format!(" --hole {name}={value}")).collect()
        }
        Mapping::Sequential
        | Mapping::SingleCell { .. }
        | Mapping::ConstantCells { .. }
        | Mapping::PointTiles { .. }
        | Mapping::StagedCells { .. }
        | Mapping::StraightCells { .. }
        | Mapping::ListedCells(_)
        | Mapping::LoopLanes { .. }
        | Mapping::OwnedRows { .. }
        | Mapping::SummedCells { .. }
        | Mapping::FactorisedCells { .. }
        | Mapping::FactorisedPlanes { .. }
        | Mapping::FactorisedLines { .. }
        | Mapping::MatrixCells { .. }
        | Mapping::MatrixGroups { .. }
        | Mapping::MatrixBasis { .. }
        | Mapping::Modes { .. }
        | Mapping::StoredFactors { .. }
        | Mapping::Rules { .. }
        | Mapping::Orbits { .. }
        | Mapping::DynamicLocal { .. }
        | Mapping::FewestOperations { .. }
        | Mapping::SharingElimination { .. }
        | Mapping::Tiling(_)
        | Mapping::StagedTiling(_) => format!(" --mapping '{}'", mapping_json(best)?),
    })
}
