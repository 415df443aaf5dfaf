//! Forms on the parts of a mesh, one a device.

use crate::failure::{self, Failure};
use crate::part::{Given, Part, Report, Right, Stopped, Uploaded, has_ended, reals, told};
use crate::polynomial::Polynomial;
use crate::program::lasting;
use kingpost::runtime::Device;
use kingpost::runtime::cuda::nccl::UniqueId;
use kingpost::solve::{
    Communicator, Exchange, ExchangeCosts, HostCommunicator, LinearChoice, LinearMethod, LinearOptions,
    LinearReport, Messages, NcclCommunicator, Partition, SolveError, in_parts,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes};
use std::sync::{Mutex, PoisonError};

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

impl Parts {
    /// Does something for each part with what is given to it.
    fn each<I: Send, T: Send>(
        &self,
        given: Vec<I>,
        what: impl Fn(&mut Part, &dyn Communicator, I) -> Result<T, Stopped> + Sync,
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
    /// What `shared` has of the same arrays is taken from there.
    #[pyo3(signature = (devices, output, fields, parts, processes=None, shared=None))]
    fn new(
        py: Python<'_>,
        devices: Vec<String>,
        output: &str,
        fields: Vec<String>,
        parts: Vec<Given>,
        processes: Option<Processes>,
        shared: Option<PyRef<'_, Self>>,
    ) -> PyResult<Self> {
        let shared: Option<&Self> = shared.as_deref();
        failure::run(py, || {
            // whoever has this lock may ask for Python's, which is not held here
            let known: Vec<Uploaded> = match shared {
                Some(other) => {
                    let running = other.running.lock().unwrap_or_else(PoisonError::into_inner);
                    running.parts.iter().map(Part::known).collect()
                }
                None => vec![Uploaded::new(); parts.len()],
            };
            let devices: Vec<&'static dyn Device> =
                devices.iter().map(|name| Ok(&**lasting(name)?)).collect::<Result<_, Failure>>()?;
            let names: Vec<&str> = fields.iter().map(String::as_str).collect();
            let of_part = |((device, part), known)| Part::new(device, (output, &names[..]), part, known);
            let all = devices.iter().copied().zip(parts).zip(known);
            let parts = in_parts(all, of_part, of_part, has_ended)?;
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

    /// The results of the parts, on the mesh of each, with new values of some fields; of matrices
    /// their entries.
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

    /// Solves for the field `unknown`: the owned unknowns of each part as `f64`, a report, and the seconds that the
    /// preconditioner took to make, one with a polynomial a part if they are given.
    #[pyo3(signature = (unknown, right, method, limits, polynomials=None))]
    fn solve<'py>(
        &self,
        py: Python<'py>,
        unknown: usize,
        right: Vec<Right>,
        method: &str,
        limits: (f64, f64, usize),
        polynomials: Option<Vec<Polynomial>>,
    ) -> PyResult<(Vec<Bound<'py, PyByteArray>>, Report, f64)> {
        let (found, report, setup) = failure::run(py, || {
            let method: LinearMethod =
                method.parse().map_err(|e| Failure::about("ArgumentError", "method", format!("{e}")))?;
            let options = limited(limits);
            let polynomials: Vec<Option<Polynomial>> = match polynomials {
                Some(of_parts) => of_parts.into_iter().map(Some).collect(),
                None => right.iter().map(|_| None).collect(),
            };
            let given = right.into_iter().zip(polynomials).collect();
            let found = self.each(given, |part, communicator, (right, polynomial)| {
                let by = (method, options);
                let (x, report, setup) =
                    part.solve(communicator, unknown, &right, by, polynomial.as_ref())?;
                Ok((x, (report, setup)))
            })?;
            reported(found)
        })?;
        Ok((found.iter().map(|bytes| PyByteArray::new(py, bytes)).collect(), report, setup))
    }

    /// The products of the matrix and a vector, of which each part gives and gets its own unknowns.
    fn product<'py>(&self, py: Python<'py>, x: Vec<PyBackedBytes>) -> PyResult<Vec<Bound<'py, PyByteArray>>> {
        let found =
            failure::run(py, || self.each(x, |part, communicator, x| part.product(communicator, &x)))?;
        Ok(found.iter().map(|bytes| PyByteArray::new(py, bytes)).collect())
    }

    /// Solves with the matrix, by a method and a preconditioner of that name: the owned unknowns of
    /// each part, a report, and the seconds that the preconditioner took to make.
    #[pyo3(signature = (right, names, limits, freedoms))]
    fn solve_rows<'py>(
        &self,
        py: Python<'py>,
        right: Vec<Right>,
        names: (String, String),
        limits: (f64, f64, usize),
        freedoms: (usize, usize),
    ) -> PyResult<(Vec<Bound<'py, PyByteArray>>, Report, f64)> {
        let (found, report, setup) = failure::run(py, || {
            let refused =
                |what: &str, e: &dyn std::fmt::Display| Failure::about("ArgumentError", what, e.to_string());
            let method = names.0.parse().map_err(|e| refused("method", &e))?;
            let preconditioner = names.1.parse().map_err(|e| refused("preconditioner", &e))?;
            let choice = LinearChoice { method, preconditioner }.for_parts()?;
            let options = limited(limits);
            let found = self.each(right, |part, communicator, right| {
                let (x, report, setup) =
                    part.solve_rows(communicator, &right, (choice, options), freedoms)?;
                Ok((x, (report, setup)))
            })?;
            reported(found)
        })?;
        Ok((found.iter().map(|bytes| PyByteArray::new(py, bytes)).collect(), report, setup))
    }

