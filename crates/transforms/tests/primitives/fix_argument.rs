use crate::story::facts;
use purlin_transforms::primitives::{EmbedTable, FixArgument, RemoveUnusedVars, SplitIname, UnrollIname};

const WEIGHTS: &str = "kernel k
param n: i32
arg c: f64 in
arg m: i32 in
arg w: f64[3] in
arg x: f64[n] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..3
    s: y[i] += c*w[j]*x[i] if j < m
";

facts! {
    the_type_of_an_extremum_stays: "kernel k
param n: i32
arg p: i32 in
arg y: i64 inout
s: y = minimum(i in 0..n: p)
", [FixArgument::int("p", [4])];
    an_array: WEIGHTS, [FixArgument::real("w", [0.1, -2.5e-17, 1e22])];
    an_array_written_into_the_code: WEIGHTS, [
        FixArgument::real("w", [0.1, 1.0/3.0, -1e-300]),
        UnrollIname::new("j"),
    ];
    a_real_scalar: WEIGHTS, [FixArgument::real("c", [0.1])];
    an_integer_scalar: WEIGHTS, [FixArgument::int("m", [2])];
    a_matrix_of_single_precision: "kernel k
arg w: f32[2, 2] in
arg s: f32 in
arg y: f64[2] inout
for i in 0..2
  t: y[i] = f64(w[i, 1]*s)
", [FixArgument::real("w", [0.5, 1.5, 2.5, 3.5]), FixArgument::real("s", [0.25])];
    an_injective_map: "kernel k
param n: i32
arg map: i32[3] in
arg y: f64[3] inout
assume injective(map)
for i in 0..3
  t: y[map[i]] += 1.0
", [FixArgument::int("map", [2, 0, 1])];
    literals_after_writing_out_a_loop: "kernel k
arg w: f64[2] in
arg y: f64[2] inout
s: y[0] += w[0]*y[1]
t: y[1] = w[1] + w[0]
", [FixArgument::real("w", [0.1, 3.0]), EmbedTable::new("w"), RemoveUnusedVars::default()];
    refuses_too_few_values: WEIGHTS, [FixArgument::real("w", [0.5])];
    refuses_integers_for_reals: WEIGHTS, [FixArgument::int("w", [1, 2, 3])];
    refuses_what_single_precision_rounds: "kernel k
arg w: f32[1] in
arg y: f32 inout
s: y = w[0]
", [FixArgument::real("w", [0.1])];
    refuses_infinity: WEIGHTS, [FixArgument::real("c", [f64::INFINITY])];
    refuses_a_parametric_shape: WEIGHTS, [FixArgument::real("x", [0.5])];
    refuses_what_is_written: WEIGHTS, [FixArgument::real("y", [0.5])];
    refuses_a_map_that_is_not_injective: "kernel k
arg map: i32[3] in
arg y: f64[3] inout
assume injective(map)
for i in 0..3
  t: y[map[i]] += 1.0
", [FixArgument::int("map", [2, 0, 2])];
    refuses_strides: "kernel k
arg w: f64[2, 2] in strides(1, 2)
arg y: f64 inout
s: y = w[0, 1]
", [FixArgument::real("w", [1.0, 2.0, 3.0, 4.0])];
    refuses_unknown: WEIGHTS, [SplitIname::new("j", 1), FixArgument::real("z", [0.5])];
    refuses_when_work_items_would_move: "kernel k
param n: i32
arg p: i32 in
arg a: f64[n] in
arg y: f64[n] inout
temp t: f64[n] private
for i where i >= 1 and i >= p and i < n {l.0}
  load: t[i] = a[i]
for j where j >= 1 and j >= p - 1 and j < n and j >= p {l.0}
  s: y[j] = t[j]
", [FixArgument::int("p", [1])];
}
