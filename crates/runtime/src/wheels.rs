//! Libraries in packages of Python: pip installs CUDA's compiler, NCCL and OpenCL's runtime of Intel.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static ENVIRONMENTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Looks for libraries in a Python environment, too: a virtual environment, a prefix or a `site-packages`.
///
/// CUDA's compiler and NCCL are taken from there where the system's search path has none, OpenCL's loader before
/// the system's. It has an effect on what was not looked for yet.
pub fn search_in(environment: &Path) {
    let mut known = ENVIRONMENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if !known.iter().any(|k| k == environment) {
        known.push(environment.to_path_buf());
    }
}

/// What [`search_in`] was given.
pub(crate) fn environments() -> Vec<PathBuf> {
    ENVIRONMENTS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Loads OpenCL's loader of Intel's package `intel-opencl-rt`, if an environment has it, with what its device needs:
/// these libraries name each other by bare names, which the system's search does not find there.
#[cfg(feature = "opencl")]
pub(crate) fn load_opencl() {
    use libloading::Library;
    use std::sync::OnceLock;
    static LOADED: OnceLock<Vec<Library>> = OnceLock::new();
    let names = [
        "libintlc.so.5",
        "libirng.so",
        "libimf.so",
        "libsvml.so",
        "libtbb.so.12",
        "libcommon_clang.so",
        "libOpenCL.so.1",
    ];
    LOADED.get_or_init(|| {
        let folders = environments().into_iter().map(|e| e.join("lib"));
        let Some(folder) = folders.into_iter().find(|f| f.join("libintelocl.so").is_file()) else {
            return Vec::new();
        };
        // One that does not load is said by the loader, which then lacks the device.
        // SAFETY: Intel's libraries; their initialisers have no preconditions.
        names.iter().filter_map(|name| unsafe { Library::new(folder.join(name)) }.ok()).collect()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_counts_once() {
        let here = Path::new("/an/environment/of/a/test");
        search_in(here);
        search_in(here);
        assert_eq!(environments().iter().filter(|e| *e == here).count(), 1);
    }
}
