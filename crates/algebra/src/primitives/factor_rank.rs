//! Replaces tables by products with a basis of their columns.

use crate::modes::{Basis, Points, Table};
use crate::product::Product;
use kingpost_analysis::Analysis;
use kingpost_ir::{
    Affine, AxisTag, Expr, Insn, InsnId, Kernel, Node, ScalarType, TableData, UpdateOp, VarId, VarKind,
    Variable,
};
use kingpost_steps::accuracy::Digits;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::lookup;
use kingpost_steps::nest::new_loop;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::entries::{LINEAR, linear_uses};
use kingpost_steps::proofs::finite::{FINITE, check_finite_table};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::{Array, Handles, Loop, Made};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Replaces tables over the same rows by products of one basis of their columns and a table of
/// coefficients, in updates that add a product with such a table.
///
/// # Rewrite
/// ```text
/// for q in 0..3                         =>   for q in 0..3
///   for j in 0..2                              for j in 0..2
///     s: e0 += A[q, j]*x[j]                      for mode in 0..2
///     t: e1 += B[q, j]*x[j]                        s: e0 += A_basis[q, mode]*A_coefficients[0, mode, j]*x[j]
///                                                  t: e1 += A_basis[q, mode]*A_coefficients[1, mode, j]*x[j]
/// ```
/// The basis is an orthonormal one of all columns of all tables, by modified Gram–Schmidt with
/// pivots; its number of columns is the rank of the tables side by side. The derivatives of
/// polynomials of degree `p` are polynomials of degree `p - 1`, so that derivatives along all axes
/// at quadrature points have a basis in common. Neighbouring updates share a loop unless one
/// reads what another updates. Steps such as `factor_out` and `hoist_nest` then compute the two
/// products one after the other. Tables that nothing mentions go (`remove_unused_vars`).
///
/// # Precondition
/// The variables are tables of type `f64` with two axes and of one shape. Each instruction that
/// loads one of them is an update `v += T[q, j]*x` in the type `f64`, loads one of them once, and
/// reads no `v`. With `P` the basis and `C` the coefficients,
/// ```text
/// |T(q, j) - sum_k P(q, k) C(k, j)| <= 10^-digits R(q, j)
/// ```
/// for every entry, by compensated sums. `R(q, j)` is the largest entry of row `q` or that of
/// column `j`, whichever is smaller; the entry itself, where a result has one alone. Results are
/// equal as far as tables are equal up to this tolerance, where values are finite. If loops are on
/// axes, the placement must hold.
///
/// # Errors
/// A variable that is no such table, or named twice; tables of different shapes; zeros only;
/// another use of a table, with the instruction; an update that reads what it adds to; an infinity or a
/// nan; a product that is further from a table, with the entry that is furthest.
///
/// # Source
/// Orthonormalisation: Björck 1967.
///
/// # Elsewhere
/// libCEED, MFEM and FFCx keep a table for each derivative.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactorRank {
    /// The tables.
    pub vars: Vec<String>,
    /// Decimal digits to which entries are those of the product, relative to the largest ones of
    /// their row and column.
    #[serde(default, skip_serializing_if = "Digits::is_default")]
    pub digits: Digits<13>,
    /// Number of which that of modes is a multiple: further modes are zero.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub multiple: u32,
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // what serde calls
fn is_one(multiple: &u32) -> bool {
    *multiple == one()
}

impl FactorRank {
    /// Factors these tables, to 13 digits.
    pub fn new<S: Into<String>>(vars: impl IntoIterator<Item = S>) -> Self {
        Self { vars: vars.into_iter().map(Into::into).collect(), digits: Digits::default(), multiple: one() }
    }

    /// To a multiple of a number of modes, by modes that are zero.
    #[must_use]
    pub fn in_multiples_of(mut self, multiple: u32) -> Self {
        self.multiple = multiple;
        self
    }
}

impl fmt::Display for FactorRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.vars.iter().map(|name| format!("`{name}`")).collect();
        write!(f, "factor {} by a basis of their columns{}", names.join(", "), self.digits)?;
        if is_one(&self.multiple) { Ok(()) } else { write!(f, " in multiples of {} modes", self.multiple) }
    }
}

