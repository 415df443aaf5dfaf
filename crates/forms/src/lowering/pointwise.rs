//! Scalar graphs as instructions: what is used more than once gets a temporary.

use crate::form::{Comparison, FormError, MathFunction, Scalar, ScalarGraph, ScalarId};
use purlin_ir::{BinaryOp, Expr, MathFn};
use std::collections::BTreeMap;

/// Operations in one right-hand side before it is split, so that lines stay readable.
const MAX_OPERATIONS: usize = 24;

/// What a node depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// The cell at most.
    Cell,
    /// The quadrature point.
    Point,
}

/// Which nodes the roots need, how often, and on which level they are.
#[derive(Clone)]
pub(super) struct Uses {
    needed: Vec<bool>,
    /// By nodes and roots.
    count: Vec<usize>,
    /// Whether a node of level `Point` (or a root) reads it.
    read_at_point: Vec<bool>,
    pub(super) level: Vec<Level>,
}

impl Uses {
    /// Uses below the roots; `point_symbol` says which symbols change from point to point.
    pub(super) fn new(graph: &ScalarGraph, roots: &[ScalarId], point_symbol: impl Fn(usize) -> bool) -> Self {
        let n = graph.nodes().len();
        let mut level = Vec::with_capacity(n);
        for node in graph.nodes() {
            let below = node.operands().iter().map(|o| level[o.index()]).max().unwrap_or(Level::Cell);
            let own = match node {
                Scalar::Jet(_) | Scalar::Coordinate(_) => Level::Point,
                Scalar::Symbol(place) if point_symbol(*place) => Level::Point,
                Scalar::Literal(_)
                | Scalar::Constant(..)
                | Scalar::Symbol(_)
                | Scalar::Variable(..)
                | Scalar::Negate(_)
                | Scalar::Add(..)
                | Scalar::Subtract(..)
                | Scalar::Multiply(..)
                | Scalar::Divide(..)
                | Scalar::Power(..)
                | Scalar::Math(..)
                | Scalar::Conditional(..) => Level::Cell,
            };
            level.push(below.max(own));
        }
        let mut uses =
            Self { needed: vec![false; n], count: vec![0; n], read_at_point: vec![false; n], level };
        for root in roots {
            uses.needed[root.index()] = true;
            uses.count[root.index()] += 1;
            uses.read_at_point[root.index()] = true;
        }
        for k in (0..n).rev() {
            if uses.needed[k] {
                for operand in graph.nodes()[k].operands() {
                    uses.needed[operand.index()] = true;
                    uses.count[operand.index()] += 1;
                    uses.read_at_point[operand.index()] |= uses.level[k] == Level::Point;
                }
            }
        }
        uses
    }

    /// The nodes that are needed, operands first.
    pub(super) fn needed(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.needed.len()).filter(|k| self.needed[*k])
    }

    /// The same counts with fewer nodes needed.
    pub(super) fn restricted(&self, keep: impl Fn(usize) -> bool) -> Self {
        let needed = self.needed.iter().enumerate().map(|(k, n)| *n && keep(k)).collect();
        Self { needed, ..self.clone() }
    }

    fn is_shared(&self, k: usize) -> bool {
        self.count[k] > 1 || (self.level[k] == Level::Cell && self.read_at_point[k])
    }
}

/// Where instructions go.
pub(super) trait Sink {
    /// The value of a terminal.
    ///
    /// # Errors
    /// [`FormError::Internal`] of one that has no value at this stage.
    fn terminal(&mut self, node: &Scalar) -> Result<Expr, FormError>;
    /// Assigns a value to a new temporary (of this name, if given) and gives its value.
    fn assign(&mut self, name: Option<&str>, value: Expr) -> Expr;
}

/// Values of nodes that are known, with the number of operations in them.
pub(super) type Known = BTreeMap<ScalarId, (Expr, usize)>;

