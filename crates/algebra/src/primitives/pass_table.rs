//! Makes an argument of a table.

use kingpost_analysis::Analysis;
use kingpost_ir::{AddressSpace, Direction, Kernel, VarId, VarKind};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets the caller pass the values of a table.
///
/// # Rewrite
/// ```text
/// table w: f64[2] constant    =>   arg w: f64[2] in
/// table w = [0.25, 0.75]
/// ```
/// One kernel then serves several tables of the same shape. The argument is row-major, in global
/// memory; one without axes is passed by value.
///
/// # Precondition
/// Nothing to prove: with the table's values as the argument, `a(i) = table(i)`, every load finds
/// what it found. An assumption that the table is injective stays, and is checked at launch.
///
/// # Errors
/// An unknown variable, or one that is no table.
///
/// # Elsewhere
/// Loopy `TemporaryVariable` with `initializer` made a `GlobalArg`; the inverse is `fix_argument`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// Only a table has values to pass.
const TABLE: Obligation = Obligation::new("pass_table.table", "the variable is a table");

/// A table.
pub struct Table(VarId);

impl Primitive for PassTable {
    const NAME: &'static str = "pass_table";
    const SUMMARY: &'static str = "Lets the caller pass the values of a table.";

    type Proof = Table;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[TABLE];

    fn check(&self, analysis: &Analysis) -> Result<Table, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        let table = matches!(kernel.vars[var].kind, VarKind::Table(_));
        TABLE.require(table, || format!("`{}` is no table; only tables are passed", self.var))?;
        Ok(Table(var))
    }

    fn edit(&self, kernel: &mut Kernel, Table(var): &Table) {
        let table = &mut kernel.vars[*var];
        table.kind = VarKind::Argument(Direction::In);
        table.space = if table.shape.is_empty() { AddressSpace::Private } else { AddressSpace::Global };
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(p.of(&draw::tables(kernel))?))
    }
}
