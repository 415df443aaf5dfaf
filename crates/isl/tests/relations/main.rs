//! The wrapper on sets, relations and points.
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does

mod maps;
mod points;
mod scheduler;
mod sets;
