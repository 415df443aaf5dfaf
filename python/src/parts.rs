//! Forms on the parts of a mesh, one a device.

use crate::bind::{Array, Number, bind};
use crate::failure::{self, Failure};
use crate::program::{Program, lasting};
use kingpost::runtime::cuda::nccl::UniqueId;
use kingpost::runtime::{Arg, Buffer, Device, Foreign, RuntimeError};
use kingpost::solve::{
    Argument, Communicator, ConjugateGradients, Constraints, DeviceForm, Diagonal, Exchange, Gmres,
    GmresOptions, Halo, HostCommunicator, LinearMethod, LinearOptions, LinearReport, Messages,
    NcclCommunicator, PartForm, PartFormOperator, PartLayout, Partition, Preconditioning, PrescribedValues,
    Queue, SolveError, in_parts,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// A kernel of a part: its program, whether its entities read ghosts, its arrays and its numbers.
type Kernel = (Py<Program>, bool, Vec<Array>, BTreeMap<String, Number>);
/// The unknowns of a part: owned ones and ghosts, as `i32`, both in unknowns of its mesh; which
/// ghosts are of which other part; the owned ones that others need, by their places; whether each
/// cell is of one part alone.
type Layout = (PyBackedBytes, PyBackedBytes, Vec<(usize, usize, usize)>, Vec<(usize, PyBackedBytes)>, bool);
/// A part: the kernels, the values of the fields as `f64`, and the numbers of the result.
type Given = (Vec<Kernel>, Vec<PyBackedBytes>, usize, Option<Layout>);
/// What a system gets of a part, as `f64` except for the second: the right-hand side, the unknowns
/// of the mesh that are prescribed as `i32`, and the inverse of a diagonal.
type Right = (PyBackedBytes, PyBackedBytes, PyBackedBytes);
/// Why a solve stopped, whether that is convergence, norms of residuals, seconds.
type Report = (String, bool, Vec<f64>, f64);

/// A form on the parts of a mesh.
#[pyclass(frozen, module = "kingpost._kingpost")]
pub(crate) struct Parts {
    devices: Vec<&'static dyn Device>,
    exchange: Exchange,
    /// Whether this is one part, and other processes have the others.
    is_one_of_processes: bool,
    running: Mutex<Running>,
}

/// What a call uses alone.
struct Running {
    parts: Vec<Part>,
    /// Made again after a call that failed.
    communicators: Vec<Box<dyn Communicator>>,
}

/// Why a part stopped: for a reason of its own, or because another one did.
enum Stopped {
    Failed(Failure),
    Ended(SolveError),
}

impl From<SolveError> for Stopped {
    fn from(error: SolveError) -> Self {
        if matches!(error, SolveError::PartEnded { .. }) {
            return Self::Ended(error);
        }
        Self::Failed(error.into())
    }
}

impl From<RuntimeError> for Stopped {
    fn from(error: RuntimeError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Failed(failure) => failure,
            Stopped::Ended(error) => error.into(),
        }
    }
}

const fn has_ended(stopped: &Stopped) -> bool {
    matches!(stopped, Stopped::Ended(_))
}

/// What a device has.
struct Part {
    device: &'static dyn Device,
    form: PartForm,
    fields: Vec<Buffer>,
    result: Buffer,
    n_result: usize,
    halo: Option<Halo>,
}

/// The parts of other processes: which part this one is, how many there are, an object with the
/// methods `send`, `receive` and `abandon`, and for NCCL the id of the communicator.
type Processes = (usize, usize, Py<PyAny>, Option<PyBackedBytes>);

/// Numbers to and from other processes, by an object of Python's.
struct ByObject(Py<PyAny>);

impl Messages for ByObject {
    fn send(&self, peer: usize, numbers: Vec<f64>) -> Result<(), SolveError> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let sent = Python::attach(|py| self.0.call_method1(py, "send", (peer, PyBytes::new(py, &bytes))));
        sent.map(drop).map_err(|error| SolveError::Messages { part: peer, reason: error.to_string() })
    }

    fn receive(&self, peer: usize) -> Result<Vec<f64>, SolveError> {
        let received = Python::attach(|py| -> PyResult<Option<PyBackedBytes>> {
            self.0.call_method1(py, "receive", (peer,))?.extract(py).map_err(PyErr::from)
        });
        match received {
            Ok(Some(bytes)) => Ok(reals(&bytes)),
            Ok(None) => Err(SolveError::PartEnded { part: peer }),
            Err(error) => Err(SolveError::Messages { part: peer, reason: error.to_string() }),
        }
    }

    fn abandon(&self) {
        // there is nobody to tell of a failure
        let _ = Python::attach(|py| self.0.call_method0(py, "abandon"));
    }
}

