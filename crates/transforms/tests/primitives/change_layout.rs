use crate::story::facts;
use purlin_transforms::primitives::{Assume, ChangeLayout, TagIname};

const COORDINATES: &str = "kernel k
param n: i32
arg x: f64[n, 3] in
arg y: f64[n] inout
temp t: f64[4] private
table w: f64[2] global
for i in 0..n
  for j in 0..3
    s: t[j] = x[i, j]
  for k in 0..3
    r: y[i] += t[k]*t[2 - k]*w[k mod 2]
table w = [1, 2]
";

/// With n = 0 there would be one place for the four elements.
const FOUR: &str = "kernel k
param n: i32
arg y: f64[4] out
temp t: f64[4] global
for i in 0..4
  s: t[i] = f64(i)
for j in 0..4
  r: y[j] = t[j]
";

fn layout(var: &str, text: &str) -> ChangeLayout {
    ChangeLayout::new(var, text)
}

facts! {
    a_structure_of_arrays_and_back: COORDINATES, [layout("x", "strides(1, n)"), layout("x", "")];
    rows_with_room: COORDINATES, [layout("x", "strides(4, 1)")];
    a_vector_axis: COORDINATES, [layout("t", "vector(0)")];
    vectors_of_padded_rows: "kernel k
param n: i32
arg x: f64[n, 4] in
arg y: f64[n, 4] inout
for i in 0..n
  for j in 0..4
    s: y[i, j] = x[i, j]
", [layout("x", "vector(1)"), layout("y", "strides(8, 1) vector(1)"), TagIname::new("j", "vector")];
    refuses_elements_in_one_place: COORDINATES, [layout("x", "strides(2, 1)")];
    refuses_a_stride_that_may_be_zero: FOUR, [layout("t", "strides(n)")];
    a_stride_that_an_assumption_keeps_positive: FOUR, [Assume::at_least("n", 1), layout("t", "strides(n)")];
    strides_of_the_longer_of_two: "kernel k
param n: i32
param m: i32
arg x: f64[n, m] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = x[i, 0] if m > 0
", [layout("x", "strides(n + m, 1)"), layout("x", "strides(1, n)")];
    refuses_too_few_strides: COORDINATES, [layout("x", "strides(1)")];
    refuses_an_axis_of_three: COORDINATES, [layout("x", "vector(1)")];
    refuses_an_axis_that_is_not_there: COORDINATES, [layout("x", "vector(2)")];
    refuses_vectors_that_start_anywhere: "kernel k
param n: i32
arg x: f64[n, 4] inout
for i in 0..n
  s: x[i, 0] = 1.0
", [layout("x", "strides(5, 1) vector(1)")];
    refuses_text_that_is_no_layout: COORDINATES, [layout("x", "row-major")];
    refuses_other_attributes: COORDINATES, [layout("t", "local")];
    refuses_a_loop_in_a_stride: COORDINATES, [layout("x", "strides(i, 1)")];
    refuses_the_layout_there_is: COORDINATES, [layout("x", "")];
    refuses_a_table: COORDINATES, [layout("w", "strides(2)")];
    refuses_a_parameter: COORDINATES, [layout("n", "strides(2)")];
}
