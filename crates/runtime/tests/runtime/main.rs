//! Hand-written programs through every backend that this machine has.
#![allow(clippy::unwrap_used, clippy::panic)]

mod arguments;
mod cache;
mod cuda;
mod launch;
mod programs;