    /// Seconds of an iteration of conjugate gradients for the field `unknown`, without what is exchanged: of
    /// the first part while the others do nothing, with its launches, and of all of them at once. Of a form
    /// without such a field, of its kernels.
    #[pyo3(signature = (unknown=None))]
    fn work_seconds(&self, py: Python<'_>, unknown: Option<usize>) -> PyResult<(f64, usize, f64)> {
        failure::run(py, || {
            let timed = |is_timed: &dyn Fn(usize) -> bool| {
                let wanted = (0..self.devices.len()).map(is_timed).collect();
                self.each(wanted, |part, _, is_timed| match is_timed {
                    true => part.work_seconds(unknown),
                    false => Ok((0.0, 0)),
                })
            };
            let (alone, launches) = first(timed(&|part| part == 0)?)?;
            let together =
                timed(&|_| true)?.into_iter().fold(0.0_f64, |most, (seconds, _)| most.max(seconds));
            Ok((alone, launches, together))
        })
    }
}

/// What all parts found, the report of the first, and the seconds that the longest setup took.
fn reported(found: Vec<(Vec<u8>, (LinearReport, f64))>) -> Result<(Vec<Vec<u8>>, Report, f64), Failure> {
    let (found, reports): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let setup = reports.iter().fold(0.0_f64, |most, (_, setup)| most.max(*setup));
    let (report, _) = first(reports)?;
    Ok((found, told(report), setup))
}

/// Limits of a solver: of residuals relative and absolute, and of iterations.
fn limited((relative, absolute, max_iterations): (f64, f64, usize)) -> LinearOptions {
    LinearOptions { relative, absolute, max_iterations, ..LinearOptions::default() }
}

/// What the first part reports; except for the time, all parts have the same.
fn first<T>(reports: Vec<T>) -> Result<T, Failure> {
    reports.into_iter().next().ok_or_else(|| Failure::new("InternalError", "no parts"))
}

/// What exchanges between some devices cost, measured: seconds of a kernel that does nothing, of a
/// sum, of an exchange of one number, and of each further byte.
#[pyfunction]
pub(crate) fn exchange_costs(py: Python<'_>, devices: Vec<String>) -> PyResult<(f64, f64, f64, f64)> {
    failure::run(py, || {
        let devices: Vec<&'static dyn Device> =
            devices.iter().map(|name| Ok(&**lasting(name)?)).collect::<Result<_, Failure>>()?;
        let ExchangeCosts { launch_s, sum_s, latency_s, byte_s } =
            ExchangeCosts::measure(&devices, Exchange::between(&devices))?;
        Ok((launch_s, sum_s, latency_s, byte_s))
    })
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