/// What exchanges numbers with other processes, and how.
fn of_process(
    device: &'static dyn Device,
    (rank, size, object, id): Processes,
) -> Result<(Exchange, Box<dyn Communicator>), Failure> {
    let Some(id) = id else {
        let communicator = HostCommunicator::new(device, (rank, size), Box::new(ByObject(object)));
        return Ok((Exchange::Host, Box::new(communicator)));
    };
    let wrong = |_| Failure::new("InternalError", "an id of NCCL's has 128 bytes");
    let id = UniqueId(id.as_ref().try_into().map_err(wrong)?);
    Ok((Exchange::Nccl, Box::new(NcclCommunicator::of_process(device, id, rank, size)?)))
}

/// What processes that exchange by NCCL have in common, which one of them makes.
#[pyfunction]
pub(crate) fn nccl_id(py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
    let id = failure::run(py, || Ok(UniqueId::new()?))?;
    Ok(PyBytes::new(py, &id.0))
}

fn integers(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks::<4>().0.iter().map(|b| i32::from_ne_bytes(*b)).collect()
}

fn reals(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
}

/// A buffer with these bytes.
fn uploaded(device: &dyn Device, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
    let buffer = device.allocate(bytes.len() as u64)?;
    device.upload(&buffer, bytes)?;
    Ok(buffer)
}

/// The bytes of the first numbers of a buffer.
fn downloaded(device: &dyn Device, buffer: &Buffer, n: usize) -> Result<Vec<u8>, RuntimeError> {
    let mut bytes = vec![0; buffer.bytes() as usize];
    device.download(buffer, &mut bytes)?;
    bytes.truncate(8 * n);
    Ok(bytes)
}

/// Arrays that are on a device already, by where they lie on the host and their bytes: kernels
/// share them.
type Uploaded = HashMap<(u64, u64), Arc<Buffer>>;

impl Part {
    fn new(
        device: &'static dyn Device,
        (output, names): (&str, &[&str]),
        (kernels, fields, n_result, layout): Given,
    ) -> Result<Self, Stopped> {
        let [mut outer, mut inner] = [DeviceForm::default(), DeviceForm::default()];
        let mut known = Uploaded::new();
        for (program, is_outer, arrays, numbers) in &kernels {
            let form = if *is_outer { &mut outer } else { &mut inner };
            add(form, device, program.get(), (output, names), (arrays, numbers), &mut known)?;
        }
        let halo = match layout {
            None => None,
            Some((owned, ghosts, receives, sends, has_sums)) => {
                let layout = PartLayout {
                    owned: integers(&owned),
                    ghosts: integers(&ghosts),
                    receives: receives.into_iter().map(|(peer, from, to)| (peer, from..to)).collect(),
                    sends: sends.into_iter().map(|(peer, places)| (peer, integers(&places))).collect(),
                };
                Some(if has_sums { Halo::with_sums } else { Halo::new }(device, &layout)?)
            }
        };
        let on_device = |values: &PyBackedBytes| uploaded(device, values);
        Ok(Self {
            device,
            form: PartForm::of(outer, inner),
            fields: fields.iter().map(on_device).collect::<Result<_, _>>()?,
            result: device.allocate(8 * n_result as u64)?,
            n_result,
            halo,
        })
    }

    fn update(&self, fields: &[(usize, PyBackedBytes)]) -> Result<(), Stopped> {
        for (place, values) in fields {
            self.device.upload(&self.fields[*place], values)?;
        }
        Ok(())
    }

    fn apply(
        &self,
        communicator: &dyn Communicator,
        fields: &[(usize, PyBackedBytes)],
    ) -> Result<Vec<u8>, Stopped> {
        self.update(fields)?;
        self.device.fill(&self.result, 0)?;
        let given: Vec<&Buffer> = self.fields.iter().collect();
        let mut queue = Queue::new();
        self.form.add_to(&given, &self.result, &mut queue);
        communicator.perform(&queue)?;
        communicator.wait()?;
        Ok(downloaded(self.device, &self.result, self.n_result)?)
    }

