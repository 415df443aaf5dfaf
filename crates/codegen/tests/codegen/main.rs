//! What tests of code generation say beyond facts, which are in `facts`.
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does

mod local_memory;
mod ordered;
mod refusals;
mod widths;
