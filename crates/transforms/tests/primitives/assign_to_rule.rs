use crate::story::facts;
use purlin_transforms::primitives::{AssignToRule, ExpandRule};

fn assign() -> AssignToRule {
    AssignToRule::new("t")
}

facts! {
    array: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp t: f64[n] private
for i in 0..n
  d: t[i] = 2.0*a[i]
for j in 0..n
  s: y[j] = t[j] + t[n - 1 - j]
", [assign(), ExpandRule::new("t")];
    scalar_in_its_loop: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp t: f64 private
for i in 0..n
  d: t = 2.0*a[i]
  s: y[i] = t + sum(k in 0..n: t*a[k])
", [assign()];
    narrow_value_is_cast: "kernel k
param n: i32
arg y: f64[n] inout
temp t: f32 private
for i in 0..n
  d: t = 0.1
  s: y[i] = t + y[i]
", [assign()];
    narrow_literals_are_computed_narrow: "kernel k
param n: i32
arg x: f32[n] in
arg y: f32[n] inout
temp t: f32 private
for i in 0..n
  d: t = max((16777217.0 - 16777216.0)*(3*4/5), sqrt(select(i < 2, 2, 0.1)))
  s: y[i] = t + 0.1*x[i]
", [assign()];
    a_narrow_integer_stays_one: "kernel k
param n: i32
arg y: i64[n] inout
temp t: i32 private
for i in 0..n
  d: t = 7
  s: y[i] = minimum(j in 0..i: t)
", [assign(), ExpandRule::new("t")];
    a_parameter_of_the_rule_may_be_wider: "kernel k
param n: i32
arg p: i64[n] in
arg b: i32[n] in
arg y: i64[n] inout
temp t: i32[n] private
for i in 0..n
  d: t[i] = b[i] + i
for j in 0..n
  s: y[j] = minimum(k in 0..j: t[p[k]])
", [assign()];
    overwritten_after_the_use: "kernel k
param n: i32
arg a: f64[n] inout
arg y: f64[n] inout
temp t: f64 private
for i in 0..n
  d: t = a[i]
  s: y[i] = t
  w: a[i] = 0.0
", [assign()];
    the_use_overwrites_the_operand: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64 private
for i in 0..n
  d: t = 2.0*a[i]
  s: a[i] = t
", [assign()];
    refuses_a_write_to_an_operand: "kernel k
param n: i32
arg a: f64[n] inout
arg y: f64[n] inout
temp t: f64 private
for i in 0..n
  d: t = a[i]
  w: a[i] = 0.0
  s: y[i] = t
", [assign()];
    refuses_a_write_in_a_later_loop: "kernel k
param n: i32
arg a: f64[n] inout
arg y: f64[n] inout
temp t: f64[n] private
for i in 0..n
  d: t[i] = a[i]
for j in 0..n
  s: y[j] = t[j]
  w: a[n - 1 - j] = 0.0
", [assign()];
    refuses_a_scatter_to_an_operand: "kernel k
param n: i32
arg map: i32[n] in
arg a: f64[n] inout
arg y: f64[n] inout
temp t: f64 private
for i in 0..n
  d: t = a[i]
  w: a[map[i]] += 1.0
  s: y[i] = t
", [assign()];
    refuses_a_value_carried_on: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp t: f64 private
for i in 0..n
  s: y[i] = t if i > 0
  d: t = a[i]
", [assign()];
    refuses_a_use_outside_the_loop: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
temp t: f64 private
for i in 0..n
  d: t = a[i]
s: y = 1.0
u: y = t if n > 0
", [assign()];
    refuses_two_definitions: "kernel k
arg y: f64 inout
temp t: f64 private
d: t = 1.0
e: t = 2.0
s: y = t
", [assign()];
    refuses_an_update: "kernel k
arg y: f64[2] inout
temp t: f64[2] private
d: t[0] += 2.0
", [assign()];
    refuses_a_condition: "kernel k
arg y: f64 inout
temp t: f64 private
d: t = 1.0 if y < 2.0
", [assign()];
    refuses_a_reduction: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
temp t: f64 private
d: t = sum(j in 0..n: a[j])
s: y = t
", [assign()];
    refuses_its_own_value: "kernel k
arg y: f64 inout
temp t: f64 private
d: t = t + 1.0
", [assign()];
    refuses_an_index_that_is_no_loop: "kernel k
param n: i32
arg y: f64[n] inout
temp t: f64[2*n + 1] private
for i in 0..n
  d: t[2*i] = 1.0
  s: y[i] = t[2*i]
", [assign()];
    refuses_bounds: "kernel k
param n: i32
arg y: f64[n] inout
temp t: i32 private
d: t = n
for i in 0..t
  s: y[i] = 1.0
", [assign()];
    refuses_reads_in_a_rule: "kernel k
arg y: f64 inout
temp t: f64 private
rule r() := 2.0*t
d: t = 1.0
s: y = r()
", [assign()];
    refuses_a_reduction_in_the_index_of_a_use: "kernel k
param n: i32
arg m: i32[n] in
arg y: f64[n + 1] inout
temp t: f64[n + 1] private
for i in 0..n + 1
  d: t[i] = f64(i)*f64(i)
s: y[0] = t[minimum(j in 0..n: m[j])]
", [assign()];
    refuses_an_argument: "kernel k
arg t: f64 inout
d: t = 1.0
", [assign()];
    refuses_unknown: "kernel k
arg y: f64 inout
d: y = 1.0
", [assign()];
}
