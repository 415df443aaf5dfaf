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
}
