use crate::story::facts;
use purlin_transforms::primitives::{InterchangeInames, SkewIname, TagIname};

fn skew(iname: &str, outer: &str, factor: i64) -> SkewIname {
    SkewIname::new(iname, outer, factor)
}

const STENCIL: &str = "kernel stencil
param n: i32
arg a: f64[n + 1, n + 1] inout
for t in 1..n
  for i in 0..n
    s: a[t, i] = a[t - 1, i + 1] + 1.0
";

facts! {
    /// The dependence `(1, -1)` forbids to swap the loops; skewed it is `(1, 0)`.
    makes_interchange_legal: STENCIL, [skew("i", "t", 1), InterchangeInames::new("t", "i")];
    there_and_back: STENCIL, [skew("i", "t", 2), skew("i", "t", -2)];
    not_the_next_loop_inside: "kernel k
param n: i32
arg a: f64[n, n, n] inout
for i in 0..n
  for j in 0..i
    for k in j..n where (k + j) mod 2 == 0
      s: a[i, j, k] = sum(q in 0..k: f64(q))
", [skew("k", "i", 1)];
    reduction_over_a_loop: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..n: a[i, j])
", [skew("j", "i", 1)];
    within_a_reduction: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64 inout
s: y = sum(i in 0..n, j in 0..n: a[i, j])
", [skew("j", "i", 1)];
    within_nested_reductions: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64 inout
s: y = sum(i in 0..n: f64(i)*maximum(j in 0..i + 1: a[i, j]))
", [skew("j", "i", 1)];
    /// The swapped bounds are quotients of the loop itself, which no loop can run over.
    interchange_refuses_quotients: "kernel k
param n: i32
arg x: f64[n] inout
for i in 0..n where i mod 2 == 0
  for j in max(0, i - 1)..min(i + 2, n)
    s: x[j] = -1.0
", [skew("j", "i", 1), InterchangeInames::new("i", "j")];
    /// Work-items count from the lower bound: every value stays in its work-item.
    private_slices_stay: "kernel k
param n: i32
arg y: f64[n] inout
temp t: f64[n] private
for i in 0..n
  for j in 0..n {l.0}
    s: t[j] = f64(j)
  for k in i..n + i {l.0}
    u: y[k - i] = t[k - i]
", [skew("k", "i", -1)];
    on_work_items: &STENCIL.replace("i in 0..n", "i in t..n + t").replace("a[t, i] = a[t - 1, i + 1]", "a[t, i - t] = a[t - 1, i - t + 1]"),
        [TagIname::new("i", "l.0"), skew("i", "t", -1)];
    /// The work-items of the launch would start at another value in every iteration.
    refuses_a_start_that_moves: STENCIL, [TagIname::new("i", "l.0"), skew("i", "t", 1)];
    refuses_a_start_that_moves_with_the_group: "kernel k
param n: i32
arg y: f64[n, 8] inout
for i in 0..n {g.0}
  for j in 0..8 {l.0}
    s: y[i, j] = 2.0
", [skew("j", "i", 3)];
    refuses_a_stride_on_an_axis: "kernel k
param n: i32
arg y: f64[n, n] inout
for i in 0..n
  for j in 0..n where j mod 3 == 1 {l.0}
    s: y[i, j] = 2.0
", [skew("j", "i", -1)];
    refuses_the_inner_loop: STENCIL, [skew("t", "i", 1)];
    refuses_itself: STENCIL, [skew("t", "t", 1)];
    refuses_an_inner_reduction: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64 inout
s: y = sum(i in 0..n, j in 0..n: a[i, j])
", [skew("i", "j", 1)];
    refuses_factor_zero: STENCIL, [skew("i", "t", 0)];
    refuses_a_large_factor: STENCIL, [skew("i", "t", i64::MIN)];
    refuses_unknown: STENCIL, [skew("i", "k", 1)];
}
