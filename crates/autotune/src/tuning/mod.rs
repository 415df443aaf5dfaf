//! Tuning of operator actions: what [`crate::tuner`] asks of a case, answered with
//! lowering, code generation and a device.
//!
//! A candidate counts if its result agrees, to [`TOLERANCE`], with an evaluation of the form that
//! shares no code with lowering and code generation: on a small mesh everywhere, and on the
//! measured mesh either at random degrees of freedom (the first candidate that is right) or
//! everywhere with the result of that first one, by a sum on the device.

pub mod architecture;
mod candidates;
mod case;
mod distance;
mod kernel;
pub mod known;
mod listed;
mod local_memory;
mod processors;
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
pub use session::{CaseInputs, CaseProgram, CaseSession};

use crate::kernel_work;
use crate::tuner::{Built, Subject};
use crate::{Refusal, Stage, Workload};
use kingpost_codegen::{Options, Program, Target, generate};
use kingpost_forms::CellKernel;
use kingpost_ir::Kernel;
use kingpost_primitives::Recipe;
use kingpost_primitives::lists::Definition;
pub use kingpost_run::judge::TOLERANCE;
use kingpost_runtime::cuda::nvrtc;
use kingpost_runtime::cuda::ptxas::Resources;
use kingpost_runtime::{Backend, Cache, Device, Executable, Optimisation, RuntimeError};
use kingpost_strategies::{Mapping, StrategySet, relowered};
use serde::de::DeserializeSeed;
use std::path::PathBuf;

/// A mapping to try; see [`crate::Candidate`].
pub type Candidate = crate::Candidate<Mapping>;
/// A trial; see [`crate::Record`].
pub type Record = crate::Record<Mapping>;
/// The trials in a file; see [`crate::Database`].
pub type Database = crate::Database<Mapping>;
/// What a database holds; see [`crate::Contents`].
pub type Contents = crate::Contents<Mapping>;

/// The trials in a file, whose mappings are of the strategies of a set.
///
/// ```
/// use kingpost_strategies::strategies;
///
/// let database = kingpost_autotune::tuning::database_of(strategies(), "no-such-file.jsonl");
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

/// As [`transform`], with the kernels that compute what the mapping passes, in the order in which they
/// have to run; most mappings pass nothing.
///
/// # Errors
/// As [`Mapping::apply`].
pub fn transform_with_setup(
    form: &dyn CellKernel,
    mapping: &Mapping,
) -> Result<(Kernel, Recipe, Vec<Definition>), Refusal> {
    let (kernel, recipe) = transform(form, mapping)?;
    let definitions = definitions(form, &recipe)?;
    Ok((kernel, recipe, definitions))
}

/// The kernels that compute what a recipe passes to the kernel of a form.
///
/// # Errors
/// A form that is not lowered as the recipe says.
pub fn definitions(form: &dyn CellKernel, recipe: &Recipe) -> Result<Vec<Definition>, Refusal> {
    let refused = |e: &dyn std::fmt::Display| Refusal::new(Stage::Transform, e.to_string());
    let start = relowered(form, &recipe.lowering).map_err(|e| refused(&e))?;
    let kernel = start.as_ref().map_or_else(|| form.kernel(), |form| form.kernel());
    recipe.definitions(kernel).map_err(|e| refused(&e))
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
        let (kernel, _, definitions) = crate::tuning::transform_with_setup(form, parameters)?;
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
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/h200");
        for (name, records) in [("study.jsonl", 2524), ("tuned.jsonl", 3523)] {
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
