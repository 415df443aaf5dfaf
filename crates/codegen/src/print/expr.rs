//! Expressions, with as few parentheses as C's precedence allows (and those that compilers ask
//! for).

use super::printer::Printer;
use crate::ast::{Expr, Extent, Op, Place};
use crate::complex::ComplexOp;
use crate::double_single::{HELD, PairOp};
use crate::print::Helper;
use crate::target::Posix;
use kingpost_ir::{MathFn, ScalarType};
use std::fmt::Write;

/// How tightly operators bind; a higher number binds more tightly.
pub(super) const OR: u8 = 2;
pub(super) const AND: u8 = 3;
pub(super) const EQUALITY: u8 = 4;
pub(super) const COMPARISON: u8 = 5;
pub(super) const SUM: u8 = 6;
pub(super) const PRODUCT: u8 = 7;
const UNARY: u8 = 8;
pub(super) const ATOM: u8 = 9;
const SELECT: u8 = 1;
/// Operators on bits stand in brackets, and so do their operands: few people know how tightly they bind.
const BITS: u8 = 0;

impl Printer {
    /// Writes an expression that stands where operators of strength below `strength` need
    /// parentheses.
    pub(super) fn expr(&mut self, e: &Expr, strength: u8) {
        match e {
            Expr::Int(v, ty) => self.integer(*v, *ty, strength),
            Expr::Real(v, ty) => self.real(*v, *ty, strength),
            Expr::Bool(b) => self.out.push(if *b { '1' } else { '0' }),
            Expr::Load(place) => self.load(place),
            Expr::Hardware { group, axis } => {
                let text = (self.dialect.words.hardware)(*group, *axis);
                self.out.push_str(&text);
            }
            Expr::Neg(a) => self.prefix("-", a, strength),
            Expr::Not(a) => self.prefix("!", a, strength),
            Expr::Binary(op, a, b) => self.binary(*op, a, b, strength),
            Expr::Call(MathFn::External(function), _, args) => {
                let helper = Helper::External(*function);
                self.doubles |= helper.source(self.dialect, false).contains("double");
                self.out.push_str(&helper.name(self.dialect));
                self.helpers.insert(helper);
                self.arguments(args.iter());
            }
            Expr::Call(f, ty, args) => {
                self.doubles |= *ty == ScalarType::F64;
                self.declare_function(*f, *ty);
                let name = self.dialect.function(*f, *ty);
                self.out.push_str(&name);
                self.arguments(args.iter());
            }
            Expr::Complex(op, ty, args) => self.complex(*op, *ty, args),
            Expr::Pair(op, args) => self.pair(*op, args),
            Expr::IntCall(f, ty, a, b) => {
                self.doubles |= *ty == ScalarType::F64;
                let helper = Helper::Integer(*f, *ty);
                self.out.push_str(&helper.name(self.dialect));
                self.helpers.insert(helper);
                self.arguments([&**a, &**b].into_iter());
            }
            Expr::LanesCall(f, ty, width, args) => {
                self.doubles |= *ty == ScalarType::F64;
                self.declare_function(*f, *ty);
                let helper = Helper::Lanes(*f, *ty, *width, args.len());
                self.vector_type(*ty, *width);
                self.out.push_str(&helper.name(self.dialect));
                self.helpers.insert(helper);
                self.arguments(args.iter());
            }
            Expr::Cast(ty, a) => self.parenthesised(strength > UNARY, |this| {
                this.doubles |= *ty == ScalarType::F64;
                let _ = write!(this.out, "({})", this.dialect.ty(*ty));
                this.expr(a, UNARY);
            }),
            Expr::Half(coding, ty, a) => {
                let helper = Helper::Half(*coding, *ty);
                self.out.push_str(&helper.name(self.dialect));
                self.helpers.insert(helper);
                self.arguments([&**a].into_iter());
            }
            Expr::Select(c, a, b) => self.parenthesised(strength > SELECT, |this| {
                this.expr(c, OR);
                this.out.push_str(" ? ");
                this.expr(a, OR);
                this.out.push_str(" : ");
                this.expr(b, SELECT);
            }),
            Expr::Vector { ty, width, lanes } => self.vector(*ty, *width, lanes),
        }
    }

    fn complex(&mut self, op: ComplexOp, ty: ScalarType, args: &[Expr]) {
        self.mentions(ty);
        if let (Some(member), [z]) = (op.member(), args) {
            self.expr(z, ATOM);
            self.out.push('.');
            return self.out.push_str(member);
        }
        if op == ComplexOp::Convert {
            self.mentions(if ty == ScalarType::C64 { ScalarType::C128 } else { ScalarType::C64 });
        }
        self.helpers.extend(op.calls().iter().chain([&op]).map(|op| Helper::Complex(*op, ty)));
        self.out.push_str(&op.name(ty));
        self.arguments(args.iter());
    }

