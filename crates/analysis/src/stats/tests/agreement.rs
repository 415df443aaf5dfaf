//! Kernels of every shape at small random sizes.

use super::{F32, F64, I32, c, check, footprint};
use crate::stats::{AccessKind, OpKind};
use kingpost_interp::Memory;
use kingpost_ir::{
    Access, Affine, BinaryOp, Constraint, Direction, Domain, Expr, KernelBuilder, MathFn, Rule, UpdateOp,
};
use kingpost_sample::Random;

#[test]
fn triangle_reads_and_writes() {
    let n = Random::new().int(0, 30);
    let mut b = KernelBuilder::new("triangle");
    let size = b.param("n", I32);
    let n_by_n = [Affine::var(size), Affine::var(size)];
    let x = b.argument("x", F64, n_by_n.clone(), Direction::In);
    let y = b.argument("y", F64, n_by_n, Direction::Out);
    let z = b.argument("z", F64, [Affine::var(size)], Direction::InOut);
    let i = b.open_loop("i", c(0), Affine::var(size));
    let j = b.open_loop("j", c(0), Affine::iname(i).plus_constant(1));
    let at = || [i.into(), j.into()];
    b.assign("s", Access::new(y, at()), Expr::load(x, at()) * 2.0 + 1.0);
    // the row is not the column: j <= i is linked to the axis, i is not
    b.update("t", Access::new(z, [j.into()]), UpdateOp::Add, Expr::load(x, at()));
    b.close_loop();
    b.close_loop();
    let m = n as usize;
    let memory = Memory::new().param("n", n).value("x", vec![1.0; m * m]).value("z", vec![0.0; m]);
    let stats = check(&b.finish().unwrap(), &memory);
    assert!(stats.exact());
    assert_eq!(stats.flops() as i64, 3 * n * (n + 1) / 2);
    assert_eq!(footprint(&stats, "y", AccessKind::Write), ((m * (m + 1) / 2) as u64, true));
    assert_eq!(footprint(&stats, "z", AccessKind::Write), (m as u64, true), "needs a projection");
}

#[test]
fn strides_unions_and_floors() {
    let mut random = Random::new();
    let (n, step) = (random.int(1, 90), random.int(2, 7));
    let mut b = KernelBuilder::new("strided");
    let size = b.param("n", I32);
    let x = b.argument("x", F64, [Affine::var(size).times(2)], Direction::Out);
    let y = b.argument("y", F64, [Affine::var(size)], Direction::Out);
    let i = b.iname("i", |i| {
        let i = Affine::iname(i);
        let below = Constraint::lt(&i, &Affine::var(size));
        Domain::union([
            vec![Constraint::le(&c(0), &i), below.clone(), Constraint::equal(&i.modulo(step), &c(1))],
            vec![Constraint::le(&Affine::var(size).floor_div(2), &i), below],
        ])
    });
    b.open(i);
    b.assign("s", Access::new(x, [Expr::from(i) * 2]), 0.0);
    let third = Expr::binary(BinaryOp::FloorDiv, Expr::from(i), 3);
    b.assign("t", Access::new(y, [third]), 0.0);
    b.close_loop();
    let stats = check(&b.finish().unwrap(), &Memory::new().param("n", n));
    assert!(stats.exact() && stats.vars.iter().all(|v| v.touched_exact), "n {n}, step {step}");
}

