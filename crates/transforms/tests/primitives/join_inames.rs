use crate::story::facts;
use purlin_transforms::primitives::{JoinInames, SplitIname, TagIname};

fn join(outer: &str, inner: &str) -> JoinInames {
    JoinInames::new(outer, inner)
}

const RECTANGLE: &str = "kernel rectangle
param n: i32
arg a: f64[n, 4] inout
for i in 0..n
  for j in 0..4
    s: a[i, j] = f64(i) + a[i, j]
";

facts! {
    rectangle: RECTANGLE, [join("i", "j")];
    name_of_ones_own: RECTANGLE, [JoinInames { joined: Some("i".into()), ..join("i", "j") }];
    undoes_a_split: "kernel k
arg y: f64[8] inout
for i in 0..8
  s: y[i] = 2.0*y[i]
", [SplitIname::new("i", 4), join("i_o", "i_i")];
    /// The order of the instances stays: a recurrence may be joined.
    recurrence: "kernel k
param n: i32
arg y: f64 inout
for i in 0..n
  for j in 0..3
    s: y = 0.5*y + f64(j)
", [join("i", "j")];
    bounds_elsewhere: "kernel k
param n: i32
arg a: f64[2*n + 9, 2*n + 9] inout
for i in 2..n + 2
  for j in i + 1..i + 4
    s: a[i, j] = 1.0
    for k in i..j
      u: a[j, k] += f64(i + j + k)
", [join("i", "j")];
    /// The last tile is shorter: the joined loop leaves the rest of it out.
    rest_of_a_tile: "kernel k
param n: i32
arg a: f64[n, 4] inout
for t in 0..2
  for i in 0..n
    for j in 0..min(3, 4 - 3*t)
      s: a[i, 3*t + j] += f64(i + j)
", [join("i", "j")];
    ends_with_the_outer_loop: "kernel k
param n: i32
arg a: f64[n, n + 5] inout
for i in 0..n
  for j in max(i, 1)..min(i + 4, n)
    s: a[i, j] = 2.0*a[i, j]
", [join("i", "j")];
    refuses_more_bounds_from_memory: "kernel k
param n: i32
arg a: f64[n, 4] inout
temp m: i32 private
for i in 0..n
  set: m = i mod 3
  for j in 0..2
    for k in 0..min(4, m)
      s: a[i, k] += f64(j)
", [join("j", "k")];
    empty: "kernel k
arg a: f64[4, 4] inout
for i in 0..0
  for j in 0..4
    s: a[i, j] = 1.0
", [join("i", "j")];
    length_one: "kernel k
param n: i32
arg a: f64[n, 4] inout
for i in 0..n
  for j in 3..4
    s: a[i, j] = 1.0
", [join("i", "j")];
    outer_bounds_from_a_temporary: "kernel k
param n: i32
arg count: i32[1] in
arg y: f64[n, 2] inout
temp end: i32 private
e: end = count[0]
for i in 0..end
  for j in 0..2
    s: y[i, j] = 2.0
", [join("i", "j")];
    reduction: "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64 inout
s: y = sum(i in 0..n, j in 0..4: a[i, j])
", [join("i", "j")];
    refuses_a_length_that_is_not_constant: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 0..n
  for j in 0..n
    s: a[i, j] = 1.0
", [join("i", "j")];
    refuses_an_empty_inner_loop: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 0..n
  for j in 0..0
    s: a[i, j] = 1.0
", [join("i", "j")];
    refuses_a_stride: "kernel k
param n: i32
arg a: f64[n, 8] inout
for i in 0..n where i mod 2 == 0
  for j in 0..8
    s: a[i, j] = 1.0
", [join("i", "j")];
    refuses_an_imperfect_nest: "kernel k
param n: i32
arg a: f64[n, 4] inout
for i in 0..n
  z: a[i, 0] = 0.0
  for j in 0..4
    s: a[i, j] += 1.0
", [join("i", "j")];
    refuses_the_wrong_way_round: RECTANGLE, [join("j", "i")];
    refuses_itself: RECTANGLE, [join("i", "i")];
    refuses_tags: RECTANGLE, [TagIname::new("j", "l.0"), join("i", "j")];
    refuses_inner_bounds_from_memory: "kernel k
param n: i32
arg map: i32[n] in
arg a: f64[n, n + 3] inout
temp start: i32 private
e: start = map[0]
for i in 0..n
  for j in start..start + 3
    s: a[i, j] = 1.0
", [join("i", "j")];
    refuses_a_name_taken: RECTANGLE, [JoinInames { joined: Some("a".into()), ..join("i", "j") }];
    refuses_unknown: RECTANGLE, [join("i", "k")];
}
