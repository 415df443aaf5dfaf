//! What a kernel does, for rooflines.

use purlin_analysis::stats::{AccessKind, StatsError, statistics};
use purlin_autotune::{DeviceModel, Occupancy, Work};
use purlin_ir::{AddressSpace, Kernel, VarKind};
use purlin_runtime::{Backend, Ceilings, DeviceInfo};
use std::collections::BTreeMap;

/// Operations and bytes of one launch of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelWork {
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes of the distinct elements of arguments that are read or written: an element that is updated
    /// counts twice. Constant tables are left out, they stay in caches.
    pub dram_bytes: u64,
    /// Bytes of all reads of constant tables.
    pub table_bytes: u64,
}

/// Counts the work of `kernel` at these parameters. Ask it of the untransformed kernel, so that doing less
/// work never looks slower.
///
/// # Errors
/// As [`statistics`].
///
/// # Source
/// Kulkarni & Klöckner 2025, section 6: footprint, and local-memory traffic of the reference matrices.
pub fn kernel_work(kernel: &Kernel, params: &BTreeMap<String, i64>) -> Result<KernelWork, StatsError> {
    let stats = statistics(kernel, params)?;
    let mut work = KernelWork { flops: stats.flops(), dram_bytes: 0, table_bytes: 0 };
    for var in &stats.vars {
        let bytes = var.ty.bytes();
        match kernel.var(&var.name).map(|id| &kernel.vars[id].kind) {
            Some(VarKind::Table(_)) => {
                work.table_bytes += bytes.saturating_mul(var.traffic(AccessKind::Read).accesses);
            }
            Some(VarKind::Argument(_)) if var.space == AddressSpace::Global => {
                let moved = var.reads.footprint.saturating_add(var.writes.footprint);
                work.dram_bytes = work.dram_bytes.saturating_add(bytes.saturating_mul(moved));
            }
            Some(VarKind::Argument(_) | VarKind::Param | VarKind::Temporary) | None => {}
        }
    }
    Ok(work)
}

impl From<KernelWork> for Work {
    fn from(work: KernelWork) -> Self {
        Self {
            flops: work.flops as f64,
            dram_bytes: work.dram_bytes as f64,
            local_bytes: Some(work.table_bytes as f64),
        }
    }
}

/// The model of a device from its measured ceilings.
#[must_use]
pub fn device_model(ceilings: &Ceilings) -> DeviceModel {
    DeviceModel {
        name: ceilings.device.clone(),
        description: ceilings.driver.clone(),
        dram_bytes_per_s: ceilings.stream_bytes_per_s,
        local_bytes_per_s: ceilings.local_bytes_per_s,
        fp64_flops_per_s: ceilings.fma_flops_per_s,
        source: format!("measured at {} seconds since 1970", ceilings.measured_unix_s),
        occupancy: None,
    }
}

/// What bounds the work in flight on a device of this machine.
///
/// A CPU core runs one work-group at a time, in vectors of eight numbers at most, and has nothing to
/// saturate. For a GPU, of which the driver says no more, the saturation is that of the Titan V (Kulkarni &
/// Klöckner 2025, Table 3).
#[must_use]
pub fn occupancy(info: &DeviceInfo) -> Occupancy {
    let gpu = match info.backend {
        Backend::Cuda => true,
        Backend::C | Backend::OpenCl => false,
    };
    let local = info.local_mem_bytes.max(1);
    Occupancy {
        sub_group: if gpu { 32 } else { 8 },
        max_work_group: info.max_work_group_size.max(1),
        local_bytes_per_group: local,
        local_bytes_per_unit: local,
        groups_per_unit: if gpu { 32 } else { 1 },
        sub_groups_to_saturate_global: 1.0,
        sub_groups_to_saturate_local: if gpu { 12.0 } else { 1.0 },
    }
}