/// Most modes of which their number is a multiple.
const MAX_MULTIPLE: u32 = 1024;

/// The values are known.
const TABLES: Obligation = Obligation::new(
    "factor_rank.tables",
    "the variables are different tables of type `f64`, with two axes and one shape",
);

/// The product is linear in the entry.
const UPDATE: Obligation = Obligation::new(
    "factor_rank.update",
    "each load of a table is a factor of a product that an update adds in `f64`, and the only one",
);

/// What a mode has added is not seen by the next one.
const UNREAD: Obligation = Obligation::new("factor_rank.unread", "no such update reads what it adds to");

/// The tables are products.
const CERTIFICATE: Obligation = Obligation::new(
    "factor_rank.certificate",
    "every entry is that of the product with the basis, to the number of digits",
);

/// Tables as products, and the updates that load them.
pub struct RankFactors {
    vars: Vec<VarId>,
    /// Neighbours that share a loop.
    runs: Vec<Vec<InsnId>>,
    count: usize,
    /// The basis and the coefficients.
    tables: [Variable; 2],
}

/// A basis, coefficients, and the loops over modes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactoredTables {
    /// The table of the basis, `[rows, modes]`.
    pub basis: Array,
    /// The table of the coefficients, `[tables, modes, columns]`.
    pub coefficients: Array,
    /// The loops over modes, in textual order.
    pub loops: Vec<Loop>,
}

impl Handles for FactoredTables {
    fn list(&self, made: &mut Made) {
        made.arrays.extend([self.basis.clone(), self.coefficients.clone()]);
        self.loops.list(made);
    }
}

impl Primitive for FactorRank {
    const NAME: &'static str = "factor_rank";
    const SUMMARY: &'static str = "Replaces tables by products with a basis of their columns.";

    type Proof = RankFactors;
    type Made = FactoredTables;

    const OBLIGATIONS: &'static [Obligation] =
        &[TABLES, UPDATE, UNREAD, NOT_CALLED, CERTIFICATE, LINEAR, FINITE];
    const KEEPS: Keeps = Keeps::within(12).of_finite();
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<RankFactors, Refusal> {
        let kernel = analysis.kernel();
        if !(1..=MAX_MULTIPLE).contains(&self.multiple) {
            let found = format!("a multiple of {} modes", self.multiple);
            return Err(Refusal::argument("multiple", found, format!("1 to {MAX_MULTIPLE}")));
        }
        let (vars, points, [rows, columns]) = self.tables(kernel)?;
        let mut runs = Vec::new();
        self.runs(analysis, &vars, &kernel.body, &mut runs)?;
        let loads = |insn: &Insn| insn.reads().iter().any(|a| vars.contains(&a.var));
        let of_rule = kernel
            .rules
            .values()
            .find(|rule| rule.body.any(&mut |e| e.as_load().is_some_and(|a| vars.contains(&a.var))));
        UPDATE.require(of_rule.is_none(), || {
            let name = of_rule.map_or("", |rule| &rule.name);
            format!("the rule `{name}` loads a table; expand it first")
        })?;
        UPDATE.require(kernel.insns.values().any(loads), || {
            format!("nothing loads `{}`", self.vars.join("`, `"))
        })?;
        let basis = self.basis(analysis, &vars, &points)?;
        let multiple = self.multiple as usize;
        let count = basis.count.next_multiple_of(multiple);
        let zeros = |n: usize| std::iter::repeat_n(0.0, n);
        let padded_rows = basis
            .values
            .chunks(basis.count)
            .flat_map(|row| row.iter().copied().chain(zeros(count - basis.count)));
        let more = (count - basis.count) * columns;
        let coefficients = basis.tables.iter().flat_map(|t| t.iter().copied().chain(zeros(more)));
        let table = |end: &str, shape: &[usize], data: TableData| {
            let name = kernel.fresh_name(&format!("{}_{end}", self.vars[0]));
            let shape: Vec<Affine> = shape.iter().map(|n| Affine::constant(*n as i64)).collect();
            Variable::new(name, ScalarType::F64, VarKind::Table(data), shape, kernel.vars[vars[0]].space)
        };
        let tables = [
            table("basis", &[rows, count], TableData::real(padded_rows)),
            table("coefficients", &[vars.len(), count, columns], TableData::real(coefficients)),
        ];
        Ok(RankFactors { vars, runs, count, tables })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &RankFactors) -> FactoredTables {
        let [basis, coefficients] = proof.tables.clone().map(|table| kernel.vars.push(table));
        let mut loops = Vec::new();
        for run in &proof.runs {
            let mode = new_loop(kernel, "mode", proof.count as i64, AxisTag::Sequential);
            loops.push(Loop::named(&kernel.inames[mode].name));
            for insn in run {
                kernel.insns[*insn].map_expressions(&mut |e| {
                    let Expr::Load(access) = &e else { return e };
                    let place = proof.vars.iter().position(|var| *var == access.var);
                    let (Some(place), [row, column]) = (place, access.index.as_slice()) else { return e };
                    let of_basis = Expr::load(basis, [row.clone(), Expr::Iname(mode)]);
                    let index = [Expr::Int(place as i64), Expr::Iname(mode), column.clone()];
                    of_basis * Expr::load(coefficients, index)
                });
            }
            wrap(&mut kernel.body, run, mode);
        }
        let [basis, coefficients] = [basis, coefficients].map(|table| Array::named(&kernel.vars[table].name));
        FactoredTables { basis, coefficients, loops }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let tables = draw::tables_with_axes(kernel, 2);
        let pairs = tables.iter().flat_map(|a| tables.iter().map(move |b| Self::new([a, b])));
        let all: Vec<Self> = tables.iter().map(|a| Self::new([a])).chain(pairs).collect();
        let step = draw::possible(kernel, all, p)?;
        let multiple = p.among([1, 2, 3]);
        Some(step.in_multiples_of(multiple))
    }
}

