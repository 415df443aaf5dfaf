//! How much memory private arrays take, and where large ones are kept.
//!
//! A work-item of CUDA and OpenCL has a fixed number of bytes. In C the arrays of a group would
//! lie on the stack of the thread that runs it, which may have 2 MiB or less: where they are many,
//! the largest become `_Thread_local` objects, which the dynamic linker takes from the heap when a
//! thread first runs the code.

use crate::ast::{Block, Name, Stmt};
use crate::error::CodegenError;
use crate::target::TargetDescription;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Bytes of the private arrays, and the names of those that do not go on the stack.
pub(crate) struct Stack {
    pub(crate) private_bytes: u64,
    pub(crate) kept: Vec<Name>,
}

impl Stack {
    /// Measures the arrays that a function declares.
    ///
    /// # Errors
    /// [`CodegenError::PrivateMemory`]: there are more than the target has room for.
    pub(crate) fn of(body: &Block, target: &TargetDescription) -> Result<Self, CodegenError> {
        let mut sizes = BTreeMap::new();
        measure(body, target, &mut sizes);
        // the largest first; of equal ones by name, so that the source is the same every time
        let mut arrays: Vec<(Reverse<u64>, Name)> = sizes.into_iter().map(|(n, b)| (Reverse(b), n)).collect();
        arrays.sort();
        let found = arrays.iter().fold(0, |sum: u64, (bytes, _)| sum.saturating_add(bytes.0));
        let limit = target.limits.private;
        match (arrays.first(), target.limits.stack) {
            (Some((Reverse(bytes), name)), _) if found > limit => Err(CodegenError::PrivateMemory {
                array: name.to_string(),
                bytes: *bytes,
                found,
                limit,
                target: target.target,
            }),
            (Some(_), Some(stack)) => Ok(Self { private_bytes: 0, kept: beyond(arrays, found, stack) }),
            (Some(_), None) | (None, _) => Ok(Self { private_bytes: found, kept: Vec::new() }),
        }
    }
}

/// The largest arrays, as many as leave the others room on the stack.
fn beyond(arrays: Vec<(Reverse<u64>, Name)>, found: u64, stack: u64) -> Vec<Name> {
    let mut left = found;
    let takes = |(bytes, name): (Reverse<u64>, Name)| {
        let too_many = left > stack;
        left -= bytes.0;
        too_many.then_some(name)
    };
    arrays.into_iter().map_while(takes).collect()
}

/// Adds up the bytes of arrays by name, all scopes together: compilers need not let two scopes
/// share.
fn measure(block: &Block, target: &TargetDescription, sizes: &mut BTreeMap<Name, u64>) {
    for stmt in block {
        if let Stmt::Declare(d) = stmt
            && let Some(len) = d.len
            && (target.is_host() || !d.local)
        {
            let size: &mut u64 = sizes.entry(d.name.clone()).or_default();
            *size = size.saturating_add(len.saturating_mul(d.ty.bytes()));
        }
        if let Some(body) = stmt.body() {
            measure(body, target, sizes);
        }
    }
}
