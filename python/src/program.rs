//! Compiled programs on devices.

use crate::bind::{Array, Call, Number, bind, is_given, memory};
use crate::bound::{BoundCall, Launch};
use crate::failure::{self, Failure};
use crate::kernel::Kernel;
use crate::lend;
use kingpost::analysis::Analysis;
use kingpost::autotune::{DeviceModel, Point, roofline_svg};
use kingpost::codegen::{self, ArgKind, ArgSpec, BufferAccess, Options, Target, generate};
use kingpost::interp::{AccessProof, InterpError, check_launch, launch_inputs};
use kingpost::ir;
use kingpost::kernel_work;
use kingpost::runtime::{
    Arg, Backend, Buffer, Cache, Device, Executable, Place, TimingOptions, measure_exceeded_ceilings, open,
};
use pyo3::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// A kernel compiled for a device; `kingpost.Compiled` is what users see of it.
#[pyclass(frozen, module = "kingpost._kingpost")]
pub(crate) struct Program {
    pub(crate) kernel: Arc<ir::Kernel>,
    pub(crate) program: codegen::Program,
    device: Arc<dyn Device>,
    pub(crate) executable: Executable,
    /// What is proved of accesses, found at the first check.
    proofs: OnceLock<Vec<AccessProof>>,
}

type Devices = BTreeMap<String, &'static Arc<dyn Device>>;

/// The name of `default`: the host, or an OpenCL device where there is no C compiler.
fn default_device() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let opencl = || {
            let found = kingpost::runtime::devices().into_iter().filter_map(|entry| entry.device.ok());
            found.into_iter().find(|d| d.backend == Backend::OpenCl && d.fp64)
        };
        // without any device the error of `c` says what to install
        let other = if open("c").is_ok() { None } else { opencl() };
        other.map_or_else(|| "c".to_owned(), |d| d.selector())
    })
}

/// The device of this name, opened once in a process.
pub(crate) fn device(name: &str) -> Result<Arc<dyn Device>, Failure> {
    lasting(name).map(Arc::clone)
}

/// The same: none is closed before the process ends.
pub(crate) fn lasting(name: &str) -> Result<&'static Arc<dyn Device>, Failure> {
    let name = if name == "default" { default_device() } else { name };
    static OPEN: LazyLock<Mutex<Devices>> = LazyLock::new(Mutex::default);
    let mut devices = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = devices.get(name) {
        return Ok(*device);
    }
    let device: &'static Arc<dyn Device> = Box::leak(Box::new(Arc::from(open(name)?)));
    devices.insert(name.to_owned(), device);
    Ok(device)
}

/// The devices of this machine: what `compile` takes, the name of the device, and why there is
/// none where there is none.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> PyResult<Vec<(String, String, bool)>> {
    failure::run(py, || {
        let entries = kingpost::runtime::devices().into_iter();
        Ok(entries
            .map(|entry| match entry.device {
                Ok(info) => (info.selector(), info.name, true),
                Err(why) => (entry.backend.to_string(), why.to_string(), false),
            })
            .collect())
    })
}

/// Where compiled kernels are kept, if they are.
#[pyfunction]
pub(crate) fn cache_directory() -> Option<PathBuf> {
    Cache::from_environment().dir().map(Path::to_path_buf)
}

