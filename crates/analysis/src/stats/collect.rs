//! Walking the instructions: what every expression node costs at the points it is evaluated for.

use super::counting::{Context, Count, Counting};
use super::error::StatsError;
use super::formula::{Bound, Formula};
use kingpost_interp::Tally;
use kingpost_interp::node::{
    Comparison, Complex, Conversion, Int, IntOp, Number, Place, Real, Statement, Truth,
};
use kingpost_ir::affine::{Affine, MAX_TERMS};
use kingpost_ir::domain::Constraint;
use kingpost_ir::ids::{Id, InameId, VarId};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Elements an access touches: the image of a context.
#[derive(Clone, Debug)]
pub(super) struct Image<N = u64> {
    /// The instruction, counted from 0.
    pub(super) insn: usize,
    pub(super) context: Rc<Context<N>>,
    /// One value an axis; `None` if an index is not affine.
    pub(super) index: Option<Vec<Affine>>,
    /// The elements as constraints on the axes, once they are needed; reads, writes and both use
    /// them.
    pub(super) elements: OnceCell<Option<Formula>>,
}

/// Accesses to a variable in one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Accesses<N = u64> {
    pub(super) count: N,
    pub(super) inexact: bool,
    pub(super) images: Vec<Image<N>>,
}

/// Cost of an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InsnCost<N = u64> {
    pub(super) instances: N,
    pub(super) flops: N,
    pub(super) exact: bool,
}

/// What the walk gathers.
pub(super) struct Collector<'s, S: Counting> {
    setting: &'s S,
    /// By tally.
    pub(super) ops: Vec<S::Count>,
    pub(super) ops_inexact: bool,
    /// By variable.
    pub(super) reads: Vec<Accesses<S::Count>>,
    /// By variable.
    pub(super) writes: Vec<Accesses<S::Count>>,
    /// By instruction.
    pub(super) insns: Vec<InsnCost<S::Count>>,
    loops: BTreeMap<Vec<InameId>, At<S>>,
    /// Of the current instruction.
    flops: S::Count,
    /// Whether an operation of the current instruction was counted inexactly.
    inexact: bool,
}

type Done = Result<(), StatsError>;

/// A set of points, which what is evaluated for them shares.
type At<S> = Rc<Context<<S as Counting>::Count>>;

impl<'s, S: Counting> Collector<'s, S> {
    pub(super) fn new(setting: &'s S) -> Self {
        let vars = setting.kernel().vars.len();
        Self {
            setting,
            ops: vec![S::Count::default(); Tally::COUNT],
            ops_inexact: false,
            reads: vec![Accesses::default(); vars],
            writes: vec![Accesses::default(); vars],
            insns: Vec::new(),
            inexact: false,
            flops: S::Count::default(),
            loops: BTreeMap::new(),
        }
    }

    pub(super) fn statements(&mut self, statements: &[Statement]) -> Done {
        statements.iter().try_for_each(|s| self.statement(s))
    }

    fn around(&mut self, loops: &[InameId]) -> Result<At<S>, StatsError> {
        if let Some(known) = self.loops.get(loops) {
            return Ok(Rc::clone(known));
        }
        let context = Rc::new(self.setting.enter(&Context::origin(S::Count::one()), loops)?);
        self.loops.insert(loops.to_vec(), Rc::clone(&context));
        Ok(context)
    }

    fn statement(&mut self, statement: &Statement) -> Done {
        (self.flops, self.inexact) = (S::Count::default(), false);
        let mut at = self.around(&statement.loops)?;
        if let Some(predicate) = &statement.predicate {
            self.truth(predicate, &at)?;
            at = Rc::new(self.setting.restrict(&at, &holding(self.setting, predicate, true))?);
        }
        match &statement.rhs {
            Number::Real(e) => self.real(e, &at)?,
            Number::Complex(e) => self.complex(e, &at)?,
            Number::Int(e) => self.int(e, &at)?,
        }
        let index = self.index(&statement.lhs, &at)?;
        if let Some((_, tally)) = statement.update {
            self.op(tally, &at)?;
            self.read(statement.lhs.var, &at, index.clone())?;
        }
        self.ops_inexact |= self.inexact;
        let exact = at.exact && !self.inexact;
        let insn = self.insns.len();
        let flops = std::mem::take(&mut self.flops);
        self.insns.push(InsnCost { instances: at.count.clone(), flops, exact });
        access(&mut self.writes[statement.lhs.var.index()], insn, &at, index)
    }

    fn op(&mut self, tally: Tally, at: &Context<S::Count>) -> Done {
        self.inexact |= !at.exact;
        if let Some((kind, ty)) = Tally::decode(tally.index()) {
            self.flops.add(&at.count.times(kind.flops(ty))?)?;
        }
        self.ops[tally.index()].add(&at.count)
    }

