use crate::story::facts;
use purlin_transforms::primitives::{Assume, HoistInsn, TagIname};

fn hoist() -> HoistInsn {
    HoistInsn::new("s")
}

const PLAIN: &str = "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp t: f64 private
for i in 0..n
  s: t = 2.0*a[0]
  u: y[i] = t + f64(i)
";

facts! {
    with_the_bounds_as_a_condition: PLAIN, [hoist()];
    without_where_the_loop_is_not_empty: PLAIN, [Assume::at_least("n", 1), hoist()];
    out_of_work_items: PLAIN, [TagIname::new("i", "l.0"), hoist()];
    keeps_its_own_condition: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..i
    s: y[i] = a[i] if a[i] < 1.0
", [hoist()];
    twice: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp t: f64 private
for i in 0..n
  for j in 0..3
    s: t = 2.0*a[0]
    u: y[i] += t
", [hoist(), hoist()];
    bounds_from_memory: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n] inout
temp end: i32 private
for i in 0..n
  e: end = count[i]
  for j in 0..end
    s: y[i] = 2.0
", [hoist()];
    out_of_a_loop_under_a_condition: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp t: f64 private
for i in 0..n
  for j in 0..n where i + 2 < n
    s: t = a[i + 2]
    u: y[j] += t
", [HoistInsn::new("s")];
    refuses_the_loop_variable: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = a[i]
", [hoist()];
    refuses_an_update: "kernel k
param n: i32
arg y: f64 inout
for i in 0..n
  s: y += 1.0
", [hoist()];
    refuses_an_operand_written_before: "kernel k
param n: i32
arg a: f64[n] inout
arg y: f64 inout
for i in 0..n
  w: a[i] = 1.0
  s: y = a[0]
", [hoist()];
    refuses_an_operand_written_after: "kernel k
param n: i32
arg a: f64[n] inout
arg y: f64 inout
for i in 0..n
  s: y = a[1] if n > 1
  w: a[i] = 1.0
", [hoist()];
    refuses_a_use_of_the_old_value: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
arg t: f64 inout
for i in 0..n
  u: y[i] = t
  s: t = 2.0*a[0]
", [hoist()];
    refuses_a_second_write: "kernel k
param n: i32
arg a: f64[n] in
arg t: f64 inout
for i in 0..n
  s: t = 2.0*a[0]
  w: t = a[i]
", [hoist()];
    refuses_its_own_value: "kernel k
param n: i32
arg t: f64 inout
for i in 0..n
  s: t = 2.0*t
", [hoist()];
    refuses_a_reduction: "kernel k
param n: i32
arg a: f64[n] in
arg t: f64 inout
for i in 0..n
  s: t = sum(j in 0..n: a[j])
", [hoist()];
    refuses_a_loop_that_may_be_empty_in_parts: "kernel k
param n: i32
arg t: f64 inout
for i in 0..n where i mod 2 == 1
  s: t = 1.0
", [hoist()];
    refuses_a_write_of_the_bound: "kernel k
param n: i32
temp end: i32 private
e: end = n
for i in 0..end
  s: end = 2
", [hoist()];
    refuses_outside_of_loops: "kernel k
arg t: f64 inout
s: t = 1.0
", [hoist()];
    refuses_unknown: PLAIN, [HoistInsn::new("q")];
}
