//! NVML: the energy that a card has taken.

use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_ulonglong, c_void};
use std::path::Path;
use std::sync::OnceLock;

/// A card's handle.
type Handle = *mut c_void;
type Code = c_int;
type Init = unsafe extern "C" fn() -> Code;
type ByUuid = unsafe extern "C" fn(*const c_char, *mut Handle) -> Code;
type Energy = unsafe extern "C" fn(Handle, *mut c_ulonglong) -> Code;

/// A loaded and initialised NVML.
struct Nvml {
    by_uuid: ByUuid,
    energy: Energy,
    /// Never dropped: the value lives in a static.
    _library: Library,
}

impl Nvml {
    /// The library at `path`, if it loads and has every function.
    fn open(path: &Path) -> Option<Self> {
        // SAFETY: NVIDIA's library; its initialisers have no preconditions.
        let library = unsafe { Library::new(path) }.ok()?;
        // SAFETY: the types are those of NVML's header; the library is initialised before anything else is called,
        // and stays so.
        unsafe {
            let init: Init = *library.get(b"nvmlInit_v2").ok()?;
            let this = Self {
                by_uuid: *library.get(b"nvmlDeviceGetHandleByUUID").ok()?,
                energy: *library.get(b"nvmlDeviceGetTotalEnergyConsumption").ok()?,
                _library: library,
            };
            (init() == 0).then_some(this)
        }
    }
}

/// The counter of a card.
pub(super) struct Meter {
    nvml: &'static Nvml,
    handle: Handle,
}

// SAFETY: NVML's functions may be called from any thread at any time.
unsafe impl Send for Meter {}
// SAFETY: as above.
unsafe impl Sync for Meter {}

impl Meter {
    /// Of the card with these hexadecimal digits; none without NVML, or if it does not know the card, as where a part
    /// of one is lent.
    pub(super) fn of(uuid: &str) -> Option<Self> {
        static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
        // it is part of the driver, so the system's search finds it
        let nvml = NVML.get_or_init(|| Nvml::open(Path::new("libnvidia-ml.so.1"))).as_ref()?;
        Self::in_library(nvml, uuid)
    }

    fn in_library(nvml: &'static Nvml, uuid: &str) -> Option<Self> {
        let parts = [uuid.get(..8)?, uuid.get(8..12)?, uuid.get(12..16)?, uuid.get(16..20)?, uuid.get(20..)?];
        let name = CString::new(format!("GPU-{}", parts.join("-"))).ok()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a text that ends, and a valid pointer.
        (unsafe { (nvml.by_uuid)(name.as_ptr(), &raw mut handle) } == 0).then_some(Self { nvml, handle })
    }

    /// Joules since the driver was loaded; none of cards before Volta.
    pub(super) fn joules(&self) -> Option<f64> {
        let mut millijoules = 0;
        // SAFETY: a handle of the library, and a valid pointer.
        let code = unsafe { (self.nvml.energy)(self.handle, &raw mut millijoules) };
        (code == 0).then_some(millijoules as f64 / 1000.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A library with one card, whose counter has 1.5 J more at each reading.
    const LIBRARY: &str = r#"
#include <string.h>
static int is_ready, readings;
int nvmlInit_v2(void) { is_ready = 1; return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    *handle = &readings;
    return !is_ready || strcmp(uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
}
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules) {
    *millijoules = 1500ull * ++*(int *)handle;
    return 0;
}
"#;

    #[test]
    fn a_card_is_found_by_its_uuid_and_counts_joules() {
        let dir = tempfile::tempdir().unwrap();
        let (source, library) = (dir.path().join("nvml.c"), dir.path().join("libnvml.so"));
        std::fs::write(&source, LIBRARY).unwrap();
        let mut cc = Command::new("cc");
        assert!(cc.args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap().success());
        let nvml: &'static Nvml = Box::leak(Box::new(Nvml::open(&library).unwrap()));
        let meter = Meter::in_library(nvml, "00112233445566778899aabbccddeeff").unwrap();
        assert_eq!((meter.joules(), meter.joules()), (Some(1.5), Some(3.0)));
        assert!(Meter::in_library(nvml, "00112233445566778899aabbccddee00").is_none());
        assert!(Meter::in_library(nvml, "0011").is_none());
        assert!(Nvml::open(Path::new("libc.so.6")).is_none());
    }
}
