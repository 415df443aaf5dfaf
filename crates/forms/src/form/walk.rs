//! Visiting every node of an expression once.

use super::expr::{Expr, Kind};
use super::role::Role;
use std::collections::HashSet;

/// The operands of a node, in the order in which they are written.
pub(crate) fn operands(expr: &Expr) -> Vec<&Expr> {
    match expr.kind() {
        Kind::Literal(_)
        | Kind::Identity(_)
        | Kind::Constant(_)
        | Kind::Coefficient(_)
        | Kind::Argument(..)
        | Kind::Coordinate
        | Kind::FacetNormal
        | Kind::Size(_)
        | Kind::Error(_) => Vec::new(),
        Kind::Components(list) => list.iter().collect(),
        Kind::Unary(_, a)
        | Kind::Math(_, a)
        | Kind::Index(a, ..)
        | Kind::Restricted(_, a)
        | Kind::Variable(_, a) => vec![a],
        Kind::Binary(_, a, b) | Kind::Diff(a, b) => vec![a, b],
        Kind::Gateaux(a, b, c) => vec![a, b, c],
        Kind::Conditional(condition, a, b) => vec![&condition.left, &condition.right, a, b],
    }
}

/// Calls `visit` once with every node, in the order in which they are first met from the top.
pub(crate) fn for_each_node(expr: &Expr, visit: &mut dyn FnMut(&Expr)) {
    let mut seen = HashSet::new();
    let mut open = vec![expr];
    while let Some(node) = open.pop() {
        if seen.insert(node.address()) {
            visit(node);
            open.extend(operands(node).into_iter().rev());
        }
    }
}

/// Whether the test or the trial function occurs.
pub(crate) fn has_argument(expr: &Expr, role: Role) -> bool {
    let mut found = false;
    for_each_node(expr, &mut |node| found |= matches!(node.kind(), Kind::Argument(r, _) if *r == role));
    found
}

/// Every node once, operands before what uses them.
pub(crate) fn operands_first(expr: &Expr) -> Vec<&Expr> {
    let (mut order, mut seen) = (Vec::new(), HashSet::new());
    // The flag tells whether the operands were visited already.
    let mut open = vec![(expr, false)];
    while let Some((node, visited)) = open.pop() {
        if visited {
            order.push(node);
        } else if seen.insert(node.address()) {
            open.push((node, true));
            open.extend(operands(node).into_iter().rev().map(|o| (o, false)));
        }
    }
    order
}
