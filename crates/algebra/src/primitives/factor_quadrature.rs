//! Sums products of table entries over modes instead of points.

use super::embed_table::has_single_precision;
use crate::modes::{Deviation, Points, Rounding, Table};
use crate::proofs::point_terms::{ALIKE, LOCAL, QUADRATIC, SUMS, Sums, sums};
use kingpost_analysis::Analysis;
use kingpost_ir::{
    Affine, BinaryOp, Domain, Expr, ExprType, InameId, InsnId, Kernel, Real, ScalarType, TableData, VarId,
    VarKind, Variable,
};
use kingpost_steps::accuracy::Digits;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::lookup::{self, NO_REDUCTION};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::finite::{FINITE, check_finite_table};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::Array;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Replaces the points of a quadrature rule by fewer modes, over which tables have the same sums of
/// products.
///
/// # Rewrite
/// ```text
/// for q in 0..3                             =>   for q in 0..2
///   z: e = 0.0                                     z: e = 0.0
///   for j in 0..2                                  for j in 0..2
///     s: e += phi[q, j]*x[j]                         s: e += phi_modes[q, j]*x[j]
///   for i in 0..2                                  for i in 0..2
///     t: y[i] += phi[q, i]*(w[q]*(g*e))              t: y[i] += phi_modes[q, i]*(g*e)
/// ```
/// With the columns `sqrt(w)*T[:, j]` of all tables, a mode is an element of an orthonormal basis
/// of what they span, and an entry of a new table is the product of a mode and a column. The basis
/// is found by modified Gram–Schmidt with pivots, and where a weight is negative by the Cholesky
/// factor of the sums. Columns that are orthogonal to all others of
/// another set have modes of their own, so that the new tables have blocks of zeros; the modes of a
/// block follow each other. The weights become 1. Tables that nothing mentions go
/// (`remove_unused_vars`).
///
/// # Precondition
/// The loop runs over `0..n`, and what it adds to anything outside is a sum of terms
/// `g*w[q]*A[q, i]*B[q, j]`: `A` and `B` are tables of type `f64`, or all of it of type `f32`, `w` is
/// a table of one axis, the same in all terms, or absent, and `g` does not change with `q`. Scalars
/// that are stored before they are used in an iteration, and only used inside, are replaced by their
/// values to see this. No sum of squares of a combination of columns, with the weights, is negative.
/// With `A'` and `B'` the new tables, for all such pairs and all columns,
/// ```text
/// |sum_q w[q] A[q, i] B[q, j] - sum_k A'[k, i] B'[k, j]| <= 10^-digits |A[:, i]| |B[:, j]|
/// ```
/// with the lengths of the two columns, `|A[:, i]|^2 = sum_q w[q] A[q, i]^2`, and six digits at most
/// in single precision. Both sums are computed from the tables of the two kernels, and compensated.
/// Results are equal as far as tables are equal up to this tolerance.
///
/// # Errors
/// A loop whose bounds are no such constants; a condition, an index of a write or an inner bound
/// that changes with the loop; a scalar that is used elsewhere, or from another iteration; anything
/// else that is written other than by `+=` or read inside; values that do not enter linearly, with
/// the instruction; a negative sum of squares; an infinity or a nan; a sum that differs, with the entry that
/// differs most.
///
/// # Source
/// Orthonormalisation: Björck 1967.
///
/// # Elsewhere
/// FErari and Kirby & Logg 2006 pre-evaluate such sums to element tensors; DUNE, MFEM and libCEED
/// keep the points.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactorQuadrature {
    /// The loop over points.
    pub iname: String,
    /// Decimal digits to which sums over modes are those over points, relative to the lengths of the
    /// columns.
    #[serde(default, skip_serializing_if = "Digits::is_default")]
    pub digits: Digits<13>,
    /// Number of which that of modes is a multiple: further modes are zero.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub multiple: u32,
    /// Whether modes that the same tables have follow each other, in blocks of such a number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocks: bool,
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // what serde calls
fn is_one(multiple: &u32) -> bool {
    *multiple == one()
}

impl FactorQuadrature {
    /// Factors the loop `iname`, to 13 digits.
    pub fn new(iname: impl Into<String>) -> Self {
        Self { iname: iname.into(), digits: Digits::default(), multiple: one(), blocks: false }
    }

    /// To a multiple of a number of modes, by modes that are zero.
    #[must_use]
    pub fn in_multiples_of(mut self, multiple: u32) -> Self {
        self.multiple = multiple;
        self
    }
}

impl FactorQuadrature {
    /// With the modes that the same tables have in blocks, each a multiple of a number of modes.
    #[must_use]
    pub fn in_blocks_of(mut self, multiple: u32) -> Self {
        self.multiple = multiple;
        self.blocks = true;
        self
    }
}

