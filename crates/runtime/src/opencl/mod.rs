//! OpenCL 1.2 through the system's loader.

mod enumerate;
pub(crate) mod intel;
mod trial;

pub(crate) use enumerate::list;
use enumerate::{Found, driver_error};

use crate::cache::Cache;
use crate::device::{Backend, DeviceInfo, Optimisation, Origin};
use crate::driver::{Call, CallValue, Driver};
use crate::error::RuntimeError;
use crate::foreign::{Foreign, Place};
use kingpost_codegen::Program;
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::device::CL_DEVICE_TYPE_CPU;
use opencl3::error_codes::ClError;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MAP_READ, CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR, ClMem};
use opencl3::types::{CL_BLOCKING, cl_mem, cl_uint};
use std::ffi::c_void;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use trial::Trial;

/// The byte that fresh memory holds.
const POISON: u8 = 0xFF;

/// Without them a compiler may take another version of the language than the printer wrote.
const OPTIONS: &str = "-cl-std=CL1.2";

/// One OpenCL device with its context and an in-order queue that records times.
pub(crate) struct OpenClDriver {
    info: DeviceInfo,
    device: opencl3::device::Device,
    context: Arc<Context>,
    queue: CommandQueue,
    /// Its number among what the loader lists.
    listed: usize,
    /// What became of programs that were tried.
    cache: Cache,
}

/// A built kernel, behind a lock because its arguments are part of it.
pub(crate) struct OpenClCode(Mutex<Kernel>);

/// A buffer, behind a lock because opencl3 wants it exclusively for writing.
pub(crate) struct OpenClMemory(Mutex<Buffer<u8>>);

impl OpenClMemory {
    fn get(&self) -> MutexGuard<'_, Buffer<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The context of a device; a processor has one for the process, because pocl 3.1 reads its library of functions for
/// each, which takes 0.7 s of the 0.9 s that the first program takes (Intel Xeon, 2026-11-30).
fn context_of(device: &opencl3::device::Device, driver: &str) -> Result<Arc<Context>, ClError> {
    static OF_PROCESSORS: Mutex<Vec<(usize, Arc<Context>)>> = Mutex::new(Vec::new());
    // a fault of a card may leave it unusable, and Oclgrind ends with its contexts
    if device.dev_type()? & CL_DEVICE_TYPE_CPU == 0 || driver.contains("Oclgrind") {
        return Context::from_device(device).map(Arc::new);
    }
    let mut known = OF_PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner);
    let id = device.id() as usize;
    if let Some((_, context)) = known.iter().find(|(of, _)| *of == id) {
        return Ok(Arc::clone(context));
    }
    let context = Arc::new(Context::from_device(device)?);
    known.push((id, Arc::clone(&context)));
    Ok(context)
}

impl OpenClDriver {
    /// The device at `index` among all devices of all platforms.
    pub(crate) fn open(index: usize, cache: Cache) -> Result<Self, RuntimeError> {
        let (Found { device, listed, .. }, info) = enumerate::nth(index)?;
        let name = info.name.clone();
        let failed = |call, e: ClError| driver_error(&name, call, e);
        let context = context_of(&device, &info.driver).map_err(|e| failed("clCreateContext", e))?;
        // SAFETY: the device is the one the context was made for.
        let queue = unsafe { CommandQueue::create(&context, device.id(), CL_QUEUE_PROFILING_ENABLE) }
            .map_err(|e| failed("clCreateCommandQueue", e))?;
        Ok(Self { info, device, context, queue, listed, cache })
    }

    fn failed(&self, call: &'static str) -> impl Fn(ClError) -> RuntimeError {
        let name = self.info.name.clone();
        move |e| driver_error(&name, call, e)
    }

    /// The group size that this kernel can have may be less than the device's.
    fn check_kernel(&self, program: &Program, kernel: &Kernel) -> Result<(), RuntimeError> {
        let limit =
            kernel.get_work_group_size(self.device.id()).map_err(self.failed("clGetKernelWorkGroupInfo"))?;
        let block = program.plan.block;
        let (size, limit) = (block.iter().product::<u64>(), limit as u64);
        if size <= limit {
            return Ok(());
        }
        let (entry, device) = (program.entry.clone(), self.info.name.clone());
        Err(RuntimeError::GroupTooLarge { entry, block, size, limit, device })
    }

