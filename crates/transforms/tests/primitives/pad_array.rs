use crate::story::facts;
use purlin_transforms::primitives::{PadArray, TransposeArrayAxes};

fn pad(var: &str, axis: u32, by: i64) -> PadArray {
    PadArray::new(var, axis, by)
}

const TILE: &str = "kernel tile
param n: i32
arg a: f64[n, 8, 4] inout
arg flat: f64[8] inout
temp t: f64[8, 8] private
table w: f64[2, 2] global
for i in 0..8
  for j in 0..8
    s: t[i, j] = w[floor_div(i, 4), floor_div(j, 4)]
for k in 0..8
  r: flat[k] = t[k, 7 - k]
table w = [1, 2, 3, 4]
";

facts! {
    rows: TILE, [pad("t", 1, 1)];
    rows_of_an_argument: TILE, [pad("a", 2, 1)];
    planes_of_an_argument: TILE, [pad("a", 1, 2)];
    /// 8*n + 8 is larger than 8 wherever there is an element.
    parametric_rows_inside_others: "kernel k
param n: i32
arg a: f64[4, n, 8] inout
for i in 0..n
  s: a[2, i, 3] = 1.0
", [pad("a", 1, 1)];
    rows_inside_parametric_ones: "kernel k
param n: i32
arg a: f64[3, n, 4] inout
for i in 0..n
  s: a[2, i, 3] = 1.0
", [pad("a", 2, 1), pad("a", 1, 1)];
    columns_after_a_transposition: "kernel k
param n: i32
arg a: f64[8, n] inout
for i in 0..n
  s: a[2, i] = 1.0
", [TransposeArrayAxes::new("a", [1, 0]), pad("a", 0, 1)];
    refuses_rows_padded_already: TILE, [pad("t", 1, 1), pad("t", 1, 1)];
    refuses_the_outermost_axis: TILE, [pad("t", 0, 1)];
    refuses_one_axis: TILE, [pad("flat", 0, 1)];
    refuses_nothing: TILE, [pad("t", 1, 0)];
    refuses_a_negative: TILE, [pad("t", 1, -1)];
    refuses_an_axis_there_is_not: TILE, [pad("t", 2, 1)];
    refuses_a_table: TILE, [pad("w", 1, 1)];
    refuses_a_scalar: TILE, [pad("n", 0, 1)];
    refuses_products_of_parameters: "kernel k
param n: i32
param m: i32
arg a: f64[4, n, m] inout
for i in 0..n
  s: a[2, i, 0] = 1.0 if m > 0
", [pad("a", 2, 1)];
    refuses_unknown: TILE, [pad("u", 1, 1)];
    refuses_rows_that_are_not_multiples: "kernel k
arg a: f64[2, 3] inout strides(8, 2)
for i in 0..2
  for j in 0..3
    s: a[i, j] = 1.0
", [pad("a", 1, 1)];
}
