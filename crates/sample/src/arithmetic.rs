//! What compilers were found wrong about, or might be: complements of extrema, shifts and quotients of
//! either sign, conversions to every type of integers, subnormal numbers, stores in one place.

use super::draw::{Array, Draw};
use super::plan::{ExprPlan, IdiomPlan};
use super::range::pick;
use kingpost_ir::expr::{Access, BinaryOp, Expr, MathFn, UnaryOp};
use kingpost_ir::types::{Class, ScalarType};

/// Below the normal numbers of `f64`, as is its product with anything below 1.
const SUBNORMAL: f64 = 1e-309;

fn of(op: BinaryOp, a: Expr, b: impl Into<Expr>) -> Expr {
    Expr::binary(op, a, b)
}

fn not(a: Expr) -> Expr {
    Expr::Unary(UnaryOp::BitNot, Box::new(a))
}

fn cast(ty: ScalarType, a: Expr) -> Expr {
    Expr::Cast(ty, Box::new(a))
}

/// A function of two words, of which the first one is an element of an array.
pub(super) fn word_arithmetic(k: u8, own: Expr, value: Expr) -> Expr {
    let by = i64::from(k % 31) + 1;
    let wide =
        cast(ScalarType::U64, own.clone()) * cast(ScalarType::U64, Expr::Int(6_364_136_223_846_793_005));
    let choices = [
        not(of(BinaryOp::Min, own.clone(), value.clone())),
        not(of(BinaryOp::Max, own.clone(), value.clone())),
        of(BinaryOp::BitXor, of(BinaryOp::Max, own.clone(), value.clone()), 4_294_967_295),
        of(BinaryOp::BitOr, of(BinaryOp::Shl, own.clone(), by), of(BinaryOp::Shr, own.clone(), 32 - by))
            + value.clone(),
        of(BinaryOp::FloorDiv, own.clone(), of(BinaryOp::BitOr, value.clone(), 1)),
        of(BinaryOp::Mod, own.clone(), of(BinaryOp::BitOr, value.clone(), 1)),
        cast(ScalarType::U32, of(BinaryOp::Shr, wide.clone(), 33)) + value.clone(),
        cast(ScalarType::U32, not(of(BinaryOp::Min, wide, cast(ScalarType::U64, value.clone())))),
        not(not(own.clone()) - value.clone()),
        of(BinaryOp::Max, -own.clone(), of(BinaryOp::BitAnd, value.clone(), 65_535)),
        of(BinaryOp::Min, own, not(value)),
    ];
    pick(&choices, k)
}

impl Draw {
    /// A function of an integer and of an element of an array, of either sign.
    pub(super) fn exact_arithmetic(&mut self, k: u8, plan: &ExprPlan) -> Expr {
        let a = self.integer(plan);
        let other = &self.integers[1 + usize::from(k / 64) % 3];
        let (b, wide) = (Expr::Load(self.element(other, [k / 4, k / 16])), i64::from(k % 5));
        let (few, signed) = (of(BinaryOp::Mod, b.clone(), 5) * 2 + 1, of(BinaryOp::TruncRem, b.clone(), 7));
        let single = ScalarType::I32;
        let choices = [
            not(of(BinaryOp::Min, a.clone(), b.clone())),
            not(of(BinaryOp::Max, a.clone(), b.clone())),
            of(BinaryOp::Max, not(a.clone()), b.clone()),
            of(BinaryOp::Min, not(a.clone()), not(b.clone())),
            not(of(BinaryOp::Min, of(BinaryOp::Max, a.clone(), b.clone()), 37)),
            of(BinaryOp::BitXor, a.clone(), b.clone()),
            of(BinaryOp::BitOr, not(a.clone()), b.clone()),
            of(BinaryOp::BitAnd, a.clone(), not(b.clone())),
            of(BinaryOp::Shl, of(BinaryOp::TruncRem, a.clone(), 1000), wide),
            of(BinaryOp::Shr, not(a.clone()), wide),
            of(BinaryOp::FloorDiv, a.clone(), few.clone()),
            of(BinaryOp::FloorDiv, a.clone(), -few.clone()),
            of(BinaryOp::Mod, a.clone(), few.clone()),
            of(BinaryOp::TruncDiv, a.clone(), signed * 2 + 1),
            of(BinaryOp::TruncRem, a.clone(), -few),
            cast(single, cast(ScalarType::I8, of(BinaryOp::TruncRem, a.clone(), 100))) * b.clone(),
            cast(ScalarType::I64, cast(ScalarType::U32, a.clone())),
            cast(ScalarType::U16, of(BinaryOp::Mod, a.clone(), 1000)) - b.clone(),
            cast(ScalarType::I16, of(BinaryOp::TruncRem, a, 1000)) + b,
        ];
        pick(&choices, k)
    }