    /// Costs of the indices of a place; their affine values if they all have one.
    fn index(&mut self, place: &Place, at: &At<S>) -> Result<Option<Vec<Affine>>, StatsError> {
        place.index.iter().try_for_each(|e| self.int(e, at))?;
        Ok(place.index.iter().map(|e| affine(self.setting, e)).collect())
    }

    fn load(&mut self, place: &Place, at: &At<S>) -> Done {
        let index = self.index(place, at)?;
        self.read(place.var, at, index)
    }

    fn read(&mut self, var: VarId, at: &At<S>, index: Option<Vec<Affine>>) -> Done {
        access(&mut self.reads[var.index()], self.insns.len(), at, index)
    }

    fn real(&mut self, e: &Real, at: &At<S>) -> Done {
        match e {
            Real::Const(_) => Ok(()),
            Real::Load(place) => self.load(place, at),
            Real::FromInt(a, _) | Real::FromU64(a, _) => self.int(a, at),
            Real::Round(a) | Real::Half(a, _) => self.real(a, at),
            Real::Neg(a, tally) => {
                self.op(*tally, at)?;
                self.real(a, at)
            }
            Real::Arith { tally, a, b, .. } => {
                self.op(*tally, at)?;
                self.real(a, at)?;
                self.real(b, at)
            }
            Real::Call { tally, args, .. } => {
                self.op(*tally, at)?;
                args.iter().try_for_each(|a| self.real(a, at))
            }
            Real::Part { tally, of, .. } => {
                self.op(*tally, at)?;
                self.complex(of, at)
            }
            Real::Select(c, a, b) => {
                let (then, otherwise) = self.branches(c, at)?;
                self.real(a, &then)?;
                self.real(b, &otherwise)
            }
            Real::Reduce { inames, tally, body, .. } => {
                let inside = Rc::new(self.setting.enter(at, inames)?);
                self.op(*tally, &inside)?;
                self.real(body, &inside)
            }
        }
    }

    fn complex(&mut self, e: &Complex, at: &At<S>) -> Done {
        match e {
            Complex::Load(place) => self.load(place, at),
            Complex::Op { tally, times, reals, args, .. } => {
                (0..*times).try_for_each(|_| self.op(*tally, at))?;
                reals.iter().try_for_each(|e| self.real(e, at))?;
                args.iter().try_for_each(|e| self.complex(e, at))
            }
            Complex::Select(c, a, b) => {
                let (then, otherwise) = self.branches(c, at)?;
                self.complex(a, &then)?;
                self.complex(b, &otherwise)
            }
            Complex::Reduce { inames, tally, body, .. } => {
                let inside = Rc::new(self.setting.enter(at, inames)?);
                self.op(*tally, &inside)?;
                self.complex(body, &inside)
            }
        }
    }

    fn int(&mut self, e: &Int, at: &At<S>) -> Done {
        match e {
            Int::Const(_) | Int::Iname(_) => Ok(()),
            Int::Load(place) if self.setting.is_symbol(place.var) => Ok(()),
            Int::Load(place) => self.load(place, at),
            Int::FromReal(a, _) => self.real(a, at),
            Int::Converted(_, a) => self.int(a, at),
            Int::FromTruth(a) => self.truth(a, at),
            Int::Neg(a, tally) => {
                self.op(*tally, at)?;
                self.int(a, at)
            }
            Int::Arith { tally, a, b, .. } => {
                self.op(*tally, at)?;
                self.int(a, at)?;
                self.int(b, at)
            }
            Int::Select(c, a, b) => {
                let (then, otherwise) = self.branches(c, at)?;
                self.int(a, &then)?;
                self.int(b, &otherwise)
            }
            Int::Reduce { inames, tally, body, .. } => {
                let inside = Rc::new(self.setting.enter(at, inames)?);
                self.op(*tally, &inside)?;
                self.int(body, &inside)
            }
        }
    }

    /// Costs of a condition, and the contexts where it holds and where it does not.
    fn branches(&mut self, c: &Truth, at: &At<S>) -> Result<(At<S>, At<S>), StatsError> {
        self.truth(c, at)?;
        let then = self.setting.restrict(at, &holding(self.setting, c, true))?;
        let otherwise = self.setting.restrict(at, &holding(self.setting, c, false))?;
        Ok((Rc::new(then), Rc::new(otherwise)))
    }

