//! Host C: the cores of this machine through the system's C compiler and OpenMP.
//!
//! The source of a program for this backend defines, besides its kernel,
//!
//! ```c
//! void <entry>_launch(void *const *args, const int64_t *grid);
//! ```
//!
//! where `args[i]` points to the value of argument `i` (for a buffer: to the pointer to its first
//! element) and `grid[0..3]` are the numbers of work-groups. The kernel loops over groups itself.

mod compiler;
mod memory;
pub(crate) mod openmp;

pub(crate) use compiler::{Compiler, in_path};

use crate::cache::Cache;
use crate::device::{Backend, DeviceInfo, Optimisation, Origin};
use crate::driver::{Call, CallValue, Driver};
use crate::error::{RuntimeError, Unavailable};
use crate::foreign::{Foreign, Place};
use crate::fork;
use compiler::Object;
use kingpost_codegen::Program;
use memory::HostMemory;
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Local arrays of a group, which belong to the thread that runs it: more than any GPU has.
const LOCAL_BYTES: u64 = 1 << 20;

/// Work-items are iterations of a loop; more than any GPU has.
const MAX_GROUP: u64 = 4096;

type Launch = unsafe extern "C" fn(*const *const c_void, *const i64);

/// The arguments of a launch, which the thread that runs it reads while the caller waits.
struct Arguments(*const *const c_void);

// SAFETY: what they point to lives until the launch has ended, and nobody else uses it meanwhile.
unsafe impl Send for Arguments {}

/// The host's cores.
pub(crate) struct HostDriver {
    info: DeviceInfo,
    compiler: Compiler,
    cache: Cache,
    /// What `-march=native` means here: a cache may be shared by machines.
    arch_key: String,
}

/// A loaded shared object.
pub(crate) struct HostCode {
    launch: Launch,
    _library: libloading::Library,
}

impl HostDriver {
    /// The host with the compiler of the environment.
    pub(crate) fn open(cache: Cache) -> Result<Self, RuntimeError> {
        Ok(Self::with(Compiler::find()?, cache))
    }

    /// The host with the compiler at `path`.
    pub(crate) fn with_compiler(path: PathBuf, cache: Cache) -> Result<Self, RuntimeError> {
        Ok(Self::with(Compiler::at(path, Vec::new())?, cache))
    }

    /// The loaded object of `program`. A stored one may need a library that is gone: it is built
    /// again.
    fn load(
        &self,
        program: &Program,
        optimisation: Optimisation,
    ) -> Result<(Object, libloading::Library), RuntimeError> {
        let mut fresh = false;
        loop {
            let object = self.compiler.object(program, optimisation, &self.arch_key, &self.cache, fresh)?;
            match self.opened(&object.code)? {
                Ok(library) => return Ok((object, library)),
                Err(_) if object.origin == Origin::Disk => fresh = true,
                Err(e) => {
                    return Err(RuntimeError::Load { entry: program.entry.clone(), reason: e.to_string() });
                }
            }
        }
    }

    /// Loads an object from a file that only this user can open, and that goes at once: what is loaded
    /// is what was compiled, or what was read from the cache and compared with its digest.
    fn opened(&self, code: &[u8]) -> Result<Result<libloading::Library, libloading::Error>, RuntimeError> {
        let dir = self.cache.private_dir().map_err(RuntimeError::io("make a temporary directory"))?;
        // the loader takes a name that it knows for what it has loaded
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = dir.path().join(format!("kernel-{}.so", NEXT.fetch_add(1, Ordering::Relaxed)));
        std::fs::write(&path, code).map_err(RuntimeError::io("write the compiled object"))?;
        // SAFETY: the object was compiled from a kernel, which has no initialisers with side
        // effects.
        Ok(unsafe { libloading::Library::new(&path) })
    }

    fn with(compiler: Compiler, cache: Cache) -> Self {
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let features = field(&cpu, "flags").or_else(|| field(&cpu, "Features")).unwrap_or_default();
        let name = field(&cpu, "model name").unwrap_or("host processor").to_owned();
        let arch_key = format!("{} {name} {features}", std::env::consts::ARCH);
        Self { info: host_info(name, &cpu, &compiler), compiler, cache, arch_key }
    }
}

fn host_info(name: String, cpu: &str, compiler: &Compiler) -> DeviceInfo {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    DeviceInfo {
        name,
        backend: Backend::C,
        index: 0,
        driver: compiler.version.clone(),
        compute_units: u32::try_from(cores).unwrap_or(u32::MAX),
        max_work_group_size: MAX_GROUP,
        max_work_item_sizes: [MAX_GROUP; 3],
        max_grid: [i64::MAX as u64; 3],
        local_mem_bytes: LOCAL_BYTES,
        private_mem_bytes: None,
        global_mem_bytes: memory_total(),
        fp64: true,
        int64_atomics: true,
        clock_mhz: field(cpu, "cpu MHz").and_then(|s| s.parse::<f64>().ok()).map_or(0, |mhz| mhz as u32),
        arch: std::env::consts::ARCH.into(),
        vector_bytes: vector_bytes(cpu),
        core_cache_bytes: core_cache_bytes(),
        uuid: None,
    }
}

/// Bytes of the widest vectors that `-march=native` uses.
fn vector_bytes(cpu: &str) -> u64 {
    let flags = field(cpu, "flags").unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|f| f == flag);
    match (has("avx512f"), has("avx")) {
        (true, _) => 64,
        (false, true) => 32,
        // SSE2 and NEON
        (false, false) => 16,
    }
}

