//! A kernel at given sizes, as the model sees it: loops with their mean numbers of iterations, and
//! what each instruction touches, as strides along the loops around it.

use kingpost_ir::layout::strides;
use kingpost_ir::{
    Access, AddressSpace, Affine, Atom, AxisTag, BinaryOp, Constraint, Domain, Expr, Id, InameId, Insn,
    Kernel, MathFn, Node, UpdateOp, VarId, VarKind,
};
use std::collections::BTreeMap;

/// A loop at the sizes that are known.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) iname: InameId,
    pub(crate) tag: AxisTag,
    /// Mean number of iterations.
    pub(crate) trips: f64,
}

/// A node of the loop tree.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Loop(Level, Vec<Part>),
    Insn(Work),
}

/// What an instance of an instruction does.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// Cycles of arithmetic in scalars: two additions or multiplications run in one.
    pub(crate) cycles: f64,
    pub(crate) write: Touched,
    pub(crate) reads: Vec<Touched>,
    /// Loops that its condition mentions.
    pub(crate) guards: Vec<InameId>,
}

/// An element that is read or written, as its place in the buffer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Touched {
    pub(crate) var: VarId,
    /// Bytes from one iteration of a loop to the next, by the loops that move it.
    pub(crate) strides: Vec<(InameId, f64)>,
    pub(crate) offset: f64,
    pub(crate) bytes: f64,
    /// Whether the place depends on more than loops and parameters.
    pub(crate) scattered: bool,
}

impl Touched {
    pub(crate) fn stride(&self, iname: InameId) -> f64 {
        self.strides.iter().find(|(i, _)| *i == iname).map_or(0.0, |(_, s)| *s)
    }
}

/// Reads a kernel at these sizes.
pub(crate) struct Reader<'k> {
    kernel: &'k Kernel,
    params: &'k BTreeMap<String, i64>,
    /// Values of each loop around, one a sample.
    values: Vec<[f64; SAMPLES]>,
}

/// Points of a nest at which lengths of loops are known: those of the middle alone would say that a
/// loop is empty that only a few values of the loops around have.
const SAMPLES: usize = 64;

/// Cycles of a term of a sum in an expression, which waits for the one before.
const SUMMED: f64 = 4.0;

/// A multiplier for each depth of a nest, so that samples of several loops fill their box (Kronecker
/// sequences): fractional parts of square roots of primes.
const SPREAD: [f64; 8] = [
    1.0 / SAMPLES as f64,
    0.414_213_562,
    0.732_050_808,
    0.236_067_977,
    0.645_751_311,
    0.316_624_790,
    0.605_551_275,
    0.123_105_626,
];

impl<'k> Reader<'k> {
    pub(crate) fn new(kernel: &'k Kernel, params: &'k BTreeMap<String, i64>) -> Self {
        Self { kernel, params, values: vec![[0.0; SAMPLES]; kernel.inames.len()] }
    }

    /// The loop tree.
    pub(crate) fn parts(&mut self) -> Vec<Part> {
        self.read(&self.kernel.body, 0, [1.0; SAMPLES])
    }

    /// `runs` is how often each sample stands for a run of these nodes.
    fn read(&mut self, nodes: &[Node], depth: usize, runs: [f64; SAMPLES]) -> Vec<Part> {
        nodes
            .iter()
            .map(|node| match node {
                Node::Loop(iname, body) => {
                    let of = &self.kernel.inames[*iname];
                    let mut inside = runs;
                    for (k, runs) in inside.iter_mut().enumerate() {
                        let (lo, hi) = self.range(*iname, &of.domain, k);
                        let count = (hi - lo + 1.0).max(0.0);
                        let place = ((k as f64 + 0.5) * SPREAD[depth % SPREAD.len()]).fract();
                        self.values[iname.index()][k] = lo + (place * count).floor();
                        *runs *= count;
                    }
                    let trips = inside.iter().sum::<f64>() / runs.iter().sum::<f64>().max(f64::MIN_POSITIVE);
                    let level = Level { iname: *iname, tag: of.tag, trips };
                    Part::Loop(level, self.read(body, depth + 1, inside))
                }
                Node::Insn(insn) => Part::Insn(self.work(&self.kernel.insns[*insn])),
            })
            .collect()
    }

