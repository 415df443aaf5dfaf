//! Which OpenCL devices there are.

use super::intel;
use crate::device::{Backend, DeviceInfo};
use crate::error::{RuntimeError, Unavailable};
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, Device};
use opencl3::error_codes::{ClError, DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::platform::{Platform, get_platforms};
use std::sync::{Mutex, PoisonError};

/// A device, in the order in which devices are numbered.
pub(crate) struct Found {
    platform: Platform,
    pub(crate) device: Device,
    /// Its number among what the loader lists.
    pub(crate) listed: usize,
}

/// Every device of every platform.
pub(crate) fn list() -> Result<Vec<DeviceInfo>, Unavailable> {
    let devices = devices()?;
    let infos: Vec<_> = devices.iter().enumerate().filter_map(|(i, found)| info(i, found).ok()).collect();
    if infos.is_empty() {
        return Err(Unavailable::NoOpenClDevice { reason: "no device answers".into() });
    }
    Ok(infos)
}

/// The device at `index`.
pub(crate) fn nth(index: usize) -> Result<(Found, DeviceInfo), RuntimeError> {
    let mut devices = devices()?;
    if index >= devices.len() {
        return Err(RuntimeError::UnknownDevice {
            name: format!("opencl:{index}"),
            known: (0..devices.len()).map(|i| format!("`opencl:{i}`")).collect::<Vec<_>>().join(", "),
        });
    }
    let found = devices.swap_remove(index);
    let info =
        info(index, &found).map_err(|e| driver_error(&format!("opencl:{index}"), "clGetDeviceInfo", e))?;
    Ok((found, info))
}

/// Held while platforms are asked: of two threads that are the first to ask pocl, one is told of no
/// device.
static ASKED: Mutex<()> = Mutex::new(());

fn devices() -> Result<Vec<Found>, Unavailable> {
    let _asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let packaged = intel::platform().ok().flatten();
    let mut platforms = match get_platforms() {
        Ok(platforms) => platforms,
        Err(_) if packaged.is_some() => Vec::new(),
        Err(e) if matches!(e.0, DLOPEN_RUNTIME_LOAD_FAILED | DLOPEN_FUNCTION_NOT_AVAILABLE) => {
            return Err(Unavailable::NoOpenClLibrary { reason: e.to_string() });
        }
        Err(e) => return Err(Unavailable::NoOpenClDevice { reason: e.to_string() }),
    };
    // a loader that was told of it, or of another version of it, has it already
    let is_same = |known: &Platform, own: &Platform| {
        // those that do not say their name are not known to be the same
        known.name().ok().zip(own.name().ok()).is_some_and(|(known, own)| known == own)
    };
    platforms.extend(packaged.filter(|own| !platforms.iter().any(|known| is_same(known, own))));
    let mut found = Vec::new();
    for platform in platforms {
        // A platform without devices answers with an error; the others still count.
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            found.push(Found { platform, device: Device::new(id), listed: found.len() });
        }
    }
    if found.is_empty() {
        return Err(Unavailable::NoOpenClDevice { reason: "no platform has one".into() });
    }
    // Intel's runtime is 1.3 to 2.8 times as fast as pocl on ten operator actions, and 1.5 times in the geometric
    // mean of PolyBench, AMD EPYC, 2026-11-29 (results/cpu/opencl.md): the first device is not pocl if there is another
    found.sort_by_key(|f| is_pocl(&f.platform));
    Ok(found)
}

fn is_pocl(platform: &Platform) -> bool {
    platform.version().is_ok_and(|version| version.contains("PoCL"))
}

/// Bytes of private arrays of a group on a CPU, whose work-items share the stack of a thread: half
/// of the 8 MiB that are usual.
const STACK_BYTES: u64 = 4 << 20;

fn info(index: usize, Found { platform, device, .. }: &Found) -> Result<DeviceInfo, ClError> {
    let extensions = device.extensions()?;
    let has = |name: &str| extensions.split_whitespace().any(|e| e == name);
    let sizes = device.max_work_item_sizes()?;
    let size = |axis: usize| sizes.get(axis).map_or(1, |&s| s as u64);
    let is_processor = device.dev_type()? & CL_DEVICE_TYPE_CPU != 0;
    let mut name = device.name()?.trim().to_owned();
    // records go by the name of a device: that of the processor alone is C's; pocl adds a prefix of its own
    if is_processor && !is_pocl(platform) {
        name = format!("{name} ({})", platform.name()?.trim());
    }
    Ok(DeviceInfo {
        name,
        backend: Backend::OpenCl,
        index,
        driver: format!("{}, {}", platform.version()?.trim(), device.driver_version()?.trim()),
        compute_units: device.max_compute_units()?,
        max_work_group_size: device.max_work_group_size()? as u64,
        max_work_item_sizes: [size(0), size(1), size(2)],
        max_grid: [i64::MAX as u64; 3],
        local_mem_bytes: device.local_mem_size()?,
        private_mem_bytes: is_processor.then_some(STACK_BYTES),
        global_mem_bytes: device.global_mem_size()?,
        fp64: has("cl_khr_fp64"),
        int64_atomics: has("cl_khr_int64_base_atomics"),
        clock_mhz: device.max_clock_frequency()?,
        arch: device.opencl_c_version()?.trim().to_owned(),
        vector_bytes: 0,
        core_cache_bytes: 0,
        uuid: None,
    })
}

/// A failed call with the name of its error code.
pub(crate) fn driver_error(device: &str, call: &'static str, error: ClError) -> RuntimeError {
    RuntimeError::Driver { call, code: format!("{error} ({})", error.0), device: device.to_owned() }
}
