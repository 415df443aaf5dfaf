//! How fast a kernel is: the ceilings of a device, trials that were recorded, registers.

use kingpost_codegen::Program;
use serde::Serialize;
use std::fmt;

/// What is known of times on one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Performance {
    /// The device.
    pub device: Ceilings,
    /// Work of a launch of the kernel as it is written, at the parameters of the page, where it can be
    /// counted: from it the ceilings give the least time.
    pub work: Option<Work>,
    /// Trials of the kernel.
    pub trials: Vec<Trial>,
}

/// What a device can do at most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ceilings {
    /// Its name.
    pub name: String,
    /// Bytes of memory per second.
    pub dram_bytes_per_s: f64,
    /// Operations in double precision per second.
    pub fp64_flops_per_s: f64,
}

/// Work of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Floating-point operations of the kernel as it is written.
    pub flops: u64,
    /// Bytes of distinct elements that are read or written.
    pub dram_bytes: u64,
}

/// A trial of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// Its mapping.
    pub label: String,
    /// What ran, and how much of it.
    pub case: String,
    /// The step after which the kernel is the one that ran.
    pub step: Option<usize>,
    /// Work of the launch.
    pub work: Work,
    /// Operations that it executes, where they were counted.
    pub executed_flops: Option<u64>,
    /// Seconds that a cost model predicts.
    pub predicted_s: Option<f64>,
    /// Its times, if it ran.
    pub times: Option<Times>,
    /// Registers and spills, where the compiler told them.
    pub resources: Option<String>,
    /// Why it did not run.
    pub refused: Option<String>,
}

/// Seconds of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// Median.
    pub median_s: f64,
    /// Shortest.
    pub min_s: f64,
    /// Longest.
    pub max_s: f64,
    /// Number of runs.
    pub runs: usize,
}

/// What a compiler reports of one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Used {
    /// The function.
    pub entry: String,
    /// 32-bit registers of a work-item.
    pub registers: u64,
    /// Bytes that are stored and loaded for want of registers.
    pub spilled: u64,
    /// All that is reported, with the compiler and the architecture.
    pub text: String,
}

/// Compiles CUDA sources and says what they take; an error as text.
#[derive(Clone, Copy)]
pub struct Compiler<'a>(pub &'a dyn Fn(&Program) -> Result<Vec<Used>, String>);

impl fmt::Debug for Compiler<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compiler")
    }
}
