//! Growth, not speed: the benchmark measures speed.

use crate::affine::Affine;
use crate::constant::TableData;
use crate::expr::Expr;
use crate::kernel::Kernel;
use crate::text::parse;
use crate::types::ScalarType;
use crate::{Access, Direction, KernelBuilder};
use std::time::Instant;

/// `x1 = f(x0)`, `x2 = f(x1)`, ... in one loop.
fn chain(length: usize) -> Kernel {
    let mut b = KernelBuilder::new("chain");
    let n = b.param("n", ScalarType::I32);
    let array = |b: &mut KernelBuilder, k: usize| {
        b.argument(format!("x{k}"), ScalarType::F64, [Affine::var(n)], Direction::InOut)
    };
    let mut last = array(&mut b, 0);
    let arrays: Vec<_> = (1..=length).map(|k| array(&mut b, k)).collect();
    let i = b.open_loop("i", Affine::constant(0), Affine::var(n));
    for (k, x) in arrays.into_iter().enumerate() {
        let value = Expr::load(last, [i.into()]) * 0.5 + Expr::load(x, [i.into()]);
        b.assign(format!("s{k}"), Access::new(x, [i.into()]), value);
        last = x;
    }
    b.close_loop();
    b.finish().expect("well formed")
}

fn seconds(text: &str) -> f64 {
    let run = || {
        let start = Instant::now();
        assert!(parse(text).is_ok());
        start.elapsed().as_secs_f64()
    };
    (0..3).map(|_| run()).fold(f64::INFINITY, f64::min)
}

#[test]
fn time_grows_with_the_length_of_the_text() {
    let (short, long) = (chain(100).to_string(), chain(1600).to_string());
    let (t, u) = (seconds(&short), seconds(&long));
    println!("chain: {t:.6} s for 100, {u:.6} s for 1600");
    // 16 times the text; quadratic growth would be 256 times
    assert!(u < 64.0 * t, "{t} s for 100 instructions, {u} s for 1600");
}

#[test]
fn large_tables() {
    let table = |length: usize| {
        let mut b = KernelBuilder::new("k");
        let values = (0..length).map(|k| (k as f64 * 0.1).sin());
        b.table("phi", ScalarType::F64, [length / 100, 100], TableData::real(values));
        b.finish().expect("well formed").to_string()
    };
    let (short, long) = (table(10_000), table(100_000));
    let (t, u) = (seconds(&short), seconds(&long));
    println!("table: {t:.6} s for 10,000, {u:.6} s for 100,000");
    // 10 times the text; quadratic growth would be 100 times
    assert!(u < 40.0 * t, "{t} s for 10,000 values, {u} s for 100,000");
}
