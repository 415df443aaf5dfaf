//! Instructions of the geometry and pointwise stages, and the values of their terminals.

use super::graph::{CellValue, Op};
use super::locals::{Columns, holding, with_component};
use super::names::Names;
use super::pointwise::{Sink, unknown};
use super::signature::Vars;
use super::strip_cell::StripCell;
use crate::form::FormError;
use kingpost_ir::{Access, Expr, Kernel, KernelBuilder, ScalarType, VarId};
use std::collections::BTreeMap;

/// Writes the instructions of the geometry and pointwise stages.
pub(super) struct StageSink<'b> {
    pub(super) b: &'b mut KernelBuilder,
    pub(super) names: &'b mut Names,
    pub(super) vars: &'b Vars,
    pub(super) ty: ScalarType,
    pub(super) declared: &'b BTreeMap<usize, VarId>,
    pub(super) strip: Option<&'b StripCell>,
    pub(super) stage: &'static str,
    pub(super) terminals: BTreeMap<usize, Expr>,
    /// The instructions.
    pub(super) written: Vec<String>,
}

impl StageSink<'_> {
    /// A sum of degrees of freedom times numbers, what is added before what is subtracted.
    fn cell_value(&self, v: &CellValue) -> Option<Expr> {
        let whole = |(column, _): &(usize, u64)| Columns::new(*column, 1, 1);
        let single = v.terms.len() == 1;
        let mut sum: Option<Expr> = None;
        let (added, subtracted): (Vec<_>, Vec<_>) =
            v.terms.iter().partition(|(_, bits)| f64::from_bits(*bits) > 0.0);
        for term in added.into_iter().chain(subtracted) {
            let columns = whole(term);
            let locals = &self.vars.inputs;
            let local = holding(locals, v.function, v.side, columns)?;
            let index = if single && local.local.columns == columns {
                Expr::Int(0)
            } else {
                Expr::Int(term.0 as i64)
            };
            let load = Expr::load(local.var, with_component(index, local.component(v.component)));
            let factor = f64::from_bits(term.1);
            let size = if factor.abs() == 1.0 { load } else { Expr::from(factor.abs()) * load };
            sum = Some(match (sum, factor > 0.0) {
                (None, true) => size,
                (None, false) => -size,
                (Some(sum), true) => sum + size,
                (Some(sum), false) => sum - size,
            });
        }
        sum
    }
}

impl Sink for StageSink<'_> {
    fn terminal(&mut self, place: usize, op: &Op) -> Result<Expr, FormError> {
        if let Some(value) = self.terminals.get(&place) {
            return Ok(value.clone());
        }
        let none = || unknown("a terminal", op);
        match op {
            Op::Literal(bits) => Ok(Expr::from(f64::from_bits(*bits))),
            Op::Constant(place, component) => {
                let var = self.vars.constants.get(&(*place, *component));
                Ok(Expr::scalar(*var.ok_or_else(none)?))
            }
            Op::CellValue(value) => self.cell_value(value).ok_or_else(none),
            // Evaluations, weights and tables are among the terminals of their stage.
            _ => Err(none()),
        }
    }

    fn is_complex(&self, value: &Expr) -> Result<bool, FormError> {
        Ok(temporary_type(self.b.so_far(), self.ty, value)?.is_complex())
    }

    fn assign(&mut self, node: usize, name: Option<&str>, value: Expr) -> Result<Expr, FormError> {
        let (var, name) = match self.declared.get(&node) {
            Some(var) => (*var, self.b.so_far().vars[*var].name.clone()),
            None => {
                let name = self.names.fresh(name.unwrap_or("t"));
                let ty = temporary_type(self.b.so_far(), self.ty, &value)?;
                (self.b.temporary(&name, ty, []), name)
            }
        };
        let insn_name = self.names.fresh(&format!("set_{name}"));
        let insn = self.b.assign(&insn_name, Access::scalar(var), value);
        self.b.label(insn, self.stage);
        self.b.insn_mut(insn).predicate = self.strip.and_then(|strip| strip.changes(node));
        self.written.push(insn_name);
        Ok(Expr::scalar(var))
    }

    fn weighted(&self, product: Expr) -> Expr {
        match self.strip.filter(|strip| strip.are_weighted) {
            None => product,
            Some(strip) => {
                Expr::Select(Box::new(strip.is_cell()), Box::new(product), Box::new(Expr::from(0.0)))
            }
        }
    }
}

/// The type of a temporary for a value of a form of numbers of type `ty`: real where the value is, so
/// that nothing computes with zeros.
///
/// # Errors
/// [`FormError::Discretisation`] of an operation that complex numbers do not have.
pub(super) fn temporary_type(kernel: &Kernel, ty: ScalarType, value: &Expr) -> Result<ScalarType, FormError> {
    if !ty.is_complex() {
        return Ok(ty);
    }
    let found = kernel.type_of(value, &[]).map_err(|e| {
        FormError::Discretisation(format!(
            "{e}; take the real part, or write it by functions of complex numbers"
        ))
    })?;
    Ok(if found.is_complex() { ty } else { ty.part() })
}
