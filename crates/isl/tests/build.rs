//! What the build script says where isl cannot be built.

#![allow(clippy::unwrap_used)]

#[path = "../build_tools.rs"]
mod build_tools;

use build_tools::missing;
use std::ffi::OsStr;

#[test]
fn tools_that_are_missing_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().as_os_str();
    let all = missing(path).unwrap();
    assert!(
        all.contains("`autoreconf`, `automake`, `libtoolize`, `make` cannot be found in `PATH`"),
        "{all}"
    );
    assert!(all.contains("`apt install autoconf automake libtool make`"), "{all}");
    for tool in ["autoreconf", "glibtoolize", "make"] {
        std::fs::write(dir.path().join(tool), "").unwrap();
    }
    let one = missing(path).unwrap();
    assert!(
        one.contains("and `automake` cannot be found") && one.contains("`apt install automake`"),
        "{one}"
    );
    std::fs::create_dir(dir.path().join("automake")).unwrap();
    assert_eq!(missing(path), Some(one)); // a folder is no tool
    // isl was built here
    assert_eq!(missing(&std::env::var_os("PATH").unwrap()), None);
    assert!(missing(OsStr::new("")).is_some());
}
