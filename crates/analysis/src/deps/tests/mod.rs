#![allow(clippy::panic)] // what a failed test does

mod agreement;
mod kernels;
mod shown;
pub(crate) mod trace;
