use crate::story::facts;
use purlin_transforms::primitives::{ReverseIname, TagIname};

fn reverse(iname: &str) -> ReverseIname {
    ReverseIname::new(iname)
}

const SCALE: &str = "kernel scale
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*y[i] + f64(i)
";

facts! {
    range: SCALE, [reverse("i")];
    twice: SCALE, [reverse("i"), reverse("i")];
    bounds_of_an_outer_loop: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 0..n
  for j in i..n
    s: a[i, j] = f64(j)
", [reverse("j")];
    inner_bounds_mention_it: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 0..n
  for j in i..n
    s: a[i, j] = f64(j) if j mod 2 == 1
", [reverse("i")];
    empty: "kernel k
arg a: f64[3] inout
for i in 2..1
  s: a[i] = 1.0
", [reverse("i")];
    one_iteration_with_a_clash: "kernel k
arg y: f64 inout
for i in 0..1
  s: y = f64(i)
", [reverse("i")];
    sums_commute: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
for i in 0..n
  s: y += a[i]
", [reverse("i")];
    temporary_confined_to_the_body: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64 private
for i in 0..n
  load: t = 2.0*a[i]
  store: a[i] = t + 1.0
", [reverse("i")];
    reduction: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in i..n: a[j]*f64(j))
", [reverse("j")];
    on_work_items: SCALE, [TagIname::new("i", "l.0"), reverse("i")];
    refuses_a_recurrence: "kernel k
param n: i32
arg a: f64[n] inout
for i in 1..n
  s: a[i] = a[i - 1] + 1.0
", [reverse("i")];
    refuses_anti: "kernel k
param n: i32
arg a: f64[n + 1] inout
for i in 0..n
  s: a[i] = a[i + 1] + 1.0
", [reverse("i")];
    refuses_to_change_the_last_value: "kernel k
param n: i32
arg y: f64 inout
for i in 0..n
  s: y = f64(i)
", [reverse("i")];
    refuses_a_value_carried_by_a_temporary: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64 private
z: t = 0.0
for i in 0..n
  load: a[i] = t
  store: t = f64(i)
", [reverse("i")];
    refuses_a_temporary_used_after_the_loop: "kernel k
param n: i32
arg y: f64 inout
temp t: f64 private
z: t = 0.0
for i in 0..n
  s: t = f64(i)
u: y = t
", [reverse("i")];
    refuses_a_scatter: "kernel k
param n: i32
arg map: i32[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[map[i]] = f64(i)
", [reverse("i")];
    refuses_to_move_work_items: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp t: f64[n] private
for k in 0..n {l.0}
  load: t[k] = a[k]
for i in 0..n {l.0}
  s: y[i] = t[i]
", [reverse("i")];
    refuses_a_stride: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n where i mod 3 == 1
  s: y[i] = 2.0
", [reverse("i")];
    refuses_bounds_from_memory: "kernel k
param n: i32
arg count: i32[1] in
arg y: f64[n] inout
temp end: i32 private
e: end = count[0]
for i in 0..end
  s: y[i] = 2.0
", [reverse("i")];
    refuses_unknown: SCALE, [reverse("j")];
}
