//! The tools without which isl cannot be configured and built: for the build script and its test.

use std::ffi::OsStr;

/// What isl's `autogen.sh` and `configure` call, by any of its names, and the package of Debian that has
/// it.
const TOOLS: [(&[&str], &str); 4] = [
    (&["autoreconf"], "autoconf"),
    (&["automake"], "automake"),
    (&["libtoolize", "glibtoolize"], "libtool"),
    (&["make", "gmake"], "make"),
];

/// What is missing in a search path, and how to get it.
pub fn missing(path: &OsStr) -> Option<String> {
    let is_there = |tool: &&str| std::env::split_paths(path).any(|dir| dir.join(tool).is_file());
    let missing: Vec<_> = TOOLS.iter().filter(|(names, _)| !names.iter().any(is_there)).collect();
    if missing.is_empty() {
        return None;
    }
    let tools: Vec<_> = missing.iter().map(|(names, _)| format!("`{}`", names[0])).collect();
    let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    Some(format!(
        "isl, Purlin's solver, is built from source, and {} cannot be found in `PATH`; install what is missing \
         (Debian: `apt install {}`; docs/book/src/library.md)",
        tools.join(", "),
        packages.join(" ")
    ))
}
