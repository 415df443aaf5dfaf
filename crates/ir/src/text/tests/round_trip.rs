//! `parse(print(k)) == k` on kernels made by hand, one for each part of the format.

use crate::affine::Affine;
use crate::constant::{Real, TableData};
use crate::domain::{Constraint, Domain};
use crate::expr::{Access, BinaryOp, Expr, MathFn, UnaryOp, UpdateOp};
use crate::ids::InameId;
use crate::kernel::{AddressSpace, Assumption, AxisTag, Direction, Kernel, Rule, VarKind, Variable, WriteOp};
use crate::places::{Layout, Places};
use crate::text::{format, parse, print};
use crate::types::ScalarType;
use crate::{Atom, KernelBuilder};

#[track_caller]
pub(super) fn round_trips(kernel: &Kernel) {
    let text = print(kernel);
    match parse(&text) {
        Ok(again) => {
            assert_eq!(&again, kernel, "{text}");
            assert_eq!(again.content_hash(), kernel.content_hash());
            assert_eq!(format(&text).expect("it was parsed"), text);
        }
        Err(errors) => panic!("{}\n{text}", errors.render(&text)),
    }
}

/// A kernel that stores one expression of type `f64` in a scalar.
pub(super) fn storing(make: impl FnOnce(&mut KernelBuilder, InameId) -> Expr) -> Kernel {
    let mut b = KernelBuilder::new("k");
    let n = b.param("n", ScalarType::I64);
    let t = b.temporary("t", ScalarType::F64, []);
    let i = b.range("i", Affine::constant(0), Affine::var(n));
    b.open(i);
    let value = make(&mut b, i);
    b.assign("s", Access::scalar(t), value);
    b.close_loop();
    b.finish().expect("well formed")
}

/// A kernel with one loop over a domain.
pub(super) fn looping(make: impl FnOnce(InameId, &Affine) -> Domain) -> Kernel {
    let mut b = KernelBuilder::new("k");
    let n = b.param("n", ScalarType::I32);
    let t = b.temporary("t", ScalarType::F64, []);
    let i = b.iname("i", |i| make(i, &Affine::var(n)));
    b.open(i);
    b.assign("s", Access::scalar(t), 1.0);
    b.close_loop();
    b.finish().expect("well formed")
}

#[test]
fn empty_kernel() {
    round_trips(&KernelBuilder::new("nothing").finish().expect("well formed"));
}

#[test]
fn empty_loops() {
    let mut b = KernelBuilder::new("k");
    b.open_loop("i", Affine::constant(0), Affine::constant(3));
    b.open_loop("j", Affine::constant(0), Affine::constant(3));
    b.close_loop();
    b.open_loop("l", Affine::constant(0), Affine::constant(3));
    b.close_loop();
    b.close_loop();
    b.open_loop("m", Affine::constant(0), Affine::constant(3));
    b.close_loop();
    round_trips(&b.finish().expect("well formed"));
}

#[test]
fn literals() {
    let reals = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        0.1,
        1e-7,
        1e16,
        1e300,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        f64::MIN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7ff0_0000_0000_0001),
        1.0 / 3.0,
    ];
    for x in reals {
        round_trips(&storing(|_, _| Expr::from(x)));
        round_trips(&storing(|_, _| -Expr::from(x)));
        round_trips(&storing(|_, _| Expr::from(1.0) - Expr::from(x)));
    }
    for x in [0, 1, -1, i64::MAX, i64::MIN, 1 << 40] {
        round_trips(&storing(|_, _| Expr::from(x)));
        round_trips(&storing(|_, _| -Expr::from(x) * x - x));
    }
}

#[test]
fn brackets_keep_the_tree() {
    let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Min, BinaryOp::Max];
    for outer in ops {
        for inner in ops {
            let pair = |op| Expr::binary(op, 1.5, 2.5);
            round_trips(&storing(|_, _| Expr::binary(outer, pair(inner), 3.5)));
            round_trips(&storing(|_, _| Expr::binary(outer, 3.5, pair(inner))));
            round_trips(&storing(|_, _| -Expr::binary(outer, -pair(inner), -(-pair(inner)))));
        }
    }
}

