//! Loops, domains, reductions, predicates, updates.

use super::{F64, I32, Random, c};
use crate::{Memory, Observer, Value, interpret, interpret_with};
use kingpost_ir::{
    Access, Affine, BinaryOp, Constraint, Direction, Domain, Expr, InameId, InsnId, Kernel, KernelBuilder,
    TableData, UpdateOp, VarId,
};

/// Gather, small matrix-vector product, scatter: the shape of a finite-element action.
fn action(dofs: usize, matrix: &[f64]) -> Kernel {
    let mut b = KernelBuilder::new("action");
    let n = b.param("n", I32);
    let m = b.param("m", I32);
    let d = c(dofs as i64);
    let dof = b.argument("dof", I32, [Affine::var(n), d.clone()], Direction::In);
    let x = b.argument("x", F64, [Affine::var(m)], Direction::In);
    let y = b.argument("y", F64, [Affine::var(m)], Direction::InOut);
    let a = b.table("a", F64, [dofs, dofs], TableData::real(matrix.iter().copied()));
    let t = b.temporary("t", F64, [d.clone()]);
    let cell = b.open_loop("cell", c(0), Affine::var(n));
    let j = b.open_loop("j", c(0), d.clone());
    let gathered = Expr::load(x, [Expr::load(dof, [cell.into(), j.into()])]);
    b.assign("gather", Access::new(t, [j.into()]), gathered);
    b.close_loop();
    let i = b.open_loop("i", c(0), d.clone());
    let k = b.range("k", c(0), d);
    let product = Expr::load(a, [i.into(), k.into()]) * Expr::load(t, [k.into()]);
    let row = Access::new(y, [Expr::load(dof, [cell.into(), i.into()])]);
    b.update("scatter", row, UpdateOp::Add, Expr::reduce(UpdateOp::Add, [k], product));
    b.close_loop();
    b.close_loop();
    b.finish().unwrap()
}

#[test]
fn gather_product_scatter_is_that_of_plain_loops() {
    let mut random = Random::new();
    let (n, m, d) = (7, 13, 4);
    let matrix = random.reals(d * d);
    let dof: Vec<i32> = (0..n * d).map(|_| random.int(0, m as i64) as i32).collect();
    let (x, mut y) = (random.reals(m), random.reals(m));
    let mut memory = Memory::new().param("n", n as i64).param("m", m as i64);
    memory.set("dof", dof.clone());
    memory.set("x", x.clone());
    memory.set("y", y.clone());
    let run = interpret(&action(d, &matrix), &mut memory).unwrap();
    for cell in 0..n {
        for i in 0..d {
            let mut sum = 0.0;
            for k in 0..d {
                sum += matrix[i * d + k] * x[dof[cell * d + k] as usize];
            }
            y[dof[cell * d + i] as usize] += sum;
        }
    }
    // the same operations in the same order: equal to the bit
    assert_eq!(memory.f64s("y").unwrap(), y, "seed {}", random.seed);
    assert_eq!(run.flops() as usize, n * (2 * d * d + d));
    assert_eq!(run.instances["scatter"] as usize, n * d);
    assert_eq!(run.reads["dof"] as usize, 2 * n * d);
    assert_eq!((run.reads["y"] as usize, run.writes["y"] as usize), (n * d, n * d));
}

/// Instances of one instruction in the order they ran.
#[derive(Default)]
struct Trace(Vec<Vec<i64>>);

impl Observer for Trace {
    fn instance(&mut self, _: InsnId, point: &[i64]) {
        self.0.push(point.to_vec());
    }
}

type MakeDomain<'a> = &'a dyn Fn(&[InameId], &[VarId]) -> Domain;

