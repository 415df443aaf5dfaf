//! Ranges of indices at given values: from the smallest and the largest entry of each map.

use crate::memory::Memory;
use crate::node::{
    Complex, Conversion, Disjunct, Form, Int, IntOp, Number, Place, Program, Real, Statement, Truth,
};
use kingpost_ir::constant::TableData;
use kingpost_ir::ids::{Id, InameId, VarId};
use kingpost_ir::kernel::{Direction, Kernel, VarKind};
use std::collections::HashMap;

/// The integers from the first to the second; `None` if nothing is known. Bounds are those of
/// 64-bit values, so that sums and products of two fit.
type Range = Option<(i128, i128)>;

/// What is known of integers at the given values.
pub(super) struct Ranges<'p> {
    kernel: &'p Kernel,
    program: &'p Program,
    memory: &'p Memory,
    inames: HashMap<InameId, Range>,
    entries: HashMap<VarId, Range>,
}

impl<'p> Ranges<'p> {
    pub(super) fn new(kernel: &'p Kernel, program: &'p Program, memory: &'p Memory) -> Self {
        Self { kernel, program, memory, inames: HashMap::new(), entries: HashMap::new() }
    }

    /// Whether every access of an instruction is inside, whatever its conditions.
    pub(super) fn stays_inside(&mut self, statement: &Statement) -> bool {
        let rhs = match &statement.rhs {
            Number::Real(e) => self.real(e),
            Number::Complex(e) => self.complex(e),
            Number::Int(e) => self.int(e),
        };
        rhs && self.place(&statement.lhs) && statement.predicate.as_ref().is_none_or(|p| self.truth(p))
    }

    fn place(&mut self, place: &Place) -> bool {
        let extents = &self.program.shapes[place.var.index()];
        place.index.iter().zip(extents).all(|(index, extent)| {
            let range = self.range(index);
            self.int(index) && range.is_some_and(|(lo, hi)| lo >= 0 && hi < *extent as i128)
        })
    }

    fn real(&mut self, e: &Real) -> bool {
        match e {
            Real::Const(_) => true,
            Real::Load(place) => self.place(place),
            Real::FromInt(a, _) | Real::FromU64(a, _) => self.int(a),
            Real::Round(a) | Real::Half(a, _) | Real::Neg(a, _) => self.real(a),
            Real::Arith { a, b, .. } => self.real(a) && self.real(b),
            Real::Call { args, .. } => args.iter().all(|e| self.real(e)),
            Real::Select(c, a, b) => self.truth(c) && self.real(a) && self.real(b),
            Real::Part { of, .. } => self.complex(of),
            Real::Reduce { body, .. } => self.real(body),
        }
    }

    fn int(&mut self, e: &Int) -> bool {
        match e {
            Int::Const(_) | Int::Iname(_) => true,
            Int::Load(place) => self.place(place),
            Int::FromReal(a, _) => self.real(a),
            Int::Converted(_, a) | Int::Neg(a, _) => self.int(a),
            Int::FromTruth(a) => self.truth(a),
            Int::Arith { a, b, .. } => self.int(a) && self.int(b),
            Int::Select(c, a, b) => self.truth(c) && self.int(a) && self.int(b),
            Int::Reduce { body, .. } => self.int(body),
        }
    }

    fn complex(&mut self, e: &Complex) -> bool {
        match e {
            Complex::Load(place) => self.place(place),
            Complex::Op { reals, args, .. } => {
                reals.iter().all(|e| self.real(e)) && args.iter().all(|e| self.complex(e))
            }
            Complex::Select(c, a, b) => self.truth(c) && self.complex(a) && self.complex(b),
            Complex::Reduce { body, .. } => self.complex(body),
        }
    }

    fn truth(&mut self, e: &Truth) -> bool {
        match e {
            Truth::Int { a, b, .. } => self.int(a) && self.int(b),
            Truth::Real { a, b, .. } => self.real(a) && self.real(b),
            Truth::Complex { a, b, .. } => self.complex(a) && self.complex(b),
            Truth::Nonzero(a) => self.int(a),
            Truth::Not(a) => self.truth(a),
            Truth::And(a, b) | Truth::Or(a, b) => self.truth(a) && self.truth(b),
        }
    }

    fn range(&mut self, e: &Int) -> Range {
        match e {
            Int::Const(c) => Some((i128::from(*c), i128::from(*c))),
            Int::Iname(i) => self.iname(*i),
            Int::Load(place) => self.entries_of(place.var),
            Int::Converted(Conversion::Fits(_), a) => self.range(a),
            Int::FromTruth(_) => Some((0, 1)),
            Int::Neg(a, _) => self.range(a).and_then(|(lo, hi)| fitting(-hi, -lo)),
            Int::Arith { op, word: None, a, b, .. } => combined(*op, self.range(a)?, self.range(b)?),
            Int::Select(_, a, b) => {
                let (a, b) = (self.range(a)?, self.range(b)?);
                Some((a.0.min(b.0), a.1.max(b.1)))
            }
            Int::FromReal(..) | Int::Reduce { .. } | Int::Arith { .. } | Int::Converted(..) => None,
        }
    }

