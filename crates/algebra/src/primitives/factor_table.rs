//! Replaces a table by a product of smaller ones.

use crate::tensor::{Deviation, Digit, Digits, Entries, Matrix};
use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, Affine, Atom, BinaryOp, Expr, InameId, Kernel, Layout, TableData, VarId, VarKind, Variable,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::map_loads;
use kingpost_steps::proofs::entries::{LINEAR, linear_uses};
use kingpost_steps::proofs::extent::parametric_extent;
use kingpost_steps::proofs::finite::{FINITE, check_finite_table};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::Array;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Replaces loads of a table by products of loads of smaller tables, of which it is the tensor
/// product.
///
/// # Rewrite
/// ```text
/// table T: f64[4, 4] global                           =>   table T_0: f64[2, 2] global
/// for a in 0..2                                            for a in 0..2
///   for b in 0..2                                            for b in 0..2
///     for l in 0..2                                            for l in 0..2
///       for m in 0..2                                            for m in 0..2
///         s: y[a, b] += T[2*a + b, 2*l + m]*u[l, m]                s: y[a, b] += T_0[a, l]*T_0[b, m]*u[l, m]
/// ```
/// Every axis has digits, outermost first: with the sizes `[3, 2]`, index `i` has the digits
/// `floor_div(i, 2)` and `i mod 2`. Factor `k` has the digits `k` of all axes as its indices, or
/// those that `factors` gives it.
/// Factors that are equal are one table; one that is a matrix of the kernel up to rounding is that
/// one. A digit that is known from the bounds of the loops is
/// written as such: split the loops by the same sizes first. The table goes when nothing mentions
/// it (`remove_unused_vars`).
///
/// # Precondition
/// The sizes of each axis have its extent as their product, and all axes have as many of them.
/// Entries are used in sums and products alone, also those that temporaries hold. With `R(i, j)` the
/// largest entry of row `i` or that of column `j`, whichever is smaller, every entry is the product of
/// the entries of the factors, `|T(i, j) - A(i_0, j_0) B(i_1, j_1) …| <= 1e-14 R(i, j)`: the rounding
/// errors of a table that was computed as a product. Where a result has one entry alone, `R` is that
/// entry. Of a table of type `f32` it is 1e-6. Results are equal as far as tables are equal up to
/// this tolerance.
///
/// # Errors
/// An unknown variable, one that is no table of type `f64` or `f32`; sizes that do not fit the
/// shape; an entry that divides, or that a function, a condition or a minimum is computed of; an
/// infinity or a nan; a table that is no such product, with the entry that is furthest from it.
///
/// # Elsewhere
/// Tensor-product elements of UFL, FInAT and MFEM declare it; here it is found in the values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactorTable {
    /// The table.
    pub var: String,
    /// The sizes of the digits of each axis, outermost first.
    pub sizes: Vec<Vec<u32>>,
    /// For each digit of each axis, the factor that it is an index of; their order if empty. With
    /// `[[0, 1], [1, 0]]` the digits of the second axis count the other way round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<Vec<u32>>,
    /// Names of the factors; `{var}_0`, `{var}_1`, … if empty. Names of factors that are equal to
    /// an earlier one are not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl FactorTable {
    /// Factors the table `var`, whose axes have digits of these sizes.
    pub fn new(var: impl Into<String>, sizes: impl IntoIterator<Item = Vec<u32>>) -> Self {
        Self { var: var.into(), sizes: sizes.into_iter().collect(), factors: Vec::new(), names: Vec::new() }
    }

    /// Gives the digits of each axis to these factors.
    #[must_use]
    pub fn with_factors(mut self, factors: impl IntoIterator<Item = Vec<u32>>) -> Self {
        self.factors = factors.into_iter().collect();
        self
    }
}

impl fmt::Display for FactorTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axis = |sizes: &Vec<u32>| sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("*");
        let sizes: Vec<_> = self.sizes.iter().map(axis).collect();
        write!(f, "factor table `{}` by {}", self.var, sizes.join(", "))
    }
}

/// The values are known.
const TABLE: Obligation =
    Obligation::new("factor_table.table", "the variable is a table of type `f64` or `f32`");

/// The digits count the entries.
const SIZES: Obligation = Obligation::new(
    "factor_table.sizes",
    "every axis has a size for each factor, and their product is its extent",
);

/// The values are products.
const PRODUCT: Obligation = Obligation::new(
    "factor_table.product",
    "every entry is the product of the entries of the factors, up to 1e-14 of the largest one of its row and \
     column, or 1e-6 in single precision",
);

