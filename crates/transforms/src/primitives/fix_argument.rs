//! Makes a table, or a literal, of an argument whose values are known.

use super::Transform;
use super::embed_table::has_single_precision;
use super::tag_iname::check_placement;
use crate::lookup;
use crate::refusal::Refusal;
use purlin_ir::affine::MAX_COEFFICIENT;
use purlin_ir::{
    AddressSpace, Assumption, Direction, Expr, Kernel, Real, TableData, VarId, VarKind, Variable,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Fixes the values of an input: an array becomes a table, a scalar a literal.
///
/// # Rewrite
/// ```text
/// arg w: f64[2] in            =>   table w: f64[2] = {0.25, 0.75}
/// arg c: f64 in
/// s: y[0] = c*w[0]                 s: y[0] = 3.0*w[0]
/// ```
/// Values are row-major. `set_address_space` moves the table to constant memory, `embed_table` writes its values
/// into the code.
///
/// # Precondition
/// The argument is an input of constant shape, of the type and number of the values, dense in memory; what is
/// assumed of it holds: `shape(a) = dims(v)`, and for `injective(a)`, `{ (i, j) : v(i) = v(j), i /= j }` is empty. The kernel computes what it computed for these values. A literal is cast where single precision
/// occurs in the kernel, also to `i32` in a minimum or maximum that has that type from it, so that the type of an
/// expression stays. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown variable, one that is no input, a shape that is not constant, strides, values that are not finite, do not
/// fit the type or are not as many as the elements; values that repeat where the array is assumed injective.
///
/// # Elsewhere
/// Loopy `fix_parameters`; partial evaluation; the inverse of `pass_table`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixArgument {
    /// The argument.
    pub var: String,
    /// Its values.
    pub values: TableData,
}

impl FixArgument {
    /// Fixes a real argument.
    pub fn real(var: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self { var: var.into(), values: TableData::real(values) }
    }

    /// Fixes an integer argument.
    pub fn int(var: impl Into<String>, values: impl IntoIterator<Item = i64>) -> Self {
        Self { var: var.into(), values: TableData::int(values) }
    }
}

impl fmt::Display for FixArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.values {
            TableData::Real(v) if v.len() == 1 => write!(f, "fix `{}` to {:?}", self.var, v[0].0),
            TableData::Int(v) if v.len() == 1 => write!(f, "fix `{}` to {}", self.var, v[0]),
            TableData::Real(_) | TableData::Int(_) => {
                write!(f, "fix `{}` to {} values", self.var, self.values.len())
            }
        }
    }
}

impl Transform for FixArgument {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let var = lookup::var(kernel, &self.var)?;
        self.check(kernel, var)?;
        let fixed = match (&self.values, kernel.vars[var].shape.is_empty()) {
            (_, false) => {
                let mut fixed = kernel.clone();
                fixed.vars[var].kind = VarKind::Table(self.values.clone());
                fixed.vars[var].space = AddressSpace::Global;
                fixed
            }
            (TableData::Int(values), true) => {
                kernel.with_var_fixed(var, values.first().copied().unwrap_or_default())
            }
            (TableData::Real(values), true) => {
                literal(kernel, var, values.first().copied().unwrap_or(Real(0.0)))
            }
        };
        fixed.verify()?;
        check_placement(&fixed)?;
        Ok(fixed)
    }
}

impl FixArgument {
    fn check(&self, kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
        let argument = &kernel.vars[var];
        let refuse = |why: String| Err(Refusal::Other(format!("`{}` {why}", self.var)));
        if argument.kind != VarKind::Argument(Direction::In) {
            return refuse("is no input; only what the kernel is given and does not write is fixed".into());
        }
        if argument.layout.strides.is_some() {
            return refuse("has strides, and tables are row-major; fix it before changing its layout".into());
        }
        let size = argument.shape.iter().try_fold(1_i64, |n, e| n.checked_mul(e.as_constant()?));
        let Some(size) = size else {
            return refuse("has no constant shape; fix its parameters first".into());
        };
        let found = self.values.len();
        if i64::try_from(found) != Ok(size) {
            return refuse(format!("has {size} elements, found {found} values"));
        }
        let finite = match &self.values {
            TableData::Real(values) => values.iter().all(|v| v.0.is_finite()),
            TableData::Int(values) => {
                !argument.shape.is_empty()
                    || values.iter().all(|v| v.unsigned_abs() <= MAX_COEFFICIENT.unsigned_abs())
            }
        };
        if !finite || !self.values.fits(argument.ty) {
            return refuse(format!("has type {}, which holds finite values of that type only", argument.ty));
        }
        if let TableData::Int(values) = &self.values
            && kernel.assumptions.contains(&Assumption::Injective(var))
        {
            let mut sorted = values.to_vec();
            sorted.sort_unstable();
            if let Some([twice, _]) = sorted.array_windows().find(|[a, b]| a == b) {
                return refuse(format!("is assumed injective, and {twice} occurs twice"));
            }
        }
        Ok(())
    }
}

/// The kernel with a real scalar replaced by a literal everywhere.
fn literal(kernel: &Kernel, var: VarId, value: Real) -> Kernel {
    let argument: &Variable = &kernel.vars[var];
    let value = if has_single_precision(kernel) {
        Expr::Cast(argument.ty, Box::new(Expr::Real(value)))
    } else {
        Expr::Real(value)
    };
    let mut rewrite = |e: Expr| match e {
        Expr::Load(a) if a.var == var => value.clone(),
        other => other,
    };
    let mut fixed = kernel.clone();
    for rule in fixed.rules.values_mut() {
        rule.body = rule.body.map(&mut rewrite);
    }
    for insn in fixed.insns.values_mut() {
        insn.map_expressions(&mut rewrite);
    }
    // nothing mentions it any more: this drops its declaration
    fixed.with_var_fixed(var, 0)
}
