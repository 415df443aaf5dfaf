//! Measurements as lines of JSON.

use crate::scatter::Scatter;
use kingpost::Mapping;
use kingpost::kernels::BakeOff;
use serde::{Deserialize, Serialize};

/// The action of a problem with a number of unknowns on a device, or an iteration of conjugate
/// gradients with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The problem, such as `bp3`.
    pub problem: String,
    /// Degree of the elements.
    pub degree: usize,
    /// Cells along an axis.
    pub divisions: usize,
    /// Number of unknowns.
    pub unknowns: usize,
    /// The device, as it calls itself.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// Its highest clock, in MHz.
    pub clock_mhz: u32,
    /// How the kernel is mapped.
    pub mapping: Mapping,
    /// How cells add to what they share; atomically where a record does not say.
    #[serde(default, skip_serializing_if = "Scatter::is_atomic")]
    pub scatter: Scatter,
    /// Launches of an action; none where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<usize>,
    /// BLAKE3 hash of the source.
    pub source: String,
    /// Registers, spills and local memory, where the compiler tells.
    pub resources: Option<String>,
    /// Median of the runs, in seconds.
    pub median_s: f64,
    /// Shortest run, in seconds.
    pub min_s: f64,
    /// Longest run, in seconds.
    pub max_s: f64,
    /// Runs that count.
    pub runs: usize,
    /// Largest difference from the interpreter on eight cells, in units of the largest value.
    pub error: f64,
    /// By how much an integral over the cube is off, in units of its value; none of an iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integral_error: Option<f64>,
    /// Whether an iteration of conjugate gradients was timed; none where it was the action alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solve: Option<ConjugateGradients>,
    /// What the mapping stores; none where it stores nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<StoredInputs>,
}

/// Inputs that were computed from the mesh before the first launch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredInputs {
    /// Their bytes.
    pub bytes: u64,
    /// Seconds to compute them, to move the mesh to the device and the inputs back.
    pub seconds: f64,
    /// Seconds of the kernel alone, with its launch.
    pub kernel_s: f64,
}

/// What came out of the iterations that were timed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConjugateGradients {
    /// Their number.
    pub iterations: usize,
    /// Norm of the last residual, in units of the first.
    pub reduction: f64,
    /// Difference between the residual that the iterations carry and that of their solution, in
    /// units of the right-hand side.
    pub residual_error: f64,
}

impl Record {
    /// Whether both are of the same problem, size and device.
    #[must_use]
    pub fn is_of(
        &self,
        problem: BakeOff,
        degree: usize,
        divisions: usize,
        iterations: Option<usize>,
        device: &str,
    ) -> bool {
        (self.problem.as_str(), self.degree, self.divisions, self.iterations(), self.device.as_str())
            == (problem.name(), degree, divisions, iterations, device)
    }

    /// How many iterations of conjugate gradients were timed; none where it was the action alone.
    #[must_use]
    pub fn iterations(&self) -> Option<usize> {
        self.solve.map(|solve| solve.iterations)
    }

    /// Billions of unknowns a second, by an action or an iteration.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.unknowns as f64 / self.median_s / 1e9
    }
}
