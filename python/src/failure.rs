//! What goes wrong, as an exception of the package.

use kingpost::LoadError;
use kingpost::analysis::placement::StorageError;
use kingpost::analysis::witness::{Instance, Witness};
use kingpost::auto::AutoError;
use kingpost::codegen::CodegenError;
use kingpost::ir::text::ParseErrors;
use kingpost::runtime::{RuntimeError, forks, interruptible};
use kingpost::transforms::schedule::ScriptProblem;
use kingpost::transforms::{RecipeError, Refusal, ScriptError, TransformError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// An exception of the module `kingpost.errors`, to be raised where the interpreter is available.
#[derive(Debug)]
pub(crate) struct Failure {
    class: &'static str,
    message: String,
    fields: Vec<(&'static str, Field)>,
}

/// The value of an attribute of an exception.
#[derive(Debug)]
enum Field {
    Text(String),
    Number(usize),
    Witness(Box<Witness>),
    Mistakes(Vec<(String, Option<String>, usize, usize)>),
}

impl Failure {
    /// An exception of this class.
    pub(crate) fn new(class: &'static str, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), fields: Vec::new() }
    }

    /// An exception about one argument of a call.
    pub(crate) fn about(class: &'static str, argument: &str, message: impl Into<String>) -> Self {
        Self::new(class, message).with("argument", Field::Text(argument.into()))
    }

    fn with(mut self, name: &'static str, value: Field) -> Self {
        self.fields.push((name, value));
        self
    }

    /// The same in other words: where it is, and what to do.
    fn saying(self, message: String) -> Self {
        Self { message, ..self }
    }

    fn raise(&self, py: Python<'_>) -> PyResult<PyErr> {
        let errors = py.import("kingpost.errors")?;
        let exception = errors.getattr(self.class)?.call1((self.message.as_str(),))?;
        for (name, value) in &self.fields {
            match value {
                Field::Text(text) => exception.setattr(*name, text)?,
                Field::Number(number) => exception.setattr(*name, number)?,
                Field::Witness(w) => {
                    let instance = |i: &Instance| (i.insn.clone(), i.point.clone());
                    let params = w.params.clone();
                    let parts = (
                        instance(&w.source),
                        instance(&w.sink),
                        w.element.clone(),
                        w.through.clone(),
                        params,
                    );
                    exception.setattr(*name, errors.getattr("Witness")?.call_method1("of", parts)?)?;
                }
                Field::Mistakes(all) => exception.setattr(*name, all.clone())?,
            }
        }
        Ok(PyErr::from_value(exception))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| failure.raise(py).unwrap_or_else(|error| error))
    }
}

thread_local! {
    /// What a handler of signals raised while the engine worked on this thread.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Whether a handler of signals wants the work to end. Python calls handlers in its main thread
/// alone; elsewhere it is false.
fn is_interrupted() -> bool {
    let raised = Python::attach(|py| py.check_signals()).err();
    let is_raised = raised.is_some();
    if is_raised {
        RAISED.set(raised);
    }
    is_raised
}

/// The threads of a child of a fork: those of its parent, which work is divided among elsewhere, are
/// not there. None in a process that is no child, and where the system has no threads for it.
fn own_threads() -> Option<Arc<ThreadPool>> {
    static OWN: Mutex<Option<(u64, Arc<ThreadPool>)>> = Mutex::new(None);
    let forks = forks();
    if forks == 0 {
        return None;
    }
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, threads)) = own.as_ref()
        && *of == forks
    {
        return Some(Arc::clone(threads));
    }
    let threads = Arc::new(ThreadPoolBuilder::new().build().ok()?);
    let before = own.replace((forks, Arc::clone(&threads)));
    // those of the parent would be waited for
    std::mem::forget(before);
    Some(threads)
}

/// Runs a piece of the engine without the interpreter's lock; a panic is a bug of ours, with its
/// own exception. Signals are served meanwhile: what their handlers raise ends the work.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Failure> + Send) -> PyResult<T> {
    // what a panic leaves behind is not used again: kernels and schedules change at the end only
    let work = || catch_unwind(AssertUnwindSafe(work));
    let done = py.detach(|| match own_threads() {
        None => interruptible(is_interrupted, work),
        // a thread of these is not the one that Python serves signals in
        Some(threads) => threads.install(work),
    });
    if let Some(raised) = RAISED.take() {
        return Err(raised);
    }
    // one that came since the last question, such as that which ended a compiler
    py.check_signals()?;
    let done = done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Failure::new("InternalError", format!("this is a bug of kingpost, please report it: {text}")))
    });
    Ok(done?)
}

impl From<ParseErrors> for Failure {
    fn from(errors: ParseErrors) -> Self {
        let all = errors.errors().iter();
        let mistakes = all.map(|e| (e.message.clone(), e.help.clone(), e.line, e.column)).collect();
        Self::new("TextError", errors.to_string()).with("mistakes", Field::Mistakes(mistakes))
    }
}

impl From<TransformError> for Failure {
    fn from(error: TransformError) -> Self {
        let class = match &error.cause {
            Refusal::Solver(_) => "SolverError",
            Refusal::Internal(_) => "InternalError",
            Refusal::Unknown { .. }
            | Refusal::EmptySelection { .. }
            | Refusal::Taken { .. }
            | Refusal::Argument(_)
            | Refusal::Arguments(_)
            | Refusal::Unfit(_)
            | Refusal::Undecided(_)
            | Refusal::NotProved(_)
            | Refusal::Malformed(_) => "Refusal",
        };
        let mut failure = Self::new(class, error.to_string());
        failure = failure.with("operation", Field::Text(error.operation));
        if let Some(obligation) = error.cause.obligation() {
            failure = failure.with("obligation", Field::Text(obligation.id().into()));
            failure = failure.with("needed", Field::Text(obligation.says().into()));
        }
        match error.cause.witness() {
            Some(witness) => failure.with("witness", Field::Witness(Box::new(witness.clone()))),
            None => failure,
        }
    }
}

