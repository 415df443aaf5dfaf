//! Tuning of operator actions: what [`purlin_autotune::tuner`] asks of a case, answered with
//! lowering, code generation and a device.
//!
//! A candidate counts if its result agrees, to [`TOLERANCE`], with an evaluation of the form that
//! shares no code with lowering and code generation: on a small mesh everywhere, and on the
//! measured mesh either at random degrees of freedom (the first candidate that is right) or
//! everywhere with the result of that first one, by a sum on the device.

mod candidates;
mod case;
mod distance;
mod kernel;
pub mod known;
mod listed;
mod local_memory;
mod sample;
mod search;
mod session;
mod similar;
pub mod throughput;
pub mod vectors;

pub use candidates::{CandidatesError, Choice, candidates, candidates_of, factorised, question};
pub use case::{CaseError, CaseMesh, FormCase, numbering};
pub use kernel::{KernelProgram, KernelSession, KernelSubject, Scheduled};
pub use listed::{candidates_in_order, candidates_on_mesh, listed};
pub use local_memory::with_dynamic_local;
pub use search::{
    CostModel, Cut, NoOccupancy, Ranked, SearchBounds, SearchSpace, Standing, Survey, staged_tilings,
    tile_options,
};
pub use session::{CaseInputs, CaseSession};

use crate::kernel_work;
use purlin_autotune::tuner::{Built, Subject};
use purlin_autotune::{Refusal, Stage, Workload};
use purlin_codegen::{Options, Program, Target, generate};
use purlin_forms::CellKernel;
use purlin_ir::Kernel;
use purlin_primitives::Recipe;
use purlin_primitives::lists::Definition;
use purlin_runtime::cuda::nvrtc;
use purlin_runtime::cuda::ptxas::Resources;
use purlin_runtime::{Backend, Cache, Device, Executable, Optimisation, RuntimeError};
use purlin_strategies::{Mapping, StrategySet};
use serde::de::DeserializeSeed;
use std::path::PathBuf;

/// Largest relative error of a result that counts: sums of some hundred products in double
/// precision.
pub const TOLERANCE: f64 = 1e-12;

/// Degrees of freedom that are compared with the reference on the measured mesh.
const SAMPLES: usize = 20;

/// A mapping to try; see [`purlin_autotune::Candidate`].
pub type Candidate = purlin_autotune::Candidate<Mapping>;
/// A trial; see [`purlin_autotune::Record`].
pub type Record = purlin_autotune::Record<Mapping>;
/// The trials in a file; see [`purlin_autotune::Database`].
pub type Database = purlin_autotune::Database<Mapping>;
/// What a database holds; see [`purlin_autotune::Contents`].
pub type Contents = purlin_autotune::Contents<Mapping>;

/// The trials in a file, whose mappings are of the strategies of a set.
///
/// ```
/// use purlin::forms::strategies::strategies;
///
/// let database = purlin::tuning::database_of(strategies(), "no-such-file.jsonl");
/// assert!(database.read()?.records.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn database_of(set: &StrategySet, path: impl Into<PathBuf>) -> Database {
    let set = set.clone();
    Database::read_by(path, move |json| DeserializeSeed::deserialize(&set, json))
}

/// [`Mapping::apply`] as a stage of a trial.
///
/// # Errors
/// As [`Mapping::apply`].
pub fn transform(form: &dyn CellKernel, mapping: &Mapping) -> Result<(Kernel, Recipe), Refusal> {
    mapping.apply(form).map_err(|e| Refusal::new(Stage::Transform, e))
}

/// A program for a target, with the kernel it came from.
///
/// # Errors
/// Which stage refused, and why.
pub fn source(
    form: &dyn CellKernel,
    parameters: &Mapping,
    target: Target,
) -> Result<(Program, Kernel), Refusal> {
    let (kernel, _) = transform(form, parameters)?;
    let program =
        generate(&kernel, target, &Options::default()).map_err(|e| Refusal::new(Stage::Generate, e))?;
    Ok((program, kernel))
}

