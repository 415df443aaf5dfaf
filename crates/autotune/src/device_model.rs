//! What a device can do at most: three ceilings, as data.

use serde::{Deserialize, Serialize};

/// The ceilings of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceModel {
    /// Short name.
    pub name: String,
    /// What exactly it is, with clocks.
    pub description: String,
    /// Bytes a second to and from its memory.
    pub dram_bytes_per_s: f64,
    /// Bytes a second of local memory, all work-groups together; none where local memory is ordinary memory.
    pub local_bytes_per_s: Option<f64>,
    /// Double-precision operations a second, two for a fused multiply-add.
    pub fp64_flops_per_s: f64,
    /// Where the figures come from, with the date if they were measured.
    pub source: String,
}

/// A bug of this crate: its table of devices cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("bug of purlin: the table of device models is broken: {0}")]
pub struct DeviceModelError(#[from] serde_json::Error);

const TABLE: &str = include_str!("../data/devices.json");

/// The devices whose ceilings are written down: those of document 000 and the ones measured by the project.
///
/// # Errors
/// Never, unless the embedded table is broken.
///
/// # Source
/// Document 000, section 6 (its roofline model), and own measurements; each model says which.
pub fn known_devices() -> Result<Vec<DeviceModel>, DeviceModelError> {
    Ok(serde_json::from_str(TABLE)?)
}

impl DeviceModel {
    /// Whether the ceilings are positive numbers, so that rooflines mean something.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        positive(self.dram_bytes_per_s)
            && positive(self.fp64_flops_per_s)
            && self.local_bytes_per_s.is_none_or(positive)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole_and_names_are_unique() {
        let models = known_devices().unwrap();
        assert!(models.len() >= 3 && models.iter().all(DeviceModel::is_plausible));
        let mut names: Vec<_> = models.iter().map(|m| &m.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), models.len());
    }
}
