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
pub mod known;
mod sample;
mod session;
mod similar;

pub use candidates::{CandidatesError, Choice, candidates, factorised, table_bytes};
pub use case::{CaseError, CaseMesh, FormCase};
pub use session::{CaseInputs, CaseSession};

use purlin_autotune::tuner::{Built, Subject};
use purlin_autotune::{Mapping, Refusal, Stage, TilingParameters, Workload};
use purlin_codegen::{Options, Program, Target, generate};
use purlin_forms::program::CellKernel;
use purlin_forms::strategies::{
    FactorisedCells, FactorisedPlanes, MultiLevelTiling, PointTiles, SingleCell, StagedCells, StrategyError,
    SummedCells, factorised_cells, factorised_planes, multi_level_tiling, point_tiles,
    single_cell_per_work_item, staged_cells, summed_cells,
};
use purlin_ir::Kernel;
use purlin_runtime::cuda::nvrtc;
use purlin_runtime::cuda::ptxas::Resources;
use purlin_runtime::{Cache, Device, Executable, Optimisation, RuntimeError};
use purlin_transforms::Recipe;

/// Largest relative error of a result that counts: sums of some hundred products in double
/// precision.
pub const TOLERANCE: f64 = 1e-12;

/// Degrees of freedom that are compared with the reference on the measured mesh.
const SAMPLES: usize = 20;

/// Maps a form, or a kernel whose tags say its roles; returns the kernel with the recipe that made
/// it.
///
/// # Errors
/// A kernel without the roles that the mapping needs, the parameter that makes no sense, or the
/// step that was refused.
pub fn transform(form: &impl CellKernel, mapping: &Mapping) -> Result<(Kernel, Recipe), Refusal> {
    let mapped = match mapping {
        Mapping::Sequential => Ok((form.kernel().clone(), Recipe::default())),
        Mapping::SingleCell { cells } => single_cell(form, *cells, false),
        Mapping::ConstantCells { cells } => single_cell(form, *cells, true),
        Mapping::PointTiles { cells, sums } => {
            let strategy =
                PointTiles { work_group: signed(*cells), sums: signed(*sums), constant_tables: true };
            form.program()
                .map_err(StrategyError::from)
                .and_then(|p| point_tiles(form.kernel(), &p, &strategy))
        }
        Mapping::StagedCells { cells, constant_tables } => {
            let strategy = StagedCells { work_group: signed(*cells), constant_tables: *constant_tables };
            form.program()
                .map_err(StrategyError::from)
                .and_then(|p| staged_cells(form.kernel(), &p, &strategy))
        }
        Mapping::SummedCells { cells, constant_tables } => {
            let strategy = SummedCells { work_group: signed(*cells), constant_tables: *constant_tables };
            form.cell_loop()
                .map_err(StrategyError::from)
                .and_then(|cells| summed_cells(form.kernel(), &cells, &strategy))
        }
        Mapping::FactorisedCells { cells } => {
            let strategy = FactorisedCells { work_group: signed(*cells) };
            form.cell_loop()
                .map_err(StrategyError::from)
                .and_then(|cells| factorised_cells(form.kernel(), &cells, &strategy))
        }
        Mapping::FactorisedPlanes { cells } => {
            let strategy = FactorisedPlanes { cells: signed(*cells) };
            form.cell_loop()
                .map_err(StrategyError::from)
                .and_then(|cells| factorised_planes(form.kernel(), &cells, &strategy))
        }
        Mapping::Tiling(p) => tiled(form, p, false),
        Mapping::StagedTiling(p) => tiled(form, p, true),
        Mapping::Schedule { .. } => {
            return Err(Refusal::new(
                Stage::Transform,
                "values of holes belong to a schedule; give the file that ends with it, and --hole NAME=VALUE",
            ));
        }
    };
    mapped.map_err(|e| Refusal::new(Stage::Transform, e))
}

type Mapped = Result<(Kernel, Recipe), StrategyError>;

fn single_cell(form: &impl CellKernel, cells: u64, constant_tables: bool) -> Mapped {
    let strategy = SingleCell { work_group: signed(cells), constant_tables };
    single_cell_per_work_item(form.kernel(), &*form.cell_loop()?, &strategy)
}

fn tiled(form: &impl CellKernel, p: &TilingParameters, staged: bool) -> Mapped {
    let strategy = MultiLevelTiling {
        cells: signed(p.cells),
        work_items_per_cell: signed(p.work_items_per_cell),
        quad_tile: signed(p.quad_tile),
        eval_rows: signed(p.eval_rows),
        eval_cols: p.eval_cols.iter().map(|c| signed(*c)).collect(),
        quad_rows: signed(p.quad_rows),
        quad_cols: signed(p.quad_cols),
        staged,
    };
    multi_level_tiling(form.kernel(), &*form.program()?, &strategy)
}

/// A number that no strategy takes stays one that no strategy takes.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A program for a target, with the hash of the kernel it came from.
///
/// # Errors
/// Which stage refused, and why.
pub fn source(
    form: &impl CellKernel,
    parameters: &Mapping,
    target: Target,
) -> Result<(Program, String), Refusal> {
    let (kernel, _) = transform(form, parameters)?;
    let program =
        generate(&kernel, target, &Options::default()).map_err(|e| Refusal::new(Stage::Generate, e))?;
    Ok((program, kernel.content_hash()))
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
    match device.info().backend.target() {
        Target::Cuda => {
            let object = nvrtc::compile_program(&device.info().arch, program, Optimisation::Full, cache);
            let resources = object.map_err(refused)?.resources;
            Ok((None, resources.into_iter().find(|r| r.entry == program.entry)))
        }
        Target::OpenCl | Target::C => Ok((Some(device.compile(program).map_err(refused)?), None)),
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
        let (program, kernel) = source(&self.case.lowered, parameters, target)?;
        let (executable, resources) = compile_ahead(self.device, self.cache, &program)?;
        Ok(Built { program: CaseProgram { program, executable }, kernel, resources })
    }

    fn prepare(&self) -> Result<CaseInputs, String> {
        CaseInputs::new(&self.case, self.seed)
    }

    fn load(&self, inputs: CaseInputs) -> Result<CaseSession<'_>, String> {
        CaseSession::new(self.device, inputs).map_err(|e| e.to_string())
    }
}