/// Emits the needed nodes of a level in order; `named` ones are always assigned.
pub(super) fn emit(
    graph: &ScalarGraph,
    uses: &Uses,
    level: Level,
    named: &BTreeMap<ScalarId, String>,
    known: &mut Known,
    sink: &mut dyn Sink,
) -> Result<(), FormError> {
    let order: Vec<ScalarId> = graph.ids().filter(|id| uses.needed[id.index()]).collect();
    for id in order {
        if uses.level[id.index()] != level || known.contains_key(&id) {
            continue;
        }
        let node = graph.node(id);
        let operands = node.operands();
        if operands.is_empty() {
            known.insert(id, (sink.terminal(&node)?, 0));
            continue;
        }
        let size = 1 + operands.iter().filter_map(|o| known.get(o)).map(|(_, size)| size).sum::<usize>();
        // Operands have smaller numbers: those of this level were emitted before, others with their
        // stage.
        let operand = |o: &ScalarId| known.get(o).ok_or_else(|| unknown("an operand", &graph.node(*o)));
        let values = operands.iter().map(|o| operand(o).map(|known| known.0.clone()));
        let values = values.collect::<Result<_, _>>()?;
        let value = operation(&node, values)?;
        let name = named.get(&id).map(String::as_str);
        let entry = if name.is_some() || uses.is_shared(id.index()) || size > MAX_OPERATIONS {
            (sink.assign(name, value), 0)
        } else {
            (value, size)
        };
        known.insert(id, entry);
    }
    Ok(())
}

/// What is needed and has no value.
pub(super) fn unknown(what: &str, node: &Scalar) -> FormError {
    FormError::Internal(format!("{what} has no value where it is needed: {node:?}"))
}

/// An operation on the values of its operands.
fn operation(node: &Scalar, values: Vec<Expr>) -> Result<Expr, FormError> {
    let mut values = values.into_iter();
    let mut next = || values.next().ok_or_else(|| unknown("an operand of this", node));
    Ok(match node {
        Scalar::Negate(_) => -next()?,
        Scalar::Add(..) => next()? + next()?,
        Scalar::Subtract(..) => next()? - next()?,
        Scalar::Multiply(..) => next()? * next()?,
        Scalar::Divide(..) => next()? / next()?,
        Scalar::Power(..) => Expr::call(MathFn::Pow, [next()?, next()?]),
        Scalar::Math(function, _) => Expr::call(math(*function), [next()?]),
        Scalar::Conditional(comparison, _) => {
            let condition = compare(*comparison, next()?, next()?);
            Expr::Select(Box::new(condition), Box::new(next()?), Box::new(next()?))
        }
        // A variable is its value; the others have no operands and are the sink's.
        Scalar::Variable(..)
        | Scalar::Literal(_)
        | Scalar::Constant(..)
        | Scalar::Coordinate(_)
        | Scalar::Jet(_)
        | Scalar::Symbol(_) => next()?,
    })
}

fn math(function: MathFunction) -> MathFn {
    match function {
        MathFunction::Exp => MathFn::Exp,
        MathFunction::Ln => MathFn::Log,
        MathFunction::Sqrt => MathFn::Sqrt,
        MathFunction::Sin => MathFn::Sin,
        MathFunction::Cos => MathFn::Cos,
    }
}

fn compare(comparison: Comparison, left: Expr, right: Expr) -> Expr {
    match comparison {
        Comparison::Less => Expr::binary(BinaryOp::Lt, left, right),
        Comparison::LessEqual => Expr::binary(BinaryOp::Le, left, right),
        Comparison::Greater => Expr::binary(BinaryOp::Lt, right, left),
        Comparison::GreaterEqual => Expr::binary(BinaryOp::Le, right, left),
        Comparison::Equal => Expr::binary(BinaryOp::Eq, left, right),
        Comparison::NotEqual => Expr::binary(BinaryOp::Ne, left, right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows the position and nothing else.
    struct Position;

    impl Sink for Position {
        fn terminal(&mut self, node: &Scalar) -> Result<Expr, FormError> {
            if *node == Scalar::Coordinate(0) { Ok(Expr::Int(1)) } else { Err(unknown("a terminal", node)) }
        }

        fn assign(&mut self, _: Option<&str>, value: Expr) -> Expr {
            value
        }
    }

    #[test]
    fn what_has_no_value_is_a_bug_and_no_zero() {
        let mut graph = ScalarGraph::default();
        let (a, x) = (graph.insert(Scalar::Constant(4, 0)), graph.insert(Scalar::Coordinate(0)));
        let sum = graph.add(a, x);
        let uses = Uses::new(&graph, &[sum], |_| false);
        let emitted = |level| {
            let mut known = Known::new();
            emit(&graph, &uses, level, &BTreeMap::new(), &mut known, &mut Position).map_err(|e| e.to_string())
        };
        let bug = |what: &str| {
            let found = "has no value where it is needed: Constant(4, 0); report it with the form";
            Err(format!("bug of purlin: {what} {found}"))
        };
        assert_eq!(emitted(Level::Cell), bug("a terminal"));
        assert_eq!(emitted(Level::Point), bug("an operand"));
    }
}