impl fmt::Display for FactorQuadrature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "factor quadrature `{}`{}", self.iname, self.digits)?;
        if self.blocks {
            return write!(f, " in blocks of {} modes", self.multiple);
        }
        if is_one(&self.multiple) { Ok(()) } else { write!(f, " in multiples of {} modes", self.multiple) }
    }
}

/// Digits that sums over tables of type `f32` have at most.
const SINGLE: u32 = 6;

/// Most modes of which their number is a multiple.
const MAX_MULTIPLE: usize = 1024;

/// The points are counted.
const RANGE: Obligation = Obligation::new(
    "factor_quadrature.range",
    "the loop runs from 0 to a constant, which tables have as extent",
);

/// Weights have roots.
const WEIGHTS: Obligation = Obligation::new(
    "factor_quadrature.weights",
    "weights are numbers, and no sum of squares with them is negative",
);

/// The tables have the same sums.
const CERTIFICATE: Obligation = Obligation::new(
    "factor_quadrature.certificate",
    "the sums of products of entries over modes are those over points, to the number of digits",
);

/// Tables over modes that have the sums of those over points.
pub struct ModeTables {
    iname: InameId,
    insns: Vec<InsnId>,
    weights: Option<VarId>,
    count: usize,
    tables: BTreeMap<VarId, Variable>,
    /// The type of the sums.
    ty: ScalarType,
    /// The type that a literal has to be cast to, where it could take another one.
    casts: Option<ScalarType>,
}

impl Primitive for FactorQuadrature {
    const NAME: &'static str = "factor_quadrature";
    const SUMMARY: &'static str = "Sums over fewer modes instead of the points of a quadrature rule.";

    type Proof = ModeTables;
    type Made = Vec<Array>;

    const OBLIGATIONS: &'static [Obligation] =
        &[RANGE, ALIKE, LOCAL, SUMS, QUADRATIC, WEIGHTS, CERTIFICATE, NOT_CALLED, NO_REDUCTION, FINITE];
    const KEEPS: Keeps = Keeps::within(12);
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<ModeTables, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let rows = self.rows(kernel, iname)?;
        let Sums { insns, weights, pairs, ty } = sums(kernel, iname)?;
        let used: BTreeSet<VarId> = pairs.iter().flatten().copied().collect();
        let used: Vec<VarId> = used.into_iter().collect();
        used.iter().chain(&weights).try_for_each(|var| check_finite_table(kernel, *var))?;
        let points = self.points(kernel, rows, weights, &used)?;
        let is_single = ty == ScalarType::F32;
        let digits = Digits::<13>(if is_single { self.digits.0.min(SINGLE) } else { self.digits.0 });
        let tolerance = digits.tolerance();
        let multiple = usize::try_from(self.multiple).ok().filter(|n| (1..=MAX_MULTIPLE).contains(n));
        let multiple = multiple.ok_or_else(|| {
            let found = format!("a multiple of {} modes", self.multiple);
            Refusal::argument("multiple", found, format!("1 to {MAX_MULTIPLE}"))
        })?;
        let rounding = if is_single { Rounding::SINGLE } else { Rounding::double(tolerance, self.blocks) };
        let mut modes = if points.weights.iter().all(|w| *w >= 0.0) {
            points.modes(rounding)
        } else {
            points.modes_of_sums(rounding).map_err(|[table, column]| {
                WEIGHTS.unfit(format!(
                    "the sum of the squares of column {column} of `{}`, or what is left of it, is negative, as some \
                     weights are; choose a rule with positive weights, or of a higher degree",
                    kernel.vars[used[table]].name
                ))
            })?
        };
        if is_single {
            modes = modes.rounded();
        }
        if self.blocks {
            modes = modes.in_blocks(multiple);
        }
        let number: BTreeMap<VarId, usize> = used.iter().enumerate().map(|(k, var)| (*var, k)).collect();
        let places: Vec<[usize; 2]> = pairs.iter().map(|pair| pair.map(|var| number[&var])).collect();
        CERTIFICATE.met(points.certify(&modes, &places, tolerance), |deviation| {
            self.differs(kernel, &used, &deviation, digits)
        })?;
        let count = modes.count.next_multiple_of(multiple);
        let mut tables = BTreeMap::new();
        for (var, values) in used.iter().zip(&modes.tables) {
            let table = &kernel.vars[*var];
            let name = kernel.fresh_name(&format!("{}_modes", table.name));
            let mut shape = table.shape.clone();
            shape[0] = Affine::constant(count as i64);
            let columns = values.len() / modes.count.max(1);
            let zeros = std::iter::repeat_n(0.0, columns * (count - modes.count));
            let kind = VarKind::Table(TableData::real(values.iter().copied().chain(zeros)));
            tables.insert(*var, Variable::new(name, table.ty, kind, shape, table.space));
        }
        let casts = has_single_precision(kernel).then_some(ty);
        Ok(ModeTables { iname, insns, weights, count, tables, ty, casts })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &ModeTables) -> Vec<Array> {
        let made: BTreeMap<VarId, VarId> =
            proof.tables.iter().map(|(of, table)| (*of, kernel.vars.push(table.clone()))).collect();
        let count = Affine::constant(proof.count as i64);
        kernel.inames[proof.iname].domain = Domain::range(proof.iname, &Affine::constant(0), &count);
        let before = kernel.clone();
        let at_point = |e: &Expr| match e {
            Expr::Load(a) if a.index.first() == Some(&Expr::Iname(proof.iname)) => Some(a.var),
            _ => None,
        };
        let is_weight = |e: &Expr| at_point(e).is_some_and(|var| Some(var) == proof.weights);
        let is_alike = |e: &Expr| before.type_of(e, &[]) == Ok(ExprType::Scalar(proof.ty));
        for insn in &proof.insns {
            let insn = &mut kernel.insns[*insn];
            insn.map_expressions(&mut |e| match e {
                Expr::Binary(BinaryOp::Mul, a, b) if is_weight(&a) && is_alike(&b) => *b,
                Expr::Binary(BinaryOp::Mul, a, b) if is_weight(&b) && is_alike(&a) => *a,
                other => other,
            });
            insn.map_expressions(&mut |e| if is_weight(&e) { proof.one() } else { e });
            insn.map_expressions(&mut |e| match (at_point(&e).and_then(|var| made.get(&var)), e) {
                (Some(table), Expr::Load(a)) => Expr::load(*table, a.index),
                (_, other) => other,
            });
        }
        proof.tables.values().map(|t| Array::named(&t.name)).collect()
    }

    const WEIGHT: usize = 3;

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let all: Vec<Self> = draw::loops(kernel).iter().map(Self::new).collect();
        draw::possible(kernel, all, p)
    }
}

