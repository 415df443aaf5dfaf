//! The driver's primary context, and the guards that free what is made in it.

use super::spare::{Order, Spare};
use crate::cuda::ptxas::Resources;
use crate::error::{RuntimeError, Unavailable};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Functions of the driver that this backend calls; `cudarc` panics at the first use of a missing
/// one.
const SYMBOLS: [&str; 35] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGet",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDeviceTotalMem_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemsetD8_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyDtoD_v2",
    "cuPointerGetAttribute",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuStreamIsCapturing",
    "cuCtxSynchronize",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuModuleUnload",
    "cuFuncGetAttribute",
    "cuLaunchKernel",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventElapsedTime_v2",
    "cuEventDestroy_v2",
];

/// The number of cards, after every check that makes the driver's functions callable.
pub(crate) fn count() -> Result<usize, Unavailable> {
    // SAFETY: opens and closes the driver's library, which has no preconditions.
    if !unsafe { sys::is_culib_present() } {
        return Err(Unavailable::NoCudaDriver);
    }
    for symbol in SYMBOLS {
        // SAFETY: the library is present, so `culib` does not panic; the symbol is not called here.
        if unsafe { sys::culib().get::<unsafe extern "C" fn()>(symbol.as_bytes()) }.is_err() {
            return Err(Unavailable::OldCudaDriver { symbol });
        }
    }
    let none = |e: DriverError| Unavailable::NoCudaDevice { reason: format!("{:?}", e.0) };
    result::init().map_err(none)?;
    let count = usize::try_from(result::device::get_count().map_err(none)?).unwrap_or(0);
    if count == 0 {
        return Err(Unavailable::NoCudaDevice { reason: "it counts 0".into() });
    }
    Ok(count)
}

/// The primary context of one card; alive as long as anything made in it.
pub(crate) struct Context {
    pub(crate) name: String,
    device: sys::CUdevice,
    context: sys::CUcontext,
    spare: Spare,
    order: Order,
    /// The same of the host's memory, which takes a millisecond to pin and to release.
    spare_of_host: Spare,
}

// SAFETY: the driver's handles may be used from any thread once the context is current there, which
// `enter` does before every call.
unsafe impl Send for Context {}
// SAFETY: as above; the driver locks its own state.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn new(device: sys::CUdevice, name: String) -> Result<Arc<Self>, RuntimeError> {
        // SAFETY: the device came from the driver.
        let context = unsafe { result::primary_ctx::retain(device) }
            .map_err(|e| driver_error(&name, "cuDevicePrimaryCtxRetain", e))?;
        // SAFETY: as above.
        let total = unsafe { result::device::total_mem(device) }
            .map_err(|e| driver_error(&name, "cuDeviceTotalMem", e))?;
        Ok(Arc::new(Self {
            name,
            device,
            context,
            spare: Spare::of(total as u64),
            order: Order::default(),
            spare_of_host: Spare::of_host(),
        }))
    }

    /// Memory of at least some bytes.
    fn allocate(&self, bytes: u64) -> Result<sys::CUdeviceptr, DriverError> {
        // SAFETY: the context is current.
        let wait = || unsafe { sys::cuCtxSynchronize() }.result().is_ok();
        if let Some(block) = self.spare.take(bytes, || !self.order.must_wait() || wait()) {
            return Ok(block);
        }
        // SAFETY: the context is current; nothing reads the memory before it is filled.
        let allocate = || unsafe { result::malloc_sync(bytes as usize) };
        allocate().or_else(|_| {
            self.free_spare();
            allocate()
        })
    }

    /// Gives all memory that nobody uses back to the driver.
    fn free_spare(&self) {
        for block in self.spare.drain() {
            // SAFETY: allocated in `allocate`, freed once; the driver waits for what uses it.
            let _ = unsafe { result::free_sync(block) };
        }
    }

    /// Puts work on a stream, after all that may still use memory which it was lent.
    pub(crate) fn put_on(
        &self,
        stream: sys::CUstream,
        put: impl FnOnce() -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        if stream.is_null() {
            return put();
        }
        // what is captured does not run yet, and whoever captures may not wait
        if !is_captured(stream) && self.order.is_early() {
            // SAFETY: the default stream of the context, which is current.
            unsafe { result::stream::synchronize(result::stream::null()) }
                .map_err(self.failed("cuStreamSynchronize"))?;
        }
        let done = put();
        // whoever frees what the work uses does so after this
        self.order.put_elsewhere();
        done
    }

    /// Makes the context current on this thread.
    pub(crate) fn enter(&self) -> Result<(), RuntimeError> {
        // SAFETY: retained in `new`, released only when this value goes.
        unsafe { result::ctx::set_current(self.context) }.map_err(self.failed("cuCtxSetCurrent"))
    }

    pub(crate) fn failed(&self, call: &'static str) -> impl Fn(DriverError) -> RuntimeError {
        move |e| driver_error(&self.name, call, e)
    }
}

