//! Why a command ends without success, and with which exit code.

use super::json_lines::JsonLinesError;
use super::quote::{Excerpt, shortened};
use super::terminal::{same_length, shown};
use kingpost::analysis::stats::StatsError;
use kingpost::autotune::{DatabaseError, Refusal, Stage};
use kingpost::codegen::CodegenError;
use kingpost::files::is_lack_of_room;
use kingpost::forms::MappingError;
use kingpost::forms::form::FormError;
use kingpost::forms::strategies::{RefusedStep, StrategyError};
use kingpost::ir::text::ParseErrors;
use kingpost::judge::HostError;
use kingpost::runtime::RuntimeError;
use kingpost::transforms::schedule::ScriptProblem;
use kingpost::transforms::{RecipeError, ScriptError};
use kingpost::tuning::CaseError;
use kingpost::{LoadError, OutOfMemory, ProblemError, SetUpError};
use miette::{LabeledSpan, MietteDiagnostic, Report};
use std::path::Path;

/// Why a command ends without success.
#[derive(Debug)]
pub enum Failure {
    /// A step, a kernel or a result was refused.
    Refused(String),
    /// A compiler makes another program of a source than it says.
    Compiler(String),
    /// The user asked for something that is not there or cannot be read.
    Usage(String),
    /// The machine lacks something.
    Missing(String),
    /// It was stopped from outside.
    Interrupted(Signal),
    /// A text that is not well formed.
    Text {
        /// Name of the file.
        name: String,
        /// Its content.
        source: String,
        /// What is wrong with it.
        errors: ParseErrors,
    },
}

/// What stops a command from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// A request to terminate.
    Terminate,
}

impl Failure {
    /// A file that could not be written: no room is a lack of the machine.
    #[must_use]
    pub fn of_write(path: &Path, error: &std::io::Error) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let why =
            folder.map_or_else(|| error.to_string(), |f| format!("there is no folder `{}`", f.display()));
        let message = format!("cannot write `{}`: {why}", path.display());
        match is_lack_of_room(error) {
            true => Self::Missing(format!("{message}; the file is as it was before")),
            false => Self::Usage(message),
        }
    }

    /// The exit code; `kingpost --help` lists them.
    pub fn code(&self) -> u8 {
        match self {
            Self::Refused(_) => 1,
            Self::Usage(_) | Self::Text { .. } => 2,
            Self::Missing(_) => 3,
            Self::Compiler(_) => 4,
            Self::Interrupted(Signal::Interrupt) => 130,
            Self::Interrupted(Signal::Terminate) => 143,
        }
    }

    /// What went wrong, for a record.
    pub fn text(&self) -> String {
        match self {
            Self::Refused(message)
            | Self::Usage(message)
            | Self::Missing(message)
            | Self::Compiler(message) => message.clone(),
            Self::Text { errors, .. } => errors.to_string(),
            Self::Interrupted(Signal::Interrupt) => "stopped by Ctrl-C".into(),
            Self::Interrupted(Signal::Terminate) => "stopped by a request to terminate".into(),
        }
    }

    /// Prints the failure on standard error.
    pub fn print(&self) {
        match self {
            Self::Refused(message)
            | Self::Usage(message)
            | Self::Missing(message)
            | Self::Compiler(message) => {
                eprintln!("error: {}", shown(&shortened(message)));
            }
            Self::Interrupted(_) => eprintln!("error: {}", self.text()),
            Self::Text { name, source, errors } => {
                for error in errors.errors() {
                    let (excerpt, place) = Excerpt::new(&shown(name), &same_length(source), &error.span);
                    let mut diagnostic = MietteDiagnostic::new(shown(&shortened(&error.message)))
                        .with_label(LabeledSpan::underline(place));
                    if let Some(help) = &error.help {
                        diagnostic = diagnostic.with_help(shown(&shortened(help)));
                    }
                    eprintln!("{:?}", Report::new(diagnostic).with_source_code(excerpt));
                }
                let mistakes = match errors.errors().len() {
                    1 => "a mistake".to_owned(),
                    n => format!("{n} mistakes"),
                };
                eprintln!("error: `{}` has {mistakes}, nothing was done", shown(name));
            }
        }
    }
}

impl From<RecipeError> for Failure {
    fn from(error: RecipeError) -> Self {
        let help = "`kingpost steps` with the same arguments prints the kernel that the step met";
        Self::Refused(format!("{error}\n  help: {help}"))
    }
}

