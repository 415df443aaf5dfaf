//! Every refusal, word by word.

use super::{F32, F64, I32, I64, c};
use crate::{Memory, check_launch, interpret, interpret_with};
use kingpost_ir::{
    Access, Affine, Assumption, AxisImage, BinaryOp, Constraint, Direction, Domain, Expr, Kernel,
    KernelBuilder, ScalarType, Symmetry, UpdateOp, VarId,
};

fn refusal(kernel: &Kernel, mut memory: Memory) -> String {
    let before = memory.clone();
    let message = interpret(kernel, &mut memory).unwrap_err().to_string();
    assert_eq!(memory, before, "a refused run changes nothing");
    message
}

/// `for cell: for j: t[cell, j] = value` with a shape of 4 by 8 and domains of 4 by `j_end`.
fn nest(j_end: i64, ty: ScalarType, rhs: impl Fn(VarId, Expr, Expr) -> Expr) -> Kernel {
    let mut b = KernelBuilder::new("kernel_k");
    let t = b.temporary("t", ty, [c(4), c(8)]);
    let cell = b.open_loop("cell", c(0), c(4));
    let j = b.open_loop("j", c(0), c(j_end));
    b.assign("gather", Access::new(t, [cell.into(), j.into()]), rhs(t, cell.into(), j.into()));
    b.close_loop();
    b.close_loop();
    b.finish().unwrap()
}

#[test]
fn undefined_element() {
    let kernel = nest(8, F64, |t, cell, j| Expr::load(t, [cell, j]));
    let needed = "`gather[cell=0, j=0]` reads `t[0, 0]`, which nothing has written; write it before";
    assert_eq!(refusal(&kernel, Memory::new()), needed);
    // half of a row is written: the first element after it
    let half = nest(8, F64, |t, cell, j| {
        let before = Expr::binary(BinaryOp::Lt, j.clone(), 7);
        let next = Expr::load(t, [cell, j + 1]);
        Expr::Select(
            Box::new(Expr::binary(BinaryOp::Lt, Expr::Int(2), 1)),
            Box::new(next.clone()),
            Box::new(Expr::Select(Box::new(before), Box::new(0.0.into()), Box::new(next))),
        )
    });
    assert_eq!(
        refusal(&half, Memory::new()),
        "`gather[cell=0, j=7]` accesses `t[0, 8]`, needed an index inside shape [4, 8]"
    );
}

#[test]
fn out_argument_starts_undefined() {
    let mut b = KernelBuilder::new("kernel_k");
    let y = b.argument("y", F64, [], Direction::Out);
    b.update("s", Access::scalar(y), UpdateOp::Add, 1.0);
    let memory = Memory::new().value("y", 3.0);
    assert_eq!(
        refusal(&b.finish().unwrap(), memory),
        "`s` reads `y`, which nothing has written; write it before"
    );
}

#[test]
fn out_of_bounds_write() {
    let kernel = nest(9, F64, |_, _, _| 0.0.into());
    assert_eq!(
        refusal(&kernel, Memory::new()),
        "`gather[cell=0, j=8]` accesses `t[0, 8]`, needed an index inside shape [4, 8]"
    );
}

#[test]
fn reduction_point_is_named() {
    let mut b = KernelBuilder::new("kernel_k");
    let x = b.argument("x", F64, [c(3)], Direction::In);
    let y = b.argument("y", F64, [c(2)], Direction::Out);
    let i = b.open_loop("i", c(0), c(2));
    let k = b.range("k", c(0), c(4));
    let sum = Expr::reduce(UpdateOp::Add, [k], Expr::load(x, [Expr::from(k) - 1]));
    b.assign("s", Access::new(y, [i.into()]), sum);
    b.close_loop();
    assert_eq!(
        refusal(&b.finish().unwrap(), Memory::new().value("x", vec![0.0; 3])),
        "`s[i=0, k=0]` accesses `x[-1]`, needed an index inside shape [3]"
    );
}

#[test]
fn overflow_of_stores_arithmetic_and_casts() {
    let kernel = nest(2, I32, |_, cell, j| (cell + j) * (1_i64 << 31));
    let needed = "`gather[cell=0, j=1]`: 2147483648, stored in `t[0, 1]` does not fit `i32`";
    assert_eq!(refusal(&kernel, Memory::new()), needed);
    let kernel = nest(2, I64, |_, cell, j| (cell + j) * i64::MAX * 2);
    let needed = "`gather[cell=0, j=1]`: 9223372036854775807 * 2 does not fit 64 bits";
    assert_eq!(refusal(&kernel, Memory::new()), needed);
    let kernel = nest(2, I64, |_, _, _| Expr::Cast(I32, Box::new(Expr::from(3e9))));
    assert_eq!(refusal(&kernel, Memory::new()), "`gather[cell=0, j=0]`: 3000000000 does not fit `i32`");
    let kernel = nest(2, I64, |_, _, _| Expr::Cast(I64, Box::new(Expr::from(f64::NAN))));
    assert_eq!(refusal(&kernel, Memory::new()), "`gather[cell=0, j=0]`: NaN does not fit `i64`");
}