#[test]
fn integer_operators_keep_the_tree() {
    let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::FloorDiv, BinaryOp::Mod, BinaryOp::Max];
    for outer in ops {
        for inner in ops {
            let cast = |e| Expr::Cast(ScalarType::F64, Box::new(e));
            round_trips(&storing(|_, i| cast(Expr::binary(outer, Expr::binary(inner, i, 5), 7))));
            round_trips(&storing(|_, i| cast(Expr::binary(outer, 7, Expr::binary(inner, i, -5)))));
            round_trips(&storing(|_, i| {
                cast(Expr::binary(outer, -Expr::from(i), Expr::binary(inner, 2, i)))
            }));
        }
    }
}

#[test]
fn conditions_keep_the_tree() {
    let less = |i: InameId, c: i64| Expr::binary(BinaryOp::Lt, i, c);
    let not = |e: Expr| Expr::Unary(UnaryOp::Not, Box::new(e));
    let select = |c: Expr| Expr::Select(Box::new(c), Box::new(1.0.into()), Box::new((-1.0).into()));
    for outer in [BinaryOp::And, BinaryOp::Or] {
        for inner in [BinaryOp::And, BinaryOp::Or] {
            let pair = |i| Expr::binary(inner, less(i, 1), not(less(i, 2)));
            round_trips(&storing(|_, i| select(Expr::binary(outer, pair(i), less(i, 3)))));
            round_trips(&storing(|_, i| select(Expr::binary(outer, not(less(i, 3)), not(pair(i))))));
            round_trips(&storing(|_, i| select(not(not(Expr::binary(outer, less(i, 3), pair(i)))))));
        }
    }
    for op in [BinaryOp::Le, BinaryOp::Eq, BinaryOp::Ne] {
        round_trips(&storing(|_, i| select(Expr::binary(op, Expr::from(i) + 1, Expr::from(i) * 2))));
    }
}

#[test]
fn every_function() {
    for function in MathFn::of_reals() {
        let args = (0..function.arity()).map(|k| Expr::from(k as f64)).collect::<Vec<_>>();
        round_trips(&storing(|_, _| Expr::call(function, args)));
    }
}

#[test]
fn reductions() {
    for op in UpdateOp::OF_NUMBERS {
        round_trips(&storing(|b, i| {
            let q = b.range("q", Affine::constant(0), Affine::iname(i));
            let r = b.iname("r", |r| {
                let even = Constraint::equal(&Affine::iname(r).modulo(2), &Affine::constant(0));
                Domain::range(r, &Affine::constant(0), &Affine::iname(q))
                    .intersect(&Domain::conjunction([even]))
            });
            b.tag(r, AxisTag::Unrolled);
            let inner = b.range("p", Affine::constant(0), Affine::iname(r));
            let cast = |i: InameId| Expr::Cast(ScalarType::F64, Box::new(i.into()));
            let deepest = Expr::reduce(op, [inner], cast(inner) * cast(q));
            Expr::reduce(op, [q, r], deepest + 1.0) + Expr::reduce(op, [], Expr::from(2.0))
        }));
    }
}