impl From<AutoError> for Failure {
    fn from(error: AutoError) -> Self {
        match error {
            AutoError::Transform(error) => error.into(),
            AutoError::Model(error) => Self::new("InternalError", error.to_string()),
            AutoError::Interp(error) => Self::new("ArgumentError", error.to_string()),
            AutoError::Host(_) | AutoError::None(_) => Self::new("ScheduleError", error.to_string()),
        }
    }
}

impl From<RecipeError> for Failure {
    fn from(error: RecipeError) -> Self {
        let message = error.to_string();
        Self::from(*error.source)
            .saying(message)
            .with("step", Field::Number(error.number))
            .with("kernel_text", Field::Text(error.kernel.to_string()))
    }
}

impl From<ScriptError> for Failure {
    fn from(error: ScriptError) -> Self {
        let message = error.to_string();
        let failure = match error.problem {
            ScriptProblem::Refused(refused) => Self::from(*refused),
            problem @ (ScriptProblem::Hole { .. }
            | ScriptProblem::Choice { .. }
            | ScriptProblem::Handles { .. }) => Self::new("ScheduleError", problem.to_string()),
        };
        failure
            .saying(message)
            .with("line", Field::Number(error.line))
            .with("kernel_text", Field::Text(error.kernel.to_string()))
    }
}

impl From<CodegenError> for Failure {
    fn from(error: CodegenError) -> Self {
        let message = error.to_string();
        if let CodegenError::Refused(refusal) = error {
            Self::new("RaceError", message).with("witness", Field::Witness(Box::new(refusal.witness)))
        } else if let CodegenError::OutOfBounds(outside) = error {
            Self::new("OutsideError", message).with("element", Field::Text(outside.element))
        } else if let CodegenError::Storage(error) = error {
            let failure = Self::new("StorageError", message);
            match *error {
                StorageError::Alive { witness, .. } => failure.with("witness", Field::Witness(witness)),
                StorageError::Unfit(_) | StorageError::Isl(_) => failure,
            }
        } else {
            Self::new("CodegenError", message)
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Runtime(error) => error.into(),
            LoadError::Values(_)
            | LoadError::Size(_)
            | LoadError::Parameters(_)
            | LoadError::Memory { .. }
            | LoadError::Missing(_)
            | LoadError::Misfit { .. } => Self::new("ArgumentError", error.to_string()),
        }
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        let message = error.to_string();
        let (class, argument) = class(&error);
        match argument {
            Some(name) => Self::about(class, name, message),
            None => Self::new(class, message),
        }
    }
}

/// The class of an error of the runtime, and the argument that it is about.
fn class(error: &RuntimeError) -> (&'static str, Option<&str>) {
    match error {
        RuntimeError::MissingArgument { name, .. } => ("MissingArgument", Some(name)),
        RuntimeError::UnknownArgument { name, .. } => ("UnknownArgument", Some(name)),
        RuntimeError::ArgumentType { name, .. } => ("DtypeError", Some(name)),
        RuntimeError::ReadOnly { name, .. } => ("ReadOnlyError", Some(name)),
        RuntimeError::Unreachable { name, .. } => ("DeviceMismatchError", Some(name)),
        RuntimeError::BufferTooSmall { name, .. } => ("ShapeError", Some(name)),
        RuntimeError::Misaligned { name, .. } | RuntimeError::Strides { array: name, .. } => {
            ("LayoutError", Some(name))
        }
        RuntimeError::Aliased { second, .. } => ("AliasError", Some(second)),
        RuntimeError::ParameterRange { name, .. } | RuntimeError::RepeatedArgument { name, .. } => {
            ("ArgumentError", Some(name))
        }
        RuntimeError::BadExtent { .. }
        | RuntimeError::Parameters { .. }
        | RuntimeError::Expression { .. }
        | RuntimeError::Precondition { .. }
        | RuntimeError::GridTooLarge { .. }
        | RuntimeError::ForeignInTurn { .. }
        | RuntimeError::NotCards { .. }
        | RuntimeError::NothingToTime { .. } => ("ArgumentError", None),
        RuntimeError::Untrusted { .. } => ("UntrustedError", None),
        RuntimeError::Unavailable(_) | RuntimeError::UnknownDevice { .. } => ("Unavailable", None),
        RuntimeError::OtherDevice { .. } => ("DeviceMismatchError", None),
        // whoever asks for it raises an exception of its own
        RuntimeError::Interrupted => ("InternalError", None),
        RuntimeError::Compile { .. } | RuntimeError::NoEntry { .. } | RuntimeError::WrongTarget { .. } => {
            ("InternalError", None)
        }
        RuntimeError::MissingFeature { .. }
        | RuntimeError::GroupTooLarge { .. }
        | RuntimeError::GroupAxis { .. }
        | RuntimeError::LocalMemory { .. }
        | RuntimeError::PrivateMemory { .. }
        | RuntimeError::TableType { .. }
        | RuntimeError::Load { .. }
        | RuntimeError::NoStreams { .. }
        | RuntimeError::NotMeasurable { .. }
        | RuntimeError::TransferSize { .. }
        | RuntimeError::Allocation { .. }
        | RuntimeError::Driver { .. }
        | RuntimeError::Forked { .. }
        | RuntimeError::Nccl { .. }
        | RuntimeError::Io { .. }
        | RuntimeError::ToolOutput { .. }
        | RuntimeError::CompilerEnds { .. } => ("DeviceError", None),
    }
}