/// Whether work that is put on a stream is captured; yes if the driver cannot say.
fn is_captured(stream: sys::CUstream) -> bool {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: a stream of the context, which is current, and a valid pointer.
    let asked = unsafe { sys::cuStreamIsCapturing(stream, &raw mut status) }.result();
    asked.is_err() || status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
}

/// Releases memory of the host.
fn free_of_host(blocks: impl IntoIterator<Item = sys::CUdeviceptr>) {
    for block in blocks {
        // SAFETY: allocated in `CudaMemory::of_host`, freed once; what used it was waited for.
        let _ = unsafe { result::free_host(block as *mut _) };
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.enter().is_ok() {
            self.free_spare();
            free_of_host(self.spare_of_host.drain());
        }
        // SAFETY: retained once in `new`. There is nobody to tell of a failure.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

pub(crate) fn driver_error(device: &str, call: &'static str, error: DriverError) -> RuntimeError {
    RuntimeError::Driver { call, code: format!("{:?}", error.0), device: device.to_owned() }
}

/// Device memory.
pub(crate) struct CudaMemory {
    pub(crate) pointer: sys::CUdeviceptr,
    /// Memory of the host that cards write to and read, at the same address.
    pub(crate) is_of_host: bool,
    /// Bytes that were allocated on the card.
    bytes: u64,
    /// None if the memory is not ours.
    owner: Option<Arc<Context>>,
}

impl CudaMemory {
    pub(crate) fn new(context: &Arc<Context>, bytes: u64) -> Result<Self, RuntimeError> {
        let failed =
            |reason: String| RuntimeError::Allocation { bytes, device: context.name.clone(), reason };
        context.enter()?;
        let size = Spare::size(bytes);
        let pointer = context.allocate(size).map_err(|e| failed(format!("{:?}", e.0)))?;
        Ok(Self { pointer, is_of_host: false, bytes: size, owner: Some(Arc::clone(context)) })
    }

    /// Memory of the host that kernels reach.
    pub(crate) fn of_host(context: &Arc<Context>, bytes: u64) -> Result<Self, RuntimeError> {
        let failed =
            |reason: String| RuntimeError::Allocation { bytes, device: context.name.clone(), reason };
        let bytes = Spare::size(bytes);
        let size = usize::try_from(bytes).map_err(|e| failed(e.to_string()))?;
        context.enter()?;
        // what is kept of it was waited for
        let pointer = match context.spare_of_host.take(bytes, || true) {
            Some(block) => block,
            // SAFETY: the context is current; nothing reads the memory before it is filled. There
            // is one address space for all memory, as on each 64-bit system with a card since 2.0.
            None => unsafe { result::malloc_host(size, 0) }.map_err(|e| failed(format!("{:?}", e.0)))? as u64,
        };
        Ok(Self { pointer, is_of_host: true, bytes, owner: Some(Arc::clone(context)) })
    }

    /// The bytes of memory of the host, if it is that.
    pub(crate) fn host(&self) -> Option<*mut u8> {
        self.is_of_host.then_some(self.pointer as *mut u8)
    }

    /// Memory that the caller owns, if it is memory of this card.
    pub(crate) fn lent(context: &Context, address: u64) -> Result<Option<Self>, RuntimeError> {
        context.enter()?;
        let mut ordinal: i32 = -1;
        let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        // SAFETY: the attribute is an `int`; the driver takes any address and refuses one that it
        // does not know.
        let found =
            unsafe { sys::cuPointerGetAttribute((&raw mut ordinal).cast(), attribute, address) }.result();
        let ours = found.is_ok() && ordinal == context.device;
        Ok(ours.then_some(Self { pointer: address, is_of_host: false, bytes: 0, owner: None }))
    }

    /// Whether it was allocated on the card of a context.
    pub(crate) fn is_on(&self, context: &Context) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.device == context.device)
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        if let Some(context) = self.owner.as_ref().filter(|context| context.enter().is_ok()) {
            if self.is_of_host {
                // whatever writes to the memory ends before it goes
                // SAFETY: the context is current.
                let waited = unsafe { sys::cuCtxSynchronize() }.result().is_ok();
                let freed = match waited {
                    true => context.spare_of_host.keep(self.bytes, self.pointer),
                    false => vec![self.pointer],
                };
                free_of_host(freed);
                return;
            }
            for block in context.spare.keep(self.bytes, self.pointer) {
                // SAFETY: allocated in `new`, freed once; the driver waits for what uses it.
                let _ = unsafe { result::free_sync(block) };
            }
        }
    }
}

