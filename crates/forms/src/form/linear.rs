//! Forms as sums of a coefficient times a component or derivative of their arguments.

use super::error::FormError;
use super::role::Role;
use super::scalar::{Field, Jet, Scalar, ScalarGraph, ScalarId};
use std::collections::BTreeMap;

/// The terms of an integrand that is linear in the test function: what stands before each of its
/// components and derivatives (the `g_j` of Kulkarni & Klöckner 2025, equation 15).
///
/// # Errors
/// [`FormError::NotLinear`] and [`FormError::NoTest`].
pub fn linear_terms(graph: &mut ScalarGraph, root: ScalarId) -> Result<BTreeMap<Jet, ScalarId>, FormError> {
    terms_in(graph, root, Role::Test)
}

/// The same for the test or the trial function.
///
/// # Errors
/// As [`linear_terms`]; [`FormError::NoTrialIn`] of a term without trial function.
pub fn terms_in(
    graph: &mut ScalarGraph,
    root: ScalarId,
    role: Role,
) -> Result<BTreeMap<Jet, ScalarId>, FormError> {
    let field = Field::of(role);
    let mut holds = Vec::with_capacity(graph.nodes().len());
    for node in graph.nodes() {
        let itself = matches!(node, Scalar::Jet(jet) if jet.field == field);
        holds.push(itself || node.operands().iter().any(|o| holds[o.index()]));
    }
    if graph.is_zero(root) {
        return Ok(BTreeMap::new());
    }
    if !holds[root.index()] {
        return Err(missing(role, "the integrand"));
    }
    let needed = graph.below(&[root], |id| !holds.get(id.index()).copied().unwrap_or(false));
    let mut split = Split { graph, role, holds, done: BTreeMap::new() };
    // In ascending order: operands before what uses them.
    for id in needed {
        let terms = split.split(id)?;
        split.done.insert(id, terms);
    }
    let mut terms = split.terms(root)?;
    terms.retain(|_, c| !graph.is_zero(*c));
    Ok(terms)
}

type Terms = BTreeMap<Jet, ScalarId>;

struct Split<'a> {
    graph: &'a mut ScalarGraph,
    /// The function that the terms are linear in.
    role: Role,
    /// Whether it occurs in a node (of the nodes that were there at the start).
    holds: Vec<bool>,
    done: BTreeMap<ScalarId, Terms>,
}

fn missing(role: Role, term: &str) -> FormError {
    match role {
        Role::Test => FormError::NoTest { term: term.into() },
        Role::Trial => FormError::NoTrialIn { term: term.into() },
    }
}

impl Split<'_> {
    fn holds(&self, id: ScalarId) -> bool {
        self.holds.get(id.index()).copied().unwrap_or(false)
    }

    fn not_linear(&self, place: &str) -> FormError {
        FormError::NotLinear { function: self.role, place: place.into() }
    }

    /// Terms of a node that holds the function.
    fn terms(&self, id: ScalarId) -> Result<Terms, FormError> {
        let terms = self.done.get(&id).cloned();
        terms.ok_or_else(|| FormError::Internal(format!("a node was split before its operand {id:?}")))
    }

    fn split(&mut self, id: ScalarId) -> Result<Terms, FormError> {
        match self.graph.node(id) {
            Scalar::Jet(jet) => Ok(Terms::from([(jet, self.graph.literal(1.0))])),
            Scalar::Literal(_)
            | Scalar::Constant(..)
            | Scalar::Coordinate(_)
            | Scalar::FacetNormal(..)
            | Scalar::Size(..)
            | Scalar::Symbol(_) => Ok(Terms::new()),
            Scalar::Variable(_, _, a) => self.terms(a),
            Scalar::Negate(a) => self.map(a, |graph, c| graph.negate(c)),
            Scalar::Add(a, b) => self.sum(a, b, false),
            Scalar::Subtract(a, b) => self.sum(a, b, true),
            Scalar::Multiply(a, b) => match (self.holds(a), self.holds(b)) {
                (true, true) => Err(self.not_linear("both factors of a product")),
                (true, false) => self.map(a, |graph, c| graph.multiply(c, b)),
                (false, _) => self.map(b, |graph, c| graph.multiply(a, c)),
            },
            Scalar::Divide(_, b) if self.holds(b) => Err(self.not_linear("a denominator")),
            Scalar::Divide(a, b) => self.map(a, |graph, c| graph.divide(c, b)),
            Scalar::Power(..) => Err(self.not_linear("a power")),
            Scalar::Math(..) | Scalar::Atan2(..) => Err(self.not_linear("the argument of a function")),
            Scalar::Conditional(comparison, [l, r, a, b]) => {
                if self.holds(l) || self.holds(r) {
                    return Err(self.not_linear("a condition"));
                }
                let (then, otherwise) = (self.branch(a)?, self.branch(b)?);
                let zero = self.graph.literal(0.0);
                let mut terms = Terms::new();
                for jet in then.keys().chain(otherwise.keys()) {
                    let c = then.get(jet).copied().unwrap_or(zero);
                    let d = otherwise.get(jet).copied().unwrap_or(zero);
                    terms.insert(*jet, self.graph.conditional(comparison, [l, r, c, d]));
                }
                Ok(terms)
            }
        }
    }

    fn map(
        &mut self,
        id: ScalarId,
        f: impl Fn(&mut ScalarGraph, ScalarId) -> ScalarId,
    ) -> Result<Terms, FormError> {
        Ok(self.terms(id)?.into_iter().map(|(jet, c)| (jet, f(self.graph, c))).collect())
    }

    /// Terms of a summand or branch: zero is linear, anything else without the function is not.
    fn branch(&mut self, id: ScalarId) -> Result<Terms, FormError> {
        if self.graph.is_zero(id) {
            return Ok(Terms::new());
        }
        if !self.holds(id) {
            return Err(missing(self.role, "a term of a sum"));
        }
        self.terms(id)
    }

    fn sum(&mut self, a: ScalarId, b: ScalarId, subtract: bool) -> Result<Terms, FormError> {
        let (mut terms, right) = (self.branch(a)?, self.branch(b)?);
        let zero = self.graph.literal(0.0);
        for (jet, c) in right {
            let left = terms.get(&jet).copied().unwrap_or(zero);
            let total = if subtract { self.graph.subtract(left, c) } else { self.graph.add(left, c) };
            terms.insert(jet, total);
        }
        Ok(terms)
    }
}
