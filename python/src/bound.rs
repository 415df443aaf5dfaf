//! Calls whose arguments are bound.

use crate::failure;
use crate::lend;
use purlin::runtime::{Device, Prepared};
use pyo3::prelude::*;
use std::sync::Arc;

/// A call with its arguments, checked when they were bound: ``call()`` runs it, and checks nothing
/// again.
///
/// On arrays of a card it is put on the stream of the binding, or on ``stream=``, and returns early.
#[pyclass(frozen, module = "purlin")]
pub(crate) struct BoundCall {
    launches: Vec<Arc<Launch>>,
    /// What keeps the arrays.
    owners: Vec<Arc<Py<PyAny>>>,
    stream: Option<u64>,
}

/// One kernel of a call.
struct Launch {
    device: Arc<dyn Device>,
    prepared: Prepared<'static>,
}

impl BoundCall {
    pub(crate) fn new(
        device: &Arc<dyn Device>,
        prepared: Prepared<'static>,
        owners: Py<PyAny>,
        stream: Option<u64>,
    ) -> Self {
        let launch = Launch { device: Arc::clone(device), prepared };
        Self { launches: vec![Arc::new(launch)], owners: vec![Arc::new(owners)], stream }
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
        }
    }

    /// The stream that it is put on unless another one is named; none: it runs to the end.
    #[getter]
    fn stream(&self) -> Option<u64> {
        self.stream
    }

    /// Runs once, on ``stream`` if one is named.
    #[pyo3(signature = (*, stream=None))]
    fn __call__(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let stream = match stream {
            None => self.stream,
            Some(named) => py.import("purlin.compiled")?.call_method1("_stream", (named,))?.extract()?,
        };
        let stream = stream.map(lend::stream);
        failure::run(py, || {
            Ok(self.launches.iter().try_for_each(|l| l.device.repeat(&l.prepared, stream))?)
        })
    }

    fn __repr__(&self) -> String {
        let kernels = match self.launches.len() {
            1 => "a kernel".to_owned(),
            n => format!("{n} kernels"),
        };
        format!("<purlin.BoundCall of {kernels}>")
    }
}
