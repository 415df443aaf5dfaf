//! A case in the memory of its device.

use super::distance::Distance;
use super::sample::Sample;
use super::{FormCase, TOLERANCE};
use crate::tuner::Session;
use crate::{Errors, Refusal, Setup, Stage};
use kingpost_codegen::Program;
use kingpost_interp::Memory;
use kingpost_primitives::lists::Definition;
use kingpost_run::{LoadError, Loaded, RelativeError, SetUp, set_up};
use kingpost_runtime::{Buffer, Device, Executable, RuntimeError, Timing, TimingOptions};

/// Degrees of freedom that are compared with the reference on the measured mesh.
const SAMPLES: usize = 20;

/// A program, compiled or ready to be.
pub struct CaseProgram {
    pub(super) program: Program,
    /// What computes the inputs that the mapping passes.
    pub(super) definitions: Vec<Definition>,
    /// None on a card: its compiler has filled the cache, and the thread that owns the card loads
    /// the code.
    pub(super) executable: Option<Executable>,
}

impl CaseProgram {
    /// The code on `device`.
    fn executable(&self, device: &dyn Device) -> Result<Executable, RuntimeError> {
        self.executable.clone().map_or_else(|| device.compile(&self.program), Ok)
    }
}

/// Inputs and reference values of a case, in the memory of the host.
pub struct CaseInputs {
    /// Name of the result.
    output: String,
    small: Memory,
    /// The reference on the small mesh.
    expected: Vec<f64>,
    measured: Memory,
    sample: Sample,
}

impl CaseInputs {
    pub(super) fn new(case: &FormCase, seed: u64) -> Result<Self, String> {
        let small = case.small_problem(seed)?;
        let expected = small.reference().map_err(|e| e.to_string())?;
        let measured = case.problem_to_measure(seed.wrapping_add(1))?;
        let sample = Sample::draw(&measured, SAMPLES, seed).map_err(|e| e.to_string())?;
        let output = small.output().to_owned();
        Ok(Self { output, small: small.memory, expected, measured: measured.memory, sample })
    }
}

/// A case on a device: both meshes, and the result of the first candidate that was right.
pub struct CaseSession<'d> {
    device: &'d dyn Device,
    inputs: CaseInputs,
    distance: Distance<'d>,
    small: Option<Loaded<'d>>,
    measured: Option<Loaded<'d>>,
    reference: Option<Buffer>,
    /// Of the candidate that was checked last.
    setup: Option<Setup>,
}

impl<'d> CaseSession<'d> {
    pub(super) fn new(device: &'d dyn Device, inputs: CaseInputs) -> Result<Self, String> {
        let distance = Distance::new(device)?;
        Ok(Self { device, inputs, distance, small: None, measured: None, reference: None, setup: None })
    }

    /// Largest error on the small mesh, everywhere.
    fn check_small(&mut self, executable: &Executable) -> Result<f64, LoadError> {
        let loaded = place(&mut self.small, self.device, executable, &self.inputs.small)?;
        run(loaded, &self.inputs.output)?;
        let found = loaded.f64s(&self.inputs.output)?;
        let error = RelativeError::between(&found, &self.inputs.expected).max;
        Ok(if found.len() == self.inputs.expected.len() { error } else { f64::NAN })
    }

    /// Error on the measured mesh, and the result if nothing was there to compare the whole of it
    /// with.
    fn check_measured(&mut self, executable: &Executable) -> Result<(f64, Option<Buffer>), LoadError> {
        let output = &self.inputs.output;
        let loaded = place(&mut self.measured, self.device, executable, &self.inputs.measured)?;
        run(loaded, output)?;
        let found = loaded.buffer(output)?;
        if let Some(reference) = &self.reference {
            return Ok((self.distance.relative(found, reference)?, None));
        }
        let copy = self.device.allocate(found.bytes())?;
        self.device.copy(found, &copy)?;
        Ok((self.inputs.sample.error(&loaded.f64s(output)?), Some(copy)))
    }
}

/// The program of `executable` with the arguments of `memory`; those that are on the device stay
/// there.
fn place<'l, 'd>(
    slot: &'l mut Option<Loaded<'d>>,
    device: &'d dyn Device,
    executable: &Executable,
    memory: &Memory,
) -> Result<&'l mut Loaded<'d>, LoadError> {
    match slot {
        Some(loaded) => loaded.exchange(vec![executable.clone()], memory)?,
        None => *slot = Some(Loaded::compiled(device, executable.clone(), memory)?),
    }
    slot.as_mut().ok_or_else(|| LoadError::Missing("the program".into()))
}

/// Runs once; the result, which is added to, starts at zero.
fn run(loaded: &Loaded<'_>, output: &str) -> Result<(), LoadError> {
    loaded.fill(output, 0)?;
    Ok(loaded.launch()?)
}

fn launch(error: LoadError) -> Refusal {
    Refusal::new(Stage::Launch, error)
}

/// NaN is not right.
fn within(error: f64, mesh: &str) -> Result<f64, Refusal> {
    if error <= TOLERANCE {
        return Ok(error);
    }
    let reason = format!("relative error {error:.1e} on the {mesh} mesh, needed at most {TOLERANCE:e}");
    Err(Refusal::new(Stage::Check, reason))
}

impl Session for CaseSession<'_> {
    type Program = CaseProgram;

    fn check(&mut self, program: &CaseProgram) -> Result<Errors, Refusal> {
        let executable = program.executable(self.device).map_err(|e| Refusal::new(Stage::Compile, e))?;
        let set = |memory: &mut Memory| set_up(self.device, &program.definitions, memory);
        // inputs of another candidate have the same names and other values, and would stay on the device
        if !program.definitions.is_empty() {
            (self.small, self.measured) = (None, None);
        }
        set(&mut self.inputs.small).map_err(|e| Refusal::new(Stage::Launch, e))?;
        let done = set(&mut self.inputs.measured).map_err(|e| Refusal::new(Stage::Launch, e))?;
        let SetUp { inputs, bytes, seconds, .. } = done;
        self.setup = (inputs > 0).then_some(Setup { inputs, bytes, seconds });
        let small = within(self.check_small(&executable).map_err(launch)?, "small")?;
        let (error, result) = self.check_measured(&executable).map_err(launch)?;
        let measured = within(error, "measured")?;
        if let Some(result) = result {
            self.reference = Some(result);
        }
        Ok(Errors { small, measured })
    }

    fn time(&mut self, _: &CaseProgram, options: &TimingOptions) -> Result<Timing, Refusal> {
        let Some(loaded) = &self.measured else {
            return Err(Refusal::new(Stage::Launch, "bug of kingpost: timed before it was checked"));
        };
        loaded.time(options).map_err(|e| launch(e.into()))
    }

    fn joules(&mut self, _: &CaseProgram, seconds: f64) -> Result<Option<f64>, Refusal> {
        let Some(loaded) = &self.measured else { return Ok(None) };
        loaded.joules(seconds).map_err(|e| launch(e.into()))
    }

    fn setup(&self) -> Option<Setup> {
        self.setup
    }

    fn is_alive(&self) -> bool {
        self.device.allocate(8).is_ok()
    }
}