    fn set_arguments(&self, kernel: &Kernel, call: &Call<'_, OpenClMemory>) -> Result<(), RuntimeError> {
        for (i, value) in (0 as cl_uint..).zip(&call.values) {
            // SAFETY: index, size and type were checked against the plan, which is the source's
            // own.
            let set = unsafe {
                match value {
                    CallValue::I32(v) => kernel.set_arg(i, v),
                    CallValue::I64(v) => kernel.set_arg(i, v),
                    CallValue::F32(v) => kernel.set_arg(i, v),
                    CallValue::F64(v) => kernel.set_arg(i, v),
                    CallValue::C64(v) => kernel.set_arg(i, v),
                    CallValue::C128(v) => kernel.set_arg(i, v),
                    CallValue::Memory(m) => {
                        let handle: cl_mem = m.get().get();
                        kernel.set_arg(i, &handle)
                    }
                }
            };
            set.map_err(self.failed("clSetKernelArg"))?;
        }
        Ok(())
    }
}

impl Driver for OpenClDriver {
    type Code = OpenClCode;
    type Memory = OpenClMemory;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn queue(&self) -> Arc<Mutex<()>> {
        // oclgrind 21.10 keeps one pool of workers for the process: kernels of two queues at once
        // give wrong results.
        static OCLGRIND: LazyLock<Arc<Mutex<()>>> = LazyLock::new(Arc::default);
        if self.is_checker() { Arc::clone(&OCLGRIND) } else { Arc::default() }
    }

    fn is_checker(&self) -> bool {
        self.info.driver.contains("Oclgrind")
    }

    fn build(
        &self,
        program: &Program,
        optimisation: Optimisation,
    ) -> Result<(OpenClCode, Origin), RuntimeError> {
        let refused = |log| RuntimeError::compile(&program.entry, &self.info.driver, &program.source, log);
        // opencl3 panics on a NUL inside source or name.
        if program.source.contains('\0') || program.entry.contains('\0') {
            return Err(refused("the source or the entry's name contains a NUL byte".into()));
        }
        let options = [&[OPTIONS], optimisation.options(Backend::OpenCl)].concat().join(" ");
        let (device, driver) = (self.listed, &*format!("{}, {}", self.info.name, self.info.driver));
        Trial { program, options: &options, device, driver }.run(&self.cache)?;
        let mut built = opencl3::program::Program::create_from_source(&self.context, &program.source)
            .map_err(self.failed("clCreateProgramWithSource"))?;
        if let Err(e) = built.build(&[self.device.id()], &options) {
            let log = built.get_build_log(self.device.id()).unwrap_or_default();
            return Err(refused(if log.trim().is_empty() { format!("{e} (no log)") } else { log }));
        }
        let kernel = Kernel::create(&built, &program.entry)
            .map_err(|e| RuntimeError::NoEntry { symbol: program.entry.clone(), reason: e.to_string() })?;
        self.check_kernel(program, &kernel)?;
        Ok((OpenClCode(Mutex::new(kernel)), Origin::Built))
    }

    fn allocate(&self, bytes: u64) -> Result<OpenClMemory, RuntimeError> {
        let failed =
            |reason: String| RuntimeError::Allocation { bytes, device: self.info.name.clone(), reason };
        let size = usize::try_from(bytes).map_err(|e| failed(e.to_string()))?;
        // SAFETY: no host pointer is given, so nothing is borrowed.
        let buffer = unsafe {
            Buffer::<u8>::create(&self.context, CL_MEM_READ_WRITE, size, std::ptr::null_mut::<c_void>())
        }
        .map_err(|e| failed(e.to_string()))?;
        Ok(OpenClMemory(Mutex::new(buffer)))
    }

    fn write(&self, memory: &OpenClMemory, data: &[u8]) -> Result<(), RuntimeError> {
        // SAFETY: sizes were compared, and the call blocks until `data` has been read.
        unsafe { self.queue.enqueue_write_buffer(&mut memory.get(), CL_BLOCKING, 0, data, &[]) }
            .map(drop)
            .map_err(self.failed("clEnqueueWriteBuffer"))
    }

