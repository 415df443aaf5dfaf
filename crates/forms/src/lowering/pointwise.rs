//! Scalar graphs as instructions: what is used more than once gets a temporary.

use super::graph::{Graph, Level, Op, Uses};
use crate::form::FormError;
use crate::tabulated::{Arithmetic, Bessel, MathFunction, Relation};
use kingpost_ir::{BinaryOp, Expr, MathFn, UnaryOp};
use std::collections::BTreeMap;

/// Operations in one right-hand side before it is split, so that lines stay readable.
const MAX_OPERATIONS: usize = 24;

/// Where instructions go.
pub(super) trait Sink {
    /// The value of a terminal, by its place in the graph.
    ///
    /// # Errors
    /// [`FormError::Internal`] of one that has no value at this stage.
    fn terminal(&mut self, place: usize, op: &Op) -> Result<Expr, FormError>;
    /// Whether a value is complex.
    ///
    /// # Errors
    /// [`FormError::Discretisation`] of an operation that complex numbers do not have.
    fn is_complex(&self, value: &Expr) -> Result<bool, FormError>;
    /// Assigns the value of a node to a temporary (of this name, if given) and gives its value.
    ///
    /// # Errors
    /// As [`Sink::is_complex`].
    fn assign(&mut self, place: usize, name: Option<&str>, value: Expr) -> Result<Expr, FormError>;
    /// A product with a weight.
    fn weighted(&self, product: Expr) -> Expr {
        product
    }
}

/// Values of nodes that are known, with the number of operations in them.
pub(super) type Known = BTreeMap<usize, (Expr, usize)>;

/// Emits the needed nodes of a level in order; `named` ones are always assigned.
pub(super) fn emit(
    graph: &Graph,
    uses: &Uses,
    level: Level,
    named: &BTreeMap<usize, String>,
    known: &mut Known,
    sink: &mut dyn Sink,
) -> Result<(), FormError> {
    for (id, node) in graph.nodes.iter().enumerate() {
        if !uses.is_needed(id) || graph.level[id] != level || known.contains_key(&id) {
            continue;
        }
        let name = named.get(&id).map(String::as_str);
        if node.operands.is_empty() {
            let value = sink.terminal(id, &node.op)?;
            let value = if is_sum(&node.op) { sink.assign(id, name, value)? } else { value };
            known.insert(id, (value, 0));
            continue;
        }
        let sizes = node.operands.iter().filter_map(|o| known.get(o)).map(|(_, size)| size);
        let size = 1 + sizes.sum::<usize>();
        // Operands have smaller numbers: those of this level were emitted before, others with their
        // stage.
        let operand = |o: &usize| known.get(o).ok_or_else(|| unknown("an operand", &graph.nodes[*o].op));
        let values = node.operands.iter().map(|o| operand(o).map(|known| known.0.clone()));
        let values: Vec<Expr> = values.collect::<Result<_, _>>()?;
        let mut is_complex = false;
        for value in &values {
            is_complex |= sink.is_complex(value)?;
        }
        let mut value = operation(&node.op, values, is_complex)?;
        if graph.is_weighted(id) {
            value = sink.weighted(value);
        }
        let assigned = name.is_some() || uses.is_shared(id) || size > MAX_OPERATIONS;
        let entry = match assigned && !is_condition(&node.op) {
            true => (sink.assign(id, name, value)?, 0),
            false => (value, size),
        };
        known.insert(id, entry);
    }
    Ok(())
}

/// What is needed and has no value.
pub(super) fn unknown(what: &str, op: &Op) -> FormError {
    FormError::Internal(format!("{what} has no value where it is needed: {op:?}"))
}

/// Whether a terminal is a sum, which is computed once.
fn is_sum(op: &Op) -> bool {
    matches!(op, Op::CellValue(v) if v.terms.len() > 1) || matches!(op, Op::FacetValue(..))
}

/// Conditions are no values of temporaries.
fn is_condition(op: &Op) -> bool {
    matches!(op, Op::Compare(_) | Op::And | Op::Or | Op::Not)
}

/// An operation on the values of its operands, of which some may be complex.
fn operation(op: &Op, values: Vec<Expr>, is_complex: bool) -> Result<Expr, FormError> {
    let mut values = values.into_iter();
    let mut next = || values.next().ok_or_else(|| unknown("an operand of this", op));
    Ok(match op {
        Op::Negate => -next()?,
        Op::Arithmetic(Arithmetic::Add) => next()? + next()?,
        Op::Arithmetic(Arithmetic::Subtract) => next()? - next()?,
        Op::Arithmetic(Arithmetic::Multiply) => next()? * next()?,
        Op::Arithmetic(Arithmetic::Divide) => next()? / next()?,
        Op::Arithmetic(Arithmetic::Power) => Expr::call(MathFn::Pow, [next()?, next()?]),
        Op::Math(function) => {
            let first = next()?;
            math(*function, first, next, is_complex)?
        }
        Op::Bessel(kind, order) => bessel(*kind, *order, next()?)?,
        Op::Compare(relation) => compare(*relation, next()?, next()?),
        Op::And => Expr::binary(BinaryOp::And, next()?, next()?),
        Op::Or => Expr::binary(BinaryOp::Or, next()?, next()?),
        Op::Not => Expr::Unary(UnaryOp::Not, Box::new(next()?)),
        Op::Select => Expr::Select(Box::new(next()?), Box::new(next()?), Box::new(next()?)),
        // These have no operands and are the sink's.
        Op::Literal(_)
        | Op::Constant(..)
        | Op::CellValue(_)
        | Op::FacetValue(..)
        | Op::Evaluation(..)
        | Op::Weight(_)
        | Op::Table(..) => next()?,
    })
}