    fn solve(
        &self,
        communicator: &dyn Communicator,
        unknown: usize,
        (right, fixed, inverse): &Right,
        (method, options): (LinearMethod, LinearOptions),
    ) -> Result<(Vec<u8>, LinearReport), Stopped> {
        let device = self.device;
        let halo =
            self.halo.as_ref().ok_or_else(|| Failure::new("InternalError", "a functional is solved"))?;
        let (n, fixed) = (right.len() / 8, integers(fixed));
        let values = PrescribedValues { values: vec![0.0; fixed.len()], unknowns: fixed };
        let constraints = Constraints::without_matrix(device, self.n_result, &values)?;
        let given = (self.fields.iter().collect(), unknown);
        let operator = PartFormOperator::new(device, &self.form, &constraints, given, halo)?;
        let diagonal = Diagonal::identity(device, n)?;
        device.upload(diagonal.values(), inverse)?;
        let (b, x) = (uploaded(device, right)?, device.allocate(8 * n as u64)?);
        let report = match method {
            LinearMethod::ConjugateGradients => {
                let by = Preconditioning::Diagonal(diagonal.values());
                let solver = ConjugateGradients::new(device, n, options)?;
                solver.solve_over(communicator, &operator, by, &b, &x)?
            }
            LinearMethod::Gmres => {
                let LinearOptions { relative, absolute, max_iterations, .. } = options;
                let options = GmresOptions { relative, absolute, max_iterations, ..GmresOptions::default() };
                let mut solver = Gmres::new(device, n, options)?;
                solver.solve_over(communicator, &operator, Some(&diagonal), &b, &x)?
            }
            LinearMethod::BiCgStab | LinearMethod::Chebyshev => {
                let message = format!("`method` is {method}; several devices take `cg` and `gmres`");
                return Err(Failure::about("ArgumentError", "method", message).into());
            }
        };
        Ok((downloaded(device, &x, n)?, report))
    }
}

/// Adds a kernel with its arrays, which are uploaded unless they are there.
fn add(
    form: &mut DeviceForm,
    device: &'static dyn Device,
    program: &Program,
    names: (&str, &[&str]),
    (arrays, numbers): (&[Array], &BTreeMap<String, Number>),
    known: &mut Uploaded,
) -> Result<(), Failure> {
    let call = bind(&program.kernel, &program.program, arrays, numbers)?;
    let mut fixed: HashMap<&str, Argument> = HashMap::new();
    for (name, arg) in &call.args {
        let argument = match arg {
            Arg::Param(value) => Argument::Param(*value),
            Arg::F64(value) => Argument::F64(*value),
            Arg::Foreign(_) if *name == names.0 || names.1.contains(name) => continue,
            Arg::Foreign(array) => {
                let place = arrays.iter().find(|array| array.name() == *name).map_or(0, Array::address);
                Argument::Array(match known.get(&(place, array.bytes())).map(Arc::clone) {
                    Some(there) => there,
                    None => {
                        let buffer = Arc::new(copied(device, program, (name, array))?);
                        known.insert((place, array.bytes()), Arc::clone(&buffer));
                        buffer
                    }
                })
            }
            Arg::Buffer(_)
            | Arg::F32(_)
            | Arg::I32(_)
            | Arg::I64(_)
            | Arg::U32(_)
            | Arg::U64(_)
            | Arg::C64(_)
            | Arg::C128(_) => {
                let message =
                    format!("`{name}` of a form is {arg:?}, which is no number of double precision");
                return Err(Failure::new("InternalError", message));
            }
        };
        fixed.insert(name, argument);
    }
    let mut of = |name: &str| fixed.remove(name).ok_or_else(|| SolveError::Missing { name: name.into() });
    Ok(form.add_program(&program.executable, names, &mut of)?)
}

fn copied(
    device: &dyn Device,
    program: &Program,
    (name, array): (&str, &Foreign<'_>),
) -> Result<Buffer, Failure> {
    let mut bytes = vec![0; array.bytes() as usize];
    device.fetch(&program.executable, name, array, &mut bytes)?;
    Ok(uploaded(device, &bytes)?)
}

impl Parts {
    /// Does something for each part with what is given to it.
    fn each<I: Send, T: Send>(
        &self,
        given: Vec<I>,
        what: impl Fn(&Part, &dyn Communicator, I) -> Result<T, Stopped> + Sync,
    ) -> Result<Vec<T>, Failure> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Running { parts, communicators: kept } = &mut *running;
        // of a call that fails, some have ended
        let mut communicators = std::mem::take(kept);
        if communicators.is_empty() && self.is_one_of_processes {
            let message = "the exchange with other processes ended in an earlier call; divide the mesh again";
            return Err(Failure::new("DeviceError", message));
        }
        if communicators.is_empty() {
            communicators = self.exchange.communicators(&self.devices)?;
        }
        type OfPart<'p, I> = ((&'p mut Part, &'p mut Box<dyn Communicator>), I);
        let of_part = |((part, communicator), given): OfPart<'_, I>| {
            let done = what(part, &**communicator, given);
            if done.is_err() {
                communicator.abandon();
            }
            done
        };
        let found =
            in_parts(parts.iter_mut().zip(&mut communicators).zip(given), of_part, of_part, has_ended)?;
        *kept = communicators;
        Ok(found)
    }
}

