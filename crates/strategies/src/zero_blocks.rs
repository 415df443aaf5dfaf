//! Zero blocks of tables: loops are split where columns of a table start or end to be zero, and
//! terms with these columns are left out.

use kingpost_ir::{Expr, InameId, Insn, Kernel, TableData, UpdateOp, VarKind};
use kingpost_primitives::primitives::{DropZeroTerms, PeelIname};
use kingpost_primitives::{Schedule, TransformError};
use std::collections::{BTreeMap, BTreeSet};

/// Most parts of a loop: where zero and other columns alternate, the code would grow more than the
/// operations shrink.
const MAX_PARTS: usize = 8;

/// Splits loops over columns of tables at the ends of zero blocks, and leaves out the updates that
/// add nothing but zeros, where that takes operations away. No index goes through an array, and a
/// part of a loop reads consecutive columns.
///
/// # Source
/// Luporini et al. 2017, §6.3; which columns are zero is found by executing the indices.
///
/// # Errors
/// A bug, or a failure of isl; a loop that cannot be split stays whole.
pub(super) fn skip_zero_blocks(s: &mut Schedule) -> Result<(), TransformError> {
    let names: Vec<String> = s.kernel().inames.values().map(|i| i.name.clone()).collect();
    let mut least = None;
    for name in names {
        let Some((low, starts)) = ends_of_blocks(s.kernel(), &name) else { continue };
        let before = *least.get_or_insert_with(|| operations(s));
        let mut tried = s.clone();
        if split(&mut tried, &name, low, &starts)? && operations(&tried) < before {
            least = Some(operations(&tried));
            *s = tried;
        }
    }
    Ok(())
}

/// Where a loop starts, and where columns that it counts start or end to be zero.
fn ends_of_blocks(kernel: &Kernel, name: &str) -> Option<(i64, BTreeSet<i64>)> {
    let iname = kernel.iname(name)?;
    let (low, high) = kernel.inames[iname].domain.as_range(iname)?;
    let (low, high) = (low.as_constant()?, high.as_constant()?);
    let mut starts: BTreeSet<i64> = BTreeSet::new();
    for (id, _) in kernel.schedule().into_iter().filter(|(_, loops)| loops.contains(&iname)) {
        let zero = zero_columns(kernel, &kernel.insns[id], iname, high)?;
        let changes = |k: &i64| zero.contains(k) != zero.contains(&(k - 1));
        starts.extend((low + 1..high).filter(changes));
    }
    (!starts.is_empty() && starts.len() < MAX_PARTS).then_some((low, starts))
}

/// Splits a loop, and leaves out what adds zeros in a part; false where a part cannot be split off.
fn split(s: &mut Schedule, name: &str, low: i64, starts: &BTreeSet<i64>) -> Result<bool, TransformError> {
    let known: BTreeSet<String> = s.kernel().inames.values().map(|i| i.name.clone()).collect();
    let mut from = low;
    for start in starts {
        if s.attempt(PeelIname::first(name, start - from))?.is_none() {
            return Ok(false);
        }
        from = *start;
    }
    let kernel = s.kernel();
    let is_part = |l: &InameId| kernel.inames[*l].name == name || !known.contains(&kernel.inames[*l].name);
    let parts = kernel.schedule().into_iter().filter(|(_, loops)| loops.iter().any(is_part));
    let updates = parts.map(|(id, _)| &kernel.insns[id]).filter(|i| i.update_op() == Some(UpdateOp::Add));
    let updates: Vec<String> = updates.map(|i| i.name.clone()).collect();
    for update in updates {
        s.attempt(DropZeroTerms::new(update))?; // refused where a term is not zero
    }
    Ok(true)
}

/// The columns, of those that a loop counts, for which an update adds zeros; none of these of other
/// instructions.
fn zero_columns(kernel: &Kernel, insn: &Insn, iname: InameId, high: i64) -> Option<BTreeSet<i64>> {
    let mut zero = BTreeSet::new();
    if insn.update_op() != Some(UpdateOp::Add) {
        return Some(zero);
    }
    for access in insn.rhs.loaded_factors() {
        let var = &kernel.vars[access.var];
        let VarKind::Table(TableData::Real(values)) = &var.kind else { continue };
        let Some(axis) = access.index.iter().position(|e| *e == Expr::Iname(iname)) else { continue };
        let extents: Option<Vec<usize>> =
            var.shape.iter().map(|e| usize::try_from(e.as_constant()?).ok()).collect();
        let extents = extents?;
        let inner: usize = extents[axis + 1..].iter().product();
        let mut is_zero = vec![true; extents[axis]];
        values.iter().enumerate().filter(|(_, v)| v.0 != 0.0).for_each(|(place, _)| {
            is_zero[place / inner % extents[axis]] = false;
        });
        let columns = usize::try_from(high).ok()?.min(extents[axis]);
        zero.extend((0..columns).filter(|k| is_zero[*k]).map(|k| k as i64));
    }
    Some(zero)
}

/// Operations of a kernel for one cell; as many as there can be where they cannot be counted.
pub(super) fn operations(s: &Schedule) -> u64 {
    let params = s.kernel().vars.values().filter(|v| v.kind == VarKind::Param);
    let params: BTreeMap<String, i64> = params.map(|v| (v.name.clone(), 1)).collect();
    s.analysis().statistics(&params).map_or(u64::MAX, |counted| counted.flops())
}
