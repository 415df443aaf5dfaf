//! Keeps the OpenMP runtime in memory.

/// Names of the OpenMP runtimes of gcc and clang.
#[cfg(target_os = "linux")]
const RUNTIMES: [&str; 4] = ["libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"];

/// `RTLD_NOLOAD` of glibc and musl: succeed only if the library is loaded already.
#[cfg(target_os = "linux")]
const NO_LOAD: i32 = 0x4;

/// `RTLD_NODELETE` of glibc and musl: never unload.
#[cfg(target_os = "linux")]
const NO_DELETE: i32 = 0x1000;

/// Marks a loaded OpenMP runtime as never to be unloaded.
///
/// libgomp is not linked with `nodelete`: unloading the last kernel would unmap the code in which
/// its idle threads wait.
pub(crate) fn keep_loaded() {
    #[cfg(target_os = "linux")]
    for name in RUNTIMES {
        use libloading::os::unix::{Library, RTLD_LAZY};
        // SAFETY: with `NO_LOAD` nothing new is loaded, so no initialiser runs.
        drop(unsafe { Library::open(Some(name), RTLD_LAZY | NO_LOAD | NO_DELETE) });
    }
}