    /// The smallest and the largest value of an array that the kernel does not write.
    fn entries_of(&mut self, var: VarId) -> Range {
        if let Some(known) = self.entries.get(&var) {
            return *known;
        }
        let variable = &self.kernel.vars[var];
        let needed: usize = self.program.shapes[var.index()].iter().product();
        let fits = |len: usize| len == needed;
        let range = match (&variable.kind, self.memory.get(&variable.name)) {
            (VarKind::Table(TableData::Int(v)), _) => extremes(v.iter().copied()),
            (VarKind::Argument(Direction::In), Some(value)) if fits(value.len()) => {
                extremes(value.to_i64().into_iter().flatten())
            }
            _ => None,
        };
        self.entries.insert(var, range);
        range
    }

    /// The values of a loop, whatever the loops around it.
    fn iname(&mut self, iname: InameId) -> Range {
        if let Some(known) = self.inames.get(&iname) {
            return *known;
        }
        let mut all: Range = None;
        for disjunct in &self.program.domains[iname.index()] {
            let Some((lo, hi)) = self.disjunct(disjunct) else {
                all = None;
                break;
            };
            all = Some(all.map_or((lo, hi), |(a, b)| (a.min(lo), b.max(hi))));
        }
        self.inames.insert(iname, all);
        all
    }

    fn disjunct(&mut self, disjunct: &Disjunct) -> Range {
        let (mut lo, mut hi) = (None, None);
        for bound in &disjunct.bounds {
            let Some((_, most)) = self.form(&bound.rest) else { continue };
            let c = i128::from(bound.coefficient);
            // c i + rest >= 0 with rest <= most: i >= ceil(-most / c) for c > 0, i <= floor(most /
            // -c) for c < 0
            if c > 0 {
                lo = lo.max(Some(-most.div_euclid(c)));
            } else {
                let limit = most.div_euclid(-c);
                hi = Some(hi.map_or(limit, |h: i128| h.min(limit)));
            }
            if bound.equal {
                let (least, _) = self.form(&bound.rest)?;
                if c > 0 {
                    let limit = (-least).div_euclid(c);
                    hi = Some(hi.map_or(limit, |h: i128| h.min(limit)));
                } else {
                    lo = lo.max(Some(-((-least).div_euclid(-c))));
                }
            }
        }
        // an empty loop goes nowhere: that is seen when it is followed
        fitting(lo?, hi?).filter(|(lo, hi)| lo <= hi)
    }

    fn form(&mut self, form: &Form) -> Range {
        let mut sum = (form.constant, form.constant);
        for (iname, c) in &form.inames {
            sum = plus(sum, scaled(self.iname(*iname)?, *c))?;
        }
        for (var, c) in &form.vars {
            sum = plus(sum, scaled(self.entries_of(*var)?, *c))?;
        }
        for (numerator, divisor, c) in &form.floors {
            let (lo, hi) = self.form(numerator)?;
            let d = i128::from(*divisor);
            sum = plus(sum, scaled((lo.div_euclid(d), hi.div_euclid(d)), *c))?;
        }
        Some(sum)
    }
}

fn extremes(values: impl Iterator<Item = i64>) -> Range {
    values
        .map(i128::from)
        .fold(None, |range, v| Some(range.map_or((v, v), |(lo, hi)| (v.min(lo), v.max(hi)))))
}

/// The range, if its values have 64 bits.
fn fitting(lo: i128, hi: i128) -> Range {
    (lo >= i128::from(i64::MIN) && hi <= i128::from(i64::MAX)).then_some((lo, hi))
}

fn plus(a: (i128, i128), b: (i128, i128)) -> Range {
    fitting(a.0 + b.0, a.1 + b.1)
}

fn scaled((lo, hi): (i128, i128), c: i64) -> (i128, i128) {
    let (a, b) = (lo * i128::from(c), hi * i128::from(c));
    (a.min(b), a.max(b))
}

fn combined(op: IntOp, a: (i128, i128), b: (i128, i128)) -> Range {
    let positive = b.0 == b.1 && b.0 > 0;
    match op {
        IntOp::Add => plus(a, b),
        IntOp::Sub => plus(a, scaled(b, -1)),
        IntOp::Mul => {
            let all = [a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1];
            fitting(*all.iter().min()?, *all.iter().max()?)
        }
        IntOp::Min => Some((a.0.min(b.0), a.1.min(b.1))),
        IntOp::Max => Some((a.0.max(b.0), a.1.max(b.1))),
        IntOp::FloorDiv if positive => Some((a.0.div_euclid(b.0), a.1.div_euclid(b.0))),
        IntOp::Mod if positive && a.0 >= 0 && a.1 < b.0 => Some(a),
        IntOp::Mod if positive => Some((0, b.0 - 1)),
        IntOp::FloorDiv
        | IntOp::Mod
        | IntOp::TruncDiv
        | IntOp::TruncRem
        | IntOp::BitAnd
        | IntOp::BitOr
        | IntOp::BitXor
        | IntOp::Shl
        | IntOp::Shr => None,
    }
}