/// Puts neighbours into a loop.
fn wrap(nodes: &mut Vec<Node>, run: &[InsnId], iname: kingpost_ir::InameId) {
    let is_first = |n: &Node| matches!(n, Node::Insn(i) if Some(i) == run.first());
    if let Some(at) = nodes.iter().position(is_first) {
        let inside: Vec<Node> = nodes.drain(at..at + run.len()).collect();
        nodes.insert(at, Node::Loop(iname, inside));
        return;
    }
    for node in nodes {
        if let Node::Loop(_, body) = node {
            wrap(body, run, iname);
        }
    }
}

impl FactorRank {
    /// The tables, their values, and their shape.
    fn tables(&self, kernel: &Kernel) -> Result<(Vec<VarId>, Points, [usize; 2]), Refusal> {
        let (mut vars, mut tables, mut shape) = (Vec::new(), Vec::new(), None);
        for name in &self.vars {
            let var = lookup::var(kernel, name)?;
            let variable = &kernel.vars[var];
            let extents: Option<Vec<usize>> =
                variable.shape.iter().map(|e| usize::try_from(e.as_constant()?).ok()).collect();
            let found = match (&variable.kind, extents.as_deref()) {
                (VarKind::Table(TableData::Real(values)), Some([rows, columns]))
                    if variable.ty == ScalarType::F64 && !vars.contains(&var) =>
                {
                    Some(([*rows, *columns], values))
                }
                (VarKind::Table(_) | VarKind::Param | VarKind::Argument(_) | VarKind::Temporary, _) => None,
            };
            let found = found.filter(|(own, _)| shape.is_none_or(|shape| shape == *own));
            let (own, values) = TABLES.find(found, || {
                format!(
                    "`{name}` is no table of type f64 with two axes, is named twice or has another shape than \
                     `{}`; name each table over the same rows and columns once",
                    self.vars[0]
                )
            })?;
            shape = Some(own);
            vars.push(var);
            tables.push(Table { columns: own[1], values: values.iter().map(|v| v.0).collect() });
        }
        let Some(shape) = shape else {
            return Err(Refusal::argument("vars", "no table is named", "at least one"));
        };
        Ok((vars, Points { weights: vec![1.0; shape[0]], tables }, shape))
    }

