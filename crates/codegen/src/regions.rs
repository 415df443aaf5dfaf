//! Loops over the work-items of a group, for C.

use crate::ast::{Block, Expr, For, LoopKind, Stmt};
use crate::axes::Axes;
use crate::declare::Private;
use crate::env::Env;
use purlin_ir::ScalarType;

/// Puts statements without barriers into loops over the work-items.
pub(crate) fn work_item_loops(
    body: Block,
    env: &Env<'_>,
    axes: &Axes,
    _privates: &mut Vec<Private>,
) -> Block {
    wrap(body, env, axes)
}

/// Loops over the work-items, l.0 innermost.
fn wrap(mut body: Block, env: &Env<'_>, axes: &Axes) -> Block {
    if body.is_empty() {
        return body;
    }
    for axis in 0..3_u8 {
        let Some(local) = &axes.block[usize::from(axis)] else { continue };
        body = vec![Stmt::For(For {
            name: env.name(env.hardware(false, axis)).clone(),
            ty: ScalarType::I32,
            lower: Expr::int(0),
            upper: Expr::int(local.extent),
            step: 1,
            kind: LoopKind::WorkItems,
            body,
        })];
    }
    body
}
