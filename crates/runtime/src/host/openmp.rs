//! The OpenMP runtime: how many threads it starts, and that it stays in memory.

/// Threads of a parallel region: the first number of `OMP_NUM_THREADS`, else those that the system
/// runs at once.
#[must_use]
pub fn threads() -> usize {
    let asked = std::env::var("OMP_NUM_THREADS").ok().and_then(|list| first_number(&list));
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The first number of a list such as `4,2`, if it is at least 1.
fn first_number(list: &str) -> Option<usize> {
    list.split(',').next()?.trim().parse().ok().filter(|n| *n >= 1)
}

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

#[cfg(test)]
mod tests {
    use super::first_number;

    #[test]
    fn the_outermost_region_counts() {
        assert_eq!(first_number("4"), Some(4));
        assert_eq!(first_number(" 1 , 8"), Some(1));
        assert_eq!(first_number("0"), None);
        assert_eq!(first_number("many"), None);
    }
}
