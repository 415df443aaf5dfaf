//! What a candidate has to meet.

use kingpost_runtime::Occupancy;
use kingpost_strategies::tiling::{MAX_WORK_GROUP, TilingSizes};
use serde::{Deserialize, Serialize};

/// Bounds of the search space: the constraints of Kulkarni & Klöckner 2025, adjustable, and the
/// limits of a device.
///
/// # Source
/// Kulkarni & Klöckner 2025, section 4.2.5.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchBounds {
    /// Least `eta_alias`, Constraint 2.
    pub alias_efficiency: f64,
    /// Least `eta_simd`, Constraint 3.
    pub simd_efficiency: f64,
    /// Most work-items of a work-group, Constraint 4.
    pub work_items: u64,
    /// Work-items of a sub-group, in `eta_simd`.
    pub sub_group: u64,
    /// Most work-items of a work-group that the device takes.
    pub max_work_group: u64,
    /// Most bytes of local memory of a work-group.
    pub local_bytes: u64,
    /// Most sums that a work-item keeps in registers at a time; Kulkarni & Klöckner 2025 has no
    /// such bound.
    pub accumulators: Option<u64>,
}

impl Default for SearchBounds {
    /// The bounds of Kulkarni & Klöckner 2025 on its devices: 0.8, 0.97, 256 work-items, and 48 KiB
    /// of local memory.
    ///
    /// It does not say that 48 KiB bound its configurations, but all of its tables lie below, seven
    /// cases within 2 % (3-D P6 hyperelasticity: 48,600 bytes), while its Titan V has 96 KiB.
    fn default() -> Self {
        Self {
            alias_efficiency: 0.8,
            simd_efficiency: 0.97,
            work_items: 256,
            sub_group: 32,
            max_work_group: 1024,
            local_bytes: 48 << 10,
            accumulators: None,
        }
    }
}

impl SearchBounds {
    /// The constraints of Kulkarni & Klöckner 2025 with the limits of a device.
    #[must_use]
    pub fn of(occupancy: &Occupancy) -> Self {
        Self {
            sub_group: occupancy.sub_group,
            max_work_group: occupancy.max_work_group,
            local_bytes: occupancy.local_bytes_per_group,
            ..Self::default()
        }
    }

    /// Whether a work-item that does `eval_rows` and `quad_rows` rows of tiles has registers for
    /// their sums.
    pub(super) fn allow_rows(&self, sizes: &TilingSizes, eval_rows: u64, quad_rows: u64) -> bool {
        let values: u64 = sizes.trial.iter().map(|s| s.derivatives).sum();
        let components = sizes.test.derivatives / sizes.test.matrices.max(1);
        let sums = (eval_rows * values).max(quad_rows * components);
        self.accumulators.is_none_or(|most| sums <= most)
    }

    /// Most work-items of a work-group by Constraint 4 and the device.
    pub(super) fn largest(&self) -> u64 {
        self.work_items.min(self.largest_of_device())
    }

    /// Most work-items of a work-group by the device; four times what any GPU of today takes is
    /// enough.
    pub(super) fn largest_of_device(&self) -> u64 {
        self.max_work_group.min(MAX_WORK_GROUP)
    }

    /// Whether a work-group has a size that Constraints 3 and 4 and the device allow.
    #[must_use]
    pub(super) fn allow_work_group(&self, work_items: u64) -> bool {
        let lanes = work_items.div_ceil(self.sub_group.max(1)) * self.sub_group.max(1);
        work_items <= self.largest() && work_items as f64 >= self.simd_efficiency * lanes as f64
    }

    /// Whether Constraint 2 allows tiles of which the smallest and the largest have this many words.
    pub(super) fn allow_tiles(&self, smallest: u64, largest: u64) -> bool {
        smallest as f64 >= self.alias_efficiency * largest as f64
    }
}

/// What one constraint left over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The constraint.
    pub constraint: String,
    /// What is counted.
    pub of: String,
    /// Before it, capped at the largest integer.
    pub before: u64,
    /// After it.
    pub after: u64,
}
