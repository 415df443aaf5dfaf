//! Types, rounding, casts, rules, functions.

use super::{F32, F64, I32, I64, Random};
use crate::{Memory, Value, interpret};
use kingpost_ir::{
    Access, BinaryOp, Complex, Direction, Expr, KernelBuilder, MathFn, Reduction, Rule, ScalarType, UpdateOp,
    VarId,
};

/// The value of one expression of scalars, stored as `ty`.
fn value(ty: ScalarType, scalars: &[(&str, Value)], make: impl Fn(&[VarId]) -> Expr) -> Value {
    let mut b = KernelBuilder::new("kernel_k");
    let mut memory = Memory::new();
    let mut vars = Vec::new();
    for (name, value) in scalars {
        vars.push(b.argument(*name, value.ty(), [], Direction::In));
        memory.set(*name, value.clone());
    }
    let y = b.argument("result", ty, [], Direction::Out);
    b.assign("s", Access::scalar(y), make(&vars));
    interpret(&b.finish().unwrap(), &mut memory).unwrap();
    memory.get("result").unwrap().clone()
}

#[test]
fn single_precision_rounds_every_operation() {
    let mut random = Random::new();
    for _ in 0..200 {
        let [a, b, d] = [0; 3].map(|_| random.real() as f32);
        let got = value(F32, &[("a", a.into()), ("b", b.into()), ("d", d.into())], |v| {
            (Expr::scalar(v[0]) * Expr::scalar(v[1]) + Expr::scalar(v[2])) / (Expr::scalar(v[1]) - 0.1)
        });
        let expected = (a * b + d) / (b - 0.1_f32);
        assert_eq!(got, Value::F32(vec![expected]), "seed {}", random.seed);
    }
}

#[test]
fn literals_take_the_type_of_their_context() {
    // 0.1 is a float literal next to `a`, the quotient of literals too
    let a = 3.0_f32;
    let tenth = |v: &[VarId]| Expr::scalar(v[0]) * (Expr::Int(1) / Expr::Int(10));
    assert_eq!(value(F32, &[("a", a.into())], tenth), Value::F32(vec![a * (1.0_f32 / 10.0)]));
    // f32 next to f64 widens: no rounding of the product
    let mixed = |v: &[VarId]| Expr::scalar(v[0]) * Expr::scalar(v[1]);
    let third = 1.0_f64 / 3.0;
    let got = value(F64, &[("a", 0.1_f32.into()), ("d", third.into())], mixed);
    assert_eq!(got, Value::F64(vec![f64::from(0.1_f32) * third]));
}

#[test]
fn casts_round_towards_zero_and_to_single() {
    let cast = |ty| move |v: &[VarId]| Expr::Cast(ty, Box::new(Expr::scalar(v[0])));
    assert_eq!(value(I32, &[("a", (-2.9_f64).into())], cast(I32)), Value::I32(vec![-2]));
    assert_eq!(value(I64, &[("a", 2.9_f32.into())], cast(I64)), Value::I64(vec![2]));
    assert_eq!(value(F64, &[("a", 0.1_f64.into())], cast(F32)), Value::F64(vec![f64::from(0.1_f32)]));
    let odd = (1_i64 << 54) + 1;
    assert_eq!(value(F64, &[("a", odd.into())], cast(F64)), Value::F64(vec![odd as f64]));
}

#[test]
fn integer_arithmetic_is_exact_beyond_its_type() {
    let big = i32::MAX;
    let got =
        value(I64, &[("a", big.into()), ("b", big.into())], |v| Expr::scalar(v[0]) * Expr::scalar(v[1]));
    assert_eq!(got, Value::I64(vec![i64::from(big) * i64::from(big)]));
    let floored = |v: &[VarId]| {
        let quotient = Expr::binary(BinaryOp::FloorDiv, Expr::scalar(v[0]), Expr::scalar(v[1]));
        quotient * 100 + Expr::binary(BinaryOp::Mod, Expr::scalar(v[0]), Expr::scalar(v[1]))
    };
    assert_eq!(value(I64, &[("a", (-7_i64).into()), ("b", 3_i64.into())], floored), Value::I64(vec![-298]));
    assert_eq!(value(I64, &[("a", 7_i64.into()), ("b", (-3_i64).into())], floored), Value::I64(vec![-302]));
}

#[test]
fn integer_reductions_count() {
    let mut b = KernelBuilder::new("kernel_k");
    let y = b.argument("y", I32, [], Direction::Out);
    let i = b.range("i", super::c(0), super::c(5));
    let j = b.range("j", super::c(0), kingpost_ir::Affine::iname(i));
    let sum =
        Reduction { op: UpdateOp::Max, inames: vec![i, j], body: Box::new(Expr::from(i) * Expr::from(j)) };
    b.assign("s", Access::scalar(y), Expr::Reduce(sum));
    let mut memory = Memory::new();
    interpret(&b.finish().unwrap(), &mut memory).unwrap();
    assert_eq!(memory.get("y"), Some(&Value::I32(vec![12])));
}

