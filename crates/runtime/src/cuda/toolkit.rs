//! Where the CUDA compiler's parts lie: a toolkit, or the Python wheels that hold them.

use crate::error::Unavailable;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One place that may hold libraries and tools, in the order of the search.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// As it is named in messages.
    pub(crate) name: String,
    pub(crate) libraries: Vec<PathBuf>,
    pub(crate) tools: Vec<PathBuf>,
    /// Whether the system's own search comes here.
    pub(crate) system: bool,
}

/// `KINGPOST_CUDA_WHEELS`, `CUDA_HOME` and `CUDA_PATH`, the system's search path, the Python environment, `.venv`
/// here and above, `/usr/local/cuda`: what was set on purpose comes first.
pub(crate) fn places() -> Vec<Place> {
    let mut places = Vec::new();
    if let Some(paths) = std::env::var_os("KINGPOST_CUDA_WHEELS") {
        places.extend(std::env::split_paths(&paths).map(|p| wheels("`KINGPOST_CUDA_WHEELS`", &p)));
    }
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(root) = std::env::var_os(name).filter(|v| !v.is_empty()) {
            places.push(toolkit(&format!("`{name}`"), Path::new(&root)));
        }
    }
    let name = "the system's search path".into();
    places.push(Place { name, libraries: vec![], tools: vec![], system: true });
    places.extend(crate::wheels::environments().iter().map(|(name, root)| wheels(name, root)));
    places.push(toolkit("`/usr/local/cuda`", Path::new("/usr/local/cuda")));
    places
}

fn toolkit(name: &str, root: &Path) -> Place {
    Place {
        name: name.into(),
        libraries: vec![root.join("lib64"), root.join("lib"), root.join("targets/x86_64-linux/lib")],
        tools: vec![root.join("bin")],
        system: false,
    }
}

/// `root` is a `site-packages` or a virtual environment.
fn wheels(name: &str, root: &Path) -> Place {
    let mut sites = vec![root.to_path_buf()];
    if let Ok(entries) = std::fs::read_dir(root.join("lib")) {
        let mut found: Vec<_> = entries.flatten().map(|e| e.path().join("site-packages")).collect();
        found.sort();
        sites.extend(found);
    }
    // CUDA 13 wheels share one folder, those of CUDA 12 have one each.
    let below = |parts: &[&str], leaf: &str| -> Vec<PathBuf> {
        let of = |site: &PathBuf| parts.iter().map(|p| site.join("nvidia").join(p).join(leaf)).collect();
        sites.iter().flat_map(|site| -> Vec<PathBuf> { of(site) }).collect()
    };
    Place {
        name: name.into(),
        libraries: below(&["cu13", "cuda_nvrtc", "nccl"], "lib"),
        tools: below(&["cu13", "cuda_nvcc"], "bin"),
        system: false,
    }
}

/// The file in `dir` whose name starts with `prefix` and sorts last, that is the highest major
/// version.
pub(crate) fn newest(dir: &Path, prefix: &str) -> Option<PathBuf> {
    let names = std::fs::read_dir(dir).ok()?.flatten();
    names.filter(|e| e.file_name().to_string_lossy().starts_with(prefix)).map(|e| e.path()).max()
}

/// Files and bare names of a library to try, in the order of the search. The last of `names` is
/// what its files begin with.
pub(crate) fn libraries(names: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for place in places() {
        if place.system {
            found.extend(names.iter().map(PathBuf::from));
        }
        let newest = |prefix: &&str| place.libraries.iter().filter_map(|dir| newest(dir, prefix)).collect();
        found.extend(names.last().map_or_else(Vec::new, newest));
    }
    found
}

/// The first of these [`libraries`] that `open` takes, kept for the process; `missing` says that
/// there is none, of the places that were searched.
pub(crate) fn load<L>(
    kept: &'static OnceLock<Result<L, Unavailable>>,
    names: &[&str],
    open: fn(&Path) -> Option<L>,
    missing: fn(String) -> Unavailable,
) -> Result<&'static L, Unavailable> {
    let find = || libraries(names).into_iter().find_map(|path| open(&path));
    kept.get_or_init(|| find().ok_or_else(|| missing(searched()))).as_ref().map_err(Clone::clone)
}

/// Names of the places, for messages.
pub(crate) fn searched() -> String {
    let mut names: Vec<_> = places().into_iter().map(|p| p.name).collect();
    names.dedup();
    names.join(", ")
}
