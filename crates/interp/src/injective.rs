//! Arrays that are assumed injective.

use crate::InterpError;
use crate::integers::Integers;
use crate::memory::Memory;
use crate::node::Program;
use crate::store::element_name;
use kingpost_ir::VarId;
use kingpost_ir::ids::Id;
use kingpost_ir::kernel::{Assumption, Kernel};
use std::collections::HashSet;

/// Arrays assumed injective that have values from the start must be; those that the kernel fills
/// are returned.
pub(crate) fn check_injective(
    kernel: &Kernel,
    program: &Program,
    memory: &Memory,
) -> Result<Vec<VarId>, InterpError> {
    let mut unchecked = Vec::new();
    for assumption in &kernel.assumptions {
        let Assumption::Injective(id) = assumption else { continue };
        let Some(values) = Integers::of(kernel, program, memory, *id)? else {
            unchecked.push(*id);
            continue;
        };
        if let Some((first, second, value)) = clash(&values) {
            let (var, shape) = (&kernel.vars[*id], &program.shapes[id.index()]);
            let [first, second] = [first, second].map(|at| element_name(&var.name, shape, at));
            return Err(InterpError::NotInjective { name: var.name.clone(), first, second, value });
        }
    }
    Ok(unchecked)
}

/// The first position that repeats a value, after the one that has it, and the value.
fn clash(values: &Integers<'_>) -> Option<(usize, usize, i64)> {
    let all = || (0..values.len()).filter_map(|k| values.at(k));
    let least = all().min()?;
    let span = all().max()?.abs_diff(least);
    // marks by value take a byte each; a map of spread values takes more
    let second = if span / 8 <= values.len() as u64 {
        let mut seen = vec![false; span as usize + 1];
        all().position(|v| std::mem::replace(&mut seen[v.abs_diff(least) as usize], true))?
    } else {
        let mut seen = HashSet::with_capacity(values.len());
        all().position(|v| !seen.insert(v))?
    };
    let value = values.at(second)?;
    Some((all().position(|v| v == value)?, second, value))
}
