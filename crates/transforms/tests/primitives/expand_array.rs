use crate::story::facts;
use purlin_ir::AddressSpace;
use purlin_transforms::primitives::{ExpandArray, SetAddressSpace, SplitIname, TagIname};

fn expand(var: &str, inames: &[&str]) -> ExpandArray {
    ExpandArray::new(var, inames.iter().copied())
}

const SQUARE: &str = "kernel square
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64 private
for i in 0..n
  s: t = a[i]
  r: b[i] = t*t
";

const SUM: &str = "kernel sums
param n: i32
arg a: f64[n, 4] in
arg b: f64[n, 4] inout
temp t: f64[2] private
for i in 1..n
  for q in 0..4
    zero: t[1] = 0.0
    for j in 0..q + 1
      add: t[1] += a[i, j]
    r: b[i, q] = t[1]
";

facts! {
    scalar: SQUARE, [expand("t", &["i"])];
    /// Kulkarni & Klöckner 2025, §4.2: the evaluation results over the quadrature loop.
    over_the_inner_loop: SUM, [expand("t", &["q"])];
    over_two_loops: SUM, [expand("t", &["i", "q"])];
    /// No sum goes on in the next iteration of `i`: every one starts from zero.
    accumulators_reset_where_they_are_updated: "kernel k
param n: i32
arg a: f64[n, n] inout
temp t: f64[n] private
for i in 0..n
  for j in 0..n
    zero: t[j] = 0.0
    add: t[j] += a[i, j]
    twice: t[j] += a[i, j]
  for l in 0..n
    r: a[i, l] = t[n - 1 - l]
", [expand("t", &["i"])];
    order_of_axes: SUM, [expand("t", &["q", "i"])];
    /// One after the other: the later axis comes first.
    twice: SUM, [expand("t", &["q"]), expand("t", &["i"])];
    constant_extent_after_a_split: SQUARE, [SplitIname::new("i", 4), expand("t", &["i_i"])];
    triangle: "kernel k
param n: i32
arg a: f64[n, n] inout
temp t: f64 private
for i in 0..n
  for j in i..2*i + 1
    s: t = 2.0
    r: a[i, floor_div(j, 2)] = t if j < n
", [expand("t", &["j"])];
    /// `n - 2` is negative at 0 and 1, which no extent may be.
    extent_is_never_negative: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64 private
for i in 1..n - 1
  s: t = 2.0*a[i]
  r: a[i] = t
", [expand("t", &["i"])];
    strided_and_split_range: "kernel k
arg a: f64[20] inout
temp t: f64 private
for i where (i >= 2 and i < 5) or (i >= 9 and i < 20 and i mod 3 == 0)
  s: t = 2.0*a[i]
  r: a[i] = t
", [expand("t", &["i"])];
    empty_loop: "kernel k
arg a: f64[20] inout
temp t: f64 private
for i in 3..3
  s: t = 2.0*a[i]
  r: a[i] = t
", [expand("t", &["i"])];
    read_in_a_reduction_and_a_predicate: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[4] private
for i in 0..n
  for k in 0..4
    s: t[k] = f64(k)*a[i]
  r: a[i] = sum(l in 0..4: t[l]) if t[2] < 1.0
", [expand("t", &["i"])];
    lets_a_loop_run_on_work_items: SQUARE,
        [SetAddressSpace::new("t", AddressSpace::Global), expand("t", &["i"]), TagIname::new("i", "g.0")];
    every_iteration_writes_under_the_same_condition: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[n] private
for i in 0..n
  s: t[i] = a[i] if i mod 2 == 0
  r: a[i] = t[i]*t[i] if i mod 2 == 0
", [expand("t", &["i"])];
    refuses_a_value_carried_to_the_next_iteration: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64 private
zero: t = 0.0
for i in 0..n
  r: a[i] = t
  s: t = 2.0*a[i]
", [expand("t", &["i"])];
    refuses_an_extent_that_is_no_parameter: "kernel k
arg p: i32 in
arg a: f64[8] inout
temp t: f64 private
for j in 0..p
  u: t = f64(j)
  v: a[0] = t
", [expand("t", &["j"])];
    refuses_an_accumulation: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
temp t: f64 private
zero: t = 0.0
for i in 0..n
  s: t += a[i]
store: y = t
", [expand("t", &["i"])];
    refuses_an_accumulation_of_the_loop_only: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[n] private
for i in 0..n
  for j in 0..n
    s: t[j] = a[j] if i == 0
    r: a[j] = 2.0*t[j]
", [expand("t", &["i"])];
    refuses_a_value_kept_where_the_condition_fails: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64 private
for i in 0..n
  s: t = a[i] if i mod 2 == 0
  r: a[i] = t
", [expand("t", &["i"])];
    refuses_a_use_behind_the_loop: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
temp t: f64 private
zero: t = 0.0
for i in 0..n
  s: t = a[i]
store: y = t
", [expand("t", &["i"])];
    refuses_a_use_outside_that_needs_no_value: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64 private
lonely: t = 0.0
for i in 0..n
  s: t = a[i]
  r: a[i] = t*t
", [expand("t", &["i"])];
    refuses_bounds_from_memory: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n, n] inout
temp end: i32 private
temp t: f64 private
for i in 0..n
  e: end = count[i]
  for j in 0..end
    s: t = 2.0
    r: y[i, j] = t
", [expand("t", &["j"])];
    refuses_a_scalar_in_bounds: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n, n] inout
temp end: i32 private
for i in 0..n
  e: end = count[i]
  for j in 0..end
    r: y[i, j] = 2.0
", [expand("end", &["i"])];
    refuses_a_rule: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64 private
rule twice(x) := x*t
for i in 0..n
  s: t = a[i]
  r: a[i] = twice(2.0)
", [expand("t", &["i"])];
    refuses_strides: "kernel k
arg a: f64[8] inout
temp t: f64[8] private strides(2)
for i in 0..8
  s: t[i] = a[i]
  r: a[i] = t[i]
", [expand("t", &["i"])];
    refuses_an_argument: SQUARE, [expand("a", &["i"])];
    refuses_unknown: SQUARE, [expand("u", &["i"])];
    refuses_an_unknown_loop: SQUARE, [expand("t", &["j"])];
    refuses_no_loop: SQUARE, [expand("t", &[])];
    refuses_a_loop_twice: SQUARE, [expand("t", &["i", "i"])];
    refuses_a_reduction: "kernel k
arg a: f64[8] in
arg y: f64 inout
temp t: f64 private
s: t = 2.0
r: y = sum(i in 0..8: t*a[i])
", [expand("t", &["i"])];
}