    fn read(&self, memory: &OpenClMemory, out: &mut [u8]) -> Result<(), RuntimeError> {
        // SAFETY: sizes were compared, and the call blocks until `out` has been written.
        unsafe { self.queue.enqueue_read_buffer(&memory.get(), CL_BLOCKING, 0, out, &[]) }
            .map(drop)
            .map_err(self.failed("clEnqueueReadBuffer"))
    }

    fn fill(&self, memory: &OpenClMemory, byte: u8, bytes: u64) -> Result<(), RuntimeError> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        // oclgrind 21.10 takes what clEnqueueFillBuffer fills for unwritten, which poison has to be
        if self.is_checker() && byte != POISON {
            return self.write(memory, &vec![byte; size]);
        }
        // SAFETY: `bytes` is the size the buffer was made with; the pattern is copied by the call.
        unsafe { self.queue.enqueue_fill_buffer(&mut memory.get(), &[byte], 0, size, &[]) }
            .and_then(|event| event.wait())
            .map_err(self.failed("clEnqueueFillBuffer"))
    }

    fn copy(&self, from: &OpenClMemory, to: &OpenClMemory, bytes: u64) -> Result<(), RuntimeError> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        // SAFETY: both buffers have this size and differ (`Checked::copy`).
        unsafe { self.queue.enqueue_copy_buffer(&from.get(), &mut to.get(), 0, 0, size, &[]) }
            .and_then(|event| event.wait())
            .map_err(self.failed("clEnqueueCopyBuffer"))
    }

    fn shares(&self, place: Place) -> bool {
        // a checker sees only what lies in its own memory
        let is_host = self.device.dev_type().is_ok_and(|kind| kind & CL_DEVICE_TYPE_CPU != 0);
        place == Place::Host && is_host && !self.is_checker()
    }

    fn adopt(&self, memory: &Foreign<'_>) -> Result<OpenClMemory, RuntimeError> {
        let size = usize::try_from(memory.bytes).unwrap_or(usize::MAX);
        let (flags, address) = (CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, memory.address as *mut c_void);
        // SAFETY: the block is there and unused by others during the launch, for which the buffer
        // lives (`Foreign::new`); what is read-only is only read, which `admit` checks.
        let buffer = unsafe { Buffer::<u8>::create(&self.context, flags, size, address) };
        Ok(OpenClMemory(Mutex::new(buffer.map_err(self.failed("clCreateBuffer"))?)))
    }

    fn settle(&self, memory: &OpenClMemory) -> Result<(), RuntimeError> {
        // Mapping a buffer that uses host memory brings that memory up to date.
        let buffer = memory.get();
        let bytes = buffer.size().map_err(self.failed("clGetMemObjectInfo"))?;
        let mut address = std::ptr::null_mut();
        // SAFETY: the range is the whole buffer, and the call blocks.
        unsafe {
            self.queue.enqueue_map_buffer(&buffer, CL_BLOCKING, CL_MAP_READ, 0, bytes, &mut address, &[])
        }
        .map_err(self.failed("clEnqueueMapBuffer"))?;
        // SAFETY: mapped just now.
        unsafe { self.queue.enqueue_unmap_mem_object(buffer.get(), address, &[]) }
            .and_then(|event| event.wait())
            .map_err(self.failed("clEnqueueUnmapMemObject"))
    }

    fn run(&self, code: &OpenClCode, call: &Call<'_, OpenClMemory>) -> Result<f64, RuntimeError> {
        let kernel = code.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.set_arguments(&kernel, call)?;
        // `bind` checked that groups times block fits 63 bits.
        let block = call.block.map(|b| b as usize);
        let global = [0, 1, 2].map(|i| (call.grid[i] * call.block[i]) as usize);
        // SAFETY: three sizes each, alive during the call; the arguments are set.
        let event = unsafe {
            self.queue.enqueue_nd_range_kernel(
                kernel.get(),
                3,
                std::ptr::null(),
                global.as_ptr(),
                block.as_ptr(),
                &[],
            )
        }
        .map_err(self.failed("clEnqueueNDRangeKernel"))?;
        event.wait().map_err(self.failed("clWaitForEvents"))?;
        let start = event.profiling_command_start().map_err(self.failed("clGetEventProfilingInfo"))?;
        let end = event.profiling_command_end().map_err(self.failed("clGetEventProfilingInfo"))?;
        Ok(end.saturating_sub(start) as f64 * 1e-9)
    }
}
