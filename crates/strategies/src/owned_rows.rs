//! The rows of a degree of freedom a work-item, added up in local memory.

use super::single_cell::make_atomic;
use super::{constant_tables, length};
use crate::strategy::{Arguments, Stopped, Strategy, Work};
use kingpost_ir::{Access, AddressSpace, Atom, AxisTag, Kernel, VarId, VarKind, Variable};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{ExpandArray, SetAddressSpace, TransposeArrayAxes};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maps each iteration of the outermost loop to a work-item. Temporaries that are indexed by what is
/// read at run time go to local memory, where the elements of work-items lie side by side: no two of
/// a sub-group meet in a bank. The others are private, tables constant.
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
        for var in looked_up {
            let Variable { name, shape, .. } = &kernel.vars[var];
            s.apply(ExpandArray::new(name, [item.name()]))?;
            s.apply(SetAddressSpace::new(name, AddressSpace::Local))?;
            let axes = shape.len() as u32;
            s.apply(TransposeArrayAxes::new(name, (1..=axes).chain([0])))?;
        }
        s.tag(&group, AxisTag::Group(0))?;
        Ok(s.tag(&item, AxisTag::Local(0))?)
    }
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