/// The points of nested loops whose domains `domains` gives from the inames around and the own one.
fn points(params: &[(&str, i64)], domains: &[MakeDomain<'_>]) -> Vec<Vec<i64>> {
    let mut b = KernelBuilder::new("kernel_k");
    let vars: Vec<_> = params.iter().map(|(name, _)| b.param(*name, I32)).collect();
    let t = b.temporary("t", F64, []);
    let mut inames = Vec::new();
    for (depth, domain) in domains.iter().enumerate() {
        let iname = b.iname(format!("i{depth}"), |own| {
            inames.push(own);
            domain(&inames, &vars)
        });
        b.open(iname);
    }
    b.assign("s", Access::scalar(t), 0.0);
    domains.iter().for_each(|_| b.close_loop());
    let mut memory = Memory::new();
    params.iter().for_each(|(name, value)| memory.set_param(*name, *value));
    let mut trace = Trace::default();
    interpret_with(&b.finish().unwrap(), &mut memory, &mut trace, None).unwrap();
    trace.0
}

#[test]
fn triangle_with_steep_sides() {
    let n = Random::new().int(0, 12);
    let got = points(
        &[("n", n)],
        &[&|i, v| Domain::range(i[0], &c(0), &Affine::var(v[0])), &|i, _| {
            let (x, y) = (Affine::iname(i[0]), Affine::iname(i[1]));
            // x <= 3 y and 2 y <= x + 5
            Domain::conjunction([
                Constraint::le(&x, &y.times(3)),
                Constraint::le(&y.times(2), &x.plus_constant(5)),
            ])
        }],
    );
    let mut expected = Vec::new();
    for x in 0..n {
        expected.extend((-50..50).filter(|y| x <= 3 * y && 2 * y <= x + 5).map(|y| vec![x, y]));
    }
    assert_eq!(got, expected, "n = {n}");
}

#[test]
fn stride_and_union_in_ascending_order() {
    let n = Random::new().int(1, 40);
    let got = points(
        &[("n", n)],
        &[&|i, v| {
            let (x, n) = (Affine::iname(i[0]), Affine::var(v[0]));
            let below = Constraint::lt(&x, &n);
            let at_least = |lo| Constraint::le(&c(lo), &x);
            Domain::union([
                vec![at_least(-3), below.clone(), Constraint::equal(&x.modulo(3), &c(1))],
                vec![at_least(0), below, Constraint::le(&x, &n.floor_div(2))],
                vec![Constraint::equal(&x.times(2), &c(100))],
            ])
        }],
    );
    let member =
        |x: i64| (-3..n).contains(&x) && x.rem_euclid(3) == 1 || (0..n).contains(&x) && x <= n / 2 || x == 50;
    let expected: Vec<_> = (-10..60).filter(|x| member(*x)).map(|x| vec![x]).collect();
    assert_eq!(got, expected, "n = {n}");
}

#[test]
fn equality_without_integer_solution_gives_no_point() {
    let got = points(
        &[],
        &[&|i, _| Domain::range(i[0], &c(0), &c(6)), &|i, _| {
            let (x, y) = (Affine::iname(i[0]), Affine::iname(i[1]));
            Domain::conjunction([Constraint::equal(&y.times(-2), &x.plus_constant(-3))])
        }],
    );
    assert_eq!(got, [[1, 1], [3, 0], [5, -1]]);
}

#[test]
fn floor_in_a_check_sees_the_outer_iname() {
    let got = points(
        &[("n", 20)],
        &[&|i, _| Domain::range(i[0], &c(0), &c(4)), &|i, v| {
            let (x, y) = (Affine::iname(i[0]), Affine::iname(i[1]));
            Domain::conjunction([
                Constraint::le(&c(0), &y),
                Constraint::lt(&y, &Affine::var(v[0])),
                Constraint::equal(&y.plus(&x).floor_div(5), &x),
            ])
        }],
    );
    let mut expected = Vec::new();
    for x in 0..4_i64 {
        expected.extend((0..20).filter(|y| (x + y).div_euclid(5) == x).map(|y| vec![x, y]));
    }
    assert_eq!(got, expected);
}

#[test]
fn sparse_rows_take_their_bounds_from_scalars() {
    let mut b = KernelBuilder::new("spmv");
    let (n, nnz) = (b.param("n", I32), b.param("nnz", I32));
    let ptr = b.argument("ptr", I32, [Affine::var(n).plus_constant(1)], Direction::In);
    let col = b.argument("col", I32, [Affine::var(nnz)], Direction::In);
    let val = b.argument("val", F64, [Affine::var(nnz)], Direction::In);
    let x = b.argument("x", F64, [Affine::var(n)], Direction::In);
    let y = b.argument("y", F64, [Affine::var(n)], Direction::Out);
    let (lo, hi) = (b.temporary("lo", I32, []), b.temporary("hi", I32, []));
    let i = b.open_loop("i", c(0), Affine::var(n));
    b.assign("first", Access::scalar(lo), Expr::load(ptr, [i.into()]));
    b.assign("last", Access::scalar(hi), Expr::load(ptr, [Expr::from(i) + 1]));
    b.assign("zero", Access::new(y, [i.into()]), 0.0);
    let k = b.open_loop("k", Affine::var(lo), Affine::var(hi));
    let term = Expr::load(val, [k.into()]) * Expr::load(x, [Expr::load(col, [k.into()])]);
    b.update("row", Access::new(y, [i.into()]), UpdateOp::Add, term);
    b.close_loop();
    b.close_loop();
    let kernel = b.finish().unwrap();

    let mut random = Random::new();
    let n = 6;
    let mut ptr = vec![0_i32];
    for i in 0..n {
        ptr.push(ptr[i] + random.int(0, 4) as i32);
    }
    let nnz = ptr[n] as usize;
    let col: Vec<i32> = (0..nnz).map(|_| random.int(0, n as i64) as i32).collect();
    let (val, x) = (random.reals(nnz), random.reals(n));
    let mut y = vec![0.0; n];
    for i in 0..n {
        for k in ptr[i] as usize..ptr[i + 1] as usize {
            y[i] += val[k] * x[col[k] as usize];
        }
    }
    let mut memory = Memory::new().param("n", n as i64).param("nnz", nnz as i64);
    memory.set("ptr", ptr);
    memory.set("col", col);
    memory.set("val", val);
    memory.set("x", x);
    interpret(&kernel, &mut memory).unwrap();
    assert_eq!(memory.f64s("y").unwrap(), y, "seed {}", random.seed);
}

#[test]
fn reductions_of_every_operator_and_of_nothing() {
    let mut b = KernelBuilder::new("kernel_k");
    let n = b.param("n", I32);
    let x = b.argument("x", F64, [Affine::var(n), Affine::var(n)], Direction::In);
    let y = b.argument("y", F64, [c(4)], Direction::Out);
    for (k, op) in UpdateOp::OF_NUMBERS.into_iter().enumerate() {
        let i = b.range(format!("i{k}"), c(0), Affine::var(n));
        // j <= i: an inner reduction loop in the context of the outer one
        let j = b.range(format!("j{k}"), c(0), Affine::iname(i).plus_constant(1));
        let body = Expr::reduce(op, [i, j], Expr::load(x, [i.into(), j.into()]));
        b.assign(format!("s{k}"), Access::new(y, [Expr::Int(k as i64)]), body);
    }
    let kernel = b.finish().unwrap();
    let mut random = Random::new();
    let values = random.reals(25);
    let lower: Vec<f64> = (0..5).flat_map(|i| values[5 * i..=5 * i + i].to_vec()).collect();
    let mut memory = Memory::new().param("n", 5).value("x", values);
    interpret(&kernel, &mut memory).unwrap();
    let expected = [
        lower.iter().fold(0.0, |s, v| s + v),
        lower.iter().product(),
        lower.iter().copied().fold(f64::INFINITY, f64::min),
        lower.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    ];
    assert_eq!(memory.f64s("y").unwrap(), expected, "seed {}", random.seed);
    let mut memory = Memory::new().param("n", 0).value("x", Vec::<f64>::new());
    interpret(&kernel, &mut memory).unwrap();
    assert_eq!(memory.f64s("y").unwrap(), [0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY]);
}

#[test]
fn predicate_and_short_circuit_keep_reads_inside() {
    let mut b = KernelBuilder::new("shift");
    let n = b.param("n", I32);
    let x = b.argument("x", F64, [Affine::var(n)], Direction::In);
    let y = b.argument("y", F64, [Affine::var(n)], Direction::Out);
    let i = b.open_loop("i", c(0), Affine::var(n));
    let next = || Expr::load(x, [Expr::from(i) + 1]);
    let inside = || Expr::binary(BinaryOp::Lt, Expr::from(i) + 1, Expr::scalar(n));
    // i + 1 < n and x[i + 1] < 0
    let both = Expr::binary(BinaryOp::And, inside(), Expr::binary(BinaryOp::Lt, next(), 0.0));
    let value = Expr::Select(Box::new(inside()), Box::new(next()), Box::new(7.0.into()));
    let s = b.assign("s", Access::new(y, [i.into()]), value);
    b.insn_mut(s).predicate = Some(Expr::Unary(kingpost_ir::UnaryOp::Not, Box::new(both)));
    b.close_loop();
    let mut memory = Memory::new().param("n", 4).value("x", vec![1.0, -2.0, 3.0, 4.0]);
    memory.set("y", vec![9.0; 4]);
    let run = interpret(&b.finish().unwrap(), &mut memory).unwrap();
    assert_eq!(memory.f64s("y").unwrap(), [9.0, 3.0, 4.0, 7.0]);
    assert_eq!(run.instances["s"], 3);
    assert_eq!(run.unwritten["y"], 1);
}

#[test]
fn missing_out_arguments_are_made() {
    let mut b = KernelBuilder::new("kernel_k");
    let y = b.argument("y", I32, [], Direction::Out);
    b.assign("s", Access::scalar(y), 5);
    let mut memory = Memory::new();
    interpret(&b.finish().unwrap(), &mut memory).unwrap();
    assert_eq!(memory.get("y"), Some(&Value::I32(vec![5])));
}

#[test]
fn observer_sees_reads_before_the_write() {
    #[derive(Default)]
    struct Log(String);
    impl Observer for Log {
        fn enter_loop(&mut self, iname: InameId, point: &[i64]) {
            self.0 += &format!("for {iname:?}{point:?} ");
        }
        fn instance(&mut self, insn: InsnId, point: &[i64]) {
            self.0 += &format!("{insn:?}{point:?} ");
        }
        fn read(&mut self, var: VarId, element: usize) {
            self.0 += &format!("r{var:?}.{element} ");
        }
        fn write(&mut self, var: VarId, element: usize) {
            self.0 += &format!("w{var:?}.{element} ");
        }
    }
    let mut b = KernelBuilder::new("kernel_k");
    let x = b.argument("x", F64, [c(2)], Direction::In);
    let y = b.argument("y", F64, [c(1)], Direction::InOut);
    let i = b.open_loop("i", c(0), c(2));
    b.update("s", Access::new(y, [Expr::Int(0)]), UpdateOp::Max, Expr::load(x, [i.into()]));
    b.close_loop();
    let mut log = Log::default();
    let mut memory = Memory::new().value("x", vec![1.0, 2.0]).value("y", vec![1.5]);
    interpret_with(&b.finish().unwrap(), &mut memory, &mut log, None).unwrap();
    assert_eq!(log.0, "for i0[] s0[0] rv0.0 rv1.0 wv1.0 s0[1] rv0.1 rv1.0 wv1.0 ");
    assert_eq!(memory.f64s("y").unwrap(), [2.0]);
}
