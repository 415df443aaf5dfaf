//! What samples hold besides `f64`: single precision, integers, arithmetic of literals, nans and
//! infinities.

use super::arithmetic::word_arithmetic;
use super::draw::{Draw, Extent, TABLE_LEN};
use super::plan::{ExprPlan, RangePlan};
use super::range::pick;
use kingpost_ir::expr::{Access, BinaryOp, Expr, MathFn, UnaryOp, UpdateOp};
use kingpost_ir::types::ScalarType;

/// Beyond this the extrema of nothing are cut, so that sums of them fit 64 bits; those of 32 bits
/// lie below.
const CUT: i64 = 1 << 40;

impl Draw {
    /// A value as it may be stored in an element of this type: cast unless its type fits, so that
    /// literals stay as they are and take the type.
    pub(super) fn stored(&self, ty: ScalarType, value: Expr) -> Expr {
        let ty = if ty.is_half() { ty.loaded() } else { ty }; // what is rounded to one is an `f32`
        match self.b.so_far().type_of(&value, &[]) {
            Ok(found) if found.stores_in(ty) => value,
            Ok(_) | Err(_) => Expr::Cast(ty, Box::new(value)),
        }
    }

    /// Arithmetic of literals: what it is depends on what stands around it.
    pub(super) fn literals(&mut self, k: u8, range: RangePlan) -> Expr {
        let (a, b) = (Expr::Int(i64::from(k) % 9 - 3), Expr::Int(i64::from(k) % 3 + 2));
        let of = |op, a: &Expr, b: &Expr| Expr::binary(op, a.clone(), b.clone());
        let less = of(BinaryOp::Lt, &a, &b);
        // 0 in single precision, else 1; a step that takes sums apart leaves this one whole
        let lost = Expr::binary(BinaryOp::Max, Expr::from(16_777_217.0) - 16_777_216.0, Expr::from(0.0));
        let choices = [
            a.clone(),
            of(BinaryOp::Div, &a, &b),
            of(BinaryOp::FloorDiv, &a, &b),
            of(BinaryOp::Mod, &a, &b),
            of(BinaryOp::Min, &a, &b),
            of(BinaryOp::Div, &of(BinaryOp::Max, &a, &b), &Expr::Int(4)),
            Expr::Select(
                Box::new(less),
                Box::new(b.clone()),
                Box::new(of(BinaryOp::FloorDiv, &a, &Expr::Int(-2))),
            ),
            Expr::from(0.5) * of(BinaryOp::FloorDiv, &Expr::Int(7), &b),
            lost.clone(),
            -(lost * a),
            Expr::from(f64::NAN),
            Expr::from(f64::INFINITY),
            Expr::from(f64::NEG_INFINITY),
        ];
        // the high bits, so that small picks are simple
        match k >> 6 {
            2 if self.config.reductions => self.count(range),
            3 if self.config.reductions => {
                let (terms, twice) =
                    (self.count(range), self.count(RangePlan { extent: 0, shape: 0, condition: 0 }));
                Expr::binary(BinaryOp::Div, terms, twice)
            }
            _ => pick(&choices, k % 64),
        }
    }

    /// The number of iterations of a loop.
    fn count(&mut self, range: RangePlan) -> Expr {
        let (iname, _) = self.range(range);
        Expr::reduce(UpdateOp::Add, [iname], Expr::Int(1))
    }

    /// An integer for a real: within the slopes of `atan`, and where the ends of `i32` and `i64`
    /// differ.
    pub(super) fn integer_as_real(&mut self, plan: &ExprPlan) -> Expr {
        let value = Expr::Cast(ScalarType::F64, Box::new(self.integer(plan)));
        Expr::call(MathFn::Atan, [value * 2.0_f64.powi(-31)])
    }