    fn pair(&mut self, op: PairOp, args: &[Expr]) {
        self.mentions(HELD);
        self.doubles |= matches!(op, PairOp::Split | PairOp::Join);
        self.helpers.extend(op.calls().iter().chain([&op]).map(|op| Helper::DoubleSingle(*op)));
        self.out.push_str(&op.name());
        self.arguments(args.iter());
    }

    pub(super) fn place(&mut self, place: &Place) {
        if !self.pointed(place) {
            self.out.push_str(&place.name);
            if let Some(offset) = &place.offset {
                self.out.push('[');
                self.expr(offset, 0);
                self.out.push(']');
            }
        }
        if let Extent::Lane(k) = place.extent {
            let lane = (self.dialect.words.lane)(k);
            self.out.push_str(&lane);
        }
    }

    pub(super) fn arguments<'a>(&mut self, args: impl Iterator<Item = &'a Expr>) {
        self.out.push('(');
        for (k, a) in args.enumerate() {
            if k > 0 {
                self.out.push_str(", ");
            }
            self.expr(a, 0);
        }
        self.out.push(')');
    }

    fn parenthesised(&mut self, needed: bool, write: impl FnOnce(&mut Self)) {
        if needed {
            self.out.push('(');
        }
        write(self);
        if needed {
            self.out.push(')');
        }
    }

    fn prefix(&mut self, sign: &str, a: &Expr, strength: u8) {
        self.parenthesised(strength > UNARY, |this| {
            this.out.push_str(sign);
            // `- -a` must not become `--a`.
            this.expr(a, UNARY + 1);
        });
    }

    fn binary(&mut self, op: Op, a: &Expr, b: &Expr, strength: u8) {
        let (text, own) = operator(op);
        // Compilers warn on `a && b || c`.
        let mixed_logic = own == AND && strength == OR;
        self.parenthesised(strength > own || mixed_logic, |this| {
            let comparison = own == COMPARISON || own == EQUALITY;
            if own == BITS {
                this.expr(a, UNARY);
                this.out.push_str(text);
                return this.expr(b, UNARY);
            }
            this.expr(a, if comparison { SUM } else { own });
            this.out.push_str(text);
            // Left to right: `a - (b + c)`; reals do not associate, so `a + (b + c)` keeps its own
            // too.
            let right = if matches!(op, Op::And | Op::Or) { own } else { own + 1 };
            this.expr(b, if comparison { SUM } else { right });
        });
    }

    /// Declares a function that headers do not have in the standard mode of a language.
    fn declare_function(&mut self, f: MathFn, ty: ScalarType) {
        if self.dialect.posix == Posix::Declared && f.posix_symbol().is_some() {
            self.helpers.insert(Helper::Declared(f, ty));
        }
    }

    fn integer(&mut self, v: i64, ty: ScalarType, strength: u8) {
        if ty.is_word() {
            let _ = write!(self.out, "{}{}", v as u64, self.dialect.integer_suffix(ty));
            return;
        }
        let lowest = if ty == ScalarType::I32 { i64::from(i32::MIN) } else { i64::MIN };
        if v == lowest {
            // The literal without its sign would not fit.
            let suffix = self.dialect.integer_suffix(ty);
            let _ = write!(self.out, "(-{}{suffix} - 1)", -(v + 1));
            return;
        }
        let suffix = self.dialect.integer_suffix(ty);
        self.parenthesised(v < 0 && strength > SUM, |this| {
            let _ = write!(this.out, "{v}{suffix}");
        });
    }

    fn real(&mut self, v: f64, ty: ScalarType, strength: u8) {
        self.doubles |= ty == ScalarType::F64;
        // a literal may be beyond the type: 1e300 is infinite as an `f32`
        let v = if ty == ScalarType::F32 { f64::from(v as f32) } else { v };
        if !v.is_finite() {
            let text = self.dialect.special(v, ty);
            self.out.push_str(&text);
            return;
        }
        self.parenthesised(v.is_sign_negative() && strength > SUM, |this| {
            // Rust prints the shortest decimal that reads back as the same value.
            let _ = match ty == ScalarType::F32 {
                true => write!(this.out, "{:?}f", v as f32),
                false => write!(this.out, "{v:?}"),
            };
        });
    }
}

/// The operator of a binary operation and how tightly it binds.
fn operator(op: Op) -> (&'static str, u8) {
    match op {
        Op::Add => (" + ", SUM),
        Op::Sub => (" - ", SUM),
        Op::Mul => ("*", PRODUCT),
        Op::Div => ("/", PRODUCT),
        Op::Rem => (" % ", PRODUCT),
        Op::Lt => (" < ", COMPARISON),
        Op::Le => (" <= ", COMPARISON),
        Op::Eq => (" == ", EQUALITY),
        Op::Ne => (" != ", EQUALITY),
        Op::And => (" && ", AND),
        Op::Or => (" || ", OR),
        Op::BitAnd => (" & ", BITS),
        Op::BitOr => (" | ", BITS),
        Op::BitXor => (" ^ ", BITS),
        Op::Shl => (" << ", BITS),
        Op::Shr => (" >> ", BITS),
    }
}