#[test]
fn domains() {
    let a = Affine::constant;
    let i_ = Affine::iname;
    round_trips(&looping(|i, n| Domain::range(i, &a(0), n)));
    round_trips(&looping(|i, n| Domain::range(i, &n.times(-3).plus_constant(2), &n.times(2))));
    round_trips(&looping(|i, n| Domain::range(i, &a(0), &n.plus_constant(3).floor_div(4))));
    let scaled =
        |i, c: i64, n: &Affine| [Constraint::le(&a(2), &i_(i).times(c)), Constraint::lt(&i_(i).times(c), n)];
    round_trips(&looping(|i, n| Domain::conjunction(scaled(i, 4, n))));
    round_trips(&looping(|i, n| Domain::conjunction(scaled(i, 3, &n.times(2).minus(&n.floor_div(5))))));
    round_trips(&looping(|i, _| Domain::conjunction([Constraint::equal(&i_(i), &a(4))])));
    round_trips(&looping(|i, n| {
        Domain::conjunction([Constraint::equal(&i_(i).times(2), &n.plus_constant(-1))])
    }));
    round_trips(&looping(|i, n| Domain::conjunction([Constraint::le(&i_(i), n)])));
    round_trips(&looping(|i, n| {
        let outside = Constraint::le(&a(1), n);
        Domain::range(i, &a(0), n).intersect(&Domain::conjunction([outside]))
    }));
    round_trips(&looping(|i, n| {
        let remainder = Constraint::lt(&i_(i).times(5).plus(n).modulo(7), &a(3));
        Domain::range(i, &a(0), n).intersect(&Domain::conjunction([remainder]))
    }));
    round_trips(&looping(|i, n| {
        let nested = i_(i).floor_div(3).plus(n).modulo(4).floor_div(2);
        Domain::range(i, &a(0), n).intersect(&Domain::conjunction([Constraint::equal(&nested, &a(1))]))
    }));
    round_trips(&looping(|i, n| Domain::range(i, &a(0), &a(3)).intersect(&Domain::range(i, &a(-1), n))));
    round_trips(&looping(|_, _| Domain::union([])));
    round_trips(&looping(|i, n| {
        Domain::union([
            vec![Constraint::le(&a(0), &i_(i)), Constraint::lt(&i_(i), &a(3))],
            vec![Constraint::equal(&i_(i), n)],
            vec![Constraint::le(&n.plus_constant(2), &i_(i)), Constraint::le(&i_(i), &n.times(3))],
        ])
    }));
}

#[test]
fn unions_larger_than_expressions_are_deep() {
    let points = (0..1000).map(|k| vec![Constraint::equal(&Affine::constant(3 * k), &Affine::default())]);
    drop(points);
    round_trips(&looping(|i, _| {
        Domain::union((0..900).map(|k| vec![Constraint::equal(&Affine::iname(i), &Affine::constant(3 * k))]))
    }));
}

#[test]
fn constraints_built_by_hand_take_the_normal_form() {
    let mut b = KernelBuilder::new("k");
    let n = b.param("n", ScalarType::I32);
    b.assume(Assumption::Params(Constraint::NonNegative(Affine::var(n).times(4).plus_constant(-6))));
    b.assume(Assumption::Params(Constraint::Zero(Affine::var(n).times(-2).plus_constant(6))));
    b.assume(Assumption::Params(Constraint::NonNegative(Affine::constant(-7))));
    b.assume(Assumption::Params(Constraint::Zero(Affine::constant(7))));
    b.iname("i", |i| {
        Domain::conjunction([Constraint::NonNegative(Affine::iname(i).times(-4).plus_constant(9))])
    });
    let i = b.so_far().iname("i").expect("declared");
    b.open(i);
    b.close_loop();
    let kernel = b.finish().expect("well formed");
    let expected = Constraint::NonNegative(Affine::var(n).plus_constant(-2));
    assert_eq!(kernel.assumptions[0], Assumption::Params(expected));
    round_trips(&kernel);
}

#[test]
fn coefficients_at_the_bound() {
    let most = crate::affine::MAX_COEFFICIENT;
    round_trips(&looping(|i, n| {
        Domain::range(i, &n.times(-most).plus_constant(most), &n.times(most).plus_constant(1 - most))
    }));
}

#[test]
fn variables() {
    let mut b = KernelBuilder::new("k");
    let n = b.param("n", ScalarType::I64);
    let mut axes = vec![Affine::var(n).plus_constant(3).floor_div(4).times(4), Affine::constant(9)];
    for (k, direction) in [Direction::In, Direction::Out, Direction::InOut].into_iter().enumerate() {
        b.argument(format!("a{k}"), ScalarType::F32, axes.clone(), direction);
        b.argument(format!("b{k}"), ScalarType::I32, [], direction);
    }
    for space in [AddressSpace::Global, AddressSpace::Local, AddressSpace::Private] {
        let temporary = || {
            Variable::new(
                format!("t_{}", space.name()),
                ScalarType::F64,
                VarKind::Temporary,
                axes.clone(),
                space,
            )
        };
        let mut strided = temporary();
        strided.layout = Layout {
            places: Places::Strides([9, 1].map(Affine::constant).into()),
            vector_axis: Some(1),
            swizzle: None,
        };
        strided.storage = Some("shared".into());
        b.variable(strided);
        let mut odd = temporary();
        odd.name += "_odd";
        odd.layout.places = Places::Order(vec![1, 0]);
        odd.storage = Some("two words, \"quoted\" \\ and\na line break \u{1F600}".into());
        b.variable(odd);
    }
    let mut scalar = Variable::new("c", ScalarType::F64, VarKind::Temporary, [], AddressSpace::Global);
    scalar.layout.places = Places::Strides(Vec::new());
    b.variable(scalar);
    axes.truncate(1);
    let dof = b.argument("dof", ScalarType::I32, axes, Direction::In);
    b.assume(Assumption::Injective(dof));
    round_trips(&b.finish().expect("well formed"));
}