    /// The certified basis of the columns.
    fn basis(&self, analysis: &Analysis, vars: &[VarId], points: &Points) -> Result<Basis, Refusal> {
        let mut scales = Vec::new();
        for (var, table) in vars.iter().zip(&points.tables) {
            check_finite_table(analysis.kernel(), *var)?;
            let shape = [points.weights.len(), table.columns];
            scales.push(linear_uses(analysis.expanded(), *var)?.scales(&table.values, &shape));
        }
        let tolerance = self.digits.tolerance();
        // a column is at most `sqrt(rows)` times as long as its largest entry
        let rest = tolerance / (2.0 * (points.weights.len() as f64).sqrt()).max(20.0);
        let basis = points.basis(rest);
        points.certify_basis(&basis, &scales, tolerance).map_err(|off| {
            CERTIFICATE.unfit(format!(
                "`{}[{}, {}]` is {:e}, its product with a basis of {} columns {:e}; ask for fewer than {} digits",
                self.vars[off.table], off.point, off.column, off.entry, basis.count, off.product, self.digits.0
            ))
        })?;
        CERTIFICATE.require(basis.count > 0, || {
            format!("`{}` hold nothing but zeros; drop the terms", self.vars.join("`, `"))
        })?;
        Ok(basis)
    }

    /// Updates that stand one after the other, of which none reads what another one adds to.
    fn runs(
        &self,
        analysis: &Analysis,
        vars: &[VarId],
        nodes: &[Node],
        runs: &mut Vec<Vec<InsnId>>,
    ) -> Result<(), Refusal> {
        let kernel = analysis.kernel();
        // reads and writes of the rules' values, too
        let expanded = analysis.expanded();
        let reads = |i: InsnId, var: VarId| expanded.insns[i].loads(var);
        let writes = |i: InsnId| kernel.insns[i].lhs.var;
        let mut run: Vec<InsnId> = Vec::new();
        for node in nodes {
            match node {
                Node::Loop(_, body) => {
                    runs.extend((!run.is_empty()).then(|| std::mem::take(&mut run)));
                    self.runs(analysis, vars, body, runs)?;
                }
                Node::Insn(id) => {
                    let insn = &kernel.insns[*id];
                    if !insn.reads().iter().any(|a| vars.contains(&a.var)) {
                        runs.extend((!run.is_empty()).then(|| std::mem::take(&mut run)));
                        continue;
                    }
                    check_update(kernel, insn, vars)?;
                    UNREAD.require(!reads(*id, writes(*id)), || {
                        let name = &kernel.vars[writes(*id)].name;
                        format!("`{}` reads `{name}`, which it adds to; store the value first", insn.name)
                    })?;
                    if run.iter().any(|other| reads(*id, writes(*other)) || reads(*other, writes(*id))) {
                        runs.push(std::mem::take(&mut run));
                    }
                    run.push(*id);
                }
            }
        }
        runs.extend((!run.is_empty()).then_some(run));
        Ok(())
    }
}

/// An update by a product of which one factor is an entry.
fn check_update(kernel: &Kernel, insn: &Insn, vars: &[VarId]) -> Result<(), Refusal> {
    NOT_CALLED.require(insn.callee.is_none(), || {
        format!("`{}` belongs to a call; inline the call first", insn.name)
    })?;
    let is_f64 = kernel.vars[insn.lhs.var].ty == ScalarType::F64;
    let adds = insn.update_op() == Some(UpdateOp::Add) && is_f64;
    let loads = insn.reads().iter().filter(|a| vars.contains(&a.var)).count();
    let is_entry = |e: &Expr| matches!(e, Expr::Load(a) if vars.contains(&a.var));
    let product = Product::of(kernel, &insn.rhs);
    let entries =
        product.iter().flat_map(|p| &p.factors).filter(|f| !f.divides && is_entry(&f.value)).count();
    UPDATE.require(adds && loads == 1 && entries == 1, || {
        format!(
            "`{}` does not add a product of which one factor is an entry; split sums first, or name other tables",
            insn.name
        )
    })
}
