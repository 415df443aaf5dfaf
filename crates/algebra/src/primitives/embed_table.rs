//! Writes the values of a table into the code.

use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, Complex, Expr, Kernel, MathFn, Real, ScalarType, TableData, VarId, VarKind, Variable,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Replaces every load of a table at a constant index by the value that stands there.
///
/// # Rewrite
/// ```text
/// s: y[0] = w[1]*x[0]         =>   s: y[0] = 0.75*x[0]
/// table w = [0.25, 0.75]           table w = [0.25, 0.75]
/// ```
/// Loads at other indices stay; the table goes when nothing mentions it (`remove_unused_vars`).
///
/// # Precondition
/// The index is constant and inside the table: `t[c]  =>  v` with `v = table(c)`,
/// `0 <= c < extent`. The literal is cast where single precision occurs in the kernel, also to
/// `i32` in a minimum or maximum that has that type from it, so that the type stays.
///
/// # Errors
/// An unknown variable, one that is no table, or a table that nothing loads at a constant index.
///
/// # Elsewhere
/// Loopy inlines constant arrays only by substitution rules; Halide folds them after unrolling.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// The values are known.
const TABLE: Obligation = Obligation::new("embed_table.table", "the variable is a table");

/// There is a load whose value is known.
const CONSTANT_INDEX: Obligation =
    Obligation::new("embed_table.constant_index", "a load of the table has a constant index inside it");

/// A table that is loaded at a constant index.
pub struct KnownValues {
    var: VarId,
    table: Variable,
    /// Whether a literal could take another type than that of the table.
    single: bool,
}

impl KnownValues {
    /// The value of a load of the table, if it is known.
    fn value(&self, e: &Expr) -> Option<Expr> {
        match (e, &self.table.kind) {
            (Expr::Load(a), VarKind::Table(data)) if a.var == self.var => {
                literal(&self.table, data, a, self.single)
            }
            _ => None,
        }
    }
}

impl Primitive for EmbedTable {
    const NAME: &'static str = "embed_table";
    const SUMMARY: &'static str = "Replaces loads of a table at constant indices by their values.";

    type Proof = KnownValues;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[TABLE, CONSTANT_INDEX];

    fn check(&self, analysis: &Analysis) -> Result<KnownValues, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        let table = kernel.vars[var].clone();
        TABLE.require(matches!(table.kind, VarKind::Table(_)), || {
            format!("`{}` is no table; only tables have values to embed", self.var)
        })?;
        let proof = KnownValues { var, table, single: has_single_precision(kernel) };
        let mut some = false;
        let mut look = |e: &Expr| some |= proof.value(e).is_some();
        for rule in kernel.rules.values() {
            rule.body.for_each(&mut look);
        }
        for insn in kernel.insns.values() {
            insn.lhs
                .index
                .iter()
                .chain([&insn.rhs])
                .chain(&insn.predicate)
                .for_each(|e| e.for_each(&mut look));
        }
        CONSTANT_INDEX.require(some, || {
            format!("no load of `{}` has a constant index; write out the loops that index it first", self.var)
        })?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &KnownValues) {
        *kernel = kernel.with_typed_extrema(&|e| proof.value(e));
        let mut rewrite = |e: Expr| proof.value(&e).unwrap_or(e);
        for rule in kernel.rules.values_mut() {
            rule.body = rule.body.map(&mut rewrite);
        }
        for insn in kernel.insns.values_mut() {
            insn.map_expressions(&mut rewrite);
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(p.of(&draw::tables(kernel))?))
    }
}

/// The value at a constant index.
fn literal(table: &Variable, data: &TableData, access: &Access, single: bool) -> Option<Expr> {
    // an index that is out of bounds is a mistake of the program, which stays as it is
    let at = table.row_major_place(access.index.iter().map(|e| e.as_affine()?.as_constant()))?;
    let value = match data {
        TableData::Int(values) => return values.get(at).map(|v| Expr::Int(*v)),
        TableData::Real(values) => Expr::Real(*values.get(at)?),
        TableData::Complex(values) => complex_literal(*values.get(at)?),
    };
    Some(if single { Expr::Cast(table.ty, Box::new(value)) } else { value })
}

/// A complex number in an expression.
pub(super) fn complex_literal(value: Complex<Real>) -> Expr {
    Expr::call(MathFn::Complex, [Expr::Real(value.re), Expr::Real(value.im)])
}

/// Whether a floating-point literal could take another type than `f64`.
pub(super) fn has_single_precision(kernel: &Kernel) -> bool {
    let mut single = kernel.vars.values().any(|v: &Variable| v.ty.part() == ScalarType::F32);
    let mut casts = |e: &Expr| single |= matches!(e, Expr::Cast(ScalarType::F32 | ScalarType::C64, _));
    for insn in kernel.insns.values() {
        for e in insn.expressions() {
            e.for_each(&mut casts);
        }
    }
    for rule in kernel.rules.values() {
        rule.body.for_each(&mut casts);
    }
    single
}
