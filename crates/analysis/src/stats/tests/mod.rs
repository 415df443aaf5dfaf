//! Statistics against the counts of a run, which shares no counting code, and against closed forms.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agreement;
mod banks;
mod formulas;
mod large;
mod samples;

use super::{AccessKind, Statistics, statistics};
use kingpost_interp::{Memory, Observer, Run, interpret_with};
use kingpost_ir::{Affine, Id, Kernel, ScalarType, VarId, VarKind};
use std::collections::{BTreeMap, BTreeSet};

const F64: ScalarType = ScalarType::F64;
const F32: ScalarType = ScalarType::F32;
const I32: ScalarType = ScalarType::I32;

pub(super) fn c(value: i64) -> Affine {
    Affine::constant(value)
}

/// Distinct elements, by variable.
#[derive(Default)]
pub(super) struct Touched {
    reads: BTreeMap<usize, BTreeSet<usize>>,
    writes: BTreeMap<usize, BTreeSet<usize>>,
}

impl Observer for Touched {
    fn read(&mut self, var: VarId, element: usize) {
        self.reads.entry(var.index()).or_default().insert(element);
    }
    fn write(&mut self, var: VarId, element: usize) {
        self.writes.entry(var.index()).or_default().insert(element);
    }
}

pub(super) fn params(values: &[(&str, i64)]) -> BTreeMap<String, i64> {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// Runs the kernel and compares everything that is flagged exact; upper bounds must be that.
pub(super) fn check(kernel: &Kernel, memory: &Memory) -> Statistics {
    let stats = statistics(kernel, memory.params()).unwrap();
    let mut touched = Touched::default();
    let run = interpret_with(kernel, &mut memory.clone(), &mut touched, None).unwrap();
    formulas::check(kernel, memory.params(), &stats);
    check_ops(&stats, &run);
    for insn in &stats.insns {
        compare(insn.instances, run.instances[&insn.name], insn.exact, &insn.name);
    }
    let of = |map: &BTreeMap<String, u64>, name: &str| map.get(name).copied().unwrap_or(0);
    let none = BTreeSet::new();
    let vars = kernel.vars.iter().filter(|(_, v)| v.kind != VarKind::Param);
    for ((id, _), var) in vars.zip(&stats.vars) {
        let name = &var.name;
        let reads = touched.reads.get(&id.index()).unwrap_or(&none);
        let writes = touched.writes.get(&id.index()).unwrap_or(&none);
        compare(var.reads.accesses, of(&run.reads, name), var.reads.exact, name);
        compare(var.writes.accesses, of(&run.writes, name), var.writes.exact, name);
        compare(var.reads.footprint, reads.len() as u64, var.reads.footprint_exact, name);
        compare(var.writes.footprint, writes.len() as u64, var.writes.footprint_exact, name);
        compare(var.touched, reads.union(writes).count() as u64, var.touched_exact, name);
    }
    stats
}

fn check_ops(stats: &Statistics, run: &Run) {
    for op in &stats.ops {
        let ran = run.ops.get(&(op.kind, op.ty)).copied().unwrap_or(0);
        compare(op.count, ran, stats.ops_exact, op.kind.name());
    }
    for (kind, ty) in run.ops.keys() {
        assert!(stats.ops_of(*kind, *ty) > 0, "{kind} {ty} was not counted");
    }
    compare(stats.flops(), run.flops(), stats.ops_exact, "flops");
    assert_eq!(stats.insns.iter().map(|i| i.flops).sum::<u64>(), stats.flops());
}

fn compare(counted: u64, ran: u64, exact: bool, what: &str) {
    if exact {
        assert_eq!(counted, ran, "{what}");
    } else {
        assert!(counted >= ran, "{what}: {counted} is no upper bound of {ran}");
    }
}

pub(super) fn footprint(stats: &Statistics, var: &str, kind: AccessKind) -> (u64, bool) {
    let traffic = stats.var(var).unwrap().traffic(kind);
    (traffic.footprint, traffic.footprint_exact)
}
