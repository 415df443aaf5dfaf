//! The rows of a degree of freedom a work-item, added up in local memory.

use super::blocks::statements;
use super::single_cell::make_atomic;
use super::{constant_tables, length};
use crate::strategy::{Arguments, Stopped, Strategy, Work};
use kingpost_ir::{
    Access, AddressSpace, Atom, AxisTag, Insn, Kernel, Node, VarId, VarKind, Variable, WriteOp,
};
use kingpost_primitives::primitives::{ExpandArray, PadArray, SetAddressSpace, TransposeArrayAxes};
use kingpost_primitives::schedule::Loop;
use kingpost_primitives::tree::{body_of, insns_of, loops_of};
use kingpost_primitives::{Schedule, ScheduleSteps};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maps each iteration of the outermost loop to a work-item. Temporaries that are indexed by what is
/// read at run time go to local memory, where the elements of work-items lie side by side: no two of
/// a sub-group meet in a bank. The others are private, tables constant. Sixteen work-items store a row
/// together, so that they write what lies side by side.
///
/// For matrices whose [rows are owned](kingpost_forms::lowering::MatrixResult::OwnedRows).
///
/// # Errors
/// A step that is refused: iterations that depend on each other, a group of no work-item.
///
/// # Source
/// Trotter et al. 2023, §3.7: "assign an entire row of the global matrix to a single thread and thus
/// avoid the need for atomic operations"; Cecka, Lew & Darve as cited there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnedRows {
    /// Degrees of freedom, and so work-items, of a group.
    pub owners: u64,
}

impl fmt::Display for OwnedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owned rows, {} a group", self.owners)
    }
}

impl Arguments for OwnedRows {
    const NAME: &'static str = "owned_rows";
    const SUMMARY: &'static str = "The rows of a degree of freedom a work-item, added up in local memory.";
}

impl Strategy for OwnedRows {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        let (kernel, cells, s) = (form.kernel(), form.cell_loop()?, on.schedule());
        let looked_up: Vec<VarId> = kernel.vars.ids().filter(|v| is_looked_up(kernel, *v)).collect();
        let is_shared = |v: &&Variable| v.kind == VarKind::Temporary && v.space != AddressSpace::Private;
        for var in kernel.vars.values().filter(is_shared) {
            s.apply(SetAddressSpace::new(&var.name, AddressSpace::Private))?;
        }
        constant_tables(s, kernel)?;
        make_atomic(s, &cells.commits)?;
        let names = ["group", "item"].map(|end| format!("{}_{end}", cells.cell));
        let [group, item] = s.split_as(&cells.cell, length(self.owners), [&names[0], &names[1]])?;
        for var in &looked_up {
            let Variable { name, shape, .. } = &kernel.vars[*var];
            s.apply(ExpandArray::new(name, [item.name()]))?;
            s.apply(SetAddressSpace::new(name, AddressSpace::Local))?;
            let axes = shape.len() as u32;
            s.apply(TransposeArrayAxes::new(name, (1..=axes).chain([0])))?;
            // entries of a row, which are stored together, lie in different banks
            s.apply(PadArray::new(name, axes, 1))?;
        }
        let rows: Vec<&str> = looked_up.iter().map(|v| kernel.vars[*v].name.as_str()).collect();
        let lanes = 1 << self.owners.trailing_zeros().min(MAX_LANES.ilog2());
        match parts(s.kernel(), item.name(), &rows) {
            Some(Parts { sum, store }) => {
                let stems = [format!("{}_sum", cells.cell), format!("{}_store", cells.cell)];
                let cut = s.distribute_as(&item, [sum, store], &stems.each_ref().map(String::as_str))?;
                for own in [&item].into_iter().chain(cut.first()) {
                    let [row, lane] = s.split_as(own, lanes, ["row", "lane"])?;
                    s.tag(&row, AxisTag::Local(1))?;
                    s.tag(&lane, AxisTag::Local(0))?;
                }
                let store = s.expected(cut.into_iter().nth(1), "loop that stores")?;
                store_together(s, &store, &rows, lanes)?;
            }
            None => s.tag(&item, AxisTag::Local(0))?,
        }
        Ok(s.tag(&group, AxisTag::Group(0))?)
    }
}

/// Maximum number of work-items that store a row: of low degrees it has some twenty entries.
const MAX_LANES: u32 = 16;

/// Statements of the loop over the owners of rows, with which parts of it begin.
struct Parts {
    /// The first after the rows are cleared.
    sum: String,
    /// The first after the last one that adds to them.
    store: String,
}

/// Where the parts begin, if the first statements clear the rows and the last ones only read them.
fn parts(kernel: &Kernel, item: &str, rows: &[&str]) -> Option<Parts> {
    let nodes = body_of(kernel, kernel.iname(item)?).ok()?;
    let writes = |node: &Node, is_meant: &dyn Fn(&Insn) -> bool| {
        let insns = insns_of(std::slice::from_ref(node));
        insns
            .iter()
            .map(|i| &kernel.insns[*i])
            .any(|insn| rows.contains(&kernel.vars[insn.lhs.var].name.as_str()) && is_meant(insn))
    };
    let cleared = nodes.iter().take_while(|n| writes(n, &|insn| insn.op == WriteOp::Assign)).count();
    let summed = nodes.iter().rposition(|n| writes(n, &|_| true))? + 1;
    let names = statements(kernel, item);
    (0 < cleared && cleared < summed && summed < nodes.len())
        .then(|| Parts { sum: names[cleared].clone(), store: names[summed].clone() })
}

/// Lets work-items side by side store the entries of a row.
fn store_together(s: &mut Schedule, store: &Loop, rows: &[&str], lanes: i64) -> Result<(), Stopped> {
    let kernel = s.kernel();
    let nodes = kernel.iname(store.name()).and_then(|l| body_of(kernel, l).ok());
    let nodes = s.expected(nodes, "loop that stores")?;
    let reads =
        |insn: &Insn| insn.reads().iter().any(|access| rows.contains(&kernel.vars[access.var].name.as_str()));
    let stored = insns_of(nodes).into_iter().find(|i| reads(&kernel.insns[*i]));
    let entry = stored.and_then(|insn| loops_of(kernel, insn).ok()?.last().copied());
    let entry = entry.map(|l| kernel.inames[l].name.clone());
    let entry = s.expected(entry, "loop over the entries of a row")?;
    let [_, lane] = s.split_as(entry, lanes, ["entries", "lane"])?;
    let [part, _] = s.split_as(store, lanes, ["part", "row"])?;
    s.tag(&part, AxisTag::Local(1))?;
    Ok(s.tag(&lane, AxisTag::Local(0))?)
}

/// Whether a temporary has an index that is no function of loops and parameters.
fn is_looked_up(kernel: &Kernel, var: VarId) -> bool {
    let is_param = |v: VarId| kernel.vars[v].kind == VarKind::Param;
    let at_run_time = |access: &Access| {
        access.index.iter().any(|index| {
            let known = index.as_affine().is_some_and(|e| {
                let mut known = true;
                e.for_each_symbol(&mut |atom| {
                    if let Atom::Var(v) = atom {
                        known &= is_param(*v);
                    }
                });
                known
            });
            !known
        })
    };
    let is_temporary = kernel.vars[var].kind == VarKind::Temporary && !kernel.vars[var].shape.is_empty();
    is_temporary
        && kernel.insns.values().any(|insn| {
            let reads = insn.reads();
            reads.into_iter().chain([&insn.lhs]).any(|access| access.var == var && at_run_time(access))
        })
}