    fn truth(&mut self, e: &Truth, at: &At<S>) -> Done {
        match e {
            Truth::Int { tally, a, b, .. } => {
                self.op(*tally, at)?;
                self.int(a, at)?;
                self.int(b, at)
            }
            Truth::Real { tally, a, b, .. } => {
                self.op(*tally, at)?;
                self.real(a, at)?;
                self.real(b, at)
            }
            Truth::Complex { tally, a, b, .. } => {
                self.op(*tally, at)?;
                self.complex(a, at)?;
                self.complex(b, at)
            }
            Truth::Nonzero(a) => self.int(a, at),
            Truth::Not(a) => self.truth(a, at),
            Truth::And(a, b) => {
                let (holds, _) = self.branches(a, at)?;
                self.truth(b, &holds)
            }
            Truth::Or(a, b) => {
                let (_, fails) = self.branches(a, at)?;
                self.truth(b, &fails)
            }
        }
    }
}

fn access<N: Count>(
    accesses: &mut Accesses<N>,
    insn: usize,
    at: &Rc<Context<N>>,
    index: Option<Vec<Affine>>,
) -> Done {
    accesses.inexact |= !at.exact;
    if !at.count.is_zero() {
        accesses.images.push(Image { insn, context: Rc::clone(at), index, elements: OnceCell::new() });
    }
    accesses.count.add(&at.count)
}

/// The quasi-affine value of an integer, if it is one.
fn affine(setting: &impl Counting, e: &Int) -> Option<Affine> {
    match e {
        Int::Const(c) => Some(Affine::constant(*c)),
        Int::Iname(i) => Some(Affine::iname(*i)),
        Int::Load(place) if setting.is_symbol(place.var) => Some(Affine::var(place.var)),
        Int::Converted(Conversion::Fits(_), a) => affine(setting, a),
        Int::Neg(a, _) => Some(affine(setting, a)?.times(-1)),
        // words are not
        Int::Arith { op, word: None, a, b, .. } => {
            let (a, b) = (affine(setting, a)?, affine(setting, b)?);
            let divisor = b.as_constant().filter(|d| *d > 0);
            match op {
                IntOp::Add => Some(a.plus(&b)),
                IntOp::Sub => Some(a.minus(&b)),
                IntOp::Mul => match (a.as_constant(), b.as_constant()) {
                    (Some(c), _) => Some(b.times(c)),
                    (_, Some(c)) => Some(a.times(c)),
                    (None, None) => None,
                },
                IntOp::FloorDiv => divisor.map(|d| a.floor_div(d)),
                IntOp::Mod => divisor.map(|d| a.modulo(d)),
                IntOp::Min
                | IntOp::Max
                | IntOp::TruncDiv
                | IntOp::TruncRem
                | IntOp::BitAnd
                | IntOp::BitOr
                | IntOp::BitXor
                | IntOp::Shl
                | IntOp::Shr => None,
            }
        }
        Int::Load(_)
        | Int::FromReal(..)
        | Int::FromTruth(_)
        | Int::Converted(..)
        | Int::Arith { .. }
        | Int::Select(..)
        | Int::Reduce { .. } => None,
    }
    .filter(|e| e.in_bounds() && e.size() <= MAX_TERMS)
}

/// The points where a condition is `wanted`, as far as it is affine.
fn holding(setting: &impl Counting, e: &Truth, wanted: bool) -> Bound {
    match e {
        Truth::Int { op, a, b, .. } => match (affine(setting, a), affine(setting, b)) {
            (Some(a), Some(b)) => {
                let holds = comparison(*op, &a, &b);
                (if wanted { holds } else { holds.not() }, true)
            }
            _ => (Formula::TRUE, false),
        },
        Truth::Real { .. } | Truth::Complex { .. } | Truth::Nonzero(_) => (Formula::TRUE, false),
        Truth::Not(a) => holding(setting, a, !wanted),
        Truth::And(a, b) => both(holding(setting, a, wanted), holding(setting, b, wanted), wanted),
        Truth::Or(a, b) => both(holding(setting, a, wanted), holding(setting, b, wanted), !wanted),
    }
}

fn both((a, a_exact): Bound, (b, b_exact): Bound, conjunction: bool) -> Bound {
    let formula = if conjunction { Formula::all([a, b]) } else { Formula::any([a, b]) };
    (formula, a_exact && b_exact)
}

fn comparison(op: Comparison, a: &Affine, b: &Affine) -> Formula {
    match op {
        Comparison::Lt => Formula::Atom(Constraint::lt(a, b)),
        Comparison::Le => Formula::Atom(Constraint::le(a, b)),
        Comparison::Eq => Formula::Atom(Constraint::equal(a, b)),
        Comparison::Ne => Formula::Atom(Constraint::equal(a, b)).not(),
    }
}
