//! What a device can do at most, as data: three ceilings, and what bounds the work in flight.

use crate::device::DeviceInfo;
use serde::{Deserialize, Serialize};

/// What a device can do at most: written down, or measured by [`crate::measure_ceilings`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceModel {
    /// Its name.
    pub name: String,
    /// What exactly it is, with clocks; of a device of this machine its driver or compiler.
    #[serde(alias = "driver")] // so records had it before version 2
    pub description: String,
    /// Highest clock in MHz; 0 where it is not known.
    #[serde(default)]
    pub clock_mhz: u32,
    /// Bytes a second to and from its memory.
    pub dram_bytes_per_s: f64,
    /// Bytes a second of local memory, all work-groups together; none where local memory is
    /// ordinary memory.
    pub local_bytes_per_s: Option<f64>,
    /// Double-precision operations a second, two for a fused multiply-add.
    pub fp64_flops_per_s: f64,
    /// Where the figures come from, with the date if they were measured.
    #[serde(default)]
    pub source: String,
    /// What bounds the work that is in flight; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<Occupancy>,
}

/// What bounds the work that a multiprocessor (compute unit, core) has in flight, and how much of
/// it it needs.
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
    /// Sub-groups on a multiprocessor from which on the bandwidth of memory is reached:
    /// `SG_sat,global`.
    pub sub_groups_to_saturate_global: f64,
    /// The same for local memory: `SG_sat,local`.
    pub sub_groups_to_saturate_local: f64,
}

impl Occupancy {
    /// What bounds the work in flight on a device of this machine.
    ///
    /// A CPU core runs one work-group at a time, in vectors of eight numbers at most, and has
    /// nothing to saturate. For a GPU, of which the driver says no more, the saturation is that of
    /// the Titan V (Kulkarni & Klöckner 2025, Table 3).
    #[must_use]
    pub fn of(info: &DeviceInfo) -> Self {
        let width = info.backend.target().description().widths().and_then(|widths| widths.first());
        let gpu = width.is_some();
        let local = info.local_mem_bytes.max(1);
        Self {
            sub_group: width.map_or(8, |width| u64::from(*width)),
            max_work_group: info.max_work_group_size.max(1),
            local_bytes_per_group: local,
            local_bytes_per_unit: local,
            groups_per_unit: if gpu { 32 } else { 1 },
            sub_groups_to_saturate_global: 1.0,
            sub_groups_to_saturate_local: if gpu { 12.0 } else { 1.0 },
        }
    }

    /// Whether it is that of a card, whose units have several groups at a time.
    #[must_use]
    pub fn is_card(&self) -> bool {
        self.groups_per_unit > 1
    }

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

impl DeviceModel {
    /// Whether it is known to be a card.
    #[must_use]
    pub fn is_card(&self) -> bool {
        self.occupancy.is_some_and(|o| o.is_card())
    }

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
