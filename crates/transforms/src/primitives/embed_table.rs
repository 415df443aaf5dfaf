//! Writes the values of a table into the code.

use super::Transform;
use crate::lookup;
use crate::refusal::Refusal;
use purlin_ir::{Access, Expr, Kernel, ScalarType, TableData, VarKind, Variable};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Replaces every load of a table at a constant index by the value that stands there.
///
/// # Rewrite
/// ```text
/// table w: f64[2] = {0.25, 0.75}
/// s: y[0] = w[1]*x[0]         =>   s: y[0] = 0.75*x[0]
/// ```
/// Loads at other indices stay; the table goes when nothing mentions it (`remove_unused_vars`).
///
/// # Precondition
/// The index is constant and inside the table: `t[c]  =>  v` with `v = table(c)`, `0 <= c < extent`. The literal is cast where single precision occurs in the
/// kernel, also to `i32` in a minimum or maximum that has that type from it, so that the type stays.
///
/// # Errors
/// An unknown variable, one that is no table, or a table that nothing loads at a constant index.
///
/// # Elsewhere
/// Loopy inlines constant arrays only by substitution rules; Halide folds them after unrolling.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbedTable {
    /// The table.
    pub var: String,
}

impl EmbedTable {
    /// Embeds the table `var`.
    pub fn new(var: impl Into<String>) -> Self {
        Self { var: var.into() }
    }
}

impl fmt::Display for EmbedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "embed table `{}`", self.var)
    }
}

impl Transform for EmbedTable {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let var = lookup::var(kernel, &self.var)?;
        let table = &kernel.vars[var];
        let VarKind::Table(data) = &table.kind else {
            return Err(Refusal::Other(format!(
                "`{}` is no table; only tables have values to embed",
                self.var
            )));
        };
        let single = has_single_precision(kernel);
        let value = |e: &Expr| match e {
            Expr::Load(a) if a.var == var => literal(table, data, a, single),
            _ => None,
        };
        let mut count = 0_usize;
        let mut rewrite = |e: Expr| match value(&e) {
            Some(value) => {
                count += 1;
                value
            }
            None => e,
        };
        let mut embedded = kernel.with_typed_extrema(&value);
        for rule in embedded.rules.values_mut() {
            rule.body = rule.body.map(&mut rewrite);
        }
        for insn in embedded.insns.values_mut() {
            insn.map_expressions(&mut rewrite);
        }
        if count == 0 {
            return Err(Refusal::Other(format!(
                "no load of `{}` has a constant index; write out the loops that index it first",
                self.var
            )));
        }
        Ok(embedded)
    }
}

/// The value at a constant index.
fn literal(table: &Variable, data: &TableData, access: &Access, single: bool) -> Option<Expr> {
    let mut at = 0_i64;
    for (e, extent) in access.index.iter().zip(&table.shape) {
        let (k, n) = (e.as_affine()?.as_constant()?, extent.as_constant()?);
        if !(0..n).contains(&k) {
            return None; // a mistake of the program, which stays as it is
        }
        at = at.checked_mul(n)?.checked_add(k)?;
    }
    let at = usize::try_from(at).ok()?;
    match data {
        TableData::Int(values) => values.get(at).map(|v| Expr::Int(*v)),
        TableData::Real(values) => {
            let value = Expr::Real(*values.get(at)?);
            Some(if single { Expr::Cast(table.ty, Box::new(value)) } else { value })
        }
    }
}

/// Whether a floating-point literal could take another type than `f64`.
pub(super) fn has_single_precision(kernel: &Kernel) -> bool {
    let mut single = kernel.vars.values().any(|v: &Variable| v.ty == ScalarType::F32);
    let mut casts = |e: &Expr| single |= matches!(e, Expr::Cast(ScalarType::F32, _));
    for insn in kernel.insns.values() {
        for e in insn.lhs.index.iter().chain([&insn.rhs]).chain(&insn.predicate) {
            e.for_each(&mut casts);
        }
    }
    for rule in kernel.rules.values() {
        rule.body.for_each(&mut casts);
    }
    single
}