/// An index stands in every factor.
const NO_REDUCED_INDEX: Obligation =
    Obligation::new("factor_table.no_reduced_index", "no index of a load of the table holds a reduction");

/// Where a factor is.
enum Factor {
    /// A table that the kernel has.
    Known(VarId),
    /// One of the new tables.
    New(usize),
}

/// A table that is a product.
pub struct TensorProduct {
    var: VarId,
    axes: Vec<Vec<Digit>>,
    /// Tables that are new.
    tables: Vec<Variable>,
    /// The factors, in their order.
    factors: Vec<Factor>,
    /// Smallest and largest values of the loops, where they are constants.
    ranges: BTreeMap<InameId, (i64, i64)>,
}

impl Primitive for FactorTable {
    const NAME: &'static str = "factor_table";
    const SUMMARY: &'static str = "Replaces a table by the product of smaller ones.";

    type Proof = TensorProduct;
    type Made = Vec<Array>;

    const OBLIGATIONS: &'static [Obligation] = &[TABLE, SIZES, PRODUCT, NO_REDUCED_INDEX, LINEAR, FINITE];
    const KEEPS: Keeps = Keeps::within(12);

    fn check(&self, analysis: &Analysis) -> Result<TensorProduct, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        let table = &kernel.vars[var];
        let values = match &table.kind {
            VarKind::Table(TableData::Real(values)) => Entries::of(table.ty).map(|of| (of, values)),
            VarKind::Table(_) | VarKind::Param | VarKind::Argument(_) | VarKind::Temporary => None,
        };
        let refused = || format!("`{}` is no table of type f64 or f32", self.var);
        let (entries, values) = TABLE.find(values, refused)?;
        let count = self.check_sizes(table)?;
        let axes = self.axes(count)?;
        self.check_indices(kernel, var)?;
        let values: Vec<f64> = values.iter().map(|v| v.0).collect();
        check_finite_table(kernel, var)?;
        let shape: Vec<usize> =
            self.sizes.iter().map(|sizes| sizes.iter().map(|n| *n as usize).product()).collect();
        let scales = linear_uses(analysis.expanded(), var)?.scales(&values, &shape);
        let digits = Digits { axes: &axes, values: &values, scales: &scales, entries };
        let before = matrices(kernel, table);
        let known: Vec<Matrix<'_>> =
            before.iter().map(|(_, shape, values)| Matrix { shape: shape.clone(), values }).collect();
        let found = PRODUCT
            .met(digits.separate(&known), |deviation| self.no_product(deviation, entries.tolerance()))?;
        let (mut tables, mut factors) = (Vec::<Variable>::new(), Vec::new());
        let mut kept: Vec<(usize, &Vec<f64>)> = Vec::new();
        for (k, values) in found.iter().enumerate() {
            let sizes = digits.shape(k);
            let is_known = |(_, shape, known): &&(_, Vec<usize>, _)| *shape == sizes && known == values;
            if let Some((known, _, _)) = before.iter().find(is_known) {
                factors.push(Factor::Known(*known));
                continue;
            }
            let shape: Vec<Affine> = sizes.into_iter().map(|n| Affine::constant(n as i64)).collect();
            let same = kept.iter().find(|(at, v)| *v == values && tables[*at].shape == shape);
            factors.push(Factor::New(match same {
                Some((at, _)) => *at,
                None => {
                    let name = self.name(k, count)?;
                    lookup::free(kernel, &name)?;
                    if tables.iter().any(|t| t.name == name) {
                        return Err(Refusal::Taken { name });
                    }
                    let kind = VarKind::Table(TableData::real(values.iter().copied()));
                    kept.push((tables.len(), values));
                    tables.push(Variable::new(name, table.ty, kind, shape, table.space));
                    tables.len() - 1
                }
            }));
        }
        let ranges = constant_ranges(analysis)?;
        Ok(TensorProduct { var, axes, tables, factors, ranges })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &TensorProduct) -> Vec<Array> {
        let tables: Vec<VarId> = proof.tables.iter().map(|t| kernel.vars.push(t.clone())).collect();
        let product = |access: Access| {
            let digits: Vec<Vec<Expr>> =
                access.index.iter().zip(&self.sizes).map(|(e, sizes)| proof.digits(e, sizes)).collect();
            let factor = |(k, at): (usize, &Factor)| {
                // each axis has one digit of each factor
                let of_factor = |(axis, digits): (&Vec<Digit>, &Vec<Expr>)| {
                    let own = axis.iter().zip(digits).filter(|(d, _)| d.factor == k);
                    own.map(|(_, e)| e.clone()).collect::<Vec<_>>()
                };
                let table = match at {
                    Factor::Known(var) => *var,
                    Factor::New(at) => tables[*at],
                };
                Expr::load(table, proof.axes.iter().zip(&digits).flat_map(of_factor))
            };
            proof.factors.iter().enumerate().map(factor).reduce(|a, b| a * b).unwrap_or(Expr::Load(access))
        };
        // an index of a load may hold none of a table of reals
        map_loads(kernel, proof.var, &mut |access| product(access));
        proof.tables.iter().map(|t| Array::named(&t.name)).collect()
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let tables = draw::tables(kernel);
        let real = |name: &String| kernel.var(name).is_some_and(|v| Entries::of(kernel.vars[v].ty).is_some());
        let var = p.of(&tables.into_iter().filter(real).collect::<Vec<_>>())?;
        let shape = kernel.var(&var).map(|v| kernel.vars[v].shape.clone())?;
        let extents = shape.iter().map(Affine::as_constant).collect::<Option<Vec<_>>>()?;
        let sizes = extents.into_iter().map(|n| {
            let n = u32::try_from(n).ok().filter(|n| *n > 0)?;
            let inner = (2..n).find(|d| n.is_multiple_of(*d) && p.one_in(2)).unwrap_or(n);
            Some(vec![n / inner, inner])
        });
        Some(Self::new(var, sizes.collect::<Option<Vec<_>>>()?))
    }
}

