//! Statistics: operations, accesses and footprints at fixed parameters, without running the kernel.
//!
//! Costs are those of the kernel as it is written: nothing is folded or shared, a rule costs what
//! its expansion costs, an update one operation, one read and one write, a reduction one operation
//! a point. The condition of an `if`, `and` or predicate that is affine is counted exactly; one on
//! data gives an upper bound and is flagged.
//!
//! ```
//! use kingpost_analysis::stats::{AccessKind, statistics};
//! use kingpost_ir::{Access, AddressSpace, Affine, Direction, Expr, KernelBuilder, ScalarType};
//!
//! let mut b = KernelBuilder::new("scale");
//! let n = b.param("n", ScalarType::I32);
//! let x = b.argument("x", ScalarType::F64, [Affine::var(n)], Direction::In);
//! let y = b.argument("y", ScalarType::F64, [Affine::var(n)], Direction::Out);
//! let i = b.open_loop("i", Affine::constant(0), Affine::var(n));
//! b.assign("s", Access::new(y, [i.into()]), Expr::load(x, [i.into()]) * 2.0);
//! b.close_loop();
//! let kernel = b.finish()?;
//!
//! let stats = statistics(&kernel, &[("n".to_owned(), 1_000_000)].into())?;
//! assert_eq!(stats.flops(), 1_000_000);
//! assert_eq!(stats.bytes(AddressSpace::Global, AccessKind::Read), 8_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod banks;
mod collect;
mod context;
mod count;
mod counting;
mod error;
mod footprint;
mod formula;
mod report;
mod symbolic;
#[cfg(test)]
mod tests;

pub use banks::{BankTraffic, bank_traffic};
pub use error::StatsError;
pub use kingpost_interp::OpKind;
pub use report::{AccessKind, InsnStatistics, OpCount, Statistics, Traffic, VarStatistics};
pub use symbolic::{CountFormula, Counted, Formulas, OpFormula, VarFormulas, formulas, points};

use collect::{Accesses, Collector, Image};
use kingpost_interp::{InterpError, Tally, lower};
use kingpost_ir::ids::VarId;
use kingpost_ir::kernel::{Kernel, VarKind};
use std::collections::BTreeMap;

/// Statistics of a kernel at these parameters.
///
/// # Errors
/// A kernel that is not well formed, a missing parameter; bounds that depend on data or are
/// missing; counts beyond 64 bits; domains so intricate that counting them would take minutes.
pub fn statistics(kernel: &Kernel, params: &BTreeMap<String, i64>) -> Result<Statistics, StatsError> {
    let kernel = &*kernel.scalar_form();
    let program = lower(kernel, params)?;
    let params = &*kernel.with_defined(params).map_err(InterpError::from)?;
    let value = |v: &kingpost_ir::Variable| match v.kind {
        VarKind::Param => params.get(&v.name).copied(),
        VarKind::Argument(_) | VarKind::Temporary | VarKind::Table(_) => None,
    };
    let setting = context::Setting { kernel, params: kernel.vars.values().map(value).collect() };
    let mut collector = Collector::new(&setting);
    collector.statements(&program.statements)?;
    let costs = kernel.insns.values().zip(&collector.insns);
    let insns = costs.map(|(insn, cost)| {
        let collect::InsnCost { instances, flops, exact } = *cost;
        InsnStatistics { name: insn.name.clone(), instances, flops, exact }
    });
    let insns = insns.collect();
    let ops = Tally::collect(&collector.ops).into_iter();
    let ops = ops.map(|((kind, ty), count)| OpCount { kind, ty, count }).collect();
    let mut vars = Vec::new();
    for (id, _) in kernel.vars.iter().filter(|(_, v)| v.kind != VarKind::Param) {
        vars.push(variable(kernel, id, &program.shapes, &collector)?);
    }
    Ok(Statistics { insns, ops, ops_exact: !collector.ops_inexact, vars })
}

fn variable(
    kernel: &Kernel,
    id: VarId,
    shapes: &[Vec<usize>],
    collector: &Collector<'_, context::Setting<'_>>,
) -> Result<VarStatistics, StatsError> {
    let k = kingpost_ir::ids::Id::index(id);
    let (var, shape) = (&kernel.vars[id], &shapes[k]);
    let (reads, writes) = (&collector.reads[k], &collector.writes[k]);
    let distinct = |images: &[&Image]| footprint::distinct(&var.name, shape, images, kernel.inames.len());
    let traffic = |a: &Accesses| -> Result<Traffic, StatsError> {
        let images: Vec<&Image> = a.images.iter().collect();
        let (footprint, footprint_exact) = distinct(&images)?;
        Ok(Traffic { accesses: a.count, exact: !a.inexact, footprint, footprint_exact })
    };
    let (read, written) = (traffic(reads)?, traffic(writes)?);
    let both: Vec<&Image> = reads.images.iter().chain(&writes.images).collect();
    let (touched, touched_exact) = match (reads.images.is_empty(), writes.images.is_empty()) {
        (true, _) => (written.footprint, written.footprint_exact),
        (_, true) => (read.footprint, read.footprint_exact),
        (false, false) => distinct(&both)?,
    };
    Ok(VarStatistics {
        name: var.name.clone(),
        ty: var.ty,
        space: var.space,
        elements: shape.iter().map(|e| *e as u64).product(),
        reads: read,
        writes: written,
        touched,
        touched_exact,
    })
}
