use crate::story::facts;
use purlin_transforms::primitives::{Assume, FixParameter, TagIname};

const SCALE: &str = "kernel scale
param n: i32
param m: i64
arg y: f64[n, m] inout
arg map: i32[n] in
assume n >= 1
assume n <= m
rule last(j) := j + n - 1
for i in 0..n
  for j in 0..n
    s: y[i, n - 1 - j] = f64(n*map[i])*2.0 if last(j) < m
";

facts! {
    the_type_of_an_extremum_stays: "kernel k
param n: i32
param p: i32
arg x: i32[n] in
arg z: f64[n] in
arg y: i64[4] inout
rule r(a) := min(a, p)
s0: y[0] = minimum(i in 0..n: p)
s1: y[1] = maximum(j in 0..n: min(p, 3) + r(2))
s2: y[2] = minimum(k in 0..n: x[p - 4] + p)
s3: y[3] = sum(l in 0..n: p)
", [FixParameter::new("p", 4)];
    everywhere: SCALE, [FixParameter::new("n", 4)];
    zero_trips: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 1.0
", [FixParameter::new("n", 0)];
    both: SCALE, [FixParameter::new("n", 4), FixParameter::new("m", 4)];
    refuses_a_broken_assumption: SCALE, [FixParameter::new("n", 0)];
    refuses_assumptions_without_solution: SCALE, [Assume::at_most("m", 3), FixParameter::new("n", 4)];
    refuses_a_negative_extent: "kernel k
param n: i32
arg y: f64[4] inout
temp t: f64[n] global
for i in 0..n
  s: t[i] = 1.0
  r: y[0] += t[i]
", [FixParameter::new("n", -1)];
    refuses_what_the_type_cannot_hold: SCALE, [FixParameter::new("n", 1 << 31)];
    refuses_what_coefficients_cannot_hold: SCALE, [FixParameter::new("m", i64::MIN)];
    refuses_an_argument: SCALE, [FixParameter::new("y", 1)];
    refuses_unknown: SCALE, [FixParameter::new("k", 1)];
    refuses_when_work_items_would_move: "kernel k
param n: i32
param p: i32
arg a: f64[n] in
arg y: f64[n] inout
temp t: f64[n] private
for i where i >= 1 and i >= p and i < n {l.0}
  load: t[i] = a[i]
for j where j >= 1 and j >= p - 1 and j < n and j >= p {l.0}
  s: y[j] = t[j]
", [FixParameter::new("p", 1), TagIname::new("j", "sequential")];
}
