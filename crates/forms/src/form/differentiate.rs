//! Symbolic differentiation of scalar graphs by the chain rule.

use super::expr::{Comparison, MathFunction};
use super::scalar::{Scalar, ScalarGraph, ScalarId};
use std::collections::HashMap;
use std::f64::consts::FRAC_2_SQRT_PI;

/// What the derivative is taken by: gives the derivative of a terminal or variable, or nothing
/// where the rule for its value applies (variables) or it is zero (terminals).
pub(crate) type Seed<'a> = dyn FnMut(&mut ScalarGraph, Scalar) -> Option<ScalarId> + 'a;

/// Derivative of `node`; `done` holds the derivatives by the same seed that are known already.
///
/// Not recursive: graphs are deeper than stacks.
pub(crate) fn differentiate(
    graph: &mut ScalarGraph,
    node: ScalarId,
    seed: &mut Seed<'_>,
    done: &mut HashMap<ScalarId, ScalarId>,
) -> ScalarId {
    // Operands have smaller numbers: in ascending order they are done before what uses them.
    for id in graph.below(&[node], |id| done.contains_key(&id)) {
        let top = graph.node(id);
        let result = match top {
            Scalar::Literal(_)
            | Scalar::Constant(..)
            | Scalar::Coordinate(_)
            | Scalar::Jet(_)
            | Scalar::FacetNormal(..)
            | Scalar::Size(..)
            | Scalar::Symbol(_) => seed(graph, top).unwrap_or_else(|| graph.literal(0.0)),
            Scalar::Variable(_, _, value) => seed(graph, top).unwrap_or(done[&value]),
            Scalar::Negate(_)
            | Scalar::Add(..)
            | Scalar::Subtract(..)
            | Scalar::Multiply(..)
            | Scalar::Divide(..)
            | Scalar::Power(..)
            | Scalar::Math(..)
            | Scalar::Atan2(..)
            | Scalar::Conditional(..) => {
                let d: Vec<ScalarId> = top.operands().iter().map(|o| done[o]).collect();
                chain(graph, id, &d)
            }
        };
        done.insert(id, result);
    }
    done[&node]
}

/// Derivative of an operation whose operands have the derivatives `d`.
fn chain(graph: &mut ScalarGraph, node: ScalarId, d: &[ScalarId]) -> ScalarId {
    match graph.node(node) {
        Scalar::Literal(_)
        | Scalar::Constant(..)
        | Scalar::Coordinate(_)
        | Scalar::Jet(_)
        | Scalar::FacetNormal(..)
        | Scalar::Size(..)
        | Scalar::Symbol(_)
        | Scalar::Variable(..) => graph.literal(0.0),
        Scalar::Negate(_) => graph.negate(d[0]),
        Scalar::Add(..) => graph.add(d[0], d[1]),
        Scalar::Subtract(..) => graph.subtract(d[0], d[1]),
        Scalar::Multiply(a, b) => {
            let left = graph.multiply(d[0], b);
            let right = graph.multiply(a, d[1]);
            graph.add(left, right)
        }
        Scalar::Divide(_, b) => {
            // (a/b)' = (a' - (a/b) b') / b
            let correction = graph.multiply(node, d[1]);
            let numerator = graph.subtract(d[0], correction);
            graph.divide(numerator, b)
        }
        Scalar::Power(a, b) => power(graph, node, (a, b), (d[0], d[1])),
        Scalar::Math(function, a) => {
            let slope = slope(graph, function, node, a);
            graph.multiply(slope, d[0])
        }
        Scalar::Atan2(y, x) => {
            // (x y' - y x')/(x^2 + y^2)
            let (forward, backward) = (graph.multiply(x, d[0]), graph.multiply(y, d[1]));
            let (right, up) = (graph.multiply(x, x), graph.multiply(y, y));
            let (numerator, square) = (graph.subtract(forward, backward), graph.add(right, up));
            graph.divide(numerator, square)
        }
        Scalar::Conditional(comparison, list) => branch(graph, comparison, list, d),
    }
}

