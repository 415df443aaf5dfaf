use crate::story::facts;
use purlin_transforms::primitives::{JoinArrayAxes, SplitArrayAxis, SplitIname};

fn split(axis: u32, factor: i64) -> SplitArrayAxis {
    SplitArrayAxis::new("t", axis, factor)
}

const K: &str = "kernel k
param n: i32
arg a: f64[n, 2] inout
arg map: i32[n] in
temp t: f64[n + 1, 2] private
rule twice(k) := 2.0*t[k, 1]
for i in 0..n
  for j in 0..2
    set: t[i + 1, j] = a[i, j]
for k in 0..n
  put: a[k, 0] = twice(k + 1) - t[map[k] + 1, 0]
";

const COPY: &str = "kernel copy
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64[n] private
for i in 0..n
  s: t[i] = a[i]
for j in 0..n
  r: b[j] = t[j]
";

facts! {
    quotient_and_remainder: K, [split(0, 4)];
    inner_axis: K, [split(1, 2)];
    follows_a_split_loop: COPY, [SplitIname::new("i", 4), split(0, 4)];
    factor_one: COPY, [split(0, 1)];
    factor_beyond_the_extent: "kernel k
arg a: f64[3] inout
temp t: f64[3] private
for i in 0..3
  s: t[i] = a[i]
  r: a[i] = 2.0*t[i]
", [split(0, 8)];
    strides: "kernel k
arg a: f64[8, 8] inout
temp t: f64[8, 8] private strides(10, 1)
for i in 0..8
  for j in 0..8
    s: t[i, j] = a[i, j]
    r: a[i, j] = 2.0*t[i, j]
", [split(1, 4)];
    undone_by_joining: COPY, [split(0, 4), JoinArrayAxes::new("t", 0)];
    refuses_factor_zero: COPY, [split(0, 0)];
    refuses_factor_negative: COPY, [split(0, -2)];
    refuses_an_axis_there_is_not: COPY, [split(1, 4)];
    refuses_an_argument: COPY, [SplitArrayAxis::new("a", 0, 4)];
    refuses_unknown: COPY, [SplitArrayAxis::new("u", 0, 4)];
    refuses_what_an_assumption_mentions: "kernel k
param n: i32
arg y: f64[n] inout
temp t: i32[n] private
assume injective(t)
for i in 0..n
  s: t[i] = i
for j in 0..n
  r: y[t[j]] = 1.0
", [split(0, 4)];
}
