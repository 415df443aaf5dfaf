//! Arrays that are assumed to ascend.

use crate::InterpError;
use crate::integers::Integers;
use crate::memory::Memory;
use crate::node::Program;
use kingpost_ir::VarId;
use kingpost_ir::kernel::{Assumption, Kernel};

/// Arrays assumed ascending that have values from the start must be; those that the kernel fills are
/// returned.
pub(crate) fn check_ascending(
    kernel: &Kernel,
    program: &Program,
    memory: &Memory,
) -> Result<Vec<VarId>, InterpError> {
    let mut unchecked = Vec::new();
    for assumption in &kernel.assumptions {
        let Assumption::Ascending(id) = assumption else { continue };
        let Some(values) = Integers::of(kernel, program, memory, *id)? else {
            unchecked.push(*id);
            continue;
        };
        let pairs = (1..values.len()).filter_map(|at| Some((at, values.at(at - 1)?, values.at(at)?)));
        if let Some((at, first, second)) = pairs.into_iter().find(|(_, first, second)| second < first) {
            let name = kernel.vars[*id].name.clone();
            return Err(InterpError::NotAscending { name, at, first, second });
        }
    }
    Ok(unchecked)
}
