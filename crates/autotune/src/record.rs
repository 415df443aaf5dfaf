//! What one trial of the tuner found, as it is kept.

use crate::mapping::Mapping;
use crate::roofline::{Shares, Work};
use kingpost_runtime::DeviceModel;
use kingpost_runtime::cuda::ptxas::Resources;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One mapping to try, with what the cost model thinks of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate<M> {
    /// The mapping.
    pub parameters: M,
    /// Position in its search space by predicted time, from 1; none if it was not ranked.
    pub rank: Option<u64>,
    /// Predicted seconds of one launch.
    pub predicted_s: Option<f64>,
}

impl<M> Candidate<M> {
    /// A mapping that no model has looked at.
    #[must_use]
    pub const fn unranked(parameters: M) -> Self {
        Self { parameters, rank: None, predicted_s: None }
    }
}

/// What is computed, and how much of it.
///
/// # Shapes and units
/// FLOP and bytes of one launch of the untransformed kernel, so that doing less work never looks
/// slower. In JSON the size is called `cells`, the results `dofs`, and the data `mesh`, as in the
/// records of forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Its name, such as `laplace.3D.P4`.
    pub case: String,
    /// Hash of the untransformed kernel.
    pub kernel: String,
    /// What tells the data from others of the same size, where more than the size matters.
    #[serde(rename = "mesh", default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The order of the data, if it is another than the usual one: a choice, as a mapping is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbering: Option<String>,
    /// Size of the problem, such as the cells of a mesh.
    #[serde(rename = "cells")]
    pub size: u64,
    /// Entries of the results.
    #[serde(rename = "dofs")]
    pub results: u64,
    /// Operations and bytes.
    #[serde(flatten)]
    pub work: Work,
}

impl Workload {
    /// Whether both are the same work: the kernel on the same data, in whatever order.
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        (&self.kernel, &self.data, self.size) == (&other.kernel, &other.data, other.size)
    }

    /// Whether both are the same work on data in the same order.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.is_beside(other) && self.numbering == other.numbering
    }
}

/// Where a trial ended before there was a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A step of the strategy was refused.
    Transform,
    /// No code could be generated.
    Generate,
    /// The compiler or the device's limits refused the code.
    Compile,
    /// The launch failed.
    Launch,
    /// The result is not the reference's.
    Check,
    /// It did not come back in time.
    Hang,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transform => "transform",
            Self::Generate => "generate",
            Self::Compile => "compile",
            Self::Launch => "launch",
            Self::Check => "check",
            Self::Hang => "hang",
        })
    }
}

/// Why a trial has no time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{stage}: {reason}")]
pub struct Refusal {
    /// Where it ended.
    pub stage: Stage,
    /// What was said there.
    pub reason: String,
}

impl Refusal {
    /// A refusal with the text of an error.
    pub fn new(stage: Stage, reason: impl fmt::Display) -> Self {
        Self { stage, reason: reason.to_string() }
    }
}

/// Distances from the reference, relative.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Largest entry's of a small problem, against the double-precision reference everywhere.
    pub small: f64,
    /// Of the measured problem: for the first variant the largest at sampled entries against the
    /// reference, for the others in the Euclidean norm against the first one's whole result.
    pub measured: f64,
}

/// What computing inputs took that are computed once for all launches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Number of inputs.
    pub inputs: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Seconds of all, with arrays moved to the device and back, and without compiling.
    pub seconds: f64,
}

/// The times of a variant whose result is right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Hash of the kernel that ran.
    pub kernel: String,
    /// Distances from the reference.
    pub errors: Errors,
    /// Counted runs.
    pub runs: usize,
    /// Median, seconds.
    pub median_s: f64,
    /// Shortest, seconds.
    pub min_s: f64,
    /// Longest, seconds.
    pub max_s: f64,
    /// Energy of one run by the device's counter, joules of the whole device; none where it has none, and in records
    /// that are older than it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
    /// Whether it was given up after one run, many times slower than the best.
    pub cut_short: bool,
    /// Registers, spills and memory where the compiler reports them.
    pub resources: Option<Resources>,
    /// What computing inputs of the mapping's own took, once for all launches; none where it has none,
    /// and in records that are older than it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// FLOP of one launch of the transformed kernel, products by matrix instructions and padding
    /// included; none in records that are older than it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed_flops: Option<u64>,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran and is right.
    Measured(Measurement),
    /// It did not, and why.
    Refused(Refusal),
}

/// The form in which records are written: 2 since devices are [`DeviceModel`]s and workloads name
/// their mesh. Records of all versions until this one are read.
pub const RECORD_VERSION: u32 = 2;

fn first_version() -> u32 {
    1
}

/// A version that this program knows.
fn known_version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let found = u32::deserialize(deserializer)?;
    if (1..=RECORD_VERSION).contains(&found) {
        return Ok(found);
    }
    let message = format!("a record of version {found}, needed 1 to {RECORD_VERSION}; use a newer program");
    Err(serde::de::Error::custom(message))
}

