//! Tuning of any kernel: values for the holes of its schedule, or mappings where its parts have roles.
//!
//! A candidate counts if its results agree, element by element, with those of the interpreter, or of the
//! kernel as it is written, in C, where it is too large to interpret.

use super::{Candidate, compile_ahead};
use crate::kernel_work;
use crate::tuner::{Built, Session, Subject};
use crate::tuning::transform_with_setup;
use crate::{Errors, Refusal, Stage, Workload};
use kingpost_analysis::stats::StatsError;
use kingpost_codegen::{Options, Program, generate};
use kingpost_fem::quadrature::QuadratureScheme;
use kingpost_forms::lowering::{NoSymmetry, Orbits, OtherRules};
use kingpost_forms::program::{CellLoop, CellProgram, NotAnAction};
use kingpost_forms::tabulated::IntegralType;
use kingpost_forms::{CellKernel, Relowered};
use kingpost_interp::{InterpError, Memory};
use kingpost_ir::Kernel;
use kingpost_primitives::Script;
use kingpost_primitives::lists::Definition;
use kingpost_run::judge::{Expected, STEPS, results, with_tables};
use kingpost_run::{Loaded, laid_out, set_up_with};
use kingpost_runtime::{Cache, Device, Executable, RuntimeError, Timing, TimingOptions};
use kingpost_strategies::HoleValues;
use kingpost_strategies::Mapping;
use std::borrow::Cow;
use std::fmt::Display;
use std::sync::OnceLock;

/// A kernel, and the schedule that belongs to it, if it has one.
#[derive(Clone, Copy)]
pub struct Scheduled<'k> {
    /// The kernel, with the roles of its parts.
    pub form: &'k (dyn CellKernel + Sync),
    /// The schedule.
    pub script: Option<&'k Script>,
}

impl Scheduled<'_> {
    /// Every combination of values for the holes of the schedule that satisfies its constraints.
    #[must_use]
    pub fn choices(&self) -> Vec<Candidate> {
        let all = self.script.into_iter().flat_map(Script::choices);
        all.map(|choice| Candidate::unranked(HoleValues::from(&choice).into())).collect()
    }
}

impl CellKernel for Scheduled<'_> {
    fn kernel(&self) -> &Kernel {
        self.form.kernel()
    }

    fn cell_loop(&self) -> Result<Cow<'_, CellLoop>, NotAnAction> {
        self.form.cell_loop()
    }

    fn program(&self) -> Result<Cow<'_, CellProgram>, NotAnAction> {
        self.form.program()
    }

    fn over(&self) -> Option<IntegralType> {
        self.form.over()
    }

    fn with_scheme(&self, scheme: QuadratureScheme) -> Result<Relowered, OtherRules> {
        self.form.with_scheme(scheme)
    }

    fn symmetric(&self) -> Result<(Relowered, Vec<Orbits>), NoSymmetry> {
        self.form.symmetric()
    }

    fn in_point_orbits(&self) -> Result<(Relowered, Vec<Orbits>), NoSymmetry> {
        self.form.in_point_orbits()
    }

    fn entity_parts(&self) -> Option<Vec<u64>> {
        self.form.entity_parts()
    }

    fn script(&self) -> Option<&Script> {
        self.script
    }
}

/// A kernel with its inputs on a device: what the tuner is asked to map.
///
/// ```no_run
/// use kingpost_autotune::tuner::{Task, TunerOptions, tune};
/// # fn example(form: &kingpost_ir::Kernel, script: &kingpost_primitives::Script, memory: kingpost_interp::Memory,
/// #     device: &dyn kingpost_runtime::Device, cache: &kingpost_runtime::Cache, measured: &kingpost_autotune::DeviceModel,
/// #     options: &TunerOptions, observer: &dyn kingpost_autotune::tuner::Observer<kingpost_strategies::Mapping>,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// use kingpost_autotune::tuning::{Database, KernelSubject, Scheduled};
///
/// let scheduled = Scheduled { form, script: Some(script) };
/// let candidates = scheduled.choices();
/// let subject = KernelSubject::new("matmul", scheduled, memory, device, cache)?;
/// tune(&[Task { subject, candidates }], measured, &Database::at("trials.jsonl"), options, observer)?;
/// # Ok(())
/// # }
/// ```
pub struct KernelSubject<'d> {
    scheduled: Scheduled<'d>,
    memory: Memory,
    /// What is computed; who knows the mesh of the inputs says so here.
    pub workload: Workload,
    /// Options of code generation.
    pub options: Options,
    device: &'d dyn Device,
    cache: &'d Cache,
    /// What a comparison of results proves nothing of.
    not_finite: OnceLock<String>,
}

impl<'d> KernelSubject<'d> {
    /// A kernel with its inputs and parameters, under a name for people.
    ///
    /// # Errors
    /// A kernel that cannot be counted.
    pub fn new(
        name: &str,
        scheduled: Scheduled<'d>,
        memory: Memory,
        device: &'d dyn Device,
        cache: &'d Cache,
    ) -> Result<Self, StatsError> {
        let kernel = scheduled.kernel();
        let sizes: Vec<String> =
            memory.params().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let sizes = sizes.join(" ");
        let work = kernel_work(kernel, memory.params())?;
        let outputs = kernel.vars.values().filter(|v| v.is_output());
        let workload = Workload {
            case: if sizes.is_empty() { name.to_owned() } else { format!("{name} {sizes}") },
            // parameters make another case
            kernel: format!("{} {sizes}", kernel.content_hash()),
            data: None,
            numbering: None,
            size: 0,
            results: outputs.filter_map(|v| memory.get(&v.name)).map(|v| v.len() as u64).sum(),
            work,
        };
        let (options, not_finite) = (Options::default(), OnceLock::new());
        Ok(Self { scheduled, memory, workload, options, device, cache, not_finite })
    }