#[test]
fn tables() {
    let mut b = KernelBuilder::new("k");
    let reals = (0..60).map(|k| f64::from(k) / 7.0 - 3.0);
    b.table("p", ScalarType::F64, [3, 20], TableData::real(reals.clone()));
    b.table("q", ScalarType::F32, [60], TableData::real(reals.map(|x| f64::from(x as f32))));
    b.table("i", ScalarType::I32, [2, 2], TableData::int([i64::from(i32::MIN), 0, -1, i64::from(i32::MAX)]));
    b.table("l", ScalarType::I64, [2], TableData::int([i64::MIN, i64::MAX]));
    b.table("none", ScalarType::F64, [0, 3], TableData::real([]));
    b.table("one", ScalarType::F64, [], TableData::real([0.5]));
    let odd =
        [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::from_bits(0x7ff0_0000_0000_0001)];
    b.table("odd", ScalarType::F64, [6], TableData::real(odd));
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::from(f32::MIN_POSITIVE)];
    b.table("odd32", ScalarType::F32, [5], TableData::real(odd));
    let pairs = [[0.1, -0.0], [f64::NAN, f64::NEG_INFINITY], [-1.5, 1e300]];
    b.table("z", ScalarType::C128, [1, 3], TableData::complex(pairs));
    b.table(
        "z32",
        ScalarType::C64,
        [2],
        TableData::complex([[f64::from(0.1_f32), -0.0], [-2.5, f64::INFINITY]]),
    );
    let mut table = Variable::new(
        "c",
        ScalarType::F64,
        VarKind::Table(TableData::Real([Real(1.0)].into())),
        [Affine::constant(1)],
        AddressSpace::Constant,
    );
    table.storage = Some("atomic".into());
    b.variable(table);
    round_trips(&b.finish().expect("well formed"));
}

/// Of complex numbers there are those without a part, too.
#[test]
fn parts_of_complex_numbers() {
    let kernel = crate::text::parse(
        "kernel k\n\narg y: c64[6] inout\ntable z: c64[6]\n\nfor i in 0..6\n  s: y[i] = z[i]\n\n\
         table z = [complex(1.0, -2), 3, -0.5, 2.0i, -2.5i, complex(-0.0, inf)]\n",
    )
    .expect("well formed");
    let pairs = [[1.0, -2.0], [3.0, 0.0], [-0.5, 0.0], [0.0, 2.0], [-0.0, -2.5], [-0.0, f64::INFINITY]];
    let table = &kernel.vars[kernel.var("z").expect("declared")];
    assert_eq!(table.kind, VarKind::Table(TableData::complex(pairs)));
    round_trips(&kernel);
}

#[test]
fn rules() {
    let mut b = KernelBuilder::new("k");
    let u = b.argument("u", ScalarType::F64, [Affine::constant(4)], Direction::In);
    let param = Expr::RuleParam;
    let body = Expr::load(u, [param(1)]) * param(0);
    let first = b.rule(Rule { name: "first".into(), params: vec!["a".into(), "i".into()], body });
    let body = Expr::Rule(first, vec![2.0.into(), 3.into()]) + 1.0;
    let second = b.rule(Rule { name: "second".into(), params: Vec::new(), body });
    let t = b.temporary("t", ScalarType::F64, []);
    // a parameter of a rule may be called as a loop is
    let i = b.open_loop("i", Affine::constant(0), Affine::constant(4));
    let value = Expr::Rule(first, vec![1.5.into(), i.into()]) + Expr::Rule(second, Vec::new());
    b.assign("s", Access::scalar(t), value);
    b.close_loop();
    round_trips(&b.finish().expect("well formed"));
}