#[test]
fn operations_on_elements_have_a_result_of_their_type() {
    let kernel = |rhs: &str| {
        let text = format!(
            "kernel k\n\nparam n: i32\narg x: i32[2] in\narg y: i64[1] out\ntemp t: i32 private\n\n\
             t0: t = x[0]\nfor i in 0..1\n  s: y[i] = {rhs}\n"
        );
        kingpost_ir::text::parse(&text).unwrap()
    };
    let memory = || Memory::new().param("n", i64::from(i32::MAX)).value("x", vec![i32::MAX, 1]);
    let refused = |rhs: &str, value: &str| {
        assert_eq!(refusal(&kernel(rhs), memory()), format!("`s[i=0]`: {value} does not fit `i32`"));
    };
    refused("x[0] + x[1]", "2147483648");
    refused("-x[0] - 2", "-2147483649");
    refused("-(min(-x[0] - 1, x[1]))", "2147483648");
    refused("n*x[0] - n*x[0]", "4611686014132420609");
    let sum = refusal(&kernel("sum(j in 0..2: x[j])"), memory());
    assert_eq!(sum, "`s[i=0, j=1]`: 2147483648 does not fit `i32`");
    refused("select(x[0] + x[1] > 0, 1, 0)", "2147483648");
    let value = |rhs: &str| {
        let mut memory = memory();
        interpret(&kernel(rhs), &mut memory).unwrap();
        memory.get("y").and_then(crate::Value::to_i64).unwrap()[0]
    };
    // of 64 bits, of loops, parameters and scalars, and of indices
    assert_eq!(value("i64(x[0]) + x[1]"), 1 << 31);
    assert_eq!(value("n + i + t + 1"), 2 * i64::from(i32::MAX) + 1);
    assert_eq!(value("x[0] + i + 5000000000"), i64::from(i32::MAX) + 5_000_000_000);
    assert_eq!(value("n*n"), i64::from(i32::MAX) * i64::from(i32::MAX));
    assert_eq!(value("x[x[0] + x[1] - x[0]]"), 1);
    assert_eq!(value("maximum(j in 0..2: x[j])"), i64::from(i32::MAX));
}

#[test]
fn division_by_zero() {
    for (op, name) in [(BinaryOp::FloorDiv, "floor_div"), (BinaryOp::Mod, "mod")] {
        let kernel = nest(2, I64, |_, cell, j| Expr::binary(op, cell, Expr::Int(1) - j));
        assert_eq!(refusal(&kernel, Memory::new()), format!("`gather[cell=0, j=1]`: `{name}` by zero"));
    }
}

#[test]
fn unbounded_loop() {
    let mut b = KernelBuilder::new("kernel_k");
    let t = b.temporary("t", F64, []);
    b.open_loop("i", c(0), c(2));
    let j = b.iname("j", |j| {
        let j = Affine::iname(j);
        // an upper bound inside a floor alone
        Domain::conjunction([Constraint::le(&c(0), &j), Constraint::le(&j.floor_div(2), &c(5))])
    });
    b.open(j);
    b.assign("s", Access::scalar(t), 0.0);
    b.close_loop();
    b.close_loop();
    assert_eq!(
        refusal(&b.finish().unwrap(), Memory::new()),
        "`for j[i=0]`: `j` has no upper bound; add a constraint that is linear in it"
    );
}

#[test]
fn step_limit() {
    let kernel = nest(8, F64, |_, _, _| 0.0.into());
    // 4 cells, 32 iterations of j, 32 instances
    assert!(interpret_with(&kernel, &mut Memory::new(), &mut (), Some(68)).is_ok());
    let error = interpret_with(&kernel, &mut Memory::new(), &mut (), Some(67)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`gather[cell=3, j=7]`: more than 67 steps; raise the limit or run a smaller size"
    );
}

#[test]
fn arguments_that_do_not_fit() {
    let mut b = KernelBuilder::new("kernel_k");
    let n = b.param("n", I32);
    b.argument("x", F32, [Affine::var(n), c(2)], Direction::In);
    let kernel = b.finish().unwrap();
    assert_eq!(refusal(&kernel, Memory::new()), "parameter `n` is missing; give it a value");
    let three = Memory::new().param("n", 3);
    assert_eq!(refusal(&kernel, three.clone()), "argument `x` is missing; give it a value");
    assert_eq!(
        refusal(&kernel, three.clone().value("x", vec![0.0_f64; 6])),
        "`x` holds elements of type f64, needed f32"
    );
    assert_eq!(
        refusal(&kernel, three.value("x", vec![0.0_f32; 5])),
        "`x` has 5 elements, needed 6 for its shape [3, 2]"
    );
    assert_eq!(
        refusal(&kernel, Memory::new().param("n", 1 << 31)),
        "parameter `n` is 2147483648, which i32 cannot hold"
    );
    assert_eq!(
        refusal(&kernel, Memory::new().param("n", -1)),
        "`x` has extent -1 along axis 0; needed a number of elements that fits memory"
    );
}

