//! `purlin tune` on a `.purlin` file: values for the holes of its schedule.

use super::failure::Failure;
use super::inputs::{Wanted, inputs};
use super::judge::{Expected, STEPS, results, with_tables};
use super::out;
use super::progress::Progress;
use super::results::trials_table;
use super::source::{FileSource, Source};
use super::table::{facts, figure, seconds};
use super::trials::Trials;
use super::tune::{Prepared, TuneArgs, restart};
use purlin::autotune::tuner::{Built, Session, Subject, Task, tune};
use purlin::autotune::{Candidate, Database, Errors, Parameters, Record, Refusal, Stage, Workload};
use purlin::codegen::{Options, Program, Target, generate};
use purlin::interp::{InterpError, Memory};
use purlin::ir::Kernel;
use purlin::runtime::{Cache, Device, Executable, Timing, TimingOptions, open};
use purlin::transforms::Script;
use purlin::transforms::schedule::Choice;
use purlin::tuning::compile_ahead;
use purlin::{Loaded, kernel_work, laid_out};
use std::collections::BTreeMap;
use std::path::Path;

/// A kernel with a schedule that has holes.
struct Scheduled<'d> {
    kernel: Kernel,
    script: Script,
    memory: Memory,
    workload: Workload,
    device: &'d dyn Device,
    cache: &'d Cache,
}

/// A candidate's kernel and its code.
struct Candidated {
    kernel: Kernel,
    program: Program,
    /// None on a card, where the thread that owns it loads the code.
    executable: Option<Executable>,
}

/// Runs the command.
pub fn run(args: &TuneArgs, what: &str) -> Result<(), Failure> {
    let Source::File(file) = args.form_options().source(what)? else { return Ok(()) };
    let FileSource { kernel, script } = *file;
    let script = script.filter(Script::has_holes).ok_or_else(|| {
        Failure::Usage(format!(
            "`{what}` has no schedule with holes, so there is nothing to search; end it with a line `schedule` and lines \
             such as `tile in [8, 16, 32]` and `split_iname(i, tile)`"
        ))
    })?;
    let progress = Progress::new();
    let Prepared { device, cache, machine, seed, .. } = args.prepare(&progress)?;
    let (param, values) = (&*args.param, args.values.as_deref());
    let memory = inputs(&Wanted { param, values, ..Wanted::default() }, &kernel, seed)?.memory;
    let workload = workload(what, &kernel, &memory)?;
    let candidates: Vec<Candidate> = script.choices().map(|c| Candidate::unranked(parameters(&c))).collect();
    if candidates.is_empty() {
        return Err(Failure::Usage(format!("no values satisfy the constraints of the schedule of `{what}`")));
    }
    drop(progress);
    let database = args.database()?;
    let subject = Scheduled { kernel, script, memory, workload, device: &*device, cache: &cache };
    let tasks = [Task { subject, candidates }];
    let options = args.options(device.info(), seed);
    let ending = tune(&tasks, &machine, &database, &options, &Trials::new(restart))?;
    super::tune::say(ending);
    finish(what, args, &tasks[0], &machine.name, &database)
}

/// The values of holes as a record has them.
fn parameters(choice: &Choice) -> Parameters {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Parameters::Schedule { values: choice.values().iter().map(|(k, v)| (k.clone(), text(v))).collect() }
}

/// What is computed. The kernel's hash is that of its text with its schedule and parameters, which make another case.
fn workload(what: &str, kernel: &Kernel, memory: &Memory) -> Result<Workload, Failure> {
    let sizes: Vec<String> = memory.params().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let name = Path::new(what).file_stem().map_or(what.into(), |s| s.to_string_lossy());
    let work = kernel_work(kernel, memory.params())?;
    let outputs = kernel.vars.values().filter(|v| v.is_output());
    Ok(Workload {
        case: if sizes.is_empty() { name.into_owned() } else { format!("{name} {}", sizes.join(" ")) },
        kernel: format!("{} {}", kernel.content_hash(), sizes.join(" ")),
        cells: 0,
        dofs: outputs.filter_map(|v| memory.get(&v.name)).map(|v| v.len() as u64).sum(),
        flops: work.flops,
        dram_bytes: work.dram_bytes,
        table_bytes: work.table_bytes,
    })
}

