//! The binary as users run it: a file is run by `cargo nextest run --test cli pocl::`.

#![allow(clippy::unwrap_used)]

#[path = "../../../../tests/support/mod.rs"]
mod support;

mod commands;
mod editor;
mod launches;
mod live;
mod mcp;
mod oclgrind;
mod pocl;
mod programs;
mod schedules;
mod trust;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The root of the repository, where commands of these tests run.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The binary with these arguments.
fn kingpost(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kingpost")).args(args).current_dir(root()).output().unwrap()
}

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

const AXPY: &str = "kernel axpy
param n: i32
arg x: f64[n] in
arg a: f64 in
arg y: f64[n] inout

for i in 0..n
  s: y[i] += a*x[i]
";