/// A loaded module and its entry point.
pub(crate) struct CudaCode {
    pub(crate) function: sys::CUfunction,
    /// Local memory that the launch provides, in bytes.
    pub(crate) local_bytes: u32,
    /// The compiler's report.
    pub(crate) resources: Option<Resources>,
    module: sys::CUmodule,
    /// Whether a launch may not have ended.
    pub(crate) running: AtomicBool,
    context: Arc<Context>,
}

// SAFETY: handles of the driver, used only with the context current.
unsafe impl Send for CudaCode {}
// SAFETY: as above.
unsafe impl Sync for CudaCode {}

impl CudaCode {
    pub(crate) fn new(context: &Arc<Context>, cubin: &[u8], entry: &str) -> Result<Self, RuntimeError> {
        context.enter()?;
        // SAFETY: the image is what NVRTC made for this architecture, or passed its digest in the
        // cache.
        let module = unsafe { result::module::load_data(cubin.as_ptr().cast()) }
            .map_err(context.failed("cuModuleLoadData"))?;
        let no_entry = |reason: String| RuntimeError::NoEntry { symbol: entry.into(), reason };
        // The guard exists before the look-up, so that a wrong name unloads the module.
        let mut code = Self {
            function: std::ptr::null_mut(),
            local_bytes: 0,
            resources: None,
            module,
            running: AtomicBool::new(false),
            context: Arc::clone(context),
        };
        let name = std::ffi::CString::new(entry).map_err(|e| no_entry(e.to_string()))?;
        // SAFETY: the module is loaded.
        code.function = unsafe { result::module::get_function(module, name) }
            .map_err(|e| no_entry(format!("{:?}", e.0)))?;
        Ok(code)
    }

    /// Lets launches provide that much local memory.
    pub(crate) fn allow_local_bytes(&mut self, bytes: u64) -> Result<(), RuntimeError> {
        self.local_bytes = u32::try_from(bytes).unwrap_or(u32::MAX); // `check_limits` keeps it far below
        if bytes == 0 {
            return Ok(());
        }
        self.context.enter()?;
        let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the function belongs to the loaded module.
        unsafe { result::function::set_function_attribute(self.function, attribute, bytes) }
            .map_err(self.context.failed("cuFuncSetAttribute"))
    }
}

impl Drop for CudaCode {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            if self.running.load(Ordering::Relaxed) {
                // SAFETY: the context is current.
                let _ = unsafe { sys::cuCtxSynchronize() };
            }
            // SAFETY: loaded in `new`, unloaded once; every launch was waited for.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// A pair of events around a launch.
pub(crate) struct Stopwatch {
    start: Event,
    end: Event,
    context: Arc<Context>,
}

/// An event of the current context.
struct Event(sys::CUevent);

// SAFETY: a handle of the driver, used with the context current, by one owner at a time.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    fn new(context: &Context) -> Result<Self, RuntimeError> {
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT);
        event.map(Self).map_err(context.failed("cuEventCreate"))
    }

    /// Records the event on the default stream.
    fn record(&self, context: &Context) -> Result<(), RuntimeError> {
        // SAFETY: the event was made in this context, which is current.
        unsafe { result::event::record(self.0, result::stream::null()) }
            .map_err(context.failed("cuEventRecord"))
    }
}

impl Stopwatch {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, RuntimeError> {
        context.enter()?;
        let (start, end) = (Event::new(context)?, Event::new(context)?);
        Ok(Self { start, end, context: Arc::clone(context) })
    }

    /// Seconds between the start and the end of what `work` puts on the default stream.
    pub(crate) fn measure(
        &self,
        work: impl FnOnce() -> Result<(), RuntimeError>,
    ) -> Result<f64, RuntimeError> {
        self.start()?;
        work()?;
        self.stop()?;
        self.seconds()
    }

    /// Starts it on the default stream.
    pub(crate) fn start(&self) -> Result<(), RuntimeError> {
        self.context.enter()?;
        self.start.record(&self.context)
    }

    /// Stops it there, after all before; the context is current.
    pub(crate) fn stop(&self) -> Result<(), RuntimeError> {
        self.end.record(&self.context)
    }

    /// Waits until it has stopped: the seconds in between.
    pub(crate) fn seconds(&self) -> Result<f64, RuntimeError> {
        let context = &*self.context;
        context.enter()?;
        // SAFETY: the event was recorded.
        unsafe { result::event::synchronize(self.end.0) }.map_err(context.failed("cuEventSynchronize"))?;
        // SAFETY: both events have been reached.
        let ms = unsafe { result::event::elapsed(self.start.0, self.end.0) }
            .map_err(context.failed("cuEventElapsedTime"))?;
        Ok(f64::from(ms) * 1e-3)
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            for event in [&self.start, &self.end] {
                // SAFETY: created in `new`, destroyed once; every launch was waited for.
                let _ = unsafe { result::event::destroy(event.0) };
            }
        }
    }
}