impl FactorTable {
    /// The number of factors.
    fn check_sizes(&self, table: &Variable) -> Result<usize, Refusal> {
        let count = self.sizes.first().map_or(0, Vec::len);
        let fits = self.sizes.len() == table.shape.len()
            && count >= 2
            && self.sizes.iter().zip(&table.shape).all(|(sizes, extent)| {
                let product = sizes.iter().try_fold(1_i64, |all, n| all.checked_mul(i64::from(*n)));
                sizes.len() == count && product == extent.as_constant() && !sizes.contains(&0)
            });
        SIZES.require(fits, || {
            let shape: Vec<_> = table.shape.iter().filter_map(Affine::as_constant).collect();
            format!(
                "`{}` has the shape {shape:?}, needed the sizes of two or more digits for each axis, as many for each, \
                 with its extent as their product",
                self.var
            )
        })?;
        Ok(count)
    }

    /// The digits of each axis.
    fn axes(&self, count: usize) -> Result<Vec<Vec<Digit>>, Refusal> {
        let order: Vec<u32> = (0..count as u32).collect();
        let is_permutation = |of: &Vec<u32>| {
            let mut sorted = of.clone();
            sorted.sort_unstable();
            sorted == order
        };
        let fits = self.factors.len() == self.sizes.len() && self.factors.iter().all(is_permutation);
        if !self.factors.is_empty() && !fits {
            let found = format!("the digits go to the factors {:?}", self.factors);
            return Err(Refusal::argument("factors", found, format!("each of {order:?} once for each axis")));
        }
        let of_axis = |(a, sizes): (usize, &Vec<u32>)| {
            let factors = self.factors.get(a).unwrap_or(&order);
            let digit =
                |(size, factor): (&u32, &u32)| Digit { size: *size as usize, factor: *factor as usize };
            sizes.iter().zip(factors).map(digit).collect()
        };
        Ok(self.sizes.iter().enumerate().map(of_axis).collect())
    }

    fn check_indices(&self, kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
        for insn in kernel.insns.values() {
            let of_table = insn.reads().into_iter().filter(|a| a.var == var);
            let mut reduces = false;
            for index in of_table.flat_map(|a| &a.index) {
                index.for_each(&mut |e| reduces |= matches!(e, Expr::Reduce(_)));
            }
            NO_REDUCED_INDEX.require(!reduces, || {
                format!(
                    "`{}` loads `{}` at the value of a reduction, which would stand in every factor; realise it first",
                    insn.name, self.var
                )
            })?;
        }
        Ok(())
    }

    fn no_product(&self, deviation: Option<Deviation>, tolerance: f64) -> String {
        match deviation {
            None => format!("`{}` holds nothing but zeros; keep it", self.var),
            Some(Deviation { index, value, product }) => {
                let index: Vec<_> = index.iter().map(usize::to_string).collect();
                format!(
                    "`{}[{}]` is {value}, and the product of the factors that give its largest entry is {product}, \
                     needed within {tolerance:e} of the largest entry of its row and column; reorder the table, or choose other sizes",
                    self.var,
                    index.join(",")
                )
            }
        }
    }

