//! Roofline models: the rate that ceilings allow a piece of work.

use purlin_runtime::DeviceModel;
use serde::{Deserialize, Serialize};

/// What a kernel does in a launch.
///
/// # Shapes and units
/// FLOP and bytes. Operations are those of the untransformed kernel, so that doing less never looks
/// slower; bytes of memory are compulsory ones, each datum moved once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes of the distinct elements of arguments that are read or written: an element that is
    /// updated counts twice. Constant tables are left out, they stay in caches.
    pub dram_bytes: u64,
    /// Bytes of all reads of constant tables, which [`Self::table_roofline`] charges to local
    /// memory.
    pub table_bytes: u64,
}

/// Which ceiling a piece of work meets first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The bandwidth of memory.
    Dram,
    /// The bandwidth of local memory.
    Local,
    /// Arithmetic.
    Fp64,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Dram => "memory bandwidth",
            Self::Local => "local-memory bandwidth",
            Self::Fp64 => "FP64 arithmetic",
        })
    }
}

impl Work {
    /// Operations a byte of memory, FLOP/B.
    #[must_use]
    pub fn intensity(&self) -> f64 {
        self.flops as f64 / self.dram_bytes as f64
    }

    /// The highest rate on `device`, in FLOP/s, by memory and arithmetic alone.
    ///
    /// # Source
    /// Williams et al. 2009.
    #[must_use]
    pub fn true_roofline(&self, device: &DeviceModel) -> f64 {
        self.rate(device, Limit::Dram).min(device.fp64_flops_per_s)
    }

    /// The highest rate on
    /// `device`, in FLOP/s, where every value of the reference matrices also comes from local
    /// memory, once for each read. Where a device has no local memory of its own, this is
    /// [`Self::true_roofline`].
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, section 6:
    /// `min(dram * flops / footprint, local * flops / local bytes, FP64 peak)`.
    #[must_use]
    pub fn table_roofline(&self, device: &DeviceModel) -> f64 {
        self.true_roofline(device).min(self.rate(device, Limit::Local))
    }

    /// The ceiling that [`Self::table_roofline`] stands on.
    #[must_use]
    pub fn limit(&self, device: &DeviceModel) -> Limit {
        let roof = self.table_roofline(device);
        let order = [Limit::Fp64, Limit::Dram, Limit::Local];
        order.into_iter().find(|limit| self.rate(device, *limit) <= roof).unwrap_or(Limit::Fp64)
    }

    /// The rate if one ceiling of `device` were the only one; infinite where there is none.
    #[must_use]
    pub fn rate(&self, device: &DeviceModel, limit: Limit) -> f64 {
        let flops = self.flops as f64;
        match limit {
            Limit::Fp64 => device.fp64_flops_per_s,
            Limit::Dram => device.dram_bytes_per_s * flops / self.dram_bytes as f64,
            Limit::Local => match device.local_bytes_per_s {
                Some(rate) if self.table_bytes > 0 => rate * flops / self.table_bytes as f64,
                Some(_) | None => f64::INFINITY,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> DeviceModel {
        let text = String::new;
        DeviceModel {
            name: text(),
            description: text(),
            clock_mhz: 0,
            dram_bytes_per_s: 100.0,
            local_bytes_per_s: Some(1000.0),
            fp64_flops_per_s: 400.0,
            source: text(),
            occupancy: None,
        }
    }

    #[test]
    fn each_ceiling_limits_the_work_that_meets_it() {
        let cases = [
            (1, 0, 100.0, 100.0, Limit::Dram),
            (8, 0, 400.0, 400.0, Limit::Fp64),
            (8, 4, 400.0, 400.0, Limit::Fp64),
            (8, 40, 400.0, 200.0, Limit::Local),
        ];
        for (flops, table_bytes, roof, with_tables, limit) in cases {
            let work = Work { flops, dram_bytes: 1, table_bytes };
            assert_eq!(work.true_roofline(&model()), roof);
            assert_eq!(work.table_roofline(&model()), with_tables);
            assert_eq!(work.limit(&model()), limit, "{work:?}");
            let host = DeviceModel { local_bytes_per_s: None, ..model() };
            assert_eq!(work.table_roofline(&host), roof, "no local memory of its own");
        }
    }
}
