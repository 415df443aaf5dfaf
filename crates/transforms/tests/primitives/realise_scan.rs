use crate::story::{compare_from, facts};
use purlin_interp::Value;
use purlin_transforms::primitives::{RealiseScan, TagIname};

fn scan() -> RealiseScan {
    RealiseScan::new("s")
}

fn sums(range: &str) -> String {
    format!(
        "kernel sums\nparam n: i32\narg a: f64[n + 3] in\narg y: f64[n] inout\n\
         for i in 0..n\n  s: y[i] = 2.0*sum(j in {range}: a[j]) + y[i]\n"
    )
}

fn bounds_from_memory(range: &str) -> String {
    format!(
        "kernel sums\nparam n: i32\narg p: i32[n] in\narg a: f64[2*n] in\narg y: f64[n] inout\n\
         temp m: i32 private\nfor i in 0..n\n  e: m = p[i]\n  s: y[i] = sum(j in {range}: a[j])\n"
    )
}

facts! {
    inclusive: &sums("0..i + 1"), [scan()];
    exclusive: &sums("0..i"), [scan()];
    name_of_ones_own: &sums("0..i + 1"), [scan().into_temporary("total")];
    several_terms_at_first: &sums("1..i + 4"), [scan()];
    begins_late: &sums("2..i + 1"), [scan()];
    maximum_in_every_row: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n, n] inout
for r in 0..n
  for i in r..n
    s: y[r, i] = maximum(j in r..i + 1: a[r, j])
", [scan(), TagIname::new("r", "g.0")];
    /// A term is the result of an earlier iteration.
    sums_of_sums: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = a[i] + sum(j in 0..i: y[j])
", [scan()];
    terms_are_written_on_the_way: "kernel k
param n: i32
arg x: f64[n] inout
arg y: f64[n] inout
for i in 0..n
  w: x[i] = 2.0*x[i]
  s: y[i] = sum(j in 0..i + 1: x[j])
", [scan()];
    recurrence: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 1..n
  s: y[i] = y[i - 1] + a[i]
", [scan()];
    recurrence_of_differences_and_products: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n, 9] inout
for r in 0..n
  for i in 0..8
    s: y[r, i + 1] = a[r]*y[r, i]*2.0
", [scan()];
    refuses_terms_that_change: "kernel k
param n: i32
arg x: f64[n] inout
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..i + 1: x[j])
  w: x[i] = 0.0
", [scan()];
    refuses_terms_that_mention_the_loop: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..i + 1: a[i, j])
", [scan()];
    refuses_a_range_that_grows_by_two: &sums("0..2*i"), [scan()];
    refuses_a_window: &sums("i..i + 3"), [scan()];
    refuses_a_condition: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = select(a[i] > 0.0, sum(j in 0..i + 1: a[j]), 0.0)
", [scan()];
    refuses_a_predicate: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..i + 1: a[j]) if a[i] > 0.0
", [scan()];
    refuses_two_inames: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..i + 1, k in 0..n: a[j, k])
", [scan()];
    refuses_a_strided_loop: "kernel k
param n: i32
arg a: f64[2*n] in
arg y: f64[2*n] inout
for i in 0..n where i mod 2 == 0
  s: y[i] = sum(j in 0..i + 1: a[j])
", [scan()];
    refuses_an_element_that_others_write: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 1..n
  s: y[i] = y[i - 1] + a[i]
  w: y[i] = 2.0*a[i] if a[i] > 0.0
", [scan()];
    refuses_the_element_before_the_last: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 2..n
  s: y[i] = y[i - 2] + a[i]
", [scan()];
    refuses_a_linear_recurrence: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 1..n
  s: y[i] = 0.5*y[i - 1] + a[i]
", [scan()];
    refuses_a_difference: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 1..n
  s: y[i] = a[i] - y[i - 1]
", [scan()];
    refuses_no_loop: "kernel k
arg y: f64 inout
s: y = y + 1.0
", [scan()];
    refuses_an_accumulation: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
for i in 0..n
  s: y = y + a[i]
", [scan()];
    refuses_a_loop_on_an_axis: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n {l.0}
  s: y[i] = sum(j in 0..i + 1: a[j])
", [scan()];
    refuses_names_taken: &sums("0..i"), [scan().into_temporary("a")];
    refuses_first_terms_that_change: "kernel k
param n: i32
arg x: f64[n + 3] inout
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..i + 3: x[j])
  w: x[0] = 0.0
", [scan()];
    refuses_a_lower_bound_from_memory: &bounds_from_memory("m..i + 1"), [scan()];
    refuses_an_upper_bound_from_memory: &bounds_from_memory("0..i + m"), [scan()];
    refuses_an_update: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 1..n
  s: y[i] += y[i - 1] + a[i]
", [scan()];
    /// The element before is found by the scalar that holds throughout the loop.
    index_by_a_scalar_of_the_loop_around: "kernel k
param n: i32
arg p: i32[n + 1] in
arg a: f64[n + 1] in
arg y: f64[3*n + 3] inout
temp m: i32 private
for r in 0..n
  u: m = p[r]
  for i in 1..n
    s: y[m + i] = y[m + i - 1] + a[i]
", [scan()];
    refuses_an_index_that_changes_in_the_loop: "kernel k
param n: i32
arg p: i32[n + 1] in
arg a: f64[n + 1] in
arg y: f64[3*n + 3] inout
temp m: i32 private
for i in 1..n
  u: m = p[i]
  s: y[m + i] = y[m + i - 1] + a[i]
", [scan()];
    /// The sum is one of 64 bits where it is stored to one.
    integers_in_64_bits: INTEGERS, [scan()];
    integers_of_a_part: &INTEGERS.replace("i64[n]", "i32[n]").replace("sum(j in 0..i + 1: a[j])", "floor_div(sum(j in 0..i + 1: a[j]), 8)"),
        [scan()];
    integers_of_a_plain_store: &INTEGERS.replace("i64[n]", "i32[n]"), [scan()];
    refuses_an_extremum_with_a_sum: &INTEGERS.replace("i64[n]", "i32[n]").replace(" = ", " max= "), [scan()];
}

const INTEGERS: &str = "kernel k
param n: i32
arg a: i32[n] in
arg y: i64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..i + 1: a[j])
";

#[test]
fn large_sums_stay() {
    let large = Value::I32(vec![2_000_000_000; 4]);
    let part = "floor_div(sum(j in 0..i + 1: a[j]), 8)";
    for text in [
        INTEGERS,
        &INTEGERS.replace("i64[n]", "i32[n]").replace("sum(j in 0..i + 1: a[j])", part),
        &INTEGERS.replace("sum(j in 0..i + 1: a[j])", "product(j in 0..i: a[j])").replace("0..n\n", "0..3\n"),
    ] {
        compare_from(text, &[scan().into()], &[("a", large.clone())]);
    }
}
