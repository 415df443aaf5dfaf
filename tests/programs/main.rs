//! Loop programs, schedules and compilers, as one program: a file is run by
//! `cargo nextest run --test programs reductions::`.

#[path = "../support/mod.rs"]
mod support;

mod attention;
mod contraction;
mod double_single;
mod intrinsics;
mod long_sums;
mod matrix_cores;
mod memory_bound;
mod pipelining;
mod products;
mod reductions;
mod sharing;
mod threads;
