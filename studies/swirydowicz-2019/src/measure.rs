//! Running, checking and timing the kernels of a problem at one size.

use crate::model::{operations, shared_traffic, traffic};
use crate::problem::{Precision, Sizes};
use crate::recipes::{Launch, RecipeError, Tuned};
use crate::record::{Outcome, Record};
use crate::reference::{reference, relative_error, worse};
use kingpost::analysis::stats::StatsError;
use kingpost::codegen::{CodegenError, Options, generate};
use kingpost::interp::{Memory, Value};
use kingpost::ir::text;
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{AxisTag, Schedule};
use kingpost::runtime::{Device, RuntimeError, TimingOptions};
use kingpost::transforms::TransformError;
use kingpost::{LoadError, Loaded, laid_out};
use std::borrow::Cow;

/// Elements with data of their own; a launch repeats them. A prime, so that no tile repeats with
/// it.
pub const DISTINCT: usize = 7;

/// Why a kernel was not timed.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// It cannot be made.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// Its work cannot be counted.
    #[error(transparent)]
    Count(#[from] StatsError),
    /// It has no code.
    #[error(transparent)]
    Code(#[from] CodegenError),
    /// It does not fit the device.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The device failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The result is off.
    #[error("the result is off by {error:.1e} of its largest value, needed {:.0e}", precision.tolerance())]
    Wrong {
        /// By how much.
        error: f64,
        /// Its type.
        precision: Precision,
    },
    /// The copy cannot be made.
    #[error("bug of the study: the copy that a kernel is compared with: {0}")]
    Copy(String),
}

/// The data of a launch, and what it must give.
pub struct Case<'d> {
    device: &'d dyn Device,
    sizes: Sizes,
    elements: usize,
    memory: Memory,
    /// Of the first [`DISTINCT`] elements.
    expected: Vec<f64>,
    copy_s: f64,
    /// The arrays on the device, which the kernels of a problem share.
    loaded: Option<Loaded<'d>>,
}

impl<'d> Case<'d> {
    /// Random data, the dense operator's result, and the time of a copy that moves the same bytes.
    ///
    /// # Errors
    /// A device without room for it.
    pub fn new(
        device: &'d dyn Device,
        sizes: Sizes,
        elements: usize,
        seed: u64,
        options: &TimingOptions,
    ) -> Result<Self, MeasureError> {
        let copy_s = copy_seconds(device, traffic(sizes).total() * elements as u64, options)?;
        let few = sizes.inputs(DISTINCT, seed);
        let missing = || MeasureError::Copy("the dense operator lacks an input".into());
        let expected = reference(sizes, &few).ok_or_else(missing)?;
        let memory = repeated(&few, sizes.precision, elements);
        Ok(Self { device, sizes, elements, memory, expected, copy_s, loaded: None })
    }

    /// Runs, checks and times a kernel; the record says what came of it.
    pub fn measure(&mut self, kernel: Tuned, options: &TimingOptions) -> Record {
        let info = self.device.info();
        let mut record = Record {
            kernel: kernel.to_string(),
            degree: self.sizes.degree,
            precision: self.sizes.precision,
            elements: self.elements,
            device: info.name.clone(),
            driver: info.driver.clone(),
            clock_mhz: info.clock_mhz,
            operations: operations(self.sizes),
            bytes: traffic(self.sizes).total(),
            shared_bytes: 0,
            source: String::new(),
            outcome: Outcome::Refused(String::new()),
        };
        record.outcome = match self.outcome(kernel, options, &mut record) {
            Ok(outcome) => outcome,
            Err(e) => Outcome::Refused(e.to_string()),
        };
        record
    }