#[test]
fn split_loop_with_a_partial_tile() {
    let n = Random::new().int(0, 200);
    let mut b = KernelBuilder::new("split");
    let size = b.param("n", I32);
    let x = b.argument("x", F64, [Affine::var(size), c(3)], Direction::Out);
    let o = b.open_loop("o", c(0), Affine::var(size).plus_constant(31).floor_div(32));
    let i = b.iname("i", |i| {
        let (o, i) = (Affine::iname(o), Affine::iname(i));
        let cell = o.times(32).plus(&i);
        Domain::conjunction([
            Constraint::le(&c(0), &i),
            Constraint::le(&i, &c(31)),
            Constraint::lt(&cell, &Affine::var(size)),
        ])
    });
    b.open(i);
    let j = b.open_loop("j", c(0), c(3));
    let cell = Expr::from(o) * 32 + Expr::from(i);
    b.assign("s", Access::new(x, [cell, j.into()]), 0.0);
    b.close_loop();
    b.close_loop();
    b.close_loop();
    let stats = check(&b.finish().unwrap(), &Memory::new().param("n", n));
    assert_eq!(footprint(&stats, "x", AccessKind::Write), (3 * n as u64, true));
}

#[test]
fn affine_conditions_are_exact_and_data_gives_a_bound() {
    let mut random = Random::new();
    let n = random.int(2, 20);
    let mut b = KernelBuilder::new("conditions");
    let size = b.param("n", I32);
    let x = b.argument("x", F64, [Affine::var(size)], Direction::In);
    let y = b.argument("y", F64, [Affine::var(size)], Direction::Out);
    let z = b.argument("z", F64, [Affine::var(size)], Direction::Out);
    let i = b.open_loop("i", c(0), Affine::var(size));
    let own = || Expr::load(x, [i.into()]);
    let is = |op, a: Expr, b: Expr| Expr::binary(op, a, b);
    let inside = || is(BinaryOp::Lt, Expr::from(i) + 1, Expr::scalar(size));
    let next = Expr::load(x, [Expr::from(i) + 1]);
    let value = Expr::Select(Box::new(inside()), Box::new(next * 2.0), Box::new(own() / 3.0));
    let s = b.assign("s", Access::new(y, [i.into()]), value);
    let odd = is(BinaryOp::Ne, is(BinaryOp::Mod, i.into(), 2.into()), 0.into());
    let last = is(BinaryOp::Eq, i.into(), Expr::scalar(size) - 1);
    b.insn_mut(s).predicate = Some(is(BinaryOp::Or, odd, last));
    let t = b.assign("t", Access::new(z, [i.into()]), own() + 1.0);
    let positive = is(BinaryOp::Le, 0.0.into(), own());
    b.insn_mut(t).predicate = Some(is(BinaryOp::And, inside(), positive));
    b.close_loop();
    let kernel = b.finish().unwrap();
    let memory = Memory::new().param("n", n).value("x", random.reals(n as usize));
    let stats = check(&kernel, &memory);
    assert!(stats.insns[0].exact && !stats.insns[1].exact, "seed {}", random.seed);
    assert_eq!(stats.ops_of(OpKind::Mul, F64) as i64, n / 2 - i64::from(n % 2 == 0), "i odd, i + 1 < n");
    assert_eq!(stats.ops_of(OpKind::Div, F64), 1, "i + 1 == n");
    assert_eq!(stats.insns[1].instances as i64, n - 1, "the affine half of the condition");
}

#[test]
fn gather_is_bounded_by_the_array() {
    let mut random = Random::new();
    let (n, m) = (9, 5);
    let mut b = KernelBuilder::new("gather");
    let map = b.argument("map", I32, [c(n)], Direction::In);
    let x = b.argument("x", F32, [c(m)], Direction::In);
    let y = b.argument("y", F32, [c(100)], Direction::InOut);
    let i = b.open_loop("i", c(0), c(n));
    let through = || [Expr::load(map, [i.into()])];
    b.update("s", Access::new(y, through()), UpdateOp::Max, Expr::load(x, through()) * 3.0);
    b.close_loop();
    let memory = Memory::new()
        .value("map", (0..n).map(|_| random.int(0, m) as i32).collect::<Vec<_>>())
        .value("x", vec![1.0_f32; m as usize])
        .value("y", vec![0.0_f32; 100]);
    let stats = check(&b.finish().unwrap(), &memory);
    assert_eq!(footprint(&stats, "x", AccessKind::Read), (5, false), "the array");
    assert_eq!(footprint(&stats, "y", AccessKind::Write), (9, false), "the accesses");
    assert_eq!(footprint(&stats, "map", AccessKind::Read), (9, true));
    assert_eq!(stats.ops_of(OpKind::MinMax, F32), 9);
}

