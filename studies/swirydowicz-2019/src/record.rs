//! Measurements as lines of JSON.

use crate::problem::{Precision, Problem, Sizes};
use crate::recipes::Tuned;
use kingpost::runtime::DeviceInfo;
use kingpost_cli::{JsonLinesError, read_json_lines};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One kernel at one size on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The kernel's name, such as `bp35.2d.10`.
    pub kernel: String,
    /// Polynomial degree.
    pub degree: usize,
    /// The type of all real numbers; double where a record does not say.
    #[serde(default)]
    pub precision: Precision,
    /// Elements of the launch.
    pub elements: usize,
    /// The device, as it calls itself.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// Its highest clock, in MHz.
    pub clock_mhz: u32,
    /// Operations of an element, by the closed formula.
    pub operations: u64,
    /// Bytes of global memory that an element has to move, by Table 2.
    pub bytes: u64,
    /// Bytes of local memory that an element's work-group reads and writes.
    pub shared_bytes: u64,
    /// BLAKE3 hash of the source.
    pub source: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// It was right, and timed.
    Measured {
        /// Median of the runs, in seconds.
        median_s: f64,
        /// Shortest run, in seconds.
        min_s: f64,
        /// Longest run, in seconds.
        max_s: f64,
        /// Runs that count.
        runs: usize,
        /// Median time of a copy that moves the same bytes, in the same process, in seconds.
        copy_s: f64,
        /// Largest difference from the dense operator, in units of its largest value.
        error: f64,
        /// Registers, spills and local memory, where the compiler tells.
        resources: Option<String>,
    },
    /// It was not timed.
    Refused(String),
}

/// What tells one record from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    kernel: String,
    degree: usize,
    precision: Precision,
    elements: usize,
    device: String,
}

impl Key {
    /// Of a kernel on `elements` elements on a device.
    #[must_use]
    pub fn new(kernel: Tuned, sizes: Sizes, elements: usize, info: &DeviceInfo) -> Self {
        let Sizes { degree, precision, .. } = sizes;
        Self { kernel: kernel.to_string(), degree, precision, elements, device: info.name.clone() }
    }
}

impl Record {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> Key {
        let Self { kernel, degree, precision, elements, device, .. } = self;
        let (kernel, device) = (kernel.clone(), device.clone());
        Key { kernel, degree: *degree, precision: *precision, elements: *elements, device }
    }

    /// The kernel, if it is one of today's.
    #[must_use]
    pub fn tuned(&self) -> Option<Tuned> {
        self.kernel.parse().ok()
    }

    /// The problem, if the kernel is one of today's.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        Some(self.tuned()?.problem)
    }

    /// FLOP/s of the median.
    #[must_use]
    pub fn flops_per_s(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Measured { median_s, .. } => {
                Some(self.operations as f64 * self.elements as f64 / median_s)
            }
            Outcome::Refused(_) => None,
        }
    }

    /// FLOP/s of the streaming roofline: those of a kernel as fast as the copy.
    ///
    /// # Source
    /// Świrydowicz et al. 2019, equation (12).
    #[must_use]
    pub fn streaming(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Measured { copy_s, .. } => Some(self.operations as f64 * self.elements as f64 / copy_s),
            Outcome::Refused(_) => None,
        }
    }
}

/// The records of a file, the last of several with one key.
///
/// # Errors
/// A file that cannot be read, a line that is no record.
pub fn read(path: &Path) -> Result<Vec<Record>, JsonLinesError> {
    let mut records: Vec<Record> = Vec::new();
    for record in read_json_lines::<Record>(path)? {
        let key = record.key();
        match records.iter_mut().find(|r| r.key() == key) {
            Some(old) => *old = record,
            None => records.push(record),
        }
    }
    Ok(records)
}
