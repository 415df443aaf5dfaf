//! Even and odd parts of a line of elements: what is linear in lines, and tables over parts.

use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, Affine, BinaryOp, Domain, Expr, InameId, Insn, InsnId, Kernel, Real, TableData, UnaryOp,
    UpdateOp, VarId, VarKind,
};
use kingpost_steps::accuracy::is_near;
use kingpost_steps::expected::Expected;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::proofs::any_order::{Together, check_any_order};
use kingpost_steps::proofs::entries::summed_axes;
use kingpost_steps::refusal::Refusal;
use std::collections::{BTreeMap, BTreeSet};

/// Everything in a loop goes over to parts.
pub(crate) const ALONE: Obligation = Obligation::new(
    "decompose_parity.alone",
    "a loop over the axis holds nothing but instructions that write or read an array at its iteration",
);

/// The first part of a pair is written before the second one is computed.
pub(crate) const OTHERS: Obligation = Obligation::new(
    "decompose_parity.others",
    "no instruction of a loop over pairs reads the array that it writes",
);

/// How a line of elements is kept as its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Elements of the line.
    pub(crate) elements: usize,
    /// Places for the parts of a parity.
    pub(crate) half: usize,
    /// Whether parts are halves of sums and differences, so that elements are sums of parts.
    pub(crate) halved: bool,
}

impl Parts {
    /// Pairs of mirrored elements; the one in the middle is a pair with itself.
    pub(crate) const fn pairs(self) -> usize {
        self.elements.div_ceil(2)
    }

    /// What a sum or difference of two elements is multiplied by.
    pub(crate) const fn of_sum(self) -> f64 {
        if self.halved { 0.5 } else { 1.0 }
    }

    /// What a sum or difference of two parts is multiplied by.
    pub(crate) const fn of_parts(self) -> f64 {
        if self.halved { 1.0 } else { 0.5 }
    }

    /// The parts of the values of a line.
    fn values(self, line: &[f64]) -> Vec<f64> {
        let mut parts = vec![0.0; 2 * self.half];
        for o in 0..self.pairs() {
            let mirrored = line[self.elements - 1 - o];
            parts[o] = self.of_sum() * (line[o] + mirrored);
            parts[self.half + o] = self.of_sum() * (line[o] - mirrored);
        }
        parts
    }

    /// The weights of the parts, of weights of the elements of a line.
    fn weights(self, line: &[f64]) -> Vec<f64> {
        let mut parts = vec![0.0; 2 * self.half];
        for o in 0..self.pairs() {
            let mirror = self.elements - 1 - o;
            if mirror == o {
                parts[o] = self.of_parts() * line[o]; // the odd part is zero
            } else {
                parts[o] = self.of_parts() * (line[o] + line[mirror]);
                parts[self.half + o] = self.of_parts() * (line[o] - line[mirror]);
            }
        }
        parts
    }
}

/// What becomes of the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// They are values of elements.
    Values,
    /// They are what elements are multiplied by.
    Weights,
}

/// A load of a table at an index along one axis that is an iname and a constant.
fn along(kernel: &Kernel, access: &Access, iname: InameId) -> Option<(usize, i64)> {
    let table = &kernel.vars[access.var];
    if !matches!(table.kind, VarKind::Table(TableData::Real(_))) || table.layout != Default::default() {
        return None;
    }
    let mut axes = (0..access.index.len()).filter(|k| access.index[*k].mentions(iname));
    let axis = axes.next()?;
    if axes.next().is_some() {
        return None;
    }
    let first = access.index[axis].as_affine()?.minus(&Affine::iname(iname)).as_constant()?;
    Some((axis, first))
}

