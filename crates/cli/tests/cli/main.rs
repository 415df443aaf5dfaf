//! The binary as users run it: a file is run by `cargo nextest run --test cli pocl::`.

#[path = "../../../../tests/support/mod.rs"]
mod support;

mod commands;
mod launches;
mod oclgrind;
mod pocl;
mod schedules;
mod trust;

use std::path::{Path, PathBuf};

/// The root of the repository, where commands of these tests run.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
