use crate::story::facts;
use purlin_transforms::primitives::{MapInames, TagIname};

const RECTANGLE: &str = "kernel rectangle
param m: i32
param n: i32
arg a: f64[m, n] inout
for t in 0..m
  for i in 0..n
    s: a[t, i] = a[t, i] + f64(t)*f64(i)
";

/// Every iteration needs those above it and to its right.
const SWEEP: &str = "kernel sweep
param m: i32
param n: i32
arg a: f64[m, n] inout
for t in 1..m
  for i in 0..n - 1
    s: a[t, i] = a[t - 1, i + 1] + 1.0
";

const TRIANGLE: &str = "kernel triangle
param n: i32
arg a: f64[n, n] inout
for i in 0..n
  for j in 0..i + 1
    s: a[i, j] += 1.0
";

const CUBE: &str = "kernel cube
param n: i32
arg a: f64[n, n, n] inout
for i in 0..n
  for j in 0..n
    for k in 0..n
      s: a[i, j, k] = f64(i + 2*j + 3*k)
";

fn map(inames: &[&str], rows: &[&[i64]]) -> MapInames {
    MapInames::new(inames.iter().copied(), rows.iter().map(|row| row.to_vec()))
}

fn plane(rows: &[&[i64]]) -> MapInames {
    map(&["t", "i"], rows)
}

facts! {
    identity: RECTANGLE, [plane(&[&[1, 0], &[0, 1]])];
    wavefront: RECTANGLE, [plane(&[&[1, 1], &[0, 1]])];
    interchange: RECTANGLE, [plane(&[&[0, 1], &[1, 0]])];
    reversal_with_an_offset: RECTANGLE, [plane(&[&[-1, 0], &[0, 1]]).shifted([3, -2])];
    two_steps_in_one: SWEEP, [plane(&[&[1, 1], &[1, 0]])];
    skewed_by_three: RECTANGLE, [plane(&[&[3, 1], &[2, 1]])];
    triangle: TRIANGLE, [map(&["i", "j"], &[&[1, -1], &[0, 1]])];
    three_loops: CUBE, [map(&["i", "j", "k"], &[&[1, 1, 1], &[0, 1, 0], &[0, 0, 1]])];
    two_of_three: CUBE, [map(&["j", "k"], &[&[1, 1], &[1, 2]])];
    one_loop: RECTANGLE, [map(&["i"], &[&[-1]])];
    names_of_ones_own: RECTANGLE, [MapInames { names: vec!["front".into(), "place".into()], ..plane(&[&[1, 1], &[0, 1]]) }];
    there_and_back: RECTANGLE, [plane(&[&[2, 1], &[1, 1]]), plane(&[&[1, -1], &[-1, 2]])];
    temporary_stays_inside_an_iteration: "kernel k
param m: i32
param n: i32
arg a: f64[m, n] inout
temp v: f64 private
for t in 0..m
  for i in 0..n
    s: v = 2.0*a[t, i]
    u: a[t, i] = v + 1.0
", [plane(&[&[0, -1], &[1, 0]])];
    strided: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 0..n where i mod 2 == 0
  for j in 0..n
    s: a[i, j] = 1.0
", [map(&["i", "j"], &[&[1, 1], &[0, 1]])];
    empty: "kernel k
arg a: f64[3, 3] inout
for i in 0..0
  for j in 0..3
    s: a[i, j] = 1.0
", [map(&["i", "j"], &[&[1, 1], &[0, 1]])];
    inside_another_loop: "kernel k
param n: i32
arg a: f64[n, n, n] inout
for b in 0..n
  for i in b..n
    for j in i..n
      s: a[b, i, j] = sum(k in j..n: f64(k))
", [map(&["i", "j"], &[&[0, 1], &[1, 0]])];
    conditions_on_a_loop_around: "kernel k
param n: i32
param m: i32
arg y: f64[n] inout
for i in 0..n
  for j in 0..m where i + 2 < n
    s: y[i] += 1.0
", [map(&["j"], &[&[-1]])];
    conditions_on_parameters: "kernel k
param n: i32
arg a: f64[n, n] inout
for t in 0..n where n mod 2 == 1 and n <= 5
  for i in 0..n
    s: a[t, i] += 1.0
", [plane(&[&[1, 1], &[0, 1]])];
    refuses_to_turn_a_dependence_around: SWEEP, [plane(&[&[0, 1], &[1, 0]])];
    refuses_to_reverse_a_recurrence: SWEEP, [plane(&[&[-1, 0], &[0, 1]])];
    refuses_a_determinant_of_two: RECTANGLE, [plane(&[&[1, 1], &[-1, 1]])];
    refuses_a_singular_matrix: RECTANGLE, [plane(&[&[2, 1], &[4, 2]])];
    refuses_a_matrix_that_is_not_square: RECTANGLE, [plane(&[&[1, 1]])];
    refuses_no_matrix: RECTANGLE, [plane(&[])];
    refuses_no_loops: RECTANGLE, [map(&[], &[])];
    refuses_an_offset_of_another_length: RECTANGLE, [plane(&[&[1, 0], &[0, 1]]).shifted([1])];
    refuses_large_coefficients: RECTANGLE, [plane(&[&[1, 1 << 30], &[0, 1]])];
    refuses_a_nest_that_is_not_perfect: "kernel k
param n: i32
arg a: f64[n, n] inout
arg b: f64[n] inout
for t in 0..n
  u: b[t] = 1.0
  for i in 0..n
    s: a[t, i] = 1.0
", [plane(&[&[0, 1], &[1, 0]])];
    refuses_the_inner_loop_first: RECTANGLE, [map(&["i", "t"], &[&[0, 1], &[1, 0]])];
    refuses_a_loop_on_an_axis: RECTANGLE, [TagIname::new("i", "l.0"), plane(&[&[0, 1], &[1, 0]])];
    refuses_bounds_from_memory: "kernel k
param n: i32
arg count: i32[n] in
arg a: f64[n, n] inout
temp end: i32 private
for b in 0..n
  e: end = count[b]
  for i in 0..n
    for j in 0..end
      s: a[i, j] = 1.0
", [map(&["i", "j"], &[&[0, 1], &[1, 0]])];
    refuses_names_taken: RECTANGLE, [MapInames { names: vec!["a".into(), "b".into()], ..plane(&[&[1, 1], &[0, 1]]) }];
    refuses_one_name_twice: RECTANGLE, [MapInames { names: vec!["b".into(), "b".into()], ..plane(&[&[1, 1], &[0, 1]]) }];
    refuses_a_wrong_number_of_names: RECTANGLE, [MapInames { names: vec!["b".into()], ..plane(&[&[1, 1], &[0, 1]]) }];
    refuses_a_reduction: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64 inout
s: y = sum(i in 0..n, j in 0..n: x[i]*x[j])
", [map(&["i", "j"], &[&[0, 1], &[1, 0]])];
    refuses_unknown: RECTANGLE, [map(&["t", "q"], &[&[0, 1], &[1, 0]])];
    refuses_bounds_without_a_closed_form: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 0..n where i mod 3 == 1
  for j in 0..n where j mod 2 == 1
    s: a[i, j] = 1.0
", [map(&["i", "j"], &[&[1, 1], &[0, 1]])];
}
