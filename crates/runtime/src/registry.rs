//! Which devices there are, and opening one by name.

use crate::cache::Cache;
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::{Backend, Device, DeviceInfo};
use crate::driver::Checked;
use crate::error::{RuntimeError, Unavailable};
use crate::host;
#[cfg(feature = "opencl")]
use crate::opencl;
use std::path::PathBuf;

/// A device, or a backend that cannot be used here.
#[derive(Clone, Debug)]
pub struct DeviceEntry {
    /// The backend.
    pub backend: Backend,
    /// The device, or why there is none and how to get one.
    pub device: Result<DeviceInfo, Unavailable>,
}

/// Everything there is: each device of each backend, one entry for each backend without any, and one for a runtime of
/// OpenCL that is there and does not load.
pub fn devices() -> Vec<DeviceEntry> {
    let mut entries = Vec::new();
    for backend in Backend::ALL {
        match list(backend) {
            Ok(found) => {
                entries.extend(found.into_iter().map(|d| DeviceEntry { backend, device: Ok(d) }));
            }
            Err(reason) => entries.push(DeviceEntry { backend, device: Err(reason) }),
        }
    }
    #[cfg(feature = "opencl")]
    if let Err(reason) = opencl::intel::platform() {
        entries.push(DeviceEntry { backend: Backend::OpenCl, device: Err(reason) });
    }
    entries
}

fn list(backend: Backend) -> Result<Vec<DeviceInfo>, Unavailable> {
    match backend {
        Backend::C => host::list(),
        #[cfg(feature = "opencl")]
        Backend::OpenCl => opencl::list(),
        #[cfg(not(feature = "opencl"))]
        Backend::OpenCl => Err(Unavailable::LeftOut { feature: "opencl" }),
        #[cfg(feature = "cuda")]
        Backend::Cuda => cuda::list(),
        #[cfg(not(feature = "cuda"))]
        Backend::Cuda => Err(Unavailable::LeftOut { feature: "cuda" }),
    }
}

/// Opens a device by name: `c`, `opencl`, `opencl:1`, `cuda`, `cuda:0`, with the cache of the
/// environment.
///
/// # Errors
/// A name that is no device (the message lists what there is), or a backend that this machine
/// lacks.
pub fn open(name: &str) -> Result<Box<dyn Device>, RuntimeError> {
    open_with_cache(name, Cache::from_environment())
}

/// As [`open`], with compiled objects kept in `cache`.
///
/// # Errors
/// As [`open`].
pub fn open_with_cache(name: &str, cache: Cache) -> Result<Box<dyn Device>, RuntimeError> {
    let unknown = || RuntimeError::UnknownDevice { name: name.into(), known: known() };
    let (backend, index) = match name.split_once(':') {
        Some((backend, index)) => (backend, index.parse::<usize>().map_err(|_| unknown())?),
        None => (name, 0),
    };
    match backend {
        "c" if index == 0 => Ok(Box::new(Checked::new(host::HostDriver::open(cache)?))),
        #[cfg(feature = "opencl")]
        "opencl" => Ok(Box::new(Checked::new(opencl::OpenClDriver::open(index, cache)?))),
        #[cfg(not(feature = "opencl"))]
        "opencl" => Err(Unavailable::LeftOut { feature: "opencl" }.into()),
        #[cfg(feature = "cuda")]
        "cuda" => Ok(Box::new(Checked::new(cuda::CudaDriver::open(index, cache)?))),
        #[cfg(not(feature = "cuda"))]
        "cuda" => Err(Unavailable::LeftOut { feature: "cuda" }.into()),
        _ => Err(unknown()),
    }
}

/// The host with the C compiler at `compiler`, whatever `CC` and `PATH` say.
///
/// # Errors
/// The compiler does not run.
pub fn open_host(compiler: impl Into<PathBuf>, cache: Cache) -> Result<Box<dyn Device>, RuntimeError> {
    Ok(Box::new(Checked::new(host::HostDriver::with_compiler(compiler.into(), cache)?)))
}

/// The names that [`open`] takes here, for messages.
fn known() -> String {
    let names: Vec<_> = devices()
        .into_iter()
        .filter_map(|e| e.device.ok())
        .map(|d| format!("`{}` ({})", d.selector(), d.name))
        .collect();
    if names.is_empty() {
        "none (see `kingpost devices` for how to get one)".into()
    } else {
        names.join(", ")
    }
}
