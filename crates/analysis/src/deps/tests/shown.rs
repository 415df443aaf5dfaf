//! Relations of small programs, as they are printed.

use crate::Analysis;
use crate::deps::{show_dependences, to_dot};
use insta::assert_snapshot;

fn show(text: &str) -> String {
    let kernel = purlin_ir::text::parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    let graph = Analysis::of(&kernel).dependence_graph().expect("isl works");
    format!("{kernel}\n{}", show_dependences(&kernel, &graph).expect("isl works"))
}

#[test]
fn recurrence() {
    assert_snapshot!(show(
        "kernel k\nparam n: i32\narg a: f64[n] inout
for i in 1..n
  s: a[i] = a[i - 1] + 1.0
"
    ));
}

#[test]
fn value_saved_before_it_is_overwritten() {
    assert_snapshot!(show(
        "kernel k\nparam n: i32\narg a: f64[n] inout\narg b: f64[n] inout\ntemp t: f64 private
for i in 0..n
  save: t = a[i]
  zero: a[i] = 0.0
  use: b[i] = t
"
    ));
}

#[test]
fn transposed_read() {
    assert_snapshot!(show(
        "kernel k\nparam n: i32\narg a: f64[n, n] inout
for i in 0..n
  for j in 0..n
    s: a[i, j] = a[j, i] + 1.0
"
    ));
}

#[test]
fn overwritten_value_flows_nowhere() {
    assert_snapshot!(show(
        "kernel k\nparam n: i32\narg a: f64[n] inout\narg b: f64[n] inout
for i in 0..n
  first: a[i] = 1.0
for j in 0..n
  second: a[j] = 2.0 
for l in 0..n
  use: b[l] = a[l]
"
    ));
}

#[test]
fn overwritten_in_part() {
    assert_snapshot!(show(
        "kernel k\nparam n: i32\narg a: f64[n] inout\narg b: f64[n] inout
for i in 0..n
  first: a[i] = 1.0
for j in 0..floor_div(n, 2)
  second: a[2*j] = 2.0 
for l in 0..n
  use: b[l] = a[l]
"
    ));
}

#[test]
fn write_under_a_condition_hides_nothing() {
    assert_snapshot!(show(
        "kernel k\nparam n: i32\narg a: f64[n] inout\narg b: f64[n] inout
for i in 0..n
  first: a[i] = 1.0
for j in 0..n
  second: a[j] = 2.0 if b[j] < 0.0
for l in 0..n
  use: b[l] = a[l]
"
    ));
}

#[test]
fn scatter_through_a_map() {
    assert_snapshot!(show(
        "kernel k\nparam n: i32\nparam m: i32\narg y: f64[m] inout\narg x: f64[n] in\narg map: i32[n] in
for i in 0..n
  s: y[map[i]] += x[i]
"
    ));
}

#[test]
fn scatter_through_an_injective_map() {
    assert_snapshot!(show(
        "kernel k\nparam n: i32\nparam m: i32\narg y: f64[m] inout\narg x: f64[n] in\narg map: i32[n] in
assume injective(map)
for i in 0..n
  s: y[map[i]] += x[i]
"
    ));
}

#[test]
fn map_that_changes_is_not_injective() {
    assert_snapshot!(show(
        "kernel k\nparam n: i32\narg y: f64[n] inout\ntemp map: i32[n] private
assume injective(map)
for t in 0..2
  for i in 0..n
    m: map[i] = (i + t) mod 4
    s: y[map[i]] += 1.0
"
    ));
}

#[test]
fn triangular_solve() {
    assert_snapshot!(show(
        "kernel k\nparam n: i32\narg l: f64[n, n] in\narg x: f64[n] inout
for i in 0..n
  for j in 0..i
    eliminate: x[i] += -(l[i, j]*x[j])
  divide: x[i] *= 1.0/l[i, i]
"
    ));
}

#[test]
fn bounds_are_read() {
    assert_snapshot!(show(
        "kernel k\nparam n: i32\narg ptr: i32[n + 1] in\narg x: f64[n] inout\ntemp lo: i32\ntemp hi: i32
for i in 0..n
  low: lo = ptr[i]
  high: hi = ptr[i + 1]
  for k in lo..hi
    s: x[i] += 1.0
"
    ));
}

#[test]
fn drawn() {
    let text = "kernel k\nparam n: i32\narg a: f64[n] inout\narg b: f64[n] inout
for i in 0..n
  s: a[i] = a[i] + 1.0
  t: b[0] += a[i]
";
    let kernel = purlin_ir::text::parse(text).expect("parses");
    assert_snapshot!(to_dot(&kernel, &Analysis::of(&kernel).dependence_graph().expect("isl works")));
}