#[test]
fn broken_assumptions() {
    let mut b = KernelBuilder::new("kernel_k");
    let n = b.param("n", I32);
    let map = b.argument("map", I32, [c(3)], Direction::In);
    b.assume(Assumption::Injective(map));
    b.assume(Assumption::Params(Constraint::le(&c(4), &Affine::var(n))));
    let kernel = b.finish().unwrap();
    assert_eq!(
        refusal(&kernel, Memory::new().param("n", 4).value("map", vec![5, 6, 5])),
        "`map[0]` = `map[2]` = 5, needed an injective `map`; correct it, or make the updates through it atomic \
         instead of assuming that"
    );
    assert_eq!(
        refusal(&kernel, Memory::new().param("n", 3).value("map", vec![5, 6, 7])),
        "the parameters break `n >= 4`; choose others"
    );
}

#[test]
fn arrays_that_do_not_ascend_as_assumed() {
    let mut b = KernelBuilder::new("kernel_k");
    let starts = b.argument("starts", I32, [c(4)], Direction::In);
    b.assume(Assumption::Ascending(starts));
    let kernel = b.finish().unwrap();
    assert_eq!(
        refusal(&kernel, Memory::new().value("starts", vec![0, 3, 2, 4])),
        "`starts[2]` = 2 after 3, needed entries that ascend, as `ascending(starts)` says; correct it, or make the \
         updates by its ranges atomic instead of assuming that"
    );
    interpret(&kernel, &mut Memory::new().value("starts", vec![0, 3, 3, 4])).unwrap();
}

#[test]
fn kernel_that_is_not_well_formed() {
    let mut kernel = nest(8, F64, |_, _, _| 0.0.into());
    kernel.name = "2k".into();
    assert_eq!(
        refusal(&kernel, Memory::new()),
        "`2k` is not a name: use a letter or `_`, then letters, digits and `_`, and no keyword"
    );
}

#[test]
fn arrays_that_are_not_symmetric_as_assumed() {
    let mut b = KernelBuilder::new("kernel_k");
    let w = b.argument("w", F64, [c(2), c(2)], Direction::In);
    let axes = [0, 1].map(|axis| AxisImage { axis, mirrored: true });
    b.assume(Assumption::Symmetric(Symmetry { var: w, axes: axes.to_vec(), negated: true }));
    let kernel = b.finish().unwrap();
    let given = |values: [f64; 4]| Memory::new().value("w", values.to_vec());
    assert_eq!(
        refusal(&kernel, given([1.0, 2.0, -2.5, -1.0])),
        "`w[0, 1]` = 2, needed 2.5, as `antisymmetric(w, mirrored 0, mirrored 1)` says of `w[1, 0]`; make the entries \
         equal to the last bit, or drop the assumption and the steps that rely on it"
    );
    assert!(interpret(&kernel, &mut given([1.0, 2.0, -2.0, -1.0])).is_ok());
    let report = check_launch(&kernel, &given([1.0, 2.0, -2.0, -1.0]), &[]).unwrap();
    assert_eq!(report.symmetric, ["w"]);
    assert!(report.to_string().ends_with("; symmetric: `w`"), "{report}");
    assert!(matches!(
        check_launch(&kernel, &given([1.0, 2.0, -2.0, f64::NAN]), &[]),
        Err(crate::InterpError::NotSymmetric { .. })
    ));
}

/// Zeros of either sign are no same value, but each is the negative of the other and of itself.
#[test]
fn signs_of_zeros_are_bits() {
    let kernel = |negated| {
        let mut b = KernelBuilder::new("kernel_k");
        let w = b.argument("w", F64, [c(3)], Direction::In);
        let axes = vec![AxisImage { axis: 0, mirrored: true }];
        b.assume(Assumption::Symmetric(Symmetry { var: w, axes, negated }));
        b.finish().unwrap()
    };
    let given = |first: f64, last: f64| Memory::new().value("w", vec![first, 0.0, last]);
    let check = |negated, first, last| check_launch(&kernel(negated), &given(first, last), &[]);
    assert_eq!(
        check(false, 0.0, -0.0).unwrap_err().to_string(),
        "`w[0]` = 0, needed -0, as `symmetric(w, mirrored 0)` says of `w[2]`; make the entries equal to the last bit, \
         or drop the assumption and the steps that rely on it"
    );
    assert!(check(false, -0.0, -0.0).is_ok());
    assert!(check(true, 0.0, -0.0).is_ok() && check(true, 0.0, 0.0).is_ok());
}
