//! What `run` is asked, and what it does of forms and of files alike.

use super::arrays::Arrays;
use super::failure::Failure;
use super::inputs::InputArgs;
use super::out;
use super::progress::Progress;
use super::source::SourceArgs;
use super::table::facts;
use super::transform::{TransformArgs, Transformed};
use clap::Args;
use kingpost::analysis::Analysis;
use kingpost::codegen::{Options, Program};
use kingpost::interp::{LaunchReport, Memory};
use kingpost::ir::Kernel;
use kingpost::runtime::{Backend, Device, devices, open};
use kingpost::tuning::known::DATABASE;
use kingpost::{LoadError, Loaded, Random, laid_out};
use std::path::PathBuf;

/// Compile, run and check a form's action or a loop program, and place it on the device's roofline
///
/// A form is run on pseudo-random inputs and compared with an evaluation that shares no code with
/// lowering and code generation; a loop program is compared with the interpreter, or where it is
/// too large for that with the kernel as it is written, in C, element by
/// element. Results are poisoned before the run; any nan equals any nan. A relative error above
/// 1e-12 ends with exit code 1, if other roundings of the operations do not explain it.
#[derive(Args, Clone)]
#[command(after_help = "\
Examples:
  kingpost run hyperelasticity --dim 3 --degree 2 --cells 4      6 * 4^3 tetrahedra
  kingpost run laplace --degree 4 --mesh meshes/bracket.msh --save-dir out
  kingpost run laplace --device cuda                             on the first CUDA card
  kingpost run axpy.kingpost --param n=1000 --device c
  kingpost run axpy.kingpost --param n=1000 --save-arrays out      out/y.npy, for NumPy
  kingpost run poisson.json --cells 16                           a form of UFL, on a unit mesh
  kingpost run poisson.json --mesh meshes/bracket.msh            on a mesh, subdomains by its tags
  kingpost run laplace --mesh meshes/bracket.msh --check         and the assumptions, on real maps

Compilers may contract a*b + c to one rounding, unless --no-contraction is given. A wrong result is
compiled again without contraction and without optimisation. The message says whether contraction
explains it; exit code 4 says that the compiler is at fault, with the source to report.

A kernel that was lowered from a form runs on a unit mesh that has the given sizes, or on that of
--cells or --mesh.

Without --strategy, --mapping or --recipe a form takes the best mapping that is known: of
`kingpost tune` on this device (--db), of those measured on its architecture, or the one that the
cost model ranks first.

The rooflines: the true one is min(memory bandwidth * FLOP/byte, FP64 rate); the one with local
tables also charges every read of the reference matrices to local memory, where the device has any.
Both ceilings are measured on the device. The true one is for the operations that are executed;
next to it stands that for the kernel as it is written. What is above 100 % says why: data that
stay in caches, matrix instructions, operations that a mapping saves.")]
pub struct RunArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub transform: TransformArgs,
    #[command(flatten)]
    pub inputs: InputArgs,
    /// The database of `kingpost tune`, whose best mapping for the device is the default
    #[arg(long, value_name = "FILE", default_value = DATABASE)]
    pub db: PathBuf,
    /// Where to run: c, opencl, opencl:1, cuda, cuda:0 … [default: opencl if there is one, else c]
    #[arg(long)]
    pub device: Option<String>,
    /// Seed of the inputs [default: from the clock; it is printed]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Write the generated source, the recipe, the kernel's text, the roofline and a report there, of a
    /// form of several kernels in a folder for each
    #[arg(long, value_name = "DIR")]
    pub save_dir: Option<PathBuf>,
    /// Write each result there as NAME.npy (NumPy), row by row, of a form of several kernels in a folder
    /// for each; what nothing writes holds nan or -1
    #[arg(long, value_name = "DIR")]
    pub save_arrays: Option<PathBuf>,
    /// With --save-arrays: also write what the kernel was given, as DIR/inputs/NAME.npy
    #[arg(long, requires = "save_arrays")]
    pub save_inputs: bool,
    /// Only check: no timing, no roofline
    #[arg(long)]
    pub no_time: bool,
    /// Round each operation: no compiler may compute a*b + c with one rounding (-ffp-contract=off,
    /// --fmad=false,
    /// #pragma OPENCL FP_CONTRACT OFF)
    #[arg(long)]
    pub no_contraction: bool,
    /// Before the launch, check what is assumed of parameters and maps, and that no map leads
    /// outside an array
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub trust: TrustArg,
}

