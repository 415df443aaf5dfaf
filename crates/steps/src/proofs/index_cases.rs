//! Indices with minima and maxima, case by case.

use kingpost_analysis::polyhedral::Polyhedral;
use kingpost_ir::{Affine, BinaryOp, Constraint, Expr, UnaryOp};

/// Most cases of an index: four minima or maxima in it.
const MAX_CASES: usize = 16;

/// A case of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexCase {
    /// The value.
    pub value: Affine,
    /// Where the index has it.
    pub when: Vec<Constraint>,
}

/// The cases of an index, one of which holds at every point: an index that is quasi-affine except for
/// minima and maxima of such values has one for each choice of their operands. None if it is made
/// of other operations, mentions a scalar that may change, or has more than [`MAX_CASES`].
pub fn index_cases(poly: &Polyhedral, index: &Expr) -> Option<Vec<IndexCase>> {
    let cases =
        choices(index)?.into_iter().map(|(value, when)| Some(IndexCase { value: value.as_affine()?, when }));
    let cases: Vec<IndexCase> = cases.collect::<Option<_>>()?;
    let known = |case: &IndexCase| {
        poly.is_symbolic(&case.value) && case.when.iter().all(|c| poly.is_symbolic(c.expr()))
    };
    cases.iter().all(known).then_some(cases)
}

/// An expression with an operand instead of each minimum and maximum, and where it is the value.
type Choice = (Expr, Vec<Constraint>);

fn choices(e: &Expr) -> Option<Vec<Choice>> {
    let found = match e {
        Expr::Unary(UnaryOp::Neg, a) => {
            let of = |(a, when)| (Expr::Unary(UnaryOp::Neg, Box::new(a)), when);
            choices(a)?.into_iter().map(of).collect()
        }
        Expr::Binary(op, a, b) => {
            let (first, second) = (choices(a)?, choices(b)?);
            let mut all = Vec::new();
            for (a, of_a) in &first {
                for (b, of_b) in &second {
                    let both = [&of_a[..], of_b].concat();
                    all.extend(joined(*op, a, b, &both)?);
                }
            }
            all
        }
        Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Load(_)
        | Expr::Unary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => vec![(e.clone(), Vec::new())],
    };
    (found.len() <= MAX_CASES).then_some(found)
}

/// The choices of an operation on two operands.
fn joined(op: BinaryOp, a: &Expr, b: &Expr, when: &[Constraint]) -> Option<Vec<Choice>> {
    if !matches!(op, BinaryOp::Max | BinaryOp::Min) {
        return Some(vec![(Expr::binary(op, a.clone(), b.clone()), when.to_vec())]);
    }
    let (larger, smaller) = if op == BinaryOp::Max { (a, b) } else { (b, a) };
    let (p, q) = (larger.as_affine()?, smaller.as_affine()?);
    // the first operand is the value where both are equal
    let first = Constraint::le(&q, &p);
    let second = Constraint::lt(&p, &q);
    let case = |value: &Expr, holds: Constraint| (value.clone(), [when, &[holds]].concat());
    Some(vec![case(a, first), case(b, second)])
}
