//! Roofline models: the rate that ceilings allow a piece of work.

use crate::device_model::DeviceModel;

/// What a kernel does, in any unit of work (a cell, a launch).
///
/// # Shapes and units
/// FLOP and bytes of the same unit of work. Operations are those of the untransformed kernel, so that
/// doing less never looks slower; bytes of memory are compulsory ones, each datum moved once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Floating-point operations.
    pub flops: f64,
    /// Compulsory bytes to and from the device's memory.
    pub dram_bytes: f64,
    /// Bytes of reference matrices read for every cell, which [`DeviceModel::table_roofline`] charges to
    /// local memory.
    pub local_bytes: Option<f64>,
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
        self.flops / self.dram_bytes
    }
}

impl DeviceModel {
    /// The highest rate for `work`, in FLOP/s, by memory and arithmetic alone.
    ///
    /// # Source
    /// Williams et al. 2009.
    #[must_use]
    pub fn true_roofline(&self, work: &Work) -> f64 {
        self.rate(work, Limit::Dram).min(self.fp64_flops_per_s)
    }

    /// The highest rate for `work`, in FLOP/s, where every value of the reference matrices also comes from local
    /// memory, once for each cell. Where a device has no local memory of its
    /// own, this is [`Self::true_roofline`].
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, section 6: `min(dram * flops / footprint, local * flops / local bytes, FP64
    /// peak)`.
    #[must_use]
    pub fn table_roofline(&self, work: &Work) -> f64 {
        self.true_roofline(work).min(self.rate(work, Limit::Local))
    }

    /// The ceiling that [`Self::table_roofline`] stands on.
    #[must_use]
    pub fn limit(&self, work: &Work) -> Limit {
        let roof = self.table_roofline(work);
        let order = [Limit::Fp64, Limit::Dram, Limit::Local];
        order.into_iter().find(|limit| self.rate(work, *limit) <= roof).unwrap_or(Limit::Fp64)
    }

    /// The rate of `work` if one ceiling were the only one; infinite where there is none.
    #[must_use]
    pub fn rate(&self, work: &Work, limit: Limit) -> f64 {
        match limit {
            Limit::Fp64 => self.fp64_flops_per_s,
            Limit::Dram => self.dram_bytes_per_s * work.flops / work.dram_bytes,
            Limit::Local => match (self.local_bytes_per_s, work.local_bytes) {
                (Some(rate), Some(bytes)) if bytes > 0.0 => rate * work.flops / bytes,
                (Some(_) | None, Some(_) | None) => f64::INFINITY,
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
            (1.0, None, 100.0, 100.0, Limit::Dram),
            (8.0, None, 400.0, 400.0, Limit::Fp64),
            (8.0, Some(4.0), 400.0, 400.0, Limit::Fp64),
            (8.0, Some(40.0), 400.0, 200.0, Limit::Local),
            (1.0, Some(0.0), 100.0, 100.0, Limit::Dram),
        ];
        for (flops, local_bytes, roof, document, limit) in cases {
            let work = Work { flops, dram_bytes: 1.0, local_bytes };
            assert_eq!(model().true_roofline(&work), roof);
            assert_eq!(model().table_roofline(&work), document);
            assert_eq!(model().limit(&work), limit, "{work:?}");
        }
    }
}
