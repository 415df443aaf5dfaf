//! A card, by the functions of the driver.

use super::context::{self, Context, CudaCode, CudaMemory, Stopwatch, driver_error};
use super::nvml::Meter;
use super::running::Stopwatches;
use super::staging::Staging;
use super::{graph, nvrtc, ptxas, tensors};
use crate::cache::Cache;
use crate::device::{Backend, DeviceInfo, Optimisation, Origin, Replay, Running, Stream};
use crate::driver::{Call, CallValue, Driver};
use crate::error::{RuntimeError, Unavailable};
use crate::foreign::{Foreign, Place};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use kingpost_codegen::Program;
use std::ffi::{c_uint, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// One card.
pub(crate) struct CudaDriver {
    info: DeviceInfo,
    cache: Cache,
    stopwatch: Stopwatch,
    /// For what runs concurrently with the host.
    stopwatches: Stopwatches,
    /// None until it is asked for.
    meter: OnceLock<Option<Meter>>,
    staging: Staging,
    context: Arc<Context>,
}

/// Every card the driver shows.
pub(crate) fn list() -> Result<Vec<DeviceInfo>, Unavailable> {
    let none = |e: DriverError| Unavailable::NoCudaDevice { reason: format!("{:?}", e.0) };
    (0..context::count()?).map(|i| card(i).map(|(_, info)| info).map_err(none)).collect()
}

/// The handle and the limits of the card at `index`; [`context::count`] has been called.
pub(super) fn card(index: usize) -> Result<(sys::CUdevice, DeviceInfo), DriverError> {
    let device = result::device::get(i32::try_from(index).unwrap_or(i32::MAX))?;
    // SAFETY: the device came from the driver.
    let get = |a: Attribute| unsafe { result::device::get_attribute(device, a) };
    let number = |a: Attribute| get(a).map(|v| u64::try_from(v).unwrap_or(0));
    // SAFETY: as above.
    let memory = unsafe { result::device::total_mem(device) }?;
    let mut version = 0;
    // SAFETY: a valid pointer.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result()?;
    let (major, minor) = (
        get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    let info = DeviceInfo {
        name: result::device::get_name(device)?,
        backend: Backend::Cuda,
        index,
        driver: format!("NVIDIA driver for CUDA {}.{}", version / 1000, version % 1000 / 10),
        compute_units: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
        max_work_group_size: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_work_item_sizes: [
            number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        ],
        max_grid: [
            number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ],
        // Beyond 48 KiB the launch provides it and the kernel opts in.
        local_mem_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        private_mem_bytes: None,
        global_mem_bytes: memory as u64,
        fp64: major >= 2,
        int64_atomics: major >= 2,
        clock_mhz: (number(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)? / 1000) as u32,
        arch: format!("sm_{major}{minor}"),
        vector_bytes: 0,
        core_cache_bytes: 0,
        // bytes as hexadecimal digits; a driver without them has one card of the name
        uuid: result::device::get_uuid(device)
            .ok()
            .map(|uuid| uuid.bytes.iter().map(|byte| format!("{:02x}", *byte as u8)).collect()),
    };
    Ok((device, info))
}

impl CudaDriver {
    /// The card at `index`.
    pub(crate) fn open(index: usize, cache: Cache) -> Result<Self, RuntimeError> {
        let count = context::count()?;
        let name = format!("cuda:{index}");
        if index >= count {
            let known = (0..count).map(|i| format!("`cuda:{i}`")).collect::<Vec<_>>().join(", ");
            return Err(RuntimeError::UnknownDevice { name, known });
        }
        let (device, info) = card(index).map_err(|e| driver_error(&name, "cuDeviceGetAttribute", e))?;
        let context = Context::new(device, info.name.clone())?;
        Ok(Self {
            stopwatch: Stopwatch::new(&context)?,
            stopwatches: Stopwatches::default(),
            meter: OnceLock::new(),
            staging: Staging::default(),
            info,
            cache,
            context,
        })
    }

    /// The block size that this kernel's registers allow may be less than the card's.
    fn check_kernel(&self, program: &Program, code: &CudaCode) -> Result<(), RuntimeError> {
        let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        // SAFETY: the function belongs to a loaded module.
        let limit = unsafe { result::function::get_function_attribute(code.function, attribute) }
            .map_err(self.context.failed("cuFuncGetAttribute"))?;
        let block = program.plan.block;
        let (size, limit) = (block.iter().product::<u64>(), u64::try_from(limit).unwrap_or(0));
        if size <= limit {
            return Ok(());
        }
        let (entry, device) = (program.entry.clone(), self.info.name.clone());
        Err(RuntimeError::GroupTooLarge { entry, block, size, limit, device })
    }
}

fn dimensions(sizes: [u64; 3]) -> (c_uint, c_uint, c_uint) {
    // `bind` and `check_limits` keep them within the driver's own limits, which are 32-bit numbers.
    let [x, y, z] = sizes.map(|v| c_uint::try_from(v).unwrap_or(c_uint::MAX));
    (x, y, z)
}

impl Driver for CudaDriver {
    type Code = CudaCode;
    type Memory = CudaMemory;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn build(
        &self,
        program: &Program,
        optimisation: Optimisation,
    ) -> Result<(CudaCode, Origin), RuntimeError> {
        let object = nvrtc::compile_program(&self.info.arch, program, optimisation, &self.cache)?;
        let mut code = CudaCode::new(&self.context, &object.cubin, &program.entry)?;
        self.check_kernel(program, &code)?;
        code.allow_local_bytes(program.plan.dynamic_local_bytes)?;
        code.resources = object.resources.into_iter().find(|r| r.entry == program.entry);
        Ok((code, object.origin))
    }

    fn resources(&self, code: &CudaCode) -> Option<ptxas::Resources> {
        code.resources.clone()
    }

    fn allocate(&self, bytes: u64) -> Result<CudaMemory, RuntimeError> {
        CudaMemory::new(&self.context, bytes)
    }

    fn allocate_visible(&self, bytes: u64) -> Result<CudaMemory, RuntimeError> {
        CudaMemory::of_host(&self.context, bytes)
    }

    fn see(&self, memory: &CudaMemory, first: u64, out: &mut [u8]) -> Result<(), RuntimeError> {
        let Some(address) = memory.host() else {
            self.context.enter()?;
            // SAFETY: the bytes are within the memory.
            return unsafe { result::memcpy_dtoh_sync(out, memory.pointer + first) }
                .map_err(self.context.failed("cuMemcpyDtoH"));
        };
        // SAFETY: the bytes are within the memory. Whoever reads them has waited for what wrote them.
        unsafe { std::ptr::copy_nonoverlapping(address.add(first as usize), out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    fn write(&self, memory: &CudaMemory, data: &[u8]) -> Result<(), RuntimeError> {
        if Staging::takes(data.len()) && memory.host().is_none() {
            return self.staging.write(&self.context, memory.pointer, data);
        }
        self.context.enter()?;
        // SAFETY: sizes were compared.
        unsafe { result::memcpy_htod_sync(memory.pointer, data) }.map_err(self.context.failed("cuMemcpyHtoD"))
    }

    fn read(&self, memory: &CudaMemory, out: &mut [u8]) -> Result<(), RuntimeError> {
        if Staging::takes(out.len()) && memory.host().is_none() {
            return self.staging.read(&self.context, memory.pointer, out);
        }
        self.context.enter()?;
        // SAFETY: sizes were compared.
        unsafe { result::memcpy_dtoh_sync(out, memory.pointer) }.map_err(self.context.failed("cuMemcpyDtoH"))
    }

    fn fill(&self, memory: &CudaMemory, byte: u8, bytes: u64) -> Result<(), RuntimeError> {
        self.context.enter()?;
        if let Some(address) = memory.host() {
            self.wait_all()?;
            // SAFETY: `bytes` is the size of the memory, and no kernel runs.
            unsafe { std::ptr::write_bytes(address, byte, bytes as usize) };
            return Ok(());
        }
        // SAFETY: `bytes` is the size of the memory.
        unsafe { result::memset_d8_sync(memory.pointer, byte, bytes as usize) }
            .map_err(self.context.failed("cuMemsetD8"))
    }

    fn copy(&self, from: &CudaMemory, to: &CudaMemory, bytes: u64) -> Result<(), RuntimeError> {
        self.context.enter()?;
        // SAFETY: both have this size and differ.
        unsafe { result::memcpy_dtod_sync(to.pointer, from.pointer, bytes as usize) }
            .map_err(self.context.failed("cuMemcpyDtoD"))
    }

    fn shares(&self, place: Place) -> bool {
        place == Place::Cuda
    }

    fn adopt(&self, memory: &Foreign<'_>) -> Result<CudaMemory, RuntimeError> {
        CudaMemory::lent(&self.context, memory.address)?.ok_or_else(|| RuntimeError::OtherDevice {
            what: format!("an array of {} bytes", memory.bytes),
            device: self.info.name.clone(),
        })
    }

    fn wait(&self, stream: u64) -> Result<(), RuntimeError> {
        self.context.enter()?;
        // SAFETY: `Foreign::after` and `Stream::new` promise that it is a stream of this card.
        unsafe { result::stream::synchronize(stream as sys::CUstream) }
            .map_err(self.context.failed("cuStreamSynchronize"))
    }

    fn wait_all(&self) -> Result<(), RuntimeError> {
        self.context.enter()?;
        // SAFETY: the context is current.
        unsafe { sys::cuCtxSynchronize() }.result().map_err(self.context.failed("cuCtxSynchronize"))
    }

    fn enqueue(
        &self,
        code: &CudaCode,
        call: &Call<'_, CudaMemory>,
        stream: Stream,
        wait: bool,
    ) -> Result<(), RuntimeError> {
        self.context.enter()?;
        code.running.store(true, Ordering::Relaxed);
        let on = stream.0 as sys::CUstream;
        self.context.put_on(on, || self.launch(code, call, on))?;
        if wait { self.wait(stream.0) } else { Ok(()) }
    }

    fn record(
        &self,
        put: &mut dyn FnMut(Stream) -> Result<(), RuntimeError>,
    ) -> Result<Option<Box<dyn Replay>>, RuntimeError> {
        self.context.enter()?;
        let graph = graph::Graph::of(&self.context, |stream| put(Stream(stream as u64)))?;
        Ok(Some(Box::new(graph)))
    }

    fn rerun(&self, graph: &dyn Replay) -> Result<f64, RuntimeError> {
        // the default stream, on which the stopwatch is
        self.stopwatch.measure(|| graph.replay(Some(Stream(0))))
    }

    fn begin(&self, graph: &dyn Replay) -> Result<Option<Box<dyn Running>>, RuntimeError> {
        // the default stream, on which stopwatches are
        Ok(Some(Box::new(self.stopwatches.run(&self.context, || graph.replay(Some(Stream(0))))?)))
    }

    fn joules(&self) -> Option<f64> {
        self.meter.get_or_init(|| Meter::of(self.info.uuid.as_deref()?)).as_ref()?.joules()
    }

    fn put(&self, calls: &[(&CudaCode, Call<'_, CudaMemory>)]) -> Result<bool, RuntimeError> {
        self.context.enter()?;
        calls.iter().try_for_each(|(code, call)| {
            code.running.store(true, Ordering::Relaxed);
            self.launch(code, call, result::stream::null())
        })?;
        Ok(true)
    }

    fn run(&self, code: &CudaCode, call: &Call<'_, CudaMemory>) -> Result<f64, RuntimeError> {
        self.stopwatch.measure(|| self.launch(code, call, result::stream::null()))
    }

    fn most_at_once(&self) -> usize {
        usize::MAX
    }

    fn run_all(&self, calls: &[(&CudaCode, Call<'_, CudaMemory>)]) -> Result<f64, RuntimeError> {
        let launch = |(code, call): &(&CudaCode, _)| {
            code.running.store(true, Ordering::Relaxed); // one that fails leaves those before it at work
            self.launch(code, call, result::stream::null())
        };
        let Some(nodes) = graph::repeated(calls) else {
            return self.stopwatch.measure(|| calls.iter().try_for_each(launch));
        };
        self.context.enter()?;
        calls[..nodes].iter().for_each(|(code, _)| code.running.store(true, Ordering::Relaxed));
        let graph = graph::Graph::of(&self.context, |stream| {
            calls[..nodes].iter().try_for_each(|(code, call)| self.launch(code, call, stream))
        })?;
        let whole = calls.len() - calls.len() % nodes;
        self.stopwatch.measure(|| {
            (0..whole / nodes).try_for_each(|_| graph.launch(result::stream::null()))?;
            calls[whole..].iter().try_for_each(launch)
        })
    }
}

impl CudaDriver {
    /// Puts a launch on a stream; the context is current.
    fn launch(
        &self,
        code: &CudaCode,
        call: &Call<'_, CudaMemory>,
        stream: sys::CUstream,
    ) -> Result<(), RuntimeError> {
        let mut arguments: Vec<*mut c_void> = call
            .values
            .iter()
            .map(|value| match value {
                CallValue::I32(v) => std::ptr::from_ref(v).cast_mut().cast(),
                CallValue::I64(v) => std::ptr::from_ref(v).cast_mut().cast(),
                CallValue::F32(v) => std::ptr::from_ref(v).cast_mut().cast(),
                CallValue::F64(v) => std::ptr::from_ref(v).cast_mut().cast(),
                CallValue::C64(v) => std::ptr::from_ref(v).cast_mut().cast(),
                CallValue::C128(v) => std::ptr::from_ref(v).cast_mut().cast(),
                CallValue::Memory(m) => std::ptr::from_ref(&m.pointer).cast_mut().cast(),
            })
            .collect();
        let maps = call.maps.iter().map(|map| tensors::encode(&self.context, map, &call.values));
        let maps = maps.collect::<Result<Vec<sys::CUtensorMap>, _>>()?;
        arguments.extend(maps.iter().map(|map| std::ptr::from_ref(map).cast_mut().cast::<c_void>()));
        let (grid, block) = (dimensions(call.grid), dimensions(call.block));
        // SAFETY: the arguments match the plan, which is the source's own; the driver only reads
        // them, before it returns.
        unsafe { result::launch_kernel(code.function, grid, block, code.local_bytes, stream, &mut arguments) }
            .map_err(self.context.failed("cuLaunchKernel"))
    }
}
