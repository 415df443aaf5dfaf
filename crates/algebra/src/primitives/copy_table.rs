//! Gives instructions a table of their own.

use kingpost_analysis::Analysis;
use kingpost_ir::{Expr, InsnId, Kernel, VarId, VarKind, Variable};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup::{self, Selection};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::Array;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Copies a table, and lets some instructions load the copy.
///
/// # Rewrite
/// ```text
/// s: y[0] = w[1]*x[0]         =>   s: y[0] = w[1]*x[0]
/// t: y[1] = w[1]*x[1]              t: y[1] = v[1]*x[1]
/// table w = [0.25, 0.75]           table w = [0.25, 0.75]
///                                  table v = [0.25, 0.75]
/// ```
/// The copy has the type, shape, layout and address space of the table.
///
/// A compiler that sees one entry loaded in several places holds it in a register from the first to
/// the last, also where the code is written out and the entry could be an operand in constant
/// memory. BP3.0 at N = 9 takes 251 registers with one table of each kind, and 96 with one for each
/// contraction (NVRTC 13.0, sm_90). The copies take more of the cache of constants.
///
/// # Precondition
/// `w` is a table, whose values never change: `w(e) = v(e)` for every element `e`.
///
/// # Errors
/// An unknown variable, one that is no table, an instruction that does not load it itself; a name
/// that is taken.
///
/// # Elsewhere
/// Loopy has no counterpart; in CUDA code, a second `__constant__` array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyTable {
    /// The table.
    pub var: String,
    /// The instructions that load the copy.
    pub insns: Selection,
    /// Name of the copy.
    pub copy: String,
}

impl CopyTable {
    /// Lets `insns` load `copy` instead of the table `var`.
    pub fn new(var: impl Into<String>, insns: Selection, copy: impl Into<String>) -> Self {
        Self { var: var.into(), insns, copy: copy.into() }
    }
}

impl fmt::Display for CopyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "copy table `{}` to `{}`", self.var, self.copy)
    }
}

/// The values never change.
const TABLE: Obligation = Obligation::new("copy_table.table", "the variable is a table");

/// There is something to replace.
const LOADS: Obligation =
    Obligation::new("copy_table.loads", "each of the named instructions loads the table itself");

/// A table, and instructions that load it.
pub struct Loads {
    var: VarId,
    insns: Vec<InsnId>,
}

impl Primitive for CopyTable {
    const NAME: &'static str = "copy_table";
    const SUMMARY: &'static str = "Gives instructions a copy of a table.";

    type Proof = Loads;
    type Made = Array;

    const OBLIGATIONS: &'static [Obligation] = &[TABLE, LOADS];

    fn check(&self, analysis: &Analysis) -> Result<Loads, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        lookup::free(kernel, &self.copy)?;
        TABLE.require(matches!(kernel.vars[var].kind, VarKind::Table(_)), || {
            format!("`{}` is no table; copy an array by `prefetch_array`", self.var)
        })?;
        let insns = lookup::loading(kernel, var, Some(&self.insns), LOADS)?;
        Ok(Loads { var, insns })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Loads) -> Array {
        let copy = Variable { name: self.copy.clone(), ..kernel.vars[proof.var].clone() };
        let copy = kernel.vars.push(copy);
        for insn in &proof.insns {
            kernel.insns[*insn].map_expressions(&mut |e| match e {
                Expr::Load(mut access) if access.var == proof.var => {
                    access.var = copy;
                    Expr::Load(access)
                }
                other => other,
            });
        }
        Array::named(&self.copy)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let tables = draw::vars(kernel, |v| matches!(v.kind, VarKind::Table(_)));
        let (insns, copy) = (draw::insns(kernel, |_| true), kernel.fresh_name("copy"));
        let step = |table: &String, insn: &String| Self::new(table, Selection::Insn(insn.clone()), &copy);
        let all = tables.iter().flat_map(|table| insns.iter().map(move |insn| (table, insn)));
        draw::possible(kernel, all.map(|(table, insn)| step(table, insn)).collect(), p)
    }
}