    /// The first and the last value of a loop in a sample.
    fn range(&self, iname: InameId, domain: &Domain, sample: usize) -> (f64, f64) {
        let mut whole: Option<(f64, f64)> = None;
        for disjunct in domain.disjuncts() {
            let (mut lo, mut hi) = (f64::NEG_INFINITY, f64::INFINITY);
            for c in disjunct {
                let a = c.expr().coefficient(&Atom::Iname(iname)) as f64;
                let rest = c.expr().minus(&Affine::iname(iname).times(a as i64));
                if a == 0.0 || rest.mentions(iname) {
                    continue;
                }
                let bound = -self.value(&rest, sample) / a;
                let equal = matches!(c, Constraint::Zero(_));
                if a > 0.0 || equal {
                    lo = lo.max(bound);
                }
                if a < 0.0 || equal {
                    hi = hi.min(bound);
                }
            }
            let (lo, hi) = (lo.ceil(), hi.floor());
            whole = Some(whole.map_or((lo, hi), |(l, h)| (l.min(lo), h.max(hi))));
        }
        match whole {
            Some((lo, hi)) if lo.is_finite() && hi.is_finite() => (lo, hi),
            Some(_) | None => (0.0, -1.0),
        }
    }

    fn value(&self, e: &Affine, sample: usize) -> f64 {
        let of = |atom: &Atom| match atom {
            Atom::Iname(i) => self.values[i.index()][sample],
            Atom::Var(v) => self.params.get(&self.kernel.vars[*v].name).map_or(0.0, |v| *v as f64),
            Atom::Floor(n, d) => (self.value(n, sample) / *d as f64).floor(),
        };
        e.terms().iter().map(|(atom, c)| of(atom) * *c as f64).sum::<f64>() + e.constant_term() as f64
    }

    fn work(&self, insn: &Insn) -> Work {
        let rhs = self.kernel.expand_rules(&insn.rhs);
        let predicate = insn.predicate.as_ref().map(|p| self.kernel.expand_rules(p));
        // a product is added in the same operation
        let mut fused = false;
        rhs.for_each(&mut |e| fused |= matches!(e, Expr::Binary(BinaryOp::Mul, ..)));
        let update = match insn.update_op() {
            Some(UpdateOp::Add) if fused => 0.0,
            Some(_) => 0.5,
            None => 0.0,
        };
        let mut work =
            Work { cycles: update, write: self.touched(&insn.lhs), reads: Vec::new(), guards: Vec::new() };
        if insn.update_op().is_some() {
            work.reads.push(work.write.clone());
        }
        if let Some(predicate) = &predicate {
            work.cycles += 1.0;
            predicate.for_each(&mut |e| {
                if let Expr::Iname(i) = e {
                    work.guards.push(*i);
                }
            });
        }
        for e in [Some(&rhs), predicate.as_ref()].into_iter().flatten() {
            self.count(e, &mut work);
        }
        work
    }

    /// Adds the operations and loads of an expression; addresses cost nothing.
    fn count(&self, e: &Expr, work: &mut Work) {
        if let Expr::Load(access) = e {
            if self.is_in_memory(access) {
                work.reads.push(self.touched(access));
            }
            return;
        }
        if let Expr::Reduce(reduction) = e {
            let mut term = Work { cycles: SUMMED, reads: Vec::new(), guards: Vec::new(), ..work.clone() };
            self.count(&reduction.body, &mut term);
            work.cycles += term.cycles * reduction.inames.iter().map(|i| self.length(*i)).product::<f64>();
            work.reads.extend(term.reads);
            return;
        }
        work.cycles += cycles(e);
        e.operands().for_each(|operand| self.count(operand, work));
    }

    /// The mean number of values of a loop inside an expression.
    fn length(&self, iname: InameId) -> f64 {
        let domain = &self.kernel.inames[iname].domain;
        let count = |k| {
            let (lo, hi) = self.range(iname, domain, k);
            (hi - lo + 1.0).max(0.0)
        };
        (0..SAMPLES).map(count).sum::<f64>() / SAMPLES as f64
    }

