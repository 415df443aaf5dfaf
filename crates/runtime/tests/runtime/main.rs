//! Hand-written programs through every backend that this machine has.
#![allow(clippy::unwrap_used, clippy::panic)]

mod arguments;
mod cache;
mod ceilings;
mod cuda;
mod foreign;
mod launch;
mod missing;
mod oclgrind;
mod programs;
mod trial;
