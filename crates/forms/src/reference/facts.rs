//! What an expression depends on, so that nothing is evaluated again under a perturbation that does
//! not touch it.

use crate::form::walk::operands;
use crate::form::{Expr, Kind, Role};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// What occurs below a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Labels of variables.
    pub(super) labels: BTreeSet<u64>,
    /// Names of coefficients.
    pub(super) coefficients: BTreeSet<String>,
    /// Something that varies over a cell.
    pub(super) varies: bool,
    /// The test function.
    pub(super) test: bool,
}

/// Facts of every node of some expressions, by address; the expressions outlive it.
#[derive(Default)]
pub(super) struct FactTable {
    known: HashMap<usize, Rc<Facts>>,
}

impl FactTable {
    pub(super) fn of(&mut self, expr: &Expr) -> Rc<Facts> {
        if let Some(known) = self.known.get(&expr.address()) {
            return known.clone();
        }
        let mut facts = Facts::default();
        for operand in operands(expr) {
            let below = self.of(operand);
            facts.labels.extend(&below.labels);
            facts.coefficients.extend(below.coefficients.iter().cloned());
            facts.varies |= below.varies;
            facts.test |= below.test;
        }
        match expr.kind() {
            Kind::Variable(label, _) => {
                facts.labels.insert(*label);
            }
            Kind::Coefficient(c) => {
                facts.coefficients.insert(c.name.clone());
                facts.varies = true;
            }
            Kind::Argument(role, _) => {
                facts.varies = true;
                facts.test |= *role == Role::Test;
            }
            Kind::Coordinate | Kind::FacetNormal => facts.varies = true,
            Kind::Size(_)
            | Kind::Literal(_)
            | Kind::Identity(_)
            | Kind::Constant(_)
            | Kind::Components(_)
            | Kind::Unary(..)
            | Kind::Binary(..)
            | Kind::Math(..)
            | Kind::Index(..)
            | Kind::Conditional(..)
            | Kind::Restricted(..)
            | Kind::Diff(..)
            | Kind::Gateaux(..)
            | Kind::Error(_) => {}
        }
        let facts = Rc::new(facts);
        self.known.insert(expr.address(), facts.clone());
        facts
    }
}
