//! Libraries in packages of Python: pip installs CUDA's compiler, NCCL and OpenCL's runtime of Intel.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static ENVIRONMENTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Looks for libraries in a Python environment, too: a virtual environment, a prefix or a `site-packages`.
///
/// CUDA's compiler and NCCL are taken from there where the system's search path has none. OpenCL's runtime of Intel
/// is one more device. It has an effect on what was not looked for yet.
pub fn search_in(environment: &Path) {
    let mut known = ENVIRONMENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if !known.iter().any(|k| k == environment) {
        known.push(environment.to_path_buf());
    }
}

/// What [`search_in`] was given, the active environment, and `.venv` here or above, as messages name them.
pub(crate) fn environments() -> Vec<(&'static str, PathBuf)> {
    let given = ENVIRONMENTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut found: Vec<_> = given.into_iter().map(|root| ("the Python environment", root)).collect();
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let root = std::env::var_os(name).filter(|v| !v.is_empty());
        found.extend(root.map(|root| ("the Python environment", PathBuf::from(root))));
    }
    found.extend(here_or_above(".venv").map(|venv| ("`.venv`", venv)));
    found
}

/// The nearest folder of a name, in the current one or above; none above one that is gone.
pub(crate) fn here_or_above(name: &str) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join(name)).find(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_counts_once() {
        let here = Path::new("/an/environment/of/a/test");
        search_in(here);
        search_in(here);
        assert_eq!(environments().iter().filter(|(_, e)| e == here).count(), 1);
    }
}