fn branch(graph: &mut ScalarGraph, comparison: Comparison, list: [ScalarId; 4], d: &[ScalarId]) -> ScalarId {
    graph.conditional(comparison, [list[0], list[1], d[2], d[3]])
}

/// `(a^b)' = b a^(b-1) a' + ln(a) a^b b'`.
fn power(
    graph: &mut ScalarGraph,
    node: ScalarId,
    (a, b): (ScalarId, ScalarId),
    d: (ScalarId, ScalarId),
) -> ScalarId {
    let one = graph.literal(1.0);
    let lower = graph.subtract(b, one);
    let lowered = graph.power(a, lower);
    let slope = graph.multiply(b, lowered);
    let by_base = graph.multiply(slope, d.0);
    if graph.is_zero(d.1) {
        return by_base;
    }
    let logarithm = graph.math(MathFunction::Ln, a);
    let slope = graph.multiply(logarithm, node);
    let by_exponent = graph.multiply(slope, d.1);
    graph.add(by_base, by_exponent)
}

/// Derivative of a function at `a`, where `node` is the function's value.
fn slope(graph: &mut ScalarGraph, function: MathFunction, node: ScalarId, a: ScalarId) -> ScalarId {
    match function {
        MathFunction::Exp => node,
        MathFunction::Ln => {
            let one = graph.literal(1.0);
            graph.divide(one, a)
        }
        MathFunction::Sqrt => {
            let half = graph.literal(0.5);
            graph.divide(half, node)
        }
        MathFunction::Sin => graph.math(MathFunction::Cos, a),
        MathFunction::Cos => {
            let sine = graph.math(MathFunction::Sin, a);
            graph.negate(sine)
        }
        MathFunction::Sinh => graph.math(MathFunction::Cosh, a),
        MathFunction::Cosh => graph.math(MathFunction::Sinh, a),
        MathFunction::Tan => {
            let (one, square) = (graph.literal(1.0), graph.multiply(node, node));
            graph.add(one, square)
        }
        MathFunction::Tanh => {
            let (one, square) = (graph.literal(1.0), graph.multiply(node, node));
            graph.subtract(one, square)
        }
        MathFunction::Erf => {
            let square = graph.multiply(a, a);
            let exponent = graph.negate(square);
            let (factor, bell) = (graph.literal(FRAC_2_SQRT_PI), graph.math(MathFunction::Exp, exponent));
            graph.multiply(factor, bell)
        }
        MathFunction::Atan => {
            let (one, square) = (graph.literal(1.0), graph.multiply(a, a));
            let sum = graph.add(one, square);
            graph.divide(one, sum)
        }
        MathFunction::Asin | MathFunction::Acos => {
            let (one, square) = (graph.literal(1.0), graph.multiply(a, a));
            let rest = graph.subtract(one, square);
            let root = graph.math(MathFunction::Sqrt, rest);
            let slope = graph.divide(one, root);
            if function == MathFunction::Asin { slope } else { graph.negate(slope) }
        }
        MathFunction::BesselJ(order) => bessel_slope(graph, MathFunction::BesselJ, order, a),
        MathFunction::BesselY(order) => bessel_slope(graph, MathFunction::BesselY, order, a),
    }
}

/// `C_n' = (C_(n-1) - C_(n+1))/2`, and `C_0' = -C_1`, of Bessel functions of both kinds.
fn bessel_slope(graph: &mut ScalarGraph, kind: fn(u16) -> MathFunction, order: u16, a: ScalarId) -> ScalarId {
    let above = graph.math(kind(order.saturating_add(1)), a);
    if order == 0 {
        return graph.negate(above);
    }
    let below = graph.math(kind(order - 1), a);
    let (half, difference) = (graph.literal(0.5), graph.subtract(below, above));
    graph.multiply(half, difference)
}