    /// An element of an input, which is a multiple of 1/256 so that this is exact, as an integer of some type,
    /// and that as a real; every eighth is one of two numbers that differ where subnormal ones are zero.
    pub(super) fn converted(&mut self, k: u8) -> Expr {
        let read = if k & 8 == 0 { &self.arrays[1] } else { &self.arrays[8] };
        let value = Expr::Load(self.element(read, [k / 16, k / 32]));
        if k % 8 == 7 {
            let tiny = cast(ScalarType::F64, value) * SUBNORMAL;
            let is_above = of(BinaryOp::Lt, Expr::from(0.0), tiny);
            return Expr::Select(Box::new(is_above), Box::new(Expr::from(0.5)), Box::new(Expr::from(-0.25)));
        }
        let size = Expr::call(MathFn::Fabs, [value.clone()]);
        let choices = [
            cast(ScalarType::I8, value.clone() * 127.0),
            cast(ScalarType::U8, size.clone() * 255.0),
            cast(ScalarType::I16, value.clone() * -4096.0),
            cast(ScalarType::U16, size.clone() * 512.0),
            cast(ScalarType::I32, value.clone() * 1_048_576.0),
            cast(ScalarType::I64, value * 68_719_476_736.0),
            cast(ScalarType::I64, cast(ScalarType::U32, size * 4_278_190_080.0)),
        ];
        Expr::call(MathFn::Atan, [cast(ScalarType::F64, pick(&choices, k % 8)) * 0.0625])
    }

    /// Whether the idiom of a plan is one of stores in one place.
    pub(super) fn is_in_place(&self, plan: &IdiomPlan) -> bool {
        self.config.arithmetic && plan.index[0] & 32 != 0 && plan.op & 64 != 0
    }

    /// A loop of stores to elements of several types, the first one to the same place each time.
    pub(super) fn stored_in_place(&mut self, plan: &IdiomPlan) {
        self.inside(plan.outer, |this, _| {
            this.inside(plan.inner, |this, _| {
                for k in 0..2 + plan.kind % 2 {
                    let all = this.arrays.iter().chain(&this.integers).chain(&this.others);
                    let written: Vec<&Array> = all.filter(|array| array.written).collect();
                    let array = pick(&written, plan.target.wrapping_add(3 * k));
                    let ty = array.ty;
                    let zeros = array.axes.iter().map(|_| Expr::from(0)).collect::<Vec<_>>();
                    let one_place = k == 0 || plan.index[1] & (32 << k) != 0;
                    let lhs = if one_place {
                        Access::new(array.var, zeros)
                    } else {
                        this.element(array, plan.index)
                    };
                    let (value, name) = (this.of_class(ty, plan), this.name("s"));
                    this.b.assign(name, lhs, value);
                }
            });
        });
    }

    /// A value to store: of reals a bounded function of a value.
    fn of_class(&mut self, ty: ScalarType, plan: &IdiomPlan) -> Expr {
        let value = match ty.class() {
            Class::Real => {
                let functions = [MathFn::Tanh, MathFn::Sin, MathFn::Fabs, MathFn::Atan, MathFn::Cos];
                let value = self.expression(&plan.value);
                Expr::call(pick(&functions, plan.kind / 8), [value])
            }
            Class::Exact if ty.is_storage() => {
                cast(ScalarType::I32, of(BinaryOp::Mod, self.integer(&plan.value), 100))
            }
            Class::Exact => self.integer(&plan.value),
            Class::Word => self.word(&plan.value, plan.index),
            Class::Truth | Class::Record => self.condition(plan.index[0]),
            Class::Complex => self.complex(&plan.value, plan.index),
        };
        self.stored(ty, value)
    }
}
