//! Graphs that run while the host looks at what those before them left.

use super::context::{Context, CudaMemory, Stopwatch};
use crate::error::RuntimeError;
use crate::device::Running;
use cudarc::driver::result;
use cudarc::driver::sys;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory of the host that the card writes to by itself.
struct Pinned {
    address: *mut c_void,
    bytes: usize,
    context: Arc<Context>,
}

// SAFETY: memory of the process, used by one owner at a time.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(context: &Arc<Context>, bytes: usize) -> Result<Self, RuntimeError> {
        context.enter()?;
        // SAFETY: the context is current; nothing reads the memory before a copy has filled it.
        let address = unsafe { result::malloc_host(bytes, 0) }.map_err(context.failed("cuMemHostAlloc"))?;
        Ok(Self { address, bytes, context: Arc::clone(context) })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: allocated in `new`, freed once; `Run` has waited for the copy to it.
            let _ = unsafe { result::free_host(self.address) };
        }
    }
}

/// What a run needs besides its graph. Events and pinned memory take longer to make than a short graph runs, so
/// that those of ended runs serve later ones.
struct Slot {
    stopwatch: Stopwatch,
    staging: Pinned,
}

/// The slots of a card that no run uses.
#[derive(Clone, Default)]
pub(super) struct Slots(Arc<Mutex<Vec<Slot>>>);

impl Slots {
    fn take(&self, context: &Arc<Context>, bytes: usize) -> Result<Slot, RuntimeError> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = free.iter().position(|slot| slot.staging.bytes >= bytes) {
            return Ok(free.swap_remove(found));
        }
        Ok(Slot { stopwatch: Stopwatch::new(context)?, staging: Pinned::new(context, bytes)? })
    }

    /// Puts a graph on the default stream, and behind it a copy of the first bytes of `seen`.
    pub(super) fn run(
        &self,
        context: &Arc<Context>,
        graph: &dyn Fn() -> Result<(), RuntimeError>,
        seen: &CudaMemory,
        bytes: usize,
    ) -> Result<Run, RuntimeError> {
        let slot = self.take(context, bytes)?;
        slot.stopwatch.start()?;
        // from here on something may be on its way, for which the drop of the run waits
        let run = Run { slot: Some(slot), bytes, slots: self.clone() };
        let Some(slot) = &run.slot else { return Ok(run) };
        let put = graph().and_then(|()| {
            // SAFETY: the memory has these bytes, and `Run` keeps both ends until the copy has ended.
            unsafe {
                sys::cuMemcpyDtoHAsync_v2(slot.staging.address, seen.pointer, bytes, result::stream::null())
            }
            .result()
            .map_err(context.failed("cuMemcpyDtoHAsync"))
        });
        slot.stopwatch.stop()?;
        put.map(|()| run)
    }
}

/// A graph on its way.
pub(super) struct Run {
    /// None once it has ended.
    slot: Option<Slot>,
    bytes: usize,
    slots: Slots,
}

impl Run {
    /// Waits for the end: the seconds that it took.
    fn wait<T>(&mut self, look: impl FnOnce(&[u8]) -> T) -> Result<Option<(f64, T)>, RuntimeError> {
        let Some(slot) = self.slot.take() else { return Ok(None) };
        let seconds = slot.stopwatch.seconds()?;
        // SAFETY: the copy has written these bytes and has ended.
        let bytes = unsafe { std::slice::from_raw_parts(slot.staging.address.cast::<u8>(), self.bytes) };
        let seen = look(bytes);
        self.slots.0.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
        Ok(Some((seconds, seen)))
    }
}

impl Running for Run {
    fn finish(mut self: Box<Self>) -> Result<(f64, Vec<u8>), RuntimeError> {
        // a run that has ended is gone
        Ok(self.wait(<[u8]>::to_vec)?.unwrap_or_default())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // nobody is left to tell of a failure
        let _ = self.wait(|_| ());
    }
}
