//! Sums products of table entries as moments, in a basis of the columns of the tables.

use crate::modes::{Basis, Points, Table};
use crate::moments::{Moments, Sums};
use crate::monomials::joined;
use crate::moved_terms::{LOOPS, Moved, Part, WHOLE};
use crate::polynomial::Product;
use crate::proofs::separable::{
    ALIKE, Changing, Entry, POINTS, SUMS, Separated, Slot, TABLES, Term, axis_extents, constant_extents,
    separate,
};
use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, InameId, Insn, InsnId, Kernel, ScalarType, TableData, VarId, VarKind};
use kingpost_steps::accuracy::{Digits, scales};
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

/// Takes products of table entries out of a loop that sums them with factors that it computes, and
/// sums moments of these factors in a basis of the columns instead.
///
/// # Rewrite
/// ```text
/// for q in 0..4                          =>   for k in 0..1
///   for i in 0..2                               for l in 0..1
///     for j in 0..2                               zero_moment: moment[k, l] = 0.0
///       s: y[i, j] += g*(c[q]*…)              for q in 0..4
///                                               for k_1 in 0..1
///                                                 set_moment_row: moment_row = basis[q, k_1]*c[q]
///                                                 for l_1 in k_1..1
///                                                   add_moment: moment[k_1, l_1] += …
///                                             for k_2 in 0..1
///                                               for j_2 in 0..2
///                                                 for l_2 in 0..1
///                                                   add_moment_column: moment_column[k_2, j_2] += …
///                                             for i_2 in 0..2
///                                               for j_3 in i_2..2
///                                                 for k_3 in 0..1
///                                                   add_moment_sum: moment_sum[i_2, j_3] += …
///                                             for i_4 in 0..2
///                                               for j_5 in 0..2
///                                                 s: y[i_4, j_5] += moment_sum[i_4, j_5]*g
/// ```
/// With an orthonormal basis `B` of the columns of the tables, each table is a product, `T(q, i) =
/// sum_k B(q, k) C(k, i)`. For each factor `c` that changes with the loop,
/// ```text
/// sum_q c(q) S(q, i) T(q, j) = sum_kl C_S(k, i) M(k, l) C_T(l, j),   M(k, l) = sum_q c(q) B(q, k) B(q, l)
/// ```
/// The loop sums the symmetric moments `M`. After it, products with one table, then with the other,
/// give a sum for each pair of tables, which all updates share; a symmetric one is computed once. What
/// does not change with the loop multiplies these sums, and products of scalars are computed in front.
/// One table whose columns are independent is its own basis, so that the moments are the sums. A term
/// with one entry has moments with one index. Terms with entries of other tables, or none, stay in the
/// loop.
///
/// # Precondition
/// The loop runs over `0..n`, and those around the updates that lose a term run from 0, or from
/// another of them, to constants. What the loop adds to anything outside is a sum of products of
/// entries `T[q, i]` of tables of `f64`, of factors that change with the loop alone, and of factors
/// that do not change with it. A factor that changes is made of what is written outside, and of
/// scalars all of whose writes in an iteration are before all their uses. Other scalars that are
/// stored before they are used in an iteration, and only used inside, are replaced by their values
/// to see this. A summand of an update stays or leaves as a whole. The basis is certified, for all
/// entries: `|T(q, i) - sum_k B(q, k) C(k, i)| <= 10^-digits R(q, i)`, by compensated sums, with
/// the largest entry of row `q` or that of column `i` as `R`, whichever is smaller. Results are
/// equal as far as tables are equal up to this tolerance, where values are finite.
///
/// # Errors
/// A loop whose bounds are no such constants; a name that is no table with a row for each iteration;
/// no term that leaves; a term with more than two such entries, or indexed otherwise; a summand with
/// terms that stay while others leave; a condition, an index of a write or an inner bound that
/// changes with the loop; a scalar that is written after a use; anything else that is written other
/// than by `+=` or read inside; an infinity or a nan in a table; entries that the basis does not give, with
/// the one that differs most.
///
/// # Source
/// The reference tensor of Kirby & Logg 2006, with functions as factors and in a basis of the tables;
/// Luporini et al. 2017, §3.3, evaluates sums in advance only where these factors are expanded.
///
/// # Elsewhere
/// FFCx, TSFC and COFFEE keep the points for such factors.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SumMoments {
    /// The loop over points.
    pub iname: String,
    /// The tables; a term leaves the loop if all its entries are of these.
    pub tables: Vec<String>,
    /// Decimal digits to which entries of tables are those of the products, relative to the largest
    /// entries of their row and column.
    #[serde(default, skip_serializing_if = "Digits::is_default")]
    pub digits: Digits<13>,
}

