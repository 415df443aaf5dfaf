#![allow(clippy::panic)] // what a failed test does

mod agreement;
mod kernels;
pub(crate) mod trace;