#[test]
fn rules_expand_in_their_own_parameters() {
    let mut b = KernelBuilder::new("kernel_k");
    let a = b.argument("a", F64, [], Direction::In);
    let y = b.argument("y", F64, [], Direction::Out);
    let params = || vec!["p".to_owned(), "q".to_owned()];
    // inner(p, q) := p - q;  outer(p, q) := inner(q, p) * p
    let inner = b.rule(Rule {
        name: "inner".into(),
        params: params(),
        body: Expr::RuleParam(0) - Expr::RuleParam(1),
    });
    let swapped = Expr::Rule(inner, vec![Expr::RuleParam(1), Expr::RuleParam(0)]);
    let outer = b.rule(Rule { name: "outer".into(), params: params(), body: swapped * Expr::RuleParam(0) });
    b.assign("s", Access::scalar(y), Expr::Rule(outer, vec![Expr::scalar(a), Expr::scalar(a) * 3.0]));
    let mut memory = Memory::new().value("a", 2.0);
    interpret(&b.finish().unwrap(), &mut memory).unwrap();
    assert_eq!(memory.f64s("y").unwrap(), [(6.0 - 2.0) * 2.0]);
}

#[allow(clippy::approx_constant)] // computed, not meant as the constants
/// Values of every function at a point of its domain, to 15 digits, as Python 3 prints them.
const REFERENCE: &[(MathFn, [f64; 3], f64)] = &[
    (MathFn::Sin, [0.5, 0.0, 0.0], 0.479425538604203),
    (MathFn::Cos, [0.5, 0.0, 0.0], 0.877582561890373),
    (MathFn::Tan, [0.5, 0.0, 0.0], 0.546302489843790),
    (MathFn::Asin, [0.5, 0.0, 0.0], 0.523598775598299),
    (MathFn::Acos, [0.5, 0.0, 0.0], 1.04719755119660),
    (MathFn::Atan, [0.5, 0.0, 0.0], 0.463647609000806),
    (MathFn::Atan2, [1.0, -1.0, 0.0], 2.35619449019234),
    (MathFn::Sinh, [0.5, 0.0, 0.0], 0.521095305493747),
    (MathFn::Cosh, [0.5, 0.0, 0.0], 1.12762596520638),
    (MathFn::Tanh, [0.5, 0.0, 0.0], 0.462117157260010),
    (MathFn::Asinh, [0.5, 0.0, 0.0], 0.481211825059603),
    (MathFn::Acosh, [2.0, 0.0, 0.0], 1.31695789692482),
    (MathFn::Atanh, [0.5, 0.0, 0.0], 0.549306144334055),
    (MathFn::Exp, [0.5, 0.0, 0.0], 1.64872127070013),
    (MathFn::Exp2, [0.5, 0.0, 0.0], 1.41421356237310),
    (MathFn::Expm1, [0.5, 0.0, 0.0], 0.648721270700128),
    (MathFn::Log, [2.0, 0.0, 0.0], 0.693147180559945),
    (MathFn::Log2, [8.0, 0.0, 0.0], 3.0),
    (MathFn::Log10, [1000.0, 0.0, 0.0], 3.0),
    (MathFn::Log1p, [1.0, 0.0, 0.0], 0.693147180559945),
    (MathFn::Pow, [2.0, 0.5, 0.0], 1.41421356237310),
    (MathFn::Sqrt, [2.0, 0.0, 0.0], 1.41421356237310),
    (MathFn::Cbrt, [27.0, 0.0, 0.0], 3.0),
    (MathFn::Hypot, [3.0, 4.0, 0.0], 5.0),
    (MathFn::Erf, [0.5, 0.0, 0.0], 0.520499877813047),
    (MathFn::Erfc, [0.5, 0.0, 0.0], 0.479500122186953),
    (MathFn::Tgamma, [0.5, 0.0, 0.0], 1.77245385090552),
    (MathFn::Lgamma, [0.5, 0.0, 0.0], 0.572364942924700),
    (MathFn::Fabs, [-2.5, 0.0, 0.0], 2.5),
    (MathFn::Floor, [-2.5, 0.0, 0.0], -3.0),
    (MathFn::Ceil, [-2.5, 0.0, 0.0], -2.0),
    (MathFn::Trunc, [-2.5, 0.0, 0.0], -2.0),
    (MathFn::Round, [-2.5, 0.0, 0.0], -3.0),
    (MathFn::Fmod, [-5.5, 2.0, 0.0], -1.5),
    (MathFn::Fmin, [1.0, 2.0, 0.0], 1.0),
    (MathFn::Fmax, [1.0, 2.0, 0.0], 2.0),
    (MathFn::Fma, [2.0, 3.0, 0.5], 6.5),
    (MathFn::Copysign, [2.0, -1.0, 0.0], -2.0),
    // mpmath 1.3
    (MathFn::BesselJ, [2.0, 1.5, 0.0], 0.232087672144215),
    (MathFn::BesselY, [2.0, 1.5, 0.0], -0.932193759762974),
];