impl SumMoments {
    /// Takes terms with entries of these tables out of the loop `iname`.
    pub fn new(iname: impl Into<String>, tables: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let tables = tables.into_iter().map(Into::into).collect();
        Self { iname: iname.into(), tables, digits: Digits::default() }
    }
}

impl fmt::Display for SumMoments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables: Vec<String> = self.tables.iter().map(|t| format!("`{t}`")).collect();
        write!(f, "sum moments of {} over `{}`{}", tables.join(", "), self.iname, self.digits)
    }
}

/// The points are counted.
const RANGE: Obligation = Obligation::new("sum_moments.range", "the loop runs from 0 to a constant");

/// The columns are known.
const ROWS: Obligation = Obligation::new(
    "sum_moments.rows",
    "the variables are tables of `f64` with two axes, which have an entry for each iteration",
);

/// There is something to take out.
const LEAVES: Obligation =
    Obligation::new("sum_moments.leaves", "a term has entries of these tables, and no others");

/// A term has moments.
const PAIRS: Obligation = Obligation::new(
    "sum_moments.pairs",
    "a term that leaves has one entry of the tables, or two with different columns",
);

/// The tables are what the basis makes of them.
const CERTIFICATE: Obligation = Obligation::new(
    "sum_moments.certificate",
    "every entry of the tables is that of the product of the basis and its coefficients, to the number of digits",
);

impl Primitive for SumMoments {
    const NAME: &'static str = "sum_moments";
    const SUMMARY: &'static str = "Sums products of table entries as moments, in a basis of the columns.";

    type Proof = Moments;
    type Made = Vec<Array>;

    const OBLIGATIONS: &'static [Obligation] = &[
        RANGE,
        ROWS,
        LEAVES,
        PAIRS,
        WHOLE,
        LOOPS,
        CERTIFICATE,
        ALIKE,
        POINTS,
        SUMS,
        TABLES,
        NOT_CALLED,
        NO_REDUCTION,
        FINITE,
    ];
    const KEEPS: Keeps = Keeps::within(12).of_finite();
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<Moments, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let extents = axis_extents(kernel);
        let points = RANGE.find(constant_extents(kernel).get(&iname).copied(), || {
            format!(
                "`{}` does not run from 0 to a constant above; shift it, or fix the parameters in its bounds",
                self.iname
            )
        })?;
        let tables = self.tables(kernel, points)?;
        let separated = separate(kernel, iname, Changing::Scalars)?;
        let mut taker = Taker {
            kernel,
            iname,
            extents: &extents,
            tables: &tables,
            factors: Vec::new(),
            sums: Vec::new(),
        };
        let mut moved = Vec::new();
        for (insn, terms) in &separated.updates {
            moved.extend(taker.moved(*insn, terms)?);
        }
        LEAVES.require(!moved.is_empty(), || {
            format!("no term of an update in `{}` has entries of these tables alone; name others", self.iname)
        })?;
        let Taker { factors, sums, .. } = taker;
        let own = own_basis(kernel, &tables, &sums);
        let basis = self.basis(kernel, points, &tables)?;
        let own = own.filter(|columns| *columns == basis.count);
        let Separated { atoms, stores, .. } = separated;
        let tables = tables.iter().map(|t| t.var).collect();
        Ok(Moments { iname, atoms, stores, tables, basis, own: own.is_some(), factors, sums, moved })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Moments) -> Vec<Array> {
        proof.edit(kernel)
    }

    const WEIGHT: usize = 2;

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut tables: Vec<&str> = Vec::new();
        for (id, var) in kernel.vars.iter() {
            if as_table(kernel, id).is_some() {
                tables.push(&var.name);
            }
        }
        let mut all = Vec::new();
        for iname in draw::loops(kernel) {
            all.extend(tables.iter().map(|table| Self::new(&iname, [*table])));
            all.push(Self::new(&iname, tables.iter().copied()));
        }
        draw::possible(kernel, all, p)
    }
}