    fn is_in_memory(&self, access: &Access) -> bool {
        !matches!(self.kernel.vars[access.var].kind, VarKind::Param)
    }

    fn touched(&self, access: &Access) -> Touched {
        let var = &self.kernel.vars[access.var];
        let bytes = var.ty.bytes() as f64;
        let mut touched =
            Touched { var: access.var, strides: Vec::new(), offset: 0.0, bytes, scattered: false };
        let given = strides(var, &vec![false; var.shape.len()]);
        for (k, index) in access.index.iter().enumerate() {
            let step = match &given {
                Some(strides) => self.value(&strides[k], 0),
                None => var.shape[k + 1..].iter().map(|e| self.value(e, 0)).product(),
            };
            let Some(index) = index.as_affine() else {
                touched.scattered = true;
                continue;
            };
            touched.add(&index, step * bytes, &|v| {
                self.params.get(&self.kernel.vars[v].name).map_or(0.0, |v| *v as f64)
            });
        }
        for (iname, stride) in touched.strides.clone() {
            for (outer, c) in self.tiles_around(iname) {
                touched.add(&Affine::iname(outer), stride * c as f64, &|_| 0.0);
            }
        }
        touched.strides.retain(|(_, s)| *s != 0.0);
        touched.strides.sort_by_key(|(i, _)| *i);
        touched
    }

    /// The loops over tiles that a loop starts with, and the lengths of their tiles.
    fn tiles_around(&self, iname: InameId) -> Vec<(InameId, i64)> {
        // default: the loops of a union start nowhere in particular
        let bounds = self.kernel.inames[iname].domain.as_conjunction().unwrap_or_default();
        let starts = bounds.iter().filter(|c| c.expr().coefficient(&Atom::Iname(iname)) == 1);
        let terms = starts.flat_map(|c| c.expr().terms());
        let tile = |(atom, c): &(Atom, i64)| match atom {
            Atom::Iname(outer) if *c < -1 => Some((*outer, -c)),
            Atom::Iname(_) | Atom::Var(_) | Atom::Floor(..) => None,
        };
        let mut found: Vec<_> = terms.filter_map(tile).collect();
        found.dedup();
        found
    }

    /// Whether a scalar or an array lives in registers.
    pub(crate) fn is_register(kernel: &Kernel, var: VarId) -> bool {
        let var = &kernel.vars[var];
        var.space == AddressSpace::Private
            || var.shape.is_empty() && matches!(var.kind, VarKind::Argument(_) | VarKind::Param)
    }
}

impl Touched {
    fn add(&mut self, index: &Affine, scale: f64, param: &dyn Fn(VarId) -> f64) {
        for (atom, c) in index.terms() {
            let c = *c as f64 * scale;
            match atom {
                Atom::Iname(i) => match self.strides.iter_mut().find(|(of, _)| of == i) {
                    Some((_, s)) => *s += c,
                    None => self.strides.push((*i, c)),
                },
                Atom::Var(v) => self.offset += c * param(*v),
                // as steep as its numerator
                Atom::Floor(n, d) => self.add(n, c / *d as f64, param),
            }
        }
        self.offset += index.constant_term() as f64 * scale;
    }
}

/// Cycles of one operation, in scalars.
fn cycles(e: &Expr) -> f64 {
    match e {
        Expr::Binary(BinaryOp::Div, ..) => 4.0,
        Expr::Binary(BinaryOp::FloorDiv | BinaryOp::Mod | BinaryOp::TruncDiv | BinaryOp::TruncRem, ..) => 6.0,
        Expr::Binary(..) | Expr::Select(..) | Expr::Unary(..) => 0.5,
        Expr::Call(MathFn::Sqrt, _) => 6.0,
        Expr::Call(MathFn::Fabs | MathFn::Fmin | MathFn::Fmax, _) => 1.0,
        Expr::Call(..) => 20.0,
        Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Load(_)
        | Expr::Cast(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => 0.0,
    }
}