impl Subject for Scheduled<'_> {
    type Program = Candidated;
    type Inputs = Expected;
    type Session<'s>
        = OnDevice<'s>
    where
        Self: 's;

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn build(&self, parameters: &Parameters) -> Result<Built<Candidated>, Refusal> {
        let choice = self.choice(parameters).map_err(|e| Refusal::new(Stage::Transform, e))?;
        let applied = self.script.apply_with(&self.kernel, &choice);
        let kernel = applied.map_err(|e| Refusal::new(Stage::Transform, e))?.finish().0;
        let info = self.device.info();
        let program = generate(&kernel, info.backend.target(), &Options::default())
            .map_err(|e| Refusal::new(Stage::Generate, e))?;
        let (executable, resources) = compile_ahead(self.device, self.cache, &program)?;
        let hash = kernel.content_hash();
        Ok(Built { program: Candidated { kernel, program, executable }, kernel: hash, resources })
    }

    fn prepare(&self) -> Result<Expected, String> {
        if self.workload.flops > STEPS {
            return self.by_host();
        }
        match Expected::new(&self.kernel, &self.memory, STEPS) {
            Ok(expected) => Ok(expected),
            Err(InterpError::StepLimit { .. } | InterpError::TooLarge { .. }) => self.by_host(),
            Err(error) => Err(error.to_string()),
        }
    }

    fn load(&self, expected: Expected) -> Result<OnDevice<'_>, String> {
        Ok(OnDevice { subject: self, expected })
    }
}

impl Scheduled<'_> {
    fn choice(&self, parameters: &Parameters) -> Result<Choice, String> {
        let Parameters::Schedule { values } = parameters else {
            return Err(format!("{parameters} is no choice of values for holes"));
        };
        let value = |(hole, text): (&String, &String)| Ok((hole.clone(), self.script.value_of(hole, text)?));
        values.iter().map(value).collect::<Result<Vec<_>, String>>().map(Choice::new)
    }

    /// What the kernel as it is written computes in C, where it is too large to interpret.
    fn by_host(&self) -> Result<Expected, String> {
        let program = generate(&self.kernel, Target::C, &Options::default()).map_err(|e| e.to_string())?;
        let host = open("c").map_err(|e| e.to_string())?;
        let loaded = Loaded::new(&*host, &program, &self.memory).map_err(|e| e.to_string())?;
        loaded.launch().map_err(|e| e.to_string())?;
        Ok(Expected::computed(
            &self.memory,
            results(&self.kernel, &loaded, &self.memory).map_err(|e| e.text())?,
        ))
    }
}

/// A kernel on its device, with what its results must be.
struct OnDevice<'s> {
    subject: &'s Scheduled<'s>,
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
        let memory = with_tables(&self.subject.kernel, &candidate.kernel, &self.subject.memory);
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
    task: &Task<Scheduled<'_>>,
    machine: &str,
    database: &Database,
) -> Result<(), Failure> {
    let kernel = &task.subject.workload().kernel;
    let is_ours = |r: &Record| {
        r.device.name == machine
            && r.workload.kernel == *kernel
            && task.candidates.iter().any(|c| c.parameters == r.parameters)
    };
    let mut latest: BTreeMap<String, Record> = BTreeMap::new();
    for record in database.read()?.records.into_iter().filter(is_ours) {
        latest.insert(record.parameters.to_string(), record);
    }
    let records: Vec<Record> = latest.into_values().collect();
    out(&trials_table(&records))?;
    let time = |r: &&Record| r.median_s().unwrap_or(f64::INFINITY);
    let measured = records.iter().filter(|r| r.median_s().is_some());
    let Some(best) = measured.min_by(|a, b| time(a).total_cmp(&time(b))) else {
        return Err(Failure::Refused("no choice of values is right; the table says why".into()));
    };
    let (median, work) = (time(&best), &task.subject.workload);
    let rate = |n: u64| figure(n as f64 / median / 1e9);
    let Parameters::Schedule { values } = &best.parameters else { return Ok(()) };
    let holes: String = values.iter().map(|(name, value)| format!(" --hole {name}={value}")).collect();
    let sizes: String =
        task.subject.memory.params().iter().map(|(name, v)| format!(" --param {name}={v}")).collect();
    let device = args.device.as_ref().map_or(String::new(), |d| format!(" --device {d}"));
    out(&facts([
        ("best", best.parameters.to_string()),
        ("time (median)", seconds(median)),
        ("GFLOP/s", rate(work.flops)),
        ("GB/s of distinct data", rate(work.dram_bytes)),
        ("run it", format!("purlin run {what}{sizes}{device}{holes}")),
        (
            "its source",
            format!("purlin print {what} --target {}{holes}", task.subject.device.info().backend.target()),
        ),
    ]))
}