/// Bytes of the second-level cache of the first core; 0 if the system does not say.
fn core_cache_bytes() -> u64 {
    let size = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size").unwrap_or_default();
    let kib = size.trim().strip_suffix('K').and_then(|digits| digits.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// The first value of `name` in `/proc/cpuinfo`.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// Bytes of memory of this machine; 0 if the system does not say.
fn memory_total() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = field(&text, "MemTotal").and_then(|v| v.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

impl Driver for HostDriver {
    type Code = HostCode;
    type Memory = HostMemory;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn survives_forks(&self) -> bool {
        true
    }

    fn build(
        &self,
        program: &Program,
        optimisation: Optimisation,
    ) -> Result<(HostCode, Origin), RuntimeError> {
        let (object, library) = self.load(program, optimisation)?;
        let symbol = format!("{}_launch", program.entry);
        // SAFETY: the module documentation fixes the type of this symbol; the library outlives it.
        let found = unsafe { library.get::<Launch>(symbol.as_bytes()) }.map(|f| *f);
        let launch = found.map_err(|e| RuntimeError::NoEntry { symbol, reason: e.to_string() })?;
        openmp::keep_loaded();
        Ok((HostCode { launch, _library: library }, object.origin))
    }

    fn allocate(&self, bytes: u64) -> Result<HostMemory, RuntimeError> {
        HostMemory::new(bytes).ok_or_else(|| RuntimeError::Allocation {
            bytes,
            device: self.info.name.clone(),
            reason: format!("the machine has {} bytes in all", self.info.global_mem_bytes),
        })
    }

    fn write(&self, memory: &HostMemory, data: &[u8]) -> Result<(), RuntimeError> {
        // SAFETY: sizes were compared; `min` guards the block anyway. Regions of two owners never
        // overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), memory.pointer(), data.len().min(memory.len()))
        }
        Ok(())
    }

    fn read(&self, memory: &HostMemory, out: &mut [u8]) -> Result<(), RuntimeError> {
        // SAFETY: as in `write`.
        unsafe {
            std::ptr::copy_nonoverlapping(memory.pointer(), out.as_mut_ptr(), out.len().min(memory.len()))
        }
        Ok(())
    }

    fn fill(&self, memory: &HostMemory, byte: u8, bytes: u64) -> Result<(), RuntimeError> {
        let n = usize::try_from(bytes).unwrap_or(usize::MAX).min(memory.len());
        // SAFETY: `n` is within the block.
        unsafe { std::ptr::write_bytes(memory.pointer(), byte, n) }
        Ok(())
    }

    fn copy(&self, from: &HostMemory, to: &HostMemory, bytes: u64) -> Result<(), RuntimeError> {
        let n = usize::try_from(bytes).unwrap_or(usize::MAX).min(from.len()).min(to.len());
        // SAFETY: `n` is within both blocks, which are distinct allocations (`Checked::copy`).
        unsafe { std::ptr::copy_nonoverlapping(from.pointer(), to.pointer(), n) }
        Ok(())
    }

    fn shares(&self, place: Place) -> bool {
        place == Place::Host
    }

    fn adopt(&self, memory: &Foreign<'_>) -> Result<HostMemory, RuntimeError> {
        HostMemory::lent(memory.address, memory.bytes).ok_or_else(|| RuntimeError::Allocation {
            bytes: memory.bytes,
            device: self.info.name.clone(),
            reason: "the given array has no address".into(),
        })
    }

    fn run(&self, code: &HostCode, call: &Call<'_, HostMemory>) -> Result<f64, RuntimeError> {
        let pointers: Vec<*mut u8> = call
            .values
            .iter()
            .map(|v| match v {
                CallValue::Memory(m) => m.pointer(),
                CallValue::I32(_)
                | CallValue::I64(_)
                | CallValue::F32(_)
                | CallValue::F64(_)
                | CallValue::C64(_)
                | CallValue::C128(_) => std::ptr::null_mut(),
            })
            .collect();
        let args: Vec<*const c_void> = call
            .values
            .iter()
            .zip(&pointers)
            .map(|(value, pointer)| match value {
                CallValue::I32(v) => std::ptr::from_ref(v).cast(),
                CallValue::I64(v) => std::ptr::from_ref(v).cast(),
                CallValue::F32(v) => std::ptr::from_ref(v).cast(),
                CallValue::F64(v) => std::ptr::from_ref(v).cast(),
                CallValue::C64(v) => std::ptr::from_ref(v).cast(),
                CallValue::C128(v) => std::ptr::from_ref(v).cast(),
                CallValue::Memory(_) => std::ptr::from_ref(pointer).cast(),
            })
            .collect();
        // `Checked` keeps every extent below `i64::MAX`.
        let grid = call.grid.map(|g| i64::try_from(g).unwrap_or(i64::MAX));
        let (launch, args) = (code.launch, Arguments(args.as_ptr()));
        let start = Instant::now();
        fork::run_kernel(|| {
            let args = args; // whole, as it may go to another thread
            // SAFETY: the arguments match the plan (`bind`), and the plan is the source's own.
            unsafe { launch(args.0, grid.as_ptr()) }
        })?;
        Ok(start.elapsed().as_secs_f64())
    }
}

/// The one device of this backend.
pub(crate) fn list() -> Result<Vec<DeviceInfo>, Unavailable> {
    Ok(vec![HostDriver::with(Compiler::find()?, Cache::disabled()).info])
}

#[cfg(test)]
mod tests {
    use super::vector_bytes;

    #[test]
    fn vectors_are_as_wide_as_the_flags_say() {
        let bytes = |flags: &str| vector_bytes(&format!("processor : 0\nflags\t\t: {flags}\n"));
        assert_eq!(
            [bytes("fpu sse2 avx avx2 avx512f"), bytes("fpu sse2 avx"), bytes("fpu sse2")],
            [64, 32, 16]
        );
        // Arm's file has features
        assert_eq!(vector_bytes("Features : fp asimd"), 16);
    }
}
