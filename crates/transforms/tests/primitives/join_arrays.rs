use crate::story::facts;
use purlin_ir::AddressSpace::Local;
use purlin_transforms::primitives::{
    AliasStorage, JoinArrays, PadArray, SetAddressSpace, TagIname, TransposeArrayAxes,
};

const TWO: &str = "kernel k
param n: i32
arg a: f64[n] in
arg b: f64[n, 2] inout
temp u: f64[n] global
temp v: f64[n] global
rule both(k) := u[k] + v[k]
for i in 0..n
  s: u[i] = a[i]
  t: v[i] = 2.0*u[i]
for j in 0..n
  x: b[j, 0] = both(n - 1 - j)
  y: b[j, 1] = u[j]*v[j]
";

const SCALARS: &str = "kernel k
arg a: f64[4] in
arg b: f64[4] inout
temp u: f64 private
temp v: f64 private
temp w: f32 private
for i in 0..4 {l.0}
  s: u = a[i]
  t: v = 2.0*u
  o: w = 1.0
  x: b[i] = u - v + f64(w)
";

facts! {
    an_array_of_structures: TWO, [JoinArrays::new(["u", "v"], "p", 1)];
    a_structure_of_arrays: TWO, [JoinArrays::new(["v", "u"], "p", 0)];
    one_then_the_other: TWO, [JoinArrays::new(["u", "v"], "p", 1), TransposeArrayAxes::new("p", [1, 0])];
    scalars: SCALARS, [JoinArrays::new(["u", "v"], "p", 0)];
    refuses_other_types: SCALARS, [JoinArrays::new(["u", "w"], "p", 0)];
    refuses_other_memory: TWO, [SetAddressSpace::new("u", Local), JoinArrays::new(["u", "v"], "p", 0)];
    refuses_other_shapes: "kernel k
arg b: f64 inout
temp u: f64[2] private
temp v: f64[3] private
s: u[0] = 1.0
t: v[0] = u[0]
x: b = v[0]
", [JoinArrays::new(["u", "v"], "p", 0)];
    refuses_an_axis_beyond: TWO, [JoinArrays::new(["u", "v"], "p", 2)];
    refuses_one: TWO, [JoinArrays::new(["u"], "p", 0)];
    refuses_the_same: TWO, [JoinArrays::new(["u", "u"], "p", 0)];
    refuses_an_argument: TWO, [JoinArrays::new(["u", "a"], "p", 0)];
    refuses_a_taken_name: TWO, [JoinArrays::new(["u", "v"], "a", 0)];
    refuses_strides: "kernel k
arg b: f64 inout
temp u: f64[2, 2] private
temp v: f64[2, 2] private
s: u[0, 0] = 1.0
t: v[0, 0] = u[0, 0]
x: b = v[0, 0]
", [PadArray::new("u", 1, 1), JoinArrays::new(["u", "v"], "p", 0)];
    refuses_shared_storage: "kernel k
arg b: f64[2] inout
temp u: f64[2] private
temp v: f64[2] private
s: u[0] = 1.0
x: b[0] = u[0]
t: v[0] = 2.0
y: b[1] = v[0]
", [AliasStorage::new(["u", "v"], "buf"), JoinArrays::new(["u", "v"], "p", 0)];
    lanes_keep_to_their_own: SCALARS, [TagIname::new("i", "vector"), JoinArrays::new(["u", "v"], "p", 0)];
    refuses_what_a_bound_mentions: "kernel k
param n: i32
arg m: i32[2] in
arg y: f64[n] inout
temp a: i32 private
temp b: i32 private
s: a = m[0]
t: b = m[1]
for i in 0..a
  u: y[i] += f64(b)
", [JoinArrays::new(["a", "b"], "p", 0)];
}
