//! Launches that repeat, as a graph of CUDA's: the driver takes a graph of a hundred launches about as
//! fast as a few of them one by one.

use super::context::{Context, CudaCode, CudaMemory};
use crate::device::{Replay, Stream};
use crate::driver::{Call, CallValue};
use crate::error::RuntimeError;
use cudarc::driver::result;
use cudarc::driver::sys;
use kingpost_ir::symmetry::Element;
use std::sync::Arc;

/// Fewest launches for which a graph is made.
const MIN_LAUNCHES: usize = 512;
/// Most launches after which a sequence repeats.
const MAX_PERIOD: usize = 64;
/// Launches of a graph, or one period more.
const NODES: usize = 128;

type Launch<'a> = (&'a CudaCode, Call<'a, CudaMemory>);

/// How many launches from the beginning on make a graph that repeats; none if a graph does not pay.
pub(super) fn repeated(calls: &[Launch<'_>]) -> Option<usize> {
    if calls.len() < MIN_LAUNCHES {
        return None;
    }
    let repeats = |period: &usize| calls.iter().zip(&calls[*period..]).all(|(a, b)| same(a, b));
    let period = (1..=MAX_PERIOD).find(repeats)?;
    Some(period * NODES.div_ceil(period))
}

/// Whether two launches do the same.
fn same((code, call): &Launch<'_>, (other_code, other): &Launch<'_>) -> bool {
    std::ptr::eq(*code, *other_code)
        && call.grid == other.grid
        && call.block == other.block
        && call.maps == other.maps
        && call.values.len() == other.values.len()
        && call.values.iter().zip(&other.values).all(|(a, b)| match (a, b) {
            (CallValue::I32(a), CallValue::I32(b)) => a == b,
            (CallValue::I64(a), CallValue::I64(b)) => a == b,
            (CallValue::F32(a), CallValue::F32(b)) => a.to_bits() == b.to_bits(),
            (CallValue::F64(a), CallValue::F64(b)) => a.to_bits() == b.to_bits(),
            (CallValue::C64(a), CallValue::C64(b)) => a.is_same(*b),
            (CallValue::C128(a), CallValue::C128(b)) => a.is_same(*b),
            (CallValue::Memory(a), CallValue::Memory(b)) => a.pointer == b.pointer,
            (
                CallValue::I32(_)
                | CallValue::I64(_)
                | CallValue::F32(_)
                | CallValue::F64(_)
                | CallValue::C64(_)
                | CallValue::C128(_)
                | CallValue::Memory(_),
                _,
            ) => false,
        })
}

/// A graph that can be launched.
pub(super) struct Graph {
    exec: sys::CUgraphExec,
    context: Arc<Context>,
}

impl Graph {
    /// The graph of what `put` puts on a stream; the context is current.
    pub(super) fn of(
        context: &Arc<Context>,
        put: impl FnOnce(sys::CUstream) -> Result<(), RuntimeError>,
    ) -> Result<Self, RuntimeError> {
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(context.failed("cuStreamCreate"))?;
        let graph = Self::on(context, stream, || put(stream));
        // SAFETY: created above, and nothing runs on it: what was put there went into the graph.
        let destroyed = unsafe { result::stream::destroy(stream) };
        let graph = graph?;
        destroyed.map_err(context.failed("cuStreamDestroy"))?;
        Ok(graph)
    }

    /// The graph of what `put` puts on a stream, and on others that wait for it and that it waits
    /// for in the end; the context is current.
    pub(super) fn on<E: From<RuntimeError>>(
        context: &Arc<Context>,
        stream: sys::CUstream,
        put: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, E> {
        let graph = captured(context, put, stream)?;
        let mut exec = std::ptr::null_mut();
        // SAFETY: the graph was captured above.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0) }.result();
        // SAFETY: as above; what was made of it stays.
        let forgotten = unsafe { sys::cuGraphDestroy(graph) }.result();
        made.map_err(context.failed("cuGraphInstantiateWithFlags"))?;
        let graph = Self { exec, context: Arc::clone(context) };
        forgotten.map_err(context.failed("cuGraphDestroy"))?;
        Ok(graph)
    }

    /// Puts the launches on a stream of the context, which is current.
    pub(super) fn launch(&self, stream: sys::CUstream) -> Result<(), RuntimeError> {
        // SAFETY: instantiated in `of`, in the context that is current.
        unsafe { sys::cuGraphLaunch(self.exec, stream) }
            .result()
            .map_err(self.context.failed("cuGraphLaunch"))
    }
}

// SAFETY: a graph of the driver belongs to no thread; it is launched by one at a time (`Replay::replay`).
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

impl Replay for Graph {
    fn replay(&self, stream: Option<Stream>) -> Result<(), RuntimeError> {
        self.context.enter()?;
        let on = stream.map_or(result::stream::null(), |stream| stream.0 as sys::CUstream);
        self.context.put_on(on, || self.launch(on))?;
        if stream.is_some() {
            return Ok(());
        }
        // SAFETY: the default stream of the context that is current.
        unsafe { result::stream::synchronize(on) }.map_err(self.context.failed("cuStreamSynchronize"))
    }
}

/// What `put` puts on a stream that holds nothing else, as a graph.
fn captured<E: From<RuntimeError>>(
    context: &Context,
    put: impl FnOnce() -> Result<(), E>,
    stream: sys::CUstream,
) -> Result<sys::CUgraph, E> {
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    // SAFETY: a stream of the current context that is not the default one.
    unsafe { sys::cuStreamBeginCapture_v2(stream, mode) }
        .result()
        .map_err(context.failed("cuStreamBeginCapture"))?;
    let put = put();
    let mut graph = std::ptr::null_mut();
    // SAFETY: the capture began above; it ends whatever became of the launches.
    let ended = unsafe { sys::cuStreamEndCapture(stream, &mut graph) }.result();
    if let Err(error) = put {
        if !graph.is_null() {
            // SAFETY: what was captured so far, of which nothing was made.
            let _ = unsafe { sys::cuGraphDestroy(graph) };
        }
        return Err(error);
    }
    ended.map_err(context.failed("cuStreamEndCapture"))?;
    Ok(graph)
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the context is current.
            let _ = unsafe { sys::cuCtxSynchronize() };
            // SAFETY: instantiated in `of`, destroyed once; every launch was waited for.
            let _ = unsafe { sys::cuGraphExecDestroy(self.exec) };
        }
    }
}