/// A table by points and columns.
struct Known {
    var: VarId,
    columns: usize,
}

/// Rows and columns of a table of `f64`.
fn as_table(kernel: &Kernel, var: VarId) -> Option<(usize, usize)> {
    let data = &kernel.vars[var];
    if data.ty != ScalarType::F64 || !matches!(data.kind, VarKind::Table(TableData::Real(_))) {
        return None;
    }
    let constant = |e: &Affine| usize::try_from(e.as_constant()?).ok();
    let [rows, columns] = &data.shape[..] else { return None };
    Some((constant(rows)?, constant(columns)?))
}

/// The columns of the only table, if all sums are of all of them: it may be its own basis.
fn own_basis(kernel: &Kernel, tables: &[Known], sums: &[Sums]) -> Option<usize> {
    let [only] = tables else { return None };
    let (_, columns) = as_table(kernel, only.var)?;
    sums.iter().all(|s| s.extents.iter().all(|n| *n == columns)).then_some(columns)
}

impl SumMoments {
    /// The steps that take terms out of the loop `iname`, one for each set of tables that terms have in
    /// common; none where what the loop adds is no such sum.
    pub fn possible(kernel: &Kernel, iname: &str) -> Vec<Self> {
        let Ok(id) = lookup::tree_loop(kernel, iname) else { return Vec::new() };
        let Ok(separated) = separate(kernel, id, Changing::Scalars) else { return Vec::new() };
        let sets = joined(separated.updates.iter().flat_map(|(_, terms)| terms));
        let step = |of: BTreeSet<VarId>| Self::new(iname, of.into_iter().map(|var| &kernel.vars[var].name));
        sets.into_iter().map(step).collect()
    }

    /// Operations of the moments, and of the sums that are made of them, in a run of the loop: what the
    /// kernel takes afterwards at least. It is found without the kernel, which is large where many
    /// factors change with the loop.
    ///
    /// # Errors
    /// As the step.
    pub fn least_operations(&self, analysis: &Analysis) -> Result<u64, Refusal> {
        self.check(analysis).map(|proof| proof.operations())
    }

    fn tables(&self, kernel: &Kernel, points: usize) -> Result<Vec<Known>, Refusal> {
        let mut found: Vec<Known> = Vec::new();
        for name in &self.tables {
            let var = lookup::var(kernel, name)?;
            let shape = as_table(kernel, var);
            let shape = shape.filter(|(rows, columns)| *rows >= points && *columns > 0);
            let (_, columns) = ROWS.find(shape, || {
                format!(
                    "`{name}` is no table of `f64` with {points} rows; name tables that are indexed by `{}`, then a \
                     column",
                    self.iname
                )
            })?;
            if found.iter().all(|t| t.var != var) {
                found.push(Known { var, columns });
            }
        }
        if found.is_empty() {
            return Err(Refusal::argument("tables", "no table is named", "at least one"));
        }
        found.sort_by_key(|t| t.var);
        Ok(found)
    }

    /// The certified basis of the rows that the loop reads.
    fn basis(&self, kernel: &Kernel, points: usize, tables: &[Known]) -> Result<Basis, Refusal> {
        let rows = |t: &Known| {
            let VarKind::Table(TableData::Real(values)) = &kernel.vars[t.var].kind else { return Vec::new() };
            values.iter().take(points * t.columns).map(|v| v.0).collect()
        };
        let over = Points {
            weights: vec![1.0; points],
            tables: tables.iter().map(|t| Table { columns: t.columns, values: rows(t) }).collect(),
        };
        tables.iter().try_for_each(|t| check_finite_table(kernel, t.var))?;
        // all sums are over points
        let scale = |t: &Table| scales(&t.values, &[points, t.columns], &BTreeSet::from([0]));
        let scales: Vec<Vec<f64>> = over.tables.iter().map(scale).collect();
        let tolerance = self.digits.tolerance();
        // a column is at most `sqrt(points)` times as long as its largest entry
        let basis = over.basis(tolerance / (2.0 * (points as f64).sqrt()).max(20.0));
        CERTIFICATE.met(over.certify_basis(&basis, &scales, tolerance), |off| {
            let name = &kernel.vars[tables[off.table].var].name;
            format!(
                "`{name}[{}, {}]` is {:e}, its product with a basis of {} columns {:e}; ask for fewer than {} digits",
                off.point, off.column, off.entry, basis.count, off.product, self.digits.0
            )
        })?;
        Ok(basis)
    }
}

