//! Splits an axis of a temporary or a table.

use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::{Polyhedral, Side, difference};
use kingpost_ir::affine::MAX_COEFFICIENT;
use kingpost_ir::{
    Access, Affine, Atom, BinaryOp, Constraint, Expr, InameId, Kernel, Places, VarId, VarKind,
};
use kingpost_isl as isl;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{
    AXIS, ONLY_ACCESSED, TEMPORARY, check_axis, check_only_accessed, rewrite_accesses, temporary,
};
use kingpost_steps::proofs::extent::points_of;
use kingpost_steps::proofs::length::always;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Splits an axis of an array into blocks of `factor` elements: an axis over blocks,
/// and one inside a block.
///
/// # Rewrite
/// ```text
/// temp t: f64[n]                    =>   temp t: f64[floor_div(n + 3, 4), 4]
///   s: t[4*i_o + i_i] = a[…]               s: t[i_o, i_i] = a[…]
///   r: b[k] = t[k]                         r: b[k] = t[floor_div(k, 4), k - 4*floor_div(k, 4)]
/// ```
/// Quotients that the bounds of the loops decide are left out. The values of a table and of an
/// argument keep their order: the caller passes the same array with one axis more. With another order of
/// its axes then, by `transpose_array_axes`, an array of structures is one of structures of arrays.
///
/// # Precondition
/// `factor >= 1`. `e -> (floor(e/f), e mod f)` keeps different elements different, so that no
/// dependence changes; the last block may be larger than what is used of it. Blocks of a table or
/// an argument are full. If loops are on axes, the placement must still hold.
///
/// # Errors
/// A factor below 1, or of which nothing says that it divides the axis of a table or an argument; an axis
/// there is not, a parameter, or an array that is assumed injective.
///
/// # Elsewhere
/// Loopy `split_array_dim`; Exo `divide_dim`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitArrayAxis {
    /// The temporary or table.
    pub var: String,
    /// The axis, counted from 0.
    pub axis: u32,
    /// Elements of a block.
    pub factor: i64,
}

impl SplitArrayAxis {
    /// Splits `axis` of `var` into blocks of `factor`.
    pub fn new(var: impl Into<String>, axis: u32, factor: i64) -> Self {
        Self { var: var.into(), axis, factor }
    }
}

impl fmt::Display for SplitArrayAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "split axis {} of `{}` by {}", self.axis, self.var, self.factor)
    }
}

/// Tables and arguments have no elements after their last ones.
const FULL: Obligation = Obligation::new(
    "split_array_axis.full",
    "the factor divides the axis, if it is one of a table or an argument",
);

/// An axis of a temporary or table that only accesses mention.
pub struct Blocks {
    var: VarId,
    axis: usize,
    /// Indices `f*q + r` with `0 <= r < f` for all values of the loops, where
    /// `q` has every multiple of `f`.
    decided: BTreeSet<Affine>,
}

impl Primitive for SplitArrayAxis {
    const NAME: &'static str = "split_array_axis";
    const SUMMARY: &'static str = "Splits an axis of an array into blocks of constant length.";

    type Proof = Blocks;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[TEMPORARY, AXIS, ONLY_ACCESSED, FULL];

