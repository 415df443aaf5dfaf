//! Callees that have code for a target.

use crate::error::CodegenError;
use crate::target::TargetDescription;
use kingpost_ir::calls::{Call, CallPlace, Callee};
use kingpost_ir::intrinsics::ships;
use kingpost_ir::{Arithmetic, CalleeId, Kernel, ScalarType};
use std::collections::{BTreeMap, BTreeSet};

/// The calls that have code for a target, by where they stand.
pub(crate) fn with_code(
    kernel: &Kernel,
    target: &TargetDescription,
) -> Result<BTreeMap<CallPlace, Call>, CodegenError> {
    let calls = kernel.calls().map_err(|error| CodegenError::Internal {
        what: format!("a kernel that is not well formed: {error}"),
        kernel: kingpost_ir::text::print(kernel),
    })?;
    // code takes and gives `f64`, where registers hold pairs
    let is_of_pairs = |callee: &Callee| {
        kernel.arithmetic == Arithmetic::DoubleSingle
            && callee.kernel.vars.values().any(|var| var.ty == ScalarType::F64)
    };
    let with_code = calls.into_iter().filter(|c| {
        let callee = &kernel.callees[c.callee];
        callee.code_for(target.name).is_some() && !is_of_pairs(callee)
    });
    Ok(with_code.map(|c| (c.place, c)).collect())
}

/// Names of the callees that Kingpost does not ship and of the declared functions, of which the source for a
/// target may hold code.
pub(crate) fn foreign(kernel: &Kernel, target: &TargetDescription) -> Result<Vec<String>, CodegenError> {
    let called: BTreeSet<CalleeId> = with_code(kernel, target)?.values().map(|call| call.callee).collect();
    let callees = called.into_iter().map(|id| &kernel.callees[id]);
    let foreign = callees.filter(|callee| !ships(callee)).map(|callee| callee.name().to_owned());
    let externals = kernel.declared().externals.into_iter().map(|function| function.name().to_owned());
    Ok(foreign.chain(externals).collect())
}