/// Compiles a program on any thread: the code itself, or for a card, whose owner loads it, the
/// entry of the cache and the compiler's report.
///
/// # Errors
/// What the compiler refuses.
pub fn compile_ahead(
    device: &dyn Device,
    cache: &Cache,
    program: &Program,
) -> Result<(Option<Executable>, Option<Resources>), Refusal> {
    let refused = |e: RuntimeError| Refusal::new(Stage::Compile, e);
    match device.info().backend {
        Backend::Cuda => {
            let object = nvrtc::compile_program(&device.info().arch, program, Optimisation::Full, cache);
            let resources = object.map_err(refused)?.resources;
            Ok((None, resources.into_iter().find(|r| r.entry == program.entry)))
        }
        Backend::OpenCl | Backend::C => Ok((Some(device.compile(program).map_err(refused)?), None)),
    }
}

/// A case on a device.
pub struct CaseSubject<'d> {
    /// The case.
    pub case: FormCase,
    /// The device.
    pub device: &'d dyn Device,
    /// Where compiled code is kept; the device's own.
    pub cache: &'d Cache,
    /// Seed of inputs and samples.
    pub seed: u64,
}

/// A program, compiled or ready to be.
pub struct CaseProgram {
    program: Program,
    /// What computes the inputs that the mapping passes.
    definitions: Vec<Definition>,
    /// None on a card: its compiler has filled the cache, and the thread that owns the card loads
    /// the code.
    executable: Option<Executable>,
}

impl CaseProgram {
    /// The code on `device`.
    fn executable(&self, device: &dyn Device) -> Result<Executable, RuntimeError> {
        self.executable.clone().map_or_else(|| device.compile(&self.program), Ok)
    }
}

impl Subject for CaseSubject<'_> {
    type Mapping = Mapping;
    type Program = CaseProgram;
    type Inputs = CaseInputs;
    type Session<'s>
        = CaseSession<'s>
    where
        Self: 's;

    fn workload(&self) -> &Workload {
        &self.case.workload
    }

    fn build(&self, parameters: &Mapping) -> Result<Built<CaseProgram>, Refusal> {
        let info = self.device.info();
        let target = info.backend.target();
        let form = &self.case.lowered;
        let (kernel, _, definitions) = crate::transform_with_setup(form, parameters)?;
        let program =
            generate(&kernel, target, &Options::default()).map_err(|e| Refusal::new(Stage::Generate, e))?;
        let (executable, resources) = compile_ahead(self.device, self.cache, &program)?;
        let executed_flops =
            self.case.params().ok().and_then(|p| kernel_work(&kernel, &p).ok()).map(|w| w.flops);
        let hash = kernel.content_hash();
        Ok(Built {
            program: CaseProgram { program, definitions, executable },
            kernel: hash,
            resources,
            executed_flops,
        })
    }

    fn prepare(&self) -> Result<CaseInputs, String> {
        CaseInputs::new(&self.case, self.seed)
    }

    fn load(&self, inputs: CaseInputs) -> Result<CaseSession<'_>, String> {
        CaseSession::new(self.device, inputs).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Records as programs of the past wrote them: all are read, and the mapping of each is written
    /// as it stood, so that a trial keeps its key.
    #[test]
    fn databases_of_the_past_are_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/h200");
        for (name, records) in [("study.jsonl", 2524), ("tuned.jsonl", 3271)] {
            let path = folder.join(name);
            let contents = Database::at(&path).read().unwrap();
            assert_eq!((contents.records.len(), contents.damaged.len()), (records, 0), "{name}");
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let record: Record = serde_json::from_str(line).unwrap();
                let mapping = serde_json::to_string(&record.parameters).unwrap();
                assert!(line.contains(&format!("\"parameters\":{mapping},")), "{name}: {mapping}\n{line}");
            }
        }
    }
}