    fn check(&self, analysis: &Analysis) -> Result<Blocks, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        let keeps_its_place = match kernel.vars[var].kind {
            VarKind::Table(_) | VarKind::Argument(_) => true,
            VarKind::Temporary | VarKind::Param => false,
        };
        let var = if keeps_its_place { var } else { temporary(kernel, &self.var, "only arrays have axes")? };
        let axis = check_axis(&kernel.vars[var], self.axis)?;
        check_only_accessed(kernel, var)?;
        let f = self.factor;
        if !(1..=MAX_COEFFICIENT).contains(&f) {
            let found = format!("a block has {f} elements");
            return Err(Refusal::argument("factor", found, "1 to 2^40; choose a positive factor"));
        }
        let poly = analysis.polyhedral();
        if keeps_its_place {
            let extent = &kernel.vars[var].shape[axis];
            let none_left = Constraint::equal(&extent.modulo(f), &Affine::default());
            FULL.require(always(poly, &[], &none_left)?, || {
                format!(
                    "axis {axis} of `{}` has {} elements, and nothing says that {f} divides that; pad it first, assume \
                     it, or split a copy in a temporary",
                    self.var,
                    kernel.show_affine(extent)
                )
            })?;
        }
        let mut decided = BTreeSet::new();
        for index in indices(kernel, var, axis) {
            if !decided.contains(&index) && fits(poly, &multiples(&index, f).1, f)? {
                decided.insert(index);
            }
        }
        Ok(Blocks { var, axis, decided })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Blocks) {
        let (f, axis) = (self.factor, proof.axis);
        rewrite_accesses(kernel, proof.var, &mut |mut index| {
            if axis < index.len() {
                let e = index.remove(axis);
                index.splice(axis..axis, proof.parts(&e, f)).for_each(drop);
            }
            index
        });
        let variable = &mut kernel.vars[proof.var];
        let blocks = variable.shape[axis].plus_constant(f - 1).floor_div(f);
        variable.shape.splice(axis..=axis, [blocks, Affine::constant(f)]);
        if let Places::Strides(strides) = &mut variable.layout.places {
            let stride = strides[axis].clone();
            strides.splice(axis..=axis, [stride.times(f), stride]);
        }
        variable.layout.insert_axis(axis, false);
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        // few arguments have an axis that a factor divides
        let arrays = if p.one_in(4) { draw::arrays(kernel, 1) } else { draw::temporaries(kernel, 1) };
        let var = p.of(&[arrays, draw::tables_with_axes(kernel, 1)].concat())?;
        Some(Self::new(&var, p.below(draw::axes(kernel, &var) as usize) as u32, p.between(0, 4)))
    }
}

/// The affine indices of a variable along an axis, also in rules.
fn indices(kernel: &Kernel, var: VarId, axis: usize) -> Vec<Affine> {
    let mut found = Vec::new();
    let mut add = |access: &Access| {
        if access.var == var {
            found.extend(access.index.get(axis).and_then(Expr::as_affine));
        }
    };
    for insn in kernel.insns.values() {
        insn.reads().into_iter().chain([&insn.lhs]).for_each(&mut add);
    }
    for rule in kernel.rules.values() {
        rule.body.for_each(&mut |e| {
            if let Expr::Load(access) = e {
                add(access);
            }
        });
    }
    found
}

impl Blocks {
    /// `(floor(e/f), e mod f)`.
    fn parts(&self, e: &Expr, f: i64) -> [Expr; 2] {
        match e.as_affine() {
            Some(index) if self.decided.contains(&index) => {
                let (block, inside) = multiples(&index, f);
                [Expr::from_affine(&block), Expr::from_affine(&inside)]
            }
            Some(index) => [Expr::from_affine(&index.floor_div(f)), Expr::from_affine(&index.modulo(f))],
            None => [BinaryOp::FloorDiv, BinaryOp::Mod].map(|op| Expr::binary(op, e.clone(), Expr::Int(f))),
        }
    }
}

/// `e = f*whole + rest` with every multiple of `f` in `whole`.
fn multiples(e: &Affine, f: i64) -> (Affine, Affine) {
    let mut whole = Affine::constant(e.constant_term().div_euclid(f));
    for (atom, c) in e.terms().iter().filter(|(_, c)| c % f == 0) {
        let value = match atom {
            Atom::Iname(i) => Affine::iname(*i),
            Atom::Var(v) => Affine::var(*v),
            Atom::Floor(n, d) => n.floor_div(*d),
        };
        whole = whole.plus(&value.times(c / f));
    }
    let rest = e.minus(&whole.times(f));
    (whole, rest)
}

/// `0 <= e < f` for all values of the loops.
fn fits(poly: &Polyhedral, e: &Affine, f: i64) -> Result<bool, isl::IslError> {
    let Some(value) = poly.affine(e, Side::Source) else { return Ok(false) };
    let mut inames: Vec<InameId> = Vec::new();
    e.for_each_symbol(&mut |atom| {
        if let Atom::Iname(i) = atom {
            inames.push(*i);
        }
    });
    let points = points_of(poly, &inames)?;
    let below = difference(&isl::Affine::constant(f - 1), &value);
    let inside = [isl::Constraint::non_negative(value), isl::Constraint::non_negative(below)];
    points.is_subset(&isl::Set::from_constraints(&points.space()?, &inside)?)
}
