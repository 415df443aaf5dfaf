//! Declared functions, and truth values that are compared.

use crate::{InterpError, Memory, Value, interpret};
use kingpost_ir::text::parse;

#[test]
fn declared_functions_are_what_they_compute() {
    let kernel = parse(
        "kernel k\nextern half(x: f32) -> f32 := 0.5*x code (\"return 0.5f*x;\")\n\
         extern up(x: f64, k: i32) -> i64 := k + i64(ceil(x)) + 3000000000 code (\"return 0;\")\n\
         extern both(x: f32) -> f64 := half(x) + half(half(x)) code (\"return 0;\")\n\
         param n: i32\narg x: f32[n] in\narg y: f64[n] out\narg z: i64[n] out\nrule twice(i) := 2.0*half(x[i])\n\
         for i in 0..n\n  y[i] = f64(twice(i)) + both(x[i])\n  z[i] = up(f64(x[i]), i) + 1\n",
    )
    .unwrap();
    let mut memory = Memory::new().param("n", 3);
    memory.set("x", Value::F32(vec![1.0, 2.5, -3.0]));
    let run = interpret(&kernel, &mut memory).unwrap();
    assert_eq!(memory.get("y"), Some(&Value::F64(vec![1.75, 4.375, -5.25])));
    assert_eq!(memory.get("z"), Some(&Value::I64(vec![3_000_000_002, 3_000_000_005, 3_000_000_000])));
    // a product of `twice`, three of `both` in single precision, sums
    assert_eq!(run.flops(), 3 * (2 + 3 + 1 + 1 + 1));
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let text = "kernel k\nextern f(k: i32) -> i32 := k code (\"return k;\")\narg i: i64 in\narg y: i32 out\n\
        y = f(i32(i))\n";
    let mut memory = Memory::new();
    memory.set("i", Value::I64(vec![1 << 40]));
    let found = interpret(&parse(text).unwrap(), &mut memory);
    assert!(matches!(found, Err(InterpError::Overflow { .. })), "{found:?}");
}

#[test]
fn code_alone_has_no_value() {
    let text = "kernel k\nextern f(x: f64, k: i32) -> i32 code (\"return k;\")\narg x: f64[4] in\narg y: i32[4] inout\n\
        for i in 0..4\n  s: y[i] += f(x[i], i) if 2 < i\n";
    let kernel = parse(text).unwrap();
    let mut memory = Memory::new();
    memory.set("x", Value::F64(vec![0.0; 4]));
    memory.set("y", Value::I32(vec![0; 4]));
    let error = interpret(&kernel, &mut memory).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`s[i=3]` calls `f`, of which only the code is known; write what it computes, as in `:= x*x`"
    );
}

#[test]
fn truth_values_are_equal_or_not() {
    let text = "kernel k\narg a: bool[4] in\narg b: bool[4] in\narg y: i32[4] out\n\
        for i in 0..4\n  y[i] = i32(a[i] == b[i]) + 2*i32(a[i] != (i < 2))\n";
    let mut memory = Memory::new();
    memory.set("a", Value::Bool([true, true, false, false].map(Into::into).to_vec()));
    memory.set("b", Value::Bool([true, false, true, false].map(Into::into).to_vec()));
    interpret(&parse(text).unwrap(), &mut memory).unwrap();
    assert_eq!(memory.get("y"), Some(&Value::I32(vec![1, 0, 0, 1])));
}
