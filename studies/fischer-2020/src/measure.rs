//! Running, checking and timing the action of a problem.

use crate::lattice::Lattice;
use crate::record::{Record, StoredInputs};
use crate::scatter::{Applied, Scatter};
use crate::vectors::VectorsError;
use kingpost::autotune::Refusal;
use kingpost::codegen::Options;
use kingpost::forms::element::CellShape;
use kingpost::forms::form::FormError;
use kingpost::forms::import::Imported;
use kingpost::forms::lowering::{LoweredKernel, LoweringOptions, TabulatedOptions, tabulate};
use kingpost::forms::numbering::NumberingOrder;
use kingpost::forms::quadrature::gauss_lobatto;
use kingpost::forms::tabulated::TabulatedError;
use kingpost::interp::{InterpError, Memory, interpret};
use kingpost::ir::Kernel;
use kingpost::kernels::BakeOff;
use kingpost::runtime::{Device, Executable, RuntimeError, Timing, TimingOptions, download_values};
use kingpost::solve::SolveError;
use kingpost::transforms::lists::Definition;
use kingpost::tuning::known::{Known, Sought, first, known, mapped};
use kingpost::{Mapping, Random, SetUpError, definitions, set_up};

/// Why an action was not timed.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// Maps that make no pattern.
    #[error(transparent)]
    Pattern(#[from] kingpost::forms::sparse::PatternError),
    /// The form has no tables.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The form cannot be imported.
    #[error(transparent)]
    Tabulated(#[from] TabulatedError),
    /// The mapping is refused.
    #[error("{0}")]
    Mapping(Refusal),
    /// It does not fit the device.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// Inputs could not be computed.
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    /// The device failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The interpreter failed.
    #[error(transparent)]
    Interpreter(#[from] InterpError),
    /// The kernel is another than the study knows.
    #[error("bug of the study: {0}")]
    Arguments(String),
    /// The kernels on vectors cannot be made.
    #[error(transparent)]
    Vectors(#[from] VectorsError),
    /// Conjugate gradients would end before the last iteration.
    #[error("{free} unknowns are too few for {iterations} iterations, needed {needed}")]
    TooFew {
        /// Unknowns whose values are sought.
        free: usize,
        /// Iterations.
        iterations: usize,
        /// Fewest unknowns.
        needed: usize,
    },
    /// The result is off.
    #[error("{what} is off by {error:.1e}, needed {needed:.0e}")]
    Wrong {
        /// What was compared.
        what: &'static str,
        /// By how much.
        error: f64,
        /// Largest that is right.
        needed: f64,
    },
}

/// Largest relative error of results: up to a billion sums of some hundred products.
const TOLERANCE: f64 = 1e-10;
/// The same on eight cells.
const ACTION_TOLERANCE: f64 = 1e-12;

/// A problem of a degree on a device, compiled and compared with the interpreter.
pub struct Action<'d> {
    device: &'d dyn Device,
    problem: BakeOff,
    degree: usize,
    /// With an assembled result.
    assembled: Imported,
    /// With the result that cells add to as the scatter says.
    form: Imported,
    mapping: Mapping,
    scatter: Scatter,
    executable: Executable,
    /// What computes the inputs that the mapping stores.
    definitions: Vec<Definition>,
    source: String,
    error: f64,
}

impl<'d> Action<'d> {
    /// Compiles the action with a mapping, or else the default one, and compares it with the
    /// interpreter on eight cells with random data.
    ///
    /// # Errors
    /// A mapping that is refused, code that the device refuses, a wrong result.
    pub fn new(
        device: &'d dyn Device,
        problem: BakeOff,
        degree: usize,
        (mapping, scatter): (Option<Mapping>, Scatter),
        seed: u64,
    ) -> Result<Self, MeasureError> {
        let name = format!("{problem}_q{degree}");
        let tabulated =
            tabulate(&problem.action_on(CellShape::Hexahedron, degree), &LoweringOptions::new(name))?;
        let assembled = Imported::new(tabulated.clone(), &TabulatedOptions::default())?;
        let options = TabulatedOptions { vector: scatter.vector(), ..TabulatedOptions::default() };
        let form = Imported::new(tabulated, &options)?;
        let kernel = &form.kernels[0];
        let attempt = |k: &Known| mapped(kernel, &k.mapping, device.info(), &Options::default());
        let (mapping, (_, recipe, program)) = match mapping {
            Some(mapping) => {
                let done = mapped(kernel, &mapping, device.info(), &Options::default());
                (mapping, done.map_err(MeasureError::Mapping)?)
            }
            None => {
                // what is known is known of assembled vectors
                let sought = Sought { case: None, dim: 3 };
                let all = known(&assembled.kernels[0], sought, device.info(), &[]);
                let (known, done) = first(all, attempt).map_err(MeasureError::Mapping)?;
                (known.mapping, done)
            }
        };
        let definitions = definitions(kernel, &recipe).map_err(MeasureError::Mapping)?;
        let source = blake3::hash(program.source.as_bytes()).to_hex().to_string();
        let executable = device.compile(&program)?;
        let mut random = Random::new(seed);
        let inputs = assembled.unit_inputs(2, NumberingOrder::FirstTouch, &mut || random.number())?;
        let mut memory = assembled.bind(0, &inputs.of(0))?;
        let mut this = Self {
            device,
            problem,
            degree,
            assembled,
            form,
            mapping,
            scatter,
            executable,
            definitions,
            source,
            error: 0.0,
        };
        let applied = Applied::new(&this, memory.clone())?;
        applied.run(device)?;
        let found: Vec<f64> = download_values(device, &applied.y)?;
        interpret(this.kernel(), &mut memory)?;
        let expected = memory.f64s("y").unwrap_or_default();
        let largest = expected.iter().fold(0.0, |most: f64, y| most.max(y.abs()));
        let apart = expected.iter().zip(&found).map(|(a, b)| (a - b).abs());
        let apart = apart.map(|e| if e.is_nan() { f64::INFINITY } else { e });
        let error = apart.fold(0.0, f64::max) / largest;
        if error >= ACTION_TOLERANCE {
            let (what, needed) = ("the action on eight cells", ACTION_TOLERANCE);
            return Err(MeasureError::Wrong { what, error, needed });
        }
        drop(applied);
        this.error = error;
        Ok(this)
    }

    /// Times the action on a lattice, after comparing integrals over the cube: with `x` the first
    /// coordinate, mass and stiffness are known of `x` and 1.
    ///
    /// # Errors
    /// A device without room for it, a wrong result.
    pub fn measure(&self, divisions: usize, options: &TimingOptions) -> Result<Record, MeasureError> {
        let lattice = Lattice { divisions, degree: self.degree, given_boundary: false };
        let memory: Memory = lattice.memory(self.kernel()).map_err(MeasureError::Arguments)?;
        let x = lattice.positions(&gauss_lobatto(self.degree + 1).0);
        let memory = memory.value("u", x.clone()).value("y", vec![0.0; x.len()]);
        let applied = Applied::new(self, memory)?;
        applied.run(self.device)?;
        let y: Vec<f64> = download_values(self.device, &applied.y)?;
        let integral_error = self.integral_error(&x, &y);
        if integral_error >= TOLERANCE || integral_error.is_nan() {
            let (what, error) = ("an integral over the cube", integral_error);
            return Err(MeasureError::Wrong { what, error, needed: TOLERANCE });
        }
        drop((x, y));
        let timing = Timing::sample(options, || applied.run(self.device))?;
        let setup = applied.setup;
        let record = self.record(lattice, &timing, applied.launches());
        Ok(Record { integral_error: Some(integral_error), setup, ..record })
    }

    /// Computes what the mapping stores, if it stores anything.
    pub(crate) fn set_up(&self, memory: &mut Memory) -> Result<Option<StoredInputs>, MeasureError> {
        let setup = set_up(self.device, &self.definitions, memory)?;
        let stored = StoredInputs { bytes: setup.bytes, seconds: setup.seconds, kernel_s: setup.kernel_s };
        Ok((setup.inputs > 0).then_some(stored))
    }

    /// A record of what was timed, without what was compared beside the action.
    pub(crate) fn record(&self, lattice: Lattice, timing: &Timing, launches: usize) -> Record {
        let info = self.device.info();
        let resources = self.executable.resources().map(ToString::to_string);
        Record {
            problem: self.problem.to_string(),
            degree: self.degree,
            divisions: lattice.divisions,
            unknowns: lattice.unknowns(),
            device: info.name.clone(),
            driver: info.driver.clone(),
            clock_mhz: info.clock_mhz,
            mapping: self.mapping.clone(),
            scatter: self.scatter,
            launches: (launches > 1).then_some(launches),
            source: self.source.clone(),
            resources,
            median_s: timing.median_s,
            min_s: timing.min_s,
            max_s: timing.max_s,
            runs: timing.runs,
            error: self.error,
            integral_error: None,
            solve: None,
            setup: None,
        }
    }

    /// Cells along each axis, as conjugate gradients take them: with mass matrices all values are
    /// sought, with others those at the boundary are given.
    pub(crate) fn lattice(&self, divisions: usize) -> Lattice {
        let given_boundary = !matches!(self.problem, BakeOff::Bp1 | BakeOff::Bp2);
        Lattice { divisions, degree: self.degree, given_boundary }
    }

    /// Number of degrees of freedom on a lattice.
    #[must_use]
    pub fn unknowns(&self, divisions: usize) -> usize {
        self.lattice(divisions).unknowns()
    }

    /// The action with an assembled result.
    pub(crate) fn kernel(&self) -> &Kernel {
        &self.assembled.kernels[0].kernel
    }

    pub(crate) fn lowered(&self) -> &LoweredKernel {
        &self.form.kernels[0]
    }

    pub(crate) fn device(&self) -> &'d dyn Device {
        self.device
    }

    pub(crate) fn scatter(&self) -> Scatter {
        self.scatter
    }

    pub(crate) fn executable(&self) -> &Executable {
        &self.executable
    }

    pub(crate) fn error(&self) -> f64 {
        self.error
    }

    /// By how much `1·y` and `x·y` are off where `y` is the action on `x`.
    fn integral_error(&self, x: &[f64], y: &[f64]) -> f64 {
        if y.iter().any(|y| y.is_nan()) {
            return f64::NAN;
        }
        let total: f64 = y.iter().sum();
        let with_x: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
        match self.problem {
            // integrals of x and x^2
            BakeOff::Bp1 | BakeOff::Bp2 => f64::max((2.0 * total - 1.0).abs(), (3.0 * with_x - 1.0).abs()),
            BakeOff::Bp3 | BakeOff::Bp4 => f64::max(total.abs(), (with_x - 1.0).abs()),
            // two points are not exact on cells that are no boxes
            BakeOff::Bp5 | BakeOff::Bp6 if self.degree == 1 => total.abs(),
            BakeOff::Bp5 | BakeOff::Bp6 => f64::max(total.abs(), (with_x - 1.0).abs()),
        }
    }
}
