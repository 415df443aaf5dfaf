//! Compiles, allocates, launches and times generated programs on CUDA, OpenCL and host C.
//!
//! A [`Program`](kingpost_codegen::Program) carries its source and its launch plan. [`open`] gives a
//! [`Device`] by name; the device compiles the program, holds the arrays, checks every launch
//! against the plan and runs it:
//!
//! ```no_run
//! # fn demo(program: &kingpost_codegen::Program) -> Result<(), kingpost_runtime::RuntimeError> {
//! use kingpost_runtime::{Arg, buffer_of, download_values, open};
//! let device = open("opencl")?;
//! let executable = device.compile(program)?;
//! let x = buffer_of(&*device, &[0.5f64; 1000])?;
//! device.launch(&executable, &[("n", Arg::Param(1000)), ("x", Arg::Buffer(&x))])?;
//! let result: Vec<f64> = download_values(&*device, &x)?;
//! # Ok(())
//! # }
//! ```
//!
//! What is missing on a machine is an [`Unavailable`] that says how to get it; [`devices`] lists
//! everything. This crate and `kingpost-isl` are the only ones with `unsafe` code: here it calls
//! drivers and compiled kernels.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod arguments;
mod cache;
mod ceilings;
mod checked;
mod claims;
pub mod cuda;
mod device;
mod diagnosis;
mod driver;
mod elements;
mod energy;
mod error;
mod foreign;
mod fork;
mod guests;
pub mod hip;
mod host;
mod interrupt;
mod limits;
mod model;
pub mod oclgrind;
#[cfg(feature = "opencl")]
mod opencl;
mod prepared;
mod registry;
mod resources;
mod stage;
mod timing;
mod turns;
mod unavailable;
mod wheels;

pub use cache::{Cache, CacheKey};
pub use ceilings::{measure_ceilings, measure_exceeded_ceilings};
pub use claims::{Claim, Claims};
pub use device::{
    Arg, Backend, Begun, Buffer, Device, DeviceInfo, Executable, Launch, Optimisation, Origin, Prepared,
    Recorded, Stream, Traffic,
};
pub use elements::{Element, buffer_of, download_values, upload_values};
pub use energy::joules_of_a_run;
pub use error::RuntimeError;
pub use foreign::{Foreign, Place};
pub use fork::{forks, watch_forks};
pub use host::openmp::threads as host_threads;
pub use interrupt::{check_interrupt, interruptible};
pub use kingpost_capacity::available_memory;
pub use model::{DeviceModel, Occupancy};
pub use registry::{DeviceEntry, devices, open, open_host, open_with_cache};
pub use stage::{stage, with_stages};
pub use timing::{Timing, TimingOptions};
pub use turns::{Occupation, Turn, Turns};
pub use unavailable::Unavailable;
pub use wheels::search_in;