/// An argument: name, kind (`parameter`, `number`, `array`), type, shape as text, whether it is
/// read and whether it is written.
type Argument = (String, &'static str, String, Vec<String>, bool, bool);

/// Times and rooflines: seconds (median, shortest, longest), runs, FLOP, bytes of memory, bytes of
/// tables, the roofs by memory and arithmetic alone and with tables in local memory in FLOP/s, the
/// ceiling that is met, the device, the picture. Times, runs, work as written, rooflines of it,
/// what is executed with its roofline, what limits that and why it exceeds it, the device, a
/// picture.
type Measured = (
    (f64, f64, f64),
    usize,
    (u64, u64, u64),
    (f64, f64),
    (u64, f64, String, Option<&'static str>),
    String,
    String,
);

/// A schedule that was tried.
type Tried = (String, String, String, Option<f64>, Option<String>);

fn target(name: &str) -> Result<Target, Failure> {
    Target::named(name).ok_or_else(|| {
        let all: Vec<String> = Target::ALL.iter().map(|target| format!("`{target}`")).collect();
        Failure::new("Unavailable", format!("no target `{name}`; there are {}", all.join(", ")))
    })
}

#[pymethods]
impl Program {
    #[new]
    fn new(
        py: Python<'_>,
        kernel: &Bound<'_, Kernel>,
        device_name: &str,
        contraction: bool,
        trust: bool,
    ) -> PyResult<Self> {
        let kernel = Arc::clone(&kernel.get().0);
        failure::run(py, || {
            let kernel = match kernel.scalar_form() {
                Cow::Borrowed(_) => Arc::clone(&kernel),
                // a call takes an array for each field of a record
                Cow::Owned(kernel) => Arc::new(kernel),
            };
            let device = device(device_name)?;
            let options = Options::default().with_contraction(contraction).with_trust(trust);
            let program = generate(&kernel, device.info().backend.target(), &options)?;
            let executable = device.compile(&program)?;
            Ok(Self { kernel, program, device, executable, proofs: OnceLock::new() })
        })
    }

    /// The source of a kernel for a target, for which no device is needed.
    #[staticmethod]
    fn generate(py: Python<'_>, kernel: &Bound<'_, Kernel>, name: &str) -> PyResult<String> {
        let kernel = Arc::clone(&kernel.get().0);
        failure::run(py, || Ok(generate(&kernel, target(name)?, &Options::default())?.source))
    }

    #[getter]
    fn source(&self) -> &str {
        &self.program.source
    }

    #[getter]
    fn target(&self) -> String {
        self.program.target.to_string()
    }

    #[getter]
    fn device(&self) -> (String, String) {
        (self.device.info().selector(), self.device.info().name.clone())
    }

    #[getter]
    fn kernel(&self) -> Kernel {
        Kernel(Arc::clone(&self.kernel))
    }

    /// Whether arrays on the host, and those of a CUDA card, are used without a copy.
    #[getter]
    fn shares(&self) -> (bool, bool) {
        (self.device.shares(Place::Host), self.device.shares(Place::Cuda))
    }

    /// What a call takes, in the order of the kernel.
    #[getter]
    fn arguments(&self) -> Vec<Argument> {
        let specs = self.program.plan.args.iter().filter(|spec| is_given(spec));
        specs
            .map(|spec| {
                let var = self.kernel.var(&spec.name).map(|v| &self.kernel.vars[v]);
                let shape =
                    var.map(|v| v.shape.iter().map(|e| self.kernel.show_affine(e).to_string()).collect());
                let (kind, read, written) = match spec.kind {
                    ArgKind::Param => ("parameter", true, false),
                    ArgKind::Scalar => ("number", true, false),
                    ArgKind::Buffer { access, .. } => {
                        ("array", access != BufferAccess::Out, access != BufferAccess::In)
                    }
                    ArgKind::Table(_) | ArgKind::Scratch { .. } => ("array", false, false),
                };
                (spec.name.clone(), kind, spec.ty.to_string(), shape.unwrap_or_default(), read, written)
            })
            .collect()
    }

    /// What a reader of the code would not expect: loops that stay scalar, or run on one work-item.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.program.plan.notes.iter().map(ToString::to_string).collect()
    }

    /// Whether a call may be kept for later ones with arguments of the same layout: on a device that holds
    /// nothing of an array but its address, for a kernel without memory of its own.
    #[getter]
    fn keeps(&self) -> bool {
        let keeps = match self.program.target {
            Target::C | Target::Cuda | Target::Hip => true,
            Target::OpenCl => false,
        };
        let is_scratch = |spec: &ArgSpec| matches!(spec.kind, ArgKind::Scratch { .. });
        keeps && !self.program.plan.args.iter().any(is_scratch)
    }

    /// Registers and bytes of spills of a CUDA kernel, as its compiler reports them.
    #[getter]
    fn resources(&self) -> Option<String> {
        self.executable.resources().map(|resources| format!("{resources:?}"))
    }

    /// Runs once. On a stream it returns before the kernel has ended.
    #[pyo3(signature = (arrays, numbers, stream=None))]
    fn launch(
        &self,
        py: Python<'_>,
        arrays: Vec<Array>,
        numbers: BTreeMap<String, Number>,
        stream: Option<u64>,
    ) -> PyResult<()> {
        failure::run(py, || {
            let bound = bind(&self.kernel, &self.program, &arrays, &numbers)?;
            Ok(self.device.launch_on(&self.executable, &bound.args, stream.map(lend::stream))?)
        })
    }

    /// A call with these arguments; `owners` keep the arrays.
    #[pyo3(signature = (arrays, numbers, owners, stream=None))]
    fn bind(
        &self,
        py: Python<'_>,
        arrays: Vec<Array>,
        numbers: BTreeMap<String, Number>,
        owners: Py<PyAny>,
        stream: Option<u64>,
    ) -> PyResult<BoundCall> {
        let launch = failure::run(py, || {
            let bound = bind(&self.kernel, &self.program, &arrays, &numbers)?;
            let args = bound.args.into_iter().map(|(name, arg)| (name.to_owned(), arg)).collect();
            Launch::new(&self.device, &self.executable, args)
        })?;
        Ok(BoundCall::new(launch, owners, stream))
    }

    /// Checks what the kernel assumes of these values, and that none leads it outside an array.
    fn check(
        &self,
        py: Python<'_>,
        arrays: Vec<Array>,
        numbers: BTreeMap<String, Number>,
    ) -> PyResult<String> {
        failure::run(py, || {
            let bound = bind(&self.kernel, &self.program, &arrays, &numbers)?;
            let proofs = self.proofs.get_or_init(|| Analysis::of(&self.kernel).access_proofs());
            let wrong = |why: InterpError| Failure::new("ArgumentError", why.to_string());
            let wanted = launch_inputs(&self.kernel, &bound.params, proofs).map_err(wrong)?;
            let memory = memory((&*self.device, &self.executable), &self.kernel, &bound, &arrays, &wanted)?;
            let report = check_launch(&self.kernel, &memory, proofs);
            Ok(report.map_err(wrong)?.to_string())
        })
    }

    /// Runs repeatedly on copies of what is written; `work` is the kernel whose operations count.
    fn measure(
        &self,
        py: Python<'_>,
        arrays: Vec<Array>,
        numbers: BTreeMap<String, Number>,
        work: &Bound<'_, Kernel>,
        label: &str,
    ) -> PyResult<Measured> {
        let work = Arc::clone(&work.get().0);
        failure::run(py, || {
            let bound = bind(&self.kernel, &self.program, &arrays, &numbers)?;
            let timing = self.time(&bound)?;
            let unknown =
                |e: kingpost::analysis::stats::StatsError| Failure::new("StatisticsError", e.to_string());
            let work = kernel_work(&work, &bound.params).map_err(unknown)?;
            let executed_flops = kernel_work(&self.kernel, &bound.params).ok().map(|ran| ran.flops);
            let (ran, seconds) = (work.executed(executed_flops), timing.median_s);
            let excludes = |model: &DeviceModel| ran.flops as f64 / seconds > ran.true_roofline(model);
            let model = measure_exceeded_ceilings(&*self.device, &Cache::from_environment(), &excludes)?;
            let point = Point { label: label.to_owned(), work, executed_flops, seconds };
            let svg = roofline_svg(&model, &[point]).unwrap_or_default(); // a kernel without operations has none
            let why_above = work.shares(executed_flops, seconds, &model).executed.why_above;
            Ok((
                (timing.median_s, timing.min_s, timing.max_s),
                timing.runs,
                (work.flops, work.dram_bytes, work.table_bytes),
                (work.true_roofline(&model), work.table_roofline(&model)),
                (ran.flops, ran.true_roofline(&model), ran.limit(&model).to_string(), why_above),
                self.device.info().name.clone(),
                svg,
            ))
        })
    }

    /// Schedules that were tried for a call: the name, the steps as JSON and as text with what was
    /// considered, seconds or why there are none; and the place of the fastest.
    fn auto(
        &self,
        py: Python<'_>,
        arrays: Vec<Array>,
        numbers: BTreeMap<String, Number>,
        budget: usize,
    ) -> PyResult<(Vec<Tried>, usize)> {
        failure::run(py, || {
            let bound = bind(&self.kernel, &self.program, &arrays, &numbers)?;
            let all = self.kernel.vars.ids().collect();
            let memory = memory((&*self.device, &self.executable), &self.kernel, &bound, &arrays, &all)?;
            let found = kingpost::auto::schedule(&self.kernel, &*self.device, &memory, budget, &mut |_| {})?;
            let tried = found.trials.iter().map(|trial| {
                let json = trial.proposal.recipe.to_json();
                let json = json.map_err(|e| Failure::new("InternalError", e.to_string()))?;
                let (seconds, reason) = match &trial.outcome {
                    Ok(seconds) => (Some(*seconds), None),
                    Err(why) => (None, Some(why.clone())),
                };
                Ok((trial.proposal.name.clone(), json, trial.proposal.text(true), seconds, reason))
            });
            Ok((tried.collect::<Result<_, Failure>>()?, found.best))
        })
    }

    /// The median of repeated runs on copies of what is written, in seconds.
    fn seconds(
        &self,
        py: Python<'_>,
        arrays: Vec<Array>,
        numbers: BTreeMap<String, Number>,
    ) -> PyResult<f64> {
        failure::run(py, || {
            let bound = bind(&self.kernel, &self.program, &arrays, &numbers)?;
            Ok(self.time(&bound)?.median_s)
        })
    }
}

impl Program {
    fn time(&self, bound: &Call<'_>) -> Result<kingpost::runtime::Timing, Failure> {
        let is_written = |name: &str| {
            let spec = self.program.plan.args.iter().find(|spec| spec.name == name);
            spec.is_some_and(|spec| match spec.kind {
                ArgKind::Buffer { access, .. } => access != BufferAccess::In,
                ArgKind::Param | ArgKind::Scalar | ArgKind::Table(_) | ArgKind::Scratch { .. } => false,
            })
        };
        let copy = |(name, arg): &(&str, Arg<'_>)| match arg {
            Arg::Foreign(array) if is_written(name) => {
                let buffer = self.device.allocate(array.bytes())?;
                self.device.fill(&buffer, 0)?;
                Ok(Some(buffer))
            }
            Arg::Foreign(_)
            | Arg::Buffer(_)
            | Arg::Param(_)
            | Arg::F32(_)
            | Arg::F64(_)
            | Arg::I32(_)
            | Arg::I64(_)
            | Arg::U32(_)
            | Arg::U64(_)
            | Arg::C64(_)
            | Arg::C128(_) => Ok::<_, Failure>(None),
        };
        let copies: Vec<Option<Buffer>> = bound.args.iter().map(copy).collect::<Result<_, _>>()?;
        let args: Vec<(&str, Arg<'_>)> = bound
            .args
            .iter()
            .zip(&copies)
            .map(|((name, arg), copy)| (*name, copy.as_ref().map_or(*arg, Arg::Buffer)))
            .collect();
        Ok(self.device.time(&self.executable, &args, &TimingOptions::default())?)
    }
}