impl From<MappingError> for Failure {
    fn from(error: MappingError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<Box<RefusedStep>> for Failure {
    fn from(step: Box<RefusedStep>) -> Self {
        MappingError::from(StrategyError::Step(step)).into()
    }
}

impl From<ScriptError> for Failure {
    fn from(error: ScriptError) -> Self {
        match error.problem {
            ScriptProblem::Refused(_) => {
                let help = "`kingpost steps` with the same arguments prints the kernel that the step met";
                Self::Refused(format!("schedule, {error}\n  help: {help}"))
            }
            ScriptProblem::Hole { ref hole, .. } => {
                Self::Usage(format!("schedule, {error}\n  help: --hole {hole}=VALUE chooses one"))
            }
            ScriptProblem::Choice { .. } | ScriptProblem::Handles { .. } => {
                Self::Usage(format!("schedule, {error}"))
            }
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal.stage {
            Stage::Transform => {
                let help = "`kingpost steps` with the same arguments prints the kernel that the step met";
                Self::Refused(format!("{}\n  help: {help}", refusal.reason))
            }
            Stage::Generate | Stage::Compile | Stage::Launch | Stage::Check | Stage::Hang => {
                Self::Refused(refusal.to_string())
            }
        }
    }
}

impl From<CodegenError> for Failure {
    fn from(error: CodegenError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<StatsError> for Failure {
    fn from(error: StatsError) -> Self {
        match error {
            // values of parameters that do not fit
            StatsError::Setup(_) => Self::Usage(error.to_string()),
            StatsError::DataDependent { .. }
            | StatsError::Unbounded { .. }
            | StatsError::Overflow
            | StatsError::Budget { .. } => Self::Refused(error.to_string()),
        }
    }
}

impl From<RuntimeError> for Failure {
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "whatever else a device refuses ends a command in the same way"
    )]
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Unavailable(reason) => Self::Missing(reason.to_string()),
            RuntimeError::UnknownDevice { .. } => Self::Usage(error.to_string()),
            RuntimeError::Io { ref source, .. } if is_lack_of_room(source) => {
                Self::Missing(error.to_string())
            }
            other => Self::Refused(other.to_string()),
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Runtime(error) => error.into(),
            LoadError::Values(error) => Self::Refused(error.to_string()),
            LoadError::Size(_)
            | LoadError::Memory { .. }
            | LoadError::Missing(_)
            | LoadError::Parameters(_)
            | LoadError::Misfit { .. } => Self::Usage(error.to_string()),
        }
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Codegen(error) => error.into(),
            HostError::Load(error) => error.into(),
        }
    }
}

impl From<SetUpError> for Failure {
    fn from(error: SetUpError) -> Self {
        match error {
            SetUpError::Load(error) => error.into(),
            SetUpError::Codegen(error) => error.into(),
            error @ (SetUpError::NoMap { .. }
            | SetUpError::Overflow(_)
            | SetUpError::Broken(_)
            | SetUpError::Unlike(_)
            | SetUpError::Distance { .. }
            | SetUpError::Bug { .. }) => Self::Refused(error.to_string()),
        }
    }
}

impl From<OutOfMemory> for Failure {
    fn from(error: OutOfMemory) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<FormError> for Failure {
    fn from(error: FormError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<CaseError> for Failure {
    fn from(error: CaseError) -> Self {
        match error {
            CaseError::Problem(error) => error.into(),
            CaseError::Mesh(error) => Self::Usage(error.to_string()),
            CaseError::Stats(error) => error.into(),
        }
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        match &error {
            DatabaseError::Io { source, .. } if is_lack_of_room(source) => Self::Missing(error.to_string()),
            DatabaseError::Io { .. } | DatabaseError::Foreign { .. } | DatabaseError::Json(_) => {
                Self::Usage(error.to_string())
            }
        }
    }
}

impl From<JsonLinesError> for Failure {
    fn from(error: JsonLinesError) -> Self {
        match &error {
            JsonLinesError::Io { cause, .. } if is_lack_of_room(cause) => Self::Missing(error.to_string()),
            JsonLinesError::Io { .. } | JsonLinesError::Line { .. } => Self::Usage(error.to_string()),
        }
    }
}

impl From<ProblemError> for Failure {
    fn from(error: ProblemError) -> Self {
        match error {
            ProblemError::Length { .. } => Self::Refused(error.to_string()),
            ProblemError::Operator(_)
            | ProblemError::Form(_)
            | ProblemError::Numbering(_)
            | ProblemError::Memory(_) => Self::Usage(error.to_string()),
        }
    }
}
