//! The engine for the Python package `kingpost`: kernels, schedules, compiled programs, forms.
//!
//! This crate holds what touches the engine; the package around it, in `python/kingpost`, is what
//! users see. Everything that may take time runs without the interpreter's lock, and a panic
//! becomes the package's `InternalError` (`failure::run`).

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod bind;
mod bound;
mod calls;
mod exchange;
mod failure;
mod form;
mod kernel;
mod lend;
mod meshes;
mod names;
mod part;
mod parts;
mod polynomial;
mod program;
mod programs;
mod reading;
mod schedule;
mod shapes;
mod solve;
mod sparse;

use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs the command line of `kingpost` and gives the code with which the process is to end.
#[pyfunction]
fn command_line(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| kingpost_cli::run(arguments))
}

/// Looks for libraries of OpenCL and CUDA in a Python environment, too.
#[pyfunction]
fn search_in(environment: PathBuf) {
    kingpost::runtime::search_in(&environment);
}

/// The native part of the package `kingpost`.
#[pymodule]
fn _kingpost(m: &Bound<'_, PyModule>) -> PyResult<()> {
    // a program may fork before it opens a device, after the regions of another library
    kingpost::runtime::watch_forks();
    names::make(m.py());
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<kernel::Kernel>()?;
    m.add_class::<schedule::Engine>()?;
    m.add_class::<program::Program>()?;
    m.add_class::<bound::BoundCall>()?;
    m.add_class::<calls::Calls>()?;
    m.add_class::<form::Form>()?;
    m.add_class::<programs::CountFormula>()?;
    m.add_function(wrap_pyfunction!(schedule::primitives, m)?)?;
    m.add_function(wrap_pyfunction!(schedule::other_names, m)?)?;
    m.add_function(wrap_pyfunction!(program::devices, m)?)?;
    m.add_function(wrap_pyfunction!(program::cache_directory, m)?)?;
    m.add_function(wrap_pyfunction!(programs::fuse_kernels, m)?)?;
    m.add_function(wrap_pyfunction!(programs::to_batched, m)?)?;
    m.add_function(wrap_pyfunction!(programs::rename_arguments, m)?)?;
    m.add_function(wrap_pyfunction!(programs::remove_unused_arguments, m)?)?;
    m.add_function(wrap_pyfunction!(programs::statistics, m)?)?;
    m.add_function(wrap_pyfunction!(sparse::csr_pattern, m)?)?;
    m.add_class::<meshes::GmshFile>()?;
    m.add_function(wrap_pyfunction!(meshes::read_gmsh, m)?)?;
    m.add_function(wrap_pyfunction!(solve::solve_rows, m)?)?;
    m.add_class::<parts::Parts>()?;
    m.add_function(wrap_pyfunction!(parts::bisect, m)?)?;
    m.add_function(wrap_pyfunction!(parts::exchange_costs, m)?)?;
    m.add_function(wrap_pyfunction!(parts::nccl_id, m)?)?;
    m.add_function(wrap_pyfunction!(bound::capturing, m)?)?;
    m.add_function(wrap_pyfunction!(command_line, m)?)?;
    m.add_function(wrap_pyfunction!(search_in, m)?)?;
    m.add_function(wrap_pyfunction!(form::form_json, m)?)?;
    m.add_function(wrap_pyfunction!(form::tabulated_forms, m)?)?;
    m.add_function(wrap_pyfunction!(form::forms, m)?)
}
