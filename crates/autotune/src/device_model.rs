//! The models of devices that are written down.

use kingpost_runtime::DeviceModel;

/// A bug of this crate: its table of devices cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("bug of kingpost: the table of device models is broken: {0}")]
pub struct DeviceModelError(#[from] serde_json::Error);

const TABLE: &str = include_str!("../data/devices.json");

/// The devices whose ceilings are written down: those of Kulkarni & Klöckner 2025 and the ones
/// measured by the project.
///
/// # Errors
/// Never, unless the embedded table is broken.
///
/// # Source
/// Kulkarni & Klöckner 2025, section 6 (its roofline model), and own measurements; each model says
/// which.
pub fn known_devices() -> Result<Vec<DeviceModel>, DeviceModelError> {
    Ok(serde_json::from_str(TABLE)?)
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
