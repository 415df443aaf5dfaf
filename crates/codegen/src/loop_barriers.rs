//! Barriers around the iterations of loops that hold one, for OpenCL.
//!
//! pocl 3.1, with LLVM 15, makes loops or copies of what stands between two barriers, and takes
//! wrong parts where a loop that holds a barrier is entered without one. Two reductions in trees, one
//! after the other, give wrong sums: in 18 of 18 variants with work-groups of 64, and in none with a
//! barrier before each loop. A loop whose body begins with an inner loop and ends with a barrier
//! stops its compiler by an assertion (`exit != NULL`) where work-groups have two work-items; a
//! barrier at the head of the body mends that, one before the loop does not. All of it was seen
//! with optimisation alone (2026-11-28). Barriers cost little where all work-items have just met at one.

use crate::ast::{Block, Fence, Stmt};
use kingpost_analysis::placement::Scope;

/// Puts a barrier before each loop that holds one, and at the head of its body, where none
/// stands. All work-items of a group arrive there, as they do at the one inside.
pub(crate) fn enclose(block: &mut Block) {
    for mut stmt in std::mem::take(block) {
        let holds = has_barrier(&stmt);
        if let Some(body) = stmt.body_mut().filter(|_| holds) {
            enclose(body);
        }
        if let (Stmt::For(f), true) = (&mut stmt, holds) {
            if !f.body.first().is_some_and(is_barrier) {
                f.body.insert(0, barrier());
            }
            if !block.last().is_some_and(is_barrier) {
                block.push(barrier());
            }
        }
        block.push(stmt);
    }
}

/// Whether all work-items of a group meet here.
fn is_barrier(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Barrier(Fence { scope: Scope::Group, .. }))
}

/// Whether they meet in a statement.
fn has_barrier(stmt: &Stmt) -> bool {
    is_barrier(stmt) || stmt.body().is_some_and(|body| body.iter().any(has_barrier))
}

/// One that orders local memory, which is the least that OpenCL has.
fn barrier() -> Stmt {
    Stmt::Barrier(Fence { scope: Scope::Group, local: true, ..Fence::nothing() })
}