    fn name(&self, factor: usize, count: usize) -> Result<String, Refusal> {
        if self.names.is_empty() {
            return Ok(format!("{}_{factor}", self.var));
        }
        if self.names.len() != count {
            let found = format!("{} names for {count} factors", self.names.len());
            return Err(Refusal::argument("names", found, "one for each"));
        }
        Ok(self.names[factor].clone())
    }
}

impl TensorProduct {
    /// The digits of an index: by the terms of the index where the bounds of the loops say so, and
    /// by division otherwise.
    fn digits(&self, index: &Expr, sizes: &[u32]) -> Vec<Expr> {
        let strides: Vec<i64> =
            (0..sizes.len()).map(|k| sizes[k + 1..].iter().map(|n| i64::from(*n)).product()).collect();
        let known = index.as_affine().and_then(|e| self.known_digits(&e, sizes, &strides));
        if let Some(known) = known {
            return known.iter().map(Expr::from_affine).collect();
        }
        let digit = |(k, stride): (usize, &i64)| {
            let rest = match stride {
                1 => index.clone(),
                _ => Expr::binary(BinaryOp::FloorDiv, index.clone(), Expr::Int(*stride)),
            };
            if k == 0 { rest } else { Expr::binary(BinaryOp::Mod, rest, Expr::Int(sizes[k].into())) }
        };
        strides.iter().enumerate().map(digit).collect()
    }

    /// The `d_k` with `e = sum stride_k d_k` and `0 <= d_k < size_k` for all but the outermost,
    /// which the shape bounds.
    fn known_digits(&self, e: &Affine, sizes: &[u32], strides: &[i64]) -> Option<Vec<Affine>> {
        let mut digits = vec![Affine::constant(0); strides.len()];
        for (atom, c) in e.terms() {
            let k = strides.iter().position(|s| c % s == 0)?;
            digits[k] = digits[k].plus(&Affine::from(atom).times(c / strides[k]));
        }
        let mut rest = e.constant_term();
        for (digit, stride) in digits.iter_mut().zip(strides) {
            *digit = digit.plus_constant(rest.div_euclid(*stride));
            rest = rest.rem_euclid(*stride);
        }
        let fits = |(d, n): (&Affine, &u32)| {
            self.range(d).is_some_and(|(low, high)| low >= 0 && high < i64::from(*n))
        };
        digits[1..].iter().zip(&sizes[1..]).all(fits).then_some(digits)
    }

    /// Bounds of a value by those of the loops in it.
    fn range(&self, e: &Affine) -> Option<(i64, i64)> {
        let start = (e.constant_term(), e.constant_term());
        e.terms().iter().try_fold(start, |(low, high), (atom, c)| {
            let Atom::Iname(i) = atom else { return None };
            let (first, last) = *self.ranges.get(i)?;
            let (min, max) = if *c > 0 { (first, last) } else { (last, first) };
            Some((low.checked_add(c.checked_mul(min)?)?, high.checked_add(c.checked_mul(max)?)?))
        })
    }
}

/// The matrices of the type and address space of a table, which factors may be: their shapes and
/// values.
fn matrices(kernel: &Kernel, table: &Variable) -> Vec<(VarId, Vec<usize>, Vec<f64>)> {
    let matrices = kernel.vars.iter().filter_map(|(id, var)| {
        let VarKind::Table(TableData::Real(values)) = &var.kind else { return None };
        let extent = |e: &Affine| usize::try_from(e.as_constant()?).ok();
        let shape: Vec<usize> = var.shape.iter().map(extent).collect::<Option<_>>()?;
        let fits = var.ty == table.ty && var.space == table.space && shape.len() == 2;
        (fits && var.layout == Layout::default()).then(|| (id, shape, values.iter().map(|v| v.0).collect()))
    });
    matrices.collect()
}

/// Smallest and largest values of the loops, where constants bound them.
fn constant_ranges(analysis: &Analysis) -> Result<BTreeMap<InameId, (i64, i64)>, Refusal> {
    let mut ranges = BTreeMap::new();
    for iname in analysis.kernel().inames.ids() {
        let bounds = parametric_extent(analysis.polyhedral(), iname)?;
        let known = bounds.and_then(|(lo, extent)| Some((lo.as_constant()?, extent.as_constant()?)));
        if let Some((low, extent)) = known {
            ranges.insert(iname, (low, low + extent - 1));
        }
    }
    Ok(ranges)
}
