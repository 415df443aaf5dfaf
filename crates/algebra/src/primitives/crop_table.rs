//! Drops entries of a table that nothing loads.

use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, Atom, Expr, Kernel, Layout, VarId, VarKind};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{ONLY_ACCESSED, check_only_accessed, rewrite_accesses};
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Drops the entries of a table outside the box that is loaded, so that indices start at 0.
///
/// # Rewrite
/// ```text
/// for i in 0..2                               for i in 0..2
///   s: y[i] = w[i + 1]*x[i]             =>      s: y[i] = w[i]*x[i]
/// table w = [0.25, 0.75, 0.5, 1.0]            table w = [0.75, 0.5]
/// ```
/// Loops that run over inner rows of a matrix then have the rows of a matrix of their own length,
/// which `pad_inames` and matrix instructions need.
///
/// # Precondition
/// `w` is a row-major table. Every index `f` of a load is affine in loops between constants, so that
/// `lo <= f <= hi` by intervals: `w'(f - lo) = w(f)`. The box holds every load, and may be larger
/// than what is loaded.
///
/// # Errors
/// An unknown variable, one that is no table, has another layout, or that bounds or assumptions
/// mention; an index without constant bounds; a table of which all entries are in the box, or none.
///
/// # Elsewhere
/// Halide `compute_bounds` of a `Buffer`; the others leave it to who writes the table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CropTable {
    /// The table.
    pub var: String,
}

impl CropTable {
    /// Drops what is not loaded of the table `var`.
    pub fn new(var: impl Into<String>) -> Self {
        Self { var: var.into() }
    }
}

impl fmt::Display for CropTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "crop table `{}`", self.var)
    }
}

/// The values never change, and lie row by row.
const TABLE: Obligation = Obligation::new("crop_table.table", "the variable is a row-major table with axes");

/// The box is known.
const BOUNDED: Obligation =
    Obligation::new("crop_table.bounded", "every index of a load is affine in loops between constants");

/// There is something to drop.
const SMALLER: Obligation =
    Obligation::new("crop_table.smaller", "some entry of the table is outside the box that is loaded");

/// A table, with the first index and the extent of the box along each axis.
pub struct LoadedBox {
    var: VarId,
    shape: Vec<usize>,
    first: Vec<usize>,
    extents: Vec<usize>,
}

impl Primitive for CropTable {
    const NAME: &'static str = "crop_table";
    const SUMMARY: &'static str = "Drops entries of a table that nothing loads.";

    type Proof = LoadedBox;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[TABLE, BOUNDED, SMALLER, ONLY_ACCESSED];

    fn check(&self, analysis: &Analysis) -> Result<LoadedBox, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        let variable = &kernel.vars[var];
        let is_table = matches!(variable.kind, VarKind::Table(_)) && variable.layout == Layout::default();
        TABLE.require(is_table && !variable.shape.is_empty(), || {
            format!(
                "`{}` is no row-major table with an axis; fix the argument, or its layout, first",
                self.var
            )
        })?;
        check_only_accessed(kernel, var)?;
        let extents = variable.shape.iter().map(|e| e.as_constant().and_then(|n| usize::try_from(n).ok()));
        let shape: Vec<usize> = extents.map(Option::unwrap_or_default).collect();
        let (first, extents) = self.loaded(kernel, var, &shape)?.into_iter().unzip();
        SMALLER.require(extents != shape, || {
            format!("all entries of `{}` are loaded, as far as intervals tell", self.var)
        })?;
        Ok(LoadedBox { var, shape, first, extents })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &LoadedBox) {
        rewrite_accesses(kernel, proof.var, &mut |index| {
            let along = index.iter().zip(&proof.first);
            along.map(|(e, first)| if *first == 0 { e.clone() } else { less(e, *first as i64) }).collect()
        });
        let variable = &mut kernel.vars[proof.var];
        variable.shape = proof.extents.iter().map(|n| Affine::constant(*n as i64)).collect();
        let VarKind::Table(data) = &mut variable.kind else { return };
        *data = data.picked((0..proof.extents.iter().product()).map(|place| Some(proof.place(place))));
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let tables = draw::tables_with_axes(kernel, 1);
        draw::possible(kernel, tables.iter().map(Self::new).collect(), p)
    }
}

impl CropTable {
    /// The first index of the box of all loads, and its extent, along each axis.
    fn loaded(&self, kernel: &Kernel, var: VarId, shape: &[usize]) -> Result<Vec<(usize, usize)>, Refusal> {
        let mut bounds: Vec<Option<(i64, i64)>> = vec![None; shape.len()];
        let mut unbounded = None;
        let mut widen = |e: &Expr| {
            let Expr::Load(access) = e else { return };
            for (k, index) in access.index.iter().enumerate().filter(|_| access.var == var) {
                match index.as_affine().and_then(|e| interval(kernel, &e)) {
                    Some((lo, hi)) => {
                        let (first, last) = bounds[k].unwrap_or((lo, hi));
                        bounds[k] = Some((first.min(lo), last.max(hi)));
                    }
                    None => unbounded = unbounded.or(Some(k)),
                }
            }
        };
        for rule in kernel.rules.values() {
            rule.body.for_each(&mut widen);
        }
        for insn in kernel.insns.values() {
            for e in insn.expressions() {
                e.for_each(&mut widen);
            }
        }
        BOUNDED.forbid(unbounded, |axis| {
            format!(
                "an index along axis {axis} of `{}` has no constant bounds; fix parameters, or expand rules first",
                self.var
            )
        })?;
        let along = bounds.into_iter().zip(shape).map(|(bounds, extent)| {
            // an access beyond the table never runs
            let (lo, hi) = bounds?;
            let last = hi.min(*extent as i64 - 1);
            let first = lo.max(0);
            (first <= last).then_some((first as usize, (last - first + 1) as usize))
        });
        let found: Option<Vec<_>> = along.collect();
        found.ok_or_else(|| SMALLER.unfit(format!("nothing loads `{}`; remove unused variables", self.var)))
    }
}

impl LoadedBox {
    /// The place in the old table of one in the new one, row by row.
    fn place(&self, mut at: usize) -> usize {
        let (mut place, mut stride) = (0, 1);
        for ((extent, first), old) in self.extents.iter().zip(&self.first).zip(&self.shape).rev() {
            place += (at % extent + first) * stride;
            at /= extent;
            stride *= old;
        }
        place
    }
}

/// Smallest and largest value by intervals, if constants bound every loop.
fn interval(kernel: &Kernel, e: &Affine) -> Option<(i64, i64)> {
    e.terms().iter().try_fold((e.constant_term(), e.constant_term()), |(lo, hi), (atom, c)| {
        let Atom::Iname(i) = atom else { return None };
        let (first, end) = kernel.inames[*i].domain.as_range(*i)?;
        let (first, last) = (first.as_constant()?, end.as_constant()? - 1);
        let [a, b] = [c.checked_mul(first)?, c.checked_mul(last)?];
        Some((lo.checked_add(a.min(b))?, hi.checked_add(a.max(b))?))
    })
}

/// An index less a constant.
fn less(e: &Expr, by: i64) -> Expr {
    e.as_affine().map_or_else(|| e.clone(), |affine| Expr::from_affine(&affine.minus(&Affine::constant(by))))
}