impl ModeTables {
    /// A weight that is 1.
    fn one(&self) -> Expr {
        let one = Expr::Real(Real(1.0));
        match self.casts {
            Some(ty) => Expr::Cast(ty, Box::new(one)),
            None => one,
        }
    }
}

impl FactorQuadrature {
    /// The number of points.
    fn rows(&self, kernel: &Kernel, iname: InameId) -> Result<usize, Refusal> {
        let range = kernel.inames[iname].domain.as_range(iname);
        let range = range.and_then(|(lo, hi)| Some((lo.as_constant()?, hi.as_constant()?)));
        match range {
            Some((0, rows)) if rows > 0 => usize::try_from(rows).map_err(|_| self.no_range()),
            Some(_) | None => Err(self.no_range()),
        }
    }

    fn no_range(&self) -> Refusal {
        RANGE.unfit(format!(
            "`{}` does not run from 0 to a constant above; shift it, or fix the parameters in its bounds",
            self.iname
        ))
    }

    /// The tables and weights at the points.
    fn points(
        &self,
        kernel: &Kernel,
        rows: usize,
        weights: Option<VarId>,
        tables: &[VarId],
    ) -> Result<Points, Refusal> {
        let of = |var: VarId| -> Result<Table, Refusal> {
            let table = &kernel.vars[var];
            let extents = table.shape.iter().map(|e| e.as_constant().and_then(|n| usize::try_from(n).ok()));
            let extents: Vec<usize> = extents.map(Option::unwrap_or_default).collect();
            RANGE.require(extents.first().is_some_and(|n| *n >= rows), || {
                format!(
                    "`{}` has fewer rows than the {rows} of `{}`; let the loop end where it ends",
                    table.name, self.iname
                )
            })?;
            let columns: usize = extents.iter().skip(1).product();
            let values: Vec<f64> = match &table.kind {
                VarKind::Table(TableData::Real(values)) => {
                    values.iter().take(rows * columns).map(|v| v.0).collect()
                }
                VarKind::Table(TableData::Int(_) | TableData::Complex(_))
                | VarKind::Param
                | VarKind::Argument(_)
                | VarKind::Temporary => Vec::new(),
            };
            Ok(Table { columns, values })
        };
        let weights = match weights {
            None => vec![1.0; rows],
            Some(var) => {
                let values = of(var)?.values;
                WEIGHTS.forbid(values.iter().position(|w| w.is_nan()), |at| {
                    format!("`{}[{at}]` is {}, needed a number", kernel.vars[var].name, values[at])
                })?;
                values
            }
        };
        Ok(Points { weights, tables: tables.iter().map(|var| of(*var)).collect::<Result<_, _>>()? })
    }

    fn differs(&self, kernel: &Kernel, used: &[VarId], deviation: &Deviation, digits: Digits<13>) -> String {
        let [a, b] = deviation.tables.map(|k| &kernel.vars[used[k]].name);
        let [i, j] = deviation.columns;
        format!(
            "the sum of the products of `{a}[{q}, {i}]` and `{b}[{q}, {j}]` is {} over points and {} over modes, \
             needed within 1e-{} of {}; ask for fewer digits",
            deviation.points,
            deviation.modes,
            digits.0,
            deviation.scale,
            q = self.iname
        )
    }
}
