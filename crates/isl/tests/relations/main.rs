//! The wrapper on sets, relations, points and dataflow.
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does

mod flow;
mod maps;
mod points;
mod scheduler;
mod sets;
