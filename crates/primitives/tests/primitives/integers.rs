//! Integers beyond 32 bits in what steps store: sums and quotients of large values.

use crate::story::compare_from;
use kingpost_interp::Value;
use kingpost_ir::AddressSpace::Private;
use kingpost_primitives::primitives::{PrecomputeRule, RealiseReduction, RealiseScan};

#[test]
fn values_of_a_rule_stay() {
    let text = "kernel sums
param n: i32
arg a: i32[4] in
arg y: i32[n, 4] inout
rule r(i) := 2*i64(a[i])
for i in 0..n
  for k in 0..4
    s: y[i, k] = i32(floor_div(r(k), 4))
";
    let large = Value::I32(vec![2_000_000_000; 4]);
    compare_from(text, &[PrecomputeRule::new("r", "i", Private).into()], &[("a", large)]);
}

/// Means of integers whose sums fit no i32.
const QUOTIENTS: &str = "kernel k
param n: i32
arg a: i32[n, n] in
arg y: i32[n] inout
for i in 0..n
  s: y[i] = i32(floor_div(sum(j in 0..n: i64(a[i, j])), 8))
";

#[test]
fn sums_of_a_reduction_stay() {
    let large = Value::I32(vec![2_000_000_000; 16]);
    let wide = "product(j in 0..n - 2: i64(a[i, j]))";
    for text in [
        QUOTIENTS,
        &QUOTIENTS
            .replace("arg y: i32", "arg y: i64")
            .replace("i32(floor_div(sum(j in 0..n: i64(a[i, j])), 8))", wide),
        &QUOTIENTS.replace("sum(j in 0..n: i64(a[i, j]))", "minimum(j in 0..n: 4*i64(a[i, j]))"),
    ] {
        compare_from(text, &[RealiseReduction::new("j").into()], &[("a", large.clone())]);
    }
}

const INTEGERS: &str = "kernel k
param n: i32
arg a: i32[n] in
arg y: i64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..i + 1: i64(a[j]))
";

#[test]
fn sums_of_a_scan_stay() {
    let large = Value::I32(vec![2_000_000_000; 4]);
    let part = "i32(floor_div(sum(j in 0..i + 1: i64(a[j])), 8))";
    for text in [
        INTEGERS,
        &INTEGERS.replace("i64[n]", "i32[n]").replace("sum(j in 0..i + 1: i64(a[j]))", part),
        &INTEGERS
            .replace("sum(j in 0..i + 1: i64(a[j]))", "product(j in 0..i: i64(a[j]))")
            .replace("0..n\n", "0..3\n"),
    ] {
        compare_from(text, &[RealiseScan::new("s").into()], &[("a", large.clone())]);
    }
}
