//! Roofline models: the rate that ceilings allow a piece of work.

use kingpost_runtime::DeviceModel;
use serde::{Deserialize, Serialize};

/// What a kernel does in a launch.
///
/// # Shapes and units
/// FLOP and bytes. Operations are those of the untransformed kernel, so that doing less never looks
/// slower ([`Work::executed`] has those that run); bytes of memory are compulsory ones, each datum
/// moved once.
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

/// A part of a roofline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The part; 1 is the roofline.
    pub part: f64,
    /// How it can be more than 1, where it is.
    pub why_above: Option<&'static str>,
}

impl Share {
    fn of(part: f64, why_above: &'static str) -> Self {
        Self { part, why_above: (part > 1.0).then_some(why_above) }
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} %", 100.0 * self.part)
    }
}

/// How near a kernel comes to its rooflines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// What the device executes, of memory and arithmetic alone; operations as they are written where
    /// those that are executed cannot be counted.
    pub executed: Share,
    /// Operations of the kernel as it is written, of the same.
    pub useful: Share,
    /// The same, of the roofline with tables in local memory.
    pub tables: Share,
}

/// Why a roofline of operations that are not executed is no bound.
const FEWER: &str = "fewer operations are executed than are written";
/// Why the bandwidth of memory is no bound.
const CACHED: &str = "data stay in caches, which are faster than memory";
/// Why the rate of arithmetic is no bound.
const INSTRUCTIONS: &str =
    "matrix instructions, or operations that the compiler leaves out: neither is part of the ceiling";
/// The same on a processor.
const LEFT_OUT: &str = "the compiler leaves operations out, or the ceiling was measured at a lower clock";
/// Why the bandwidth of local memory is no bound.
const REUSED: &str = "tables stay in registers or caches, or fewer of their entries are read than is written";

impl Work {
    /// The same with the operations that are executed, where they are known.
    #[must_use]
    pub fn executed(self, flops: Option<u64>) -> Self {
        Self { flops: flops.filter(|flops| *flops > 0).unwrap_or(self.flops), ..self }
    }

    /// How near a launch that takes `seconds` comes to the rooflines of `device`.
    #[must_use]
    pub fn shares(&self, executed_flops: Option<u64>, seconds: f64, device: &DeviceModel) -> Shares {
        let ran = self.executed(executed_flops);
        let part = |work: &Self| work.flops as f64 / seconds / work.true_roofline(device);
        let above = |work: &Self| match work.rate(device, Limit::Dram) < device.fp64_flops_per_s {
            true => CACHED,
            false if device.local_bytes_per_s.is_none() => LEFT_OUT,
            false => INSTRUCTIONS,
        };
        let useful = if ran.flops < self.flops { FEWER } else { above(self) };
        Shares {
            executed: Share::of(part(&ran), above(&ran)),
            useful: Share::of(part(self), useful),
            tables: Share::of(
                self.flops as f64 / seconds / self.table_roofline(device),
                if self.limit(device) == Limit::Local { REUSED } else { useful },
            ),
        }
    }

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

    /// A share above one says why; each of its reasons belongs to the ceiling that is exceeded.
    #[test]
    fn what_is_above_a_roofline_says_why() {
        let work = |flops| Work { flops, dram_bytes: 1, table_bytes: 0 };
        // as written, executed, seconds: roofs of 100 FLOP/s a FLOP until 400 FLOP/s
        let cases = [
            (8, None, 1.0, [None, None]),
            (8, Some(8), 0.01, [Some(INSTRUCTIONS), Some(INSTRUCTIONS)]),
            (1, Some(1), 0.001, [Some(CACHED), Some(CACHED)]),
            (8000, Some(8), 0.1, [None, Some(FEWER)]),
            (8000, Some(2), 0.005, [Some(CACHED), Some(FEWER)]),
            (8, Some(12), 0.1, [None, None]),
            (8, Some(0), 1.0, [None, None]),
        ];
        for (written, executed, seconds, [why_executed, why_useful]) in cases {
            let shares = work(written).shares(executed, seconds, &model());
            let found = [shares.executed.why_above, shares.useful.why_above];
            assert_eq!(found, [why_executed, why_useful], "{written} {executed:?} {seconds}");
            for share in [shares.executed, shares.useful, shares.tables] {
                assert_eq!(share.why_above.is_some(), share.part > 1.0, "{share:?}");
            }
        }
        let shares = work(8000).shares(Some(8), 0.1, &model());
        assert_eq!([shares.executed.to_string(), shares.useful.to_string()], ["20.0 %", "20000.0 %"]);
        let host = DeviceModel { local_bytes_per_s: None, ..model() };
        assert_eq!(work(8).shares(Some(8), 0.01, &host).executed.why_above, Some(LEFT_OUT));
        let tables = Work { flops: 8, dram_bytes: 1, table_bytes: 40 };
        assert_eq!(tables.shares(None, 0.03, &model()).tables.why_above, Some(REUSED));
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
