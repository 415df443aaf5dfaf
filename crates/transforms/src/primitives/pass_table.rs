//! Makes an argument of a table.

use super::Transform;
use crate::lookup;
use crate::refusal::Refusal;
use purlin_ir::{AddressSpace, Direction, Kernel, VarKind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets the caller pass the values of a table.
///
/// # Rewrite
/// ```text
/// table w: f64[2] constant = {0.25, 0.75}   =>   arg w: f64[2] in
/// ```
/// One kernel then serves several tables of the same shape. The argument is row-major, in global memory; one without axes
/// is passed by value.
///
/// # Precondition
/// Nothing to prove: with the table's values as the argument, `a(i) = table(i)`, every load finds what it found. An assumption that the table is
/// injective stays, and is checked at launch.
///
/// # Errors
/// An unknown variable, or one that is no table.
///
/// # Elsewhere
/// Loopy `TemporaryVariable` with `initializer` made a `GlobalArg`; the inverse is `fix_argument`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassTable {
    /// The table.
    pub var: String,
}

impl PassTable {
    /// Passes the table `var`.
    pub fn new(var: impl Into<String>) -> Self {
        Self { var: var.into() }
    }
}

impl fmt::Display for PassTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pass table `{}`", self.var)
    }
}

impl Transform for PassTable {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let var = lookup::var(kernel, &self.var)?;
        if !matches!(kernel.vars[var].kind, VarKind::Table(_)) {
            return Err(Refusal::Other(format!("`{}` is no table; only tables are passed", self.var)));
        }
        let mut passed = kernel.clone();
        passed.vars[var].kind = VarKind::Argument(Direction::In);
        let scalar = kernel.vars[var].shape.is_empty();
        passed.vars[var].space = if scalar { AddressSpace::Private } else { AddressSpace::Global };
        Ok(passed)
    }
}