/// Whether code of others may run.
#[derive(Args, Clone)]
pub struct TrustArg {
    /// Compile and run code of callees that the kernel, the recipe or the schedule brings along, with
    /// your rights; read it first (`kingpost print`). Callees that Kingpost ships need no trust
    #[arg(long)]
    pub trust: bool,
}

/// A result further from its reference than this fails: sums of at most some hundred products in
/// double precision, relative to the result's size.
pub const TOLERANCE: f64 = 1e-12;

impl RunArgs {
    /// Opens the chosen device.
    pub fn open(&self) -> Result<Box<dyn Device>, Failure> {
        open_device(self.device.as_deref())
    }

    /// How code is generated.
    pub fn options(&self) -> Options {
        Options::default().with_contraction(!self.no_contraction).with_trust(self.trust.trust)
    }

    /// The callee whose code nobody has allowed to run, where the values are to be checked: nothing else
    /// is done then.
    pub fn checks_alone<'p>(&self, program: &'p Program) -> Option<&'p str> {
        program.untrusted.first().filter(|_| self.check).map(String::as_str)
    }

    /// The same for one of several kernels, whose files go to folders of its name.
    #[must_use]
    pub fn of_kernel(&self, name: &str) -> Self {
        let within = |dir: &Option<PathBuf>| dir.as_ref().map(|dir| dir.join(name));
        Self { save_dir: within(&self.save_dir), save_arrays: within(&self.save_arrays), ..self.clone() }
    }

    /// Where arrays go, if they are wanted.
    pub fn arrays(&self) -> Result<Option<Arrays>, Failure> {
        self.save_arrays.as_deref().map(|dir| Arrays::new(dir, self.save_inputs)).transpose()
    }

    /// The chosen seed, or a fresh one.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(Random::fresh_seed)
    }
}

/// Checks values by the interpreter, and compiles and runs nothing.
pub fn check_alone(
    transformed: &Transformed,
    callee: &str,
    memory: &Memory,
    progress: Progress,
) -> Result<(), Failure> {
    let kernel = &transformed.kernel;
    progress.stage("checking");
    let report = Analysis::of(kernel).check_launch(memory).map_err(LoadError::from)?;
    drop(progress);
    out(&facts([
        ("kernel", format!("{}, {}", kernel.name, transformed.name)),
        ("checked", report.to_string()),
        ("run", format!("not run: code of the callee `{callee}` is run with --trust")),
    ]))
}

/// The program in memory, and what a check of the values found if there was one.
pub fn load<'d>(
    args: &RunArgs,
    device: &'d dyn Device,
    kernel: &Kernel,
    program: &Program,
    memory: &Memory,
) -> Result<(Loaded<'d>, Option<LaunchReport>), Failure> {
    if !args.check {
        return Ok((Loaded::new(device, program, &laid_out(kernel, memory))?, None));
    }
    let (loaded, report) = Loaded::checked(device, kernel, program, memory)?;
    Ok((loaded, Some(report)))
}

/// Opens the named device, or the first OpenCL device that computes in double precision, or the
/// host.
pub fn open_device(name: Option<&str>) -> Result<Box<dyn Device>, Failure> {
    if let Some(name) = name {
        return Ok(open(name)?);
    }
    let found = devices().into_iter().filter_map(|e| e.device.ok());
    let opencl = found.into_iter().find(|d| d.backend == Backend::OpenCl && d.fp64);
    Ok(open(&opencl.map_or_else(|| "c".to_owned(), |d| d.selector()))?)
}