fn math(
    function: MathFunction,
    a: Expr,
    mut next: impl FnMut() -> Result<Expr, FormError>,
    is_complex: bool,
) -> Result<Expr, FormError> {
    let call = |f: MathFn, a: Expr| Ok(Expr::call(f, [a]));
    match function {
        MathFunction::Abs => call(if is_complex { MathFn::Abs } else { MathFn::Fabs }, a),
        MathFunction::Conj if is_complex => call(MathFn::Conj, a),
        MathFunction::Real if is_complex => call(MathFn::RealPart, a),
        MathFunction::Imag if is_complex => call(MathFn::ImagPart, a),
        MathFunction::Conj | MathFunction::Real => Ok(a),
        MathFunction::Imag => Ok(Expr::from(0.0)),
        MathFunction::Complex => Ok(Expr::call(MathFn::Complex, [a, next()?])),
        MathFunction::Sign => {
            let below = Expr::binary(BinaryOp::Lt, a.clone(), 0.0);
            let above = Expr::binary(BinaryOp::Lt, 0.0, a);
            let rest = Expr::Select(Box::new(above), Box::new(1.0.into()), Box::new(0.0.into()));
            Ok(Expr::Select(Box::new(below), Box::new(Expr::from(-1.0)), Box::new(rest)))
        }
        MathFunction::Sqrt => call(MathFn::Sqrt, a),
        MathFunction::Exp => call(MathFn::Exp, a),
        MathFunction::Ln => call(MathFn::Log, a),
        MathFunction::Sin => call(MathFn::Sin, a),
        MathFunction::Cos => call(MathFn::Cos, a),
        MathFunction::Tan => call(MathFn::Tan, a),
        MathFunction::Asin => call(MathFn::Asin, a),
        MathFunction::Acos => call(MathFn::Acos, a),
        MathFunction::Atan => call(MathFn::Atan, a),
        MathFunction::Sinh => call(MathFn::Sinh, a),
        MathFunction::Cosh => call(MathFn::Cosh, a),
        MathFunction::Tanh => call(MathFn::Tanh, a),
        MathFunction::Erf => call(MathFn::Erf, a),
        MathFunction::Atan2 => Ok(Expr::call(MathFn::Atan2, [a, next()?])),
        MathFunction::Min => Ok(Expr::binary(BinaryOp::Min, a, next()?)),
        MathFunction::Max => Ok(Expr::binary(BinaryOp::Max, a, next()?)),
    }
}

fn bessel(kind: Bessel, order: i64, x: Expr) -> Result<Expr, FormError> {
    let function = match kind {
        Bessel::J => MathFn::BesselJ,
        Bessel::Y => MathFn::BesselY,
        Bessel::I | Bessel::K => {
            return Err(FormError::Discretisation(format!(
                "`bessel_{}` of order {order}: found a modified Bessel function, which neither C nor CUDA has for \
                 every order, needed `bessel_J` or `bessel_Y`; interpolate it into a coefficient",
                kind.word().to_uppercase()
            )));
        }
    };
    Ok(Expr::call(function, [Expr::Int(order), x]))
}

fn compare(relation: Relation, left: Expr, right: Expr) -> Expr {
    match relation {
        Relation::Less => Expr::binary(BinaryOp::Lt, left, right),
        Relation::LessEqual => Expr::binary(BinaryOp::Le, left, right),
        Relation::Greater => Expr::binary(BinaryOp::Lt, right, left),
        Relation::GreaterEqual => Expr::binary(BinaryOp::Le, right, left),
        Relation::Equal => Expr::binary(BinaryOp::Eq, left, right),
        Relation::NotEqual => Expr::binary(BinaryOp::Ne, left, right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lowering::graph::GraphNode;

    /// Knows weights and nothing else.
    struct Weights;

    impl Sink for Weights {
        fn terminal(&mut self, _: usize, op: &Op) -> Result<Expr, FormError> {
            if *op == Op::Weight(0) { Ok(Expr::Int(1)) } else { Err(unknown("a terminal", op)) }
        }

        fn is_complex(&self, _: &Expr) -> Result<bool, FormError> {
            Ok(false)
        }

        fn assign(&mut self, _: usize, _: Option<&str>, value: Expr) -> Result<Expr, FormError> {
            Ok(value)
        }
    }

    #[test]
    fn what_has_no_value_is_a_bug_and_no_zero() {
        let node = |op, operands: &[usize]| GraphNode { op, operands: operands.to_vec() };
        let nodes = vec![
            node(Op::Constant(4, 0), &[]),
            node(Op::Weight(0), &[]),
            node(Op::Arithmetic(Arithmetic::Add), &[0, 1]),
        ];
        let level = vec![Level::Cell, Level::Point, Level::Point];
        let mut graph = Graph::default();
        (graph.nodes, graph.level) = (nodes, level);
        let uses = Uses::new(&graph, &[2]);
        let emitted = |level| {
            let mut known = Known::new();
            emit(&graph, &uses, level, &BTreeMap::new(), &mut known, &mut Weights).map_err(|e| e.to_string())
        };
        let bug = |what: &str| {
            let found = "has no value where it is needed: Constant(4, 0); report it with the form";
            Err(format!("bug of kingpost: {what} {found}"))
        };
        assert_eq!(emitted(Level::Cell), bug("a terminal"));
        assert_eq!(emitted(Level::Point), bug("an operand"));
    }
}
