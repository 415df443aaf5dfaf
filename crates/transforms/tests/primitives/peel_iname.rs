use crate::story::facts;
use purlin_transforms::primitives::{PeelIname, TagIname};

const SCALE: &str = "kernel scale
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*y[i] + f64(i)
";

const CONSTANT: &str = "kernel five
arg y: f64[5] inout
for i in 0..5
  s: y[i] = 2.0
";

facts! {
    first: SCALE, [PeelIname::first("i", 1)];
    last: SCALE, [PeelIname::last("i", 3)];
    both: SCALE, [PeelIname::first("i", 1), PeelIname::last("i", 1), PeelIname::first("i", 1)];
    constant_length: CONSTANT, [PeelIname::first("i", 2), PeelIname::last("i", 2)];
    more_than_there_is: CONSTANT, [PeelIname::first("i", 9)];
    more_than_there_is_at_the_end: CONSTANT, [PeelIname::last("i", 9)];
    empty: "kernel k
arg y: f64[5] inout
for i in 3..1
  s: y[i] = 2.0
", [PeelIname::last("i", 1)];
    everything_inside_is_copied: "kernel k
param n: i32
arg a: f64[n, n] inout
arg y: f64[n] inout
temp t: f64 private
for i in 0..n
  s: t = y[i]
  for j in i..n
    u: a[i, j] += t + sum(q in 0..j, r in q..i: f64(q + r)) if i + j < n {stage}
", [PeelIname::first("i", 2)];
    recurrence: "kernel k
param n: i32
arg a: f64[n] inout
for i in 1..n
  s: a[i] = a[i - 1] + 1.0
", [PeelIname::last("i", 1)];
    bounds_from_a_temporary: "kernel k
param n: i32
arg count: i32[1] in
arg y: f64[n] inout
temp end: i32 private
e: end = count[0]
for i in 0..end
  s: y[i] = 2.0
", [PeelIname::first("i", 1)];
    under_a_condition_on_a_parameter: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n where n mod 2 == 0
  s: y[i] += 1.0
", [PeelIname::first("i", 3)];
    refuses_a_loop_on_an_axis: SCALE, [TagIname::new("i", "l.0"), PeelIname::first("i", 1)];
    names_that_are_taken: "kernel k
param n: i32
arg s_first: f64[n] inout
for i in 0..n
  s: s_first[i] = 1.0
", [PeelIname::first("i", 1)];
    refuses_none: SCALE, [PeelIname::first("i", 0)];
    refuses_a_negative_count: SCALE, [PeelIname::last("i", -1)];
    refuses_bounds_that_change: "kernel k
param n: i32
arg count: i32[1] in
arg y: f64[n] inout
temp end: i32 private
e: end = count[0]
for i in 0..end
  s: y[i] = 1.0
  e2: end = 0
", [PeelIname::first("i", 1)];
    refuses_a_stride: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n where i mod 3 == 1
  s: y[i] = 2.0
", [PeelIname::first("i", 1)];
    refuses_a_reduction: "kernel k
param n: i32
arg y: f64 inout
s: y = sum(i in 0..n: f64(i))
", [PeelIname::first("i", 1)];
    refuses_unknown: SCALE, [PeelIname::first("j", 1)];
}