#[test]
fn reductions_rules_and_functions() {
    let mut random = Random::new();
    let (n, m) = (random.int(0, 7), random.int(0, 7));
    let mut b = KernelBuilder::new("reductions");
    let (rows, columns) = (b.param("n", I32), b.param("m", I32));
    let a = b.argument("a", F64, [Affine::var(rows), Affine::var(columns)], Direction::In);
    let y = b.argument("y", F64, [Affine::var(rows)], Direction::Out);
    let square = b.rule(Rule {
        name: "square".into(),
        params: vec!["x".into()],
        body: Expr::RuleParam(0) * Expr::RuleParam(0),
    });
    let i = b.open_loop("i", c(0), Affine::var(rows));
    let j = b.range("j", c(0), Affine::var(columns));
    let entry = Expr::call(MathFn::Fma, [Expr::load(a, [i.into(), j.into()]), 2.0.into(), 1.0.into()]);
    let norm = Expr::reduce(UpdateOp::Add, [j], Expr::Rule(square, vec![-entry]));
    b.assign("s", Access::new(y, [i.into()]), Expr::call(MathFn::Sqrt, [norm]));
    b.close_loop();
    let memory = Memory::new().param("n", n).param("m", m).value("a", random.reals((n * m) as usize));
    let stats = check(&b.finish().unwrap(), &memory);
    // two fma, one product, one sum a point; one root a row
    assert_eq!(stats.flops() as i64, n * (m * (2 * 2 + 1 + 1) + 1));
    assert_eq!(stats.var("a").unwrap().reads.accesses as i64, 2 * n * m);
}

/// Two and three nested loops whose bounds are random affine functions of the loops around, and
/// random affine accesses.
#[test]
fn random_nests() {
    let mut random = Random::new();
    for _ in 0..150 {
        let mut b = KernelBuilder::new("nest");
        let x = b.argument("x", F64, [c(400)], Direction::InOut);
        let depth = random.int(1, 4);
        let mut outer = Vec::new();
        for d in 0..depth {
            let mut lo = c(random.int(-3, 3));
            let mut hi = c(random.int(-1, 9));
            for i in &outer {
                lo = lo.plus(&Affine::iname(*i).times(random.int(-1, 2)));
                hi = hi.plus(&Affine::iname(*i).times(random.int(-1, 2)).floor_div(random.int(1, 3)));
            }
            let (factor, parity) = (random.int(1, 3), random.int(1, 4));
            let iname = b.iname(format!("i{d}"), |own| {
                let own = Affine::iname(own);
                let mut all =
                    vec![Constraint::le(&lo, &own.times(factor)), Constraint::lt(&own.times(factor), &hi)];
                if parity > 1 {
                    let mut sum = own.clone();
                    outer.iter().for_each(|i| sum = sum.plus(&Affine::iname(*i)));
                    all.push(Constraint::equal(&sum.modulo(parity), &c(0)));
                }
                Domain::conjunction(all)
            });
            b.open(iname);
            outer.push(iname);
        }
        let mut index =
            |base: i64| outer.iter().fold(Expr::Int(base), |e, i| e + Expr::from(*i) * random.int(-3, 4));
        let (write, read) = (index(200), index(210));
        b.update("s", Access::new(x, [write]), UpdateOp::Add, Expr::load(x, [read]));
        outer.iter().for_each(|_| b.close_loop());
        let kernel = b.finish().unwrap();
        let stats = check(&kernel, &Memory::new().value("x", vec![0.0; 400]));
        assert!(stats.exact() && stats.vars[0].touched_exact, "seed {}: {kernel:?}", random.seed);
    }
}
