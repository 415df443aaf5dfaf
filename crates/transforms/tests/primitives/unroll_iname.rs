use crate::story::facts;
use purlin_transforms::primitives::{FixParameter, RealiseReduction, SplitIname, TagIname, UnrollIname};

const SCALE: &str = "kernel scale
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*y[i]
";

fn unroll(iname: &str) -> UnrollIname {
    UnrollIname::new(iname)
}

facts! {
    constant_length: "kernel k
arg y: f64[3] inout
for i in 0..3
  s: y[i] = 2.0*y[i]
", [unroll("i")];
    no_iteration: "kernel k
arg y: f64[3] inout
for i in 2..1
  s: y[i] = 2.0*y[i]
", [unroll("i")];
    constant_length_at_a_moving_place: "kernel k
param n: i32
arg y: f64[n + 3] inout
for i in 0..n
  for j in i..i + 3
    s: y[j] = y[j] + 1.0
", [unroll("j")];
    reduction: "kernel k
param n: i32
arg x: f64[3] in
arg y: f64 inout
s: y = sum(i in 0..3: x[i])
", [unroll("i")];
    reduction_becomes_an_unrolled_loop: "kernel k
param n: i32
arg x: f64[3] in
arg y: f64 inout
s: y = sum(i in 0..3: x[i])
", [unroll("i"), RealiseReduction::new("i")];
    once_the_parameter_is_fixed: SCALE, [FixParameter::new("n", 4), unroll("i")];
    twice_is_once: "kernel k
arg y: f64[3] inout
for i in 0..3
  s: y[i] = 2.0*y[i]
", [unroll("i"), unroll("i")];
    refuses_a_parametric_length: SCALE, [unroll("i")];
    refuses_the_rest_of_a_split: SCALE, [SplitIname::new("i", 4), unroll("i_i")];
    refuses_too_many: "kernel k
arg y: f64[5000] inout
for i in 0..5000
  s: y[i] = 2.0*y[i]
", [unroll("i")];
    refuses_a_loop_on_an_axis: "kernel k
arg y: f64[8] inout
for i in 0..8
  s: y[i] = 2.0*y[i]
", [TagIname::new("i", "l.0"), unroll("i")];
    refuses_unknown_iname: SCALE, [unroll("j")];
}