    /// The inputs and parameters.
    #[must_use]
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What the comparison of results proved nothing of, if there was something.
    pub fn not_finite(&self) -> Option<&str> {
        self.not_finite.get().map(String::as_str)
    }

    /// Refuses code that nobody has allowed to run before a trial is recorded as refused: with the
    /// first candidate that maps, as all declare the same callees.
    ///
    /// # Errors
    /// [`RuntimeError::Untrusted`].
    pub fn check_trust(&self, candidates: &[Candidate]) -> Result<(), RuntimeError> {
        let mapped = candidates.iter().find_map(|c| self.mapped(&c.parameters).ok());
        let Some((kernel, _)) = mapped else { return Ok(()) };
        // a kernel without code is refused trial by trial
        let program = generate(&kernel, self.device.info().backend.target(), &self.options).ok();
        match program.and_then(|program| Some((program.entry, program.untrusted.into_iter().next()?))) {
            Some((entry, callee)) => Err(RuntimeError::Untrusted { entry, callee }),
            None => Ok(()),
        }
    }

    fn mapped(&self, mapping: &Mapping) -> Result<(Kernel, Vec<Definition>), Refusal> {
        let (kernel, _, definitions) = transform_with_setup(&self.scheduled, mapping)?;
        Ok((kernel, definitions))
    }
}

/// A candidate's kernel and its code.
pub struct KernelProgram {
    kernel: Kernel,
    program: Program,
    /// What computes the inputs that the mapping passes.
    definitions: Vec<Definition>,
    /// None on a card, where the thread that owns it loads the code.
    executable: Option<Executable>,
}

impl Subject for KernelSubject<'_> {
    type Mapping = Mapping;
    type Program = KernelProgram;
    type Inputs = Expected;
    type Session<'s>
        = KernelSession<'s>
    where
        Self: 's;

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn build(&self, mapping: &Mapping) -> Result<Built<KernelProgram>, Refusal> {
        let (kernel, definitions) = self.mapped(mapping)?;
        let program = generate(&kernel, self.device.info().backend.target(), &self.options)
            .map_err(|e| Refusal::new(Stage::Generate, e))?;
        let (executable, resources) = compile_ahead(self.device, self.cache, &program)?;
        let executed_flops = kernel_work(&kernel, self.memory.params()).ok().map(|work| work.flops);
        let hash = kernel.content_hash();
        let program = KernelProgram { kernel, program, definitions, executable };
        Ok(Built { program, kernel: hash, resources, executed_flops })
    }

    fn prepare(&self) -> Result<Expected, String> {
        let kernel = self.scheduled.kernel();
        let by_host = || Expected::by_host(kernel, &self.memory).map_err(|e| e.to_string());
        if self.workload.work.flops > STEPS {
            return by_host();
        }
        match Expected::new(kernel, &self.memory, STEPS) {
            Ok(expected) => Ok(expected),
            Err(InterpError::StepLimit { .. } | InterpError::TooLarge { .. }) => by_host(),
            Err(error) => Err(error.to_string()),
        }
    }

    fn load(&self, expected: Expected) -> Result<KernelSession<'_>, String> {
        Ok(KernelSession { subject: self, expected })
    }
}

/// A kernel on its device, with what its results must be.
pub struct KernelSession<'s> {
    subject: &'s KernelSubject<'s>,
    expected: Expected,
}

impl<'s> KernelSession<'s> {
    fn place(&self, candidate: &KernelProgram) -> Result<Loaded<'s>, Refusal> {
        let subject = self.subject;
        let executable = match &candidate.executable {
            Some(executable) => executable.clone(),
            None => subject.device.compile(&candidate.program).map_err(|e| refused(&e))?,
        };
        let memory = with_tables(subject.scheduled.kernel(), &candidate.kernel, &subject.memory);
        let mut memory = memory.into_owned();
        set_up_with(subject.device, &candidate.definitions, &mut memory, &subject.options)
            .map_err(|e| refused(&e))?;
        Loaded::compiled(subject.device, executable, &laid_out(&candidate.kernel, &memory))
            .map_err(|e| refused(&e))
    }
}

fn refused(error: &dyn Display) -> Refusal {
    Refusal::new(Stage::Launch, error)
}

impl Session for KernelSession<'_> {
    type Program = KernelProgram;

    fn check(&mut self, candidate: &KernelProgram) -> Result<Errors, Refusal> {
        let loaded = self.place(candidate)?;
        self.expected.poison(&loaded).map_err(|e| refused(&e))?;
        loaded.launch().map_err(|e| refused(&e))?;
        let (kernel, memory) = (self.subject.scheduled.kernel(), &self.subject.memory);
        let found = results(&candidate.kernel, &loaded, memory).map_err(|e| refused(&e))?;
        let mut comparison = self.expected.compare(&found);
        if let Some(text) = comparison.not_finite() {
            // the same of every candidate
            self.subject.not_finite.get_or_init(|| text);
        }
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

    fn time(&mut self, candidate: &KernelProgram, options: &TimingOptions) -> Result<Timing, Refusal> {
        self.place(candidate)?.time(options).map_err(|e| refused(&e))
    }

    fn joules(&mut self, candidate: &KernelProgram, seconds: f64) -> Result<Option<f64>, Refusal> {
        self.place(candidate)?.joules(seconds).map_err(|e| refused(&e))
    }

    fn is_alive(&self) -> bool {
        self.subject.device.allocate(8).is_ok()
    }
}