#[pymethods]
impl Parts {
    /// Uploads what does not change of the parts. The values of the `fields` do.
    #[new]
    #[pyo3(signature = (devices, output, fields, parts, processes=None))]
    fn new(
        py: Python<'_>,
        devices: Vec<String>,
        output: &str,
        fields: Vec<String>,
        parts: Vec<Given>,
        processes: Option<Processes>,
    ) -> PyResult<Self> {
        failure::run(py, || {
            let devices: Vec<&'static dyn Device> =
                devices.iter().map(|name| Ok(&**lasting(name)?)).collect::<Result<_, Failure>>()?;
            let names: Vec<&str> = fields.iter().map(String::as_str).collect();
            let of_part = |(device, part)| Part::new(device, (output, &names[..]), part);
            let parts = in_parts(devices.iter().copied().zip(parts), of_part, of_part, has_ended)?;
            let is_one_of_processes = processes.is_some();
            let (exchange, communicators) = match (processes, &devices[..]) {
                (Some(processes), [device]) => {
                    let (exchange, communicator) = of_process(*device, processes)?;
                    (exchange, vec![communicator])
                }
                _ => {
                    let exchange = Exchange::between(&devices);
                    (exchange, exchange.communicators(&devices)?)
                }
            };
            let running = Mutex::new(Running { parts, communicators });
            Ok(Self { devices, exchange, is_one_of_processes, running })
        })
    }

    /// How parts exchange numbers: `nccl` or `host`.
    #[getter]
    fn exchange(&self) -> String {
        self.exchange.to_string()
    }

    /// The results of the parts, `f64` on the mesh of each, with new values of some fields.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        fields: Vec<Vec<(usize, PyBackedBytes)>>,
    ) -> PyResult<Vec<Bound<'py, PyByteArray>>> {
        let found = failure::run(py, || {
            self.each(fields, |part, communicator, fields| part.apply(communicator, &fields))
        })?;
        Ok(found.iter().map(|bytes| PyByteArray::new(py, bytes)).collect())
    }

    /// Takes new values of some fields, by part.
    fn update(&self, py: Python<'_>, fields: Vec<Vec<(usize, PyBackedBytes)>>) -> PyResult<()> {
        failure::run(py, || self.each(fields, |part, _, fields| part.update(&fields)).map(drop))
    }

    /// Solves for the field `unknown`: the owned unknowns of each part as `f64`, and a report.
    fn solve<'py>(
        &self,
        py: Python<'py>,
        unknown: usize,
        right: Vec<Right>,
        method: &str,
        limits: (f64, f64, usize),
    ) -> PyResult<(Vec<Bound<'py, PyByteArray>>, Report)> {
        let (found, report) = failure::run(py, || {
            let method: LinearMethod =
                method.parse().map_err(|e| Failure::about("ArgumentError", "method", format!("{e}")))?;
            let options = LinearOptions {
                relative: limits.0,
                absolute: limits.1,
                max_iterations: limits.2,
                ..LinearOptions::default()
            };
            let found = self.each(right, |part, communicator, right| {
                part.solve(communicator, unknown, &right, (method, options))
            })?;
            let (found, reports): (Vec<_>, Vec<_>) = found.into_iter().unzip();
            // except for the time, all parts have the same one
            let report =
                reports.into_iter().next().ok_or_else(|| Failure::new("InternalError", "no parts"))?;
            let has_converged = report.converged();
            Ok((found, (report.reason.to_string(), has_converged, report.residuals, report.seconds)))
        })?;
        Ok((found.iter().map(|bytes| PyByteArray::new(py, bytes)).collect(), report))
    }
}

/// The part of each point, `i32`: recursively across the longest side of the box around them.
#[pyfunction]
pub(crate) fn bisect<'py>(
    py: Python<'py>,
    points: PyBackedBytes,
    dim: usize,
    parts: usize,
) -> PyResult<Bound<'py, PyByteArray>> {
    let owners = failure::run(py, || {
        let points = reals(&points);
        let found = Partition::bisect(&points, dim, parts)?;
        let n = points.len().checked_div(dim).unwrap_or(0); // no points without axes
        Ok((0..n as i32).flat_map(|point| (found.owner(point) as i32).to_ne_bytes()).collect::<Vec<u8>>())
    })?;
    Ok(PyByteArray::new(py, &owners))
}
