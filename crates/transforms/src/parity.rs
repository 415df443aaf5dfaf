//! Even and odd parts of a line of elements: what is linear in lines, and tables over parts.

use purlin_ir::{
    Access, Affine, BinaryOp, Expr, InameId, Kernel, TableData, UnaryOp, UpdateOp, VarId, VarKind,
};

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
pub(crate) fn along(kernel: &Kernel, access: &Access, iname: InameId) -> Option<(usize, i64)> {
    let table = &kernel.vars[access.var];
    if !matches!(table.kind, VarKind::Table(TableData::Real(_))) || table.layout != Default::default() {
        return None;
    }
    let mut axes = (0..access.index.len()).filter(|k| mentions(&access.index[*k], iname));
    let axis = axes.next()?;
    if axes.next().is_some() {
        return None;
    }
    let first = access.index[axis].as_affine()?.minus(&Affine::iname(iname)).as_constant()?;
    Some((axis, first))
}

/// A table whose elements along an axis, from `first` on, are parts: its shape and values. What is below
/// `1e-14` of the largest is zero: what roundings leave of it.
pub(crate) fn of_parts(
    (values, shape): (&[f64], &[usize]),
    (axis, first): (usize, usize),
    parts: Parts,
    rows: Rows,
) -> (Vec<usize>, Vec<f64>) {
    let (outer, inner): (usize, usize) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    let mut made = vec![0.0; outer * 2 * parts.half * inner];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let at = |k: usize| values[(o * shape[axis] + first + k) * inner + i];
        let line: Vec<f64> = (0..parts.elements).map(at).collect();
        let line = match rows {
            Rows::Values => parts.values(&line),
            Rows::Weights => parts.weights(&line),
        };
        for (k, value) in line.into_iter().enumerate() {
            made[(o * 2 * parts.half + k) * inner + i] = value;
        }
    }
    let largest = made.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    made.iter_mut().filter(|v| v.abs() <= 1e-14 * largest).for_each(|v| *v = 0.0);
    let mut of_parts = shape.to_vec();
    of_parts[axis] = 2 * parts.half;
    (of_parts, made)
}

/// How an expression depends on an iname: as a sum of products of which each has leaves of the same sum
/// of weights; none if it does otherwise. What does not mention the iname has no weight.
pub(crate) fn weight(e: &Expr, iname: InameId, leaf: &dyn Fn(&Access) -> Option<u32>) -> Option<u32> {
    if !mentions(e, iname) {
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
        | Expr::Unary(UnaryOp::Not, _)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => None,
    }
}

/// Whether an expression mentions an iname.
pub(crate) fn mentions(e: &Expr, iname: InameId) -> bool {
    crate::proofs::accumulation::mentions(e, iname)
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
