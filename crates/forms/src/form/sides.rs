//! Scalar graphs on one side of an interior facet.

use super::scalar::{Jet, Scalar, ScalarGraph, ScalarId};
use crate::side::Side;
use std::collections::HashMap;

/// What nodes are on each side.
#[derive(Default)]
pub(super) struct Restricted {
    plus: HashMap<ScalarId, ScalarId>,
    minus: HashMap<ScalarId, ScalarId>,
}

impl Restricted {
    /// The node with its functions and normals on a side. Position and constants are the same on
    /// both; what has a side keeps it.
    pub(super) fn one(&mut self, graph: &mut ScalarGraph, node: ScalarId, side: Side) -> ScalarId {
        let done = match side {
            Side::Plus => &mut self.plus,
            Side::Minus => &mut self.minus,
        };
        // In ascending order: operands before what uses them.
        for id in graph.below(&[node], |id| done.contains_key(&id)) {
            let moved = match graph.node(id) {
                Scalar::Jet(jet) => graph.insert(Scalar::Jet(Jet { side: jet.side.or(Some(side)), ..jet })),
                Scalar::Size(size, own) => graph.insert(Scalar::Size(size, own.or(Some(side)))),
                Scalar::FacetNormal(axis, own) => graph.insert(Scalar::FacetNormal(axis, own.or(Some(side)))),
                other @ (Scalar::Literal(_)
                | Scalar::Constant(..)
                | Scalar::Coordinate(_)
                | Scalar::Symbol(_)
                | Scalar::Variable(..)
                | Scalar::Negate(_)
                | Scalar::Add(..)
                | Scalar::Subtract(..)
                | Scalar::Multiply(..)
                | Scalar::Divide(..)
                | Scalar::Power(..)
                | Scalar::Math(..)
                | Scalar::Atan2(..)
                | Scalar::Conditional(..)) => graph.rebuild(other, &mut |o| done[&o]),
            };
            done.insert(id, moved);
        }
        done[&node]
    }

    /// As [`Restricted::one`], of several nodes.
    pub(super) fn all(&mut self, graph: &mut ScalarGraph, nodes: &[ScalarId], side: Side) -> Vec<ScalarId> {
        nodes.iter().map(|node| self.one(graph, *node, side)).collect()
    }
}
