use crate::story::facts;
use purlin_transforms::primitives::{AliasStorage, PackArrays, TagIname};

const THREE: &str = "kernel k
param n: i32
arg a: f64[n, 4] in
arg map: i32[4] in
arg b: f64[n, 4] inout
temp t: f64[4] private
temp u: f64[2, 3] private
temp w: f64[10] private
for c in 0..n
  for i in 0..4
    s: t[i] = a[c, i]
  for i1 in 0..2
    for j1 in 0..3
      r: u[i1, j1] = 2.0*t[i1 + j1]
  for k in 0..4
    x: b[c, k] = t[map[k] mod 4] + u[k mod 2, k mod 3] + u[1, map[k] mod 3]
  for l in 0..10
    y: w[l] = f64(l)
  for m in 0..4
    z: b[c, m] += w[m]
";

facts! {
    side_by_side: THREE, [PackArrays::new(["t", "u"], "pool")];
    under_another_one: THREE, [PackArrays::new(["t", "u"], "pool"), AliasStorage::new(["pool", "w"], "shared")];
    scalars_of_work_items: "kernel k
arg a: f64[4] in
arg b: f64[4] inout
temp u: f64 private
temp v: f64 private
for i in 0..4 {l.0}
  s: u = a[i]
  t: v = 2.0*u
  x: b[i] = u - v
", [PackArrays::new(["v", "u"], "pool"), TagIname::new("i", "g.0")];
    refuses_a_parametric_shape: "kernel k
param n: i32
arg b: f64 inout
temp u: f64[n] private
temp v: f64[2] private
s: u[0] = 1.0 if n > 0
t: v[0] = u[0] if n > 0
x: b = v[0] if n > 0
", [PackArrays::new(["u", "v"], "pool")];
    refuses_other_types: "kernel k
arg b: f64 inout
temp u: f32[2] private
temp v: f64[2] private
s: u[0] = 1.0
t: v[0] = f64(u[0])
x: b = v[0]
", [PackArrays::new(["u", "v"], "pool")];
    refuses_one: THREE, [PackArrays::new(["u"], "pool")];
    refuses_an_argument: THREE, [PackArrays::new(["u", "a"], "pool")];
    refuses_a_taken_name: THREE, [PackArrays::new(["t", "u"], "w")];
    /// That an index through a map stays in its array is not seen once both are one.
    refuses_arrays_that_work_items_can_no_longer_tell_apart: "kernel k
arg map: i32[4] in
arg y: f64[4] inout
temp t: f64[4] local
temp u: f64[4] local
for j in 0..4 {l.0}
  s: t[j] = f64(j)
  v: u[j] = y[j] + t[j]
for j2 in 0..4 {l.0}
  r: y[j2] = t[map[j2]]
  w: u[3 - j2] = 1.0
", [PackArrays::new(["t", "u"], "pool")];
    refuses_other_memory: "kernel k
arg b: f64 inout
temp u: f64[2] local
temp v: f64[2] private
s: u[0] = 1.0
t: v[0] = u[0]
x: b = v[0]
", [PackArrays::new(["u", "v"], "pool")];
}