#[test]
fn functions_have_their_c99_values() {
    assert_eq!(REFERENCE.len(), MathFn::of_reals().count());
    for (function, x, expected) in REFERENCE {
        let args = x.map(Expr::from).into_iter().take(function.arity());
        let call = Expr::call(*function, args);
        let got = value(F64, &[], |_| call.clone()).to_f64()[0];
        // the table has 15 digits
        assert!((got - expected).abs() <= 1e-14 * expected.abs(), "{}: {got}", function.name());
        let single = value(F32, &[("o", 1.0_f32.into())], |v| {
            Expr::binary(BinaryOp::Mul, Expr::scalar(v[0]), call.clone())
        });
        // arguments and result rounded to 24 bits; conditioning of every case is below 4
        assert!((single.to_f64()[0] - expected).abs() <= 4.0 * f64::from(f32::EPSILON) * expected.abs());
    }
}

#[test]
fn complex_numbers_are_pairs_of_reals() {
    let c128 = |re: f64, im: f64| Complex { re, im };
    let z = Value::from(c128(1.5, -2.0));
    let at = |ty, make: &dyn Fn(Expr) -> Expr| value(ty, &[("z", z.clone())], |v| make(Expr::scalar(v[0])));
    let call = |f, z: Expr| Expr::call(f, [z]);
    let pair = |re: f64, im: f64| Expr::call(MathFn::Complex, [Expr::from(re), Expr::from(im)]);
    assert_eq!(at(F64, &|z| call(MathFn::RealPart, z)), Value::F64(vec![1.5]));
    assert_eq!(at(F64, &|z| call(MathFn::ImagPart, z)), Value::F64(vec![-2.0]));
    assert_eq!(at(F64, &|z| call(MathFn::Abs, z)), Value::F64(vec![2.5]));
    for (make, re, im) in [
        (&(|z| z * pair(2.0, 3.0)) as &dyn Fn(Expr) -> Expr, 9.0, 0.5),
        (&|z| z / pair(0.5, -0.5), 3.5, -0.5),
        (&|z| Expr::from(2.0) / z, 0.48, 0.64),
        (&|z| Expr::from(2.0) - z, 0.5, 2.0),
        (&|z| z * 2 + 1, 4.0, -4.0),
        (&|z| call(MathFn::Conj, z) / 4.0, 0.375, 0.5),
        (&|z| Expr::call(MathFn::Pow, [z, Expr::from(2.0)]), -1.75, -6.0),
        (
            &|z| {
                Expr::Select(
                    Box::new(Expr::binary(BinaryOp::Eq, z.clone(), pair(1.5, -2.0))),
                    Box::new(-z),
                    Box::new(pair(0.0, 0.0)),
                )
            },
            -1.5,
            2.0,
        ),
    ] {
        assert_eq!(at(ScalarType::C128, make), Value::C128(vec![c128(re, im)]));
        let single = |z: Expr| Expr::Cast(ScalarType::C64, Box::new(make(z)));
        assert_eq!(at(ScalarType::C64, &single).to_f64(), [re, im].map(|x| f64::from(x as f32)));
    }
}

/// What is made of literals has the precision of the other operand.
#[test]
fn literals_of_complex_numbers_take_the_type_of_their_context() {
    let pair = || Expr::call(MathFn::Complex, [Expr::from(0.1), Expr::from(0.2)]);
    let parts = [f64::from(0.1_f32), f64::from(0.2_f32)];
    assert_eq!(value(ScalarType::C64, &[], |_| pair()).to_f64(), parts);
    assert_eq!(value(ScalarType::C128, &[], |_| pair()).to_f64(), [0.1, 0.2]);
    let scaled = |v: &[VarId]| Expr::scalar(v[0]) * pair();
    assert_eq!(value(ScalarType::C64, &[("a", 1.0_f32.into())], scaled).to_f64(), parts);
    assert_eq!(value(ScalarType::C128, &[("a", 1.0_f64.into())], scaled).to_f64(), [0.1, 0.2]);
}

#[test]
fn single_fma_rounds_once() {
    let (a, b) = (1.0 + f32::EPSILON, 1.0 - f32::EPSILON / 2.0);
    let got = value(F32, &[("a", a.into()), ("b", b.into())], |v| {
        Expr::call(MathFn::Fma, [Expr::scalar(v[0]), Expr::scalar(v[1]), Expr::from(-1.0)])
    });
    assert_eq!(got, Value::F32(vec![a.mul_add(b, -1.0)]));
}
