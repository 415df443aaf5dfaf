use crate::story::facts;
use purlin_transforms::primitives::{InterchangeInames, SplitIname, TagIname};

fn swap(outer: &str, inner: &str) -> InterchangeInames {
    InterchangeInames::new(outer, inner)
}

const COPY: &str = "kernel copy
param n: i32
arg a: f64[n, n] in
arg b: f64[n, n] inout
for i in 0..n
  for j in 0..n
    s: b[i, j] = a[j, i]
";

facts! {
    bounds_from_memory_inside_a_loop_that_runs: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n] inout
temp end: i32 private
assume n >= 2
for i in 1..n
  e: end = count[i]
for k in 1..n
  for j in 0..end
    s: y[k] += f64(j)
", [swap("k", "j")];
    rectangle: COPY, [swap("i", "j")];
    triangle: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 0..n
  for j in 0..i + 1
    s: a[i, j] = 1.0
", [swap("i", "j"), swap("j", "i")];
    trapezium: "kernel k
param n: i32
arg a: f64[n, 2*n] inout
for i in 0..n
  for j in i..i + n
    s: a[i, j] = 1.0
", [swap("i", "j")];
    strided_inside: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 0..n
  for j in 0..n where (i + j) mod 2 == 0
    s: a[i, j] = 1.0
", [swap("i", "j")];
    empty: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 0..0
  for j in 0..i
    s: a[i, j] = 1.0
", [swap("i", "j")];
    blocks: COPY, [SplitIname::new("j", 4), swap("i", "j_o")];
    dependence_along_both: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 1..n
  for j in 1..n
    s: a[i, j] = a[i - 1, j - 1] + a[i - 1, j] + a[i, j - 1]
", [swap("i", "j")];
    sums_commute: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..n
    s: y[i] += a[i, j]
", [swap("i", "j")];
    temporary_confined_to_the_body: "kernel k
param n: i32
arg a: f64[n, n] inout
temp t: f64 private
for i in 0..n
  for j in 0..n
    load: t = 2.0*a[i, j]
    store: a[i, j] = t + 1.0
", [swap("i", "j")];
    loop_on_an_axis: COPY, [TagIname::new("j", "l.0"), swap("i", "j")];
    refuses_flow: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 1..n
  for j in 0..n - 1
    s: a[i, j] = a[i - 1, j + 1] + 1.0
", [swap("i", "j")];
    refuses_flow_between_instructions: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n, n] inout
for i in 0..n
  for j in 0..n
    s1: a[j] = b[i, j]
    s2: b[i, j] = a[n - 1 - j]
", [swap("i", "j")];
    refuses_anti: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 0..n - 1
  for j in 1..n
    s: a[i, j] = a[i + 1, j - 1] + 1.0
", [swap("i", "j")];
    refuses_output: "kernel k
param n: i32
arg a: f64[2*n] inout
arg b: f64[n, n] in
for i in 0..n
  for j in 0..n
    s: a[i + j] = b[i, j]
", [swap("i", "j")];
    refuses_to_change_the_last_value: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64 inout
for i in 0..n
  for j in 0..n - i
    s: y = a[i, j]
", [swap("i", "j")];
    refuses_a_value_carried_by_a_temporary: "kernel k
param n: i32
arg a: f64[n, n] inout
temp t: f64 private
zero: t = 0.0
for i in 0..n
  for j in 0..n
    load: t = t*2.0 + a[i, j]
    store: a[i, j] = t
", [swap("i", "j")];
    refuses_updates_by_two_operators: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64 inout
for i in 0..n
  for j in 0..n
    add: y += a[i, j]
    scale: y *= 2.0
", [swap("i", "j")];
    refuses_writes_through_a_map: "kernel k
param n: i32
arg map: i32[n, n] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..n
    s: y[map[i, j]] = f64(j)
", [swap("i", "j")];
    refuses_a_bound_without_a_value: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n] inout
temp end: i32 private
for i in 1..n
  e: end = count[i]
for k in 1..n
  for j in 0..end
    s: y[k] = 1.0
", [InterchangeInames::new("k", "j")];
    refuses_bounds_from_memory: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n, n] inout
temp end: i32 private
for i in 0..n
  for j in i..end
    s: y[i, j] = 1.0
    e: end = n
", [swap("i", "j")];
    refuses_bounds_that_change: "kernel k
param n: i32
arg count: i32[1] in
arg y: f64[n] inout
temp end: i32 private
e: end = count[0]
for i in 0..end
  for j in 0..4
    e2: end = 2 if i == 0 and j == 0
    s: y[i] += 1.0 if i < n
", [swap("i", "j")];
    refuses_inner_bounds_that_change: "kernel k
param n: i32
arg count: i32[1] in
arg y: f64[4] inout
temp end: i32 private
e: end = count[0]
for i in 0..4
  for j in 0..end
    s: y[i] += 1.0
    e2: end = 0 if i == 0 and j == 0
", [swap("i", "j")];
    refuses_when_work_items_would_move: "kernel k
param n: i32
arg y: f64[n, n] inout
arg a: f64[n] in
temp t: f64[n] private
for k in 0..n {l.0}
  load: t[k] = a[k]
for i in 0..n
  for j in i..n {l.0}
    s: y[i, j] = t[j - i]
", [swap("i", "j")];
    refuses_unknown: COPY, [swap("i", "k")];
    refuses_the_wrong_way_round: COPY, [swap("j", "i")];
    refuses_itself: COPY, [swap("i", "i")];
    refuses_loops_that_are_not_neighbours: "kernel k
param n: i32
arg a: f64[n, n, n] inout
for i in 0..n
  for j in 0..n
    for k in 0..n
      s: a[i, j, k] = 1.0
", [swap("i", "k")];
    refuses_an_imperfect_nest: "kernel k
param n: i32
arg a: f64[n, n] inout
arg y: f64[n] inout
for i in 0..n
  z: y[i] = 0.0
  for j in 0..n
    s: y[i] += a[i, j]
", [swap("i", "j")];
    refuses_loops_of_two_nests: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 0..n
  s: a[i] = 1.0
for j in 0..n
  u: b[j] = 1.0
", [swap("i", "j")];
    refuses_a_reduction: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..n: a[i, j])
", [swap("j", "i")];
    refuses_a_reduction_inside: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..n: a[i, j])
", [swap("i", "j")];
}