/// A table whose elements along an axis, from `first` on, are parts: its shape and values. What is
/// below `1e-14` of what `scales` has for both elements is zero: what roundings leave of it.
pub(crate) fn of_parts(
    (values, shape): (&[f64], &[usize]),
    (axis, first): (usize, usize),
    scales: &[f64],
    parts: Parts,
    rows: Rows,
) -> (Vec<usize>, Vec<f64>) {
    let (outer, inner): (usize, usize) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    let mut made = vec![0.0; outer * 2 * parts.half * inner];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let line = |of: &[f64]| -> Vec<f64> {
            let at = |k: usize| of[(o * shape[axis] + first + k) * inner + i];
            (0..parts.elements).map(at).collect()
        };
        let scales = line(scales);
        let line = match rows {
            Rows::Values => parts.values(&line(values)),
            Rows::Weights => parts.weights(&line(values)),
        };
        for (k, value) in line.into_iter().enumerate() {
            // places after those of the pairs are zero
            let pair = (k % parts.half).min(parts.pairs() - 1);
            let scale = scales[pair].min(scales[parts.elements - 1 - pair]);
            let value = if value.abs() <= ROUNDING * scale { 0.0 } else { value };
            made[(o * 2 * parts.half + k) * inner + i] = value;
        }
    }
    let mut of_parts = shape.to_vec();
    of_parts[axis] = 2 * parts.half;
    (of_parts, made)
}

/// What part of the entries of a pair rounding may leave of a part that is zero.
const ROUNDING: f64 = 1e-14;

/// An entry of a table that its parts do not give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lost {
    /// The place of the entry, row by row.
    pub(crate) at: usize,
    pub(crate) entry: f64,
    pub(crate) of_parts: f64,
}

/// Compares every entry of a table along an axis, from `first` on, with what its parts give.
///
/// # Errors
/// The first that is further from it than `tolerance` times what `scales` has for it.
pub(crate) fn certify(
    (values, shape): (&[f64], &[usize]),
    (axis, first): (usize, usize),
    made: &[f64],
    (scales, tolerance): (&[f64], f64),
    (parts, rows): (Parts, Rows),
) -> Result<(), Lost> {
    let (outer, inner): (usize, usize) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        for k in 0..parts.elements {
            let mirror = parts.elements - 1 - k;
            let pair = k.min(mirror);
            let part = |from: usize| made[(o * 2 * parts.half + from + pair) * inner + i];
            let (even, odd) = (part(0), part(parts.half));
            let of_parts = match rows {
                Rows::Values if k <= mirror => parts.of_parts() * (even + odd),
                Rows::Values => parts.of_parts() * (even - odd),
                Rows::Weights if k == mirror => 2.0 * parts.of_sum() * even,
                Rows::Weights if k < mirror => parts.of_sum() * (even + odd),
                Rows::Weights => parts.of_sum() * (even - odd),
            };
            let at = (o * shape[axis] + first + k) * inner + i;
            if !is_near(values[at], of_parts, tolerance, scales[at]) {
                return Err(Lost { at, entry: values[at], of_parts });
            }
        }
    }
    Ok(())
}

/// How an expression depends on an iname: as a sum of products of which each has leaves of the same
/// sum of weights; none if it does otherwise. What does not mention the iname has no weight.
pub(crate) fn weight(e: &Expr, iname: InameId, leaf: &dyn Fn(&Access) -> Option<u32>) -> Option<u32> {
    if !e.mentions(iname) {
        return Some(0);
    }
    let of = |e: &Expr| weight(e, iname, leaf);
    match e {
        Expr::Load(access) => leaf(access),
        Expr::Unary(UnaryOp::Neg, a) => of(a),
        Expr::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => of(a).filter(|w| Some(*w) == of(b)),
        Expr::Binary(BinaryOp::Mul, a, b) => Some(of(a)? + of(b)?),
        Expr::Binary(BinaryOp::Div, a, b) => of(a).filter(|_| of(b) == Some(0)),
        Expr::Reduce(r) if r.op == UpdateOp::Add && !r.inames.contains(&iname) => of(&r.body),
        Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Unary(UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Bits | UnaryOp::Field(..), _)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => None,
    }
}

/// The loads of some arrays in an expression.
pub(crate) fn loads_of(e: &Expr, wanted: &dyn Fn(VarId) -> bool) -> Vec<Access> {
    let mut found = Vec::new();
    let mut visit = |e: &Expr| {
        if let Expr::Load(access) = e
            && wanted(access.var)
        {
            found.push(access.clone());
        }
    };
    e.for_each(&mut visit);
    found
}

