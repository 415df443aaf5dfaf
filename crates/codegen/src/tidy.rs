//! Guards as far out as they go, merged where they meet.

use crate::ast::{Block, Expr, LoopKind, Name, Op, Stmt};
use std::collections::BTreeSet;

/// Merges nested and neighbouring guards, moves guards out of loops, drops what is empty.
///
/// `mutable` names what statements may change: a condition on those stays where it is.
pub(crate) fn tidy(block: &mut Block, mutable: &BTreeSet<Name>) {
    for stmt in block.iter_mut() {
        if let Some(body) = stmt.body_mut() {
            tidy(body, mutable);
        }
    }
    let statements = std::mem::take(block);
    for stmt in statements {
        let stmt = hoisted(flattened(stmt), mutable);
        let empty = stmt.body().is_some_and(|b| b.iter().all(|s| matches!(s, Stmt::Comment(_))));
        if !empty {
            push_merged(block, stmt, mutable);
        }
    }
}

/// `if (a) { if (b) … }` as `if (a && b) …`.
fn flattened(stmt: Stmt) -> Stmt {
    let Stmt::If { condition, mut body } = stmt else { return stmt };
    if let [Stmt::If { .. }] = body[..]
        && let Some(Stmt::If { condition: inner, body }) = body.pop()
    {
        return Stmt::If { condition: Expr::binary(Op::And, condition, inner), body };
    }
    Stmt::If { condition, body }
}

/// `for (i) { if (a) … }` as `if (a) { for (i) … }` where `a` does not depend on the loop.
fn hoisted(stmt: Stmt, mutable: &BTreeSet<Name>) -> Stmt {
    let Stmt::For(mut f) = stmt else { return stmt };
    let sequential = matches!(f.kind, LoopKind::Sequential | LoopKind::Vector);
    if !sequential || f.body.len() != 1 {
        return Stmt::For(f);
    }
    match f.body.pop() {
        Some(Stmt::If { condition, body }) => {
            let (stay, go): (Vec<_>, Vec<_>) =
                conjuncts(condition).into_iter().partition(|c| depends(c, &f.name, mutable));
            f.body = match all(stay) {
                Some(condition) => vec![Stmt::If { condition, body }],
                None => body,
            };
            match all(go) {
                Some(condition) => Stmt::If { condition, body: vec![Stmt::For(f)] },
                None => Stmt::For(f),
            }
        }
        other => {
            f.body.extend(other);
            Stmt::For(f)
        }
    }
}

fn conjuncts(e: Expr) -> Vec<Expr> {
    let Expr::Binary(Op::And, a, b) = e else { return vec![e] };
    let mut all = conjuncts(*a);
    all.extend(conjuncts(*b));
    all
}

fn all(conditions: Vec<Expr>) -> Option<Expr> {
    conditions.into_iter().reduce(|a, b| Expr::binary(Op::And, a, b))
}

/// Whether a condition reads the loop variable, memory, or what statements may change.
fn depends(e: &Expr, name: &Name, mutable: &BTreeSet<Name>) -> bool {
    let mut found = false;
    e.for_each(&mut |e| {
        if let Expr::Load(place) = e {
            found |= place.offset.is_some() || place.name == *name || mutable.contains(&place.name);
        }
    });
    found || !is_stable(e, mutable)
}

/// Whether a condition says the same before and after any statement.
fn is_stable(e: &Expr, mutable: &BTreeSet<Name>) -> bool {
    let mut stable = true;
    e.for_each(&mut |e| {
        if let Expr::Load(place) = e {
            stable &= place.offset.is_none() && !mutable.contains(&place.name);
        }
    });
    stable
}

/// Appends a statement; two guards of the same condition in a row become one.
fn push_merged(block: &mut Block, stmt: Stmt, mutable: &BTreeSet<Name>) {
    let Stmt::If { condition, body } = stmt else {
        block.push(stmt);
        return;
    };
    if is_stable(&condition, mutable) {
        // Remarks between the two go inside.
        let remarks = block.iter().rev().take_while(|s| matches!(s, Stmt::Comment(_))).count();
        let at = block.len() - remarks;
        if let Some(Stmt::If { condition: before, .. }) = at.checked_sub(1).map(|k| &block[k])
            && *before == condition
        {
            let moved: Vec<Stmt> = block.drain(at..).collect();
            if let Some(Stmt::If { body: earlier, .. }) = block.last_mut() {
                earlier.extend(moved);
                earlier.extend(body);
            }
            return;
        }
    }
    block.push(Stmt::If { condition, body });
}
