//! What stands in the code, however often it runs.

use super::value::arithmetic;
use crate::ast::{Declare, Expr, Stmt};

/// Operations in floating point of statements, each once.
pub(super) fn operations(block: &[Stmt]) -> u64 {
    let of = |e: &Expr| arithmetic(e);
    let of_statement = |statement: &Stmt| match statement {
        Stmt::Comment(_) | Stmt::Iteration(_) | Stmt::Barrier(_) | Stmt::Intrinsic(_) => 0,
        Stmt::Declare(declared) => declared.value.as_ref().map_or(0, of),
        Stmt::Assign { op, value, .. } => of(value) + u64::from(op.is_some()),
        Stmt::Atomic(atomic) => of(&atomic.value),
        Stmt::If { body, .. } => operations(body),
        Stmt::For(repeated) => operations(&repeated.body),
    };
    block.iter().map(of_statement).sum()
}

/// Words of the private arrays of a block: its own, and of blocks in it the most.
pub(super) fn array_words(block: &[Stmt]) -> u64 {
    let (mut own, mut inner) = (0, 0);
    for statement in block {
        match statement {
            Stmt::Declare(Declare { ty, len: Some(len), lanes, local: false, .. }) => {
                own += (ty.bytes() * u64::from(*lanes) * len).div_ceil(4);
            }
            Stmt::If { body, .. } => inner = inner.max(array_words(body)),
            Stmt::For(repeated) => inner = inner.max(array_words(&repeated.body)),
            Stmt::Comment(_)
            | Stmt::Iteration(_)
            | Stmt::Barrier(_)
            | Stmt::Intrinsic(_)
            | Stmt::Declare(_)
            | Stmt::Assign { .. }
            | Stmt::Atomic(_) => {}
        }
    }
    own + inner
}