/// Takes terms out of updates.
struct Taker<'k> {
    kernel: &'k Kernel,
    iname: InameId,
    extents: &'k BTreeMap<InameId, usize>,
    tables: &'k [Known],
    /// Factors that change with the loop, each once.
    factors: Vec<Product>,
    sums: Vec<Sums>,
}

impl Taker<'_> {
    /// What leaves of an update, if anything does.
    fn moved(&mut self, id: InsnId, terms: &[Term]) -> Result<Option<Moved>, Refusal> {
        let insn = &self.kernel.insns[id];
        let leaves = |k: usize| self.leaves(&terms[k]);
        let Some(mut moved) = Moved::of(self.kernel, self.iname, (id, terms), self.extents, &leaves)? else {
            return Ok(None);
        };
        let mut parts: Vec<(usize, Vec<InameId>, BTreeMap<Product, f64>)> = Vec::new();
        for term in terms {
            if !self.leaves(term) {
                continue;
            }
            let (sum, axes) = self.sum(insn, term, &moved.loops)?;
            let place = parts.iter().position(|(s, a, _)| *s == sum && *a == axes).unwrap_or_else(|| {
                parts.push((sum, axes, BTreeMap::new()));
                parts.len() - 1
            });
            *parts[place].2.entry(term.fixed.clone()).or_insert(0.0) += term.coefficient;
        }
        let parts = parts.into_iter().map(|(array, axes, factors)| {
            let factors = factors.into_iter().filter(|(_, c)| *c != 0.0).collect();
            Part { array, axes, factors }
        });
        moved.parts = parts.filter(|p| !p.factors.is_empty()).collect();
        Ok(Some(moved))
    }

    fn leaves(&self, term: &Term) -> bool {
        let known = |(var, _): &Entry| self.tables.iter().any(|t| t.var == *var);
        !term.entries.is_empty() && term.entries.iter().all(known)
    }

    /// The sum that a term multiplies, and the loops that index it.
    fn sum(&mut self, insn: &Insn, term: &Term, loops: &[InameId]) -> Result<(usize, Vec<InameId>), Refusal> {
        let columns = |(var, slots): &Entry| match slots[..] {
            [Slot::Point, Slot::Axis(axis)] => {
                let table = self.tables.iter().position(|t| t.var == *var)?;
                let extent = *self.extents.get(&axis)?;
                let place = loops.iter().position(|l| *l == axis)?;
                (extent <= self.tables[table].columns).then_some((table, place, axis, extent))
            }
            _ => None,
        };
        let found = term.entries.iter().map(columns).collect::<Option<Vec<_>>>();
        let fits = |of: &Vec<(usize, usize, InameId, usize)>| match of.as_slice() {
            [_] => true,
            [(_, first, ..), (_, second, ..)] => first != second,
            _ => false,
        };
        let mut entries = PAIRS.find(found.filter(fits), || {
            let names: Vec<String> =
                term.entries.iter().map(|(var, _)| format!("`{}`", self.kernel.vars[*var].name)).collect();
            format!(
                "`{}` multiplies entries of {}, needed one or two, by the loop and a column in bounds, which differ; keep \
                 these in the loop",
                insn.name,
                names.join(", ")
            )
        })?;
        entries.sort_unstable();
        let factor = self.factors.iter().position(|known| *known == term.varying).unwrap_or_else(|| {
            self.factors.push(term.varying.clone());
            self.factors.len() - 1
        });
        let wanted = Sums {
            factor,
            tables: entries.iter().map(|(table, ..)| *table).collect(),
            extents: entries.iter().map(|(.., extent)| *extent).collect(),
        };
        let place = self.sums.iter().position(|known| *known == wanted).unwrap_or_else(|| {
            self.sums.push(wanted);
            self.sums.len() - 1
        });
        Ok((place, entries.iter().map(|(_, _, axis, _)| *axis).collect()))
    }
}