    /// An integer of at most about `CUT`, of whatever type.
    pub(super) fn integer(&mut self, plan: &ExprPlan) -> Expr {
        let within = |e: Expr, most: i64| Expr::binary(BinaryOp::Mod, e, most);
        match plan {
            ExprPlan::Literal(k) => Expr::Int(i64::from(*k) % 19 - 9),
            ExprPlan::Literals(k, _) => {
                Expr::binary(BinaryOp::Max, Expr::Int(i64::from(*k) % 9), Expr::Int(i64::from(*k) % 7))
            }
            ExprPlan::Loop(k) if self.scope.is_empty() => Expr::Int(i64::from(*k) % 5),
            ExprPlan::Loop(k) => pick(&self.scope, *k).0.into(),
            ExprPlan::Load(array, index) => {
                let k = usize::from(*array) % (self.integers.len() + 1);
                let Some(array) = self.integers.get(k) else {
                    let row = self.element_of(self.count, &[Extent::N], *index);
                    return Expr::Load(row);
                };
                let value = Expr::Load(self.element(array, *index));
                // what is written grows
                if array.written { within(value, 1000) } else { value }
            }
            ExprPlan::Integer(a) => self.integer(a),
            // inputs are multiples of 1/256, so that this is exact
            ExprPlan::Single(_) => {
                let input = Expr::Load(self.element_of(self.arrays[1].var, &[Extent::N], [1, 1]));
                Expr::Cast(ScalarType::I32, Box::new(input * 4.0))
            }
            ExprPlan::Negate(a) => -self.integer(a),
            ExprPlan::Binary(op, a, b) => {
                let ops = [BinaryOp::Add, BinaryOp::Mul, BinaryOp::Sub, BinaryOp::Min, BinaryOp::Max];
                let (op, a, b) = (pick(&ops, *op), self.integer(a), self.integer(b));
                if op == BinaryOp::Mul {
                    Expr::binary(op, within(a, 100), within(b, -100))
                } else {
                    Expr::binary(op, a, b)
                }
            }
            ExprPlan::Call(k @ 128.., a) if self.config.arithmetic => self.exact_arithmetic(k - 128, a),
            ExprPlan::Call(k, a) => {
                let a = self.integer(a);
                let choices = [
                    Expr::binary(BinaryOp::FloorDiv, a.clone(), 3),
                    within(a.clone(), 7),
                    Expr::Cast(ScalarType::I32, Box::new(within(a.clone(), 1000))),
                    Expr::Cast(ScalarType::I64, Box::new(a.clone())),
                    Expr::binary(BinaryOp::FloorDiv, a.clone(), -2),
                    Expr::binary(BinaryOp::TruncDiv, a.clone(), 3),
                    Expr::binary(BinaryOp::TruncRem, a.clone(), 7),
                    Expr::binary(BinaryOp::BitAnd, a.clone(), 255),
                    Expr::binary(BinaryOp::Shr, a.clone(), 2),
                    Expr::Unary(UnaryOp::BitNot, Box::new(a)),
                ];
                pick(&choices, *k)
            }
            ExprPlan::Choose(condition, a, b) => {
                let condition = self.condition(*condition);
                Expr::Select(Box::new(condition), Box::new(self.integer(a)), Box::new(self.integer(b)))
            }
            ExprPlan::Reduce(_, _, body) if !self.config.reductions => self.integer(body),
            ExprPlan::Reduce(op, range, body) => {
                let op = pick(&[UpdateOp::Min, UpdateOp::Max, UpdateOp::Add], *op);
                let (iname, extent) = self.range(*range);
                self.scope.push((iname, extent));
                let body = self.integer(body);
                self.scope.pop();
                let cut = |op, e: Expr, at: i64| Expr::binary(op, e, at);
                let wide = |e| Expr::Cast(ScalarType::I64, Box::new(e));
                // sums of `i32` have to fit one, and the extremum of nothing is the end of its type
                let value = match op {
                    UpdateOp::Add => Expr::reduce(op, [iname], wide(body)),
                    UpdateOp::Mul
                    | UpdateOp::Min
                    | UpdateOp::Max
                    | UpdateOp::Or
                    | UpdateOp::And
                    | UpdateOp::Named(_) => wide(Expr::reduce(op, [iname], body)),
                };
                cut(BinaryOp::Min, cut(BinaryOp::Max, value, -CUT), CUT)
            }
        }
    }

    /// A word made of an integer and of an element of the array of words.
    pub(super) fn word(&mut self, plan: &ExprPlan, index: [u8; 2]) -> Expr {
        let value = Expr::Cast(ScalarType::U32, Box::new(self.integer(plan)));
        let Some(words) = self.others.first() else { return value };
        let own = Expr::Load(self.element(words, index));
        if self.config.arithmetic && index[0] >= 128 {
            return word_arithmetic(index[0] - 128, own, value);
        }
        let of = |op, a: &Expr, b: &Expr| Expr::binary(op, a.clone(), b.clone());
        let choices = [
            value.clone(),
            own.clone() * 1_664_525 + value.clone(),
            of(BinaryOp::BitXor, &own, &value),
            of(BinaryOp::BitAnd, &own, &value),
            of(BinaryOp::Shl, &own, &Expr::Int(5)) - value.clone(),
            of(BinaryOp::Shr, &own, &Expr::Int(3)) + value.clone(),
            of(BinaryOp::Min, &own, &value),
            of(BinaryOp::FloorDiv, &own, &Expr::Int(7)) + value.clone(),
            of(BinaryOp::Mod, &value, &Expr::Int(10)),
            Expr::Unary(UnaryOp::BitNot, Box::new(own)) - value.clone(),
            -value,
        ];
        pick(&choices, index[0])
    }

    /// A complex number of a real and of an element of the array of complex numbers, which grows and so
    /// is read as one below 1.
    pub(super) fn complex(&mut self, plan: &ExprPlan, index: [u8; 2]) -> Expr {
        let value = Expr::call(MathFn::Atan, [self.expression(plan)]);
        let pair = Expr::call(MathFn::Complex, [value.clone(), Expr::from(0.5)]);
        let Some(waves) = self.others.iter().find(|array| array.ty.is_complex()) else { return pair };
        let own = Expr::Load(self.element(waves, index));
        let size = Expr::call(MathFn::Abs, [own.clone()]) + 1.0;
        let own = own / size;
        let of = |f, e: &Expr| Expr::call(f, [e.clone()]);
        let turn = Expr::Load(self.element_of(self.turns, &[Extent::Constant(TABLE_LEN)], index));
        // each with the value once: a reduction in it has loops of its own
        let choices = [
            pair.clone(),
            own.clone() * pair.clone(),
            of(MathFn::Conj, &own) + value.clone(),
            value.clone() - own.clone() * 0.5,
            own.clone() / pair.clone(),
            pair.clone() - own.clone() * own.clone(),
            of(MathFn::Exp, &own) - value.clone(),
            Expr::call(MathFn::Complex, [of(MathFn::ImagPart, &own), value.clone()]),
            of(MathFn::Sin, &own) * value.clone() + of(MathFn::RealPart, &own),
            Expr::call(MathFn::Pow, [own.clone(), Expr::from(2.0)]) / 2 - value.clone(),
            Expr::Select(Box::new(self.condition(index[1])), Box::new(-own.clone()), Box::new(pair)),
            turn.clone() * value.clone() - own,
            turn * value,
        ];
        pick(&choices, index[0])
    }

    fn element_of(&self, var: kingpost_ir::ids::VarId, axes: &[Extent], index: [u8; 2]) -> Access {
        let axes = axes.iter().zip(index);
        Access::new(var, axes.map(|(extent, k)| self.index(*extent, k)).collect::<Vec<_>>())
    }
}
