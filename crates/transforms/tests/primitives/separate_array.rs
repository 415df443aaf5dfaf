use crate::story::facts;
use purlin_transforms::primitives::SeparateArray;

fn separate(axis: u32) -> SeparateArray {
    SeparateArray::new("t", axis)
}

const PAIRS: &str = "kernel pairs
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64[n, 2] private
for i in 0..n
  s: t[i, 0] = a[i]
  u: t[i, 1] = 2.0*a[i]
for j in 0..n
  r: b[j] = t[j, 0]*t[n - 1 - j, 1]
";

fn elements(layout: &str, value: &str) -> String {
    format!(
        "kernel k\nparam n: i32\narg a: f64[n] inout\ntemp t: f64[2] private{layout}\n\
         for i in 0..n\n  s: t[0] = a[i]\n  u: t[1] = 2.0*t[0]\n  r: a[i] = {value}\n"
    )
}

facts! {
    structure_of_arrays: PAIRS, [separate(1)];
    scalars: "kernel k
arg a: f64[2] in
arg b: f64 inout
temp t: f64[2] private
s: t[0] = a[0]
u: t[1] = a[1]
r: b = t[0] - t[1]
", [separate(0)];
    in_rules: "kernel k
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64[n, 2] private
rule second(k) := t[k, 1]
for i in 0..n
  s: t[i, 0] = a[i]
  u: t[i, 1] = 2.0*a[i]
for j in 0..n
  r: b[j] = second(j)
", [separate(1)];
    refuses_a_loop_over_the_axis: PAIRS, [separate(0)];
    refuses_an_index_that_varies: "kernel k
param n: i32
arg b: f64[n] inout
temp t: f64[n, 2] private
for i in 0..n
  for c in 0..2
    s: t[i, c] = 1.0
  r: b[i] = t[i, 0]
", [separate(1)];
    refuses_an_argument: PAIRS, [SeparateArray::new("a", 0)];
    refuses_an_axis_there_is_not: PAIRS, [separate(2)];
    refuses_taken_names: "kernel k
arg b: f64 inout
temp t: f64[2] private
temp t_1: f64 private
s: t[0] = 1.0
u: t[1] = 2.0
v: t_1 = 3.0
r: b = t[0] - t[1] + t_1
", [separate(0)];
    refuses_what_an_assumption_mentions: "kernel k
param n: i32
arg y: f64[2*n] inout
temp t: i32[n, 2] private
assume injective(t)
for i in 0..n
  s: t[i, 0] = 2*i
  u: t[i, 1] = 2*i + 1
for j in 0..n
  r: y[t[j, 1]] = 1.0
", [separate(1)];
    refuses_shared_storage: &elements(" storage(buf)", "t[1]"), [separate(0)];
    refuses_strides: &elements(" strides(2)", "t[1]"), [separate(0)];
    refuses_vectors: &elements(" vector(0)", "t[1]"), [separate(0)];
    refuses_an_index_outside: &elements("", "t[1] + t[2]"), [separate(0)];
    refuses_an_index_that_varies_in_a_rule: &elements("\nrule g(j) := t[j]", "g(1)"), [separate(0)];
}