#[test]
fn instructions() {
    let mut b = KernelBuilder::new("k");
    let x = b.argument("x", ScalarType::F64, [Affine::constant(4)], Direction::InOut);
    let dof = b.argument("dof", ScalarType::I32, [Affine::constant(4)], Direction::In);
    let i = b.open_loop("i", Affine::constant(0), Affine::constant(4));
    b.tag(i, AxisTag::Local(2));
    let at = || Access::new(x, [Expr::load(dof, [i.into()])]);
    for (k, op) in UpdateOp::OF_NUMBERS.into_iter().enumerate() {
        let s = b.update(format!("s{k}"), at(), op, 0.5);
        b.insn_mut(s).predicate = Some(Expr::binary(BinaryOp::Lt, i, 3));
        for tag in ["atomic", "scatter", "9 lives", "", "é", "\u{7}\t"].into_iter().take(k + 3) {
            b.label(s, tag);
        }
    }
    for (k, atomic) in [(4, true), (5, false)] {
        let s = b.update(format!("s{k}"), at(), UpdateOp::Add, 0.5);
        b.insn_mut(s).op = WriteOp::Update { op: UpdateOp::Add, atomic };
    }
    b.close_loop();
    round_trips(&b.finish().expect("well formed"));
}

#[test]
fn every_axis_tag() {
    let mut b = KernelBuilder::new("k");
    // launches come first: they stand in untagged loops
    for (k, tag) in AxisTag::ALL.into_iter().rev().enumerate() {
        let i = b.open_loop(format!("i{k}"), Affine::constant(0), Affine::constant(4));
        b.tag(i, tag);
    }
    for _ in AxisTag::ALL {
        b.close_loop();
    }
    round_trips(&b.finish().expect("well formed"));
}

#[test]
fn bounds_by_integer_scalars() {
    let mut b = KernelBuilder::new("csr");
    let n = b.param("n", ScalarType::I32);
    let start = b.argument("start", ScalarType::I32, [Affine::var(n).plus_constant(1)], Direction::In);
    let (lo, hi) = (b.temporary("lo", ScalarType::I32, []), b.temporary("hi", ScalarType::I64, []));
    let t = b.temporary("t", ScalarType::F64, []);
    let i = b.open_loop("i", Affine::constant(0), Affine::var(n));
    b.assign("s_lo", Access::scalar(lo), Expr::load(start, [i.into()]));
    b.assign("s_hi", Access::scalar(hi), Expr::load(start, [Expr::from(i) + 1]));
    b.open_loop("k", Affine::var(lo), Affine::var(hi));
    b.update("s", Access::scalar(t), UpdateOp::Add, 1.0);
    b.close_loop();
    b.close_loop();
    let kernel = b.finish().expect("well formed");
    let k = kernel.iname("k").expect("declared");
    assert!(kernel.inames[k].domain.as_range(k).is_some_and(|(l, _)| l.coefficient(&Atom::Var(lo)) == 1));
    round_trips(&kernel);
}

#[test]
fn deepest_expressions() {
    let right = |depth: usize| (1..depth).fold(Expr::from(0.5), |e, _| Expr::from(1.5) + e);
    let left = |depth: usize| (1..depth).fold(Expr::from(0.5), |e, _| e * 1.5);
    let calls = |depth: usize| (1..depth).fold(Expr::from(0.5), |e, _| Expr::call(MathFn::Sin, [e]));
    let negations = |depth: usize| (1..depth).fold(Expr::from(0.5), |e, _| -e);
    for make in [&right as &dyn Fn(usize) -> Expr, &left, &calls, &negations] {
        round_trips(&storing(|_, _| make(crate::depth::MAX_DEPTH)));
    }
    let sum =
        |terms: usize| (1..terms).fold(Expr::from(0.5), |e, k| if k % 2 == 0 { e + 1.5 } else { e - 0.5 });
    for make in [&left as &dyn Fn(usize) -> Expr, &sum] {
        round_trips(&storing(|_, _| make(crate::depth::MAX_PATH)));
    }
    // a chain in brackets counts once for each of them
    let product = |terms: usize| Expr::from(2.0) * sum(terms);
    round_trips(&storing(|_, _| product(crate::depth::MAX_PATH - 1)));
}
