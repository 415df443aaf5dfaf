use crate::story::facts;
use purlin_transforms::primitives::{
    ExpandArray, RealiseReduction, SplitIname, TagIname, Tail, UnrollIname, VectoriseIname,
};

const SCALE: &str = "kernel scale
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*y[i] + f64(i)
";

const LANES: &str = "kernel lanes
arg a: f64[8] in
arg b: f64[8] inout
temp t: f64 private
for i in 0..8
  s: t = 2.0*a[i]
  u: b[i] = t + 1.0
";

fn lanes(iname: &str) -> VectoriseIname {
    VectoriseIname::new(iname)
}

facts! {
    constant_length: LANES, [lanes("i")];
    full_blocks_and_a_peeled_remainder: SCALE, [SplitIname::new("i", 4).with_tail(Tail::Peel), lanes("i_i")];
    element_of_its_own: LANES, [ExpandArray::new("t", ["i"]), lanes("i")];
    loop_that_is_one_already: LANES, [TagIname::new("i", "vector"), lanes("i")];
    under_a_condition_on_a_loop_around: "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64[n, 4] inout
for i in 0..n
  for j in 0..4 where i + 2 < n
    s: y[i, j] += a[i, j]
", [VectoriseIname::new("j")];
    refuses_a_parametric_length: SCALE, [lanes("i")];
    refuses_a_guarded_block: SCALE, [SplitIname::new("i", 4), lanes("i_i")];
    refuses_three_lanes: "kernel k
arg y: f64[3] inout
for i in 0..3
  s: y[i] = 1.0
", [lanes("i")];
    refuses_one_lane: "kernel k
arg y: f64[1] inout
for i in 0..1
  s: y[i] = 1.0
", [lanes("i")];
    refuses_a_recurrence: "kernel k
arg a: f64[9] inout
for i in 1..9
  s: a[i] = a[i - 1] + 1.0
", [lanes("i")];
    refuses_an_accumulation: "kernel k
arg a: f64[8] in
arg b: f64 inout
for i in 0..8
  s: b += a[i]
", [lanes("i")];
    refuses_a_scatter: "kernel k
arg map: i32[8] in
arg a: f64[8] inout
for i in 0..8
  s: a[map[i]] = f64(i)
", [lanes("i")];
    refuses_the_value_of_the_last_lane: "kernel k
arg a: f64[8] in
arg b: f64 inout
temp t: f64 private
for i in 0..8
  s: t = a[i]
u: b = t
", [lanes("i")];
    refuses_a_loop_inside: "kernel k
arg a: f64[8, 8] inout
for i in 0..8
  for j in 0..8
    s: a[i, j] = 1.0
", [lanes("i")];
    refuses_a_reduction_inside: "kernel k
arg a: f64[8, 8] in
arg b: f64[8] inout
for i in 0..8
  s: b[i] = sum(j in 0..8: a[i, j])
", [lanes("i"), ];
    refuses_a_realised_reduction_inside: "kernel k
arg a: f64[8, 8] in
arg b: f64[8] inout
for i in 0..8
  s: b[i] = sum(j in 0..8: a[i, j])
", [RealiseReduction::new("j"), lanes("i")];
    refuses_a_reduction: "kernel k
arg a: f64[8] in
arg b: f64 inout
s: b = sum(j in 0..8: a[j])
", [lanes("j")];
    refuses_another_tag: LANES, [UnrollIname::new("i"), lanes("i")];
    refuses_unknown: LANES, [lanes("q")];
}
