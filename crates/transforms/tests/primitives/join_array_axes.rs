use crate::story::facts;
use purlin_transforms::primitives::{JoinArrayAxes, PadArray};

fn join(axis: u32) -> JoinArrayAxes {
    JoinArrayAxes::new("t", axis)
}

const K: &str = "kernel k
param n: i32
arg a: f64[n, 2] inout
arg map: i32[n] in
temp t: f64[n, 2, 3] private
rule twice(k) := 2.0*t[k, 1, 2]
for i in 0..n
  for j in 0..2
    for l in 0..3
      set: t[i, j, l] = a[i, j] + f64(l)
for k in 0..n
  put: a[k, 0] = twice(k) - t[map[k], 0, 1]
";

facts! {
    outer_axes: K, [join(0)];
    inner_axes: K, [join(1)];
    all: K, [join(0), join(0)];
    dense_strides: "kernel k
arg a: f64[8, 8] inout
temp t: f64[8, 4, 2] private strides(9, 2, 1)
for i in 0..8
  for j in 0..8
    s: t[i, floor_div(j, 2), j mod 2] = a[i, j]
    r: a[i, j] = 2.0*t[i, floor_div(j, 2), j mod 2]
", [join(1)];
    refuses_padded_rows: K, [PadArray::new("t", 2, 1), join(1)];
    refuses_a_parametric_inner_extent: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[2, n] private
for i in 0..n
  s: t[1, i] = a[i]
  r: a[i] = 2.0*t[1, i]
", [join(0)];
    refuses_the_last_axis: K, [join(2)];
    refuses_an_axis_there_is_not: K, [join(7)];
    refuses_an_argument: K, [JoinArrayAxes::new("a", 0)];
    refuses_unknown: K, [JoinArrayAxes::new("u", 0)];
    refuses_an_array_that_an_assumption_mentions: "kernel k
arg y: f64[8] inout
temp t: i32[4, 2] private
assume injective(t)
for i in 0..4
  for j in 0..2
    s: t[i, j] = i32(2*i + j)
for k in 0..4
  r: y[t[k, 0]] = 1.0
", [join(0)];
    refuses_vectors: "kernel k
arg y: f64[2, 4] inout
temp t: f64[2, 4] private vector(1)
for i in 0..2
  for j in 0..4
    s: t[i, j] = y[i, j]
    r: y[i, j] = 2.0*t[i, j]
", [join(0)];
    /// That an index through a map stays in its column is not seen once the columns are one axis.
    refuses_columns_that_work_items_can_no_longer_tell_apart: "kernel k
arg map: i32[4] in
arg y: f64[4] inout
temp t: f64[4, 2] local
for j in 0..4 {l.0}
  s: t[j, 0] = f64(j)
  u: t[j, 1] = y[j] + t[j, 0]
for j2 in 0..4 {l.0}
  r: y[j2] = t[map[j2], 0]
  v: t[3 - j2, 1] = 1.0
", [join(0)];
}
