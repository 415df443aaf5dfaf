//! Calls whose arguments are bound.

use crate::failure::{self, Failure};
use crate::lend;
use kingpost::runtime::{Arg, Device, Executable, Prepared, Recorded};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Functions whose calls are being captured, in any thread.
static CAPTURES: AtomicUsize = AtomicUsize::new(0);

/// Whether calls of some thread are being captured.
pub(crate) fn is_capturing() -> bool {
    CAPTURES.load(Ordering::Relaxed) > 0
}

/// Counts a function whose calls are captured, while it runs.
#[pyfunction]
pub(crate) fn capturing(begins: bool) {
    match begins {
        true => CAPTURES.fetch_add(1, Ordering::Relaxed),
        false => CAPTURES.fetch_sub(1, Ordering::Relaxed),
    };
}

/// A call with its arguments, checked when they were bound: ``call()`` runs it, and checks nothing
/// again.
///
/// On arrays of a card it is put on the stream of the binding, or on ``stream=``, and returns early.
#[pyclass(frozen, module = "kingpost")]
pub(crate) struct BoundCall {
    pub(crate) launches: Vec<Arc<Launch>>,
    /// What keeps the arrays.
    owners: Vec<Arc<Py<PyAny>>>,
    pub(crate) stream: Option<u64>,
    /// All launches as one.
    recorded: Option<Recorded<'static>>,
}

/// One kernel of a call.
pub(crate) struct Launch {
    device: Arc<dyn Device>,
    prepared: Arc<Prepared<'static>>,
    /// What it was prepared with, by name.
    pub(crate) args: Vec<(String, Arg<'static>)>,
}

impl Launch {
    /// Checks arguments.
    pub(crate) fn new(
        device: &Arc<dyn Device>,
        executable: &Executable,
        args: Vec<(String, Arg<'static>)>,
    ) -> Result<Self, Failure> {
        let named: Vec<(&str, Arg<'static>)> = args.iter().map(|(name, arg)| (name.as_str(), *arg)).collect();
        let prepared = Arc::new(device.prepare(executable, &named)?);
        Ok(Self { device: Arc::clone(device), prepared, args })
    }

    /// The same kernel with other arguments.
    pub(crate) fn again(&self, args: Vec<(String, Arg<'static>)>) -> Result<Self, Failure> {
        Self::new(&self.device, self.prepared.executable(), args)
    }

    /// What it launches, prepared.
    pub(crate) fn prepared(&self) -> &Prepared<'static> {
        &self.prepared
    }
}

/// Runs launches one after the other.
pub(crate) fn launch(launches: &[Arc<Launch>], stream: Option<u64>) -> Result<(), Failure> {
    let stream = stream.map(lend::stream);
    Ok(launches.iter().try_for_each(|l| l.device.repeat(&l.prepared, stream))?)
}

impl BoundCall {
    pub(crate) fn new(launch: Launch, owners: Py<PyAny>, stream: Option<u64>) -> Self {
        Self { launches: vec![Arc::new(launch)], owners: vec![Arc::new(owners)], stream, recorded: None }
    }
}

#[pymethods]
impl BoundCall {
    /// One call of several, in sequence; the stream is that of the first that has one.
    #[staticmethod]
    fn sequence(calls: Vec<Bound<'_, Self>>) -> Self {
        let calls = || calls.iter().map(Bound::get);
        Self {
            launches: calls().flat_map(|call| call.launches.iter().cloned()).collect(),
            owners: calls().flat_map(|call| call.owners.iter().cloned()).collect(),
            stream: calls().find_map(|call| call.stream),
            recorded: None,
        }
    }

    /// The same call as a graph of CUDA, which the driver takes about as fast as one kernel. On other
    /// devices, and where arrays are copied, it stays as it is.
    fn capture(&self, py: Python<'_>) -> PyResult<Self> {
        let recorded = failure::run(py, || {
            let [first, rest @ ..] = &self.launches[..] else { return Ok(None) };
            if rest.iter().any(|launch| !Arc::ptr_eq(&launch.device, &first.device)) {
                return Ok(None);
            }
            let prepared: Vec<_> = self.launches.iter().map(|launch| Arc::clone(&launch.prepared)).collect();
            Ok(Some(first.device.record(&prepared)?).filter(Recorded::is_graph))
        })?;
        let (launches, owners) = (self.launches.clone(), self.owners.clone());
        Ok(Self { launches, owners, stream: self.stream, recorded })
    }

    /// Whether it is a graph of CUDA.
    #[getter]
    fn is_graph(&self) -> bool {
        self.recorded.is_some()
    }

    /// The stream that it is put on unless another one is named; none: it runs to the end.
    #[getter]
    fn stream(&self) -> Option<u64> {
        self.stream
    }

    /// Runs once, on ``stream`` if one is named.
    #[pyo3(signature = (*, stream=None))]
    fn __call__(slf: &Bound<'_, Self>, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let this = slf.get();
        if is_capturing() && py.import("kingpost.capture")?.call_method1("take", (slf, stream))?.extract()? {
            return Ok(());
        }
        let stream = match stream {
            None => this.stream,
            Some(named) => py.import("kingpost.compiled")?.call_method1("_stream", (named,))?.extract()?,
        };
        failure::run(py, || match (&this.recorded, &this.launches[..]) {
            (Some(recorded), [first, ..]) => Ok(first.device.replay(recorded, stream.map(lend::stream))?),
            (_, launches) => launch(launches, stream),
        })
    }

    fn __repr__(&self) -> String {
        let kernels = match self.launches.len() {
            1 => "a kernel".to_owned(),
            n => format!("{n} kernels"),
        };
        let graph = if self.is_graph() { ", a graph" } else { "" };
        format!("<kingpost.BoundCall of {kernels}{graph}>")
    }
}
