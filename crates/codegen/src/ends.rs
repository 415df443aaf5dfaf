//! Loops that end when a flag has fallen: where it guards all that the body does, the iterations that follow
//! do nothing, and leave the flag as it is.

use crate::ast::{Block, Expr, Extent, LoopKind, Name, Op, Place, Stmt};
use kingpost_ir::ScalarType;
use std::collections::BTreeSet;

/// Ends loops whose bodies a private truth value of a work-item guards.
pub(crate) fn end_loops(block: &mut Block, flags: &BTreeSet<Name>) {
    let mut flags = flags.clone();
    for stmt in block {
        if let Stmt::Declare(d) = stmt
            && d.ty == ScalarType::Bool
            && (d.len, d.lanes, d.local) == (None, 1, false)
        {
            flags.insert(d.name.clone());
        }
        if let Stmt::For(f) = stmt
            && f.kind == LoopKind::Sequential
        {
            f.flag = flags.iter().find(|flag| asks_first(&f.body, flag)).cloned();
        }
        if let Some(body) = stmt.body_mut() {
            end_loops(body, &flags);
        }
    }
}

/// Whether a body does nothing where a flag is false, and reads the flag first: it has a value then.
fn asks_first(body: &Block, flag: &Name) -> bool {
    let first = body.iter().find(|stmt| !matches!(stmt, Stmt::Comment(_)));
    matches!(first, Some(Stmt::If { .. })) && body.iter().all(|stmt| needs(stmt, flag))
}

/// Whether a statement does nothing where a flag is false. Work-items that wait for others are none of
/// them: theirs may have fallen and not that of the others.
fn needs(stmt: &Stmt, flag: &Name) -> bool {
    match stmt {
        Stmt::Comment(_) => true,
        Stmt::If { condition, body } => tests(condition, flag) && !body.iter().any(joins_others),
        Stmt::For(f) => f.kind == LoopKind::Sequential && f.body.iter().all(|s| needs(s, flag)),
        Stmt::Declare(_)
        | Stmt::Assign { .. }
        | Stmt::Atomic(_)
        | Stmt::Intrinsic(_)
        | Stmt::Iteration(_)
        | Stmt::Barrier(_) => false,
    }
}

/// Whether a condition reads a flag first, and does not hold where that is false.
fn tests(condition: &Expr, flag: &Name) -> bool {
    let Expr::Binary(op, a, _) = condition else { return false };
    let is_flag =
        |place: &Place| place.name == *flag && place.offset.is_none() && place.extent == Extent::Whole;
    (*op == Op::And && tests(a, flag))
        || (*op == Op::Ne && matches!(&**a, Expr::Load(place) if is_flag(place)))
}

fn joins_others(stmt: &Stmt) -> bool {
    let kind = if let Stmt::For(f) = stmt { f.kind } else { LoopKind::Sequential };
    matches!(stmt, Stmt::Barrier(_) | Stmt::Intrinsic(_) | Stmt::Iteration(_))
        || kind != LoopKind::Sequential
        || stmt.body().is_some_and(|body| body.iter().any(joins_others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{Declare, Fence, For};
    use kingpost_analysis::placement::Scope;

    fn ended(inside: Block) -> Option<Name> {
        let (name, flag): (Name, Name) = ("k".into(), "on".into());
        let condition = Expr::binary(Op::Ne, Expr::var(&flag), Expr::int(0));
        let body = vec![Stmt::If { condition, body: inside }];
        let head = For {
            name,
            ty: ScalarType::I32,
            lower: Expr::int(0),
            upper: Expr::int(4),
            step: 1,
            kind: LoopKind::Sequential,
            rolled: false,
            flag: None,
            body,
        };
        let declared = Declare::scalar(flag, ScalarType::Bool, None);
        let mut block = vec![Stmt::Declare(declared), Stmt::For(head)];
        end_loops(&mut block, &BTreeSet::new());
        if let Some(Stmt::For(f)) = block.pop() { f.flag } else { None }
    }

    #[test]
    fn work_items_that_wait_for_others_do_not_leave_the_loop() {
        assert_eq!(ended(Vec::new()), Some("on".into()));
        let fence = Fence { scope: Scope::Group, local: true, ..Fence::nothing() };
        assert_eq!(ended(vec![Stmt::Barrier(fence)]), None);
    }
}
