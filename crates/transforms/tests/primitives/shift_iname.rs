use crate::story::facts;
use purlin_transforms::primitives::{ShiftIname, TagIname};

fn shift(iname: &str, by: i64) -> ShiftIname {
    ShiftIname::new(iname, by)
}

const SCALE: &str = "kernel scale
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*y[i] + f64(i)
";

facts! {
    forward: SCALE, [shift("i", 2)];
    backward: SCALE, [shift("i", -3)];
    there_and_back: SCALE, [shift("i", 2), shift("i", -2)];
    by_parameters: SCALE, [shift("i", -1).and(2, "n")];
    recurrence: "kernel k
param n: i32
arg a: f64[n] inout
for i in 1..n
  s: a[i] = a[i - 1] + 1.0
", [shift("i", -1)];
    strided: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n where i mod 3 == 1
  s: y[i] = 2.0
", [shift("i", 1)];
    inner_bounds_mention_it: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 0..n
  for j in i..n
    s: a[i, j] = f64(j) if i mod 2 == 1
", [shift("i", 1)];
    bounds_from_a_temporary: "kernel k
param n: i32
arg count: i32[1] in
arg y: f64[n] inout
temp end: i32 private
e: end = count[0]
for i in 0..end
  s: y[i] = 2.0
", [shift("i", 1)];
    reduction: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
s: y = sum(j in 0..n: a[j]*f64(j))
", [shift("j", 1)];
    on_work_items: SCALE, [TagIname::new("i", "l.0"), shift("i", 1)];
    /// Work-items count from the lower bound: every value stays in its work-item.
    private_slices_stay: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp t: f64[n] private
for k in 0..n {l.0}
  load: t[k] = a[k]
for i in 0..n {l.0}
  s: y[i] = t[i]
", [shift("i", 1)];
    refuses_a_stride_on_an_axis: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n where i mod 3 == 1 {l.0}
  s: y[i] = 2.0
", [shift("i", -1)];
    refuses_unknown_iname: SCALE, [shift("j", 1)];
    refuses_unknown_parameter: SCALE, [shift("i", 0).and(1, "m")];
    refuses_an_argument: SCALE, [shift("i", 0).and(1, "y")];
    refuses_large_numbers: SCALE, [shift("i", i64::MIN)];
}
