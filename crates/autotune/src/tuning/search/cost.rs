//! The predicted time of a candidate.

use kingpost_runtime::{DeviceModel, Occupancy};
use kingpost_strategies::tiling::Tiling;

/// The cost model of Kulkarni & Klöckner 2025 for a device.
///
/// # Source
/// Kulkarni & Klöckner 2025, section 4.2.6.
#[derive(Clone, Copy, Debug)]
pub struct CostModel<'a> {
    device: &'a DeviceModel,
    occupancy: &'a Occupancy,
}

/// What the model asks of a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    /// Bytes a cell to and from global memory.
    pub(super) global_bytes: f64,
    /// Bytes a cell to and from local memory.
    pub(super) local_bytes: f64,
    /// Bytes of local memory of a work-group.
    pub(super) allocated_bytes: f64,
    /// Sub-groups of a work-group, `eta_pred eta_simd ceil(N_c N_WI / 32)`.
    pub(super) effective_sub_groups: f64,
}

/// A device model without what the cost model needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model of `{device}` has no occupancy: needed sub-group, work-group and local-memory limits")]
pub struct NoOccupancy {
    /// The device.
    pub device: String,
}

impl<'a> CostModel<'a> {
    /// The model of a device.
    ///
    /// # Errors
    /// A device whose limits are not known.
    pub fn new(device: &'a DeviceModel) -> Result<Self, NoOccupancy> {
        let occupancy = device.occupancy.as_ref();
        let occupancy = occupancy.ok_or_else(|| NoOccupancy { device: device.name.clone() })?;
        Ok(Self { device, occupancy })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &'a DeviceModel {
        self.device
    }

    /// Predicted time of a cell, `t_heur` over the number of cells.
    ///
    /// # Shapes and units
    /// Seconds per cell, with all multiprocessors busy.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (40).
    #[must_use]
    pub fn seconds_per_cell(&self, tiling: &Tiling<'_>) -> f64 {
        self.seconds(&self.demand(tiling))
    }

    /// Sub-groups on a multiprocessor at a time that do something, `SG_reside,eff`.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equations (45) and (46).
    #[must_use]
    pub fn resident_sub_groups(&self, tiling: &Tiling<'_>) -> f64 {
        self.resident(&self.demand(tiling))
    }

    pub(super) fn demand(&self, tiling: &Tiling<'_>) -> Demand {
        let sub_group = self.occupancy.sub_group;
        let efficiency = tiling.predication_efficiency() * tiling.simd_efficiency(sub_group);
        Demand {
            global_bytes: tiling.modelled_global_bytes(),
            local_bytes: tiling.modelled_local_bytes() as f64,
            allocated_bytes: tiling.local_bytes() as f64,
            effective_sub_groups: efficiency * tiling.sub_groups(sub_group) as f64,
        }
    }

    /// Work-groups on a multiprocessor are bounded by their local memory and by the device; as in
    /// the source, a part of a work-group counts.
    fn resident(&self, demand: &Demand) -> f64 {
        let fitting = self.occupancy.local_bytes_per_unit as f64 / demand.allocated_bytes;
        demand.effective_sub_groups * fitting.min(self.occupancy.groups_per_unit as f64)
    }

    /// Equations (40) to (42). It never falls when `allocated_bytes` grows: the search relies on
    /// that.
    pub(super) fn seconds(&self, demand: &Demand) -> f64 {
        let resident = self.resident(demand);
        let part = |saturating: f64| (resident / saturating).min(1.0);
        let global = part(self.occupancy.sub_groups_to_saturate_global) * self.device.dram_bytes_per_s;
        let local = part(self.occupancy.sub_groups_to_saturate_local);
        let local = self.device.local_bytes_per_s.map_or(0.0, |peak| demand.local_bytes / (local * peak));
        demand.global_bytes / global + local
    }
}