/// The axes of a load along which its instruction sums, by the sums around it.
pub(crate) fn summed_in(insn: &Insn, load: &Access) -> BTreeSet<usize> {
    let mut sums = Vec::new();
    insn.rhs.for_each(&mut |e| {
        if let Expr::Reduce(r) = e
            && loads_of(&r.body, &|var| var == load.var).contains(load)
        {
            sums.extend(r.inames.iter().copied());
        }
    });
    summed_axes(insn, load, &[], &sums)
}

/// A sum or a difference, times a factor.
pub(crate) fn combined(factor: f64, op: BinaryOp, a: Expr, b: Expr) -> Expr {
    let sum = Expr::binary(op, a, b);
    if factor == 1.0 { sum } else { Expr::binary(BinaryOp::Mul, Expr::Real(Real(factor)), sum) }
}

/// The axis and the first row of a load of a table along which it has entries for a line.
pub(crate) fn entry(kernel: &Kernel, access: &Access, iname: InameId, n: i64) -> Option<(usize, usize)> {
    let (axis, first) = along(kernel, access, iname)?;
    let extent = kernel.vars[access.var].shape[axis].as_constant()?;
    (first >= 0 && first + n <= extent).then_some((axis, usize::try_from(first).ok()?))
}

/// Lets a loop, or an iname of a sum, run from 0 to an end.
pub(crate) fn run_to(kernel: &mut Kernel, iname: InameId, end: i64) {
    kernel.inames[iname].domain = Domain::range(iname, &Affine::constant(0), &Affine::constant(end));
}

/// What becomes of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It runs over parts.
    Parts,
    /// It runs over pairs of elements.
    Pairs,
}

/// Whether the instructions of a loop are linear in lines.
///
/// # Errors
/// [`Refusal::Internal`] of a loop that does not run over a line.
pub(crate) fn role(
    kernel: &Kernel,
    arrays: &BTreeMap<VarId, usize>,
    iname: InameId,
    insns: &[InsnId],
) -> Result<Role, Refusal> {
    let range = kernel.inames[iname].domain.as_range(iname);
    let n = range.and_then(|(_, end)| end.as_constant());
    let n = n.expected("constant end of a loop over a line", kernel)?;
    let leaf = |access: &Access| {
        if arrays.contains_key(&access.var) {
            return Some(1);
        }
        entry(kernel, access, iname, n).map(|_| 1)
    };
    let linear = |id: &InsnId| {
        let insn = &kernel.insns[*id];
        arrays.contains_key(&insn.lhs.var) && weight(&insn.rhs, iname, &leaf) == Some(1)
    };
    Ok(if insns.iter().all(linear) { Role::Parts } else { Role::Pairs })
}

/// Checks that the iterations of a loop run in pairs.
pub(crate) fn check_pairs(
    analysis: &Analysis,
    arrays: &BTreeMap<VarId, usize>,
    iname: InameId,
    insns: &[InsnId],
) -> Result<(), Refusal> {
    let kernel = analysis.kernel();
    let name = &kernel.inames[iname].name;
    for id in insns {
        let insn = &kernel.insns[*id];
        let mut reduces = false;
        insn.rhs.for_each(&mut |e| reduces |= matches!(e, Expr::Reduce(_)));
        ALONE.require(!reduces, || {
            format!(
                "`{}` has a sum, whose loop can stand in one place only; stage its value first",
                insn.name
            )
        })?;
        let own = arrays.contains_key(&insn.lhs.var) && insn.loads(insn.lhs.var);
        OTHERS.require(!own, || {
            let array = &kernel.vars[insn.lhs.var].name;
            format!("`{}` reads `{array}`, which it writes; write another array", insn.name)
        })?;
    }
    let range = kernel.inames[iname].domain.as_range(iname);
    let (lo, hi) = range.expected("range of a loop over a line", kernel)?;
    let mirrored = lo.plus(&hi).plus_constant(-1).minus(&Affine::iname(iname));
    check_any_order(analysis, iname, &mirrored, Together::Instruction, &|source, sink| {
        let both = if source == sink { format!("`{source}`") } else { format!("`{source}` and `{sink}`") };
        format!(
            "iterations of `{name}` run in pairs, instruction by instruction; expand temporaries of {both} over \
             `{name}`, or distribute `{name}`"
        )
    })
}
