//! Tables of the kernel: basis functions and derivatives at quadrature points, and weights.

use super::names::Names;
use crate::element::{CellShape, LagrangeElement, Tabulation};
use crate::form::FormError;
use crate::quadrature::{QuadratureScheme, Rule, rule};
use purlin_ir::{KernelBuilder, ScalarType, TableData, VarId};
use std::collections::BTreeMap;

/// Which rule a table is for: degree and scheme.
type RuleKey = (usize, String);

/// The rule of an integral.
pub(super) struct RuleTables {
    cell: CellShape,
    key: RuleKey,
    rule: Rule,
    /// By polynomial degree.
    tabulations: BTreeMap<usize, Tabulation>,
}

fn discretisation(error: impl std::fmt::Display) -> FormError {
    FormError::Discretisation(error.to_string())
}

impl RuleTables {
    pub(super) fn new(cell: CellShape, degree: usize, scheme: QuadratureScheme) -> Result<Self, FormError> {
        let rule = rule(cell, degree, scheme).map_err(discretisation)?;
        Ok(Self { cell, key: (degree, scheme.to_string()), rule, tabulations: BTreeMap::new() })
    }

    pub(super) fn n_points(&self) -> usize {
        self.rule.n_points()
    }

    /// Values (axis none) or derivatives by a reference axis of the basis of a degree,
    /// [points, dofs].
    fn basis(&mut self, degree: usize, axis: Option<usize>) -> Result<(usize, Vec<f64>), FormError> {
        if !self.tabulations.contains_key(&degree) {
            let element = LagrangeElement::new(self.cell, degree).map_err(discretisation)?;
            let table = element.tabulate(&self.rule.points).map_err(discretisation)?;
            self.tabulations.insert(degree, table);
        }
        let table = &self.tabulations[&degree];
        Ok((table.n_dofs, axis.map_or(&table.values, |k| &table.gradients[k]).clone()))
    }
}

/// Tables that were declared already: the test function shares those of the coefficients.
#[derive(Default)]
pub(super) struct TableNames {
    bases: BTreeMap<(RuleKey, usize, Option<usize>), VarId>,
    weights: BTreeMap<RuleKey, VarId>,
}

impl TableNames {
    /// The table of a basis, declared if it is new: `phi_p2`, `phi_p2_d0`, …
    pub(super) fn basis(
        &mut self,
        b: &mut KernelBuilder,
        names: &mut Names,
        rule: &mut RuleTables,
        degree: usize,
        axis: Option<usize>,
    ) -> Result<VarId, FormError> {
        let key = (rule.key.clone(), degree, axis);
        if let Some(known) = self.bases.get(&key) {
            return Ok(*known);
        }
        let (n_dofs, values) = rule.basis(degree, axis)?;
        let stem = axis.map_or(format!("phi_p{degree}"), |k| format!("phi_p{degree}_d{k}"));
        let extents = [rule.n_points(), n_dofs];
        let var = b.table(names.fresh(&stem), ScalarType::F64, extents, TableData::real(values));
        self.bases.insert(key, var);
        Ok(var)
    }

    /// The table of the weights, declared if it is new.
    pub(super) fn weights(&mut self, b: &mut KernelBuilder, names: &mut Names, rule: &RuleTables) -> VarId {
        if let Some(known) = self.weights.get(&rule.key) {
            return *known;
        }
        let values = TableData::real(rule.rule.weights.iter().copied());
        let var = b.table(names.fresh("weights"), ScalarType::F64, [rule.n_points()], values);
        self.weights.insert(rule.key.clone(), var);
        var
    }
}
