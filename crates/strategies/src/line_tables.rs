//! Where the tables of contractions along lines are.

use kingpost_ir::{AddressSpace, AxisTag, Expr, InameId, Insn, Kernel, TableData, VarKind};
use kingpost_primitives::primitives::{CopyTable, SetAddressSpace, SkipZeroTerms};
use kingpost_primitives::{Schedule, Selection, TransformError};
use std::collections::BTreeSet;

/// Puts tables whose entries are constants of the code into constant memory, or writes them into
/// the code: those with most entries zero, copies for `nests`, and all if asked to. Terms with an
/// entry that is zero go, as in rows of values at points that are nodes as well, such as the ends
/// of a line.
pub(super) fn place_tables<'n>(
    s: &mut Schedule,
    nests: impl Iterator<Item = &'n str>,
    literal: bool,
) -> Result<(), TransformError> {
    let copies = copy_tables(s, nests)?;
    for table in constant(s.kernel()) {
        let (zeros, all) = zeros(s.kernel(), &table);
        if zeros > 0 {
            for update in updates_with(s.kernel(), &table) {
                s.apply(SkipZeroTerms::insn(update))?;
            }
        }
        let is_literal = literal || 2 * zeros > all || copies.contains(&table);
        let space = if is_literal { AddressSpace::Literal } else { AddressSpace::Constant };
        s.apply(SetAddressSpace::new(table, space))?;
    }
    Ok(())
}

/// Gives each nest that reads a table at constants tables of its own, where all else reads them at
/// indices of the work-item: entries are then numbers of the code, and no loads.
fn copy_tables<'n>(
    s: &mut Schedule,
    nests: impl Iterator<Item = &'n str>,
) -> Result<BTreeSet<String>, TransformError> {
    let mut copies = BTreeSet::new();
    for nest in nests {
        for table in read_in_two_ways(s.kernel(), nest) {
            let copy = s.fresh(&format!("{table}_line"));
            let readers = [Selection::Inside(nest.to_owned()), Selection::Reads(table.clone())];
            s.apply(CopyTable::new(table, Selection::All(readers.into()), &copy))?;
            copies.insert(copy);
        }
    }
    Ok(copies)
}

/// The tables that a nest reads at constants, and something else does not.
fn read_in_two_ways(kernel: &Kernel, nest: &str) -> Vec<String> {
    let Some(nest) = kernel.iname(nest) else { return Vec::new() };
    let schedule = kernel.schedule();
    let is_mixed = |table: &String| {
        let readers = schedule.iter().map(|(insn, loops)| (&kernel.insns[*insn], loops.contains(&nest)));
        let (own, others): (Vec<_>, Vec<_>) =
            readers.filter(|(insn, _)| reads(kernel, insn, table)).partition(|(_, is_inside)| *is_inside);
        let is_known = |(insn, _): &(&Insn, bool)| is_constant(kernel, insn, table);
        !own.is_empty() && own.iter().all(is_known) && !others.iter().all(is_known)
    };
    tables(kernel).filter(is_mixed).collect()
}

/// How many entries of a table are zero, and how many there are.
fn zeros(kernel: &Kernel, table: &str) -> (usize, usize) {
    match kernel.var(table).map(|v| &kernel.vars[v].kind) {
        Some(VarKind::Table(TableData::Real(values))) => {
            (values.iter().filter(|v| v.0 == 0.0).count(), values.len())
        }
        // no matrix of a contraction
        Some(_) | None => (0, 0),
    }
}

fn reads(kernel: &Kernel, insn: &Insn, table: &str) -> bool {
    insn.reads().iter().any(|access| kernel.vars[access.var].name == table)
}

/// The updates that read a table.
fn updates_with(kernel: &Kernel, table: &str) -> Vec<String> {
    let readers = kernel.insns.values().filter(|insn| reads(kernel, insn, table));
    readers.map(|insn| insn.name.clone()).collect()
}

/// Tables of two axes.
fn tables(kernel: &Kernel) -> impl Iterator<Item = String> + '_ {
    let tables = kernel.vars.values().filter(|v| matches!(v.kind, VarKind::Table(_)) && v.shape.len() == 2);
    tables.map(|v| v.name.clone())
}

/// Whether an instruction reads a table at constants of the code alone, if at all.
fn is_constant(kernel: &Kernel, insn: &Insn, table: &str) -> bool {
    let written_out = |l: InameId| kernel.inames[l].tag == AxisTag::Unrolled;
    let known = |e: &Expr| matches!(e, Expr::Iname(l) if written_out(*l));
    let accesses = insn.reads().into_iter().filter(|access| kernel.vars[access.var].name == table);
    accesses.into_iter().all(|access| access.index.iter().all(known))
}

/// Tables whose entries are constants of the code.
fn constant(kernel: &Kernel) -> Vec<String> {
    let of_all = |name: &String| kernel.insns.values().all(|insn| is_constant(kernel, insn, name));
    tables(kernel).filter(of_all).collect()
}
