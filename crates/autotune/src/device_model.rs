//! What a device can do at most, as data: three ceilings, and what bounds the work in flight.

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
    /// What bounds the work that is in flight; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<Occupancy>,
}

/// What bounds the work that a multiprocessor (compute unit, core) has in flight, and how much of it it needs.
///
/// # Source
/// Kulkarni & Klöckner 2025, Table 3 and equations (41), (42), (45).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Work-items that run in lockstep.
    pub sub_group: u64,
    /// Most work-items of a work-group.
    pub max_work_group: u64,
    /// Most bytes of local memory of a work-group.
    pub local_bytes_per_group: u64,
    /// Bytes of local memory of a multiprocessor, which its work-groups share: `L_max`.
    pub local_bytes_per_unit: u64,
    /// Most work-groups on a multiprocessor at a time: `W_max`.
    pub groups_per_unit: u64,
    /// Sub-groups on a multiprocessor from which on the bandwidth of memory is reached: `SG_sat,global`.
    pub sub_groups_to_saturate_global: f64,
    /// The same for local memory: `SG_sat,local`.
    pub sub_groups_to_saturate_local: f64,
}

impl Occupancy {
    /// Whether all limits are positive, and a work-group can have all of its local memory.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        let saturation = [self.sub_groups_to_saturate_global, self.sub_groups_to_saturate_local];
        self.sub_group >= 1
            && self.max_work_group >= 1
            && self.groups_per_unit >= 1
            && (1..=self.local_bytes_per_unit).contains(&self.local_bytes_per_group)
            && saturation.iter().all(|s| s.is_finite() && *s > 0.0)
    }
}

/// A bug of this crate: its table of devices cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("bug of purlin: the table of device models is broken: {0}")]
pub struct DeviceModelError(#[from] serde_json::Error);

const TABLE: &str = include_str!("../data/devices.json");

/// The devices whose ceilings are written down: those of Kulkarni & Klöckner 2025 and the ones measured by
/// the project.
///
/// # Errors
/// Never, unless the embedded table is broken.
///
/// # Source
/// Kulkarni & Klöckner 2025, section 6 (its roofline model), and own measurements; each model says which.
pub fn known_devices() -> Result<Vec<DeviceModel>, DeviceModelError> {
    Ok(serde_json::from_str(TABLE)?)
}

impl DeviceModel {
    /// Whether the ceilings are positive numbers, so that rooflines and predictions mean something.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        positive(self.dram_bytes_per_s)
            && positive(self.fp64_flops_per_s)
            && self.local_bytes_per_s.is_none_or(positive)
            && self.occupancy.is_none_or(|o| o.is_plausible())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole_and_names_are_unique() {
        let models = known_devices().unwrap();
        assert!(models.len() >= 4 && models.iter().all(DeviceModel::is_plausible));
        let mut names: Vec<_> = models.iter().map(|m| &m.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), models.len());
    }
    /// Kulkarni & Klöckner 2025, Table 3, column by column.
    #[test]
    fn published_devices_are_as_published() {
        let models = known_devices().unwrap();
        let table = [
            ("Tesla K40c", 1430.0, 288.0, 1000.0, 48, 32, 8.0, 10.0),
            ("Titan V", 6144.0, 653.0, 13800.0, 96, 32, 1.0, 12.0),
        ];
        for (name, peak, global, local, kib, groups, saturate_global, saturate_local) in table {
            let m = models.iter().find(|m| m.name == name).unwrap();
            let o = m.occupancy.unwrap();
            assert_eq!((m.fp64_flops_per_s, m.dram_bytes_per_s), (peak * 1e9, global * 1e9), "{name}");
            assert_eq!(m.local_bytes_per_s, Some(local * 1e9), "{name}");
            assert_eq!((o.local_bytes_per_unit, o.groups_per_unit), (kib << 10, groups), "{name}");
            let saturation = (o.sub_groups_to_saturate_global, o.sub_groups_to_saturate_local);
            assert_eq!(saturation, (saturate_global, saturate_local), "{name}");
        }
    }
}
