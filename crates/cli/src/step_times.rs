//! Times of the kernel after each step of a recipe, each compared first.

use super::failure::Failure;
use super::file_run::reference;
use super::imported::imported_inputs;
use super::inputs::{Inputs, Wanted, inputs};
use super::progress::Progress;
use super::run_args::{TrustArg, open_device};
use super::source::Source;
use super::table::seconds;
use super::values::ParamArg;
use clap::Args;
use kingpost::codegen::{Options, generate};
use kingpost::forms::CellKernel;
use kingpost::interp::Memory;
use kingpost::ir::Kernel;
use kingpost::judge::{Expected, results, with_tables};
use kingpost::runtime::{Device, TimingOptions};
use kingpost::transforms::{Recipe, Step};
use kingpost::{Loaded, Random, laid_out, set_up_with};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Whether and where each step is timed.
#[derive(Args)]
pub struct TimeArgs {
    /// Run, check and time the kernel after each step, and print the gain
    #[arg(long)]
    pub time: bool,
    /// Where to run: c, opencl, cuda … [default: opencl if there is one, else c]
    #[arg(long, requires = "time")]
    device: Option<String>,
    /// Value of a parameter of a file's kernel; repeat it for each. With them the conflicts over
    /// banks of local memory are counted after each step
    #[arg(short, long, value_name = "NAME=VALUE")]
    param: Vec<ParamArg>,
    /// JSON object of argument values for a file's kernel, instead of random ones
    #[arg(long, value_name = "FILE.json", requires = "time")]
    values: Option<PathBuf>,
    /// Divisions of each side of the unit mesh of a form
    #[arg(long, value_name = "N", requires = "time", conflicts_with = "mesh")]
    cells: Option<usize>,
    /// Gmsh file to run a form on
    #[arg(long, value_name = "FILE.msh", requires = "time")]
    mesh: Option<PathBuf>,
    /// Seed of the inputs [default: from the clock]
    #[arg(long, requires = "time")]
    seed: Option<u64>,
    #[command(flatten)]
    trust: TrustArg,
}

/// Few runs, as a step may be slow by orders of magnitude before loops are parallel.
const OPTIONS: TimingOptions = TimingOptions { warm_up: 1, min_runs: 3, min_seconds: 0.05, max_runs: 2_000 };

/// Divisions of the unit mesh of a form, where nothing is said: the kernel before any step runs in
/// seconds.
const DIVISIONS: usize = 4;

impl TimeArgs {
    /// The parameters that are given.
    pub fn given(&self) -> Result<BTreeMap<String, i64>, Failure> {
        ParamArg::collect(&self.param)
    }
}

/// The launches of a recipe's kernels on the same inputs.
pub struct StepTimes {
    device: Box<dyn Device>,
    plain: Kernel,
    memory: Memory,
    expected: Expected,
    seed: u64,
    options: Options,
    first_s: Option<f64>,
    last_s: Option<f64>,
}

impl StepTimes {
    /// Inputs of the kernel before any step, with the parameters that the steps have `fixed`, and what
    /// it makes of them.
    pub fn new(
        args: &TimeArgs,
        fixed: BTreeMap<String, i64>,
        source: &Source,
        form: &dyn CellKernel,
    ) -> Result<Self, Failure> {
        let plain = form.kernel().clone();
        let seed = args.seed.unwrap_or_else(Random::fresh_seed);
        let cells = args.cells.or_else(|| matches!(source, Source::Form(_)).then_some(DIVISIONS));
        let (mesh, values) = (args.mesh.as_deref(), args.values.as_deref());
        let cells = cells.filter(|_| mesh.is_none());
        let wanted = Wanted { cells, mesh, order: None, param: &args.param, fixed, values };
        let of = match source {
            Source::File(file) => file.form.as_ref(),
            Source::Form(_) => None,
        };
        let Inputs { memory, .. } = match of {
            Some(of) => imported_inputs(&wanted, of, seed)?,
            None => inputs(&wanted, &plain, seed)?,
        };
        let (expected, why) = reference(&wanted, &plain, &memory, of.is_some(), &Progress::new())?;
        let expected = expected.ok_or_else(|| Failure::Usage(why.unwrap_or_default()))?;
        let device = open_device(args.device.as_deref())?;
        let options = Options::default().with_trust(args.trust.trust);
        Ok(Self { device, plain, memory, expected, seed, options, first_s: None, last_s: None })
    }

    /// Where it runs.
    pub fn device(&self) -> String {
        let info = self.device.info();
        format!("{} ({}), seed {}", info.name, info.selector(), self.seed)
    }

    /// The time of the kernel after these steps, and how many times as fast it is as the one that
    /// was timed before it and as the first; why it has no code, if it has none.
    ///
    /// # Errors
    /// A result that is off, a device that fails.
    pub fn line(&mut self, steps: &[Step], kernel: &Kernel) -> Result<String, Failure> {
        let program = match generate(kernel, self.device.info().backend.target(), &self.options) {
            Ok(program) => program,
            Err(e) => return Ok(format!("no code: {e}")),
        };
        let mut memory = with_tables(&self.plain, kernel, &self.memory).into_owned();
        let definitions = Recipe::new(steps.iter().cloned()).definitions(&self.plain)?;
        set_up_with(&*self.device, &definitions, &mut memory, &self.options)?;
        let loaded = Loaded::new(&*self.device, &program, &laid_out(kernel, &memory))?;
        self.expected.poison(&loaded)?;
        loaded.launch()?;
        let mut comparison = self.expected.compare(&results(kernel, &loaded, &self.memory)?);
        if !comparison.is_right() {
            self.expected.excuse(&self.plain, &self.memory, &mut comparison);
        }
        if let Some(fault) = comparison.fault(&self.plain, &self.memory) {
            let step = steps.last().map(|s| format!("after `{s}`: ")).unwrap_or_default();
            return Err(Failure::Refused(format!("{step}{fault}; seed {}", self.seed)));
        }
        let timing = loaded.time(&OPTIONS)?;
        let time = timing.median_s;
        let first = *self.first_s.get_or_insert(time);
        let before = self.last_s.replace(time);
        let gain = before.map_or_else(String::new, |before| {
            format!(", {:.2} times as fast as before, {:.2} times as at first", before / time, first / time)
        });
        Ok(format!("{}{gain} (median of {}, least {})", seconds(time), timing.runs, seconds(timing.min_s)))
    }
}
