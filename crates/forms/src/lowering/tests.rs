//! Lowered kernels, run by the interpreter, against the reference.

#![allow(clippy::unwrap_used)]