/// One trial: a mapping of a kernel on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record<M> {
    /// The form in which it was written, at most [`RECORD_VERSION`].
    #[serde(default = "first_version", deserialize_with = "known_version")]
    pub version: u32,
    /// What was computed.
    pub workload: Workload,
    /// Where, with the ceilings that were measured there.
    pub device: DeviceModel,
    /// How it was mapped.
    pub parameters: M,
    /// Position in the search space by predicted time, from 1.
    pub rank: Option<u64>,
    /// Predicted seconds.
    pub predicted_s: Option<f64>,
    /// What came of it.
    pub outcome: Outcome,
    /// Seed of the inputs.
    pub seed: u64,
    /// Seconds since 1970.
    pub unix_s: u64,
}

/// What makes two records one: kernel, data and their order, device, parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

impl Key {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The key of a trial.
    #[must_use]
    pub fn of(workload: &Workload, device: &str, parameters: &impl Mapping) -> Self {
        // A mapping is plain data: it cannot fail, and its text is the same every time.
        let parameters = serde_json::to_string(parameters).unwrap_or_default();
        let data = workload.data.as_ref().map_or_else(String::new, |data| format!(" on {data}"));
        let order =
            workload.numbering.as_ref().map_or_else(String::new, |order| format!(" numbered {order}"));
        Self(format!("{} {}{data}{order} {parameters} {device}", workload.kernel, workload.size))
    }
}

impl<M: Mapping> Record<M> {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> Key {
        Key::of(&self.workload, &self.device.name, &self.parameters)
    }
}

impl<M> Record<M> {
    /// The same trial with its mapping as something else.
    pub(crate) fn map<N, E>(self, change: impl FnOnce(M) -> Result<N, E>) -> Result<Record<N>, E> {
        let Self { version, workload, device, parameters, rank, predicted_s, outcome, seed, unix_s } = self;
        let parameters = change(parameters)?;
        Ok(Record { version, workload, device, parameters, rank, predicted_s, outcome, seed, unix_s })
    }

    /// Whether both are trials of the same work on the same device, on data in whatever order.
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        self.device.name == other.device.name && self.workload.is_beside(&other.workload)
    }

    /// The measurement, if it has one.
    #[must_use]
    pub fn measurement(&self) -> Option<&Measurement> {
        match &self.outcome {
            Outcome::Measured(m) => Some(m),
            Outcome::Refused(_) => None,
        }
    }

    /// Median seconds, if it was measured.
    #[must_use]
    pub fn median_s(&self) -> Option<f64> {
        self.measurement().map(|m| m.median_s)
    }

    /// Joules of one run, if they were counted.
    #[must_use]
    pub fn joules(&self) -> Option<f64> {
        self.measurement()?.joules
    }

    /// Operations of the untransformed kernel a second, FLOP/s.
    #[must_use]
    pub fn flops_per_s(&self) -> Option<f64> {
        self.median_s().map(|s| self.workload.work.flops as f64 / s)
    }

    /// Part of the roofline with tables in local memory.
    #[must_use]
    pub fn of_table_roofline(&self) -> Option<f64> {
        self.flops_per_s().map(|rate| rate / self.workload.work.table_roofline(&self.device))
    }

    /// How near it comes to its rooflines, by what it executes and by what is written.
    #[must_use]
    pub fn shares(&self) -> Option<Shares> {
        let measurement = self.measurement()?;
        Some(self.workload.work.shares(measurement.executed_flops, measurement.median_s, &self.device))
    }

    /// Part of the roofline of memory and arithmetic alone.
    #[must_use]
    pub fn of_true_roofline(&self) -> Option<f64> {
        self.flops_per_s().map(|rate| rate / self.workload.work.true_roofline(&self.device))
    }
}

/// What makes a mapping the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Objective {
    /// The least time.
    #[default]
    Time,
    /// The least energy, of records that have it.
    Energy,
}

impl Objective {
    /// What is to be small: seconds or joules of one run, where the record has them.
    #[must_use]
    pub fn of<M>(self, record: &Record<M>) -> Option<f64> {
        match self {
            Self::Time => record.median_s(),
            Self::Energy => record.joules(),
        }
    }
}

/// The best record of each (case, size, device), in the order in which these first appear.
#[must_use]
pub fn best_of_each<M>(records: &[Record<M>], objective: Objective) -> Vec<&Record<M>> {
    let mut best: Vec<(&Record<M>, f64)> = Vec::new();
    for (record, value) in records.iter().filter_map(|r| Some((r, objective.of(r)?))) {
        match best.iter_mut().find(|(b, _)| b.is_beside(record)) {
            Some(found) if value < found.1 => *found = (record, value),
            Some(_) => {}
            None => best.push((record, value)),
        }
    }
    best.into_iter().map(|(record, _)| record).collect()
}
