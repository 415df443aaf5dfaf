//! Numbers at the ends of their ranges.

use super::{F64, I64, c};
use crate::check::{AccessProof, check_launch_within};
use crate::{Memory, interpret, interpret_with};
use kingpost_ir::{Access, Affine, Constraint, Direction, Domain, KernelBuilder, UpdateOp};

/// Counts the iterations of `lo <= i < hi` with both bounds parameters times a coefficient.
fn iterations(lo: i64, hi: i64, coefficient: i64) -> Result<i64, String> {
    let mut b = KernelBuilder::new("ends");
    let (first, last) = (b.param("lo", I64), b.param("hi", I64));
    let y = b.argument("y", I64, [], Direction::InOut);
    let i = b.iname("i", |i| {
        let i = Affine::iname(i);
        Domain::conjunction([
            Constraint::le(&Affine::var(first).times(coefficient), &i),
            Constraint::lt(&i, &Affine::var(last).times(coefficient)),
        ])
    });
    b.open(i);
    b.update("s", Access::scalar(y), UpdateOp::Add, 1);
    b.close_loop();
    let mut memory = Memory::new().param("lo", lo).param("hi", hi).value("y", 0_i64);
    let kernel = b.finish().map_err(|e| e.to_string())?;
    interpret(&kernel, &mut memory).map_err(|e| e.to_string())?;
    Ok(memory.get("y").map_or(-1, |v| v.to_f64()[0] as i64))
}

#[test]
fn loops_reach_the_ends_of_64_bits() {
    assert_eq!(iterations(i64::MAX - 3, i64::MAX, 1), Ok(3));
    assert_eq!(iterations(i64::MIN, i64::MIN + 2, 1), Ok(2));
    assert_eq!(iterations(5, 5, 1), Ok(0));
    assert_eq!(iterations(5, -5, 1 << 40), Ok(0));
}

#[test]
fn bounds_beyond_64_bits_are_an_error() {
    let message = "`for i`: a loop bound does not fit 64 bits".to_owned();
    assert_eq!(iterations(i64::MAX - 1, i64::MAX, 2), Err(message));
}

#[test]
fn a_size_beyond_memory_is_an_error() {
    let mut b = KernelBuilder::new("huge");
    let n = b.param("n", I64);
    b.temporary("t", F64, [Affine::var(n), c(1000)]);
    let kernel = b.finish().unwrap();
    let refusal = |n| interpret(&kernel, &mut Memory::new().param("n", n)).unwrap_err().to_string();
    assert_eq!(
        refusal(1_000_000),
        "`t` has 1000000000 elements, a run makes at most 268435456; run a smaller size"
    );
    assert_eq!(
        refusal(i64::MAX),
        "`t` has extent 9223372036854775807 along axis 0; needed a number of elements that fits memory"
    );
}

/// A condition on parameters is decided once, and values that a loop passes over end at the limit.
#[test]
fn conditions_of_long_loops_are_quick() {
    let run = |n: i64, period: i64| {
        let mut b = KernelBuilder::new("sparse");
        let size = b.param("n", I64);
        let y = b.argument("y", I64, [], Direction::InOut);
        let i = b.iname("i", |i| {
            let i = Affine::iname(i);
            Domain::conjunction([
                Constraint::le(&c(1), &i),
                Constraint::lt(&i, &c(1 << 40)),
                Constraint::equal(&i.modulo(period), &c(0)),
                Constraint::equal(&Affine::var(size).modulo(2), &c(1)),
            ])
        });
        b.open(i);
        b.update("s", Access::scalar(y), UpdateOp::Add, 1);
        b.close_loop();
        let kernel = b.finish().unwrap();
        let mut memory = Memory::new().param("n", n).value("y", 0_i64);
        interpret_with(&kernel, &mut memory, &mut (), Some(100)).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(run(2, 1), Ok(()));
    assert_eq!(run(2, 1 << 39), Ok(()));
    for period in [1, 1 << 39] {
        let message = run(3, period).unwrap_err();
        assert!(message.ends_with("more than 100 steps; raise the limit or run a smaller size"), "{message}");
    }
}

/// Entries that decide an index are followed one by one, but not for hours.
#[test]
fn a_check_of_many_instances_ends() {
    let mut b = KernelBuilder::new("entries");
    let n = b.param("n", I64);
    let map = b.argument("map", I64, [Affine::var(n)], Direction::In);
    let y = b.argument("y", I64, [Affine::var(n)], Direction::InOut);
    let i = b.iname("i", |i| Domain::range(i, &c(0), &Affine::var(n)));
    b.open(i);
    let entry = kingpost_ir::Expr::Load(Access::new(map, [kingpost_ir::Expr::Iname(i)]));
    let own = Box::new(kingpost_ir::Expr::Iname(i));
    let place = kingpost_ir::Expr::Binary(kingpost_ir::BinaryOp::Sub, Box::new(entry), own);
    b.update("s", Access::new(y, [place]), UpdateOp::Add, 1);
    b.close_loop();
    let kernel = b.finish().unwrap();
    let open: Vec<AccessProof> = kernel.insns.ids().map(|insn| AccessProof { insn, proved: false }).collect();
    let memory =
        Memory::new().param("n", 40).value("map", (0..40).collect::<Vec<i64>>()).value("y", vec![0_i64; 40]);
    let check = |limit| check_launch_within(&kernel, &memory, &open, limit);
    assert_eq!(check(1_000).unwrap().followed, 1);
    assert_eq!(
        check(20).unwrap_err().to_string(),
        "`for i`: to follow the accesses that values decide takes more than 20 steps; check a smaller size, bound the \
         entries of the maps, or launch without the check"
    );
}