    fn outcome(
        &mut self,
        kernel: Tuned,
        options: &TimingOptions,
        record: &mut Record,
    ) -> Result<Outcome, MeasureError> {
        let launches = kernel.launches_in(self.sizes.degree, self.sizes.precision)?;
        let (mut sources, mut executables) = (blake3::Hasher::new(), Vec::new());
        for launch in &launches {
            let kernel = launch.schedule.kernel();
            record.shared_bytes += shared_traffic(kernel)?.total();
            // recipes have callees of their own
            let trusting = Options::default().with_trust(true);
            let program = generate(kernel, self.device.info().backend.target(), &trusting)?;
            sources.update(program.source.as_bytes());
            executables.push(self.device.compile(&program)?);
        }
        record.source = sources.finalize().to_hex().to_string();
        let memory = memory_of(&launches, &self.memory);
        let loaded = match self.loaded.take() {
            None => Loaded::in_turn(self.device, executables, &memory)?,
            Some(mut loaded) => {
                loaded.exchange(executables, &memory)?;
                loaded
            }
        };
        let loaded = self.loaded.insert(loaded);
        loaded.fill("y", 0xff)?; // NaN: what a kernel before it wrote is not its own
        loaded.launch()?;
        let found = loaded.f64s("y")?;
        let errors = found.chunks(self.expected.len()).map(|part| {
            let expected = &self.expected[..part.len()];
            relative_error(expected, part)
        });
        let error = errors.fold(0.0, worse);
        if !(error < self.sizes.precision.tolerance()
            && found.len() == self.elements * self.sizes.nodes().pow(3))
        {
            return Err(MeasureError::Wrong { error, precision: self.sizes.precision });
        }
        drop(found);
        let timing = loaded.time(options)?;
        let resources: Vec<String> = loaded.resources().map(ToString::to_string).collect();
        Ok(Outcome::Measured {
            median_s: timing.median_s,
            min_s: timing.min_s,
            max_s: timing.max_s,
            runs: timing.runs,
            copy_s: self.copy_s,
            error,
            resources: (!resources.is_empty()).then(|| resources.join("; ")),
        })
    }
}

/// The memory of all launches, with arrays as they take them.
#[must_use]
pub fn memory_of<'m>(launches: &[Launch], memory: &'m Memory) -> Cow<'m, Memory> {
    if let [launch] = launches {
        return laid_out(launch.schedule.kernel(), memory);
    }
    let mut found = Cow::Borrowed(memory);
    for kernel in launches.iter().map(|l| l.schedule.kernel()) {
        let Cow::Owned(all) = laid_out(kernel, memory) else { continue };
        for var in kernel.vars.values() {
            if let Some(value) = all.get(&var.name) {
                found.to_mut().set(&var.name, value.clone());
            }
        }
    }
    found
}

/// The arrays of [`DISTINCT`] elements, again and again.
fn repeated(few: &Memory, precision: Precision, elements: usize) -> Memory {
    let mut memory = Memory::new();
    for (name, value) in few.params() {
        memory = memory.param(name, if name == "ne" { elements as i64 } else { *value });
    }
    for name in ["u", "w", "g", "X", "x", "I", "D", "lambda"] {
        let Some(values) = few.get(name).map(Value::to_f64) else { continue };
        // the weights of nodes are those of all elements
        let of_elements = ["u", "g", "X"].contains(&name) || name == "w" && few.get("x").is_none();
        let value: Vec<f64> = if of_elements {
            let mut all = values.repeat(elements.div_ceil(DISTINCT));
            all.truncate(values.len() / DISTINCT * elements);
            all
        } else {
            values
        };
        memory = memory.value(name, precision.value(value));
    }
    memory
}

/// Median seconds of a copy that reads half of `bytes` and writes the other half.
///
/// # Source
/// Świrydowicz et al. 2019, §5, with a kernel instead of the driver's copy, so that it is
/// timed like the others.
fn copy_seconds(device: &dyn Device, bytes: u64, options: &TimingOptions) -> Result<f64, MeasureError> {
    const COPY: &str =
        "kernel copy\nparam n: i32\narg x: f64[n] in\narg y: f64[n] out\n\nfor i in 0..n\n  s: y[i] = x[i]\n";
    let bug = |e: String| MeasureError::Copy(e);
    let mut s = Schedule::of(&text::parse(COPY).map_err(|e| bug(e.to_string()))?);
    let place = |s: &mut Schedule| -> Result<(), TransformError> {
        let [block, item] = s.split("i", 256)?;
        s.tag(&block, AxisTag::Group(0))?;
        s.tag(&item, AxisTag::Local(0))
    };
    place(&mut s).map_err(|e| bug(e.to_string()))?;
    let program = generate(s.kernel(), device.info().backend.target(), &Options::default())?;
    let n = usize::try_from(bytes / 16).unwrap_or(usize::MAX);
    let memory = Memory::new().param("n", n as i64).value("x", vec![1.0; n]);
    let loaded = Loaded::new(device, &program, &memory)?;
    Ok(loaded.time(options)?.median_s)
}
