//! What a kernel does, for rooflines.

use crate::Work;
use kingpost_analysis::stats::{AccessKind, StatsError, statistics};
use kingpost_ir::{AddressSpace, Kernel, VarKind};
use std::collections::BTreeMap;

/// Counts the work of `kernel` at these parameters. Ask it of the untransformed kernel, so that
/// doing less work never looks slower.
///
/// # Errors
/// As [`statistics`].
///
/// # Source
/// Kulkarni & Klöckner 2025, section 6: footprint, and local-memory traffic of the reference
/// matrices.
pub fn kernel_work(kernel: &Kernel, params: &BTreeMap<String, i64>) -> Result<Work, StatsError> {
    let stats = statistics(kernel, params)?;
    let mut work = Work { flops: stats.flops(), dram_bytes: 0, table_bytes: 0 };
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
