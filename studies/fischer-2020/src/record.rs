//! Measurements as lines of JSON.

use purlin::Mapping;
use purlin::kernels::BakeOff;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::Path;

/// The action of a problem with a number of unknowns on a device.
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
    /// By how much an integral over the cube is off, in units of its value.
    pub integral_error: f64,
}

impl Record {
    /// Whether both are of the same problem, size and device.
    #[must_use]
    pub fn is_of(&self, problem: BakeOff, degree: usize, divisions: usize, device: &str) -> bool {
        (self.problem.as_str(), self.degree, self.divisions, self.device.as_str())
            == (problem.name(), degree, divisions, device)
    }

    /// Billions of unknowns a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.unknowns as f64 / self.median_s / 1e9
    }
}

/// A file of records that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system refuses.
    #[error("cannot {action} `{path}`: {cause}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: String,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// A line is no record.
    #[error("line {line} of `{path}` is no record: {cause}; remove it")]
    Line {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
        /// Why not.
        #[source]
        cause: serde_json::Error,
    },
}

/// The records of a file.
///
/// # Errors
/// A file that cannot be read, a line that is no record.
pub fn read(path: &Path) -> Result<Vec<Record>, RecordError> {
    let name = path.display().to_string();
    let unreadable = |cause| RecordError::Io { action: "read", path: name.clone(), cause };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let record = |(k, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|cause| RecordError::Line {
            path: name.clone(),
            line: k + 1,
            cause,
        })
    };
    lines.map(record).collect()
}

/// Adds a record to a file.
///
/// # Errors
/// A file that cannot be written.
pub fn append(path: &Path, record: &Record) -> Result<(), RecordError> {
    let failed = |cause| RecordError::Io { action: "write", path: path.display().to_string(), cause };
    let line = serde_json::to_string(record).map_err(|e| failed(e.into()))?;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
    file.write_all(format!("{line}\n").as_bytes()).map_err(failed)
}
